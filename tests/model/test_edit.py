"""Editing: new robots from old ones, of the same kind, that move as the parts they are made of."""

from dataclasses import dataclass

import numpy as np
import pytest

import hinge
from hinge import (
    Free,
    Inertia,
    MechanismBuilder,
    ModelError,
    Prismatic,
    Revolute,
    Transform,
    edit,
    zoo,
)
from hinge.algebra.rotation import from_rpy
from mechanisms import EPS, ROBOTS, assert_close, everything, gripper, random_state

BODY = Inertia(2.0, (0.1, 0.0, 0.2), np.diag([0.3, 0.4, 0.5]))


def test_weld_is_the_same_motion_with_the_joint_at_rest():
    robot = zoo.quadruped()
    s = random_state(robot, 1)
    joint, at = "FR_pitch", robot.v_slice("FR_pitch").start
    welded = hinge.Robot(edit.weld(robot.mechanism, joint, s.q[robot.q_slice(joint)]))
    assert welded.nv == robot.nv - 1 and "FR_thigh" in welded.frame_names
    keep = [i for i in range(robot.nv) if i != at]
    kept_q = np.delete(s.q, robot.q_slice(joint).start)
    assert_close(welded.mass_matrix(kept_q), robot.mass_matrix(s.q)[np.ix_(keep, keep)], 20 * EPS)
    for frame in ("FR_foot", "FR_thigh", "FR_hip"):
        assert_close(welded.frame_pose(kept_q, frame), robot.frame_pose(s.q, frame), 10 * EPS)


def test_weld_holds_followers_too():
    robot = gripper()
    s = random_state(robot, 1)
    welded = hinge.Robot(edit.weld(robot.mechanism, "left_joint", s.q[1]))
    assert welded.joint_names == ("wrist_joint", "pad_joint")
    q = s.q[[0, 2]]
    assert_close(welded.frame_pose(q, "pad"), robot.frame_pose(s.q, "pad"), 10 * EPS)
    M = robot.mass_matrix(s.q)[np.ix_([0, 2], [0, 2])]
    assert_close(welded.mass_matrix(q), M, 20 * EPS)


def test_subtree_on_a_free_joint_falls_like_the_whole_leg():
    robot = zoo.quadruped()
    leg = hinge.Robot(edit.subtree(robot.mechanism, "RL_hip", Free()))
    assert leg.body_names == ("RL_hip", "RL_thigh", "RL_calf")
    assert "RL_foot" in leg.frame_names and "FL_foot" not in leg.frame_names
    q = leg.random_configuration(0)
    fall = leg.forward_dynamics(q, np.zeros(leg.nv), np.zeros(leg.nv))
    a = leg.frame_acceleration(q, np.zeros(leg.nv), fall, "RL_foot")
    assert_close(a, np.array([0, 0, 0, 0, 0, -9.81]), 500 * EPS)


def test_subtree_keeps_its_joint():
    robot = zoo.arm(5)
    tip = hinge.Robot(edit.subtree(robot.mechanism, "link4"))
    assert tip.joint_names == ("joint4", "joint5")
    q = robot.random_configuration(0)
    rest = robot.mass_matrix(q)[3:, 3:]
    assert_close(tip.mass_matrix(q[3:]), rest, 20 * EPS)


def test_attach_puts_the_other_at_a_frame():
    arm, hand = zoo.arm(3), gripper()
    both = edit.attach(arm.mechanism, hand.mechanism, "tool", prefix="hand/")
    robot = hinge.Robot(both)
    s, t = random_state(arm, 0), random_state(hand, 0)
    q = np.concatenate([s.q, t.q])
    assert robot.nv == arm.nv + hand.nv
    expected = arm.frame_pose(s.q, "tool") @ hand.frame_pose(t.q, "pad")
    assert_close(robot.frame_pose(q, "hand/pad"), expected, 10 * EPS)
    twice = edit.attach(both, hand.mechanism, "tool", prefix="other/")
    assert twice.nv == arm.nv + 2 * hand.nv
    with pytest.raises(ModelError, match="two bodies or frames are named"):
        edit.attach(both, hand.mechanism, "tool", prefix="hand/")


