"""The same joint-level dynamics at less cost: canonical frames and regrouped inertias.

Joint forces, accelerations and the mass matrix do not depend on where the frames of bodies are, nor
on how inertia is shared by bodies whose relative motion cannot tell.  So each body's frame is put
with z along its joint's axis, and x along the common normal to the next axis (Denavit and
Hartenberg): the placement of the next joint is then Rx(α) Tx(a) … and most of its numbers are 0.
And what is symmetric about a joint's axis is moved to the parent:

    revolute about z        mass, h_z, diag(s, s, 0)        prismatic, translation    J
    helical, cylindrical    diag(s, s, 0)                   spherical, universal      mass

with s = ½(J_xx + J_yy − J_zz) (Gautier and Khalil's regrouping).  Poses, momenta and forces between
links are not those of the original: this form is for joint-level results only.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from ..algebra.rotation import about_axis, skew
from ..algebra.small import cos, sin
from ..algebra.spatial import SpatialInertia, Transform, congruence
from ..model.joint import Joint, Numbers
from ..model.joints import (
    Axial,
    Cylindrical,
    Helical,
    Prismatic,
    Revolute,
    Spherical,
    Translation,
    Universal,
)
from ..model.mechanism import Body, Frame, Mechanism

__all__ = ["Reframed", "TurnedRevolute", "canonical"]

_Z = (0.0, 0.0, 1.0)
# the same one for all bodies, so that they are quickly found to be alike
_SAME = Transform()
# what rounding leaves of numbers that cancel, beside the numbers: a smaller rest is taken for 0
_DUST = 4 * float(np.finfo(float).eps)
# axes that are as good as parallel, or as good as one, have no common normal worth going to
_NEARLY = 1e-9


@dataclass(frozen=True)
class TurnedRevolute(Revolute):
    """A hinge about z whose angle is counted from `zero`: R = Rz(q + zero)."""

    nq: ClassVar[int] = 1
    nv: ClassVar[int] = 1
    axis: Numbers = _Z
    zero: float = 0.0

    def pose(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return about_axis(np.array(_Z), q + self.zero), np.zeros(3)

    def turn(self, q: np.ndarray) -> tuple[int, Any, Any] | None:
        return 2, cos(q[0] + self.zero), sin(q[0] + self.zero)


@dataclass(frozen=True)
class Reframed:
    """A mechanism that moves as another, and where its bodies' frames are in those of the other."""

    mechanism: Mechanism
    frames: tuple[Transform, ...]

    @classmethod
    def same(cls, mech: Mechanism) -> Reframed:
        """The mechanism as it is."""
        return cls(mech, (Transform(),) * len(mech.bodies))

    def forces(self, f_ext: Any) -> np.ndarray:
        """External forces on the original bodies, as forces on these."""
        moved = [X.inv.transfer @ f for X, f in zip(self.frames[1:], f_ext, strict=True)]
        return np.array(moved).reshape(-1, 6)

    def points(self, points: Any) -> np.ndarray:
        """Points of the original bodies, None for their origins, in the frames of these."""
        given = np.zeros((len(self.frames) - 1, 3)) if points is None else points
        moved = [X.inv @ x for X, x in zip(self.frames[1:], given, strict=True)]
        return np.array(moved).reshape(-1, 3)


@lru_cache(maxsize=4)
def canonical(mech: Mechanism) -> Reframed:
    """The mechanism in canonical frames with regrouped inertias; all its methods want the same."""
    moving = [_moving_frame(b) for b in mech.bodies]
    axial = [b for b in mech.bodies if isinstance(b.joint, Axial)]
    # of several, the first
    next_to = {b.parent: b for b in reversed(axial)}
    for k, body in enumerate(mech.bodies):
        if isinstance(body.joint, Axial):
            moving[k] = moving[k] @ _along_axis(body, moving[k], next_to.get(k))
    bodies = [mech.bodies[0]]
    for k in range(1, len(mech.bodies)):
        bodies.append(_moved(mech.bodies[k], moving[mech.bodies[k].parent], moving[k]))
    bodies = _regrouped(bodies)
    frames = tuple(_moved_frame(f, moving[f.body]) for f in mech.frames)
    made = replace(mech, bodies=tuple(bodies), frames=frames)
    # what a body has along its joint is regrouped, what the joint feels is not
    made.__dict__["least"] = mech.least
    return Reframed(made, tuple(moving))


