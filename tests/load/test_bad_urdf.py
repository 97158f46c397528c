"""Wrong URDF files: each is one ModelError that names the file, the line and what to do."""

from __future__ import annotations

import builtins
import io
import os
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hinge.errors import ModelError, ModelWarning
from hinge.load import xml
from hinge.load.urdf import read_urdf
from hinge.model.mechanism import Mechanism
from robot_files import ARM, odd_models_allowed, refusal

ELBOW = ARM[ARM.index('  <joint name="elbow"') : ARM.index("</robot>")]
JOINED = '<joint name="x" type="fixed"><parent link="upper"/><child link="world_link"/></joint>'
WRIST = ELBOW.replace("elbow", "wrist")


def refused(text, **options):
    """The message about a wrong text: one line."""
    message = refusal(read_urdf, text, "arm.urdf", **options)
    assert "\n" not in message and len(message) < 400 - len("arm.urdf:")
    return message


def test_the_arm_is_right():
    assert read_urdf(ARM, "arm.urdf").joint_names == ("shoulder", "elbow")


# (what to change in the arm, into what, the beginning of the message: its line, what is wrong)
CHANGES = [
    # numbers
    ('mass value="2"', 'mass value="heavy"', "7: <mass> has value='heavy'; expected one number"),
    ('mass value="2"', 'mass value="nan"', "7: <mass> has value='nan'; expected one number"),
    ('mass value="2"', 'mass value="inf"', "7: <mass> has value='inf'; expected one number"),
    ('mass value="2"', 'mass value="1e13"', "7: <mass> has value='1e13'; expected one number of"),
    ('mass value="2"', 'mass value="1e999"', "7: <mass> has value='1e999'; expected one number"),
    ('mass value="2"', 'mass value="1_0"', "7: <mass> has value='1_0'; expected one number"),
    ('mass value="2"', 'mass value="٣"', "7: <mass> has value='٣'; expected one number"),
    ('mass value="2"', 'mass value="1 2"', "7: <mass> has value='1 2'; expected one number"),
    ('mass value="2"', 'mass value=""', "7: <mass> has an empty attribute 'value'; give it"),
    ('mass value="2"', f'mass value="{"1" * 500}"', "7: <mass> has value='1111"),
    ('mass value="2"', 'mass value="-2"', "4: <link> 'upper': arm: body 'upper': mass is -2 kg"),
    ('xyz="0 0 1"', 'xyz="1 2"', "20: <origin> has xyz='1 2'; expected 3 numbers"),
    ('xyz="0 0 1"', 'xyz="1 2 3 4"', "20: <origin> has xyz='1 2 3 4'; expected 3 numbers"),
    ('xyz="0 0 1"', 'xyz="0 0 ${z}"', "20: <origin> has xyz='0 0 ${z}'; expected 3 numbers"),
    ('rpy="0 0 0.1"', 'rpy="0 0 -inf"', "20: <origin> has rpy='0 0 -inf'; expected 3 numbers"),
    ('damping="0.1"', 'damping="-1"', "17: <joint> 'shoulder': Revolute: damping is -1; it must"),
    ('<axis xyz="0 1 0"/>', '<axis xyz="0 0 0"/>', "21: <joint> 'shoulder' has axis (0.0, 0.0, 0"),
    ('rpy="0 0 0.1"', 'quat_xyzw="0 0 0 0"', "20: <origin> has quat_xyzw of length 0; give a unit"),
    ('rpy="0 0 0.1"', 'rpy="0 0 0" quat_xyzw="0 0 0 1"', "20: <origin> has both rpy and quat_xyzw"),
    ('multiplier="2"', 'multiplier="1e20"', "29: <mimic> has multiplier='1e20'; expected one"),
    # missing
    (' type="revolute"', "", "17: <joint> has no attribute 'type' (it has name); add it"),
    ('joint name="shoulder"', "joint", "17: <joint> has no attribute 'name' (it has type); add"),
    ('name="shoulder"', 'name=" "', "17: <joint> has an empty attribute 'name'; give it a value"),
    ('<parent link="base"/>', "", "17: <joint> 'shoulder' has no <parent>; add one"),
    ('<child link="upper"/>', "", "17: <joint> 'shoulder' has no <child>; add one"),
    ('parent link="base"', "parent", "18: <parent> has no attribute 'link'; add it"),
    ('link name="base"', "link", "3: <link> has no attribute 'name'; add it"),
    (
        'ixx="0.1" ',
        "",
        "8: <inertia> has no attribute 'ixx' (it has ixy, ixz, iyy, iyz, izz); add it",
    ),
    ('mass value="2"', "mass", "7: <mass> has no attribute 'value'; add it"),
    ('<mass value="2"/>', "", "5: <inertial> has no <mass>, and one is meant; add it"),
    ('<axis xyz="0 1 0"/>', "<axis/>", "21: <axis> has no attribute 'xyz'; add it"),
    (
        'mimic joint="shoulder" ',
        "mimic ",
        "29: <mimic> has no attribute 'joint' (it has multiplier",
    ),
    (
        "izz=",
        "izx=",
        "8: <inertia> has no attribute 'izz' (it has ixx, ixy, ixz, iyy, iyz, izx",
    ),
    # twice
    (
        '<mass value="2"/>',
        '<mass value="2"/><mass value="3"/>',
        "7: <inertial> has 2 <mass>, the fi",
    ),
    ('link name="lower"', 'link name="base"', "16: <link> 'base' is there twice, first on line 3"),
    ('joint name="elbow"', 'joint name="shoulder"', "25: <joint> 'shoulder' is there twice, first"),
    ('child link="lower"', 'child link="upper"', "25: link 'upper' is the child of joints 'shou"),
    # unknown
    (
        '"revolute"',
        '"revolut"',
        "17: <joint> 'shoulder' has unknown type 'revolut'; did you mean 're",
    ),
    ('parent link="base"', 'parent link="bass"', "18: <joint> 'shoulder' has unknown parent link"),
    ('child link="lower"', 'child link="low"', "27: <joint> 'elbow' has unknown child link 'low'"),
    ('mimic joint="shoulder"', 'mimic joint="x"', "29: joint 'elbow' mimics 'x', which is not the"),
    (
        "multiplier",
        "multipler",
        "29: <mimic> has an unknown attribute 'multipler'; did you mean 'mu",
    ),
    (
        'iyy="0.1"',
        'iyy="0.1" iyx="0.01"',
        "8: <inertia> has ixy=0 and iyx=0.01; an inertia is ",
    ),
    ("izz=", "ixz2='1' izz=", "8: <inertia> has an unknown attribute 'ixz2'; did you mean 'ixz'?"),
    (
        "damping=",
        "dampin=",
        "23: <dynamics> has an unknown attribute 'dampin'; did you mean 'da",
    ),
    (' rpy="0 0 0.1"', ' rpv="0 0 1"', "20: <origin> has an unknown attribute 'rpv'; did you mean"),
    ("inertial", "inertal", "5: <link> 'upper' has an unknown element <inertal>; did you mean <in"),
    (
        "<axis",
        "<Axis",
        "21: <joint> 'shoulder' has an unknown element <Axis>; did you mean <axis>?",
    ),
    ('<link name="base"/>', "<xacro:include/>", "3: <xacro:include> is xacro, not URDF; expand"),
    # trees
    (
        '<link name="base"/>',
        '<link name="x"/><link name="base"/>',
        "3: 2 links have no parent: 'x'",
    ),
    (ELBOW, "", "16: 2 links have no parent: 'base' (line 3), 'lower' (line 16); a robot has one"),
    (
        'child link="lower"',
        'child link="base"',
        "25: joints 'elbow' (line 25), 'shoulder' (line 17",
    ),
    ('"shoulder" m', '"elbow" m', "25: joints 'elbow' mimic one another in a circle; free one"),
    ('type="revolute"', 'type="fixed"', "29: joint 'elbow' mimics 'shoulder', but 'shoulder' is f"),
    ('type="continuous"', 'type="planar"', "29: joint 'elbow' mimics 'shoulder', but 'elbow' is p"),
]


