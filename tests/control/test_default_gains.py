"""Laws with default gains, on arms that weigh from a kilogram to forty: stable, and they get there.

In simulations of a millisecond a step, from half a radian away and at rest.
"""

from dataclasses import replace

import numpy as np
import pytest

import hinge
from hinge import control, zoo
from robot_files import odd_models_allowed, package_folder, robot_file

ARMS = {
    "panda": ("panda_description/urdf/panda.urdf", "panda_hand"),
    "ur5": ("ur_description/urdf/ur5_robot.urdf", "wrist_3_link"),
    "kinova": ("kinova_description/robots/kinova.urdf", "j2s6s200_end_effector"),
    "so101": ("so_arm_description/urdf/so101.urdf", "gripper_link"),
    "xarm7": ("xarm_description/urdf/xarm7.urdf", "link7"),
    "z1": ("z1_description/urdf/z1.urdf", "link06"),
}
# whose own losses no explicit method takes in steps of a millisecond, and no soft spring overcomes
STIFF = {"xarm7", "z1"}
LAWS = {
    "gravity": lambda robot, frame, goal, pose: control.GravityCompensation(robot, goal),
    "torque": lambda robot, frame, goal, pose: control.ComputedTorque(robot, goal),
    "space": lambda robot, frame, goal, pose: control.OperationalSpace(robot, frame, pose),
    "impedance": lambda robot, frame, goal, pose: control.Impedance(robot, frame, pose),
    "pose": lambda robot, frame, goal, pose: control.PoseFeedback(robot, frame, pose),
    "rate": lambda robot, frame, goal, pose: control.RateFeedback(robot),
}


def arm_of(name):
    if name == "zoo":
        return zoo.arm(6), "tool"
    path, frame = ARMS[name]
    with odd_models_allowed():
        robot = hinge.load(robot_file(path), package_dirs=[package_folder()])
    return (_without_losses(robot) if name in STIFF else robot), frame


def _without_losses(robot):
    mech = robot.mechanism
    none = [dict.fromkeys(("damping", "friction"), (0.0,) * b.joint.nv) for b in mech.bodies]
    pairs = zip(mech.bodies, none, strict=True)
    still = tuple(replace(b, joint=replace(b.joint, **x)) for b, x in pairs)
    return hinge.Robot(replace(mech, bodies=still))


def ways(robot):
    """Two configurations within the limits, apart by 0.2; short slides stay in their middle."""
    lower, upper = np.maximum(robot.lower, -3.0), np.minimum(robot.upper, 3.0)
    start = np.clip(0.3 + 0.1 * np.arange(robot.nq), lower + 0.25, upper - 0.25)
    short = upper - lower < 0.7
    start = np.where(short, 0.5 * (lower + upper), start)
    return start, np.where(short, start, np.where(start + 0.25 > upper, start - 0.2, start + 0.2))


@pytest.mark.filterwarnings("ignore:.*cut off at the effort limits")
@pytest.mark.parametrize("name", ["zoo", *ARMS])
def test_laws_with_default_gains_are_stable_and_arrive(name):
    robot, frame = arm_of(name)
    start, goal = ways(robot)
    pose = robot.frame_pose(goal, frame)
    far = np.abs(robot.frame_pose(start, frame) - pose).max()
    for law, make in LAWS.items():
        own = make(robot, frame, goal, pose)
        proven = law in ("pose", "rate")
        # what is proven is so of motors that have the forces
        found = hinge.simulate(robot, start, tau=own, duration=2.0, dt=1e-3, limits=not proven)
        if proven:
            # as slow as light wrists on soft springs are; what falls is W
            W = own.lyapunov(found.q, found.qd)
            assert (np.diff(W) <= 1e-6 * (1 + W[0])).all() and W[-1] <= 0.2 * W[0] + 1e-20, (
                name,
                law,
            )
        else:
            off = np.abs(robot.frame_pose(found.q[-1], frame) - pose).max()
            assert off < 0.05 * far, (name, law, off, far)


@pytest.mark.parametrize("name", ["zoo", "panda", "kinova", "so101"])
def test_weight_alone_is_carried_and_nothing_is_damped(name):
    robot, _ = arm_of(name)
    start, _ = ways(robot)
    law = control.GravityCompensation(robot)
    found = hinge.simulate(robot, start, tau=law, duration=2.0, dt=1e-3)
    assert np.abs(found.q[-1] - start).max() < 0.01
    np.testing.assert_allclose(
        law(0.0, start, np.ones(robot.nv)), robot.gravity_forces(start), atol=1e-10
    )


def test_gains_by_default_are_times_the_mass_matrix():
    robot, rng = zoo.arm(5), np.random.default_rng(0)
    goal, q, qd = rng.normal(size=(3, 5))
    weight = robot.gravity_forces(q)
    law = control.GravityCompensation(robot, goal)
    expected = robot.mass_matrix(q) @ (100.0 * (goal - q) - 20.0 * qd) + weight
    np.testing.assert_allclose(law(0.0, q, qd), np.clip(expected, *[-100, 100]), atol=1e-10)
    half = control.GravityCompensation(robot, goal, stiffness=3.0)
    expected = 3.0 * (goal - q) - 20.0 * robot.mass_matrix(q) @ qd + weight
    np.testing.assert_allclose(half(0.0, q, qd), np.clip(expected, *[-100, 100]), atol=1e-10)
