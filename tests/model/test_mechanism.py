"""Building, checking, comparing and editing mechanisms."""

import pickle
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

import hinge
from hinge import (
    Fixed,
    Inertia,
    MechanismBuilder,
    Mimic,
    ModelError,
    ModelWarning,
    Revolute,
    Spherical,
    Transform,
    edit,
    zoo,
)
from hinge.algebra.rotation import from_rpy
from mechanisms import EPS, ROBOTS, assert_close, gripper, random_state

BODY = Inertia(2.0, (0.1, 0.0, 0.2), np.diag([0.3, 0.4, 0.5]))


def two(**second):
    """A builder with body a and a second body with the given faults."""
    b = MechanismBuilder("m")
    b.add("a", "world", Revolute(), inertia=BODY)
    return b.add(**{"name": "b", "parent": "a", "joint": Revolute(), "inertia": BODY, **second})


BAD = {
    "duplicate body": (lambda: two(name="a"), "m: two bodies or frames are named 'a'"),
    "duplicate joint": (lambda: two(joint_name="a_joint"), "two joints are named 'a_joint'"),
    "duplicate frame": (lambda: two().add_frame("b", "a"), "two bodies or frames are named 'b'"),
    "ground's name": (lambda: two(name="world"), "'world' is the ground"),
    "unknown parent": (lambda: two(parent="aa").build(), "unknown parent 'aa'; did you mean 'a'"),
    "unknown frame body": (
        lambda: two().add_frame("f", "zzz").build(),
        "frame 'f' is on unknown body 'zzz'; known: world, a, b",
    ),
    "cycle": (
        lambda: two(parent="c").add("c", "b", Revolute()).build(),
        "bodies b, c form a cycle",
    ),
    "negative mass": (lambda: two(inertia=Inertia(-1.0)), "body 'b': mass is -1 kg"),
    "nan mass": (lambda: two(inertia=Inertia(np.nan)), "body 'b': mass is nan"),
    "infinite com": (lambda: two(inertia=Inertia(1.0, (0, np.inf, 0))), "body 'b': com is"),
    "nonphysical": (
        lambda: MechanismBuilder("m", nonphysical="ignore"),
        "m: nonphysical is 'ignore'; expected one of error, warn, accept",
    ),
    "text mass": (lambda: two(inertia=Inertia("heavy")), "mass is 'heavy'; expected numbers"),
    "asymmetric": (
        lambda: two(inertia=Inertia(1.0, about_com=[[1, 0.5, 0], [0, 1, 0], [0, 0, 1]])),
        "body 'b': about_com is not symmetric",
    ),
    "indefinite": (
        lambda: two(inertia=Inertia(1.0, about_com=np.diag([1.0, 1.0, -0.1]))),
        "body 'b': principal moments .* positive semidefinite",
    ),
    "triangle": (
        lambda: two(inertia=Inertia(1.0, about_com=np.diag([1.0, 1.0, 2.1]))),
        "body 'b': principal moments .* triangle inequality",
    ),
    "not a rotation": (
        lambda: two(placement=Transform(2 * np.eye(3))),
        "body 'b': its placement: rotation is not orthonormal",
    ),
    "a reflection": (
        lambda: two(offset=Transform(np.diag([1.0, 1.0, -1.0]))),
        "body 'b': its offset: rotation is not orthonormal and right-handed",
    ),
    "nan translation": (
        lambda: two(placement=Transform(translation=(0, 0, np.nan))),
        "body 'b': its placement: translation is",
    ),
    "bad frame": (
        lambda: two().add_frame("f", "a", Transform(np.zeros((3, 3)))),
        "frame 'f': its placement: rotation",
    ),
    "bad gravity": (lambda: MechanismBuilder("m", gravity=(0, 0)), r"gravity has shape \(2,\)"),
    "a word for a joint": (
        lambda: two(joint="revolute"),
        "body 'b': its joint is 'revolute'; expected such as hinge.Revolute",
    ),
    "a class for a joint": (
        lambda: two(joint=Revolute),
        "its joint is <class .*; expected such as",
    ),
    "a point for a placement": (
        lambda: two(placement=(0, 0, 1)),
        r"its placement is \(0, 0, 1\); expected such as hinge.Transform",
    ),
    "a mass for an inertia": (lambda: two(inertia=1.0), "its inertia is 1.0; .*hinge.Inertia"),
    "a point for a frame": (lambda: two().add_frame("f", "a", (0, 0, 1)), "frame 'f': its placem"),
    "nothing to load": (lambda: hinge.load(None), "load needs the path of a URDF or MJCF file"),
    "mimic unknown": (
        lambda: two(joint=Revolute(mimic=Mimic("a_joit"))).build(),
        "joint 'b_joint' mimics 'a_joit', which .* did you mean 'a_joint'",
    ),
    "mimic itself": (lambda: two(joint=Revolute(mimic=Mimic("b_joint"))).build(), "in a circle"),
    "mimic nan": (
        lambda: two(joint=Revolute(mimic=Mimic("a_joint", np.nan))).build(),
        "mimics 'a_joint' with ratio nan",
    ),
    "mimic of many": (
        lambda: two(joint=Revolute(mimic=Mimic("c_joint"))).add("c", "a", Spherical()).build(),
        "mimics 'c_joint', which has 3 DoF",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_mechanisms_are_refused(case):
    make, message = BAD[case]
    with pytest.raises(ModelError, match=message):
        make()


def test_bad_shapes_of_values_are_refused():
    with pytest.raises(TypeError, match="an inertia is a SpatialInertia or a"):
        hinge.algebra.spatial.congruence("heavy", None)
    with pytest.raises(ModelError, match="3×3 rotation.*; Transform.from_matrix takes a 4×4 mat"):
        Transform(np.eye(4))
    with pytest.raises(ModelError, match=r"expected such as hinge.Transform.from_matrix\("):
        MechanismBuilder("m").add("a", placement=np.eye(4))
    with pytest.raises(ValueError, match="3×3 rotation"):
        Transform(np.eye(2))
    with pytest.raises(ValueError, match="com of 3 numbers"):
        Inertia(1.0, (0, 0))


def test_a_file_may_be_warned_about_instead():
    b = MechanismBuilder("m", nonphysical="warn")
    with pytest.warns(ModelWarning, match="body 'a': principal moments"):
        b.add("a", "world", Revolute(), inertia=Inertia(1.0, about_com=np.diag([1.0, 1.0, 3.0])))


def test_bodies_are_depth_first_whatever_the_order_of_adding():
    b = MechanismBuilder("m")
    for name, parent in [("c", "b"), ("d", "a"), ("b", "a"), ("e", "world"), ("a", "world")]:
        b.add(name, parent, Revolute(), inertia=BODY)
    mech = b.build()
    assert mech.body_names == ("e", "a", "d", "b", "c")
    assert [p for p, _ in mech.outward()] == [0, 0, 2, 2, 4]
    assert list(mech.inward()) == list(mech.outward())[::-1]
    assert list(mech.ancestors(5)) == [(4, 5), (2, 4), (0, 2)]
    assert list(mech.climb(5)) == [(4, 5), (2, 4)]


def test_fixed_joints_merge_and_keep_their_frames():
    turn = Transform(from_rpy(0.1, 0.2, 0.3), (1.0, 2.0, 3.0))
    shape = hinge.Shape("sphere", (0.1,))
    b = MechanismBuilder("m")
    b.add("base", "world", visuals=[shape])
    b.add("a", "base", Revolute(), placement=turn, inertia=BODY)
    b.add("tool", "a", placement=turn, offset=turn, inertia=BODY, visuals=[shape])
    b.add("b", "tool", Revolute(), placement=turn, inertia=BODY)
    mech = b.build()
    assert mech.body_names == ("a", "b")
    assert mech.frame_names == ("world", "base", "a", "tool", "b")
    assert mech.frame("tool").placement == turn @ turn
    assert mech.bodies[1].inertia == BODY + BODY.moved(turn @ turn)
    assert mech.bodies[1].visuals[0].placement == turn @ turn
    assert mech.bodies[0].visuals == (shape,)
    assert mech.bodies[2].placement == turn @ turn @ turn


def test_merged_inertia_is_the_sum_of_spatial_inertias():
    turn = Transform(from_rpy(0.1, -1.2, 0.3), (1.0, -2.0, 3.0))
    both = (BODY + BODY.moved(turn)).spatial.matrix
    moved = hinge.algebra.spatial.congruence(
        BODY.spatial, hinge.algebra.spatial.ForceTransfer(turn.rotation, turn.translation)
    )
    assert_close(both, BODY.spatial.matrix + moved.matrix, 10 * EPS)
    assert (Inertia() + Inertia()).mass == 0


@pytest.mark.parametrize("name", ROBOTS)
def test_mechanisms_are_values(name):
    mech = ROBOTS[name].mechanism
    again = pickle.loads(pickle.dumps(mech))
    assert again == mech and hash(again) == hash(mech)
    assert not again.bodies[-1].placement.rotation.flags.writeable
    other = edit.with_gravity(mech, (0, 0, -1.62))
    assert other != mech and other.gravity == (0, 0, -1.62)
    with pytest.raises(FrozenInstanceError):
        mech.name = "other"  # pyright: ignore
    with pytest.raises(AttributeError, match="immutable"):
        mech.bodies[0].placement.rotation = np.eye(3)
    with pytest.raises(AttributeError, match="immutable"):
        mech.bodies[0].inertia.mass = 3.0
    with pytest.raises(ValueError, match="read-only"):
        mech.bodies[0].placement.rotation[0, 0] = 2.0


def test_unknown_names_are_answered_with_a_hint():
    mech = zoo.quadruped().mechanism
    with pytest.raises(hinge.ArgumentError, match="no joint 'FL_kne'; did you mean 'FL_knee'"):
        mech.q_slice("FL_kne")
    with pytest.raises(hinge.ArgumentError, match="no body 'torso'"):
        mech.body_index("torso")
    with pytest.raises(hinge.ArgumentError, match="no frame 'FL_fot'; did you mean 'FL_foot'"):
        mech.frame("FL_fot")


class CountedName(str):
    """A name that counts how often it is compared."""

    __slots__ = ()
    comparisons = 0
    __hash__ = str.__hash__

    def __eq__(self, other):
        CountedName.comparisons += 1
        return str.__eq__(self, other)


def test_names_are_found_without_a_search():
    builder, n = hinge.MechanismBuilder("flat"), 200
    names = [CountedName(f"b{i}") for i in range(n)]
    for name in names:
        builder.add(name, joint=hinge.Revolute((0, 0, 1)), joint_name=name)
    mech = builder.build()
    CountedName.comparisons = 0
    assert [mech.joint_index(str(name)) for name in names] == list(range(1, n + 1))
    assert [mech.body_index(str(name)) for name in names] == list(range(1, n + 1))
    assert [mech.frame(str(name)).body for name in names] == list(range(1, n + 1))
    assert CountedName.comparisons < 10 * n


def test_mimic_chains_are_resolved():
    mech = gripper().mechanism
    assert mech.nv == 3 and mech.n_bodies == 5
    mimic = mech.bodies[mech.body_index("tip")].joint.mimic
    assert mimic.joint == "left_joint"
    assert (mimic.ratio, mimic.offset) == pytest.approx((-1.4, -0.1), rel=4 * EPS)
    assert mech.v_slice("tip_joint") == mech.v_slice("left_joint")


def test_mimic_is_the_free_mechanism_along_the_mimicking_directions():
    """q_all = G q + c: forces pull back with Gᵀ, and M = Gᵀ M_all G."""
    robot = gripper()
    s = random_state(robot, 0)
    free = hinge.Robot(_without_mimics(robot.mechanism))
    G = np.array([[1, 0, 0], [0, 1, 0], [0, -0.7, 0], [0, -1.4, 0], [0, 0, 1.0]])
    q = G @ s.q + (0, 0, 0.1, -0.1, 0)
    M = free.mass_matrix(q)
    assert_close(robot.mass_matrix(s.q), G.T @ M @ G, 20 * EPS)
    tau = free.inverse_dynamics(q, G @ s.qd, G @ s.qdd, s.f_ext)
    assert_close(robot.inverse_dynamics(s.q, s.qd, s.qdd, s.f_ext), G.T @ tau, 20 * EPS)


def _without_mimics(mech):
    from dataclasses import replace

    bodies = [replace(b, joint=replace(b.joint, mimic=None)) for b in mech.bodies]
    return replace(mech, bodies=tuple(bodies))


def test_fixed_joint_is_the_default():
    assert MechanismBuilder("m").add("a").build().nv == 0
    assert Fixed().H(np.zeros(0)).shape == (0, 6)


def test_a_rotation_of_few_digits_is_made_one_to_all_of_them():
    exact = from_rpy(0.3, -0.4, 1.0)
    built = {}
    for name, R in (("exact", exact), ("written", np.round(exact, 7))):
        b = hinge.MechanismBuilder("tilted")
        b.add("body", "world", hinge.Revolute(), placement=Transform(R))
        b.add_frame("tip", "body", Transform(R))
        mech = b.build()
        built[name] = mech.bodies[1].placement.rotation
        assert np.array_equal(mech.frame("tip").placement.rotation, built[name])
    assert np.array_equal(built["exact"], exact)
    assert np.abs(built["written"] - exact).max() < 1e-7
    assert np.abs(built["written"] @ built["written"].T - np.eye(3)).max() < 4 * EPS


def test_a_joint_made_of_another_has_its_axis():
    rng = np.random.default_rng(0)
    for axis in rng.normal(size=(200, 3)):
        joint = hinge.Revolute(axis)
        assert replace(joint, armature=1.0).axis == joint.axis


@pytest.mark.parametrize(
    ("vertices", "faces", "said"),
    [
        (np.zeros((3, 2)), [[0, 1, 2]], r"vertices of shape \(3, 2\)"),
        (np.full((3, 3), np.nan), [[0, 1, 2]], "give finite"),
        (np.zeros((3, 3)), [[0, 1, 3]], "whole numbers from 0 to 2"),
        (np.zeros((3, 3)), [[0, -1, 2]], "whole numbers from 0 to 2"),
        (np.zeros((3, 3)), [[0.0, 1.0, 2.0]], "float64; expected"),
    ],
)
def test_triangles_that_are_none_are_refused(vertices, faces, said):
    with pytest.raises(hinge.ModelError, match=said):
        hinge.Triangles(vertices, faces)