@pytest.mark.parametrize(("old", "new", "message"), CHANGES, ids=[c[2][:40] for c in CHANGES])
def test_a_wrong_robot_is_one_error(old, new, message):
    assert old in ARM
    assert refused(ARM.replace(old, new)).startswith(message)


BOMB = """<!DOCTYPE robot [<!ENTITY a "aaaaaaaaaa">
<!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>
<robot name="&b;"><link name="a"/></robot>"""
FOREIGN = '<?xml version="1.0" encoding="{}"?><robot/>'
DOCUMENTS = [
    ("", "1: the file has no XML element; expected a robot description"),
    (" \n<!-- nothing -->\n", "3: the file has no XML element; expected a robot description"),
    ("solid teapot", "1: not well-formed XML (syntax error); correct the file, or check that it"),
    ("\x00\x01\x02", "1: not well-formed XML"),
    (b"\xff\xfe<robot", "1: not well-formed XML"),
    (b"<robot name='\xff'/>", "1: not well-formed XML (not well-formed (invalid token)); correct"),
    ("<robot name='\ud800'/>", "1: not well-formed XML (not well-formed (invalid token)); correct"),
    ("<robot/><robot/>", "1: not well-formed XML (junk after document element); correct the file"),
    (
        ARM[:200],
        "8: the file ends inside <inertial> of line 5; it is cut off, or lacks </inertial>",
    ),
    (
        ARM[:-10],
        "30: the file ends inside <robot> 'arm' of line 2; it is cut off, or lacks </robot>",
    ),
    (
        ARM.replace("</link>", "</lnk>"),
        "15: a closing tag does not fit <link> 'upper' of line 4; e",
    ),
    (
        ARM.replace("<mass value", "<mass value value"),
        "7: not well-formed XML inside <inertial> of",
    ),
    (ARM.replace('"2"', '"2&two;"'), "7: not well-formed XML inside <inertial> of line 5 (undefi"),
    (BOMB, "1: the document type 'robot' declares entities or names another file; neither is"),
    ('<!DOCTYPE r SYSTEM "file:///etc/hostname"><r/>', "1: the document type 'r' declares entit"),
    ('<!DOCTYPE r PUBLIC "-//A//B" "http://127.0.0.1/x"><r/>', "1: the document type 'r' declare"),
    *(
        (
            FOREIGN.format(name).encode(),
            f"1: unknown text encoding '{name}'; save the file as UTF-8",
        )
        for name in ("klingon", "big5", "rot13", "unicode_escape", "idna", "cp037", "utf-7", "")
    ),
    (FOREIGN.format("klingon").encode("utf-16"), "1: unknown text encoding (unknown encoding: kl"),
    ("<mujoco/>", "1: the root element is <mujoco>; expected <robot> for URDF"),
    ("\n<robot/>", "2: <robot> has no <link>; a robot needs at least one"),
    ("<a>" * 3_500_000, "1: elements are nested more than 200 deep; flatten them"),
    ("<a b='" + "x" * 10_000_000, "1: not well-formed XML (unclosed token); correct the file"),
    ("<robot>" + "<!-- -- " * 1_000_000, "1: not well-formed XML inside <robot> of line 1"),
    ("<robot>" + "<!-- -- -->" * 100_000, "1: the file ends inside <robot> of line 1; it is cut"),
    ("<" + "a" * 10_000_000 + "/>", "1: the root element is <aaaa"),
    (f"<robot><link name='{'x' * 10_000_000}'><inertal/></link></robot>", "1: <link> 'xxx"),
]


