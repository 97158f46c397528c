"""Reduced and composed robots against Pinocchio's buildReducedModel and appendModel."""

import numpy as np
import pytest

import hinge
from hinge import Transform, edit
from mechanisms import Generic
from oracle.agreement import (
    agree_on_accelerations,
    agree_on_energy,
    agree_on_forces,
    assert_agrees,
    wild_state,
)
from oracle.example_robots import ROBOTS, read_by_pinocchio
from oracle.pinocchio_bridge import PinocchioRobot, followers, pin
from robot_files import odd_models_allowed, package_folder, robot_file


def read(name, base="fixed"):
    """A robot as hinge and as Pinocchio read it, and what follows what."""
    path = robot_file(ROBOTS[name])
    with odd_models_allowed():
        robot = hinge.load(path, base == "floating", package_dirs=[package_folder()])
    return robot, read_by_pinocchio(name, base), followers(path.read_text())


def assert_agree(robot, model, follows):
    """Poses, energies, forces and accelerations of an edited robot are Pinocchio's."""
    for seed in range(2):
        oracle = PinocchioRobot(Generic(robot), model, follows)
        s = wild_state(robot, seed)
        names = [name for name in robot.frame_names if name in oracle.links]
        assert len(names) > robot.n_bodies
        poses = [[who.frame_pose(s.q, n) for n in names] for who in (oracle.robot, oracle)]
        assert_agrees("frame_pose", *poses)
        for agree in (agree_on_energy, agree_on_forces, agree_on_accelerations):
            agree(oracle, s)


CASES = {
    "panda": ("fixed", ["panda_joint3", "panda_joint5", "panda_finger_joint1"]),
    "talos": ("floating", ["torso_1_joint", "arm_left_2_joint", "leg_right_4_joint"]),
    "tiago": ("fixed", ["torso_lift_joint", "arm_3_joint"]),
}


@pytest.mark.parametrize("name", CASES)
def test_locked_joints_are_pinocchios_reduced_model(name):
    base, locked = CASES[name]
    robot, model, follows = read(name, base)
    q = robot.random_configuration(3)
    held = [*locked, *(f for f, (leader, *_) in follows.items() if leader in locked)]
    at = PinocchioRobot(robot, model, follows).configuration(q)
    reduced = pin.buildReducedModel(model, [model.getJointId(n) for n in held], at)
    left = {f: lead for f, lead in follows.items() if f not in held}
    assert_agree(edit.lock(robot, locked, q), reduced, left)


def prefixed(model, prefix):
    """Pinocchio's model with other names."""
    for i in range(1, model.njoints):
        model.names[i] = prefix + model.names[i]
    for i in range(1, model.nframes):
        model.frames[i].name = prefix + model.frames[i].name
    return model


@pytest.mark.parametrize(
    ("arm", "frame", "hand"),
    [("ur5", "ee_link", "allegro"), ("talos", "gripper_left_base_link", "finger_edu")],
)
def test_attached_robots_are_pinocchios_appended_models(arm, frame, hand):
    (robot, model, follows), (other, part, _) = read(arm), read(hand)
    X = Transform.from_rpy((0.3, -0.2, 0.5), (0.1, 0.2, -0.05))
    where = model.getFrameId(frame)
    pose = pin.SE3(X.rotation, X.translation)
    both = pin.appendModel(model, prefixed(part, "hand/"), where, pose)
    assert_agree(edit.attach(robot, other, frame, X, "hand/"), both, follows)


def test_two_arms_on_a_base():
    robot, model, _ = read("ur5")
    poses = {"left/": Transform(translation=(0, 0.5, 1)), "right/": Transform.from_rpy((0, 0, 2.0))}
    both, pair = hinge.Robot(hinge.MechanismBuilder("pair").build()), pin.Model()
    for prefix, X in poses.items():
        both = edit.attach(both, robot.mechanism, placement=X, prefix=prefix)
        place = pin.SE3(np.array(X.rotation), np.array(X.translation))
        pair = pin.appendModel(pair, prefixed(model.copy(), prefix), 0, place)
    assert_agree(both, pair, {})
