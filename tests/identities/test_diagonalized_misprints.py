"""Formulas of the diagonalised dynamics as printed and as they should be (math §13).

Each is evaluated with dense operators in the paper's own terms: a serial chain of hinges, bodies
counted from the tip, every vector in inertial axes.  The correct one agrees with a complex step or
with Cholesky's factor, the printed one is off by the order of the quantity itself.
`A.T` is the paper's A*, and Ṽ* is −(V ×*).
"""

from dataclasses import dataclass

import numpy as np
import pytest

import hinge
from hinge.rotation import skew
from mechanisms import complex_step, random_state

N = 4


def chain(seed=5):
    rng = np.random.default_rng(seed)
    b = hinge.MechanismBuilder("chain", gravity=(0, 0, 0))
    for i in range(N):
        place = hinge.Transform(translation=0.5 * rng.normal(size=3))
        body = hinge.Inertia(rng.uniform(0.5, 2), 0.3 * rng.normal(size=3), 0.2 * np.eye(3))
        parent = f"body{i - 1}" if i else "world"
        b.add(f"body{i}", parent, hinge.Revolute(rng.normal(size=3)), None, place, body)
    return hinge.Robot(b.build())


ROBOT = chain()
STATE = random_state(ROBOT, 1)
Q, QD = STATE.q, STATE.qd


def block_diagonal(blocks):
    out = np.zeros((sum(len(b) for b in blocks), sum(b.shape[1] for b in blocks)), complex)
    row = column = 0
    for b in blocks:
        out[row : row + b.shape[0], column : column + b.shape[1]] = b
        row, column = row + b.shape[0], column + b.shape[1]
    return out if np.iscomplexobj(blocks[0]) else out.real


def tilde(V):
    """V × of a motion (ω; v)."""
    return np.block([[skew(V[:3]), np.zeros((3, 3))], [skew(V[3:]), skew(V[:3])]])


def along_blocks(x, make=tilde):
    """The block-diagonal operator of a stack of 6-vectors."""
    return block_diagonal([make(v) for v in x.reshape(N, 6)])


@dataclass
class Operators:
    """H, φ, M, P, D, G, … of the chain at q, tip first, inertial axes."""

    q: np.ndarray

    def __post_init__(self):
        poses = ROBOT.alg.poses(self.q)[::-1]
        bodies = ROBOT.mechanism.bodies[:0:-1]
        hinges, inertias, hops = [], [], []
        for X, body in zip(poses, bodies, strict=True):
            R = X[:3, :3]
            hinges.append(np.concatenate([R @ np.array(body.joint.axis), np.zeros(3)])[None])
            turn = block_diagonal([R, R])
            inertias.append(turn @ body.inertia.spatial.matrix @ turn.T)
        for k in range(N - 1):
            hops.append(
                np.block(
                    [
                        [np.eye(3), skew(poses[k][:3, 3] - poses[k + 1][:3, 3])],
                        [np.zeros((3, 3)), np.eye(3)],
                    ]
                )
            )
        self.H, self.M = block_diagonal(hinges), block_diagonal(inertias)
        self.E_phi = self._below(hops)
        self.one = np.eye(6 * N)
        self.phi = np.linalg.inv(self.one - self.E_phi)
        self._riccati(hinges, inertias, hops)

    def _below(self, hops):
        E = np.zeros((6 * N, 6 * N), self.M.dtype)
        for k, hop in enumerate(hops):
            E[6 * k + 6 : 6 * k + 12, 6 * k : 6 * k + 6] = hop
        return E

    def _riccati(self, hinges, inertias, hops):
        P, D, G, P_plus, P_k = [], [], [], [], inertias[0]
        for k in range(N):
            h = hinges[k]
            D_k = h @ P_k @ h.T
            G_k = P_k @ h.T / D_k
            P.append(P_k), D.append(D_k), G.append(G_k)
            P_plus.append(P_k - G_k @ h @ P_k)
            if k < N - 1:
                P_k = inertias[k + 1] + hops[k] @ P_plus[k] @ hops[k].T
        self.P, self.D, self.G = block_diagonal(P), block_diagonal(D), block_diagonal(G)
        self.P_plus = block_diagonal(P_plus)
        self.tau = self.G @ self.H
        self.tau_bar = self.one - self.tau
        self.K, self.E_psi = self.E_phi @ self.G, self.E_phi @ self.tau_bar
        self.psi = np.linalg.inv(self.one - self.E_psi)
        self.root = np.sqrt(self.D)
        self.unit = np.eye(N)
        self.m = (self.unit + self.H @ self.phi @ self.K) @ self.root


O = Operators(Q)
THETA_D = QD[::-1]
MASS = ROBOT.alg.mass_matrix(Q)[::-1, ::-1]
m = np.linalg.cholesky(MASS)
l = np.linalg.inv(m)
ROOT_INV = np.linalg.inv(O.root)
V = O.phi.T @ O.H.T @ THETA_D
V_PLUS = O.E_phi.T @ V
TILDE_V = along_blocks(V)
# angular velocities of bodies, and across joints
OMEGA = along_blocks(V, lambda v: tilde(np.concatenate([v[:3], np.zeros(3)])))
DELTA = along_blocks(O.H.T @ THETA_D)
PARENT = OMEGA - DELTA
NU = m.T @ THETA_D
XI = ROOT_INV @ NU


