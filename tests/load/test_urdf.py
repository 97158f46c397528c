"""URDF: every robot of example-robot-data against Pinocchio, and every feature on a small file."""

from __future__ import annotations

import importlib
import re
import warnings
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

import hinge
from hinge import algorithms as alg
from hinge.algebra.rotation import from_rpy
from hinge.algebra.spatial import Transform
from hinge.errors import ModelError, ModelWarning
from hinge.load.urdf import read_urdf
from hinge.model.joints import Free, Mimic, Planar, Prismatic, Revolute
from mechanisms import EPS, Generic, assert_close
from robot_files import PANDA, odd_models_allowed, package_folder, robot_file, urdf_files

# files that are wrong, as Pinocchio's reader says too but for the last, whose mimics it skips
WRONG = {
    "ur3.urdf": "ur3.urdf:6: <robot> has no <link>",
    "falcon.urdf": "falcon.urdf:182: <joint> 'top_propeller_joint' has unknown child link 'Z_pro",
    "alex_psyonic_hands.urdf": "1037: joint 'Left_index_q2' mimics 'index_q1', which is not there",
}


@pytest.fixture(scope="module")
def bridge():
    """Pinocchio's view of robots."""
    pytest.importorskip("pinocchio")
    return importlib.import_module("oracle.pinocchio_bridge")


def read(text, **options):
    with warnings.catch_warnings():
        # most joints here have no limits
        warnings.filterwarnings("ignore", ".*nothing limits it", ModelWarning)
        return read_urdf(text, "r.urdf", **options)


def read_quietly(text, **options):
    with odd_models_allowed():
        return read(text, **options)


def by_pinocchio(bridge, text, mech, floating_base=False, model=None):
    """The same robot read by Pinocchio, with its followers as free joints."""
    root = (bridge.pin.JointModelFreeFlyer(),) if floating_base else ()
    model = model or bridge.pin.buildModelFromXML(text, *root)
    return bridge.PinocchioRobot(Generic(hinge.Robot(mech)), model, bridge.followers(text))


def assert_same_motion(oracle, mech, seed=0):
    """Names, link poses and inverse dynamics of one random state."""
    rng = np.random.default_rng(seed)
    q = alg.random_configuration(mech, rng)
    qd, qdd = rng.normal(size=(2, mech.nv))
    assert set(mech.joint_names) == set(oracle.joints)
    assert set(mech.frame_names) == {"world", *oracle.links}
    for name in oracle.links:
        assert_close(alg.frame_pose(mech, q, name), oracle.frame_pose(q, name), 100 * EPS)
    tau = oracle.inverse_dynamics(q, qd, qdd)
    scale = np.abs(tau).max(initial=1e-3)
    assert_close(alg.inverse_dynamics(mech, q, qd, qdd), tau, 100 * EPS, scale)


def assert_same_numbers(bridge, oracle, mech):
    """Inertias of bodies, and limits, damping and friction of joints with one coordinate."""
    model, swap = oracle.model, bridge.SWAP
    for name, joint in oracle.joints.items():
        k = mech.joint_index(name)
        inertia = model.inertias[model.getJointId(name)].matrix()[np.ix_(swap, swap)]
        scale = np.abs(inertia).max(initial=1e-9)
        assert_close(mech.M[k].matrix, inertia, 10 * EPS, scale)
        mine = mech.bodies[k].joint
        assert mine.damping[0] == model.damping[joint.idx_v]
        assert mine.friction[0] == model.upperDryFrictionLimit[joint.idx_v]
        if joint.nv == 1:
            assert mine.velocity_limit[0] == model.upperVelocityLimit[joint.idx_v]
            assert mine.effort_limit[0] == model.upperEffortLimit[joint.idx_v]
        lower, upper = model.lowerPositionLimit[joint.idx_q], model.upperPositionLimit[joint.idx_q]
        if joint.nq == 1 and lower != upper and upper < 1e12:
            assert (mine.lower[0], mine.upper[0]) == (lower, upper)


@pytest.mark.parametrize("floating_base", [False, True], ids=["welded", "floating"])
@pytest.mark.parametrize("path", urdf_files(), ids=lambda path: "/".join(path.parts[-3::2]))
def test_real_robots_match_pinocchio(bridge, path, floating_base):
    text = path.read_text()
    options = {"folder": path.parent, "floating_base": floating_base}
    if path.name in WRONG:
        with pytest.raises(ModelError, match=WRONG[path.name]):
            read_urdf(text, path.name, **options)
        text = _corrected(path.name, text)
    # a root link that is called as the ground is floats under another name
    if floating_base and ET.fromstring(text).find("link[@name='world']") is not None:
        with odd_models_allowed():
            floating = read_urdf(text, path.name, **options)
        text = text.replace('"world"', '"world_link"')
        assert read_quietly(text, **options) == floating
    mech = read_quietly(text, **options)
    oracle = by_pinocchio(bridge, text, mech, floating_base)
    assert_same_numbers(bridge, oracle, mech)
    assert_same_motion(oracle, mech)


