"""Answers of inverse kinematics are what Pinocchio says of them, for targets that it made."""

from __future__ import annotations

import numpy as np
import pytest

from hinge import Task
from hinge.algorithms.configuration import limits
from oracle.example_robots import load

STOP = 1e-6
CASES = {
    "panda": ("fixed", ["panda_link8"], 300),
    "ur5": ("fixed", ["tool0"], 300),
    "tiago": ("fixed", ["arm_7_link"], 60),
    "talos": ("floating", ["left_sole_link", "right_sole_link", "gripper_left_base_link"], 60),
}
QUICK = ("panda", "ur5")
each_case = pytest.mark.parametrize(
    "name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.long) for n in CASES]
)


@each_case
def test_targets_are_found_within_limits(name):
    base, frames, count = CASES[name]
    oracle = load(name, base)
    robot, rng = oracle.robot._robot, np.random.default_rng(7)
    wanted = [robot.random_configuration(rng) for _ in range(count)]
    targets = [np.array([oracle.frame_pose(q, frame) for q in wanted]) for frame in frames]
    answer = robot.inverse_kinematics(frames, targets, tolerance=STOP)
    assert answer.reached.mean() >= 0.995
    bounds = limits(robot.mechanism)
    assert np.array_equal(bounds.kept(answer.q.T).T, answer.q)
    for i in np.flatnonzero(answer.reached):
        for frame, X in zip(frames, targets, strict=True):
            assert np.abs(oracle.frame_pose(answer.q[i], frame) - X[i]).max() < 2 * STOP


@pytest.mark.long
def test_the_centre_of_mass_is_where_it_was_wanted():
    oracle = load("talos", "floating")
    robot = oracle.robot._robot
    q = robot.neutral()
    feet = ["left_sole_link", "right_sole_link"]
    poses = [oracle.frame_pose(q, foot) for foot in feet]
    goal = oracle.center_of_mass(q) + (0.01, 0.02, -0.03)
    answer = robot.inverse_kinematics([*feet, Task(kind="center_of_mass")], [*poses, goal], q)
    assert answer.reached
    assert np.abs(oracle.center_of_mass(answer.q) - goal).max() < 2 * STOP
    for foot, X in zip(feet, poses, strict=True):
        assert np.abs(oracle.frame_pose(answer.q, foot) - X).max() < 2 * STOP
