"""The table of MJCF's attributes: complete, true, and on its page."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest

import hinge
from hinge import ModelWarning
from hinge.load import mjcf_table, mujoco_left_out
from hinge.load.mjcf import MujocoState
from hinge.load.mjcf_table import LABELS, SKIPPED, TABLE, row_of
from load.mjcf_page import PAGE, table

mujoco = pytest.importorskip("mujoco")

_ELEMENT = re.compile(r"^( *)(\(world\))?(\w+) \(.\) *(.*)$")


def schema():
    """(the tags from the root on, the attributes) of every element that MuJoCo knows."""
    path, found = [], []
    for line in mujoco.mj_printSchema(False, True).splitlines():
        if m := _ELEMENT.match(line):
            path = [*path[: len(m[1]) // 3], m[3]]
            found.append((tuple(path), m[4].split()))
        elif found:
            found[-1][1].extend(line.split())
    return found


def test_every_attribute_of_the_schema_is_in_the_table():
    elements, missing, seen = schema(), [], set()
    for path, attributes in elements:
        if not set(path) & set(SKIPPED):
            row = row_of(path[-1], path[-2] if len(path) > 1 else "")
            known = set() if row is None else row.all
            seen |= set(attributes)
            missing += [f"{'/'.join(path)}: {n}" for n in attributes if not known & {n, "*"}]
            missing += ["/".join(path)] if row is None else []
    assert not missing
    assert len(elements) > 100 and {"springyield", "gear", "frictionloss", "viscosity"} <= seen


def test_no_attribute_has_two_fates():
    """But for those that are read in part, and named for the rest."""
    for name, row in TABLE.items():
        named = set(" ".join(row.named.values()).split())
        fates = [set(row.read.split()) | named, set(row.solver.split()), set(row.unused.split())]
        assert sum(map(len, fates)) == len(set().union(*fates)), name


def test_labels_of_the_table_are_those_of_warnings():
    assert {label for row in TABLE.values() for label in row.named} <= set(LABELS)
    model = mujoco.MjModel.from_xml_string("<mujoco/>")
    lists = mujoco_left_out._of_joints(model) | mujoco_left_out._of_actuators(model)
    assert set(lists) <= set(LABELS)


def test_the_page_has_the_table():
    assert table() in PAGE.read_text(), "PYTHONPATH=src:tests python -m load.mjcf_page writes it"


def test_what_the_table_does_not_have_is_said(monkeypatch):
    rows = {**TABLE, "joint": TABLE["joint"]._replace(named={})}
    del rows["freejoint"]
    monkeypatch.setattr(mjcf_table, "TABLE", rows)
    text = """<mujoco><worldbody><body name="b"><freejoint/><geom size=".1" contype="0"/></body>
      <body><joint springyield="1"/><geom size=".1" contype="0" conaffinity="0"/></body>
    </worldbody></mujoco>"""
    with pytest.warns(ModelWarning) as caught:
        hinge.load(text)
    (message,) = [str(w.message) for w in caught]
    known = r"does not know, but MuJoCo does: <freejoint> \(<text>:1\), springyield of <joint> "
    assert re.search(known, message)


# a model with one of everything, and what is put into it
MODEL = """<mujoco><compiler {compiler}/><option {option}><flag {flag}/></option>
<worldbody>
  <body name="a" pos="0 0 1" {body}><joint name="j" axis="0 1 0" {joint}/>
    <geom name="g" size=".1" pos=".1 0 .2" {geom}/>
    <body name="b" pos=".3 0 0"><joint name="s" type="slide" axis="1 0 0"/>
      <geom type="box" size=".1 .2 .1"/><site name="p" pos=".1 .1 0"/>
      <body pos="0 .2 0"><joint name="l" type="ball" {ball}/>
        <geom type="capsule" size=".05 .1"/><site name="e" pos=".1 0 0"/></body></body></body>
  <body pos="9 0 2"><freejoint/><geom size=".1 .1" type="cylinder"/></body></worldbody>