def test_with_inertia_changes_one_body():
    mech = zoo.arm(3).mechanism
    heavier = edit.with_inertia(mech, "link2", BODY)
    assert heavier.bodies[2].inertia == BODY
    assert heavier.bodies[1] == mech.bodies[1] and mech.bodies[2].inertia != BODY


EDITS = {
    "no joint": (lambda m: edit.weld(m, "elbow"), "no joint 'elbow'"),
    "wide angle": (lambda m: edit.right_angles(m, 0.5), "expected a small angle, 0 to 0.1"),
    "bad angle": (lambda m: edit.weld(m, "joint1", (1, 2)), "expected 1 finite"),
    "nan angle": (lambda m: edit.weld(m, "joint1", np.nan), "expected 1 finite"),
    "no body": (lambda m: edit.subtree(m, "hand"), "no body 'hand'"),
    "ground": (lambda m: edit.subtree(m, "world"), "the ground does not move"),
    "ground's inertia": (lambda m: edit.with_inertia(m, "world", BODY), "ground does not move"),
    "bad inertia": (
        lambda m: edit.with_inertia(m, "link1", Inertia(1.0, about_com=-np.eye(3))),
        "body 'link1': principal moments",
    ),
    "bad gravity": (lambda m: edit.with_gravity(m, (0, np.nan, 0)), "gravity is"),
    "flat gravity": (lambda m: edit.with_gravity(m, (0, 0)), r"gravity has shape \(2,\)"),
    "a file": (lambda m: edit.weld("arm.urdf", "joint1"), "weld needs a Robot or a Mech.*got str"),
    "another file": (lambda m: edit.attach(m, "arm.urdf"), "attach needs a Robot or a Mechanism"),
    "a merged link": (
        lambda m: edit.without(edit.weld(m, "joint3"), "link3"),
        "'link3' is welded to 'link2' and merged into it",
    ),
    "no names": (lambda m: edit.lock(m, []), r"lock: \[\] is no name of a joint"),
    "numbers": (lambda m: edit.lock(m, [1]), r"lock: \[1\] is no name of a joint"),
    "short q": (lambda m: edit.lock(m, "joint1", [0.1]), "expected nq = 3 finite coordinates"),
    "nan q": (lambda m: edit.lock(m, "joint1", [0, np.nan, 0]), "expected nq = 3 finite"),
    "worded q": (lambda m: edit.lock(m, "joint1", "up"), "lock at q = 'up'"),
    "q of another": (
        lambda m: edit.lock(m, "joint1", {"joint2": 1.0}),
        "q has joint 'joint2', not to be held",
    ),
    "no number": (
        lambda m: edit.with_joint(m, "joint1", dampng=1.0),
        "joint 'joint1': a Revolute joint has no 'dampng'; did you mean 'damping'",
    ),
    "bad number": (
        lambda m: edit.with_joint(m, "joint1", damping=-1.0),
        "joint 'joint1': Revolute: damping is -1",
    ),
    "no kind": (lambda m: edit.with_joint(m, "joint1", "ball"), "its kind is 'ball'"),
    "bad unit": (lambda m: edit.rescale(m, mass=0.0), "rescale: mass is 0.0; expected a number ab"),
    "no factor": (lambda m: edit.enlarge(m, "twice"), "enlarge: factor is 'twice'"),
    "old frame": (lambda m: edit.with_frame(m, "tool", "link1"), "two bodies or frames are named"),
    "torn branch": (
        lambda m: edit.without(gripper().mechanism, "left"),
        "'right_joint', which is kept, mimics 'left_joint', which is not",
    ),
    "no frame": (lambda m: edit.attach(m, m, "hand"), "no frame 'hand'"),
    "torn mimic": (
        lambda m: edit.subtree(gripper().mechanism, "right"),
        "'right_joint', which is kept, mimics 'left_joint', which is not",
    ),
}


