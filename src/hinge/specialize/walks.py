"""Walks: the ways from the ground to the bodies that an algorithm is told of in advance.

A walk has one end, the body of a frame, or two, those of a constraint, whose ways meet on the
nearest body that carries both, if it is not the ground.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..model.mechanism import Mechanism

__all__ = ["Mark", "Walk", "marks", "walk_to", "walks_of"]


class Walk(NamedTuple):
    """The bodies at its ends, none of them the ground, and the one where two ways meet, or 0."""

    ends: tuple[int, ...]
    meet: int


class Mark(NamedTuple):
    """Where a body is on a walk.

    carries: for each end whether it is the body or beyond it; is_end: whether it is the body.
    meet: whether the ways meet on it.
    """

    carries: tuple[bool, ...]
    is_end: tuple[bool, ...]
    meet: bool


def walks_of(mech: Mechanism, static: Mapping[str, Any], reads_passive: bool = False) -> list[Walk]:
    """The walks to the frame and the constraints that an algorithm is told of.

    reads_passive: as of `Algorithm`; there are walks to the bodies with passive DoF then.
    """
    groups = [(static["frame"],)] if "frame" in static else []
    groups += [(c.left, c.right) for c in static.get("constraints", ())]
    walks = [walk_to(mech, names) for names in groups]
    if reads_passive:
        driven = mech.rates(mech.driven(static["active"]))
        walks += [Walk((k,), 0) for k, own in enumerate(driven) if not all(own)]
    return list(dict.fromkeys(walks))


def walk_to(mech: Mechanism, frames: Sequence[str]) -> Walk:
    """The walk to one or two frames, of which one may be the ground's."""
    bodies = [mech.frame(name).body for name in frames]
    ends = tuple(k for k in bodies if k)
    return Walk(ends, mech.common_ancestor(*ends) if len(ends) > 1 else 0)


def marks(mech: Mechanism, walk: Walk) -> list[Mark]:
    """Where every body is on a walk, the ground first."""
    ways = [{k for _, k in mech.ancestors(end)} for end in walk.ends]
    return [
        Mark(
            tuple(k in way for way in ways),
            tuple(k == end for end in walk.ends),
            0 < k == walk.meet,
        )
        for k in range(len(mech.bodies))
    ]
