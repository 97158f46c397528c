"""Faults that do no harm: refused, or, with `lenient`, gone past with a warning about each."""

import pytest

import hinge
from hinge.errors import ModelError, ModelWarning
from robot_files import ARM

MIMIC = '<mimic joint="shoulder" multiplier="2" offset="0.1"/>'
FAULTS = {
    "no leader": (
        MIMIC,
        '<mimic joint="sholder"/>',
        "'sholder', which is not there; the joint",
    ),
    "fixed leader": (
        'type="revolute"',
        'type="fixed"',
        "'shoulder' is fixed and has 0 DoF; the joint moves on its own",
    ),
    "stray link": (
        "</robot>",
        '<link name="stray"/></robot>',
        "'stray' is joined to nothing",
    ),
    "driven by damping": (
        'damping="0.1"',
        'damping="-0.1"',
        "damping=-0.1, below 0",
    ),
    "driven by friction": (
        'friction="0.2"',
        'friction="-0.2"',
        "friction=-0.2, below 0",
    ),
}


def excused(old, new, message):
    """The robot of a file with a fault that is refused otherwise."""
    assert old in ARM
    text = ARM.replace(old, new)
    with pytest.raises(ModelError):
        hinge.load(text)
    with pytest.warns(ModelWarning, match=message):
        return hinge.load(text, lenient=True)


BODY = ARM[ARM.index("    <inertial>") : ARM.index("    <visual>")]
INERTIAS = {
    "no mass": (
        '<mass value="2"/>',
        "",
        "<inertial> has no <mass>, and one is meant; it is taken",
        0,
    ),
    "two inertials": (
        BODY,
        BODY + BODY.replace('value="2"', 'value="7"'),
        "<link> 'upper' has 2 <inertial>, the first on line 5; the first is used",
        2,
    ),
    "two origins": (
        '<mass value="2"/>',
        '<origin xyz="9 9 9"/><mass value="2"/>',
        "<inertial> has 2 <origin>, the first on line 6; the first is used",
        2,
    ),
    "two origins of a joint": (
        '<origin xyz="0 0 1" rpy="0 0 0.1"/>',
        '<origin xyz="0 0 1" rpy="0 0 0.1"/><origin xyz="9 9 9"/>',
        "'shoulder' has 2 <origin>, .*; the first is used",
        2,
    ),
    "xacro": (
        "</robot>",
        '<xacro:arm prefix="left"/></robot>',
        "<xacro:arm> is xacro, not URDF; it is left out",
        2,
    ),
    "xacro in a link": (
        '<link name="lower"/>',
        '<link name="lower"><xacro:solid mass="3"/></link>',
        "<xacro:solid> is xacro, not URDF; it is left out",
        2,
    ),
}


@pytest.mark.parametrize("case", INERTIAS)
def test_faults_that_have_one_reading_elsewhere(case):
    *fault, mass = INERTIAS[case]
    robot = excused(*fault)
    plain = hinge.load(ARM).mechanism
    assert robot.mechanism.bodies[1].inertia.mass == mass
    assert robot.mechanism.bodies[1].placement == plain.bodies[1].placement
    if mass:
        assert robot.mechanism == plain


@pytest.mark.parametrize("case", FAULTS)
def test_faults_that_do_no_harm(case):
    robot = excused(*FAULTS[case])
    assert robot.nv == (2 if case == "no leader" else 1)
    assert "stray" not in robot.frame_names


def more(text, *parts):
    """The file with more in it."""
    return text.replace("</robot>", "".join(parts) + "</robot>")


def test_each_fault_has_a_warning():
    text = more(ARM.replace(MIMIC, '<mimic joint="a"/>'), '<link name="stray"/><link name="tip"/>')
    ends = '<parent link="lower"/><child link="tip"/>'
    text = more(text, f'<joint name="j" type="continuous">{ends}<mimic joint="b"/></joint>')
    with pytest.warns(ModelWarning) as told:
        assert hinge.load(text, lenient=True).nv == 3
    words = " ".join(str(w.message) for w in told)
    assert all(f"mimics '{name}'" in words for name in "ab") and "'stray'" in words


def test_other_faults_are_refused_all_the_same():
    for old, new in (('value="2"', 'value="-2"'), ('<axis xyz="0 1 0"/>', '<axis xyz="0 0 0"/>')):
        with pytest.raises(ModelError):
            hinge.load(ARM.replace(old, new), lenient=True)
    two = ARM.replace('<parent link="base"/>', '<parent link="base"/><parent link="lower"/>')
    with pytest.raises(ModelError, match="has 2 <parent>, the first on line 18; keep one"):
        hinge.load(two, lenient=True)
    ends = '<parent link="c"/><child link="d"/>'
    joint = f'<joint name="e" type="fixed">{ends}</joint>'
    with pytest.raises(ModelError, match="2 links have no parent"):
        hinge.load(more(ARM, '<link name="c"/><link name="d"/>', joint), lenient=True)
