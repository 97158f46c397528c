"""The same robot in other units, and a larger one of the same shape."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np

from ..algebra.spatial import Inertia, Transform
from ..errors import ArgumentError, ModelError
from ..model.joints import Helical, Joint
from ..model.mechanism import Mechanism
from ..model.shapes import Shape
from .rebuild import edits, rebuilt

__all__ = ["enlarge", "rescale"]

_SHARED = {f.name for f in fields(Joint)}


@edits
def rescale(
    mech: Mechanism, length: float = 1.0, mass: float = 1.0, time: float = 1.0
) -> Mechanism:
    """The same robot in other units: what each number of metres, kilograms and seconds becomes.

    `length=1000` counts in millimetres, `mass=1000` in grams, `time=1e3` in milliseconds.  Gravity,
    inertias, shapes and all data of joints go along, so that the motion is the same.
    """
    _check_factors("rescale", length=length, mass=mass, time=time)
    energy = mass * length**2 / time**2

    def of_joint(x: np.ndarray) -> dict[str, np.ndarray]:
        per_x = {"friction": 1.0, "effort_limit": 1.0}
        per_xx = {"stiffness": 1.0, "damping": time, "armature": time**2}
        return {
            **dict.fromkeys(("lower", "upper", "rest"), x),
            "velocity_limit": x / time,
            **{name: energy * t / x for name, t in per_x.items()},
            **{name: energy * t / x**2 for name, t in per_xx.items()},
        }

    gravity = tuple(length / time**2 * g for g in mech.gravity)
    return _scaled(replace(mech, gravity=gravity), length, mass, of_joint)


@edits
def enlarge(mech: Mechanism, factor: float) -> Mechanism:
    """A robot of the same shape and the same stuff, so many times as large.

    Lengths grow with the factor s, masses with s³ and moments of inertia with s⁵; gravity, motors
    and springs (armature, damping, friction, stiffness, limits of force) stay what they are.
    """
    _check_factors("enlarge", factor=factor)

    def of_joint(x: np.ndarray) -> dict[str, np.ndarray]:
        return dict.fromkeys(("lower", "upper", "rest", "velocity_limit"), x)

    return _scaled(mech, factor, factor**3, of_joint)


def _check_factors(where: str, **factors: Any) -> None:
    for name, factor in factors.items():
        if not isinstance(factor, (int, float, np.number)) or not 0 < factor < np.inf:
            raise ArgumentError(f"{where}: {name} is {factor!r}; expected a number above 0")


def _scaled(
    mech: Mechanism,
    length: float,
    mass: float,
    of_joint: Callable[[np.ndarray], Mapping[str, np.ndarray]],
) -> Mechanism:
    """The mechanism with lengths and masses times as large.

    of_joint: factors of a joint's data, of how much each of its coordinates grows: (nv,).
    """

    def pose(X: Transform) -> Transform:
        return Transform(X.rotation, length * X.translation)

    def shape(s: Shape) -> Shape:
        size = tuple(length * x for x in s.size)
        return replace(s, size=size, placement=pose(s.placement))

    def inertia(i: Inertia) -> Inertia:
        return Inertia(mass * i.mass, length * i.com, mass * length**2 * i.about_com)

    growth = {b.joint_name: _growth(b.joint, length) for b in mech.bodies}
    bodies = [
        replace(
            b,
            joint=_joint(mech, b.joint, growth, of_joint(growth[b.joint_name]), length),
            placement=pose(b.placement),
            offset=pose(b.offset),
            inertia=inertia(b.inertia),
            visuals=tuple(map(shape, b.visuals)),
            collisions=tuple(map(shape, b.collisions)),
        )
        for b in mech.bodies
    ]
    frames = [replace(f, placement=pose(f.placement)) for f in mech.frames]
    return rebuilt(replace(mech, bodies=tuple(bodies), frames=tuple(frames)))


def _growth(joint: Joint, length: float) -> np.ndarray:
    """How much each coordinate grows: angles do not, displacements do."""
    turns = np.abs(joint.H(joint.neutral())[:, :3]).any(axis=1)
    return np.where(turns, 1.0, length)


def _joint(
    mech: Mechanism,
    joint: Joint,
    growth: Mapping[str, np.ndarray],
    factors: Mapping[str, np.ndarray],
    length: float,
) -> Joint:
    own = {f.name for f in fields(joint)} - _SHARED
    unknown = {name for name in own if not name.startswith("axis")}
    changes: dict[str, Any] = {
        name: factor * np.array(getattr(joint, name)) for name, factor in factors.items()
    }
    if isinstance(joint, Helical):
        unknown.discard("pitch")
        changes["pitch"] = length * joint.pitch
    if unknown and length != 1:
        raise ModelError(
            f"{mech.name!r}: a {joint} joint has {', '.join(sorted(unknown))}, of unknown units; "
            f"put others in its place with hinge.edit.with_joint first"
        )
    if joint.mimic:
        x, leader = _growth(joint, length)[0], growth[joint.mimic.joint][0]
        ratio, offset = joint.mimic.ratio * x / leader, joint.mimic.offset * x
        changes["mimic"] = replace(joint.mimic, ratio=ratio, offset=offset)
    return replace(joint, **changes)