@pytest.mark.parametrize("case", EDITS)
def test_bad_edits_are_refused(case):
    edit_it, message = EDITS[case]
    with pytest.raises(hinge.HingeError, match=message):
        edit_it(zoo.arm(3).mechanism)


def test_editing_accepts_what_a_file_was_warned_about():
    b = MechanismBuilder("m", nonphysical="accept")
    b.add("a", "world", Revolute(), inertia=Inertia(1.0, about_com=np.diag([1.0, 1.0, 3.0])))
    b.add("b", "a", Revolute(), inertia=BODY)
    assert edit.weld(b.build(), "b_joint").nv == 1


def _forearm(rpy):
    """Two hinges, the second turned and its body's frame turned again."""
    X = Transform(from_rpy(*rpy), (0.1, 0.0, 0.4))
    builder = MechanismBuilder("arm").add("upper", "world", Revolute((0, 0, 1)), inertia=BODY)
    return builder.add(
        "fore", "upper", Revolute((0, 1, 0)), placement=X, inertia=BODY, offset=X
    ).build()


@pytest.mark.parametrize("written", [1.5708, 1.57079632679, np.pi / 2])
def test_right_angles_are_made_of_rounded_ones(written):
    exact, rounded = (_forearm((angle, 0.3, -2 * angle)) for angle in (np.pi / 2, written))
    made = edit.right_angles(rounded)
    for body, expected in zip(made.bodies, exact.bodies, strict=True):
        for X, Y in ((body.placement, expected.placement), (body.offset, expected.offset)):
            assert_close(X.rotation, Y.rotation, 1e-5, 1)
            assert_close(X.rotation.T @ X.rotation, np.eye(3), 10 * EPS)
            assert set(np.abs(X.rotation[np.abs(X.rotation) < 1e-5])) <= {0.0}
    ops = [
        hinge.Robot(m).kernel("mass_matrix", "q").ops.multiplications
        for m in (made, edit.right_angles(exact))
    ]
    assert ops[0] == ops[1]
    assert edit.right_angles(rounded, 0.0).bodies[2].placement == rounded.bodies[2].placement


# a robot in, a robot out


CHANGES = {
    "attach": lambda r: edit.attach(r, zoo.pendulum(1), "tool", prefix="p/"),
    "enlarge": lambda r: edit.enlarge(r, 2.0),
    "lock": lambda r: edit.lock(r, ["joint1", "joint3"], r.random_configuration(0)),
    "replace": lambda r: edit.replace(r, "link3", zoo.pendulum(1), "p/"),
    "rescale": lambda r: edit.rescale(r, length=2.0),
    "right_angles": edit.right_angles,
    "single_axis": edit.single_axis,
    "subtree": lambda r: edit.subtree(r, "link2"),
    "weld": lambda r: edit.weld(r, "joint2"),
    "with_frame": lambda r: edit.with_frame(r, "camera", "link2"),
    "with_gravity": lambda r: edit.with_gravity(r, (0, 0, 0)),
    "with_inertia": lambda r: edit.with_inertia(r, "link2", BODY),
    "with_joint": lambda r: edit.with_joint(r, "joint2", damping=1.0),
    "with_mesh_inertia": lambda r: edit.with_mesh_inertia(r, density=100.0, shapes="visuals"),
    "without": lambda r: edit.without(r, "link3"),
}


class Mine(hinge.Robot):
    """A robot with something of its own."""


@pytest.mark.parametrize("name", CHANGES)
def test_what_is_given_is_given_back(name):
    assert set(CHANGES) == set(edit.__all__)
    arm = Mine(zoo.arm(3).mechanism, dtype=np.float32, threads=2, parameters=("gravity",))
    arm._note = "kept"
    before = arm.mechanism
    robot, q = CHANGES[name](arm), np.zeros(3)
    assert type(robot) is Mine and robot._note == "kept" and arm.mechanism is before
    assert (robot.dtype, robot.threads, robot.parameters) == (np.float32, 2, ("gravity",))
    if name != "lock":
        assert CHANGES[name](before) == robot.mechanism
    assert robot.total_mass > 0 and arm.mass_matrix(q).shape == (3, 3)
    assert robot.mass_matrix(robot.neutral()).shape == (robot.nv, robot.nv)


