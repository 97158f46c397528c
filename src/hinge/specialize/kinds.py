"""Kinds of bodies: those that a loop can treat alike, and the numbers in which they differ.

Bodies are of one kind if their joints are of one kind, equally driven, and offset alike.  The
numbers of a body are its placement and inertia as in `parameters.py`, the zero of a hinge, the pose
of the original body in the canonical one, and the armature of its joint.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..algebra.spatial import Transform
from ..model.joint import Joint
from ..model.joints import Revolute
from ..model.mechanism import Body, Mechanism
from ..model.parameters import inertia_numbers, inertia_of, pose_numbers, pose_of
from .canonical import Reframed, TurnedRevolute

__all__ = ["AT", "Kind", "find_kinds"]


class _Row(NamedTuple):
    """Where the numbers of a body are in its row of a table; those of the armature come last."""

    placement: range = range(0, 12)
    inertia: range = range(12, 22)
    zero: int = 22
    original: range = range(23, 35)
    armature: int = 35


AT = _Row()


class Kind:
    """Bodies of one kind, and a row of the table with the numbers of each.

    example: the first of them; v: where it has its rates; held: whether no DoF before any of them
    is passive.
    """

    def __init__(self, example: Body, v: slice, held: bool) -> None:
        self.example, self.v, self.held = example, v, held
        self.table: list[tuple[float, ...]] = []

    @cached_property
    def common(self) -> list[float | None]:
        """The numbers in which no two of them differ, None for the others."""
        columns = (set(column) for column in zip(*self.table, strict=True))
        return [column.pop() if len(column) == 1 else None for column in columns]

    def body(self, number: Callable[[int], Any]) -> Body:
        """A body of this kind with other numbers."""
        pose, mass = ([number(i) for i in part] for part in (AT.placement, AT.inertia))
        zero, joint = number(AT.zero), self.example.joint
        if isinstance(joint, TurnedRevolute):
            joint = replace(joint, zero=zero)
        placement, inertia = pose_of(pose), inertia_of(mass)
        return replace(self.example, placement=placement, inertia=inertia, joint=joint)


def find_kinds(form: Reframed, active: Sequence[bool] | None) -> tuple[list[Kind], dict[int, int]]:
    """The kinds of bodies of a mechanism, and the number of the kind of each body.

    active: which DoF are driven; None if that comes with the samples.
    """
    mech = form.mechanism
    kinds: dict[Any, tuple[int, Kind]] = {}
    kind_of = {}
    for k, (driven, held) in enumerate(_marks(mech, active)[1:], 1):
        body = mech.bodies[k]
        own = _geometry(body.joint)
        # hinges differ in their zero only, which is among the numbers
        key = (type(own), "" if _is_hinge(own) else repr(own), driven, held, body.offset)
        if key not in kinds:
            example = replace(body, joint=own)
            kinds[key] = len(kinds), Kind(example, mech.v_slice(body.joint_name), held)
        kind_of[k], kind = kinds[key]
        kind.table.append(_numbers(body, form.frames[k].inv))
    return [kind for _, kind in kinds.values()], kind_of


def _marks(mech: Mechanism, active: Sequence[bool] | None) -> list[tuple[tuple[float, ...], bool]]:
    """Which DoF of each body are driven, and whether all before it are; nothing if not told."""
    if active is None:
        return [((), False)] * len(mech.bodies)
    mask = np.array(active, dtype=float)
    return [(tuple(m), h) for m, h in zip(mech.rates(mask), mech.held_before(mask), strict=True)]


def _is_hinge(joint: Joint) -> bool:
    if not isinstance(joint, Revolute) or type(joint) not in (Revolute, TurnedRevolute):
        return False
    return joint.axis == (0.0, 0.0, 1.0)


_LOSSES = ("armature", "stiffness", "rest", "damping", "friction", "restitution")


def _geometry(joint: Joint) -> Joint:
    """The joint without its limits and losses; every hinge as one that is counted from a zero."""
    plain = {n: 0.0 for n in _LOSSES}
    endless = {"lower": -np.inf, "upper": np.inf, "velocity_limit": np.inf, "effort_limit": np.inf}
    if _is_hinge(joint):
        return TurnedRevolute(zero=getattr(joint, "zero", 0.0))
    return replace(joint, **plain, **endless)


def _numbers(body: Body, original: Transform) -> tuple[float, ...]:
    zero = getattr(body.joint, "zero", 0.0)
    own = (*pose_numbers(body.placement), *inertia_numbers(body.inertia.spatial), zero)
    values = (*own, *pose_numbers(original), *np.array(body.joint.armature))
    return tuple(float(x) for x in values)