def _moving_frame(body: Body) -> Transform:
    """The joint's moving frame in the body's frame, z along the axis where there is one."""
    if not isinstance(body.joint, Axial):
        return body.offset.inv
    return body.offset.inv @ Transform(_z_to(tuple(body.joint.axis)))


@lru_cache
def _z_to(axis: tuple[float, ...]) -> np.ndarray:
    """A rotation with R z = axis."""
    z = np.array(axis)
    x = np.cross(np.eye(3)[int(np.argmin(np.abs(z)))], z)
    x = x / np.linalg.norm(x)
    return _snapped(np.column_stack([x, np.cross(z, x), z]))


def _along_axis(body: Body, moving: Transform, child: Body | None) -> Transform:
    """Rz(γ) Tz(s), which the body's joint does not notice, chosen for the next joint's sake."""
    if child is not None:
        there = _joint_frame(child)
        return _to_common_normal(moving.inv @ there, _size(moving) + _size(there))
    h = _seen_from(moving, body).h
    aside = np.hypot(h[0], h[1]) > _DUST * np.linalg.norm(h)
    return Transform(_turn_z(np.arctan2(h[1], h[0]))) if aside else Transform()


def _joint_frame(body: Body) -> Transform:
    """The joint's frame on the parent, z along the axis where there is one."""
    if not isinstance(body.joint, Axial):
        return body.placement
    return body.placement @ Transform(_z_to(tuple(body.joint.axis)))


def _to_common_normal(X: Transform, size: float) -> Transform:
    """Rz(γ) Tz(s) that puts x on the common normal of z and the z axis of X.

    size: of the lengths that X comes from.
    """
    p, d = X.translation, X.rotation[:, 2]
    n = np.array([-d[1], d[0], 0.0])
    if np.hypot(n[0], n[1]) > _NEARLY:
        # n · (p × d)
        s = skew(n) @ p @ d / (n @ n)
        # of nearly parallel axes the common normal is far away: going there would cost digits
        there = _DUST * size < abs(s) <= 10 * np.linalg.norm(p)
        return Transform(_turn_z(np.arctan2(n[1], n[0])), (0.0, 0.0, s if there else 0.0))
    if np.hypot(p[0], p[1]) > _NEARLY * size:
        return Transform(_turn_z(np.arctan2(p[1], p[0])), (0.0, 0.0, p[2]))
    return Transform()


def _turn_z(angle: float) -> np.ndarray:
    return _turn(_Z, float(angle))


# long mechanisms have the same bodies again and again


@lru_cache
def _turn(axis: tuple[float, ...], angle: float) -> np.ndarray:
    return _snapped(about_axis(np.array(axis), np.array([angle])))


@lru_cache
def _along_z(joint: Axial, zero: float) -> Joint:
    """The joint with its axis along z, counted from an angle."""
    return TurnedRevolute(**_data(joint), zero=zero) if zero else replace(joint, axis=_Z)


def _moved(body: Body, parent: Transform, own: Transform) -> Body:
    """The body in its own moving frame, its joint placed in the parent's."""
    inertia = _seen_from(own, body)
    X, joint = parent.inv @ body.placement, body.joint
    size = sum(map(_size, (parent, body.placement, body.offset, own)))
    if isinstance(joint, Axial):
        # at q = 0 the moving frame is on the joint's frame
        X = X @ body.offset @ own
        turn = 0.0
        if type(joint) is Revolute:
            R, turn = _split_turn(X.rotation)
            X = Transform(R, X.translation)
        joint = _along_z(joint, turn)
    placement = _clean(X, size)
    return replace(body, placement=placement, offset=_SAME, inertia=inertia, joint=joint)


