"""Paper D equation by equation where it was written: serial hinges, inertial axes, no armature.

math §8, "paper-frame identities".  Those that survive on trees, with any joint and with armature
are laws (`hinge.operators.laws`), body-axes forms are in `test_paper_d_equations.py`, misprints in
`test_paper_d_misprints.py`.  Rates are complex steps; Λ and λ_i are solved from their recursions,
so that nothing is compared with itself.
"""

from functools import cache

import numpy as np
import pytest

from identities.paper_d_frame import Motion
from mechanisms import EPS, assert_close

CHAINS = {"four": (4, 5), "six": (6, 2)}


@cache
def moving(name):
    """A chain in motion, with X = Ω̃_δP, Λ of (6.4), the rate P° seen in body axes, and C."""
    c = Motion(*CHAINS[name])
    o = c.o
    c.X = c.delta @ o.P
    c.Lambda = c.carried_inward(c.delta @ o.P - o.P @ c.delta)
    c.P_local = o.E_psi @ c.Lambda @ o.E_psi.T
    c.C, c.C_xi = -c.rate_along_the_motion(True), -o.D @ c.rate_along_the_motion(False)
    c.lam = []
    for i in range(c.n):
        own = c.spins(i)[0]
        c.lam.append(c.carried_inward(own @ o.P - o.P @ own))
    return c


@pytest.fixture(params=CHAINS)
def c(request):
    return moving(request.param)


def near(got, expected):
    assert_close(got, expected, 20 * EPS * len(got))


def holds(got, expected):
    """They agree, and there is something to agree about."""
    assert np.abs(expected).max() > 1e-2
    near(got, expected)


# 6: rates


def test_6_4_and_6_6_rate_of_P(c):
    o = c.o
    holds(c.Lambda, c.P_local + c.delta @ o.P - o.P @ c.delta)
    holds(c.P_local + c.omega @ o.P - o.P @ c.omega, c.rate("P"))
    holds(c.Lambda + c.parent @ o.P - o.P @ c.parent, c.rate("P"))


def test_table_3_rate_of_H(c):
    holds(-c.o.H @ c.omega, c.rate("H"))


def test_table_3_rate_of_M(c):
    holds(c.omega @ c.o.M - c.o.M @ c.omega, c.rate("M"))


def test_table_3_rate_of_D(c):
    H = c.o.H
    holds(H @ c.P_local @ H.T, c.rate("D"))
    holds(H @ c.Lambda @ H.T, c.rate("D"))


def local_rate_of_G(c):
    return c.o.tau_bar @ c.P_local @ c.o.H.T @ np.linalg.inv(c.o.D)


def test_table_3_rate_of_G(c):
    holds(local_rate_of_G(c) + c.omega @ c.o.G, c.rate("G"))


def test_table_3_rate_of_tau_bar(c):
    tau_bar = c.o.tau_bar
    turned = c.omega @ tau_bar - tau_bar @ c.omega
    holds(turned - local_rate_of_G(c) @ c.o.H, c.rate("tau_bar"))


def test_6_7_rate_of_the_mass_factor(c):
    o = c.o
    inner = c.delta @ (o.phi - o.one) @ o.P + 0.5 * (o.one + o.tau_bar) @ c.Lambda
    holds(o.H @ o.phi @ inner @ o.H.T @ c.root_inv, c.rate("m"))


def test_6_8_rate_of_the_mass_factor_times_nu(c):
    o = c.o
    half = c.X - o.P @ c.delta + o.E_psi @ c.Lambda - c.Lambda @ o.E_psi.T
    inner = c.delta @ o.phi @ o.K @ o.H @ o.P + 0.5 * half
    holds(o.H @ o.phi @ inner @ c.V, c.rate("m") @ c.nu)


def test_6_12_slopes_of_the_mass_matrix(c):
    o = c.o
    for i in range(c.n):
        own = c.spins(i)[0]
        inner = own @ o.phi @ o.M - o.M @ o.phi.T @ own
        got = o.H @ o.phi @ inner @ o.phi.T @ o.H.T
        # the joint at the base does not change the mass matrix
        agree = holds if i < c.n - 1 else near
        agree(got, c.mass_slope(i))


def test_6_13_slopes_of_the_energy(c):
    o = c.o
    expected = np.array([c.theta_d @ c.mass_slope(i) @ c.theta_d for i in range(c.n)])
    momentum = o.M @ c.V
    holds(2 * o.H @ c.tilde_V.T @ o.phi @ momentum, expected)
    holds(2 * o.H @ o.phi @ (c.delta @ o.phi + c.tilde_V.T) @ momentum, expected)
    articulated = c.delta @ (o.one + o.phi @ o.K @ o.H) @ o.P
    holds(2 * o.H @ o.phi @ (articulated + c.tilde_V.T @ o.M) @ c.V, expected)


# 7, 8: equations of motion


def test_7_1_coriolis_force_and_its_skew_bracket(c):
    o = c.o
    skew = o.E_psi @ c.Lambda - c.Lambda @ o.E_psi.T - c.X - o.P @ c.delta
    holds(skew, -skew.T)
    V = o.psi.T @ o.H.T @ c.root_inv @ c.nu
    holds(V, c.V)
    holds(0.5 * c.root_inv @ o.H @ o.psi @ (skew - 2 * c.tilde_V.T @ o.M) @ V, c.C)


