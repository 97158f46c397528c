"""Laws for joints and frames: what they promise holds along simulated motions."""

import numpy as np
import pytest

import hinge
from hinge import ArgumentError, control, simulate, zoo
from hinge.control.law import within
from mechanisms import EPS, assert_close, random_state

ARM = zoo.arm(7)
GOAL = np.array([0.3, 0.7, -0.2, 1.1, 0.4, 0.6, 0.1])
STATE = random_state(ARM, 0)


def test_gravity_compensation_is_weight_and_springs():
    law = control.GravityCompensation(ARM, GOAL, stiffness=np.arange(7.0), damping=2.0)
    expected = ARM.gravity_forces(STATE.q) + np.arange(7.0) * (GOAL - STATE.q) - 2 * STATE.qd
    assert_close(law(0.0, STATE.q, STATE.qd), expected, 20 * EPS)
    batch = law(0.0, np.stack([STATE.q] * 3), STATE.qd)
    assert_close(batch, np.stack([expected] * 3), 20 * EPS)


def test_without_a_goal_it_stays_where_it_is():
    law = control.GravityCompensation(ARM)
    motion = simulate(ARM, GOAL, None, law, duration=0.2, dt=1e-3, compiled=True)
    assert_close(motion.q[-1], GOAL, 1e3 * EPS)


def test_computed_torque_errors_die_out_as_a_critical_spring():
    motion = control.quintic(ARM, GOAL, GOAL + 0.5, duration=1.0)
    law = control.ComputedTorque(ARM, motion, stiffness=100.0, damping=20.0)
    run = simulate(ARM, GOAL + 0.1, None, law, duration=1.0, dt=1e-3, compiled=True)
    wanted = np.array([motion(t).q for t in run.t])
    left = 0.1 * (1 + 10 * run.t) * np.exp(-10 * run.t)
    np.testing.assert_allclose(run.q - wanted, np.tile(left[:, None], 7), atol=1e-10)


def test_a_free_robot_is_held_at_a_configuration():
    robot = zoo.space_arm(3)
    goal = robot.random_configuration(2)
    law = control.ComputedTorque(robot, goal, 100.0, 20.0)
    start = robot.integrate(goal, 0.1 * np.ones(robot.nv))
    run = simulate(robot, start, None, law, duration=2.0, dt=2e-3, every=1000, compiled=True)
    assert np.abs(robot.difference(run.q[-1], goal)).max() < 1e-6


def test_operational_space_moves_the_frame_as_a_unit_mass():
    """The error obeys ë = −k_d ė − k_p e in translation, whatever the posture does beside it."""
    start = ARM.frame_pose(GOAL, "tool")
    target = start.copy()
    target[:3, 3] += (0.05, -0.1, 0.08)
    law = control.OperationalSpace(ARM, "tool", target, 100.0, 20.0, posture=GOAL + 0.3)
    run = simulate(ARM, GOAL, None, law, duration=1.0, dt=1e-3, compiled=True)
    poses = ARM.frame_pose(run.q, "tool")
    left = (1 + 10 * run.t) * np.exp(-10 * run.t)
    expected = target[:3, 3] + left[:, None] * (start[:3, 3] - target[:3, 3])
    # Λ⁻¹ has 1e-8 of its size added
    np.testing.assert_allclose(poses[:, :3, 3], expected, atol=1e-6)
    turned = np.trace(np.swapaxes(poses[:, :3, :3], 1, 2) @ start[:3, :3], axis1=1, axis2=2)
    np.testing.assert_allclose(turned, 3.0, atol=1e-8)
    assert np.abs(run.q[-1] - run.q[0]).max() > 0.05


def test_posture_does_not_accelerate_the_frame():
    pose = ARM.frame_pose(STATE.q, "tool")
    gains = {"stiffness": 0.0, "damping": 0.0}
    force = [
        control.OperationalSpace(ARM, "tool", pose, posture=posture, **gains)(
            0.0, STATE.q, STATE.qd
        )
        for posture in (GOAL, GOAL + 1.0)
    ]
    qdd = np.linalg.solve(ARM.mass_matrix(STATE.q), force[1] - force[0])
    push = ARM.jacobian(STATE.q, "tool") @ qdd
    assert np.abs(qdd).max() > 10.0
    assert np.abs(push).max() < 1e-6 * np.abs(qdd).max()


def test_impedance_gives_way_like_its_springs():
    pose = hinge.Transform(
        ARM.frame_pose(GOAL, "tool")[:3, :3], ARM.frame_pose(GOAL, "tool")[:3, 3]
    )
    law = control.Impedance(ARM, "tool", pose, (200.0, 500.0), (20.0, 60.0), posture=GOAL)
    body = ARM.mechanism.frame("tool").body
    force = np.array([0.0, 0.0, 20.0])
    R = ARM.poses(GOAL)[body - 1][:3, :3]
    f_ext = np.zeros((len(ARM.body_names), 6))
    arm = R.T @ (pose.translation - ARM.poses(GOAL)[body - 1][:3, 3])
    f_ext[body - 1] = np.concatenate([np.cross(arm, R.T @ force), R.T @ force])
    run = simulate(ARM, GOAL, None, law, duration=4.0, dt=2e-3, f_ext=f_ext, every=2000)
    moved = ARM.frame_pose(run.q[-1], "tool")[:3, 3] - pose.translation
    assert 0.5 < moved[2] / (force[2] / 500.0) < 1.5


def test_forces_stay_within_the_limits():
    weak = zoo.acrobot()
    law = control.GravityCompensation(weak, np.full(weak.nq, 1e6), stiffness=1e6)
    most = weak.effort_limit
    assert (np.abs(law(0.0, weak.neutral(), np.zeros(weak.nv))) <= most).all()
    assert_close(within(ARM, np.full(7, np.inf)), ARM.effort_limit, 0)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: control.GravityCompensation(ARM, GOAL[:3]), "expected shape"),
        (lambda: control.GravityCompensation(ARM, GOAL, stiffness=-1.0), "stiffness is -1.0"),
        (lambda: control.GravityCompensation(ARM, GOAL, damping=[1, 2]), "or 7 of them"),
        (lambda: control.ComputedTorque(ARM, lambda t: (GOAL, GOAL))(0.0, GOAL, GOAL), "reference"),
        (lambda: control.OperationalSpace(ARM, "tool", np.eye(3)), "target"),
        (lambda: control.OperationalSpace(ARM, "tool", "home"), "target is 'home'"),
        (lambda: control.Impedance(ARM, "tool", np.ma.array(np.eye(4), mask=np.eye(4))), "masked"),
        (lambda: control.Impedance(ARM, "tool", np.eye(4), stiffness=(1, 2, 3)), "or 6 of them"),
    ],
)
def test_wrong_arguments_are_named(make, words):
    with pytest.raises(ArgumentError, match=words):
        make()
