"""Words of URDF: what is nearly one of them is misspelt, and is refused rather than lost.

An <inertal> or a `multipler` that is skipped gives a robot that loads and moves wrongly.  So on the
elements that matter for the dynamics every attribute must be known, and no child may nearly be a
known one.  Attributes that real files carry for other programs are ignored, with one warning.
"""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Iterator
from functools import lru_cache

from ..errors import ModelWarning
from .xml import Element

__all__ = ["check_spelling"]

_CHILDREN = {
    "robot": ("link", "joint", "material"),
    "link": ("inertial", "visual", "collision"),
    "joint": ("origin", "parent", "child", "axis", "limit", "dynamics", "mimic"),
    "inertial": ("origin", "mass", "inertia"),
}
_ATTRIBUTES = {
    "joint": ("name", "type"),
    "origin": ("xyz", "rpy", "quat_xyzw"),
    "parent": ("link",),
    "child": ("link",),
    "axis": ("xyz",),
    "limit": ("lower", "upper", "velocity", "effort"),
    "dynamics": ("damping", "friction", "spring_stiffness", "spring_reference"),
    "mimic": ("joint", "multiplier", "offset"),
    "mass": ("value",),
    "inertia": ("ixx", "ixy", "ixz", "iyy", "iyz", "izz"),
}
# of other programs, seen in files that are in use; none changes the dynamics
_FOREIGN = {
    "joint": ("dont_collapse",),
    "limit": ("acceleration", "deceleration", "jerk", "command_effort", "current", "gear_velocity"),
    "dynamics": ("D", "K", "mu_coulomb", "mu_viscous"),
}


def check_spelling(robot: Element) -> None:
    """Refuse what is not URDF, or is URDF but for a letter."""
    if robot.tag != "robot":
        raise robot.error(f"the root element is {robot}; expected <robot> for URDF")
    for child in robot.children:
        if child.tag.startswith("xacro:"):
            raise child.error(f"{child} is xacro, not URDF; expand the file with xacro first")
    ignored: dict[str, Element] = {}
    for element in _elements(robot):
        _check_children(element)
        _check_attributes(element, ignored)
    for tag, element in ignored.items():
        names = ", ".join(name for name in _FOREIGN[tag] if name in element.attributes)
        message = f"{element.where}: <{tag}> has {names}: not URDF, ignored here and further on"
        warnings.warn(message, ModelWarning, stacklevel=3)


def _elements(robot: Element) -> Iterator[Element]:
    """The elements that the dynamics and the shapes are read from."""
    yield robot
    for joint in robot.all("joint"):
        yield joint
        yield from joint.children
    for link in robot.all("link"):
        yield link
        for inertial in link.all("inertial"):
            yield inertial
            yield from inertial.children
        for shape in link.all("visual") + link.all("collision"):
            yield shape
            yield from shape.all("origin")


def _check_children(element: Element) -> None:
    """A child that is nearly a known one is misspelt; any other is an extension."""
    known = _CHILDREN.get(element.tag, ())
    for child in element.children if known else ():
        if child.tag not in known and (near := _nearly(child.tag, known)):
            raise child.error(
                f"{element} has an unknown element <{child.tag[:60]}>; did you mean <{near}>?"
            )


@lru_cache(maxsize=1000)
def _nearly(tag: str, known: tuple[str, ...]) -> str | None:
    return next(iter(difflib.get_close_matches(tag[:60].lower(), known, 1, 0.8)), None)


def _check_attributes(element: Element, ignored: dict[str, Element]) -> None:
    """Refuse unknown attributes; note where other programs' begin."""
    if element.tag not in _ATTRIBUTES:
        return
    foreign = _FOREIGN.get(element.tag, ())
    element.only(*_ATTRIBUTES[element.tag], ignoring=foreign)
    if any(name in element.attributes for name in foreign):
        ignored.setdefault(element.tag, element)
