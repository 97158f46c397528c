"""Changes of joints: their numbers, joints that are held, axes put right, one axis a joint."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np

from ..algebra.rotation import nearest_rotation
from ..algebra.spatial import Inertia, Transform
from ..errors import ArgumentError, ModelError
from ..model.joints import Cylindrical, Fixed, Joint, Prismatic, Revolute, Translation, Universal
from ..model.mechanism import Body, Mechanism, did_you_mean
from .rebuild import add_body, add_frames, builder_like, dress, edits, names_in, rebuilt

__all__ = ["lock", "right_angles", "single_axis", "weld", "with_joint"]


@edits
def with_joint(
    mech: Mechanism,
    joint: str | Iterable[str],
    kind: Joint | None = None,
    *,
    placement: Transform | None = None,
    **numbers: Any,
) -> Mechanism:
    """The mechanism with other numbers for one joint, or for several.

    numbers: `lower`, `upper`, `velocity_limit`, `effort_limit`, `armature`, `damping`, `friction`,
    `stiffness`, `rest`, `mimic`, `axis`, …: those of the joint's class; all others stay.
    kind: another joint in its place; placement: another pose of its frame on the parent body.
    """
    chosen = {mech.joint_index(name) for name in names_in("with_joint", "joint", joint)}
    bodies = list(mech.bodies)
    for k in chosen:
        old, where = bodies[k], f"{mech.name!r}: joint {bodies[k].joint_name!r}"
        new = _renumbered(where, old.joint if kind is None else kind, numbers)
        pose = old.placement if placement is None else placement
        bodies[k] = replace(old, joint=new, placement=pose)
    return rebuilt(replace(mech, bodies=tuple(bodies)))


def _renumbered(where: str, joint: Joint, numbers: Mapping[str, Any]) -> Joint:
    if not isinstance(joint, Joint):
        raise ModelError(f"{where}: its kind is {joint!r}; expected such as hinge.Revolute(axis=…)")
    known = [f.name for f in fields(joint)]
    for name in numbers:
        if name not in known:
            hint = did_you_mean(name, known)
            raise ArgumentError(f"{where}: a {joint} joint has no {name!r}; {hint}")
    try:
        return replace(joint, **numbers)
    except ModelError as problem:
        raise ModelError(f"{where}: {problem}") from None


@edits
def lock(mech: Mechanism, joints: str | Iterable[str], q: Any = None) -> Mechanism:
    """The mechanism with joints held: a reduced model, in which their links are welded.

    q: where they are held: a configuration (nq,) of the whole robot, or coordinates by name of
    joint; default: neutral.  Joints that mimic a held one are held too.
    """
    names = names_in("lock", "joint", joints)
    chosen = {mech.joint_index(name) for name in names}
    coordinates = mech.coordinates(_configuration(mech, names, q))
    leaders = {mech.bodies[k].joint_name for k in chosen}
    held = {
        k: coordinates[k]
        for k, b in enumerate(mech.bodies)
        if k in chosen or (b.joint.mimic and b.joint.mimic.joint in leaders)
    }
    return _with_held(mech, held)


def _configuration(mech: Mechanism, names: tuple[str, ...], q: Any) -> np.ndarray:
    """The configuration that joints are held at."""
    if isinstance(q, Mapping):
        found = _neutral(mech)
        for name, value in q.items():
            if name not in names:
                hint = did_you_mean(str(name), names)
                raise ArgumentError(f"{mech.name!r}: q has joint {name!r}, not to be held; {hint}")
            found[mech.q_slice(name)] = _coordinates(mech, name, value)
        return found
    try:
        found = _neutral(mech) if q is None else np.asarray(q, dtype=float)
    except (TypeError, ValueError):
        found = np.full((), np.nan)
    if found.shape != (mech.nq,) or not np.isfinite(found).all():
        raise ModelError(
            f"{mech.name!r}: lock at q = {q!r}; expected nq = {mech.nq} finite coordinates of the "
            f"whole robot, or a dictionary by names of joints"
        )
    return found


def _neutral(mech: Mechanism) -> np.ndarray:
    leaders = [b.joint.neutral() for b in mech.bodies[1:] if b.joint.mimic is None]
    return np.concatenate([np.zeros(0), *leaders])


def _coordinates(mech: Mechanism, joint: str, value: Any) -> np.ndarray:
    """Coordinates of one joint."""
    nq = mech.bodies[mech.joint_index(joint)].joint.nq
    held = np.asarray(value, dtype=float).reshape(-1)
    if held.shape != (nq,) or not np.isfinite(held).all():
        raise ModelError(
            f"{mech.name!r}: hold {joint!r} at {held.tolist()}; expected {nq} finite numbers"
        )
    return held


@edits
def weld(mech: Mechanism, joint: str, q: Any = None) -> Mechanism:
    """The mechanism with a joint held at q (default: neutral), and so the joints that mimic it."""
    index = mech.joint_index(joint)
    neutral = mech.bodies[index].joint.neutral()
    held = {index: _coordinates(mech, joint, neutral if q is None else q)}
    for k, b in enumerate(mech.bodies):
        if b.joint.mimic and b.joint.mimic.joint == joint:
            held[k] = b.joint.mimic.ratio * held[index] + b.joint.mimic.offset
    return _with_held(mech, held)


def _with_held(mech: Mechanism, held: Mapping[int, np.ndarray]) -> Mechanism:
    """The mechanism with the joints of bodies at coordinates for ever."""
    builder = builder_like(mech)
    dress(builder, mech)
    for k, b in enumerate(mech.bodies):
        if k in held:
            pose = Transform(*b.joint.pose(held[k]))
            b = replace(b, joint=Fixed(), placement=b.placement @ pose)
        if k:
            add_body(builder, mech, b)
    add_frames(builder, mech, range(len(mech.bodies)))
    return builder.build()


@edits
def single_axis(mech: Mechanism) -> Mechanism:
    """The mechanism with joints of one axis each, for formats and programs that know no others.

    Universal, cylindrical and translation joints become hinges and slides "joint/1", "joint/2", …,
    one after the other, with bodies without mass between them.  q and v stay what they are.
    """
    builder = builder_like(mech)
    dress(builder, mech)
    for b in mech.bodies[1:]:
        *between, last = _one_after_the_other(b)
        if not between:
            add_body(builder, mech, b)
            continue
        parent, placement = mech.bodies[b.parent].name, b.placement
        for i, joint in enumerate(between, 1):
            name = f"{b.joint_name}/{i}"
            builder.add(f"{b.name}/{name}", parent, joint, name, placement, Inertia())
            parent, placement = f"{b.name}/{name}", Transform()
        name, rest = f"{b.joint_name}/{len(between) + 1}", (b.offset, b.visuals, b.collisions)
        builder.add(b.name, parent, last, name, placement, b.inertia, *rest)
    add_frames(builder, mech, range(len(mech.bodies)))
    return builder.build()


def _one_after_the_other(b: Body) -> list[Joint]:
    """A joint as joints of one axis; itself, where it is none of the kinds that are."""
    j = b.joint
    if isinstance(j, Universal):
        return [_one(Revolute, j.axis1, j, 0), _one(Revolute, j.axis2, j, 1)]
    if isinstance(j, Cylindrical):
        return [_one(Revolute, j.axis, j, 0), _one(Prismatic, j.axis, j, 1)]
    if isinstance(j, Translation):
        return [_one(Prismatic, axis, j, i) for i, axis in enumerate(np.eye(3))]
    return [j]


def _one(kind: type[Revolute | Prismatic], axis: Any, joint: Joint, i: int) -> Joint:
    """A hinge or slide with the data of one DoF of a joint."""
    data = [f.name for f in fields(Joint) if f.name != "mimic"]
    return kind(axis, **{name: getattr(joint, name)[i] for name in data})


@edits
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
        replace(b, placement=squared(b.placement), offset=squared(b.offset)) for b in mech.bodies
    ]
    return rebuilt(replace(mech, bodies=tuple(bodies)))
