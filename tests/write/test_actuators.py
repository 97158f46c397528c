"""Actuators of saved robots: read again they are the same, or what is lost is named."""

import warnings

import pytest

import hinge
from hinge import Actuator, ModelWarning, zoo

ARM = zoo.arm(3)
ONE, TWO, THREE = ARM.joint_names


def saved(actuators, path):
    robot = hinge.Robot(ARM.mechanism, actuators=actuators)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        return hinge.load(hinge.save(robot, path))


def test_motors_and_servos_come_back_from_mjcf(tmp_path):
    pytest.importorskip("mujoco")
    kept = (
        Actuator("m", "motor", (ONE,), (50.0,), (-1.0, 2.0)),
        Actuator("p", "position", (TWO,), (-2.0,), (-3, 3), (-9, 9), (7, 0, 0), (0, -7.0, -0.5)),
        Actuator("g", "general", (THREE,), (1.0,), gain=(2.0, 1.0, 0.5), bias=(0.1, 0.2, 0.3)),
    )
    again = saved(kept, tmp_path / "a.xml")
    assert again.actuators == kept and again.actuated == ARM.joint_names
    assert again.effort_limit.tolist()[:2] == [100, 18]


def test_interfaces_and_gears_come_back_from_urdf(tmp_path):
    kept = (
        Actuator("m", "effort", (ONE,), (50.0,)),
        Actuator("p", "position", (TWO,), (-2.0,), dynamics="controller"),
    )
    again = saved(kept, tmp_path / "a.urdf")
    assert again.actuators == kept and again.actuated == (ONE, TWO)


@pytest.mark.parametrize(
    ("ending", "actuator", "message"),
    [
        ("xml", Actuator("a", "motor", (ONE, TWO), (1.0, 2.0)), "or of several joints,: a"),
        ("xml", Actuator("a", "muscle", (ONE,), (1.0,), dynamics="muscle"), "without a law"),
        ("urdf", Actuator("a", "general", (ONE,), (1.0,)), "actuators of other types"),
        ("urdf", Actuator("a", "motor", (ONE, TWO), (1.0, 2.0)), "or of several joints,: a"),
        ("urdf", Actuator("a", "motor", (ONE,), (1.0,), (-1, 1)), "gains and ranges of .*: a"),
    ],
)
def test_what_a_format_cannot_hold_is_named(tmp_path, ending, actuator, message):
    robot = hinge.Robot(zoo.arm(3).mechanism, actuators=[actuator])
    with pytest.warns(ModelWarning, match=message):
        hinge.save(robot, tmp_path / f"a.{ending}")
