"""iLQR and MPPI: optimal where that is known, within limits, better than what they began with."""

import numpy as np
import pytest

import hinge
from hinge import ArgumentError, SingularError, control, zoo
from mechanisms import assert_close

ARM = zoo.arm(2)
GOAL = np.array([0.8, -0.5])
STILL = np.zeros(2)


def running(q, qd, tau):
    return np.concatenate([0.3 * (q - GOAL), 0.1 * qd, 0.05 * tau])


def terminal(q, qd):
    return np.concatenate([10 * (q - GOAL), qd])


def cart():
    """A mass on a rail, without gravity."""
    builder = hinge.MechanismBuilder("cart")
    builder.add("body", joint=hinge.Prismatic((1, 0, 0)), inertia=hinge.Inertia(2.0))
    return hinge.Robot(hinge.edit.with_gravity(builder.build(), (0.0, 0.0, 0.0)))


@pytest.fixture(scope="module")
def planner():
    return control.ILQR(ARM, running, terminal, dt=0.02)


def test_a_plan_is_a_minimum(planner):
    """No change of any force makes it cheaper: the slope of the cost by central differences."""
    plan = planner(STILL, STILL, np.zeros((50, 2)), tolerance=1e-12)
    assert plan.status == "converged" and plan.cost < 1e-2 * plan.costs[0]
    cost = lambda tau: planner(STILL, STILL, tau, iterations=1).costs[0]  # noqa: E731
    assert_close(cost(plan.tau), plan.cost, 1e-12)
    for i, j in ((0, 0), (20, 1), (49, 0)):
        bump = np.zeros((50, 2))
        bump[i, j] = 1e-3
        slope = (cost(plan.tau + bump) - cost(plan.tau - bump)) / 2e-3
        curve = (cost(plan.tau + bump) + cost(plan.tau - bump) - 2 * plan.cost) / 1e-6
        assert abs(slope) < 1e-4 * curve * np.abs(plan.tau).max()


def test_the_motion_is_that_of_its_forces(planner):
    plan = planner(STILL, STILL, np.zeros((30, 2)))
    q, qd = STILL, STILL
    for i, tau in enumerate(plan.tau):
        assert_close(plan.feedback(i, q, qd), tau, 1e-9)
        qd = qd + 0.02 * ARM.forward_dynamics(q, qd, tau)
        q = ARM.integrate(q, 0.02 * qd)
    assert_close(np.concatenate([q, qd]), np.concatenate([plan.q[-1], plan.qd[-1]]), 1e-11)


def test_of_a_linear_robot_one_iteration_is_enough():
    """The plan of a cart is the LQR of finite horizon, from dense algebra."""
    robot = cart()
    run = lambda q, qd, tau: np.concatenate([q, 0.1 * qd, 0.3 * tau])  # noqa: E731
    end = lambda q, qd: np.concatenate([3 * q, qd])  # noqa: E731
    plan = control.ILQR(robot, run, end, dt=0.1)([1.0], [0.0], np.zeros((20, 1)))
    A, B = np.array([[1.0, 0.1], [0.0, 1.0]]), np.array([[0.005], [0.05]])
    Q, R, V = 0.1 * np.diag([1.0, 0.01]), 0.1 * 0.09, np.diag([9.0, 1.0])
    for _ in range(20):
        K = B.T @ V @ A / (R + B.T @ V @ B)
        V = Q + A.T @ V @ (A - B @ K)
    x = np.array([1.0, 0.0])
    assert_close(plan.cost, 0.5 * x @ V @ x, 1e-9)
    assert_close(plan.gains[0], -K, 1e-5)


def test_forces_and_inequalities_keep_their_limits():
    strong = ARM.mechanism
    weak = strong
    for name in strong.joint_names:
        weak = _with_effort(weak, name, 4.0)
    robot = hinge.Robot(weak)
    slow = control.ILQR(
        robot, running, terminal, 0.02, inequality=lambda q, qd, tau: qd * qd - 0.25
    )
    plan = slow(STILL, STILL, np.zeros((100, 2)), iterations=300)
    assert np.abs(plan.tau).max() <= 4.0
    assert plan.violation < 1e-5 and np.abs(plan.qd[:-1]).max() < 0.5 + 1e-4


def _with_effort(mech, joint, effort):
    from dataclasses import replace

    bodies = tuple(
        replace(b, joint=replace(b.joint, effort_limit=effort)) if b.joint_name == joint else b
        for b in mech.bodies
    )
    return replace(mech, bodies=bodies)


