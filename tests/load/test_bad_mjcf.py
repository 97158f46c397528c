"""Wrong MJCF files: each is one ModelError that names the file and, where it is known, the line."""

from __future__ import annotations

import builtins
import functools
import io
import os
import random
import re
import time
from pathlib import Path

import pytest

from hinge.errors import ModelError, ModelWarning
from hinge.load.mjcf import read_mjcf
from hinge.model.mechanism import Mechanism
from robot_files import odd_models_allowed, refusal

mujoco = pytest.importorskip("mujoco")

ARM = """<mujoco model="arm">
  <compiler angle="radian"/>
  <option gravity="0 0 -9.81"/>
  <default>
    <joint armature=".1" damping="1"/>
    <default class="arm"><geom type="capsule" size=".05 .2"/></default>
  </default>
  <asset>
    <texture name="grid" type="2d" builtin="checker" width="20" height="20"/>
    <material name="mat" texture="grid" rgba="1 0 0 1"/>
    <mesh name="tetra" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/>
  </asset>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 .1" material="mat"/>
    <body name="upper" pos="0 0 1" childclass="arm">
      <joint name="shoulder" axis="0 1 0" range="-1 1" ref=".1" pos="0 0 .1"/>
      <geom name="bone" fromto="0 0 0 0 0 -.4"/>
      <site name="elbow_site" pos="0 0 -.4"/>
      <body name="lower" pos="0 0 -.4" quat="1 0 0 0">
        <joint name="elbow" type="ball"/>
        <geom type="mesh" mesh="tetra" mass="1"/>
        <replicate count="3" offset=".1 0 0">
          <body name="finger"><joint name="bend"/><geom type="sphere" size=".05"/></body>
        </replicate>
      </body>
    </body>
    <body name="stone" pos="1 0 1"><freejoint/>
      <inertial mass="2" pos="0 0 0" diaginertia=".1 .1 .1"/></body>
  </worldbody>
  <equality><joint joint1="shoulder" active="false"/></equality>
  <actuator><motor name="motor" joint="shoulder" gear="10" ctrlrange="-1 1"/></actuator>
  <sensor><jointpos joint="shoulder"/></sensor>
</mujoco>
"""
TETRAHEDRON = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"