def rate(name, q=Q, qd=QD):
    """The time derivative of an operator along the motion, in inertial axes."""
    return complex_step(lambda h: getattr(Operators(q + h * qd), name))


def slope(name, i):
    """∂/∂θ_i, i counted from the tip."""
    return rate(name, qd=np.eye(N)[N - 1 - i])


def spins(i):
    """ℍ_δ (body i alone), ℍ_s (outboard of i), ℍ (both)."""
    h = tilde(np.concatenate([O.H[i, 6 * i : 6 * i + 3], np.zeros(3)]))
    zero = np.zeros((6, 6))
    own = block_diagonal([h if k == i else zero for k in range(N)])
    beyond = block_diagonal([h if k < i else zero for k in range(N)])
    return own, beyond, own + beyond


def free_rate(normalized):
    """Of ν or ξ where no force acts."""
    qdd = ROBOT.alg.forward_dynamics(Q, QD, np.zeros(N))
    return complex_step(lambda h: ROBOT.alg.total_rates(Q + h * QD, QD + h * qdd, normalized))[::-1]


def local_rate_of_P():
    """P° and Λ = P° + Ω̃_δ P − P Ω̃_δ (6.4)."""
    P_local = rate("P") - OMEGA @ O.P + O.P @ OMEGA
    return P_local, P_local + DELTA @ O.P - O.P @ DELTA


P_LOCAL, LAMBDA = local_rate_of_P()
X = DELTA @ O.P


def test_the_operators_are_those_of_the_robot():
    assert np.abs(O.m - m).max() < 1e-13
    assert np.abs(O.m - ROBOT.alg.mass_factor(Q)[::-1, ::-1]).max() < 1e-13
    assert np.abs(P_LOCAL - O.E_psi @ LAMBDA @ O.E_psi.T).max() < 1e-13
    assert np.abs(O.D - O.H @ O.P @ O.H.T).max() < 1e-13


# place → (what it should be, as it should read, as printed)


def coriolis_of_lemma_3():
    m_rate = rate("m")
    half = 0.5 * np.array([THETA_D @ mass_slope(i) @ THETA_D for i in range(N)])
    return -free_rate(True), l @ (m_rate @ NU - half), l @ m_rate @ NU - half


def mass_slope(i):
    e = np.eye(N)[N - 1 - i]
    return complex_step(lambda h: ROBOT.alg.mass_matrix(Q + h * e))[::-1, ::-1]


def accelerations():
    qdd = STATE.qdd
    moving = complex_step(lambda h: velocities(Q + h * QD, QD + h * qdd))
    hop, turn = rate("E_phi"), rate("H")
    a = hop.T @ V + turn.T @ THETA_D
    right = O.phi.T @ (O.H.T @ qdd[::-1] + a)
    return moving, right, O.phi.T @ (O.H.T @ qdd[::-1] - a)


def velocities(q, qd):
    o = Operators(q)
    return o.phi.T @ o.H.T @ qd[::-1]


def transition():
    def inverse(E_psi):
        psi = np.linalg.inv(O.one - E_psi)
        factor = O.unit - O.H @ psi @ O.K
        return factor.T @ np.linalg.inv(O.D) @ factor

    return np.linalg.inv(MASS), inverse(O.E_phi @ O.tau_bar), inverse(-O.E_phi @ O.tau_bar)


def riccati_as_an_operator_equation():
    right = O.P - O.E_psi @ O.P @ O.E_psi.T
    return O.M, right, O.one - O.E_phi @ O.P @ O.E_phi.T


def table_1():
    return NU, O.root @ (THETA_D + O.G.T @ V_PLUS), O.root @ (THETA_D - O.G.T @ V_PLUS)


TAU = STATE.qdd


def table_2_forward():
    def sweep(scale):
        z_plus, eps = np.zeros(6), []
        for k in range(N):
            z = _hop(k) @ z_plus
            own = _own(k)
            eps.append((TAU[k] - own.H @ z) / own.root)
            z_plus = z + own.G * scale(own.root) * eps[k]
        return np.array(eps)

    return l @ TAU, sweep(lambda root: root), sweep(lambda root: 1.0)


def table_2_backward():
    eps = l @ TAU

    def sweep(scale):
        z_plus, tau = np.zeros(6), []
        for k in range(N):
            z, own = _hop(k) @ z_plus, _own(k)
            tau.append(own.root * eps[k] + own.H @ z)
            z_plus = z + own.G * scale(own.root) * eps[k]
        return np.array(tau)

    return TAU, sweep(lambda root: root), sweep(lambda root: 1.0)


@dataclass
class Joint:
    H: np.ndarray
    G: np.ndarray
    root: float


def _own(k):
    at = slice(6 * k, 6 * k + 6)
    return Joint(O.H[k, at], O.G[at, k], O.root[k, k])


def _hop(k):
    return O.E_phi[6 * k : 6 * k + 6, 6 * k - 6 : 6 * k] if k else np.eye(6)


