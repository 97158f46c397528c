"""URDF files with faults that can be read: what is warned of, and what becomes of the robot."""

from __future__ import annotations

import importlib
import inspect
import warnings

import numpy as np
import pytest

import hinge
from hinge import MechanismBuilder
from hinge.errors import ModelError, ModelWarning
from hinge.load.urdf import read_urdf
from hinge.model.joints import Revolute, Spherical
from robot_files import ARM

BOX = '<box size="0.1 0.1 1"/>'
INERTIA = '<inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.02"/>'
RED = '<material name="red"><color rgba="1 0 0 1"/></material>'
PLAIN = read_urdf(ARM, "arm.urdf")


def read(text):
    """The mechanism, and the warnings about it."""
    with pytest.warns(ModelWarning) as caught:
        mech = read_urdf(text, "arm.urdf")
    return mech, [str(w.message).removeprefix("arm.urdf:") for w in caught]


def bare(mech):
    """A mechanism without its shapes and limits: what the dynamics sees."""
    return [
        (b.name, b.parent, b.placement, b.inertia, type(b.joint), b.joint.mimic, b.joint.armature)
        for b in mech.bodies
    ]


# (what to change in the arm, into what, the warning: its line, what is odd)
HARMLESS = [
    # shapes
    (RED, RED * 2, "10: <visual> has 2 <material>; the first is used"),
    (BOX, BOX + '<sphere radius="1"/>', "10: <visual> has 2 shapes; all are kept"),
    (BOX, "", "10: <visual> has no shape; this shape is left out"),
    (f"<geometry>{BOX}</geometry>", "", "10: <visual> has no shape; this shape is left out"),
    (BOX, '<box size="1 -1 1"/>', "12: <box> has a size of -1 m; it must not be negative; this sh"),
    (BOX, "<box/>", "12: <box> has no attribute 'size'; add it; this shape is left out"),
    (BOX, '<bocs size="1 1 1"/>', "12: <geometry> has an unknown shape 'bocs'; known: box, sp"),
    (BOX, "<mesh/>", "12: <mesh> has no attribute 'filename'; add it; this shape is left out"),
    (BOX, '<mesh filename="a" scale="2"/>', "12: <mesh> has one number for a scale; it is used fo"),
    (BOX, '<mesh filename="a" scale="1 x"/>', "12: <mesh> has scale='1 x'; expected 3 numbers"),
    ('<origin xyz="0 0 0.5"/>', '<origin xyz="0 0"/>', "11: <origin> has xyz='0 0'; expected 3"),
    ("1 0 0 1", "1 0 0", "13: <color> has three numbers in rgba; alpha is taken for 1"),
    ("1 0 0 1", "red", "13: <color> has rgba='red'; expected 4 numbers"),
    ("<color", '<color rgba="0 0 0 1"/><color', "13: <material> 'red' has 2 <color>; the first is"),
    ("<visual>", "<Visual/><visual>", "10: <link> 'upper' has an unknown element <Visual>, left o"),
    # limits
    (
        'lower="-1"',
        'lower="nan"',
        "22: <limit> has lower='nan'; expected one number; it is left ou",
    ),
    ('lower="-1"', 'lower="3"', "22: <limit> has lower=3 above upper=1; both are left out"),
    ('effort="3"', 'effort="-3"', "22: <limit> has effort=-3, below 0; it is left out"),
    ('velocity="2"', 'velocity="${v}"', "22: <limit> has velocity='${v}'; expected one number; it"),
    (
        "<limit",
        '<limit lower="-2"/><limit',
        "22: <joint> 'shoulder' has 2 <limit>; the first is us",
    ),
    ('lower="-1"', 'lowr="-1"', "22: <limit> has unknown attributes 'lowr', left out"),
    # words
    ('type="revolute"', 'type="Revolute"', "17: <joint> 'shoulder' has type 'Revolute'; it is rea"),
    ('type="revolute"', 'type="revolute" x=""', "17: <joint> has unknown attributes 'x', left o"),
    ('<axis xyz="0 1 0"/>', '<axis xyz="0 1 0" rpy="0 0 0"/>', "21: <axis> has unknown attributes"),
    ("damping=", 'stiffness="1" damping=', "23: <dynamics> has unknown attributes 'stiffness', "),
    ("<limit", '<armature value="1"/><limit', "22: <joint> 'shoulder' has an unknown element <arm"),
    (
        "</robot>",
        "<loop_joint/></robot>",
        "31: <robot> 'arm' has an unknown element <loop_joint>, ",
    ),
    ('<axis xyz="0 1 0"/>', '<axis xyz="0 1 0"/>' * 2, "21: <joint> 'shoulder' has a second <axi"),
    (INERTIA, INERTIA * 2, "8: <inertial> has a second <inertia> like the first; one is used"),
    # inertia
    ('ixy="0" ixz="0" ', "", "8: <inertia> has no ixy; it is taken for 0 (1 more like this)"),
    ("ixy=", "iyx=", "8: <inertia> has iyx; it is read as ixy"),
    ('value="2"', 'value="\n 2\n .0"', "7: <mass> has value='2  .0', broken over lines; it is rea"),
    ('xyz="0 0 1"', 'xyz="0, 0, 1"', "20: <origin> has xyz='0, 0, 1': commas are left out"),
]


