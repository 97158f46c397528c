"""Paper L equation by equation: linearised forward dynamics (math "linearized" §4 and §5).

Dense, about one inertial point; trees, every kind of joint, rotors, loads fixed in the world.
(A.14), (4.2) to (4.5) are laws (`operators/test_laws.py`), (A.1) to (A.5) decompositions (there and
in `operators/test_results_of_papers.py`); the algorithms: `test_paper_l_forward_sweeps.py`.
"""

from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.linalg import block_diag

from dense import of_bodies
from identities.paper_l_frame import CASES, Q, moving
from mechanisms import EPS, assert_close

every_case = pytest.mark.parametrize("name", CASES)
TREES = ["quadruped", "humanoid", "tree0", "tree1", "mixed", "everything", "left twists"]


def at(k):
    return slice(6 * k - 6, 6 * k)


@cache
def articulated(name):
    """The operators of §4, P̂, Ĝ, P^z, Y_A, Y_B of §5, and A_C, B_C by a dense solution."""
    o = moving(name)
    c = SimpleNamespace(o=o, mech=o.mech, H=o.H, I=o.I)
    c.Z = -of_bodies(Q, o.fext)
    P, P_hat, P_z = o.M.copy(), o.M_hat_.copy(), c.Z.copy()
    D, G = [None] * (o.n + 1), [None] * (o.n + 1)
    for p, k in o.mech.inward():
        H, a = o.H_list[k], at(k)
        D[k] = H.T @ P[a, a] @ H + np.diag(o.mech.armature[k])
        G[k] = P[a, a] @ H @ np.linalg.inv(D[k])
        if p:
            for X in (P, P_hat, P_z):
                X[at(p), at(p)] += (np.eye(6) - G[k] @ H.T) @ X[a, a]
    c.P, c.P_hat, c.P_z, c.D = P, P_hat, P_z, block_diag(*D[1:])
    c.D_inv, c.G = np.linalg.inv(c.D), block_diag(*G[1:])
    c.tau_bar = o.I - c.G @ o.H.T
    c.K, c.E_psi = o.E_phi @ c.G, o.E_phi @ c.tau_bar
    c.psi = np.linalg.inv(o.I - c.E_psi)
    c.L = np.eye(o.N) - o.H.T @ c.psi @ c.K
    c.G_hat, c.G_z = (X.T @ o.H @ c.D_inv for X in (P_hat, P_z))
    c.HA = o.H_rate + o.H1
    c.Y_A = 2 * P_hat @ o.H + P @ c.HA
    c.Y_B = 2 * P_hat @ o.H1 + P @ o.H2 + P_z @ o.H
    strict = o.Phi - o.I
    A_D = o.H.T @ o.Phi @ (2 * o.M_hat_ @ o.Phi.T @ o.H + o.M @ o.Phi.T @ c.HA)
    inner = 2 * o.M_hat_ @ o.Phi.T @ o.H1 + o.M @ o.Phi.T @ o.H2 + c.Z @ o.Phi.T @ o.H
    B_D = o.H.T @ (strict @ o.F + o.Phi @ inner) + o.E
    c.inverse = np.linalg.inv(o.mass)
    c.A_C, c.B_C = (np.linalg.solve(o.mass, X) for X in (A_D, B_D))
    c.bound = EPS * (100 * o.n + 0.1 * np.linalg.cond(o.mass))
    return c


@every_case
def test_4_10_forward_dynamics_in_one_line(name):
    """ν̇ = 𝓛ᵀD⁻¹[τ − Hᵀψ(Kτ + M̂V − fext + Pc)] − Kᵀψᵀc, c = Ḣν + e_root α₀."""
    c = articulated(name)
    o, n = c.o, c.o.nominal_
    bias = o.H_rate @ o.nu + o.fall
    forces = c.K @ n.tau + o.M_hat_ @ n.V - o.fext + c.P @ bias
    inner = n.tau - o.H.T @ (c.psi @ forces)
    got = c.L.T @ (c.D_inv @ inner) - c.K.T @ (c.psi.T @ bias)
    assert_close(got, o.nud, c.bound, np.abs(forces).max())


@every_case
def test_4_sweep_of_forward_dynamics(name):
    """Gravity enters through α₀ alone."""
    c = articulated(name)
    o, n, mech = c.o, c.o.nominal_, c.o.mech
    tau, turned = mech.rates(n.tau), [None, *(o.H_rate @ o.nu).reshape(-1, 6)]
    z = [np.zeros(6), *(o.M_hat_ @ n.V - o.fext).reshape(-1, 6)]
    eps, G, D_inv = mech.slots(3)
    for p, k in mech.inward():
        v = mech.v_slice(mech.bodies[k].joint_name)
        G[k], D_inv[k] = c.G[at(k), v], c.D_inv[v, v]
        z[k] = z[k] + c.P[at(k), at(k)] @ turned[k]
        eps[k] = tau[k] - o.H_list[k].T @ z[k]
        z[p] = z[p] + z[k] + G[k] @ eps[k]
    alpha, nud = [-mech.free_fall, *[None] * o.n], mech.slots(1)[0]
    for p, k in mech.outward():
        nud[k] = D_inv[k] @ eps[k] - G[k].T @ alpha[p]
        alpha[k] = alpha[p] + o.H_list[k] @ nud[k] + turned[k]
    assert_close(mech.join(nud), o.nud, c.bound, np.abs(z).max())


