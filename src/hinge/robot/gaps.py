"""How far the frames of constraints are off each other: whole angles and lengths, in words too."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..algorithms.constrained.closure import relative_poses
from ..algorithms.constrained.description import Constraint, Contact, LoopConstraint
from ..errors import OpenLoopWarning, warn_of_model
from ..model.mechanism import Mechanism

__all__ = ["anchors_of", "gaps", "units_of", "warn_of_open_loops", "worst_gap"]

# of a radian and of the lengths on the way to its frames, what a loop may be open by
_OPEN = 1e-3

_AXES = ("ωx", "ωy", "ωz", "vx", "vy", "vz")


def gaps(
    constraints: tuple[Constraint, ...], relative: np.ndarray, anchors: np.ndarray | None = None
) -> np.ndarray:
    """e (…, rows) of relative poses (…, n, 4, 4): whole angles, where the error's are sines.

    anchors (…, n, 4, 4): of contacts, whose relative poses are those in the world.
    """
    rows = [np.zeros((*relative.shape[:-3], 0))]
    for i, c in enumerate(constraints):
        X = relative[..., i, :, :]
        if anchors is not None and isinstance(c, Contact):
            X = np.linalg.inv(anchors[..., i, :, :]) @ X
        e = np.concatenate([_turn(X[..., :3, :3], c.axes), X[..., :3, 3]], axis=-1)
        if anchors is not None and isinstance(c, Contact) and c.reference == "aligned":
            R = anchors[..., i, :3, :3]
            e = np.concatenate([(R @ x[..., None])[..., 0] for x in (e[..., :3], e[..., 3:])], -1)
        rows.append(e[..., list(c.axes)])
    return np.concatenate(rows, axis=-1)


def anchors_of(constraints: tuple[Constraint, ...], relative: np.ndarray) -> np.ndarray:
    """(…, n, 4, 4): where contacts are to stay, their anchors or where they are."""
    out = relative.copy()
    for i, c in enumerate(constraints):
        if isinstance(c, Contact) and c.anchor is not None:
            out[..., i, :3, :3], out[..., i, :3, 3] = c.anchor.rotation, c.anchor.translation
    return out


def _turn(R: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """The angles of rotations that constraints along these axes see."""
    free = [axis for axis in range(3) if axis not in axes]
    if len(free) == 1:
        return _tilt(R[..., :, free[0]], free[0])
    # one angle alone is what the error takes for it
    return 0.5 * _axial(R) if len(free) == 2 else _log(R)


def worst_gap(constraints: tuple[Constraint, ...], error: np.ndarray) -> str:
    """The largest of gaps (…, rows), in words."""
    if not constraints:
        return "no constraints"
    sizes = np.abs(error).reshape(-1, error.shape[-1]).max(axis=0, initial=0.0)
    named = [(c, axis) for c in constraints for axis in c.axes]
    c, axis = named[int(np.argmax(sizes))]
    unit = "rad" if axis < 3 else "m"
    return f"{c.left!r} is off {c.right!r} by {sizes.max():.2g} {unit} along {_AXES[axis]}"


def warn_of_open_loops(mech: Mechanism, where: str, constraints: Any, q: np.ndarray) -> None:
    """Say which loop is most open at q (…, nq), of a batch at its first, if one is.

    Loops that nothing pulls shut, without stiffness, hold their frames apart as they are.
    """
    loops = tuple(c for c in constraints if isinstance(c, LoopConstraint) and c.stiffness)
    if not loops or not q.size or not np.isfinite(at := q.reshape(-1, mech.nq)[0]).all():
        return
    e, units = gaps(loops, relative_poses(mech, at, loops)), units_of(mech, loops)
    if (np.abs(e) > _OPEN * units).any():
        warn_of_model(
            f"{where}: a loop is open: {worst_gap(loops, e)}, and is pulled shut from there; start "
            f"from robot.assemble(q, constraints).q",
            OpenLoopWarning,
        )


def units_of(mech: Mechanism, constraints: tuple[Constraint, ...]) -> np.ndarray:
    """What counts as 1 in each row: a radian, and the lengths on the way to the frames."""
    units = [np.zeros(0)]
    for c in constraints:
        reach = 0.0
        for frame in map(mech.frame, (c.left, c.right)):
            way = [mech.bodies[k] for _, k in mech.ancestors(frame.body)]
            lengths = [X.translation for b in way for X in (b.placement, b.offset)]
            lengths.append(frame.placement.translation)
            reach += sum(float(np.linalg.norm(p)) for p in lengths)
        units.append(np.array([1.0 if axis < 3 else reach or 1.0 for axis in c.axes]))
    return np.concatenate(units)


def _axial(R: np.ndarray) -> np.ndarray:
    pairs = (2, 1), (0, 2), (1, 0)
    return np.stack([R[..., i, j] - R[..., j, i] for i, j in pairs], axis=-1)


def _tilt(column: np.ndarray, axis: int) -> np.ndarray:
    """The angle between a coordinate axis and where it went, about what turns one to the other."""
    aside = np.cross(np.eye(3)[axis], column)
    angle = np.arctan2(np.linalg.norm(aside, axis=-1), column[..., axis])
    # of a half turn: any axis across
    other = np.eye(3)[(axis + 1) % 3]
    return angle[..., None] * _unit(aside, other)


def _log(R: np.ndarray) -> np.ndarray:
    """The rotation vector of rotations (…, 3, 3)."""
    aside, trace = _axial(R), np.trace(R, axis1=-2, axis2=-1)
    angle = np.arctan2(np.linalg.norm(aside, axis=-1), trace - 1)
    # near a half turn the symmetric part knows the axis
    most = np.argmax(np.diagonal(R, axis1=-2, axis2=-1), axis=-1)[..., None, None]
    column = np.take_along_axis(R + np.swapaxes(R, -1, -2), most, axis=-1)[..., 0]
    spread = column + (1 - trace)[..., None] * np.eye(3)[most[..., 0, 0]]
    same = np.where((spread * aside).sum(axis=-1) < 0, -1.0, 1.0)[..., None]
    far = (trace < -0.9)[..., None]
    return angle[..., None] * np.where(far, _unit(same * spread, 0.0), _unit(aside, 0.0))


def _unit(v: np.ndarray, otherwise: Any) -> np.ndarray:
    size = np.linalg.norm(v, axis=-1, keepdims=True)
    return np.where(size > 0, v / np.where(size > 0, size, 1.0), otherwise)
