"""Robots of example-robot-data: hinge and Pinocchio read the same file and agree on everything.

Seeds name the states: even ones lie within the joint limits, odd ones far outside.
"""

from __future__ import annotations

import numpy as np
import pytest

import hinge
from oracle.agreement import (
    agree_on_accelerations,
    agree_on_configurations,
    agree_on_energy,
    agree_on_forces,
    agree_on_frame_motion,
    agree_on_kernels,
    agree_on_poses,
    assert_agrees,
    wild_state,
)
from oracle.example_robots import (
    CASES,
    MASSLESS_FINGERS,
    ROBOTS,
    each,
    load,
    read_by_pinocchio,
)
from oracle.pinocchio_bridge import PinocchioRobot
from robot_files import ROBOTS as FOLDER
from robot_files import package_folder

SEEDS = (0, 1)
FRAMES = 6

each_robot = pytest.mark.parametrize(("name", "base"), each(CASES))
each_state = pytest.mark.parametrize("seed", SEEDS)


def test_most_robots_are_there():
    assert sum((package_folder() / FOLDER / path).exists() for path in ROBOTS.values()) >= 35


@each_robot
def test_names_sizes_and_mass(name, base):
    oracle = load(name, base)
    robot = oracle.robot
    assert set(robot.joint_names) == set(oracle.joints)
    assert set(robot.frame_names) == {"world", *oracle.links}
    assert robot.nv == oracle.model.nv - len(oracle.followers)
    assert_agrees("total_mass", robot.total_mass, oracle.total_mass)


@each_robot
@each_state
def test_poses(name, base, seed):
    oracle = load(name, base)
    agree_on_poses(oracle, wild_state(oracle.robot, seed))


@each_robot
@each_state
def test_frame_motion(name, base, seed):
    oracle = load(name, base)
    links = sorted(oracle.links)
    chosen = np.random.default_rng(seed).permutation(links)[:FRAMES].tolist()
    agree_on_frame_motion(oracle, wild_state(oracle.robot, seed), chosen)


@each_robot
@each_state
def test_momentum_and_energy(name, base, seed):
    oracle = load(name, base)
    agree_on_energy(oracle, wild_state(oracle.robot, seed))


@each_robot
@each_state
def test_forces(name, base, seed):
    oracle = load(name, base)
    agree_on_forces(oracle, wild_state(oracle.robot, seed))


@pytest.mark.parametrize(("name", "base"), each(c for c in CASES if c[0] not in MASSLESS_FINGERS))
@each_state
def test_accelerations(name, base, seed):
    oracle = load(name, base)
    agree_on_accelerations(oracle, wild_state(oracle.robot, seed))


@pytest.mark.parametrize(("name", "base"), each(c for c in CASES if c[0] in MASSLESS_FINGERS))
@each_state
def test_what_moves_no_mass_is_refused(name, base, seed):
    """Forward dynamics has no answer; Pinocchio's is NaN."""
    robot = hinge.Robot(load(name, base).robot.mechanism)
    s = wild_state(robot, seed)
    with pytest.raises(hinge.SingularError):
        robot.forward_dynamics(s.q, s.qd, s.qdd)


@pytest.mark.parametrize("name", each(ROBOTS))
def test_kernels_do_as_the_generic_code_does(name):
    """Inverse and forward dynamics and mass matrix, in units that give M a unit diagonal."""
    base = next(b for n, b in reversed(CASES) if n == name)
    oracle = load(name, base)
    robot, s = hinge.Robot(oracle.robot.mechanism), wild_state(oracle.robot, 0)
    agree_on_kernels(robot, s, accelerations=name not in MASSLESS_FINGERS)


@each_robot
@each_state
def test_integrate_and_difference(name, base, seed):
    oracle = load(name, base)
    agree_on_configurations(oracle, wild_state(oracle.robot, seed), seed)


@pytest.mark.parametrize("base", ("fixed", "floating"))
@pytest.mark.parametrize("name", each(("panda", "baxter", "pr2", "tiago_pro")))
@each_state
def test_followers_as_pinocchio_ties_them(name, base, seed):
    """Pinocchio's own joints that mimic others, which its inverse dynamics and M support."""
    robot = load(name, base).robot
    assert robot.mechanism.has_followers
    oracle = PinocchioRobot(robot, read_by_pinocchio(name, base, mimic=True))
    s = wild_state(robot, seed)
    agree_on_poses(oracle, s)
    agree_on_forces(oracle, s)