@every_case
def test_lemmas_4_6_and_4_7(name):
    """F enters one hop inward; ψF in place of ψℰ_ΦF only for joints of one DoF."""
    c = articulated(name)
    o = c.o
    K_hat, K_z = o.E_phi @ c.G_hat, o.E_phi @ c.G_z
    carried, joints = c.K.T @ c.psi.T, c.D_inv @ o.H.T @ c.psi
    A_C = c.L.T @ (joints @ c.Y_A + 2 * K_hat.T @ o.Phi.T @ o.H) + carried @ c.HA
    assert_close(A_C, c.A_C, c.bound)
    own = 2 * K_hat.T @ o.Phi.T @ o.H1 + K_z.T @ o.Phi.T @ o.H
    rest = c.L.T @ own + carried @ o.H2 + c.inverse @ o.E
    B_C = c.L.T @ joints @ (c.Y_B + o.E_phi @ o.F) + rest
    assert_close(B_C, c.B_C, c.bound)
    printed = c.L.T @ joints @ (c.Y_B + o.F) + rest
    if name in ("pendulum", "arm", "cartpole"):
        assert_close(printed, B_C, c.bound)
    elif name in ("snake", "mixed", "everything", "left twists"):
        assert np.abs(printed - B_C).max() > 1e-3


@every_case
def test_algorithm_5(name):
    c = articulated(name)
    o, mech = c.o, c.o.mech
    d = np.random.default_rng(2).normal(size=(3, o.N))
    dq, dnu, dtau = (mech.rates(x) for x in d)
    z, xi, theta, eta = ([np.zeros(6)] * (o.n + 1) for _ in range(4))
    eps, ddnu = mech.slots(2)
    own = {k: (at(k), mech.v_slice(mech.bodies[k].joint_name)) for _, k in mech.outward()}
    for p, k in mech.inward():
        y_A, y_B, F = (X[own[k]] for X in (c.Y_A, c.Y_B, o.F))
        G, E = c.G[own[k]], o.E[own[k][1], own[k][1]]
        z[k] = z[k] + y_A @ dnu[k] + y_B @ dq[k]
        eps[k] = dtau[k] - E @ dq[k] - o.H_list[k].T @ z[k]
        z[p] = z[p] + z[k] + G @ eps[k] + F @ dq[k]
    for p, k in mech.outward():
        v = own[k][1]
        G, G_hat, G_z = (X[own[k]] for X in (c.G, c.G_hat, c.G_z))
        felt = 2 * G_hat.T @ theta[p] + G_z.T @ xi[p] + G.T @ eta[p]
        ddnu[k] = c.D_inv[v, v] @ eps[k] - felt
        H, H1, H2, HA = o.H_list[k], o.H1[own[k]], o.H2[own[k]], c.HA[own[k]]
        xi[k] = xi[p] + H @ dq[k]
        theta[k] = theta[p] + H @ dnu[k] + H1 @ dq[k]
        eta[k] = eta[p] + H @ ddnu[k] + HA @ dnu[k] + H2 @ dq[k]
    expected = c.inverse @ d[2] - c.A_C @ d[1] - c.B_C @ d[0]
    assert_close(mech.join(ddnu), expected, c.bound)


def outward(c, X, right):
    """S_k = X_k + τ̄_kᵀ S_λ right_k, block diagonal."""
    out = X.copy()
    for p, k in c.mech.outward():
        if p:
            out[at(k), at(k)] += c.tau_bar[at(k), at(k)].T @ out[at(p), at(p)] @ right[at(k), at(k)]
    return out


def lines(mech):
    """Of each body the bodies it hangs on, nearest first, itself included."""
    return {k: [j for _, j in mech.ancestors(k)] for _, k in mech.outward()}


@every_case
def test_lemma_4_8_blocks_of_omega(name):
    """Υ_iψ(i,j) on one line, ψ(c,i)ᵀΥ_cψ(c,j) across branches, c the nearest common ancestor."""
    c = articulated(name)
    own = c.H @ c.D_inv @ c.H.T
    Omega, Upsilon = c.psi.T @ own @ c.psi, outward(c, own, c.tau_bar)
    line = lines(c.mech)
    expected = np.zeros_like(Omega)
    for i in line:
        for j in line:
            common = next((k for k in line[i] if k in line[j]), None)
            if common:
                up = at(common)
                left, right = c.psi[up, at(i)].T, c.psi[up, at(j)]
                expected[at(i), at(j)] = left @ Upsilon[up, up] @ right
    assert_close(Omega, expected, c.bound)
    # the paper has the first kind of block alone
    strict = c.psi - c.I
    printed = Upsilon + strict.T @ Upsilon + Upsilon @ strict
    if name in TREES:
        assert np.abs(printed - Omega).max() > 1e-3
    elif all(b.parent == k - 1 for k, b in enumerate(c.mech.bodies)):
        assert_close(printed, Omega, c.bound)