@pytest.mark.parametrize(("old", "new", "message"), HARMLESS, ids=[c[2][:40] for c in HARMLESS])
def test_fault_that_leaves_the_dynamics_alone_is_one_warning(old, new, message):
    assert old in ARM
    mech, said = read(ARM.replace(old, new, 1))
    assert len(said) == 1 and said[0].startswith(message), said
    assert bare(mech) == bare(PLAIN)


def upper(old, new):
    """The body in which something was changed."""
    return read(ARM.replace(old, new))[0].bodies[1]


def test_every_shape_is_kept():
    two = upper(BOX, BOX + '<sphere radius="2"/>').visuals
    assert [shape.kind for shape in two] == ["box", "sphere"]
    assert two[0].placement == two[1].placement and two[0].rgba == two[1].rgba == (1, 0, 0, 1)
    good = f"<geometry><torus/>{BOX}</geometry>"
    assert [s.kind for s in upper(f"<geometry>{BOX}</geometry>", good).visuals] == ["box"]


def test_shapes_of_other_programs():
    drake = '<drake:ellipsoid a="1" b="2" c="3"/><drake:capsule radius="1" length="2"/>'
    shapes = upper(BOX, drake).visuals
    assert [(s.kind, s.size) for s in shapes] == [("ellipsoid", (1, 2, 3)), ("capsule", (1, 2))]


def test_scale_and_color_as_they_are_meant():
    (mesh,) = upper(BOX, '<mesh filename="a.stl" scale="0.001"/>').visuals
    assert mesh.size == (0.001, 0.001, 0.001)
    assert upper('rgba="1 0 0 1"', 'rgba="1 0 0"').visuals[0].rgba == (1, 0, 0, 1)
    assert upper('rgba="1 0 0 1"', 'rgba="red"').visuals[0].rgba == (0.7, 0.7, 0.7, 1)
    other = RED + RED.replace("1 0 0 1", "0 1 0 1").replace("red", "green")
    assert upper(RED, other).visuals[0].rgba == (1, 0, 0, 1)


@pytest.mark.parametrize(
    ("old", "new", "lower", "upper_limit", "effort"),
    [
        ('lower="-1"', 'lower="?"', -np.inf, 1, 3),
        ('upper="1"', 'upper=""', -1, np.inf, 3),
        ('lower="-1"', 'lower="2"', -np.inf, np.inf, 3),
        ('effort="3"', 'effort="-1"', -1, 1, np.inf),
    ],
)
def test_limit_that_cannot_be_one_is_none(old, new, lower, upper_limit, effort):
    joint = upper(old, new).joint
    assert (joint.lower, joint.upper, joint.effort_limit) == ((lower,), (upper_limit,), (effort,))


def test_mass_without_inertia_is_a_point(tmp_path):
    mech, said = read(ARM.replace(INERTIA, ""))
    assert said == ["5: <inertial> has no <inertia>; it is a point mass"]
    inertia = mech.bodies[1].inertia
    assert inertia.mass == 2 and inertia.com.tolist() == [0, 0, 0.5]
    assert not inertia.about_com.any()


def test_inertial_with_nothing_in_it_is_nothing():
    mech, said = read(ARM.replace(INERTIA, "").replace('<mass value="2"/>', ""))
    assert said == ["5: <inertial> has no <mass> and no moments; the link has none"]
    assert mech.bodies[1].inertia.mass == 0
    none = '<inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/>'
    assert read(ARM.replace(INERTIA, none).replace('<mass value="2"/>', "")) == (mech, said)


