"""Robots of example-robot-data, each read by hinge and by Pinocchio."""

from __future__ import annotations

from functools import cache

import pytest

import hinge
from mechanisms import Generic
from oracle.pinocchio_bridge import PinocchioRobot, followers, pin
from robot_files import odd_models_allowed, package_folder, robot_file

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
# one of each kind: those that run without `-m long`
FEW = {"double_pendulum", "panda", "ur5", "solo12", "go2", "talos", "tiago", "iris"}
FEW |= {"bravo7_gripper", "hector"}
NOTHING_MOVES_WHEN_FIXED = {"hector"}
MASSLESS_FINGERS = {"romeo_full", "bravo7_gripper"}
ROOT_IS_THE_GROUND = {"ur5", "ur10", "xarm7", "z1"}

FIXED = [(name, "fixed") for name in ROBOTS if name not in NOTHING_MOVES_WHEN_FIXED]
FLOATING = [(name, "floating") for name in ROBOTS if name not in ROOT_IS_THE_GROUND]
CASES = FIXED + FLOATING


def each(cases):
    """Cases (name, …) or names as parameters, long but for few robots."""
    cases = [(case,) if isinstance(case, str) else case for case in cases]
    return [pytest.param(*c, marks=[pytest.mark.long] * (c[0] not in FEW)) for c in cases]


@cache
def load(name: str, base: str) -> PinocchioRobot:
    """A robot as both read it."""
    path = robot_file(ROBOTS[name])
    with odd_models_allowed():
        floating = base == "floating"
        robot = hinge.load(path, floating_base=floating, package_dirs=[package_folder()])
    return PinocchioRobot(
        Generic(robot), read_by_pinocchio(name, base), followers(path.read_text())
    )


def read_by_pinocchio(name: str, base: str, mimic: bool = False):
    """Pinocchio's model; followers are free joints unless mimic is set."""
    root = (pin.JointModelFreeFlyer(),) if base == "floating" else ()
    return pin.buildModelFromUrdf(str(robot_file(ROBOTS[name])), *root, mimic=mimic)