# frames and joints


def test_a_frame_is_where_it_is_put():
    robot, X = zoo.arm(3), Transform.from_rpy((0.1, 0.2, 0.3), (1, 2, 3))
    more = edit.with_frame(edit.with_frame(robot, "flange", "tool", X), "tip", "flange", X)
    q = robot.random_configuration(0)
    tool = robot.frame_pose(q, "tool")
    assert_close(more.frame_pose(q, "tip"), tool @ X.matrix @ X.matrix, 20 * EPS)
    assert set(more.frame_names) == {*robot.frame_names, "flange", "tip"}


def test_numbers_of_a_joint_are_those_given():
    robot = zoo.quadruped()
    legs = [name for name in robot.joint_names if name.endswith("knee")]
    changed = edit.with_joint(robot, legs, damping=0.5, upper=1.0, armature=0.2)
    for name in robot.joint_names[1:]:
        at, knee = robot.v_slice(name), name in legs
        assert changed.damping[at] == (0.5 if knee else robot.damping[at])
        assert changed.armature[at] == (0.2 if knee else robot.armature[at])
    q = robot.random_configuration(0)
    M = robot.mass_matrix(q) + np.diag(changed.armature - robot.armature)
    assert_close(changed.mass_matrix(q), M, 20 * EPS)


def test_a_joint_becomes_another():
    robot = zoo.arm(3)
    X = Transform.from_rpy((0.1, 0.2, 0.3), (0.5, 0, 0))
    slide = edit.with_joint(robot, "joint2", Prismatic((1, 0, 0)), placement=X)
    joint, body = slide.mechanism.bodies[2].joint, slide.mechanism.bodies[2]
    assert isinstance(joint, Prismatic) and body.placement == X
    assert edit.with_joint(robot, "joint2", Prismatic((1, 0, 0)), damping=2.0).damping[1] == 2
    hand = gripper()
    alone = edit.with_joint(hand, "tip_joint", mimic=None)
    assert alone.nv == hand.nv + 1


# reduced models


@pytest.mark.parametrize("name", ["quadruped", "humanoid", "tree1", "gripper"])
def test_lock_is_the_same_motion_with_the_joints_at_rest(name):
    robot = ROBOTS[name]
    leaders = [b.joint_name for b in robot.mechanism.bodies[1:] if b.joint.mimic is None]
    chosen = leaders[1::2]
    s = random_state(robot, 2)
    reduced = edit.lock(robot, chosen, s.q)
    rest = [name for name in leaders if name not in chosen]
    q = np.concatenate([s.q[robot.q_slice(name)] for name in rest])
    at = np.concatenate([np.r_[robot.v_slice(name)] for name in rest])
    held = np.zeros(robot.nv)
    held[at] = s.qd[at]
    tau = robot.inverse_dynamics(s.q, held, np.zeros(robot.nv))[at]
    assert_close(reduced.inverse_dynamics(q, s.qd[at], np.zeros(len(at))), tau, 200 * EPS)
    assert_close(reduced.mass_matrix(q), robot.mass_matrix(s.q)[np.ix_(at, at)], 50 * EPS)
    assert set(reduced.frame_names) == set(robot.frame_names)
    for frame in robot.frame_names:
        assert_close(reduced.frame_pose(q, frame), robot.frame_pose(s.q, frame), 50 * EPS)


def test_lock_by_names_is_lock_at_a_configuration():
    robot = zoo.arm(4)
    q = np.array([0.0, 0.3, 0.0, -0.7])
    by_names = edit.lock(robot, ("joint2", "joint4"), {"joint2": 0.3, "joint4": [-0.7]})
    assert by_names.mechanism == edit.lock(robot, ("joint2", "joint4"), q).mechanism
    assert edit.lock(robot, "joint2").mechanism == edit.weld(robot, "joint2").mechanism


