"""The lemmas of paper L as dense operators, and that each of their misprints matters.

Blocks are those of the sweeps, in body axes; math §3–5, errata of §9.
"""

from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.linalg import block_diag

from dense import one_hop
from hinge import zoo
from hinge.algebra.rotation import skew
from hinge.algebra.spatial import cross_force, cross_motion
from hinge.algorithms.linearized.articulated import articulated
from hinge.algorithms.linearized.gyroscopic import gyroscopic
from hinge.algorithms.linearized.nominal import nominal
from identities.paper_l_cases import (
    EPS,
    TREES,
    random_state,
    reference_forward,
    reference_inverse,
    worst,
)
from mechanisms import complex_step

CASES = {"serial": zoo.snake(6), "tree": TREES["everything"]}


def left(x):
    return np.hstack([x, np.zeros((6, 3))])


def diag(blocks):
    return block_diag(*blocks[1:])


@cache
def operators(name):
    """Every operator of the paper as a matrix over all bodies."""
    robot = CASES[name]
    mech, s = robot.mechanism, random_state(robot, 1)
    n = nominal(mech, s.q, s.qd, s.qdd, s.f_ext)
    a = articulated(mech, n, [np.zeros((6, 6))] * len(mech.bodies))
    hop = one_hop(mech, n.phi)
    one = np.eye(len(hop))
    o = SimpleNamespace(robot=robot, mech=mech, s=s, n=n, a=a, I=one, E_phi=hop)
    o.phi = np.linalg.inv(one - hop)
    o.H, o.H1, o.HA, o.H2 = (diag(x) for x in (n.H, n.H_first, n.H_sum, n.H_second))
    o.F, o.E, o.G = diag(n.F), diag(n.E), diag(a.G)
    o.M = diag([M.matrix for M in mech.M])
    o.M_hat = diag([left(gyroscopic(M, V).left) for M, V in zip(mech.M, n.V, strict=True)])
    o.P, o.P_hat = diag(a.P), 0.5 * diag([left(x) for x in a.P_hat])
    o.G_hat = 0.5 * diag([None, *(np.vstack([x, 0 * x]) for x in a.G_hat[1:])])
    o.D_inv, o.armature = diag(a.D_inv), diag([np.diag(x) for x in mech.armature])
    o.D = np.linalg.inv(o.D_inv)
    o.tau_bar = one - o.G @ o.H.T
    o.E_psi, o.K, o.K_hat = hop @ o.tau_bar, hop @ o.G, hop @ o.G_hat
    o.psi = np.linalg.inv(one - o.E_psi)
    o.L = np.eye(o.H.shape[1]) - o.H.T @ o.psi @ o.K
    o.Y_A = 2 * o.P_hat @ o.H + o.P @ o.HA
    o.Y_B = 2 * o.P_hat @ o.H1 + o.P @ o.H2 + o.F
    return o


def matrices(o):
    """−B_C, −A_C, M⁻¹ by complex steps."""
    return reference_forward(o.robot, o.s)[:3]


@pytest.mark.parametrize("name", CASES)
def test_lemma_3_1(name):
    o = operators(name)
    T = o.H.T @ o.phi
    A = T @ (2 * o.M_hat @ o.phi.T @ o.H + o.M @ o.phi.T @ o.HA)
    B = T @ (o.F + 2 * o.M_hat @ o.phi.T @ o.H1 + o.M @ o.phi.T @ o.H2) - o.E
    mass = T @ o.M @ T.T + o.armature
    assert worst((B, A, mass), reference_inverse(o.robot, o.s)) < 500 * EPS


@pytest.mark.parametrize("name", CASES)
def test_lemmas_4_2_to_4_5(name):
    o = operators(name)
    mass = o.robot.alg.mass_matrix(o.s.q)
    W = np.eye(len(mass)) + o.H.T @ o.phi @ o.K
    bound = 500 * EPS * np.linalg.cond(mass)
    assert worst([W @ o.D @ W.T], [mass]) < 500 * EPS
    assert worst([W @ o.L, o.L @ o.H.T @ o.phi], [np.eye(len(mass)), o.H.T @ o.psi]) < 500 * EPS
    assert worst([o.L.T @ o.D_inv @ o.L], [np.linalg.inv(mass)]) < bound
    moved = np.linalg.solve(mass, o.H.T @ o.phi @ o.M @ o.phi.T)
    assert worst([o.L.T @ o.D_inv @ o.H.T @ o.psi @ o.P + o.K.T @ o.psi.T], [moved]) < bound


