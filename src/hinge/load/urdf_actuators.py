"""The actuators of a URDF: <transmission>, and the commands that <ros2_control> gives to joints."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator

import numpy as np

from ..model.actuator import Actuator, acting_on
from ..model.mechanism import Mechanism
from .xml import Element, number_of, shortened

__all__ = ["actuators_of"]

_INTERFACES = ("effort", "position", "velocity")
_DRIVEN = re.compile("(?!passive|use).*joint", re.IGNORECASE)
_BY_OTHERS = "controller"  # of which a URDF says nothing


def actuators_of(robot: Element, joints: Container[str], mech: Mechanism) -> tuple[Actuator, ...]:
    """Those of joints that move; remarked on are joints that are not there, or are left alone.

    joints: of the file; mech: the mechanism that they became.
    """
    found: dict[str, Actuator] = {}
    for joint, actuator in (*_transmissions(robot), *_commands(robot)):
        name = (joint.get("name") or "").strip()
        if name not in joints:
            where = f"{joint} of an actuator is no joint of the robot"
            joint.remark("actuators", f"{where}; the actuator is left out")
        # a joint may have several interfaces, and is named in both elements
        elif name not in found:
            found[name] = actuator
    if found:
        _remark_on_others(robot, found, mech)
    return acting_on(mech, found.values())


def _remark_on_others(robot: Element, found: Container[str], mech: Mechanism) -> None:
    """Joints that could be driven by their effort limits, while the file's actuators do not."""
    others = [
        b.joint_name
        for b in mech.bodies[1:]
        if b.joint.mimic is None and b.joint_name not in found and b.joint.nv == 1
        if 0 < np.sum(b.joint.effort_limit) < np.inf
    ]
    if others:
        names = ", ".join(map(shortened, others[:4])) + (", …" if len(others) > 4 else "")
        what = f"no actuator drives {names} ({len(others)}), though they have effort limits"
        robot.remark("undriven", f"{what}; robot.actuated leaves them out")


def _transmissions(robot: Element) -> Iterator[tuple[Element, Actuator]]:
    for element in robot.all("transmission"):
        # those of wrists and grippers have names such as <flexJoint>
        joints = [e for e in element.children if _DRIVEN.fullmatch(e.tag)]
        motors = element.all("actuator")
        one = len(joints) == len(motors) == 1
        for joint in joints:
            named = [e for part in (joint, *motors) for e in part.all("hardwareInterface")]
            interface = _interface(named)
            if interface is not None:
                name = (motors[0] if one else element).get("name") or element.get("name") or ""
                gears = (_reduction(motors[0]),) if one else ()
                yield joint, _actuator(name.strip(), joint, interface, gears)


def _interface(named: list[Element]) -> str | None:
    """By what a joint is commanded, "effort" if nothing says so; None if it is only measured."""
    words = [e.text.strip().rpartition("/")[2].removesuffix("JointInterface") for e in named]
    known = [word.lower() for word in words if word.lower() in _INTERFACES]
    return known[0] if known else None if words else "effort"


def _reduction(motor: Element) -> float:
    """How much a motor's force is on its joint; 1 where it is not said, or cannot be read."""
    for element in motor.all("mechanicalReduction"):
        value = number_of(element.text.strip())
        if value is not None:
            return value
        what = f"<mechanicalReduction> is {shortened(element.text)}, no number"
        element.remark("reduction", f"{what}; it is taken for 1")
    return 1.0


def _commands(robot: Element) -> Iterator[tuple[Element, Actuator]]:
    for control in robot.all("ros2_control"):
        for joint in control.all("joint"):
            given = [(e.get("name") or "").strip() for e in joint.all("command_interface")]
            known = [name for name in _INTERFACES if name in given]
            if given:
                name = (joint.get("name") or "").strip()
                yield joint, _actuator(name, joint, (known or given)[0], (1.0,))


def _actuator(name: str, joint: Element, interface: str, gears: tuple[float, ...]) -> Actuator:
    joints = ((joint.get("name") or "").strip(),)
    by = "" if interface == "effort" else _BY_OTHERS
    return Actuator(name or shortened(joints[0]), interface, joints, gears, dynamics=by)