def _moved_frame(frame: Frame, own: Transform) -> Frame:
    """A frame in the moving frame of its body."""
    size = _size(own) + _size(frame.placement)
    return replace(frame, placement=_clean(own.inv @ frame.placement, size))


def _seen_from(X: Transform, body: Body) -> SpatialInertia:
    """A body's inertia about the origin of frame X; far away its centre of mass moves first."""
    return body.inertia.moved(X.inv).spatial


def _split_turn(R: np.ndarray) -> tuple[np.ndarray, float]:
    """R = Rz(a) Rx(b) Rz(zero): the first two together, and the angle of the last."""
    sine = np.hypot(R[0, 2], R[1, 2])
    a = np.arctan2(R[0, 2], -R[1, 2]) if sine > _DUST else 0.0
    if a > 0.5 * np.pi + _DUST or a < -0.5 * np.pi - _DUST:
        a, sine = a - np.copysign(np.pi, a), -sine
    b = np.arctan2(sine, R[2, 2])
    first = _turn_z(a) @ _turn((1.0, 0.0, 0.0), float(b))
    rest = first.T @ R
    zero = float(np.arctan2(rest[1, 0], rest[0, 0]))
    quarter = np.round(zero / (0.5 * np.pi)) * 0.5 * np.pi
    # quarter turns only permute and flip: they stay in the placement
    return (R, 0.0) if abs(zero - quarter) < _DUST else (first, zero)


def _data(joint: Joint) -> dict[str, Any]:
    return {f.name: getattr(joint, f.name) for f in fields(Joint)}


def _regrouped(bodies: list[Body]) -> list[Body]:
    """What the joint cannot tell from a part of the parent moves to the parent; ground swallows."""
    out = list(bodies)
    for k in range(len(out) - 1, 0, -1):
        M = out[k].inertia.spatial
        moved = _indifferent(out[k].joint, M)
        out[k] = replace(out[k], inertia=_tidy(_minus(M, moved), M))
        p = out[k].parent
        if p:
            felt = congruence(moved, out[k].placement.transfer)
            out[p] = replace(out[p], inertia=out[p].inertia.spatial + felt)
    return out


def _indifferent(joint: Joint, M: SpatialInertia) -> SpatialInertia:
    """The part of an inertia that moves with the parent as well as with the body."""
    s = 0.5 * (M.J[0, 0] + M.J[1, 1] - M.J[2, 2])
    none, ring = np.zeros(3), np.diag([s, s, 0.0])
    if type(joint) in (Revolute, TurnedRevolute):
        return SpatialInertia(M.mass, np.array([0.0, 0.0, M.h[2]]), ring)
    if type(joint) in (Prismatic, Translation):
        return SpatialInertia(0.0, none, M.J)
    if type(joint) in (Helical, Cylindrical):
        return SpatialInertia(0.0, none, ring)
    if type(joint) in (Spherical, Universal):
        return SpatialInertia(M.mass, none, np.zeros((3, 3)))
    return SpatialInertia.zero()


def _minus(A: SpatialInertia, B: SpatialInertia) -> SpatialInertia:
    return SpatialInertia(A.mass - B.mass, A.h - B.h, A.J - B.J)


def _tidy(M: SpatialInertia, before: SpatialInertia) -> SpatialInertia:
    return SpatialInertia(M.mass, _without_dust(M.h, before.h), _without_dust(M.J, before.J))


def _clean(X: Transform, size: float) -> Transform:
    """A pose without what rounding left; size: of the lengths that its translation comes from."""
    return Transform(_snapped(X.rotation), _without_dust(X.translation, size))


def _without_dust(x: np.ndarray, terms: Any) -> np.ndarray:
    """x with 0 for what is rounding beside the numbers that it was made from."""
    return np.where(np.abs(x) < _DUST * np.abs(terms).max(initial=0.0), 0.0, x)


def _size(X: Transform) -> float:
    return float(np.linalg.norm(X.translation))


def _snapped(R: np.ndarray) -> np.ndarray:
    """R with the entries that are 0, ±½, ±1 but for rounding made exactly that."""
    near = np.round(2 * R) / 2
    return np.where(np.abs(R - near) < _DUST, near, R)