def test_parent_that_nobody_defines_but_is_the_world():
    mech, said = read(ARM.replace('<link name="base"/>', "").replace('"base"', '"world"'))
    assert said == ["18: there is no link 'world'; it is taken for the ground"]
    assert mech.frame_names == ("world", "upper", "lower") and bare(mech)[1:] == bare(PLAIN)[1:]


def test_inertia_by_either_half():
    full = '<inertia ixx="3" ixy="0.1" ixz="0.2" iyx="0.1" iyy="4" iyz="0.3" izx="0.2" izz="5"/>'
    one = read_urdf(ARM.replace(INERTIA, full), "arm.urdf").bodies[1].inertia.about_com
    lower = '<inertia ixx="3" iyx="0.1" izx="0.2" iyy="4" izy="0.3" izz="5"/>'
    mech, said = read(ARM.replace(INERTIA, lower))
    assert said == ["8: <inertia> has iyx; it is read as ixy (2 more like this)"]
    expected = [[3, 0.1, 0.2], [0.1, 4, 0.3], [0.2, 0.3, 5]]
    assert one.tolist() == mech.bodies[1].inertia.about_com.tolist() == expected


def test_number_broken_over_lines():
    assert upper('value="2"', 'value="2.\n   5"').inertia.mass == 2.5
    assert upper('value="2"', "value  =\n'\r\n1.e-\r\n1'").inertia.mass == 0.1


def test_armature_and_joints_of_other_programs():
    text = ARM.replace("<dynamics ", '<dynamics armature="0.3" ')
    joint = read_urdf(text, "arm.urdf").bodies[1].joint
    given = {"damping": 0.1, "friction": 0.2, "velocity_limit": 2, "effort_limit": 3}
    assert joint == Revolute((0, 1, 0), armature=0.3, lower=-1, upper=1, **given)
    heavier = hinge.Robot(read_urdf(text, "arm.urdf")).mass_matrix(np.zeros(1))
    assert heavier - hinge.Robot(PLAIN).mass_matrix(np.zeros(1)) == pytest.approx(0.3)
    ball = '<joint name="ball" type="spherical"><parent link="lower"/><child link="tip"/></joint>'
    tip = ARM.replace("</robot>", f'<link name="tip"/>{ball}</robot>')
    assert read_urdf(tip, "arm.urdf").bodies[3].joint == Spherical()


# (a text that XML would refuse, and other readers take)
@pytest.mark.parametrize(
    "text",
    [
        "\ufeff" + ARM,
        "\n\t \n" + ARM,
        ARM.replace("<link", "<!-- -- links -- --><link", 1),
        ARM.replace("\n", "\r\n"),
        ARM.encode("utf-16"),
        ARM + " \x00\n\x00",
        ARM.encode().replace(b"<link", b"<!-- 90\xb0 -->\n<link", 1),
    ],
    ids=["mark", "late", "comment", "newlines", "utf-16", "null", "other encoding"],
)
def test_text_that_readers_of_xml_take(text):
    assert read_urdf(text, "arm.urdf") == PLAIN
    if isinstance(text, str):
        assert hinge.load(text).mechanism == PLAIN


def test_line_numbers_below_a_late_declaration():
    late = "\n\n" + ARM.replace('value="2"', 'value="x"').replace("<link", "<!-- -- --><link")
    with pytest.raises(hinge.ModelError, match="^arm.urdf:9: <mass> has value='x'"):
        read_urdf(late, "arm.urdf")
    with pytest.raises(hinge.ModelError, match="^arm.urdf:10: not well-formed XML inside"):
        read_urdf(late.replace('"x"/>', '"x>'), "arm.urdf")


def test_leftovers_of_xacro():
    text = ARM.replace("<link", '<xacro:property name="a" value="1"/><link', 1)
    assert read_urdf(text, "arm.urdf") == PLAIN


# where warnings point

ODD = ARM.replace('izz="0.02"', 'izz="2"').replace('lower="-1"', 'lower="?"')
SERVO = """<mujoco><worldbody><body><joint name="j"/><geom size="1"/></body></worldbody>
  <actuator><position joint="j"/></actuator></mujoco>"""