def _corrected(name, text):
    """A wrong file, put right."""
    if name == "alex_psyonic_hands.urdf":
        follower = r'(name="(Left|Right)_\w+_q2".*?<mimic joint = ")'
        return re.sub(follower, r"\1\2_", text, flags=re.DOTALL)
    if name == "falcon.urdf":
        return text.replace("Z_propeller", "top_propeller")
    return '<robot name="ur3"><link name="base"/></robot>'


def test_meshes_of_a_real_robot_are_found():
    panda, packages = robot_file(PANDA), [package_folder()]
    mech = read_quietly(panda.read_text(), folder=panda.parent, package_dirs=packages)
    shapes = [s for body in mech.bodies for s in body.visuals]
    assert len(shapes) == 11 and all(Path(s.mesh or "").is_file() for s in shapes)


# features, one small robot each

LUMP = """<inertial><origin xyz="0.1 -0.2 0.3" rpy="0.4 -0.5 0.6"/><mass value="2.5"/>
  <inertia ixx="0.03" ixy="0.002" ixz="-0.003" iyy="0.04" iyz="0.001" izz="0.05"/></inertial>"""
ORIGIN = '<origin xyz="0.5 -1 2" rpy="0.3 0.2 -0.7"/>'
LIMIT = '<limit effort="1" velocity="1" upper="2" lower="-2"/>'


def link(name, contents=LUMP):
    return f'<link name="{name}">{contents}</link>'


def joint(name, kind, parent, child, contents=ORIGIN):
    ends = f'<parent link="{parent}"/><child link="{child}"/>'
    return f'<joint name="{name}" type="{kind}">{ends}{contents}</joint>'


def robot(*parts):
    return '<robot name="r">' + "\n".join(parts) + "</robot>"


def one_joint(kind, contents=ORIGIN):
    return robot(link("a"), link("b"), joint("j", kind, "a", "b", contents))


@pytest.mark.parametrize("floating_base", [False, True])
@pytest.mark.parametrize("axis", ["", '<axis xyz="0 0 1"/>', '<axis xyz="-3 2 1"/>'])
@pytest.mark.parametrize("kind", ["revolute", "continuous", "prismatic", "fixed", "floating"])
def test_joint_types_match_pinocchio(bridge, kind, axis, floating_base):
    text = one_joint(kind, ORIGIN + LIMIT + axis)
    mech = read(text, floating_base=floating_base)
    assert_same_motion(by_pinocchio(bridge, text, mech, floating_base), mech)


def test_joint_data():
    data = """<limit lower="-1" upper="2" velocity="3" effort="4"/>
      <dynamics damping="0.5" friction="0.25"/>"""
    given = {"velocity_limit": 3, "effort_limit": 4, "damping": 0.5, "friction": 0.25}
    x = (1, 0, 0)

    def loaded(kind):
        return read(one_joint(kind, data)).bodies[1].joint

    assert loaded("revolute") == Revolute(x, lower=-1, upper=2, **given)
    assert loaded("prismatic") == Prismatic(x, lower=-1, upper=2, **given)
    assert loaded("continuous") == Revolute(x, **given)
    assert loaded("floating") == Free(**given)
    assert loaded("planar") == Planar(**given)


@pytest.mark.parametrize(
    ("limit", "lower", "upper"),
    [
        ("", -np.inf, np.inf),
        ('<limit effort="1" velocity="2"/>', -np.inf, np.inf),
        ('<limit upper="1"/>', 0, 1),
        ('<limit lower="-1e16" upper="1e16"/>', -np.inf, np.inf),
        ('<limit lower="-inf" upper="+Infinity" velocity="inf"/>', -np.inf, np.inf),
    ],
)
def test_limits_that_are_left_out_or_endless(limit, lower, upper):
    mech = read_quietly(one_joint("revolute", limit))
    assert (mech.bodies[1].joint.lower, mech.bodies[1].joint.upper) == ((lower,), (upper,))


def test_inertial_origin_turns_the_inertia():
    mech = read(one_joint("revolute"))
    I = np.array([[0.03, 0.002, -0.003], [0.002, 0.04, 0.001], [-0.003, 0.001, 0.05]])
    R = from_rpy(0.4, -0.5, 0.6)
    inertia = mech.bodies[1].inertia
    assert inertia.mass == 2.5
    assert_close(inertia.com, (0.1, -0.2, 0.3), 4 * EPS)
    assert_close(inertia.about_com, R @ I @ R.T, 4 * EPS, np.abs(I).max())


