"""Changing a mechanism: every function returns a new one and leaves its argument alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..algebra.rotation import nearest_rotation
from ..algebra.spatial import Inertia, Transform
from ..errors import ArgumentError, ModelError
from .builder import MechanismBuilder, check_inertia
from .joints import Fixed, Joint
from .mechanism import GROUND, Body, Mechanism

__all__ = ["attach", "right_angles", "subtree", "weld", "with_gravity", "with_inertia"]


def subtree(mech: Mechanism, body: str, joint: Joint | None = None) -> Mechanism:
    """The named body and everything beyond it, on its own joint, placed at the world's origin.

    joint: another joint to put it on; `Free()` lets it float, `Fixed()` makes it the base.
    """
    root = _checked("subtree", mech).body_index(body)
    if root == 0:
        raise ModelError(f"{mech.name!r}: the ground is not a subtree; name a moving body")
    kept = {root}
    for p, k in mech.outward():
        if p in kept:
            kept.add(k)
    builder = _builder(replace(mech, name=body))
    for k in sorted(kept):
        b = mech.bodies[k]
        if k == root:
            b = replace(
                b, parent=0, placement=Transform(), joint=b.joint if joint is None else joint
            )
        mimic = b.joint.mimic
        if mimic and mech.joint_index(mimic.joint) not in kept:
            raise ModelError(
                f"{mech.name!r}: joint {b.joint_name!r} of the subtree mimics {mimic.joint!r}, "
                f"which is not in it; weld one of them first"
            )
        _add(builder, mech, b)
    _add_frames(builder, mech, kept)
    return builder.build()


def weld(mech: Mechanism, joint: str, q: Any = None) -> Mechanism:
    """The mechanism with a joint held at q (default: neutral), and so the joints that mimic it."""
    index = _checked("weld", mech).joint_index(joint)
    body = mech.bodies[index]
    held = np.asarray(body.joint.neutral() if q is None else q, dtype=float).reshape(-1)
    if held.shape != (body.joint.nq,) or not np.isfinite(held).all():
        raise ModelError(
            f"{mech.name!r}: weld {joint!r} at {held.tolist()}; expected {body.joint.nq} finite "
            f"numbers"
        )
    builder = _builder(mech)
    _dress(builder, mech)
    for b in mech.bodies[1:]:
        mimic = b.joint.mimic
        if b is body:
            b = _held(b, held)
        elif mimic and mimic.joint == joint:
            b = _held(b, mimic.ratio * held + mimic.offset)
        _add(builder, mech, b)
    _add_frames(builder, mech, range(len(mech.bodies)))
    return builder.build()


def attach(
    mech: Mechanism,
    other: Mechanism,
    frame: str = GROUND,
    placement: Transform | None = None,
    prefix: str = "",
) -> Mechanism:
    """Both mechanisms as one: the ground of `other` is put at a frame of `mech`.

    prefix: put before every name of `other`, so that two of a kind can be attached.
    """
    at = _checked("attach", mech).frame(frame)
    _checked("attach", other)
    pose = at.placement if placement is None else at.placement @ placement
    base = mech.bodies[at.body].name
    builder = _builder(mech)
    _copy(builder, mech)
    ground = other.bodies[0]
    mount = f"{prefix}{other.name}/mount"
    builder.add(mount, base, placement=pose, visuals=ground.visuals, collisions=ground.collisions)
    _copy(builder, other, prefix, onto=mount)
    return builder.build()


def with_inertia(mech: Mechanism, body: str, inertia: Inertia) -> Mechanism:
    """The mechanism with another inertia for one body."""
    index = _checked("with_inertia", mech).body_index(body)
    if index == 0:
        raise ModelError(f"{mech.name!r}: the ground does not move; its inertia is of no account")
    check_inertia(f"{mech.name}: body {body!r}", inertia)
    bodies = list(mech.bodies)
    bodies[index] = replace(bodies[index], inertia=inertia)
    return _rebuilt(replace(mech, bodies=tuple(bodies)))


def with_gravity(mech: Mechanism, gravity: Any) -> Mechanism:
    """The mechanism under another gravity, three numbers in m/s²."""
    return _rebuilt(replace(_checked("with_gravity", mech), gravity=gravity))


def right_angles(mech: Mechanism, within: float = 1e-5) -> Mechanism:
    """The mechanism with right angles between its joints wherever they are so within some radians.

    Files round them: 1.5708 is 4e-6 off.  Kernels for exact ones are cheaper, since axes that are
    parallel and perpendicular leave zeros; no body moves by more than that angle lets it.
    """
    if not 0 <= within < 0.1:
        raise ArgumentError(f"right_angles within {within} rad; expected a small angle, 0 to 0.1")

    def squared(X: Transform) -> Transform:
        whole = np.round(X.rotation)
        near = np.abs(X.rotation - whole) <= within
        return Transform(nearest_rotation(np.where(near, whole, X.rotation)), X.translation)

    bodies = [
        replace(b, placement=squared(b.placement), offset=squared(b.offset))
        for b in _checked("right_angles", mech).bodies
    ]
    return _rebuilt(replace(mech, bodies=tuple(bodies)))


def _checked(where: str, mech: Any) -> Mechanism:
    """The mechanism, if it is one."""
    if not isinstance(mech, Mechanism):
        raise ArgumentError(
            f"{where} needs a Mechanism, got {type(mech).__name__}; that of a robot is "
            f"robot.mechanism"
        )
    return mech


def _builder(mech: Mechanism) -> MechanismBuilder:
    """A builder like the one that made the mechanism; what it took then it takes again."""
    return MechanismBuilder(mech.name, mech.gravity, nonphysical="accept")


def _rebuilt(mech: Mechanism) -> Mechanism:
    """The same mechanism, checked again."""
    builder = _builder(mech)
    _copy(builder, mech)
    return builder.build()


def _copy(builder: MechanismBuilder, mech: Mechanism, prefix: str = "", onto: str = GROUND) -> None:
    if onto == GROUND:
        _dress(builder, mech)
    for b in mech.bodies[1:]:
        _add(builder, mech, b, prefix, onto)
    _add_frames(builder, mech, range(len(mech.bodies)), prefix, onto)


def _dress(builder: MechanismBuilder, mech: Mechanism) -> None:
    builder.dress_ground(mech.bodies[0].visuals, mech.bodies[0].collisions)


def _add(
    builder: MechanismBuilder, mech: Mechanism, b: Body, prefix: str = "", onto: str = GROUND
) -> None:
    joint = b.joint
    if joint.mimic is not None:
        joint = replace(joint, mimic=replace(joint.mimic, joint=prefix + joint.mimic.joint))
    parent = onto if b.parent == 0 else prefix + mech.bodies[b.parent].name
    builder.add(
        prefix + b.name,
        parent,
        joint,
        prefix + b.joint_name,
        b.placement,
        b.inertia,
        b.offset,
        b.visuals,
        b.collisions,
    )


def _add_frames(
    builder: MechanismBuilder, mech: Mechanism, kept: Any, prefix: str = "", onto: str = GROUND
) -> None:
    """Every frame that is not a body's own, on the bodies that are kept."""
    own = {b.name for b in mech.bodies}
    for f in mech.frames:
        if f.name not in own and f.body in kept:
            body = onto if f.body == 0 else prefix + mech.bodies[f.body].name
            builder.add_frame(prefix + f.name, body, f.placement)


def _held(b: Body, q: np.ndarray) -> Body:
    R, p = b.joint.pose(q)
    return replace(b, joint=Fixed(), placement=b.placement @ Transform(R, p))
