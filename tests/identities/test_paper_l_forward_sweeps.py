"""Paper L: forward dynamics against complex steps, extended precision and its misprints."""

from functools import cache

import numpy as np
import pytest

import hinge
from hinge import algorithms, zoo
from hinge.algebra.rotation import from_rpy
from identities.paper_l_cases import (
    EPS,
    TREES,
    loads,
    mutated,
    random_state,
    reference_forward,
    worst,
)

AXES = ("body", "ground")
METHODS = ("articulated", "conventional")


@cache
def known(name):
    """A robot, a state of it with forces, and its derivatives by complex steps."""
    robot = TREES[name]
    s = random_state(robot, 1)
    *expected, tau = reference_forward(robot, s)
    condition = np.linalg.cond(expected[2]) if robot.nv else 1.0
    return robot, s, tau, expected, condition


@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", TREES)
def test_derivatives_are_those_of_complex_steps(name, method, axes):
    robot, s, tau, expected, condition = known(name)
    given = {"f_ext": s.f_ext, "method": method, "axes": axes}
    bound = EPS * min(max(100, condition), 4000)
    got = robot.alg.forward_dynamics_derivatives(s.q, s.qd, tau, **given)
    assert worst(got, expected) < bound
    assert np.array_equal(got.dtau, got.dtau.T)
    d = np.random.default_rng(2).normal(size=(3, robot.nv))
    change = robot.alg.forward_dynamics_jvp(s.q, s.qd, tau, *d, **given)
    product = expected[0] @ d[0] + expected[1] @ d[1] + expected[2] @ d[2]
    assert worst([change], [product]) < bound


@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("load", ["world", "dead"])
@pytest.mark.parametrize("name", ["everything", "gripper", "tree1"])
def test_each_kind_of_load_has_its_own_derivative(name, load, method, axes):
    robot, s, points, tau, expected = loaded(name, load)
    given = (s.f_ext, points, load, method, axes)
    got = robot.alg.forward_dynamics_derivatives(s.q, s.qd, tau, *given)
    assert worst(got, expected) < 300 * EPS
    d = np.random.default_rng(2).normal(size=(3, robot.nv))
    change = robot.alg.forward_dynamics_jvp(s.q, s.qd, tau, *d, *given)
    product = expected[0] @ d[0] + expected[1] @ d[1] + expected[2] @ d[2]
    assert worst([change], [product]) < 300 * EPS


@cache
def loaded(name, load):
    """As `known`, with loads of that kind at random points."""
    robot = TREES[name]
    s = random_state(robot, 4)
    points = np.random.default_rng(5).normal(size=(len(robot.body_names), 3))
    *expected, tau = reference_forward(robot, s, loads(robot, s.q, s.f_ext, points, load))
    return robot, s, points, tau, expected


@pytest.mark.parametrize("name", ["everything", "humanoid"])
def test_forward_undoes_inverse(name):
    """∂q̈/∂q = −M⁻¹ ∂τ/∂q, and so on, at the same motion."""
    robot = TREES[name]
    s = random_state(robot, 8)
    tau = robot.alg.inverse_dynamics(s.q, s.qd, s.qdd, s.f_ext)
    there = robot.alg.inverse_dynamics_derivatives(s.q, s.qd, s.qdd, s.f_ext)
    back = robot.alg.forward_dynamics_derivatives(s.q, s.qd, tau, s.f_ext)
    products = (there.dqdd @ back.dq, there.dqdd @ back.dqd, there.dqdd @ back.dtau)
    assert worst(products, (-there.dq, -there.dqd, np.eye(robot.nv))) < 1000 * EPS


def test_nothing_is_lost_far_away():
    robot = zoo.humanoid()
    s = random_state(robot, 4)
    tau = robot.alg.inverse_dynamics(s.q, s.qd, s.qdd, s.f_ext)
    far = s.q.copy()
    far[:3] += (1e4, -1e4, 1e4)
    near, away = (robot.alg.forward_dynamics_derivatives(q, s.qd, tau, s.f_ext) for q in (s.q, far))
    assert worst(away, near) < 20 * EPS


def long_chain(n):
    """Links of half a metre on hinges, a spine."""
    rng = np.random.default_rng(0)
    b = hinge.MechanismBuilder("chain")
    parent, body = "world", hinge.Inertia(1.0, (0.25, 0.02, -0.03), np.diag([0.01, 0.03, 0.035]))
    for i in range(n):
        place = hinge.Transform(from_rpy(*rng.uniform(-1, 1, size=3)), (0.5 * (i > 0), 0.0, 0.0))
        b.add(f"link{i}", parent, hinge.Revolute((0, 0, 1)), None, place, body)
        parent = f"link{i}"
    return b.build()


