"""The robot's own numbers: arrays over q and v, random states, paths between them, print."""

import numpy as np
import pytest

import hinge
from hinge import ArgumentError, ImmutableError, ModelError, Transform, zoo
from mechanisms import EPS, ROBOTS, assert_close, everything, gripper

PER_DOF = (
    *("velocity_limit", "effort_limit", "armature", "damping", "friction", "stiffness", "rest"),
)


@pytest.mark.parametrize("name", ROBOTS)
def test_arrays_are_those_of_the_joints_in_the_order_of_q_and_v(name):
    robot = ROBOTS[name]
    assert robot.lower.shape == robot.upper.shape == (robot.nq,)
    assert robot.n_bodies == len(robot.body_names)
    for datum in PER_DOF:
        values = getattr(robot, datum)
        assert values.shape == (robot.nv,) and not values.flags.writeable
        for b in robot.mechanism.bodies[1:]:
            if b.joint.mimic is None:
                at = robot.v_slice(b.joint_name)
                assert tuple(values[at]) == tuple(getattr(b.joint, datum))
    for b in robot.mechanism.bodies[1:]:
        if b.joint.mimic is None and b.joint.nq == b.joint.nv:
            at = robot.q_slice(b.joint_name)
            assert tuple(robot.lower[at]) == b.joint.lower
            assert tuple(robot.upper[at]) == b.joint.upper


def test_the_robot_keeps_its_numbers():
    robot = zoo.arm(3)
    assert robot.lower is robot.lower
    with pytest.raises(ValueError, match="read-only"):
        robot.lower[0] = 1.0
    with pytest.raises(ImmutableError, match="lower cannot be set.*hinge.edit"):
        robot.lower = np.zeros(3)
    with pytest.raises(ImmutableError, match="n_bodies cannot be set"):
        robot.n_bodies = 3


def test_actuated_are_the_joints_that_can_be_driven():
    assert zoo.quadruped().actuated == zoo.quadruped().joint_names[1:]
    assert gripper().actuated == ("wrist_joint", "left_joint", "pad_joint")
    assert zoo.acrobot().actuated == ("elbow",)
    robot = zoo.acrobot()
    assert robot.actuated is robot.actuated  # settings of a quick call are told apart by identity
    b = hinge.MechanismBuilder("split base")
    b.add("between", "world", hinge.Translation(armature=1.0), "root/position")
    b.add("base", "between", hinge.Spherical(), "root/orientation")
    b.add("ball", "base", hinge.Spherical(), "shoulder")
    assert hinge.Robot(b.build()).actuated == ("shoulder",)


@pytest.mark.parametrize("name", ROBOTS)
@pytest.mark.parametrize("shape", [(), 5, (2, 3)])
def test_random_states_keep_to_the_limits(name, shape):
    robot = ROBOTS[name]
    q, v = robot.random_configuration(1, shape), robot.random_velocity(1, shape)
    lead = np.empty(shape).shape
    assert q.shape == (*lead, robot.nq) and v.shape == (*lead, robot.nv)
    assert (robot.lower <= q).all() and (q <= robot.upper).all()
    limit = np.where(np.isfinite(robot.velocity_limit), robot.velocity_limit, 1.0)
    assert (np.abs(v) <= limit).all()
    assert_close(robot.normalize(q), q, 4 * EPS)
    assert np.array_equal(robot.random_configuration(1, shape), q)


def test_random_states_fill_the_limits():
    b = hinge.MechanismBuilder("m")
    b.add("a", joint=hinge.Revolute(lower=-0.5, upper=2.0, velocity_limit=3.0))
    robot = hinge.Robot(b.build())
    q, v = robot.random_configuration(0, 2000), robot.random_velocity(0, 2000)
    assert q.min() < -0.49 and q.max() > 1.99 and v.min() < -2.9 and v.max() > 2.9


def test_random_orientations_are_uniform():
    b = hinge.MechanismBuilder("m").add("a", joint=hinge.Free())
    R = hinge.Robot(b.build()).poses(hinge.Robot(b.build()).random_configuration(0, 20_000))
    # of uniform rotations every entry has mean 0 and mean square ⅓
    assert np.abs(R[:, 0, :3, :3].mean(axis=0)).max() < 0.02
    assert np.abs((R[:, 0, :3, :3] ** 2).mean(axis=0) - 1 / 3).max() < 0.02


@pytest.mark.parametrize("shape", [-1, 2.0, "three", (2, -1)])
def test_a_shape_is_how_many(shape):
    with pytest.raises(ArgumentError, match="random_velocity of 'arm2': shape is .*expected how"):
        zoo.arm(2).random_velocity(0, shape)


@pytest.mark.parametrize("robot", [everything(), zoo.humanoid(), gripper()], ids=lambda r: r.name)
def test_interpolate_is_the_shortest_way(robot):
    q0, q1 = robot.random_configuration(0, 2)
    path = robot.interpolate(q0, q1, np.linspace(0, 1, 5))
    assert path.shape == (5, robot.nq)
    whole = robot.difference(q0, q1)
    assert_close(robot.difference(q0, path[-1]), whole, 200 * EPS)
    for s, q in zip(np.linspace(0, 1, 5), path, strict=True):
        assert_close(robot.difference(q0, q), s * whole, 200 * EPS)
        assert_close(robot.alg.interpolate(q0, q1, s), q, 50 * EPS)
        assert_close(robot.interpolate(q0, q1, s), q, 50 * EPS)
    out = np.empty_like(path)
    assert robot.interpolate(q0, q1, s=np.linspace(0, 1, 5), out=out) is out
    assert_close(out, path, 4 * EPS)