<tendon><fixed name="t" {fixed}><joint joint="j" coef="1"/><joint joint="s" coef="-2"/></fixed>
  <spatial name="w" {spatial}><site site="p"/><site site="e"/></spatial></tendon></mujoco>"""
PLACES = re.findall(r"{(\w+)}", MODEL)
LIMIT, SPRING = 'range="-.1 .1"', 'stiffness="20"'
CHANGES = {
    "compiler": "alignfree=true angle=radian autolimits=false balanceinertia=true boundmass=5 "
    "boundinertia=5 eulerseq=zyx fusestatic=true inertiafromgeom=true",
    "option": "gravity=1,2,3 density=50 viscosity=1 wind=1,0,0 magnetic=1,0,0 timestep=.1 "
    "integrator=implicit cone=elliptic impratio=10 solver=CG iterations=3 tolerance=.1",
    "flag": "gravity=disable spring=disable damper=disable frictionloss=disable limit=disable "
    "actuation=disable constraint=disable contact=disable energy=enable eulerdamp=disable "
    "island=disable invdiscrete=enable warmstart=disable",
    "body": "gravcomp=1 euler=10,0,0 sleep=never",
    "joint": "armature=.3 damping=2 damping=1,2 pos=.1,.1,0 ref=.2 stiffness=20 stiffness=2,3 "
    "springdamper=.1,1 actuatorfrcrange=-1,1 actuatorgravcomp=true group=2 user=1",
    "geom": "mass=3 density=50 shellinertia=true euler=10,0,0 friction=2 solref=.1,1 margin=.001 "
    "fluidshape=ellipsoid adhesion=2 surfacevel=1,0,0,0,0,0 rgba=1,0,0,1",
    "ball": "armature=.3 damping=2 stiffness=3 range=0,.1",
    "fixed": "stiffness=20 damping=2 frictionloss=.5 range=-.1,.1 armature=.2 springyield=.1",
    "spatial": "stiffness=20 damping=2 frictionloss=.5 range=0,.1 armature=.2 width=.1",
}
CASES = [
    (place, '{}="{}"'.format(*change.replace(",", " ").split("=")))
    for place, changes in CHANGES.items()
    for change in changes.split()
] + [
    ("joint", f'springref=".3" {SPRING}'),
    ("joint", f'springyield=".01" {SPRING}'),
    ("ball", f'springyield=".01" {SPRING}'),
]


@pytest.mark.parametrize(("place", "change"), CASES)
def test_what_changes_the_motion_is_read_or_named(place, change):
    text = MODEL.format(**{**dict.fromkeys(PLACES, ""), place: change})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        robot = hinge.load(text)
    model = mujoco.MjModel.from_xml_string(text)
    state, data, rng = (
        MujocoState(model, robot.mechanism),
        mujoco.MjData(model),
        np.random.default_rng(1),
    )
    named = any(label in str(w.message) for w in caught for label in LABELS)
    for _ in range(3):
        data.qpos[:], data.qvel[:] = (
            state.qpos(robot.random_configuration(rng)),
            rng.normal(size=model.nv),
        )
        q, qd = state.q(data.qpos), state.v(data.qpos, data.qvel)
        mujoco.mj_forward(model, data)
        expected = state.a(data.qpos, data.qvel, data.qacc)
        found = robot.forward_dynamics(q, qd, robot.passive_forces(q, qd))
        same = np.abs(found - expected).max() <= 1e-10 * np.abs(expected).max()
        assert same or named, (found, expected)


@pytest.mark.parametrize(
    ("place", "change", "label"),
    [
        ("joint", f'springyield=".01" {SPRING}', "springs of joints that yield: j"),
        ("ball", f'springyield=".01" {SPRING}', "springs of joints that yield: l"),
        ("joint", 'springyield=".01"', None),
        ("spatial", 'springyield=".01" stiffness="3"', "tendons w"),
        ("body", 'gravcomp=".5"', "gravity compensation of bodies a"),
    ],
)
def test_what_acts_is_named_and_nothing_else(place, change, label):
    text = MODEL.format(**{**dict.fromkeys(PLACES, ""), place: change})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        hinge.load(text)
    said = [str(w.message) for w in caught]
    assert said == ([] if label is None else [f"<text>: left out: {label}"])


@pytest.mark.parametrize("flag", ['limit="disable"', 'constraint="disable"'])
def test_limits_that_are_switched_off_are_none(flag):
    text = MODEL.format(
        **{**dict.fromkeys(PLACES, ""), "joint": LIMIT, "flag": flag, "ball": 'range="0 1"'}
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isinf(hinge.load(text).upper).all()
    on = text.replace(flag, "")
    with pytest.warns(ModelWarning, match="limits of ball joints l"):
        assert hinge.load(on).upper[0] == pytest.approx(np.radians(0.1))