def test_7_2_recursion_of_the_coriolis_force(c):
    o, n = c.o, c.n
    V, V_plus = c.V.reshape(n, 6), c.V_plus.reshape(n, 6)
    y, C = np.zeros(6), []
    for k in range(n):
        at, below = slice(6 * k, 6 * k + 6), slice(6 * k - 6, 6 * k)
        X = c.X[at, at]
        own = (2 * c.tilde_V.T @ o.M)[at, at] + X - X.T
        passed = o.E_psi[at, below] @ (y + c.Lambda[below, below] @ V[k - 1]) if k else 0
        y = passed - own @ V[k] - c.Lambda[at, at] @ o.tau_bar[at, at].T @ V_plus[k]
        C.append(0.5 * c.root_inv[k, k] * o.H[k, at] @ y)
    holds(np.array(C), c.C)


def test_7_9_unnormalised_coriolis_force(c):
    o = c.o
    first = c.Lambda @ o.H.T @ c.xi - (c.X + c.tilde_V.T @ o.M) @ c.V
    second = c.P_local @ o.H.T @ c.xi - c.delta @ o.P_plus @ c.V_plus - c.tilde_V.T @ o.M @ c.V
    holds(o.H @ o.psi @ first, c.C_xi)
    holds(o.H @ o.psi @ second, c.C_xi)


def test_7_10_recursion_of_the_unnormalised_coriolis_force(c):
    o = c.o
    source = (c.Lambda @ o.H.T @ c.xi - (c.tilde_V.T @ o.M + c.X) @ c.V).reshape(-1, 6)
    y, C = np.zeros(6), []
    for k in range(c.n):
        at, below = slice(6 * k, 6 * k + 6), slice(6 * k - 6, 6 * k)
        y = source[k] + (o.E_psi[at, below] @ y if k else 0)
        C.append(o.H[k, at] @ y)
    holds(np.array(C), c.C_xi)


def test_8_2_accelerations_of_the_total_rates(c):
    o, T = c.o, c.torque
    zeta = o.K @ T + c.Lambda @ o.H.T @ c.xi - (c.X + c.tilde_V.T @ o.M) @ c.V
    rate = np.linalg.solve(o.D, T - o.H @ o.psi @ zeta)
    holds(rate, c.rate_along_the_motion(False, T))


# A: sensitivities to one joint


def test_A_9_slope_of_phi(c):
    phi = c.o.phi
    for i in range(c.n):
        own, beyond, both = c.spins(i)
        # to turn the last body moves no origin
        check = holds if i else near
        check(phi @ own @ phi - phi @ both + beyond @ phi, c.slope("phi", i))
        check(phi @ c.slope("E_phi", i) @ phi, c.slope("phi", i))


def test_A_12_slope_of_phi_M_phi(c):
    phi, Z = c.o.phi, c.o.momenta
    for i in range(c.n):
        own, beyond, _ = c.spins(i)
        left = (phi @ own + beyond) @ Z
        holds(left - Z @ (own @ phi.T + beyond), c.slope("momenta", i))


def test_A_17_and_A_18_slope_of_P(c):
    o = c.o
    for i, lam in enumerate(c.lam):
        own, beyond, _ = c.spins(i)
        holds(lam - o.E_psi @ lam @ o.E_psi.T, own @ o.P - o.P @ own)
        holds(lam - o.P @ beyond + beyond @ o.P, c.slope("P", i))


def test_A_19_slope_of_D(c):
    for i, lam in enumerate(c.lam[:-1]):
        holds(c.o.H @ lam @ c.o.H.T, c.slope("D", i))


def test_A_21_slope_of_G(c):
    o = c.o
    for i, lam in enumerate(c.lam):
        beyond = c.spins(i)[1]
        turned = o.tau_bar @ lam @ o.H.T @ np.linalg.inv(o.D)
        holds(turned + beyond @ o.G, c.slope("G", i))


def test_A_29_slope_of_the_mass_factor(c):
    o = c.o
    for i, lam in enumerate(c.lam[:-1]):
        own = c.spins(i)[0]
        inner = own @ (o.phi - o.one) @ o.P + 0.5 * (o.one + o.tau_bar) @ lam
        holds(o.H @ o.phi @ inner @ o.H.T @ c.root_inv, c.slope("m", i))


# A.31, B: with the operators of this frame


def test_A_31_the_factor_is_a_chain(c):
    o = c.o
    holds(o.H @ o.phi @ o.G, o.unit + o.H @ o.phi @ o.K)


def test_B_1_to_B_6(c):
    o = c.o
    L = o.unit - o.H @ o.psi @ o.K
    holds(L @ o.H @ o.phi, o.H @ o.psi)
    holds(o.phi @ o.K @ L, o.psi @ o.K)
    column = o.phi.T @ o.H.T
    holds((o.one + o.phi @ o.K @ o.H) @ o.P @ column, o.phi @ o.M @ column)
    holds(o.H @ o.phi @ o.E_psi, o.H @ o.phi @ o.tau_bar)
    holds(np.linalg.inv(o.psi) - np.linalg.inv(o.phi), o.K @ o.H)
    for side in (o.tau_bar @ o.P @ o.H.T, o.P @ o.tau_bar.T @ o.H.T):
        near(side, 0 * side)


def test_B_7_velocities_do_not_commute_with_phi(c):
    o, V = c.o, c.tilde_V.T
    holds(o.H @ o.phi @ c.delta @ o.phi, o.H @ (V @ o.phi - o.phi @ V))


def test_B_10_velocities_across_a_hop(c):
    holds((c.tilde_V - c.delta) @ c.o.E_phi.T, c.o.E_phi.T @ c.tilde_V)
