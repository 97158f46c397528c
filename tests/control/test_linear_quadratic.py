"""LQR: gains against SciPy's, balance of robots, what cannot be balanced."""

import numpy as np
import pytest
from scipy.linalg import solve_continuous_are, solve_discrete_are

from hinge import ArgumentError, SingularError, control, simulate, zoo
from mechanisms import EPS, assert_close


@pytest.mark.parametrize(("n", "m"), [(2, 1), (6, 2), (14, 7)])
@pytest.mark.parametrize("discrete", [True, False])
def test_riccati_is_scipys(n, m, discrete):
    rng = np.random.default_rng(n)
    A, B = rng.normal(size=(n, n)), rng.normal(size=(n, m))
    Q = np.diag(rng.uniform(0, 1, size=n))
    R = np.eye(m) + 0.1 * np.ones((m, m))
    found = control.riccati(A, B, Q, R, discrete)
    peer = (solve_discrete_are if discrete else solve_continuous_are)(A, B, Q, R)
    assert_close(found.P, peer, 1e5 * EPS)


def test_weights_are_matrices_diagonals_or_numbers():
    A, B = np.array([[1.0, 0.1], [0.0, 1.0]]), np.array([[0.0], [0.1]])
    one = control.riccati(A, B, 2.0, 3.0)
    for Q, R in (([2.0, 2.0], [3.0]), (2 * np.eye(2), [[3.0]])):
        assert_close(control.riccati(A, B, Q, R).K, one.K, EPS)


@pytest.mark.parametrize("dt", [None, 0.01])
def test_an_acrobot_stands_on_its_head(dt):
    robot, up = zoo.acrobot(), np.array([np.pi, 0.0])
    law = control.lqr(robot, up, np.ones(4), 0.1, dt=dt, active=robot.joint_names[1:])
    assert not law.gains[0].any()
    run = simulate(robot, up + (0.02, -0.01), None, law, duration=10.0, dt=2e-3, compiled=True)
    assert np.abs(run.q[-1] - up).max() < 1e-3


def test_what_is_still_to_come_costs_what_it_says():
    """xᵀP x is the integral of the cost along the motion, near the goal."""
    robot = zoo.arm(2)
    goal = np.array([0.4, -0.3])
    law = control.lqr(robot, goal, [10.0, 10.0, 1.0, 1.0], 0.01)
    x = 1e-5 * np.array([1.0, -2.0, 0.5, 0.0])
    run = simulate(robot, goal + x[:2], x[2:], law, duration=20.0, dt=1e-3, compiled=True)
    X = np.concatenate([run.q - goal, run.qd], axis=-1)
    rate = (X**2 @ [10.0, 10.0, 1.0, 1.0]) + 0.01 * ((run.tau - law.tau) ** 2).sum(axis=-1)
    np.testing.assert_allclose(np.trapezoid(rate, run.t), x @ law.cost @ x, rtol=1e-4)


# the gains are looked up by time, in Python
@pytest.mark.filterwarnings("ignore::hinge.TraceWarning")
def test_a_motion_is_come_back_to():
    """Along a motion of any length the gains at its start are those of the point, if it stays."""
    robot, goal, dt = zoo.arm(2), np.array([0.4, -0.3]), 0.01
    hold = robot.gravity_forces(goal)
    still = np.tile(goal, (400, 1)), np.zeros((400, 2)), np.tile(hold, (399, 1))
    law = control.tracking(robot, *still, dt, [100.0, 100.0, 1.0, 1.0], 1e-3)
    point = control.lqr(robot, goal, [100.0, 100.0, 1.0, 1.0], 1e-3, dt=dt)
    assert_close(law.gains[0], point.gains, 1e-6)
    way = control.quintic(robot, [0.0, 0.0], goal, duration=1.0)
    q, qd, qdd = map(np.array, zip(*map(way, dt * np.arange(101)), strict=True))
    law = control.tracking(
        robot, q, qd, robot.inverse_dynamics(q, qd, qdd)[:-1], dt, [1e3, 1e3, 1, 1], 1e-3
    )
    run = simulate(robot, q[0] + 0.1, None, law, duration=1.0, dt=dt, limits=False)
    assert np.abs(run.q[-1] - goal).max() < 5e-3


def test_a_mode_out_of_reach_is_said():
    with pytest.raises(SingularError, match="out of reach"):
        control.riccati(np.diag([2.0, 0.5]), [[0.0], [1.0]], 1.0, 1.0)
    with pytest.raises(SingularError, match="out of reach"):
        control.riccati(np.diag([2.0, -0.5]), [[0.0], [1.0]], 1.0, 1.0, discrete=False)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: control.riccati(np.eye(2), np.eye(3), 1.0, 1.0), "A has shape"),
        (lambda: control.riccati(np.eye(2), np.eye(2), -1.0, 1.0), "Q is -1.0"),
        (lambda: control.riccati(np.eye(2), np.eye(2), 1.0, 0.0), "R is 0.0"),
        (
            lambda: control.tracking(zoo.arm(2), [[0, 0]], [[0, 0]], [[0, 0]], 0.1, 1.0, 1.0),
            "expected \\(T \\+ 1",
        ),
        (
            lambda: control.lqr(zoo.acrobot(), [1.0, 0.0], 1.0, 1.0, active=[False, True]),
            "does not stay at rest",
        ),
    ],
)
def test_wrong_arguments_are_named(call, words):
    with pytest.raises(ArgumentError, match=words):
        call()