@pytest.mark.parametrize("name", CASES)
def test_lemma_4_7(name):
    o = operators(name)
    U = o.L.T @ o.D_inv @ o.H.T @ o.psi
    K = o.K.T @ o.psi.T
    A = U @ o.Y_A + 2 * o.L.T @ o.K_hat.T @ o.phi.T @ o.H + K @ o.HA
    B = U @ o.Y_B + 2 * o.L.T @ o.K_hat.T @ o.phi.T @ o.H1 + K @ o.H2
    B = B - o.L.T @ o.D_inv @ o.L @ o.E
    dq, dqd, _ = matrices(o)
    assert worst((-B, -A), (dq, dqd)) < 300 * EPS


def solved(o, recursion):
    """S = diag(S(k)) from the base outward; recursion: (ψ(p,k), S(p), X(k)) ↦ S(k)."""
    X = o.H @ o.D_inv @ o.H.T
    S = np.zeros_like(X)
    for p, k in o.mech.outward():
        at = slice(6 * k - 6, 6 * k)
        up = slice(6 * p - 6, 6 * p) if p else slice(0, 0)
        hop, above = (o.E_psi[up, at], S[up, up]) if p else (np.zeros((6, 6)),) * 2
        S[at, at] = recursion(hop, above, X[at, at])
    return X, S


def test_erratum_6_the_inner_S_is_that_of_the_parent():
    o = operators("serial")
    X, S = solved(o, lambda hop, S, X: hop.T @ S @ hop + X)
    expected = o.psi.T @ X @ o.psi
    assert worst([o.psi.T @ S + S @ (o.psi - o.I)], [expected]) < 100 * EPS

    # S(k) on both sides as printed: what is known of body k when its turn comes is X(k)
    X, S = solved(o, lambda hop, S, X: hop.T @ X @ hop + X)
    assert worst([o.psi.T @ S + S @ (o.psi - o.I)], [expected]) > 1e-3
    # the lemma is one of serial chains: between branches there is more
    o = operators("tree")
    X, S = solved(o, lambda hop, S, X: hop.T @ S @ hop + X)
    assert worst([o.psi.T @ S + S @ (o.psi - o.I)], [o.psi.T @ X @ o.psi]) > 1e-3


def test_erratum_7_the_change_of_hinge_maps_is_not_transposed():
    """∂(H* y)/∂q = diag(S[H*(k) y(k)]ᵀ) Φᵀ H*, in one inertial frame, for a constant H(k)."""
    robot = zoo.arm(5)
    rng = np.random.default_rng(0)
    q, y = robot.random_configuration(rng), rng.normal(size=robot.nv)

    def fixed(q):
        """H* of every body about the world's origin, in world axes."""
        columns = []
        for k, X in enumerate(robot.alg.poses(q), 1):
            H = robot.mechanism.H(q)[k].T
            w, u = X[:3, :3] @ H[:3], X[:3, :3] @ H[3:]
            columns.append(np.concatenate([w, u + skew(X[:3, 3]) @ w]))
        return columns

    H = fixed(q)
    change = np.array(
        [
            complex_step(
                lambda s, e=e: np.concatenate(
                    [h @ [v] for h, v in zip(fixed(q + s * e), y, strict=True)]
                )
            )
            for e in np.eye(robot.nv)
        ]
    ).T
    lower = np.kron(np.tril(np.ones((robot.nv,) * 2)), np.eye(6))
    motion = lower @ block_diag(*H)
    force = block_diag(
        *(
            np.array([cross_force(h[:, 0] * v, e) for e in np.eye(6)]).T
            for h, v in zip(H, y, strict=True)
        )
    )
    assert worst([force.T @ motion], [change]) < 100 * EPS
    assert worst([force @ motion], [change]) > 1e-3