def test_origin_with_a_quaternion(bridge):
    quaternion = '<origin xyz="0.5 -1 2" quat_xyzw="0.2 -0.4 0.6 0.8"/>'
    text = one_joint("revolute", quaternion + LIMIT).replace("<robot", '<robot version="1.1"')
    mech = read(text)
    assert_same_motion(by_pinocchio(bridge, text, mech), mech)


@pytest.mark.parametrize("axis", [(0, 0, 1), (0, 0, -1), (1, 0, 0), (-1, 2, 3), (1e-7, 0, -1)])
def test_planar_joint_moves_in_the_plane_normal_to_its_axis(axis):
    mech = read(one_joint("planar", ORIGIN + '<axis xyz="{} {} {}"/>'.format(*axis)))
    X_WJ = Transform(from_rpy(0.3, 0.2, -0.7), (0.5, -1, 2))
    n = np.array(axis) / np.linalg.norm(axis)
    assert_close(alg.frame_pose(mech, np.zeros(3), "b"), X_WJ.matrix, 4 * EPS)
    X = X_WJ.inv.matrix @ alg.frame_pose(mech, np.array([0.3, -0.4, 0.7]), "b")
    assert_close([n @ X[:3, 3], np.linalg.norm(X[:3, 3])], [0, 0.5], 20 * EPS)
    assert_close(X[:3, :3] @ n, n, 10 * EPS)
    v = np.cross(n, (1.0, 1.0, 0.0))
    turned = np.cos(0.7) * v + np.sin(0.7) * np.cross(n, v)
    assert_close(X[:3, :3] @ v, turned, 10 * EPS)


def test_planar_joint_matches_pinocchio(bridge):
    text = one_joint("planar", ORIGIN + '<axis xyz="0 0 1"/>')
    mech = read(text)
    assert_same_motion(by_pinocchio(bridge, text, mech), mech)


def test_tilted_planar_joint_matches_pinocchio_built_by_hand(bridge):
    """Pinocchio's reader ignores the axis of a planar joint, its model does not have to."""
    text = one_joint("planar", ORIGIN + '<axis xyz="-1 2 3"/>')
    mech, pin = read(text), bridge.pin
    to_axis = pin.Quaternion.FromTwoVectors(np.array([0.0, 0, 1]), np.array([-1.0, 2, 3])).matrix()
    origin = pin.SE3(from_rpy(0.3, 0.2, -0.7), np.array([0.5, -1, 2]))
    turn = pin.SE3(to_axis, np.zeros(3))
    model = pin.Model()
    model.addJoint(0, pin.JointModelPlanar(), origin * turn, "j")
    b = mech.bodies[1].inertia
    model.appendBodyToJoint(1, pin.Inertia(b.mass, b.com, b.about_com), turn.inverse())
    model.addFrame(pin.Frame("b", 1, 0, turn.inverse(), pin.FrameType.BODY))
    model.addFrame(pin.Frame("a", 0, 0, pin.SE3.Identity(), pin.FrameType.BODY))
    assert_same_motion(by_pinocchio(bridge, text, mech, model=model), mech)


def test_followers_of_followers(bridge):
    place = ORIGIN + LIMIT
    text = robot(
        *(link(name) for name in "abcd"),
        joint("first", "prismatic", "a", "b", place + '<mimic joint="second" multiplier="-2"/>'),
        joint("second", "revolute", "b", "c", place + '<mimic joint="third" offset="0.3"/>'),
        joint("third", "revolute", "c", "d", place),
    )
    mech = read(text)
    assert mech.nv == 1
    assert mech.bodies[1].joint.mimic == Mimic("third", -2.0, -0.6)
    assert_same_motion(by_pinocchio(bridge, text, mech), mech)


def test_fixed_joint_that_mimics_stays_fixed():
    text = robot(
        *(link(name) for name in "abc"),
        joint("j", "revolute", "a", "b"),
        joint("k", "fixed", "b", "c", '<mimic joint="j"/>'),
    )
    assert read(text).joint_names == ("j",)


def test_children_in_the_order_of_the_file():
    ends = [("z", "a"), ("b", "z"), ("a", "y"), ("b", "c")]
    joints = [joint(f"{p}{c}", "revolute", p, c) for p, c in ends]
    assert read(robot(*map(link, "abcyz"), *joints)).body_names == ("z", "a", "y", "c")


def test_root_link_named_world_is_the_ground():
    box = '<visual><geometry><box size="1 2 3"/></geometry></visual>'
    text = robot(link("world", box + box.replace("visual", "collision")), link("b"))
    mech = read(text.replace("</robot>", joint("j", "revolute", "world", "b") + "</robot>"))
    assert mech.frame_names == ("world", "b") and mech.body_names == ("b",)
    assert [s.size for s in mech.bodies[0].visuals + mech.bodies[0].collisions] == [(1, 2, 3)] * 2
    alone = read(robot(link("world")))
    assert alone.nq == 0 and alone.frame_names == ("world",)


