"""Robots from parts of robots: a branch alone, without a branch, with another in its place."""

from __future__ import annotations

from dataclasses import replace as changed
from typing import Any

from ..algebra.spatial import Transform
from ..errors import warn_of_model
from ..model.builder import MechanismBuilder
from ..model.joints import Joint
from ..model.mechanism import GROUND, Mechanism
from .rebuild import (
    add_body,
    add_frames,
    builder_like,
    check_mimics,
    copied,
    dress,
    edits,
    mechanism_in,
    moving_body,
    prefixed,
)

__all__ = ["attach", "replace", "subtree", "without"]


@edits
def subtree(mech: Mechanism, body: str, joint: Joint | None = None) -> Mechanism:
    """The named body and everything beyond it, on its own joint, placed at the world's origin.

    joint: another joint to put it on; `Free()` lets it float, `Fixed()` makes it the base.
    """
    root = moving_body(mech, body)
    kept = _beyond(mech, root)
    carrier = mech.bodies[root].joint if joint is None else joint
    bodies = list(mech.bodies)
    bodies[root] = changed(bodies[root], parent=0, placement=Transform(), joint=carrier)
    alone = changed(mech, name=body, bodies=tuple(bodies))
    check_mimics(alone, kept)
    builder = builder_like(alone)
    for k in sorted(kept):
        add_body(builder, alone, alone.bodies[k])
    add_frames(builder, alone, kept)
    return builder.build()


@edits
def without(mech: Mechanism, body: str) -> Mechanism:
    """The mechanism without the named body and everything beyond it, frames and shapes included."""
    return _pruned(mech, moving_body(mech, body)).build()


@edits
def replace(mech: Mechanism, body: str, other: Any, prefix: str = "") -> Mechanism:
    """Another robot in the place of a body and of everything beyond it.

    The ground of `other` is put where the joint of the body was, on the body that carried it.
    prefix: put before every name of `other`.
    """
    root = moving_body(mech, body)
    carrier = mech.bodies[mech.bodies[root].parent].name
    new = _taken("replace", other)
    builder = _pruned(mech, root)
    return _mounted(builder, new, carrier, mech.bodies[root].placement, prefix).build()


@edits
def attach(
    mech: Mechanism,
    other: Any,
    frame: str = GROUND,
    placement: Transform | None = None,
    prefix: str = "",
) -> Mechanism:
    """Both robots as one: the ground of `other`, with all links welded to it, is put at a frame.

    placement: of that ground in the frame; prefix: put before every name of `other`, so that two of
    a kind can be attached.  Name and gravity are those of the first.
    """
    new = _taken("attach", other)
    at = mech.frame(frame)
    pose = at.placement if placement is None else at.placement @ placement
    builder = copied(builder_like(mech), mech)
    return _mounted(builder, new, mech.bodies[at.body].name, pose, prefix).build()


def _taken(where: str, other: Any) -> Mechanism:
    """The mechanism of another robot; what it does not have is warned about."""
    mech = mechanism_in(where, other)
    kept = {"constraints": "constraints that close loops", "actuators": "actuators"}
    for name, what in kept.items():
        if getattr(other, name, ()):
            warn_of_model(
                f"{where}: {what} of {mech.name!r} are not taken along; give them to "
                f"hinge.Robot(…, {name}=…) with their new names"
            )
    return mech


def _beyond(mech: Mechanism, root: int) -> set[int]:
    """A body and all that it carries."""
    found = {root}
    for p, k in mech.outward():
        if p in found:
            found.add(k)
    return found


def _pruned(mech: Mechanism, root: int) -> MechanismBuilder:
    """A builder with all but a body and what it carries."""
    kept = set(range(len(mech.bodies))) - _beyond(mech, root)
    check_mimics(mech, kept)
    builder = builder_like(mech)
    dress(builder, mech)
    for k in sorted(kept - {0}):
        add_body(builder, mech, mech.bodies[k])
    add_frames(builder, mech, kept)
    return builder


def _mounted(
    builder: MechanismBuilder, other: Mechanism, body: str, pose: Transform, prefix: str
) -> MechanismBuilder:
    """The builder with another mechanism whose ground is welded to a body."""
    mount, ground = f"{prefix}{other.name}/mount", other.bodies[0]
    builder.add(
        mount,
        body,
        placement=pose,
        inertia=ground.inertia,
        visuals=prefixed(ground.visuals, prefix),
        collisions=prefixed(ground.collisions, prefix),
    )
    return copied(builder, other, prefix, onto=mount)
