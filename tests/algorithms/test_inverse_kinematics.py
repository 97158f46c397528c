"""Inverse kinematics reaches what can be reached, and says so when it cannot."""

import numpy as np
import pytest

import hinge
from hinge import ArgumentError, zoo
from mechanisms import EPS, assert_close, gripper

ARM = zoo.arm(7)
STOP = 1e-9  # norm of the error at which a pose is reached, unless told otherwise


def at(x, y, z):
    X = np.eye(4)
    X[:3, 3] = (x, y, z)
    return X


@pytest.mark.parametrize("seed", range(25))
def test_poses_of_the_arm_are_reached(seed):
    target = ARM.frame_pose(ARM.random_configuration(seed), "tool")
    answer = ARM.inverse_kinematics("tool", target, rng=seed)
    assert answer.status == "reached" and answer.reached
    assert_close(ARM.frame_pose(answer.q, "tool"), target, 2 * STOP)
    lower, upper = (
        np.array([getattr(b.joint, side)[0] for b in ARM.mechanism.bodies[1:]])
        for side in ("lower", "upper")
    )
    assert ((answer.q >= lower) & (answer.q <= upper)).all()
    assert np.linalg.norm(answer.error) <= STOP


@pytest.mark.parametrize("name", ["quadruped", "humanoid", "tree"])
def test_quaternion_joints_take_part(name):
    robot = getattr(zoo, name)()
    frame = robot.frame_names[-1]
    target = robot.frame_pose(robot.random_configuration(3), frame)
    answer = robot.inverse_kinematics(frame, target)
    assert answer.reached
    assert_close(robot.frame_pose(answer.q, frame), target, 2 * STOP)


def test_a_half_turn_is_the_largest_error_not_none():
    target = np.diag([1.0, -1.0, -1.0, 1.0])
    robot = hinge.Robot(hinge.MechanismBuilder("ball").add("b", "world", hinge.Spherical()).build())
    answer = robot.inverse_kinematics("b", target, restarts=0)
    assert answer.reached and answer.iterations > 0
    assert_close(robot.frame_pose(answer.q, "b"), target, STOP)


def test_position_and_orientation_alone():
    goal = at(0.4, 0.3, 0.6)
    answer = ARM.inverse_kinematics("tool", goal, task="position")
    assert answer.reached
    assert_close(ARM.frame_pose(answer.q, "tool")[:3, 3], goal[:3, 3], 2 * STOP)
    assert not answer.error[:3].any()
    turned = ARM.inverse_kinematics("tool", goal, task="orientation")
    assert turned.reached
    assert_close(ARM.frame_pose(turned.q, "tool")[:3, :3], np.eye(3), 2 * STOP)


def test_it_stays_near_the_start():
    q0 = ARM.random_configuration(1)
    target = ARM.frame_pose(ARM.integrate(q0, 0.05 * np.ones(7)), "tool")
    answer = ARM.inverse_kinematics("tool", target, q0)
    assert answer.reached and answer.restarts == 0
    assert np.abs(answer.q - q0).max() < 0.3


def test_out_of_reach_is_unreachable_and_as_near_as_can_be():
    reach = sum(0.3 * 0.9**i for i in range(1, 7))
    goal = at(5.0, 0.0, 0.3)
    answer = ARM.inverse_kinematics("tool", goal, task="position", restarts=5)
    assert answer.status == "unreachable"
    assert abs(np.linalg.norm(answer.error) - (5.0 - reach)) < STOP


def test_limits_can_make_a_target_unreachable():
    b = hinge.MechanismBuilder("short")
    b.add("a", "world", hinge.Prismatic((1, 0, 0), lower=0.0, upper=1.0))
    robot = hinge.Robot(b.build())
    assert robot.inverse_kinematics("a", at(0.7, 0, 0)).reached
    answer = robot.inverse_kinematics("a", at(1.5, 0, 0))
    assert answer.status == "unreachable"
    assert_close(answer.q, np.array([1.0]), 4 * EPS)


def test_a_stall_is_called_singular_and_cured_by_a_restart():
    """A stretched arm and a target on its line: no joint can start towards it."""
    robot = zoo.pendulum(2)
    goal = at(0.0, 0.0, -1.0)
    stuck = robot.inverse_kinematics("tip", goal, task="position", restarts=0)
    assert stuck.status == "singular"
    assert robot.inverse_kinematics("tip", goal, task="position").reached
    beyond = robot.inverse_kinematics("tip", at(0.0, 0.0, -3.0), task="position", restarts=0)
    assert beyond.status == "unreachable"


def test_running_out_is_not_called_anything_better():
    target = ARM.frame_pose(ARM.random_configuration(2), "tool")
    answer = ARM.inverse_kinematics("tool", target, max_iterations=1, restarts=0)
    assert answer.status == "unfinished" and not answer.reached


def test_mimic_joints_move_together():
    robot = gripper()
    target = robot.frame_pose(np.array([0.3, 0.2, 0.4]), "pad")
    answer = robot.inverse_kinematics("pad", target)
    assert answer.reached


BAD = {
    "shape": (dict(target=np.eye(3)), r"target has shape \(3, 3\); expected a pose"),
    "text": (dict(target="here"), "target is 'here'; expected a pose"),
    "not a pose": (dict(target=2 * np.eye(4)), "target is not a pose"),
    "nan": (dict(target=np.full((4, 4), np.nan)), "target is not a pose"),
    "task": (dict(task="reach"), "task is 'reach'; expected one of 'pose', 'position'"),
    "tolerance": (dict(tolerance=0.0), "tolerance is 0.0; expected a finite number above 0"),
    "iterations": (dict(max_iterations=0), "max_iterations is 0"),
    "half an iteration": (dict(max_iterations=0.5), "max_iterations is 0.5; expected a whole"),
    "restarts": (dict(restarts=-1), "restarts is -1"),
    "restarts text": (dict(restarts="many"), "restarts is 'many'"),
    "start": (dict(q0=np.zeros(3)), r"q0 has shape \(3,\)"),
    "start batch": (
        dict(q0=np.zeros((2, 7))),
        r"q0 has shape \(2, 7\); this call takes one sample",
    ),
    "start nan": (dict(q0=np.full(7, np.nan)), r"q0\[0\] is nan"),
    "frame": (dict(frame="hand"), "no frame 'hand'"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_arguments_are_refused(case):
    change, message = BAD[case]
    with pytest.raises(ArgumentError, match=message):
        ARM.inverse_kinematics(**{"frame": "tool", "target": np.eye(4), **change})