def test_floating_base():
    mech = read(one_joint("revolute"), floating_base=True)
    assert mech.joint_names == ("root_joint", "j") and mech.nq == 8 and mech.nv == 7
    assert mech.bodies[1].joint == Free() and mech.bodies[1].name == "a"


def test_links_without_mass():
    no_mass = (
        '<inertial><mass value="0"/><inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/>'
    )
    text = robot(link("a"), link("b", no_mass + "</inertial>"), link("c", ""))
    joints = joint("j", "revolute", "a", "b") + joint("k", "revolute", "b", "c")
    mech = read(text.replace("</robot>", joints + "</robot>"))
    assert [body.inertia.mass for body in mech.bodies] == [2.5, 0, 0]
    assert hinge.Robot(mech).total_mass == 0


def test_shapes_and_colors():
    def shape(tag, geometry, material=""):
        return f"<{tag} name='s'>{ORIGIN}<geometry>{geometry}</geometry>{material}</{tag}>"

    contents = (
        shape("visual", '<box size="1 2 3"/>', '<material name="red"/>')
        + shape("visual", '<sphere radius="2"/>', '<material name="later"/>')
        + shape("visual", '<cylinder radius="1" length="4"/>', '<material name="nowhere"/>')
        + shape("visual", '<capsule radius="1" length="5"/>')
        + shape("collision", '<mesh filename="m.stl" scale="1 1 -1"/>')
    )
    own = '<material name="later"><color rgba="0 0 1 0.5"/></material>'
    other = shape("visual", '<sphere radius="1"/>', own)
    red = '<material name="red"><color rgba="1 0 0 1"/></material>'
    text = robot(red, link("a", contents), link("b", other), joint("j", "revolute", "a", "b"))
    mech = read(text)
    box, sphere, cylinder, capsule = mech.bodies[0].visuals
    assert (box.kind, box.size, box.rgba, box.name) == ("box", (1, 2, 3), (1, 0, 0, 1), "s")
    assert (sphere.size, sphere.rgba) == ((2,), (0, 0, 1, 0.5))
    assert (cylinder.size, cylinder.rgba) == ((1, 4), (0.7, 0.7, 0.7, 1))
    assert (capsule.kind, capsule.size) == ("capsule", (1, 5))
    assert box.placement == Transform(from_rpy(0.3, 0.2, -0.7), (0.5, -1, 2))
    (mesh,) = mech.bodies[0].collisions
    assert (mesh.kind, mesh.size, mesh.mesh) == ("mesh", (1, 1, -1), "m.stl")
    assert mech.bodies[1].visuals[0].rgba == (0, 0, 1, 0.5)


def test_attributes_of_other_programs_are_ignored_with_one_warning():
    limits = '<limit current="1" lower="-1" upper="1"/>'
    text = robot(
        *map(link, "abc"),
        joint("j", "revolute", "a", "b", limits),
        joint("k", "revolute", "b", "c", limits),
    )
    with pytest.warns(ModelWarning) as caught:
        read(text)
    assert [str(w.message) for w in caught] == [
        "r.urdf:7: <limit> has unknown attributes 'current', left out (1 more like this)"
    ]


def test_inertia_that_no_body_can_have_is_a_warning():
    with pytest.warns(ModelWarning, match="body 'a': .* triangle inequality"):
        read(robot(link("a", LUMP.replace('izz="0.05"', 'izz="0.5"'))))


def test_what_a_file_may_carry():
    extras = '<gazebo reference="a"><x/></gazebo><transmission name="t"/>'
    text = robot(link("a", "<contact/><self_filter/>"), extras).replace("name=", "x:y='z' name=")
    assert read("<!DOCTYPE robot>" + text).name == "r"
    assert read("<!-- a comment --><robot><link name='a'/></robot>").name == "robot"
    latin = "<?xml version='1.0' encoding='latin-1'?><robot name='é'><link name='a'/></robot>"
    assert read(latin.encode("latin-1")).name == "é"
    assert read(latin).name == "é"


def test_long_chain_of_links_and_followers():
    n = 1500
    links = [link(f"l{i}", "") for i in range(n + 1)]
    follow = '<mimic joint="j{}"/>'
    joints = [
        joint(f"j{i}", "revolute", f"l{i}", f"l{i + 1}", follow.format(i + 1) if i < n - 1 else "")
        for i in range(n)
    ]
    mech = read(robot(*links, *joints))
    assert mech.n_bodies == n and mech.nv == 1
    assert mech.bodies[1].joint.mimic == Mimic(f"j{n - 1}")
