"""Kinds of bodies: those that a loop can treat alike, and the numbers in which they differ.

Bodies are of one kind if their joints are of one kind, equally driven, and offset alike, if they
have the same place on walks, and if the same of their numbers are 0 or 1, where many bodies have
those in common.  The numbers of a body are
its placement and inertia as in `parameters.py`, the zero of a hinge, the pose of the original body
in the canonical one, and the armature of its joint.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..algebra.spatial import Transform
from ..graph.loop import ZERO
from ..model.joint import Joint
from ..model.joints import Revolute
from ..model.mechanism import Body, Mechanism
from ..model.parameters import inertia_numbers, inertia_of, pose_numbers, pose_of
from .canonical import Reframed, TurnedRevolute
from .walks import Mark, Walk, marks

__all__ = ["AT", "Kind", "Role", "Ways", "find_kinds", "find_roles", "find_ways"]


class _Row(NamedTuple):
    """Where the numbers of a body are in its row of a table; those of the armature come last."""

    placement: range = range(0, 12)
    inertia: range = range(12, 22)
    zero: int = 22
    original: range = range(23, 35)
    armature: int = 35


AT = _Row()

# into how many kinds, at most, bodies fall that one step could serve
MOST_VARIANTS = 4
_SIMPLE = (-1.0, 0.0, 1.0)


class Kind:
    """Bodies of one kind, and a row of the table with the numbers of each.

    example: the first of them; v: where it has its rates; held: whether no DoF before any of them
    is passive; marks: where they are on each walk.
    passing: the rows of all bodies that walks pass alike, whether they end or meet there or not: a
    step that does not ask for that is the same for all of them.
    """

    def __init__(
        self,
        example: Body,
        v: slice,
        held: bool,
        marks: tuple[Mark, ...],
        passing: list[tuple[float, ...]],
    ) -> None:
        self.example, self.v, self.held, self.marks = example, v, held, marks
        self.table: list[tuple[float, ...]] = []
        self.passing = passing

    @cached_property
    def common(self) -> list[float | None]:
        """The numbers in which no two that walks pass alike differ, None for the others."""
        columns = (set(column) for column in zip(*self.passing, strict=True))
        return [column.pop() if len(column) == 1 else None for column in columns]

    def body(self, number: Callable[[int], Any]) -> Body:
        """A body of this kind with other numbers."""
        pose, mass = ([number(i) for i in part] for part in (AT.placement, AT.inertia))
        zero, joint = number(AT.zero), self.example.joint
        if isinstance(joint, TurnedRevolute):
            joint = replace(joint, zero=zero)
        placement, inertia = pose_of(pose), inertia_of(mass)
        return replace(self.example, placement=placement, inertia=inertia, joint=joint)


def find_kinds(
    form: Reframed, active: Sequence[bool] | None, walks: Sequence[Walk] = ()
) -> tuple[list[Kind], dict[int, int]]:
    """The kinds of bodies of a mechanism, and the number of the kind of each body.

    active: which DoF are driven; None if that comes with the samples.
    walks: on which bodies are told apart.
    """
    mech = form.mechanism
    places = [marks(mech, walk) for walk in walks]
    on_walks = [tuple(place[k] for place in places) for k in range(len(mech.bodies))]
    passed = [tuple(mark.carries for mark in own) for own in on_walks]
    rows = {k: _numbers(body, form.frames[k].inv) for k, body in enumerate(mech.bodies[1:], 1)}
    kinds: dict[Any, tuple[int, Kind]] = {}
    tables: dict[Any, list[tuple[float, ...]]] = {}
    kind_of, held = {}, [held for _, held in _driven(mech, active)]
    for k, alike in _told_apart(_keys(mech, active, passed), rows).items():
        key, passing = (alike, on_walks[k]), tables.setdefault(alike, [])
        passing.append(rows[k])
        if key not in kinds:
            body = mech.bodies[k]
            example = replace(body, joint=_geometry(body.joint))
            v = mech.v_slice(body.joint_name)
            kinds[key] = len(kinds), Kind(example, v, held[k], on_walks[k], passing)
        kind_of[k], kind = kinds[key]
        kind.table.append(rows[k])
    return [kind for _, kind in kinds.values()], kind_of


def _keys(
    mech: Mechanism, active: Sequence[bool] | None, passed: Sequence[tuple[tuple[bool, ...], ...]]
) -> dict[int, Any]:
    """What bodies that one step can serve have in common."""
    keys = {}
    for k, driven in enumerate(_driven(mech, active)[1:], 1):
        joint = mech.bodies[k].joint
        # hinges differ in their zero only, which is among the numbers
        own = () if _is_hinge(joint) else (type(joint), repr(_geometry(joint)))
        keys[k] = (own, driven, passed[k], mech.bodies[k].offset)
    return keys


def _told_apart(keys: Mapping[int, Any], rows: Mapping[int, tuple[float, ...]]) -> dict[int, Any]:
    """The keys, and zeros and ones of placements and inertias where enough bodies have the same.

    A number that is 0 or 1 costs nothing if it is known, and one odd body would hide it.
    """
    places = *AT.placement, *AT.inertia
    simple = {
        k: tuple(x if x in _SIMPLE else None for x in map(rows[k].__getitem__, places))
        for k in keys
    }
    alike = Counter(keys.values())
    many = Counter((keys[k], simple[k]) for k in keys)
    often = {k: many[keys[k], simple[k]] * MOST_VARIANTS >= alike[keys[k]] for k in keys}
    return {k: (key, simple[k] if often[k] else None) for k, key in keys.items()}


class Role(NamedTuple):
    """A kind of bodies, told apart by what a sweep inward meets.

    leaf: they have no children; first: of their parents' children they are visited first.
    """

    kind: int
    leaf: bool = False
    first: bool = False


def find_roles(mech: Mechanism, kind_of: Mapping[int, int]) -> tuple[list[Role], dict[int, int]]:
    """The roles of the bodies of a mechanism, and the number of the role of each body."""
    # the last of a body's children is the first on the way inward
    first = {mech.bodies[k].parent: k for k in kind_of}
    roles: dict[Role, int] = {}
    role_of = {}
    for k, kind in kind_of.items():
        role = Role(kind, k not in first, first[mech.bodies[k].parent] == k)
        role_of[k] = roles.setdefault(role, len(roles))
    return list(roles), role_of


class Ways(NamedTuple):
    """Steps from a body to its parent, told apart by the kinds of both.

    kinds: (lower, upper) of each way; of: the way of each body, ZERO for one on the ground.
    under: by kind, the ways that lead from bodies of that kind to their roots.
    """

    kinds: list[tuple[int, int]]
    of: tuple[int, ...]
    under: dict[int, set[int]]


def find_ways(mech: Mechanism, kind_of: Mapping[int, int]) -> Ways:
    """The ways of the bodies of a mechanism."""
    ways: dict[tuple[int, int], int] = {}
    of, onward, under = [], {0: frozenset[int]()}, {kind: set[int]() for kind in kind_of.values()}
    for k, kind in kind_of.items():
        p = mech.bodies[k].parent
        of.append(ways.setdefault((kind, kind_of[p]), len(ways)) if p else ZERO)
        onward[k] = onward[p] | {of[-1]} - {ZERO}
        under[kind] |= onward[k]
    return Ways(list(ways), tuple(of), under)


def _driven(mech: Mechanism, active: Sequence[bool] | None) -> list[tuple[tuple[float, ...], bool]]:
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