def by_builder():
    link = PLAIN.bodies[1]
    odd = hinge.Inertia(1.0, about_com=np.diag([1.0, 1.0, 5.0]))
    MechanismBuilder("r", nonphysical="warn").add("a", joint=link.joint, inertia=odd)


def in_a_function_of_its_own():
    return hinge.load(ODD, floating_base=True)


@pytest.mark.parametrize(
    "call",
    [
        lambda: hinge.load(ODD),
        lambda: hinge.Robot(importlib.import_module("hinge.load").load_mechanism(ODD)),
        lambda: read_urdf(ODD, "arm.urdf"),
        in_a_function_of_its_own,
        by_builder,
    ],
)
def test_warning_points_at_the_line_that_called(call):
    with pytest.warns(ModelWarning) as caught:
        call()
    lines, first = inspect.getsourcelines(call)
    for warning in caught:
        assert warning.filename == __file__
        assert first <= warning.lineno < first + len(lines)


def test_warning_about_an_mjcf_file_points_at_the_line_that_called():
    pytest.importorskip("mujoco")
    with pytest.warns(ModelWarning, match="servos") as caught:
        hinge.load(SERVO)
    line = inspect.currentframe().f_lineno - 1
    assert [(w.filename, w.lineno) for w in caught] == [(__file__, line)]


def test_loops_that_other_programs_close_are_told():
    joint = '<gazebo><joint name="loop" type="revolute"/></gazebo></robot>'
    mech, said = read(ARM.replace("</robot>", joint))
    assert bare(mech) == bare(PLAIN)
    assert (
        len(said) == 1 and "<gazebo> closes a loop by <joint> 'loop', which is left out" in said[0]
    )


LIMIT = '<limit lower="-1" upper="1" velocity="2" effort="3"/>'
LIMITS = {
    "": "'shoulder' is revolute and has no <limit>; nothing limits it",
    '<limit velocity="2" effort="3"/>': "has neither lower nor upper; .*URDF's default is 0 to 0",
    '<limit lower="-120" upper="90" effort="3"/>': "from -120 to 90 rad, 19.1 turns; are degrees m",
}


@pytest.mark.parametrize("limit", LIMITS)
def test_limits_that_are_not_meant_so(limit):
    assert LIMIT in ARM
    with pytest.warns(ModelWarning, match=LIMITS[limit]):
        robot = hinge.load(ARM.replace(LIMIT, limit))
    assert robot.lower[0] == (-120 if "120" in limit else -np.inf)


@pytest.mark.parametrize("limit", ['lower="-12.57" upper="12.57"', 'upper="1e16" lower="-1e16"'])
def test_limits_of_two_turns_or_none_are_as_they_are(limit):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hinge.load(ARM.replace('lower="-1" upper="1"', limit))
    slide = ARM.replace('type="revolute"', 'type="prismatic"')
    assert hinge.load(slide.replace('upper="1"', 'upper="300"')).upper[0] == 300


def test_text_after_the_root_element_is_left_out():
    with pytest.warns(ModelWarning, match="<text>:32: what follows </robot> is left out"):
        assert hinge.load(ARM + "and more & more").mechanism == hinge.load(ARM).mechanism


@pytest.mark.parametrize("name", ["utf-8", "UTF8", "latin-1", "ISO_8859-1", "ascii", "cp1252"])
def test_encodings_that_are_read(name):
    declared = ARM.replace("?>", f' encoding="{name}"?>', 1).replace("elbow", "coude")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_urdf(declared.encode(name), "arm.urdf").joint_names == ("shoulder", "coude")


@pytest.mark.parametrize("xyz", ["0,0,1", "0, 0, 1", "0 ,0 ,1", "0,0, 1"])
def test_commas_between_numbers(xyz):
    text = ARM.replace('<origin xyz="0 0 1" rpy', f'<origin xyz="{xyz}" rpy')
    with pytest.warns(ModelWarning, match="commas are left out"):
        assert read_urdf(text, "arm.urdf") == PLAIN


@pytest.mark.parametrize("xyz", ["0,0 1", "0,0,,1", "0,0", "0,5 0 1", "0,0,0,1", ",0,1"])
def test_commas_that_may_be_anything(xyz):
    text = ARM.replace('<origin xyz="0 0 1" rpy', f'<origin xyz="{xyz}" rpy')
    with pytest.raises(ModelError, match="expected 3 numbers"):
        read_urdf(text, "arm.urdf")