def test_lock_takes_shapes_along():
    robot = zoo.arm(3)
    count = sum(len(b.visuals) for b in robot.mechanism.bodies)
    locked = edit.lock(robot, robot.joint_names[1:], [0.1, 0.2, 0.3])
    assert sum(len(b.visuals) for b in locked.mechanism.bodies) == count > 0


# parts


def test_without_and_subtree_share_out_the_robot():
    robot = zoo.quadruped()
    rest, leg = edit.without(robot, "RL_hip"), edit.subtree(robot, "RL_hip")
    assert set(rest.body_names) | set(leg.body_names) == set(robot.body_names)
    assert set(rest.frame_names) | set(leg.frame_names) == set(robot.frame_names)
    assert_close(rest.total_mass + leg.total_mass, robot.total_mass, 4 * EPS)


def test_replace_by_itself_is_the_same_robot():
    robot = zoo.quadruped()
    leg = edit.subtree(robot, "RL_hip")
    again = edit.replace(robot, "RL_hip", leg)
    s = random_state(robot, 0)
    names = [robot.joint_names.index(name) for name in again.joint_names]
    assert sorted(names) == list(range(robot.n_bodies))
    q = np.concatenate([s.q[robot.q_slice(name)] for name in again.joint_names])
    at = np.concatenate([np.r_[robot.v_slice(name)] for name in again.joint_names])
    tau = robot.inverse_dynamics(s.q, s.qd, s.qdd)[at]
    assert_close(again.inverse_dynamics(q, s.qd[at], s.qdd[at]), tau, 200 * EPS)


def test_two_arms_on_a_base_move_as_each_alone():
    base, arm = MechanismBuilder("base", gravity=(0, 0, -9.81)).build(), zoo.arm(4)
    X = Transform(translation=(0, 1, 0))
    both = edit.attach(edit.attach(hinge.Robot(base), arm, prefix="l/"), arm, "world", X, "r/")
    s, t = random_state(arm, 0), random_state(arm, 1)
    q, qd, qdd = (np.concatenate(pair) for pair in ((s.q, t.q), (s.qd, t.qd), (s.qdd, t.qdd)))
    parts = [arm.inverse_dynamics(x.q, x.qd, x.qdd) for x in (s, t)]
    assert_close(both.inverse_dynamics(q, qd, qdd), np.concatenate(parts), 50 * EPS)
    assert_close(both.frame_pose(q, "r/tool"), X.matrix @ arm.frame_pose(t.q, "tool"), 20 * EPS)


def test_mimics_and_frames_of_what_is_attached_have_the_prefix():
    both = edit.attach(zoo.arm(3), gripper(), "tool", prefix="hand/")
    followers = {b.joint.mimic.joint for b in both.mechanism.bodies if b.joint.mimic}
    assert followers == {"hand/left_joint"}


# one axis a joint


def test_joints_of_one_axis_each_are_the_same_motion():
    robot = everything()
    split = edit.single_axis(robot)
    kinds = {type(b.joint).__name__ for b in split.mechanism.bodies}
    assert not kinds & {"Universal", "Cylindrical", "Translation"}
    s = random_state(robot, 0)
    assert (split.nq, split.nv) == (robot.nq, robot.nv)
    tau = robot.inverse_dynamics(s.q, s.qd, s.qdd)
    assert_close(split.inverse_dynamics(s.q, s.qd, s.qdd), tau, 500 * EPS)
    assert_close(split.armature, robot.armature, EPS)
    for frame in robot.frame_names:
        assert_close(split.frame_pose(s.q, frame), robot.frame_pose(s.q, frame), 100 * EPS)


# units and sizes


def coordinates_in_units(robot, length):
    """How much each entry of q and of qd grows with the unit of length."""
    q, v = [], []
    for b in robot.mechanism.bodies[1:]:
        if b.joint.mimic is None:
            turns = np.abs(b.joint.H(b.joint.neutral())[:, :3]).any(axis=1)
            v += list(np.where(turns, 1.0, length))
            if b.joint.nq == b.joint.nv:
                q += list(np.where(turns, 1.0, length))
            else:
                q += [length] * (b.joint.nq - 4) + [1.0] * 4
    return np.array(q), np.array(v)