def rates_from_velocities():
    delta = O.G.T @ V_PLUS
    return THETA_D + delta, ROOT_INV @ NU, O.root @ NU


def nested_products():
    a, b, c = np.random.default_rng(0).normal(size=(3, 6))
    A, B = tilde(a), tilde(b)
    return A @ B @ c, tilde(A @ b) @ c + B @ A @ c, -B @ A @ c


def rate_of_the_factor():
    def law(projector, change):
        inner = DELTA @ (O.phi - O.one) @ O.P + 0.5 * (O.one + projector) @ change
        return O.H @ O.phi @ inner @ O.H.T @ ROOT_INV

    return rate("m"), law(O.tau_bar, LAMBDA), law(O.tau, LAMBDA)


def rate_of_the_factor_in_the_appendix():
    expected, right, _ = rate_of_the_factor()
    inner = DELTA @ (O.phi - O.one) @ O.P + 0.5 * (O.one + O.tau_bar) @ rate("P")
    return expected, right, O.H @ O.phi @ inner @ O.H.T @ ROOT_INV


def unnormalised_forces():
    factor = O.unit - O.H @ O.psi @ O.K
    return O.root @ l @ TAU, factor @ TAU, factor.T @ TAU


def unnormalised_coriolis():
    expected = -O.D @ free_rate(False)
    common = P_LOCAL @ O.H.T @ XI
    gyroscopic = TILDE_V.T @ O.M @ V
    right = common - DELTA @ O.P_plus @ V_PLUS - gyroscopic
    printed = common - DELTA @ O.P.T @ V + gyroscopic
    return expected, O.H @ O.psi @ right, O.H @ O.psi @ printed


def unnormalised_recursion():
    def sweep(x):
        inner = LAMBDA @ O.H.T @ XI - (TILDE_V.T @ O.M + x) @ V
        return O.H @ O.psi @ inner

    return -O.D @ free_rate(False), sweep(X), sweep(X.T)


def slope_of_phi():
    own, beyond, both = spins(2)
    expected = slope("phi", 2)
    right = O.phi @ own @ O.phi - O.phi @ both + beyond @ O.phi
    printed = O.phi @ beyond @ O.phi - O.phi @ both + beyond @ O.phi
    return expected, right, printed


def sign_of_the_slope_of_phi():
    change = O.phi @ slope("E_phi", 2) @ O.phi
    return slope("phi", 2), change, -change


def slope_of_the_mass_matrix():
    own, beyond, _ = spins(2)

    def law(spin):
        inner = spin @ O.phi @ O.M - O.M @ O.phi.T @ spin
        return O.H @ O.phi @ inner @ O.phi.T @ O.H.T

    return mass_slope(2), law(own), law(beyond)


def slopes_of_the_energy():
    expected = np.array([THETA_D @ mass_slope(i) @ THETA_D for i in range(N)])

    def law(turning):
        return 2 * O.H @ O.phi @ (turning @ O.phi + TILDE_V.T) @ O.M @ V

    return expected, law(DELTA), law(PARENT)


def slope_of_the_articulated_inertia():
    own, beyond, _ = spins(2)
    lam = slope("P", 2) + O.P @ beyond - beyond @ O.P
    expected = lam - O.E_psi @ lam @ O.E_psi.T
    return expected, own @ O.P - O.P @ own, beyond @ O.P - O.P @ beyond


def velocity_through_a_hop():
    carried = along_blocks(V_PLUS) @ O.E_phi.T
    # the base has no parent
    rows = np.repeat(np.arange(N) < N - 1, 6)[:, None]
    right, printed = ((TILDE_V + sign * DELTA) @ O.E_phi.T for sign in (-1, 1))
    return rows * carried, rows * right, rows * printed


MISPRINTS = {
    "(3.2)": coriolis_of_lemma_3,
    "(4.4)": accelerations,
    "(4.8)": transition,
    "(4.9)": riccati_as_an_operator_equation,
    "table 1": table_1,
    "table 2, forward": table_2_forward,
    "table 2, backward": table_2_backward,
    "(5.3)": rates_from_velocities,
    "section 5": nested_products,
    "(6.7)": rate_of_the_factor,
    "(7.9), forces": unnormalised_forces,
    "(7.9), second form": unnormalised_coriolis,
    "(7.10)": unnormalised_recursion,
    "(A.9)": slope_of_phi,
    "(A.9), sign": sign_of_the_slope_of_phi,
    "(A.13)": slope_of_the_mass_matrix,
    "(A.14b)": slopes_of_the_energy,
    "(A.17)": slope_of_the_articulated_inertia,
    "(A.30)": rate_of_the_factor_in_the_appendix,
    "appendix B": velocity_through_a_hop,
}


@pytest.mark.parametrize("place", MISPRINTS)
def test_printed_formula_is_off_and_the_corrected_one_holds(place):
    expected, right, printed = MISPRINTS[place]()
    scale = np.abs(expected).max()
    assert scale > 1e-2
    assert np.abs(right - expected).max() < 1e-12 * max(1.0, scale)
    assert np.abs(printed - expected).max() > 0.05 * scale