@pytest.mark.parametrize(("text", "message"), DOCUMENTS, ids=[m[:40] for _, m in DOCUMENTS])
def test_a_wrong_document_is_one_error(text, message):
    start = time.perf_counter()
    assert refused(text).startswith(message)
    assert time.perf_counter() - start < 2


def test_too_much_of_everything(monkeypatch):
    monkeypatch.setattr(xml, "MAX_ELEMENTS", 10)
    assert refused(ARM).startswith("12: there are more than 10 elements; split the file")
    monkeypatch.setattr(xml, "MAX_BYTES", 100)
    assert refused(ARM).startswith(f"1: has {len(ARM)} bytes; at most 100 are read")


def test_a_density_is_no_mass():
    begin, end = ARM.index('<mass value="2"/>'), ARM.index("</inertial>")
    text = ARM[:begin] + '<density value="2"/>' + ARM[end:]
    assert refused(text).startswith("5: <inertial> has no <mass>, and one is meant")


def test_loops_of_joints():
    message = refused(ARM.replace('parent link="base"', 'parent link="lower"'))
    assert message.startswith("17: joints 'shoulder' (line 17), 'elbow' (line 25) form a loop")
    wrist = WRIST.replace('"lower"', '"base"').replace('"upper"', '"lower"')
    message = refused(ARM.replace("</robot>", wrist + "</robot>"))
    assert "'wrist' (line 31)" in message and "close the loop with a LoopConstraint" in message


def test_circles_of_followers():
    follow = '<mimic joint="elbow"/><axis xyz="0 1 0"/>'
    message = refused(ARM.replace('<axis xyz="0 1 0"/>', follow, 1))
    assert message == "17: joints 'shoulder', 'elbow' mimic one another in a circle; free one"
    into = ARM.replace('mimic joint="shoulder"', 'mimic joint="elbow"')
    message = refused(into.replace('<axis xyz="0 1 0"/>', follow, 1))
    assert message == "25: joints 'elbow' mimic one another in a circle; free one"


def test_followers_that_run_away():
    wrist = WRIST.replace('"lower"', '"hand"').replace('"upper"', '"lower"')
    wrist = '<link name="hand"/>\n' + wrist.replace('"shoulder"', '"elbow"')
    text = ARM.replace("</robot>", wrist + "</robot>")
    message = refused(text.replace('multiplier="2"', 'multiplier="1e11"'))
    assert message.startswith("32: joint 'wrist' follows 'shoulder' 1e+22 times, from 1e+10; expe")