@pytest.mark.parametrize(
    ("s", "message"),
    [("half", "s is 'half'; expected"), (np.nan, "s .*nan"), (np.zeros(3), "leading shapes")],
)
def test_interpolate_refuses_what_is_no_part(s, message):
    robot = zoo.arm(2)
    with pytest.raises(ArgumentError, match=message):
        robot.interpolate(np.zeros(2), np.zeros((2, 2) if np.ndim(s) else 2), s)


def test_normalize_gives_unit_quaternions_and_changes_nothing_else():
    robot = everything()
    q = robot.random_configuration(0, 4)
    longer = q.copy()
    for b in robot.mechanism.bodies[1:]:
        if b.joint.nq != b.joint.nv:
            at = robot.q_slice(b.joint_name)
            longer[:, at.stop - 4 : at.stop] *= 3.7
    assert_close(robot.normalize(longer), q, 4 * EPS)
    assert_close(robot.poses(longer), robot.poses(q), 100 * EPS)


# poses by other words


@pytest.mark.parametrize("seed", range(5))
def test_transforms_there_and_back(seed):
    rng = np.random.default_rng(seed)
    p, quat = rng.normal(size=3), rng.normal(size=4)
    X = Transform.from_quaternion(quat, p)
    unit = quat / np.linalg.norm(quat) * np.sign(quat[0])
    assert_close(X.quaternion, unit, 8 * EPS)
    axis, angle = X.axis_angle
    for again in (
        Transform.from_matrix(X.matrix),
        Transform.from_rpy(X.rpy, p),
        Transform.from_quaternion(X.quaternion, p),
        Transform.from_axis_angle(3 * axis, angle, p),
    ):
        assert_close(again.matrix, X.matrix, 16 * EPS)


@pytest.mark.parametrize("off", [0, 1e-16, 1e-14, 1e-9, 1e-5])
@pytest.mark.parametrize("side", [1, -1])
def test_roll_pitch_yaw_near_the_poles(off, side):
    R = Transform.from_rpy((0.3, side * (np.pi / 2 - off), -2.0)).rotation
    assert_close(Transform.from_rpy(Transform(R).rpy).rotation, R, 4 * EPS)


def test_transforms_agree_with_scipy():
    from scipy.spatial.transform import Rotation

    R = Rotation.random(random_state=1)
    X = Transform(R.as_matrix())
    x, y, z, w = R.as_quat(canonical=True)
    assert_close(X.quaternion, np.array([w, x, y, z]), 8 * EPS)
    assert_close(X.rpy, R.as_euler("xyz"), 8 * EPS)
    axis, angle = X.axis_angle
    assert_close(axis * angle, R.as_rotvec(), 8 * EPS)
    assert Transform().axis_angle[1] == 0 and tuple(Transform().axis_angle[0]) == (1, 0, 0)


BAD = {
    "no pose": (lambda: Transform.from_matrix(2 * np.eye(4)), "a pose is .R p; 0 0 0 1."),
    "a rotation": (lambda: Transform.from_matrix(np.eye(3)), r"finite numbers of shape \(4, 4\)"),
    "zero quaternion": (lambda: Transform.from_quaternion(np.zeros(4)), "a quaternion is zero"),
    "three": (lambda: Transform.from_quaternion((1, 0, 0)), r"a quaternion \(w, x, y, z\) is"),
    "nan": (lambda: Transform.from_rpy((0, np.nan, 0)), "roll, pitch, yaw is .*finite numbers"),
    "a word": (lambda: Transform.from_rpy("up"), "roll, pitch, yaw is 'up'"),
    "zero axis": (lambda: Transform.from_axis_angle((0, 0, 0), 1.0), "an axis is zero"),
    "two angles": (lambda: Transform.from_axis_angle((0, 0, 1), (1, 2)), "an angle is"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_poses_are_refused(case):
    make, message = BAD[case]
    with pytest.raises(ModelError, match=message):
        make()


def test_setting_a_part_of_a_pose_says_what_to_do():
    with pytest.raises(ImmutableError, match="make a new one"):
        Transform().rotation = np.eye(3)
    with pytest.raises(ImmutableError, match="make a new one"):
        hinge.Inertia().mass = 1.0


# in print


@pytest.mark.parametrize("name", ROBOTS)
def test_print_keeps_to_80_columns_and_cuts_no_name(name):
    robot = ROBOTS[name]
    lines = str(robot).splitlines()
    assert lines[0].startswith(f"{robot.name}: {robot.n_bodies} moving bodies")
    assert all(len(line) <= 80 for line in lines)
    words = [line.split()[0] for line in lines[2:] if line.strip()]
    assert set(robot.joint_names) <= set(words)


def test_long_names_have_a_line_of_their_own():
    b = hinge.MechanismBuilder("m")
    name = "a_joint_whose_name_is_as_long_as_those_of_files_that_programs_have_written_out"
    data = {"lower": -1.25, "upper": 2.5, "velocity_limit": 3.0, "effort_limit": 40.0}
    losses = {"damping": 0.125, "friction": 0.0625, "armature": 0.5, "stiffness": 7.0}
    b.add("a", joint=hinge.Revolute(**data, **losses), joint_name=name)
    b.add("b", "a", hinge.Revolute(mimic=hinge.Mimic(name, -2.0, 0.5)), "follower")
    printed = str(hinge.Robot(b.build()))
    lines = printed.splitlines()
    assert name in lines and all(len(line) <= 80 for line in lines)
    for number in ("-1.25 … 2.5", "0.125", "0.0625", "40", "-2 · 0 + 0.5", "7"):
        assert number in printed