@pytest.mark.skipif(np.finfo(np.longdouble).eps > 1e-18, reason="no extended precision here")
def test_long_chains_keep_their_digits():
    """Algorithms 5 and 6 lose a thousand times less than 3 and 4, against extended precision."""
    mech, rng = long_chain(50), np.random.default_rng(1)
    q, qd, qdd = rng.normal(size=(3, 50))
    tau = algorithms.inverse_dynamics(mech, q, qd, qdd)
    exact = tuple(np.longdouble(x) for x in (q, qd, tau))
    expected = algorithms.forward_dynamics_derivatives(mech, *exact)
    assert expected.dq.dtype == np.longdouble
    six = algorithms.forward_dynamics_derivatives(mech, q, qd, tau)
    assert worst(six, expected) < 200 * EPS
    B, A, M = algorithms.inverse_dynamics_derivatives(mech, q, qd, qdd)
    four = [np.linalg.solve(M, x) for x in (-B, -A, np.eye(50))]
    assert worst(four, expected) > 100 * worst(six, expected)
    mech = long_chain(200)
    q, qd, tau, *d = rng.normal(size=(6, 200))
    exact = [np.longdouble(x) for x in (q, qd, tau, *d)]
    change = algorithms.forward_dynamics_jvp(mech, *exact)
    five, three = (
        algorithms.forward_dynamics_jvp(mech, q, qd, tau, *d, method=m)
        for m in ("articulated", "conventional")
    )
    assert worst([five], [change]) < 3e4 * EPS
    assert worst([three], [change]) > 10 * worst([five], [change])


# what paper L prints, and what it must be: erratum → changed lines
FORWARD, ARTICULATED, NOMINAL = (
    "linearized.forward_derivatives",
    "linearized.articulated",
    "linearized.nominal",
)
GYRO = "gyroscopic(mech.M[k], n.V[k] + n.V[k])"
MISPRINTS = {
    "1: the force term transposed": {
        NOMINAL: {
            "-np.concatenate([n @ H[:3] + g @ H[3:], g @ H[:3]])": (
                "np.concatenate([n @ H[:3], n @ H[3:] + g @ H[:3]])"
            )
        },
        ARTICULATED: {},
    },
    "2: M̂ without its factor 2": {ARTICULATED: {GYRO: "gyroscopic(mech.M[k], n.V[k])"}},
    "3: the sign of the upper left of M̂": {
        "linearized.gyroscopic": {"A = skew(w) @ lifted": "A = -skew(w) @ lifted"},
        ARTICULATED: {},
    },
    "4: Ĝ without its transpose": {
        ARTICULATED: {
            "G_hat[k], G_z[k] = PH_hat @": "G_hat[k], G_z[k] = (P_hat[k] @ H[k][:3])[:3] @"
        }
    },
    "5: G for Ĝ": {
        FORWARD: {
            "a.G_hat[k].T @ theta_plus": "2 * a.G[k][:3].T @ theta_plus",
            "a.G_hat[k] - J_plus.T @ G[k]": "2 * a.G[k][:3] - J_plus.T @ G[k]",
        }
    },
    "12: Ḧ for H″": {
        NOMINAL: {"_carried_twice(V_plus, alpha_plus,": "_carried_twice(V[k], alpha[k],"},
        ARTICULATED: {},
    },
    "12: 2Ḣ for Ḣ + H′": {
        NOMINAL: {"joint[k].spin.T + slope": "2 * joint[k].spin.T"},
        ARTICULATED: {},
    },
    "12: the force term on the joint itself": {
        NOMINAL: {"E[k] = joint[k].bracket @ f[k]": "E[k] = 0 * joint[k].bracket @ f[k]"},
        ARTICULATED: {},
    },
}
# of Algorithm 6 alone
MATRIX_MISPRINTS = {
    "8: K̂ − 2 K Ĵ": {FORWARD: {"a.G_hat[k] - J_plus.T @ G[k]": "a.G_hat[k] - 2 * J_plus.T @ G[k]"}},
    "12: no blocks across branches": {FORWARD: {"in meeting.pairs()": "in ()"}},
}


@pytest.mark.parametrize("misprint", [*MISPRINTS, *MATRIX_MISPRINTS])
def test_a_misprint_put_back_is_noticed(misprint):
    """Algorithms 5 and 6, run from their own source with the misprint in it."""
    robot, s, tau, expected, _ = known("everything")
    wrong = mutated(FORWARD, {**MISPRINTS, **MATRIX_MISPRINTS}[misprint])
    at = (robot.mechanism, s.q, s.qd, tau)
    assert worst(wrong.forward_dynamics_derivatives(*at, s.f_ext), expected) > 1e-3
    if misprint in MISPRINTS:
        d = np.random.default_rng(2).normal(size=(3, robot.nv))
        product = expected[0] @ d[0] + expected[1] @ d[1] + expected[2] @ d[2]
        assert worst([wrong.forward_dynamics_jvp(*at, *d, s.f_ext)], [product]) > 1e-3


def test_the_source_without_misprints_is_right():
    robot, s, tau, expected, _ = known("everything")
    same = mutated(FORWARD, {"linearized.gyroscopic": {}, NOMINAL: {}, ARTICULATED: {}})
    got = same.forward_dynamics_derivatives(robot.mechanism, s.q, s.qd, tau, s.f_ext)
    assert worst(got, expected) < 100 * EPS