class Blocks:
    """Lemma 4.9: what each body has, and the block (k, j) of 𝓜⁻¹, A_C, B_C."""

    def __init__(self, c):
        self.c, self.line = c, lines(c.mech)
        o = c.o
        own = o.H @ c.D_inv @ o.H.T
        self.Upsilon = Y = outward(c, own, c.tau_bar)
        plus = o.E_phi.T @ Y @ o.E_phi
        self.Y_plus = plus * np.kron(np.eye(o.n), np.ones((6, 6)))
        self.L = c.D_inv + c.G.T @ self.Y_plus @ c.G
        self.U = self.L @ o.H.T - c.G.T @ self.Y_plus
        J, J_z = (outward(c, o.H @ G.T, o.I) for G in (c.G_hat, c.G_z))
        J_plus, J_z_plus = (self.of_parents(X) for X in (J, J_z))
        self.E_A = c.HA - Y @ c.Y_A + 2 * J @ o.H
        through = c.tau_bar.T @ self.Y_plus @ o.F
        self.E_B = o.H2 - Y @ c.Y_B + 2 * J @ o.H1 + J_z @ o.H - through
        self.Q = 2 * (c.G_hat.T - c.G.T @ J_plus)
        self.Q_z = c.G_z.T - c.G.T @ J_z_plus

    def of_parents(self, X):
        out = np.zeros_like(X)
        for p, k in self.c.mech.outward():
            if p:
                out[at(k), at(k)] = X[at(p), at(p)]
        return out

    def block(self, k, j):
        c, o, mech = self.c, self.c.o, self.c.mech
        K, J = (mech.v_slice(mech.bodies[i].joint_name) for i in (k, j))
        b, a = at(k), at(j)
        up_j, up_k = mech.bodies[j].parent, mech.bodies[k].parent
        G_j, F_j = c.G[a, J], o.F[a, J]
        Y_A, Y_B = c.Y_A[a, J], c.Y_B[a, J]
        if k == j:
            U, plus = self.U[K, b], self.Y_plus[b, b]
            return self.L[K, K], U @ Y_A, U @ Y_B - c.G[b, K].T @ plus @ F_j
        if k in self.line[j]:
            U, whole, hop = self.U[K, b], c.psi[b, a], c.psi[b, at(up_j)]
            return -U @ hop @ G_j, U @ whole @ Y_A, U @ whole @ Y_B + U @ hop @ F_j
        common = next((i for i in self.line[k] if i in self.line[j]), None)
        if common is None:
            return 0, 0, 0
        W = c.G[b, K].T @ c.psi[at(common), at(up_k)].T
        if common == j:
            inverse = self.block(j, k)[0].T
            Q, Q_z = self.Q[K, b], self.Q_z[K, b]
            B = W @ self.E_B[a, J] + Q @ o.H1[a, J] + Q_z @ o.H[a, J]
            return inverse, W @ self.E_A[a, J] + Q @ o.H[a, J], B
        X = W @ self.Upsilon[at(common), at(common)]
        whole, hop = c.psi[at(common), a], c.psi[at(common), at(up_j)]
        return X @ hop @ G_j, -X @ whole @ Y_A, -X @ (whole @ Y_B + hop @ F_j)


@every_case
def test_lemma_4_9_blocks_of_the_linear_model(name):
    c = articulated(name)
    blocks, mech, N = Blocks(c), c.mech, c.o.N
    found = np.zeros((3, N, N))
    across = np.zeros((N, N), bool)
    for k in blocks.line:
        for j in blocks.line:
            at_ = tuple(mech.v_slice(mech.bodies[i].joint_name) for i in (k, j))
            for matrix, block in zip(found, blocks.block(k, j), strict=True):
                matrix[at_] = block
            across[at_] = k not in blocks.line[j] and j not in blocks.line[k]
    inverse, A_C, B_C = found
    B_C = B_C + inverse @ c.o.E
    expected = (c.inverse, c.A_C, c.B_C)
    for got, right in zip((inverse, A_C, B_C), expected, strict=True):
        assert_close(got, right, c.bound)
        if name in TREES:
            assert np.abs(right[across]).max() > 1e-3
    both = c.D_inv @ c.H.T - c.G.T @ blocks.Y_plus @ c.tau_bar
    assert_close(blocks.U, both, c.bound)
