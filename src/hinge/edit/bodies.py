"""Changes that leave the joints alone: frames, inertias, gravity."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..algebra.spatial import Inertia, Transform
from ..model.builder import check_inertia
from ..model.mechanism import Mechanism
from .rebuild import builder_like, copied, edits, moving_body, rebuilt

__all__ = ["with_frame", "with_gravity", "with_inertia"]


@edits
def with_frame(
    mech: Mechanism, name: str, on: str, placement: Transform | None = None
) -> Mechanism:
    """The mechanism with one more frame: a tool, a sensor, a point of contact.

    on: the body or frame that it is fixed to; placement: its pose there.
    """
    at = mech.frame(on)
    pose = at.placement if placement is None else at.placement @ placement
    builder = copied(builder_like(mech), mech)
    return builder.add_frame(name, mech.bodies[at.body].name, pose).build()


@edits
def with_inertia(mech: Mechanism, body: str, inertia: Inertia) -> Mechanism:
    """The mechanism with another inertia for one body, that of links welded to it included."""
    index = moving_body(mech, body)
    check_inertia(f"{mech.name}: body {body!r}", inertia)
    bodies = list(mech.bodies)
    bodies[index] = replace(bodies[index], inertia=inertia)
    return rebuilt(replace(mech, bodies=tuple(bodies)))


@edits
def with_gravity(mech: Mechanism, gravity: Any) -> Mechanism:
    """The mechanism under another gravity, three numbers in m/s²."""
    return rebuilt(replace(mech, gravity=gravity))