@pytest.mark.parametrize("robot", [everything(), gripper(), zoo.humanoid()], ids=lambda r: r.name)
def test_units_change_numbers_and_no_motion(robot):
    L, M, T = 1000.0, 0.5, 60.0
    other = edit.rescale(robot, length=L, mass=M, time=T)
    s = random_state(robot, 1)
    of_q, of_v = coordinates_in_units(robot, L)
    energy = M * L**2 / T**2
    state = of_q * s.q, of_v / T * s.qd, of_v / T**2 * s.qdd
    tau = energy / of_v * robot.inverse_dynamics(s.q, s.qd, s.qdd)
    found = other.inverse_dynamics(*state) / (energy / of_v)
    assert_close(found, tau / (energy / of_v), 500 * EPS)
    passive = robot.passive_forces(s.q, s.qd)
    assert_close(other.passive_forces(*state[:2]) / (energy / of_v), passive, 100 * EPS)
    assert_close(other.kinetic_energy(*state[:2]) / energy, robot.kinetic_energy(s.q, s.qd), 1e-13)
    limits = {"lower": of_q, "velocity_limit": of_v / T, "effort_limit": energy / of_v}
    for name, factor in limits.items():
        expected = factor * getattr(robot, name)
        np.testing.assert_allclose(getattr(other, name), expected, rtol=4 * EPS)
    back = edit.rescale(other, 1 / L, 1 / M, 1 / T)
    found = back.inverse_dynamics(s.q, s.qd, s.qdd)
    assert_close(found, robot.inverse_dynamics(s.q, s.qd, s.qdd), 500 * EPS)


def test_units_of_springs_and_losses():
    b = MechanismBuilder("m")
    data = {"stiffness": 3.0, "rest": 0.2, "damping": 0.4, "friction": 0.5}
    b.add("a", joint=Revolute(**data), inertia=BODY)
    b.add("b", "a", Prismatic(**data), inertia=BODY)
    b.add("c", "b", hinge.Helical(pitch=0.1, **data), inertia=BODY)
    robot = hinge.Robot(b.build())
    other = edit.rescale(robot, length=10.0, time=2.0)
    q, qd = np.array([0.1, 0.3, -0.2]), np.array([0.5, -0.7, 0.6])
    of_v = np.array([1.0, 10.0, 1.0])
    found = other.passive_forces(of_v * q, of_v / 2 * qd)
    assert_close(found, 25 / of_v * robot.passive_forces(q, qd), 10 * EPS)
    assert_close(other.spring_energy(of_v * q), 25 * robot.spring_energy(q), 10 * EPS)


def test_a_robot_twice_as_large_has_32_times_the_moments():
    robot = zoo.arm(4)
    bare = edit.with_joint(robot, robot.joint_names, armature=0.0)
    large = edit.enlarge(bare, 2.0)
    q = robot.random_configuration(0)
    assert_close(large.mass_matrix(q), 32 * bare.mass_matrix(q), 20 * EPS)
    assert_close(large.gravity_forces(q), 16 * bare.gravity_forces(q), 50 * EPS)
    assert_close(large.frame_pose(q, "tool")[:3, 3], 2 * bare.frame_pose(q, "tool")[:3, 3], 9 * EPS)
    assert np.array_equal(large.effort_limit, bare.effort_limit)
    assert large.mechanism.bodies[1].visuals[0].size == tuple(
        2 * x for x in bare.mechanism.bodies[1].visuals[0].size
    )
    assert np.array_equal(edit.enlarge(robot, 2.0).armature, robot.armature)


@dataclass(frozen=True)
class Cam(Revolute):
    """A joint with a number of its own."""

    lift: float = 0.1


def test_numbers_of_unknown_units_are_not_rescaled():
    mech = MechanismBuilder("m").add("a", joint=Cam()).build()
    with pytest.raises(ModelError, match="a Cam joint has lift, of unknown units"):
        edit.rescale(mech, length=2.0)
    assert edit.rescale(mech, mass=2.0).bodies[1].joint.lift == 0.1
