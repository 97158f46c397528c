"""Words of a URDF file: what is nearly one is misspelt, what is none is skipped with a remark."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from functools import lru_cache

from ..model.mechanism import did_you_mean
from .xml import Element, shortened

__all__ = ["check_spelling"]

_CHILDREN = {
    "robot": ("link", "joint", "material"),
    "link": ("inertial", "visual", "collision"),
    "joint": ("origin", "parent", "child", "axis", "limit", "dynamics", "mimic"),
    "inertial": ("origin", "mass", "inertia"),
}
# what other programs read and what cannot be meant for the dynamics
_SKIPPED = {
    "robot": ("gazebo", "transmission", "ros2_control", "mujoco", "sensor", "xacro:property"),
    "joint": ("calibration", "safety_controller", "hardwareInterface", "gazebo"),
    "inertial": (),
}
_COSMETIC = ("visual", "collision", "material", "limit")
_ATTRIBUTES = {
    "joint": ("name", "type"),
    "origin": ("xyz", "rpy", "quat_xyzw"),
    "parent": ("link",),
    "child": ("link",),
    "axis": ("xyz",),
    "limit": ("lower", "upper", "velocity", "effort"),
    "dynamics": ("damping", "friction", "armature", "spring_stiffness", "spring_reference"),
    "mimic": ("joint", "multiplier", "offset"),
    "mass": ("value",),
    "inertia": ("ixx", "iyy", "izz", "ixy", "ixz", "iyz", "iyx", "izx", "izy"),
}
# where every attribute may be left out, so that a misspelt one would be
_STRICT = ("origin", "mimic", "inertia")


def check_spelling(robot: Element) -> None:
    """Refuse what is not URDF, or is URDF but for a letter; remark on what is skipped."""
    if robot.tag != "robot":
        raise robot.error(f"the root element is {robot}; expected <robot> for URDF")
    for child in (child for element in _elements(robot) for child in element.children):
        if child.tag.startswith("xacro:") and child.tag not in _SKIPPED["robot"]:
            hint = "expand it: name the file .xacro, or load it with xacro_args={}"
            child.fault(f"{child} is xacro, not URDF", hint, "it is left out")
    for joint in (joint for other in robot.all("gazebo") for joint in other.all("joint")):
        joint.remark("loops", f"<gazebo> closes a loop by {joint}, which is left out")
    for element in _elements(robot):
        _check_children(element)
        _check_attributes(element)


def _elements(robot: Element) -> Iterator[Element]:
    """The elements that the dynamics is read from."""
    yield robot
    for joint in robot.all("joint"):
        yield joint
        yield from joint.children
    for link in robot.all("link"):
        yield link
        for inertial in link.all("inertial"):
            yield inertial
            yield from inertial.children


def _check_children(element: Element) -> None:
    """A child that is nearly a known one is misspelt; any other is an extension."""
    known, skipped = _CHILDREN.get(element.tag, ()), _SKIPPED.get(element.tag)
    for child in element.children if known else ():
        if child.tag in known or child.tag.startswith("xacro:"):
            continue
        near = _nearly(child.tag, known)
        if near and near not in _COSMETIC:
            raise child.error(
                f"{element} has an unknown element <{child.tag[:60]}>; did you mean <{near}>?"
            )
        if near or (skipped is not None and child.tag not in skipped):
            hint = f"; did you mean <{near}>?" if near else ""
            child.remark(
                f"element of {element.tag}",
                f"{element} has an unknown element <{child.tag[:60]}>, left out{hint}",
            )


@lru_cache(maxsize=1000)
def _nearly(word: str, known: tuple[str, ...]) -> str | None:
    return next(iter(difflib.get_close_matches(word[:60].lower(), known, 1, 0.8)), None)


def _check_attributes(element: Element) -> None:
    """An attribute that is nearly a known one, or may be, is misspelt; others are extensions."""
    known = _ATTRIBUTES.get(element.tag)
    if known is None:
        return
    # those of a namespace may be anything
    unknown = [name for name in element.attributes if name not in known and ":" not in name]
    for name in unknown:
        if element.tag in _STRICT or (element.tag == "dynamics" and _nearly(name, known)):
            hint = did_you_mean(name[:60], known)
            raise element.error(
                f"<{element.tag}> has an unknown attribute {shortened(name)}; {hint}"
            )
    if unknown:
        names = ", ".join(shortened(name) for name in unknown[:4])
        message = f"<{element.tag}> has unknown attributes {names}, left out"
        element.remark(f"attributes of {element.tag}", message)