@pytest.fixture(autouse=True)
def working_folder(tmp_path, monkeypatch):
    """A model's folder with files in and around it; the working folder stays as it is."""
    for path, text in {
        "secret.xml": "<mujoco><worldbody/></mujoco>",
        "secret.obj": TETRAHEDRON,
        "model/setup.py": "",  # a project of its own
        "model/empty.xml": "<mujocoinclude/>",
        "model/loop.xml": '<m>\n<worldbody/>\n<include file="loop.xml"/></m>',
        "model/ping.xml": '<m><worldbody/>\n<include file="pong.xml"/></m>',
        "model/pong.xml": '<m><worldbody/>\n\n<include file="ping.xml"/></m>',
        "model/cut.xml": "<m>\n<worldbody>\n<body",
        "model/part.xml": "<m>\n\n<worldbody>\n\n<geom size='-1'/></worldbody></m>",
        "model/sub/climbs.xml": '<m>\n<worldbody/>\n<include file="../../secret.xml"/></m>',
        "model/junk.stl": "junk",
        "model/itself.xml": '<mujoco><asset>\n<model file="itself.xml"/></asset></mujoco>',
        "model/child.xml": '<mujoco>\n<worldbody>\n<body name="c" poss="1"/></worldbody></mujoco>',
        "model/tip.xml": '<mujoco>\n<worldbody>\n<body name="t">\n<joint axis="0 0 0"/>\n'
        '<geom size=".1"/></body></worldbody></mujoco>',
        "model/robot.xml": '<robot name="r"/>',
        "work/notes.txt": "",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    deep = ['<m><worldbody/><include file="d1.xml"/></m>']
    deep += [
        "<m>" + "<a>" * 50 + f'<include file="d{i + 1}.xml"/>' + "</a>" * 50 + "</m>"
        for i in range(1, 6)
    ]
    for i, text in enumerate(deep):
        (tmp_path / "model" / f"d{i}.xml").write_text(text)
    for i in range(7):
        inside = f'<asset><model file="m{i + 1}.xml"/></asset>'
        (tmp_path / "model" / f"m{i}.xml").write_text(f"<mujoco>{inside}</mujoco>")
    monkeypatch.chdir(tmp_path / "work")
    yield tmp_path / "model"
    assert os.listdir(tmp_path / "work") == ["notes.txt"]


def refused(text, folder=None, **options) -> str:
    """The message about a wrong text."""
    with odd_models_allowed():
        return refusal(read_mjcf, text, "arm.xml", folder=folder, **options)


def world(inside: str, before: str = "") -> str:
    return f"<mujoco>{before}\n<worldbody>\n{inside}\n</worldbody></mujoco>"


def body(joint: str = "", geom: str = 'size=".1"', attributes: str = "") -> str:
    return world(f'<body name="b" {attributes}>\n<joint name="j" {joint}/>\n<geom {geom}/></body>')


BOMB = "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, 10))

WRONG = {
    # what is not XML, or not MJCF
    "not XML": ("mujoco!", "1: not well-formed XML"),
    "empty": ("", "1: the file has no XML element"),
    "blank": (" \n ", "2: the file has no XML element"),
    "truncated": (ARM[:400], r"\d+: the file ends inside"),
    "entity bomb": (
        f'<!DOCTYPE m [<!ENTITY a0 "x">{BOMB}]><mujoco model="&a9;"/>',
        "1: the document",
    ),
    "external entity": (
        '<!DOCTYPE m [<!ENTITY x SYSTEM "../secret.xml">]><mujoco model="&x;"/>',
        "1: the document type",
    ),
    "wrong root": ('\n<robot name="r"/>', "2: the root is <robot>; expected <mujoco>"),
    "ten megabytes of nesting": (
        "<mujoco><worldbody>" + "<body>" * 1_700_000,
        "1: elements are nested more than",
    ),
    # what MuJoCo does not know
    "unknown element": (world("<leg/>"), "3: MuJoCo refuses it: .*unrecognized element"),
    "unknown attribute": (body(joint='axe="1 0 0"'), "4: MuJoCo refuses it: .*'axe'"),
    "unknown class": (ARM.replace('joint name="elbow"', 'joint class="leg"'), "20: .*'leg'"),
    "unknown mesh": (ARM.replace('mesh="tetra"', 'mesh="cube"'), "21: .*'cube'"),
    "two bodies of a name": (world('<body name="a"/>\n<body name="a"/>'), r"(4:)? ?.*name 'a'"),
    # numbers
    "zero axis": (body(joint='axis="0 0 0"'), r"4: MuJoCo refuses it: axis too small .*\('j'\)"),
    "negative size": (body(geom='size="-1"'), "5: MuJoCo refuses it: size 0 must be positive"),
    "no size": (body(geom=""), "5: MuJoCo refuses it: size 0 must be positive"),
    "no mass": (body(geom='size="1" mass="0"'), "3: .*mass and inertia of moving bodies"),
    "a word": (body(attributes='pos="1 two 3"'), "3: .*'pos'"),
    "too many digits": (body(attributes='pos="1e999 0 0"'), "3: .*'pos'"),
    "NaN": (body(attributes='pos="0 nan 0"'), "3: a number is NaN"),
    "NaN in gravity": (world("", '\n<option gravity="0 0 NaN"/>'), "2: a number is NaN"),
    "zero quaternion": (body(attributes='quat="0 0 0 0"'), "3: MuJoCo refuses it: zero quaternion"),
    "huge position": (body(attributes='pos="1e300 0 0"'), r" body 'b' has pos \[1e\+300"),
    "huge mass": (body(geom='size=".1" mass="1e200"'), " body 'b' has mass 1e"),
    "huge armature": (body(joint='armature="1e200"'), " joint 'j' has armature 1e"),
    "huge reference": (body(joint='ref="1e200"'), r" the model has qpos0 \[1"),
    "huge gravity": (world("", '<option gravity="0 0 1e99"/>'), " the model has gravity"),
    "quaternion that vanishes": (body(attributes='quat="1 1e300 0 0"'), " body 'b' has quat"),
    "negative damping": (body(joint='damping="-1"'), " joint 'j': Revolute: damping is -1"),
    # more than a machine can hold
    "long grid": (
        world('<replicate count="100000"><geom size="1"/></replicate>'),
        "3: with <replicate>, all copies counted, the model needs more than 4.29 GB; .*max_memory",
    ),
    "replicates in replicates": (
        world('<replicate count="500">' * 4 + '<geom size="1"/>' + "</replicate>" * 4),
        "3: with <replicate>, all copies counted",
    ),
    "attached to itself": (
        world("<body name='x'>" + "<attach body='x' prefix='p'/>" * 40 + "</body>"),
        "3: with <attach>, all copies counted",
    ),
    "soft grids": (
        world('<body name="x">' + '<flexcomp count="35 35 35"/>' * 4 + "</body>"),
        "3: with <flexcomp>, all copies counted",
    ),
    "too many elements": (
        world('<geom size="1"/>' * 70_000),
        "3: with <geom>, all copies counted",
    ),
    "hexadecimal": (world('<replicate count="0x7fffffff"/>'), "3: <replicate> has count='0x7f"),
    "fine mesh": (
        world("", '<asset><mesh builtin="wedge" params="900 900 90 90 .1"/></asset>'),
        "1: <mesh> has params='900 900 90 90 .1', which asks for 810000; at most 100000",
    ),
    "smooth mesh": (
        world("", '<asset><mesh builtin="supersphere" params="900 .5 .5"/></asset>'),
        "1: <mesh> has params='900 .5 .5', which asks for 810000; at most 100000",
    ),
    "long memory": (
        world("", '<actuator><general actdim="2000000000"/></actuator>'),
        "1: <general> has actdim='2000000000', which asks for 2e",
    ),
    # what MuJoCo would take for a format
    "format in a class": (world('<geom class="%n%s"/>'), "3: <geom> has class='%n%s'; a class has"),
    "format in a class of children": (
        world('<body childclass="%p"/>'),
        "3: <body> has childclass='%p'; a class has no '%' in its name",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_text(name):
    text, expected = WRONG[name]
    start = time.perf_counter()
    message = refused(text)
    assert time.perf_counter() - start < 10
    assert re.match(expected, message), message


FILES = {
    # includes
    "include of nothing": ("<include/>", "2: <include> has no attribute 'file'"),
    "missing include": (
        '<include file="no.xml"/>',
        "2: <include> names 'no.xml'; there is no such",
    ),
    "include of a folder": ('<include file="sub"/>', "2: <include> names 'sub'; there is no such"),
    "empty include": ('<include file="empty.xml"/>', "2: 'empty.xml' is empty"),
    "include with children": ('<include file="a.xml"><b/></include>', "2: <include> has children"),
    "include that climbs": (
        '<include file="../secret.xml"/>',
        "2: <include> names '../secret.xml', ",
    ),
    "include of a root": ('<include file="/secret.xml"/>', "2: <include> names '/secret.xml', "),
    # assets
    "missing mesh": (
        '<asset><mesh file="no.stl"/></asset>',
        "2: <mesh> names 'no.stl'; there is no",
    ),
    "mesh that climbs": (
        '<asset><mesh file="../secret.obj"/></asset>',
        "2: <mesh> names '../secret.obj', which leads to",
    ),
    "mesh behind a detour": (
        '<asset><mesh file="sub/../../secret.obj"/></asset>',
        "2: <mesh> names 'sub/../../secret.obj', which leads to",
    ),
    "mesh behind backslashes": (
        r'<asset><mesh file="..\secret.obj"/></asset>',
        "2: <mesh> names '../secret.obj', which leads to",
    ),
    "folder that climbs": (
        '<compiler meshdir=".."/><asset><mesh file="secret.obj"/></asset>',
        "2: <mesh> names '../secret.obj', which leads to",
    ),
    "model that climbs": (
        '<asset><model file="../secret.xml"/></asset>',
        "2: <model> names '../secret.xml', which leads to",
    ),
    "mesh through a link": (
        '<asset><mesh file="link.obj"/></asset>',
        "2: <mesh> names 'link.obj', which leads to",
    ),
    "junk for a mesh": (
        '<asset><mesh file="junk.stl"/></asset>'
        '<worldbody><geom type="mesh" mesh="junk"/></worldbody>',
        r"2: MuJoCo refuses it: .*'junk.stl' \('junk'\)",
    ),
    "a mesh that cannot be read": (
        '<asset><mesh file="locked.obj"/></asset>',
        "2: .* cannot be read",
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_wrong_files(name, working_folder, monkeypatch):
    os.symlink("../secret.obj", working_folder / "link.obj")
    (working_folder / "locked.obj").write_text("")
    text, expected = FILES[name]
    opened = watch(monkeypatch)
    message = refused(f"<mujoco>\n{text}</mujoco>", working_folder)
    assert re.match(expected, message), message
    assert all(Path(path).is_relative_to(working_folder) for path in opened), opened


def watch(monkeypatch) -> list[str]:
    """Every path that Python opens from now on, but for what threads of other packages look up of
    processes; locked files cannot be.
    """
    opened, really = [], {builtins: builtins.open, io: io.open, os: os.open}

    def watched(path, *args, how, **kwargs):
        if not isinstance(path, int) and not str(path).startswith("/proc/"):
            opened.append(str(path))
        if "locked" in str(path):
            raise PermissionError(13, "Permission denied", path)
        return really[how](path, *args, **kwargs)

    for how in really:
        monkeypatch.setattr(how, "open", functools.partial(watched, how=how))
    return opened


@pytest.mark.parametrize(
    ("include", "expected"),
    [
        ("loop.xml", "loop.xml:3: 'loop.xml' is included twice, or includes itself"),
        ("ping.xml", "pong.xml:3: 'ping.xml' is included twice, or includes itself"),
        ("cut.xml", r"cut.xml:\d: "),
        ("part.xml", "part.xml:5: MuJoCo refuses it: size 0 must be positive"),
        ("sub/climbs.xml", "sub/climbs.xml:3: <include> names '../../secret.xml', which leads to"),
        ("d0.xml", "d4.xml:1: <a> is nested more than 200 deep by includes"),
    ],
)
def test_errors_in_included_files_name_them(include, expected, working_folder):
    with pytest.raises(ModelError) as caught:
        text = f'<mujoco>\n<include file="{include}"/></mujoco>'
        read_mjcf(text, "robots/arm.xml", folder=working_folder)
    assert re.match(f"robots/{expected}", str(caught.value)), str(caught.value)


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("itself.xml", "itself.xml:2: the model 'itself.xml' contains itself"),
        ("m0.xml", "m3.xml:1: the model 'm4.xml' contains itself, or lies more than 4 models deep"),
        ("child.xml", "child.xml:3: MuJoCo refuses it: .*'poss'"),
        ("tip.xml", "tip.xml:4: MuJoCo refuses it: axis too small"),
        ("robot.xml", "robot.xml:1: the root is <robot>; expected <mujoco>"),
    ],
)
def test_errors_in_attached_models_name_them(model, expected, working_folder):
    with pytest.raises(ModelError) as caught:
        text = f"""<mujoco><asset><model name="m" file="{model}"/></asset><worldbody>
          <attach model="m" body="t" prefix="p"/></worldbody></mujoco>"""
        read_mjcf(text, "robots/arm.xml", folder=working_folder)
    assert re.match(f"robots/{expected}", str(caught.value)), str(caught.value)


def test_text_without_a_folder_names_no_files():
    message = refused('<mujoco>\n<include file="empty.xml"/></mujoco>')
    assert message.startswith(
        "2: <include> names the file 'empty.xml', but this text has no folder"
    )


def test_a_file_that_is_named_often_is_read_once(working_folder, monkeypatch):
    opened = watch(monkeypatch)
    refused(
        "<mujoco><asset>" + '<mesh file="junk.stl"/>' * 50 + "</asset></mujoco>", working_folder
    )
    assert opened == [str(working_folder / "junk.stl")]


def test_a_simulation_that_a_model_asks_for_is_not_run():
    lengths = '<compiler><lengthrange mode="all" inttotal="1e9" timestep="1e-6"/></compiler>'
    room = '<size memory="1000T" njmax="2000000000" nkey="2000000000" nuser_body="2000000000"/>'
    muscle = '<actuator><muscle joint="j"/></actuator>'
    with pytest.warns(ModelWarning, match="servos, .*: actuator0"):
        mech = read_mjcf(body().replace("<mujoco>", f"<mujoco>{lengths}{room}{muscle}"), "arm.xml")
    assert mech.nv == 1


def test_lines_are_those_of_the_file():
    lines = ARM.split("\n")
    for number in [i for i, line in enumerate(lines, 1) if line.strip().startswith("<geom ")]:
        wrong = [line.replace("<geom ", "<geom sighs='1' ") for line in lines[number - 1 : number]]
        text = "\n".join([*lines[: number - 1], *wrong, *lines[number:]])
        assert refused(text).startswith(f"{number}: MuJoCo refuses it: ")


# whatever happens to a file


NUMBERS = [
    "0",
    "-1",
    "1e300",
    "nan",
    "inf",
    "1e400",
    "4294967297",
    "0x7fff",
    "",
    "x",
    "1 2 3 4 5 6",
]
CHARACTERS = "\0\t\n\"&'<>/A0-.é\U0001f600\ud800"


def mutated(rng: random.Random, text: str) -> str:
    """The text with a few things changed that a file may suffer."""
    for _ in range(rng.choice([1, 1, 2, 4])):
        lines = text.split("\n")
        values = list(re.finditer(r'"([^"]*)"', text))
        words = list(re.finditer(r"[a-z]+", text))
        kind = rng.randrange(6)
        at = rng.randrange(len(text) + 1)
        if kind == 0:
            text = text[:at]
        elif kind == 1:
            text = text[:at] + rng.choice(CHARACTERS) + text[at + 1 :]
        elif kind == 2 and values:
            value = rng.choice(values)
            text = text[: value.start(1)] + rng.choice(NUMBERS) + text[value.end(1) :]
        elif kind == 3 and words:
            word, other = rng.choice(words), rng.choice(words)
            text = text[: word.start()] + other[0] + text[word.end() :]
        elif kind == 4:
            lines.insert(rng.randrange(len(lines)), rng.choice(lines))
            text = "\n".join(lines)
        elif kind == 5:
            del lines[rng.randrange(len(lines))]
            text = "\n".join(lines)
    return text


@pytest.mark.parametrize("seed", range(8))
def test_mutated_files_are_read_or_refused(seed, working_folder):
    rng = random.Random(seed)
    outcomes = set()
    for _ in range(150):
        text = mutated(rng, ARM)
        with odd_models_allowed():
            try:
                assert isinstance(read_mjcf(text, "arm.xml", folder=working_folder), Mechanism)
                outcomes.add("read")
            except ModelError as error:
                assert str(error).startswith("arm.xml:"), error
                outcomes.add("refused")
    assert outcomes == {"read", "refused"}
