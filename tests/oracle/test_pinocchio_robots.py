"""Robots of example-robot-data: hinge and Pinocchio read the same file and agree on everything.

Seeds name the states: even ones lie within the joint limits, odd ones far outside.
"""

from __future__ import annotations

import importlib.metadata
import warnings
import xml.etree.ElementTree as ET
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import hinge
from mechanisms import Generic
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
from oracle.pinocchio_bridge import PinocchioRobot, pin

SEEDS = (0, 1)
FRAMES = 6

ROBOTS = {
    "double_pendulum": "double_pendulum_description/urdf/double_pendulum_continuous.urdf",
    "panda": "panda_description/urdf/panda.urdf",
    "ur5": "ur_description/urdf/ur5_robot.urdf",
    "ur10": "ur_description/urdf/ur10_joint_limited_robot.urdf",
    "kinova": "kinova_description/robots/kinova.urdf",
    "xarm7": "xarm_description/urdf/xarm7.urdf",
    "z1": "z1_description/urdf/z1.urdf",
    "so101": "so_arm_description/urdf/so101.urdf",
    "allegro": "allegro_hand_description/urdf/allegro_right_hand.urdf",
    "finger_edu": "finger_edu_description/robots/finger_edu.urdf",
    "anymal_b": "anymal_b_simple_description/robots/anymal.urdf",
    "anymal_c": "anymal_c_simple_description/urdf/anymal.urdf",
    "anymal_kinova": "anymal_b_simple_description/robots/anymal-kinova.urdf",
    "solo12": "solo_description/robots/solo12.urdf",
    "hyq": "hyq_description/robots/hyq_no_sensors.urdf",
    "a1": "a1_description/urdf/a1.urdf",
    "go1": "go1_description/urdf/go1.urdf",
    "go2": "go2_description/urdf/go2.urdf",
    "b1_z1": "b1_description/urdf/b1-z1.urdf",
    "laikago": "laikago_description/urdf/laikago.urdf",
    "bolt": "bolt_description/robots/bolt.urdf",
    "talos": "talos_data/robots/talos_reduced.urdf",
    "talos_full": "talos_data/robots/talos_full_v2.urdf",
    "icub": "icub_description/robots/icub_reduced.urdf",
    "icub_full": "icub_description/robots/icub.urdf",
    "romeo": "romeo_description/urdf/romeo_small.urdf",
    "romeo_full": "romeo_description/urdf/romeo.urdf",
    "g1": "g1_description/urdf/g1_29dof_with_hand_rev_1_0.urdf",
    "simple_humanoid": "simple_humanoid_description/urdf/simple_humanoid.urdf",
    "human": "human_description/robots/human.urdf",
    "centauro": "centauro_description/urdf/centauro.urdf",
    "tiago": "tiago_description/robots/tiago.urdf",
    "tiago_no_hand": "tiago_description/robots/tiago_no_hand.urdf",
    "tiago_pro": "tiago_pro_description/robots/tiago_pro.urdf",
    "baxter": "baxter_description/urdf/baxter.urdf",
    "pr2": "pr2_description/urdf/pr2.urdf",
    "borinot": "borinot_description/urdf/borinot_flying_arm_2.urdf",
    "iris": "iris_description/robots/iris.urdf",
    "bravo7_gripper": "bravo7_description/urdf/bravo7_gripper.urdf",
    "hector": "hector_description/robots/quadrotor_base.urdf",
}
NOTHING_MOVES_WHEN_FIXED = {"hector"}
MASSLESS_FINGERS = {"romeo_full", "bravo7_gripper"}
ROOT_IS_THE_GROUND = {"ur5", "ur10", "xarm7", "z1"}

FIXED = [(name, "fixed") for name in ROBOTS if name not in NOTHING_MOVES_WHEN_FIXED]
FLOATING = [(name, "floating") for name in ROBOTS if name not in ROOT_IS_THE_GROUND]
CASES = FIXED + FLOATING
each_robot = pytest.mark.parametrize(("name", "base"), CASES)
each_state = pytest.mark.parametrize("seed", SEEDS)


@cache
def folder() -> Path:
    """Where example-robot-data has its robots."""
    try:
        files = importlib.metadata.files("example-robot-data") or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    paths = (Path(str(f.locate())) for f in files if str(f).endswith(ROBOTS["panda"]))
    panda = next(paths, None) or pytest.skip("example-robot-data is not installed")
    return panda.parents[len(Path(ROBOTS["panda"]).parts) - 1]


def file_of(name: str) -> Path:
    """The file of a robot; the package's versions differ by a few."""
    path = folder() / ROBOTS[name]
    return path if path.exists() else pytest.skip(f"this version has no {ROBOTS[name]}")


def test_most_robots_are_there():
    assert sum((folder() / path).exists() for path in ROBOTS.values()) >= 35


@cache
def load(name: str, base: str) -> PinocchioRobot:
    """A robot as both read it."""
    path = file_of(name)
    model = read_by_pinocchio(name, base)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hinge.ModelWarning)  # many files have odd inertias
        robot = hinge.load(path, floating_base=base == "floating", package_dirs=[folder()])
    return PinocchioRobot(Generic(robot), model, followers(path))


def read_by_pinocchio(name: str, base: str, mimic: bool = False):
    """Pinocchio's model; followers are free joints unless mimic is set."""
    root = (pin.JointModelFreeFlyer(),) if base == "floating" else ()
    return pin.buildModelFromUrdf(str(file_of(name)), *root, mimic=mimic)


def followers(path: Path) -> dict[str, tuple[str, float, float]]:
    """The joints of a file that follow others: leader, ratio and offset."""
    out = {}
    for joint in ET.parse(path).getroot().findall("joint"):
        mimic = joint.find("mimic")
        if mimic is not None and joint.get("type") != "fixed":
            ratio, offset = float(mimic.get("multiplier", 1)), float(mimic.get("offset", 0))
            out[joint.get("name")] = (mimic.get("joint"), ratio, offset)
    return out


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


@pytest.mark.parametrize(("name", "base"), [c for c in CASES if c[0] not in MASSLESS_FINGERS])
@each_state
def test_accelerations(name, base, seed):
    oracle = load(name, base)
    agree_on_accelerations(oracle, wild_state(oracle.robot, seed))


@pytest.mark.parametrize(("name", "base"), [c for c in CASES if c[0] in MASSLESS_FINGERS])
@each_state
def test_what_moves_no_mass_is_refused(name, base, seed):
    """Forward dynamics has no answer; Pinocchio's is NaN."""
    robot = hinge.Robot(load(name, base).robot.mechanism)
    s = wild_state(robot, seed)
    with pytest.raises(hinge.SingularError):
        robot.forward_dynamics(s.q, s.qd, s.qdd)


@pytest.mark.parametrize("name", ROBOTS)
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
@pytest.mark.parametrize("name", ("panda", "baxter", "pr2", "tiago_pro"))
@each_state
def test_followers_as_pinocchio_ties_them(name, base, seed):
    """Pinocchio's own joints that mimic others, which its inverse dynamics and M support."""
    robot = load(name, base).robot
    assert robot.mechanism.has_followers
    oracle = PinocchioRobot(robot, read_by_pinocchio(name, base, mimic=True))
    s = wild_state(robot, seed)
    agree_on_poses(oracle, s)
    agree_on_forces(oracle, s)
