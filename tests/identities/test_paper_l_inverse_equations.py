"""Paper L equation by equation: linearised inverse dynamics (math "linearized" §0 to §3, §6, A).

Of the appendix (A.6) to (A.9).  Dense, about one inertial point, for every kind of joint: H
constant in the child, S(q), and twists constant in the parent, which hinge has not.  Rates are
complex steps.  As operators and sweeps in body axes: `operators/test_results_of_papers.py`,
`test_paper_l_inverse_sweeps.py`.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import block_diag

import hinge
from dense import biggest, crm, of_bodies
from hinge.algebra.rotation import skew
from identities.paper_l_frame import CASES, OneFrame, Q, S, change, moving, near
from mechanisms import EPS, assert_close, random_state

every_case = pytest.mark.parametrize("name", CASES)
RIGHT = [name for name, (_, left) in CASES.items() if not left]
# some joint has several DoF that do not commute
SEVERAL = ["snake", "humanoid", "tree0", "mixed", "everything", "left twists"]
SINGLE = ["pendulum", "arm", "cartpole"]
# some axis moves in its body
BENT = ["humanoid", "tree0", "tree1", "everything", "left twists"]


def directions(o):
    """δq, δν, δν̇."""
    return np.random.default_rng(7).normal(size=(3, o.N))


def body_fixed(o):
    """External forces that keep their components in body axes."""
    forces = [A.T @ f for A, f in zip(o.Ad[1:], o.fext.reshape(-1, 6), strict=True)]
    return lambda there, nu: np.concatenate(
        [np.linalg.inv(A).T @ f for A, f in zip(there.Ad[1:], forces, strict=True)]
    )


def nominal(o, names, force=None):
    """(frame, ν, ν̇) ↦ V, α, x, τ by name, under external forces that are body-fixed by default."""
    force = body_fixed(o) if force is None else force

    def at(there, nu, nud):
        n = there.nominal(nu, nud, force(there, nu))
        return np.concatenate([getattr(n, name) for name in names])

    return at


def A_D(o, H_sum):
    return o.H.T @ o.Phi @ (2 * o.M_hat_ @ o.Phi.T @ o.H + o.M @ o.Phi.T @ H_sum)


def B_D(o, H1, H2, Phi_F):
    inner = 2 * o.M_hat_ @ o.Phi.T @ H1 + o.M @ o.Phi.T @ H2
    return o.H.T @ (Phi_F + o.Phi @ inner) + o.E


# 0, 1: the nominal motion


def test_0_cross_operators():
    V, Y, f = np.random.default_rng(0).normal(size=(3, 6))
    w, u = V[:3], V[3:]
    moved = [*np.cross(w, Y[:3]), *(np.cross(u, Y[:3]) + np.cross(w, Y[3:]))]
    assert_close(crm(V) @ Y, np.array(moved), 8 * EPS)
    assert_close(crm(V), -S(V).T, 0)
    assert_close(Q(f) @ V, -S(V) @ f, 8 * EPS)
    assert_close(Q(f), -Q(f).T, 0)


@pytest.mark.parametrize("name", RIGHT)
def test_1_inverse_dynamics_about_one_point(name):
    o = moving(name)
    s = random_state(o.robot, 1)
    near(o, o.nominal_.tau, o.robot.alg.inverse_dynamics(s.q, s.qd, s.qdd, s.f_ext))
    near(o, o.mass, o.robot.operators(s.q).mass.dense())


@every_case
def test_1_gyroscopic_matrix(name):
    """Ṁ = S[V]M + MS[V]ᵀ, M̂V = ṀV = S[V]MV, and the closed form, whose right half is zero."""
    o = moving(name)
    V, turn, M_hat = o.nominal_.V, of_bodies(S, o.nominal_.V), o.M_hat_
    M_rate = change(o, lambda there, *_: there.M, dq=o.nu)
    scale = biggest(turn) * biggest(o.M)
    near(o, turn @ o.M + o.M @ turn.T, M_rate, scale)
    near(o, M_rate @ V, turn @ o.M @ V, scale)
    near(o, M_hat @ V, turn @ o.M @ V, scale)
    for k, v in enumerate(V.reshape(-1, 6)):
        at = slice(6 * k, 6 * k + 6)
        M, w, u = o.M[at, at], v[:3], v[3:]
        J, mp, m = M[:3, :3], M[:3, 3:], M[5, 5]
        p = np.array([mp[2, 1], mp[0, 2], mp[1, 0]]) / m
        upper = skew(w) @ (J - 0.5 * np.trace(J) * np.eye(3)) - mp @ skew(u)
        closed = np.vstack([upper, -m * skew(u + np.cross(w, p))])
        near(o, M_hat[at, at], np.hstack([closed, np.zeros((6, 3))]), scale)


# 2: the three maps


@every_case
def test_2_rate_of_the_hinge_map(name):
    o = moving(name)
    near(o, o.H_rate, change(o, lambda there, *_: there.H, dq=o.nu))


@every_case
def test_2_derivation_in_five_lines(name):
    """δ°V, δα, δx and δτ from δΞ, H′, H″, F, E: what the table of joint maps is for."""
    o, n = moving(name), moving(name).nominal_
    dq, dnu, dnud = d = directions(o)
    Xi = of_bodies(crm, o.Phi.T @ o.H @ dq)
    V_local = o.Phi.T @ (o.H1 @ dq + o.H @ dnu)
    gamma = o.Phi.T @ (o.H @ dnud + (o.H_rate + o.H1) @ dnu + o.H2 @ dq)
    dV, d_alpha, dx, d_tau = np.split(
        change(o, nominal(o, ("V", "alpha", "x", "tau")), *d), 6 * o.n * np.arange(1, 4)
    )
    near(o, dV - Xi @ n.V, V_local, biggest(dV))
    near(o, Xi @ n.alpha + of_bodies(crm, V_local) @ n.V + gamma, d_alpha, biggest(gamma))
    source = o.M @ gamma + 2 * o.M_hat_ @ V_local
    near(o, -Xi.T @ n.x + source, dx, biggest(source))
    inward = o.Phi @ source + (o.Phi - o.I) @ o.F @ dq
    near(o, o.H.T @ inward + o.E @ dq + o.J @ dnud, d_tau, biggest(inward))


@pytest.mark.parametrize("name", RIGHT)
def test_2_rates_of_coordinates_have_the_papers_maps(name):
    """H′ = Ḣ and H″ = Ḧ (with gravity in α) for joints of one DoF and for S(q) with ν = q̇."""
    o = moving(name)
    second = change(o, lambda there, nu, _: there.H_dot(nu), dq=o.nu, dnu=o.nud)
    second = second + np.kron(np.eye(o.n), crm(-o.mech.free_fall)) @ o.H
    for body in o.mech.bodies[1:]:
        at = o.mech.v_slice(body.joint_name)
        if body.joint.nv == 1 or isinstance(body.joint, hinge.Universal):
            near(o, o.H1[:, at], o.H_rate[:, at])
            near(o, o.H2[:, at], second[:, at], biggest(o.nominal_.alpha))
        elif not body.joint.commuting:
            assert biggest(o.H1[:, at] - o.H_rate[:, at]) > 1e-3
            assert biggest(o.H2[:, at] - second[:, at]) > 1e-3


@pytest.mark.parametrize("name", ["quadruped", "humanoid", "space_arm", "everything"])
def test_2_maps_of_a_floating_base(name):
    o = moving(name)
    near(o, o.H1[:6, :6], np.zeros((6, 6)))
    near(o, o.H2[:6, :6], crm(-o.mech.free_fall) @ o.H[:6, :6])


@pytest.mark.parametrize("name", ["mixed", "mixed with rotors"])
def test_2_constant_maps_of_the_child_differ_by_a_bracket(name):
    """H′ = Ḣ − [Hν]×H; Ḣ and Ḧ in its place spoil A_D and B_D."""
    o = moving(name)
    near(o, o.H_rate - of_bodies(crm, o.H @ o.nu) @ o.H, o.H1)
    second = change(o, lambda there, nu, _: there.H_dot(nu), dq=o.nu, dnu=o.nud)
    second = second + np.kron(np.eye(o.n), crm(-o.mech.free_fall)) @ o.H
    dq, dnu, _ = directions(o)
    strict = (o.Phi - o.I) @ o.F
    with_velocity, with_position = (
        change(o, nominal(o, ["tau"]), dnu=dnu),
        change(o, nominal(o, ["tau"]), dq=dq),
    )
    assert biggest(A_D(o, 2 * o.H_rate) @ dnu - with_velocity) > 1e-3 * biggest(with_velocity)
    printed = B_D(o, o.H_rate, second, strict) @ dq
    assert biggest(printed - with_position) > 1e-3 * biggest(with_position)


# 3: linear models


@every_case
def test_lemma_3_1(name):
    o = moving(name)
    dq, dnu, dnud = d = directions(o)
    B = B_D(o, o.H1, o.H2, (o.Phi - o.I) @ o.F)
    got = o.mass @ dnud + A_D(o, o.H_rate + o.H1) @ dnu + B @ dq
    expected = change(o, nominal(o, ["tau"]), *d)
    near(o, got, expected, biggest(o.F @ dq))
    # the force term acts on strict ancestors; the joint itself feels it only if it has several DoF
    printed = B_D(o, o.H1, o.H2, o.Phi @ o.F)
    if name in SINGLE:
        near(o, printed, B, biggest(o.F))
    elif name in SEVERAL:
        assert biggest(printed - B) > 1e-3


@every_case
def test_lemma_3_2_composites(name):
    """HᵀΦXΦᵀ = Hᵀ(ΦR + RΦ~ᵀ), R_k = X_k + ΣR_c, for X = M, M̂."""
    o = moving(name)
    for X in (o.M, o.M_hat_):
        R = composite(o, X)
        near(o, o.Phi @ R + R @ (o.Phi - o.I).T, o.Phi @ X @ o.Phi.T)


def composite(o, X):
    R = X.copy()
    for p, k in o.mech.inward():
        if p:
            up, at = slice(6 * p - 6, 6 * p), slice(6 * k - 6, 6 * k)
            R[up, up] += R[at, at]
    return R


# 6: gravity, loads, rotors


@pytest.mark.parametrize("name", ["arm", "humanoid", "mixed with rotors", "left twists"])
def test_6_3_velocity_terms_do_not_know_gravity(name):
    o = moving(name)
    robot = hinge.Robot(replace(o.mech, gravity=(0.0, 0.0, 0.0)))
    still = OneFrame(robot, o.q, o.left)
    n = still.nominal(o.nu, o.nud, o.fext)
    still.M_hat_ = still.M_hat(n.V)
    still.H_rate, still.H1, H2, _, still.E = still.maps(o.nu, o.nud, n)
    near(o, A_D(still, still.H_rate + still.H1), A_D(o, o.H_rate + o.H1))
    # left out of H″ alone, it is missed
    right, without = (B_D(o, o.H1, H, o.Phi @ o.F) for H in (o.H2, H2))
    assert biggest(right - without) > 1e-2


def loads(o, kind):
    """The external force at another place, and Z with δfext = Z δΞ."""
    f = o.fext.reshape(-1, 6)
    points = np.random.default_rng(5).normal(size=(o.n, 3))
    if kind == "body":
        return body_fixed(o), -of_bodies(Q, o.fext)
    if kind == "world":
        return lambda there, nu: o.fext, 0 * of_bodies(Q, o.fext)
    # the force acts at a point of the body, a couple completes what is given
    places = [X[:3, :3] @ r + X[:3, 3] for X, r in zip(o.poses, points, strict=True)]
    couples = [g[:3] - np.cross(x, g[3:]) for g, x in zip(f, places, strict=True)]

    def dead(there, nu):
        xs = [X[:3, :3] @ r + X[:3, 3] for X, r in zip(there.poses, points, strict=True)]
        parts = zip(couples, xs, f[:, 3:], strict=True)
        return np.concatenate([np.concatenate([N + np.cross(x, F), F]) for N, x, F in parts])

    stacked = np.concatenate([np.concatenate([g[3:], x]) for g, x in zip(f, places, strict=True)])
    return dead, of_bodies(_dead, stacked)


def _dead(given):
    F, x = skew(given[:3]), skew(given[3:])
    return np.block([[F @ x, -F], [np.zeros((3, 6))]])


@pytest.mark.parametrize("kind", ["body", "world", "dead"])
@pytest.mark.parametrize("name", ["arm", "humanoid", "tree0", "everything", "left twists"])
def test_6_4_loads(name, kind):
    """B_D gains HᵀΦZ̄ΦᵀH with Z̄ = −(Z + Q[fext])."""
    o = moving(name)
    force, Z = loads(o, kind)
    near(o, force(o, o.nu), o.fext)
    dq = directions(o)[0]
    displacement = o.Phi.T @ o.H @ dq
    changed = change(o, lambda there, nu, _: force(there, nu), dq=dq)
    near(o, Z @ displacement, changed, biggest(o.fext))
    Z_bar = -(Z + of_bodies(Q, o.fext))
    B = B_D(o, o.H1, o.H2, (o.Phi - o.I) @ o.F) + o.H.T @ o.Phi @ Z_bar @ o.Phi.T @ o.H
    expected = change(o, nominal(o, ["tau"], force), dq=dq)
    near(o, B @ dq, expected, biggest(o.F @ dq))
    if kind == "body":
        near(o, Z_bar, 0 * Z_bar)
    elif kind == "world":
        sums = (o.Phi @ o.fext).reshape(-1)
        near(o, composite(o, Z_bar), -of_bodies(Q, sums))


@pytest.mark.parametrize("name", ["arm", "humanoid", "tree0", "left twists"])
def test_6_4_loads_that_depend_on_the_velocity(name):
    """A_D loses HᵀΦ ∂fext/∂ν: a drag −c M V on every body."""
    o = moving(name)

    def drag(there, nu):
        return o.fext - 0.3 * there.M @ (there.Phi.T @ (there.H @ nu))

    dnu = directions(o)[1]
    A = A_D(o, o.H_rate + o.H1) + o.H.T @ o.Phi @ (0.3 * o.M @ o.Phi.T @ o.H)
    near(o, A @ dnu, change(o, nominal(o, ["tau"], drag), dnu=dnu))


@pytest.mark.parametrize("name", ["arm", "humanoid", "tree0"])
def test_6_5_rotors_change_the_mass_matrix_alone(name):
    robot = CASES[name][0]
    bodies = [replace(b, joint=replace(b.joint, armature=0.7)) for b in robot.mechanism.bodies]
    heavy = hinge.Robot(replace(robot.mechanism, bodies=tuple(bodies)))
    s = random_state(robot, 1)
    light = robot.alg.inverse_dynamics_derivatives(s.q, s.qd, s.qdd, s.f_ext)
    other = heavy.alg.inverse_dynamics_derivatives(s.q, s.qd, s.qdd, s.f_ext)
    assert_close(other.dq, light.dq, 4 * EPS)
    assert_close(other.dqd, light.dqd, 4 * EPS)
    rotors = np.concatenate(heavy.mechanism.armature) - np.concatenate(robot.mechanism.armature)
    assert_close(other.dqdd, light.dqdd + np.diag(rotors), 4 * EPS)


# A: derivatives of products


CHILD = ["arm", "space_arm", "mixed", "mixed with rotors"]


def seen(o):
    """Φᵀ; without its diagonal for twists constant in the parent, whose own motion H ignores."""
    return (o.Phi - o.I * o.left).T


@every_case
def test_A_6_derivative_of_H_y(name):
    """∂(Hy)/∂q = S[Hy]ᵀΦᵀH, plus X[∂_bS y]_b for S(q); Φ~ᵀ for twists constant in the parent."""
    o = moving(name)
    dq, y, _ = directions(o)
    expected = change(o, lambda there, *_: there.H @ y, dq=dq)
    bent = o.columns(lambda k: o.Ad[k] @ o.slopes(k, y, y)[0])
    near(o, (of_bodies(S, o.H @ y).T @ seen(o) @ o.H + bent) @ dq, expected)
    printed = of_bodies(S, o.H @ y).T @ o.Phi.T @ o.H @ dq
    if name in CHILD:
        near(o, printed, expected)
    elif name in BENT:
        assert biggest(printed - expected) > 1e-3


@every_case
def test_A_7_derivative_of_H_transposed_y(name):
    """∂(Hᵀy)/∂q = HᵀQ[y]ΦᵀH, plus [(X∂_bS_a)ᵀy]_ab for S(q); Φ~ᵀ for twists constant in the
    parent, and for joints of one DoF, where it makes no difference."""
    o = moving(name)
    dq = directions(o)[0]
    y = np.random.default_rng(3).normal(size=6 * o.n)
    expected = change(o, lambda there, *_: there.H.T @ y, dq=dq)
    parts = [None, *y.reshape(-1, 6)]
    slopes = (o.slopes(k, o.nu, o.nud)[2] for k in range(1, o.n + 1))
    own = [np.einsum("bai,i->ab", d, o.Ad[k].T @ parts[k]) for k, d in enumerate(slopes, 1)]
    near(o, (o.H.T @ of_bodies(Q, y) @ seen(o) @ o.H + block_diag(*own)) @ dq, expected)
    printed, strict = (o.H.T @ of_bodies(Q, y) @ F.T @ o.H @ dq for F in (o.Phi, o.Phi - o.I))
    if name in CHILD:
        near(o, printed, expected)
    elif name in BENT:
        assert biggest(printed - expected) > 1e-3
    if name in SINGLE:
        near(o, strict, expected)
    elif name in ("mixed", "mixed with rotors", "humanoid"):
        assert biggest(strict - expected) > 1e-3


@every_case
def test_A_8_derivative_of_M_y(name):
    o = moving(name)
    dq = directions(o)[0]
    y = np.random.default_rng(3).normal(size=6 * o.n)
    inner = of_bodies(Q, o.M @ y) + o.M @ of_bodies(S, y).T
    expected = change(o, lambda there, *_: there.M @ y, dq=dq)
    near(o, -inner @ o.Phi.T @ o.H @ dq, expected, biggest(inner))


@every_case
def test_A_9_derivative_of_the_momenta(name):
    """∂(MV)/∂q = −Q[MV]ΦᵀH + MΦᵀH′."""
    o = moving(name)
    dq, V = directions(o)[0], o.nominal_.V
    got = -of_bodies(Q, o.M @ V) @ o.Phi.T @ o.H @ dq + o.M @ o.Phi.T @ o.H1 @ dq
    expected = change(o, lambda there, nu, _: there.M @ (there.Phi.T @ (there.H @ nu)), dq=dq)
    near(o, got, expected, biggest(o.M @ V))