def test_a_free_robot_moves_to_its_goal():
    robot = zoo.space_arm(2)
    goal = robot.integrate(robot.neutral(), 0.3 * np.ones(robot.nv))

    def end(q, qd):
        return np.concatenate([10 * robot.alg.difference(goal, q), 3 * qd])

    planner = control.ILQR(robot, lambda q, qd, tau: 0.05 * tau, end, 0.05)
    plan = planner(robot.neutral(), np.zeros(robot.nv), np.zeros((30, robot.nv)), iterations=20)
    assert (np.diff(plan.costs) <= 0).all() and plan.cost < 0.1 * plan.costs[0]


def test_a_step_of_ones_own_is_differentiated(planner):
    def step(q, qd, tau, dt):
        qd = qd + dt * ARM.alg.forward_dynamics(q, qd, tau)
        return ARM.alg.integrate(q, dt * qd), qd

    guess = np.zeros((30, 2))
    other = control.ILQR(ARM, running, terminal, 0.02, step=step)(STILL, STILL, guess, 4)
    plan = planner(STILL, STILL, guess, 4)
    assert_close(other.costs, plan.costs, 1e-10)
    assert_close(other.tau, plan.tau, 1e-8)


def test_driven_joints_alone_have_forces():
    robot, up = zoo.acrobot(), np.array([np.pi, 0.0])
    planner = control.ILQR(
        robot,
        lambda q, qd, tau: 0.1 * tau,
        lambda q, qd: np.concatenate([100 * (q - up), 30 * qd]),
        0.02,
        active=robot.joint_names[1:],
    )
    plan = planner(up - (0.3, -0.2), np.zeros(2), np.zeros((60, 2)))
    assert not plan.tau[:, 0].any() and not plan.gains[:, 0].any()
    assert np.abs(plan.q[-1] - up).max() < 0.1


def test_mppi_brings_a_pendulum_up():
    robot = zoo.pendulum(1)

    def cost(q, qd, *tau):
        return np.array([1 + np.cos(q[0]), 0.1 * qd[0], *(0.01 * t[0] for t in tau)])

    weight = float(robot.total_mass) * 9.81
    controller = control.MPPI(
        robot, cost, cost, steps=40, dt=0.02, samples=256, noise=weight, temperature=0.1
    )
    q, qd = np.zeros(1), np.zeros(1)
    for _ in range(150):
        tau = controller(q, qd)
        qd = qd + 0.02 * robot.forward_dynamics(q, qd, tau)
        q = robot.integrate(q, 0.02 * qd)
    assert 1 + np.cos(q[0]) < 1e-3
    assert controller.tau.shape == (40, 1)


def test_the_same_seed_gives_the_same_forces():
    make = lambda seed: control.MPPI(  # noqa: E731
        ARM, running, terminal, steps=10, dt=0.02, samples=33, seed=seed
    )
    one, same, other = (make(seed)(STILL, STILL) for seed in (1, 1, 2))
    assert_close(one, same, 0)
    assert np.abs(one - other).max() > 0
    found = make(1).update(STILL, STILL)
    assert found.costs.shape == (34,) and 1 <= found.effective <= 34


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: control.ILQR(ARM, 3.0, terminal, 0.02), "running is 3.0"),
        (lambda: control.ILQR(ARM, running, lambda q, qd: np.ones((2, 2)), 0.02), "terminal gives"),
        (lambda: control.ILQR(ARM, running, terminal, -1.0), "dt is -1.0"),
        (lambda: control.MPPI(ARM, running, terminal, 0, 0.02), "steps is 0"),
        (lambda: control.MPPI(ARM, running, terminal, 9, 0.02, correlation=1.0), "correlation is"),
    ],
)
def test_wrong_arguments_are_named(call, words):
    with pytest.raises(ArgumentError, match=words):
        call()


def test_a_guess_without_sense_is_refused(planner):
    with pytest.raises(ArgumentError, match="expected"):
        planner(STILL, STILL, np.zeros(2))
    task = lambda q, qd, *tau: np.concatenate([q, qd])  # noqa: E731
    with pytest.raises(SingularError, match="guess"):
        control.ILQR(cart(), task, task, 0.02)([0.0], [0.0], np.full((5, 1), 1e200))
    with pytest.raises(SingularError, match="no rollout"):
        control.MPPI(cart(), task, task, 5, 0.02, samples=8, noise=1e200)([0.0], [0.0])