def test_bases_whose_names_are_taken_float():
    world = ARM.replace('"base"', '"world"')
    with pytest.warns(ModelWarning, match="arm.urdf:3: link 'world' is the root and floats; it is"):
        floats = read_urdf(world, "arm.urdf", floating_base=True)
    other = ARM.replace('"base"', '"world_link"')
    assert floats == read_urdf(other, "arm.urdf", floating_base=True)
    both = world.replace("</robot>", f'<link name="world_link"/>{JOINED}' + "</robot>")
    with pytest.warns(ModelWarning, match="it is called 'world_link_'"):
        assert read_urdf(both, "arm.urdf", floating_base=True).body_names[0] == "world_link_"
    taken = ARM.replace('joint name="elbow"', 'joint name="root_joint"')
    with pytest.warns(ModelWarning, match="root_joint' is a joint .*; the floating base has 'root"):
        mech = read_urdf(taken, "arm.urdf", floating_base=True)
    assert mech.joint_names == ("root_joint_", "shoulder", "root_joint")
    assert read_urdf(taken, "arm.urdf").joint_names == ("shoulder", "root_joint")


def test_a_link_with_the_name_of_the_ground_moves():
    text = ARM.replace('"lower"', '"world"')
    with pytest.warns(ModelWarning, match="arm.urdf:16: link 'world' moves; it is called 'world_l"):
        mech = read_urdf(text, "arm.urdf")
    assert mech == read_urdf(ARM.replace('"lower"', '"world_link"'), "arm.urdf")


def test_a_ground_that_is_no_link_floats():
    text = ARM.replace('<link name="base"/>', "").replace(
        'parent link="base"', 'parent link="world"'
    )
    with pytest.warns(ModelWarning) as caught:
        mech = read_urdf(text, "arm.urdf", floating_base=True)
    assert mech.body_names == ("world_link", "upper", "lower")
    assert "'world' is the root and floats" in str(caught[1].message)


def test_nothing_else_is_opened(tmp_path, monkeypatch):
    (tmp_path / "m.stl").write_text("secret")
    mesh = ARM.replace('<box size="0.1 0.1 1"/>', '<mesh filename="m.stl"/>')
    bomb = f'<!DOCTYPE robot [<!ENTITY x SYSTEM "{tmp_path}/m.stl">]><robot name="&x;"/>'

    def refuse(*args, **kwargs):
        raise AssertionError(f"opened {args}")

    for module, name in ((builtins, "open"), (io, "open"), (os, "open")):
        monkeypatch.setattr(module, name, refuse)
    mech = read_urdf(mesh, "arm.urdf", folder=tmp_path)
    message = refused(bomb)
    monkeypatch.undo()
    assert mech.bodies[1].visuals[0].mesh == str(tmp_path / "m.stl")
    assert message.startswith("1: the document type") and "secret" not in message


# anything at all

VALUES = ["", " ", "nan", "-inf", "1e308", "-1", "0 0 0", "1 2 3 4", "world", "base", "upper", "ä"]
VALUES += [
    "elbow",
    "fixed",
    "planar",
    "floating",
    "prismatic",
    "../../x",
    "package://../x",
    "1e-320",
]
PIECES = st.sampled_from(['"', "<", ">", "/", "&amp;", "]]>", "<!--", "\n", "\x00", "<link/>", "é"])


def survives(text):
    """A mechanism or a ModelError with a line, and nothing else."""
    with odd_models_allowed():
        for floating_base in (False, True):
            try:
                mech = read_urdf(text, "arm.urdf", floating_base=floating_base)
                assert isinstance(mech, Mechanism)
            except ModelError as error:
                assert str(error).startswith("arm.urdf:")


@settings(max_examples=300, deadline=None)
@given(st.integers(0, len(ARM)), st.integers(0, 60), PIECES | st.text(max_size=8) | st.just(""))
def test_any_text_loads_or_is_refused(start, length, piece):
    survives(ARM[:start])
    survives(ARM[:start] + piece + ARM[start + length :])
    survives(
        (ARM[:start] + piece).encode("utf-8", "surrogatepass") + b"\xff" + ARM[start:].encode()
    )


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 45), st.sampled_from(VALUES)), min_size=1, max_size=4))
def test_any_values_load_or_are_refused(changes):
    parts = ARM.split('"')
    for i, value in changes:
        parts[3 + 2 * (i % ((len(parts) - 3) // 2))] = value
    survives('"'.join(parts))