def lemma_4_9(o, weight):
    """A_C of a serial chain by Lemma 4.9; weight: of KᵀĴ in Q, 1 by right and 2 in (A.24)."""
    _, Y = solved(o, lambda hop, S, X: hop.T @ S @ hop + X)
    Y_plus = o.E_phi.T @ Y @ o.E_phi
    U = o.D_inv @ o.H.T - o.G.T @ Y_plus @ o.tau_bar
    # Ĵ(k) = ψ*(p,k) Ĵ(p) φ*(p,k)⁻¹ + H* Ĝ*, as a diagonal operator
    J = np.zeros_like(Y)
    for p, k in o.mech.outward():
        at, up = slice(6 * k - 6, 6 * k), slice(6 * p - 6, 6 * p)
        J[at, at] = (o.H @ o.G_hat.T)[at, at]
        if p:
            J[at, at] += o.E_psi[up, at].T @ J[up, up] @ np.linalg.inv(o.E_phi[up, at].T)
    E_A = o.HA - Y @ o.Y_A + 2 * J @ o.H
    Q = 2 * (o.K_hat.T - weight * o.K.T @ J)
    return U @ o.psi @ o.Y_A + o.K.T @ o.psi.T @ E_A + Q @ o.phi.T @ o.H


def test_erratum_8_and_lemma_4_9():
    o = operators("serial")
    _, dqd, _ = matrices(o)
    assert worst([-lemma_4_9(o, 1)], [dqd]) < 300 * EPS
    assert worst([-lemma_4_9(o, 2)], [dqd]) > 1e-3


@pytest.mark.parametrize("name", CASES)
def test_erratum_10_the_bracket_of_A_21(name):
    o = operators(name)
    KH, inverse = o.K @ o.H.T, np.linalg.inv(o.psi)
    right, printed = (o.K.T @ o.psi.T @ (inverse.T - x) @ o.phi.T for x in (KH.T, KH))
    assert worst([right], [o.K.T @ o.psi.T]) < 500 * EPS
    assert worst([printed], [o.K.T @ o.psi.T]) > 1e-3


def test_erratum_11_the_recovered_decomposition_of_the_inverse():
    """(4.21), (A.22), (A.23): M⁻¹ = L − K*ψ*U* − UψK with L = D⁻¹ + G*Υ⁺G, U = L H − G*Υ⁺."""
    o = operators("serial")
    _, Y = solved(o, lambda hop, S, X: hop.T @ S @ hop + X)
    Y_plus = o.E_phi.T @ Y @ o.E_phi
    L = o.D_inv + o.G.T @ Y_plus @ o.G
    U = L @ o.H.T - o.G.T @ Y_plus
    assert worst([U], [o.D_inv @ o.H.T - o.G.T @ Y_plus @ o.tau_bar]) < 100 * EPS
    inverse = L - (U @ o.psi @ o.K).T - U @ o.psi @ o.K
    assert worst([inverse], [o.L.T @ o.D_inv @ o.L]) < 100 * EPS
    # τ for τ̄ in U, and τ̄ left out of Υ: the glyphs that are lost
    wrong = o.D_inv @ o.H.T - o.G.T @ Y_plus @ (o.I - o.tau_bar)
    assert worst([L - (wrong @ o.psi @ o.K).T - wrong @ o.psi @ o.K], [inverse]) > 1e-3
    _, Y = solved(o, lambda hop, S, X: S + X)
    wrong = o.D_inv @ o.H.T - o.G.T @ (o.E_phi.T @ Y @ o.E_phi) @ o.tau_bar
    assert worst([L - (wrong @ o.psi @ o.K).T - wrong @ o.psi @ o.K], [inverse]) > 1e-3


def test_cross_products_are_adjoint():
    rng = np.random.default_rng(0)
    V, W, f = rng.normal(size=(3, 6))
    assert abs(cross_force(V, f) @ W + f @ cross_motion(V, W)) < 20 * EPS
