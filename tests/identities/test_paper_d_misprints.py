"""Paper D: formulas as printed and as they should be (math §13).

Each is evaluated with dense operators in the paper's own terms: a serial chain of hinges, bodies
counted from the tip, every vector in inertial axes.  The correct one agrees with a complex step or
with Cholesky's factor, the printed one is off by the order of the quantity itself.
`A.T` is the paper's A*, and Ṽ* is −(V ×*).
"""

from dataclasses import dataclass

import numpy as np
import pytest

from dense import crm, of_bodies
from identities.paper_d_frame import Motion, Operators
from mechanisms import EPS, assert_close, complex_step

CASE = Motion()
N, ROBOT, O = CASE.n, CASE.robot, CASE.o
Q, QD, QDD, TAU = CASE.q, CASE.qd, CASE.qdd, CASE.torque
THETA_D, MASS, m, l, ROOT_INV = CASE.theta_d, CASE.mass, CASE.m, CASE.l, CASE.root_inv
V, V_PLUS, TILDE_V, NU, XI = CASE.V, CASE.V_plus, CASE.tilde_V, CASE.nu, CASE.xi
OMEGA, DELTA, PARENT = CASE.omega, CASE.delta, CASE.parent
rate, slope, mass_slope, spins = CASE.rate, CASE.slope, CASE.mass_slope, CASE.spins
free_rate = CASE.rate_along_the_motion


def local_rate_of_P():
    """P° and Λ = P° + Ω̃_δ P − P Ω̃_δ (6.4)."""
    P_local = rate("P") - OMEGA @ O.P + O.P @ OMEGA
    return P_local, P_local + DELTA @ O.P - O.P @ DELTA


P_LOCAL, LAMBDA = local_rate_of_P()
X = DELTA @ O.P


def test_the_operators_are_those_of_the_robot():
    assert_close(O.m, m, 20 * EPS)
    assert_close(O.m, ROBOT.alg.mass_factor(Q)[::-1, ::-1], 20 * EPS)
    assert_close(P_LOCAL, O.E_psi @ LAMBDA @ O.E_psi.T, 50 * EPS)
    assert_close(O.D, O.H @ O.P @ O.H.T, 10 * EPS)


# place → (what it should be, as it should read, as printed)


def coriolis_of_lemma_3():
    m_rate = rate("m")
    half = 0.5 * np.array([THETA_D @ mass_slope(i) @ THETA_D for i in range(N)])
    return -free_rate(True), l @ (m_rate @ NU - half), l @ m_rate @ NU - half


def accelerations():
    moving = complex_step(lambda h: velocities(Q + h * QD, QD + h * QDD))
    hop, turn = rate("E_phi"), rate("H")
    a = hop.T @ V + turn.T @ THETA_D
    right = O.phi.T @ (O.H.T @ QDD[::-1] + a)
    return moving, right, O.phi.T @ (O.H.T @ QDD[::-1] - a)


def velocities(q, qd):
    o = Operators(ROBOT, q)
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
    A, B = crm(a), crm(b)
    return A @ B @ c, crm(A @ b) @ c + B @ A @ c, -B @ A @ c


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
    carried = of_bodies(crm, V_PLUS) @ O.E_phi.T
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
    assert_close(right, expected, 100 * EPS)
    assert np.abs(printed - expected).max() > 0.05 * scale
