"""How the rows of constraints change with the motion of the mechanism.  math §3; paper L §2.

A body that is displaced by ξ, and its frame with it, has its velocity and its acceleration changed,
in its own axes, by

    δV = ϑ,   δα = (η − V×ϑ) with α spatial:   δω̇ = η − ω×ϑ,   δp̈ = η − 2 v×ϑ                   (1)

ϑ and η as in `linearized/inverse_derivatives.py`, by the columns H*, H′, Ḣ + H′ and H″ of the
joints on its way.  Seen in other axes, from which it turns by ψ, each of its vectors x has ψ×x on
top of that.  So has either frame in the axes of a constraint's rows, of which one is fixed:

    axes of l   ψ_l = 0,   ψ_r = −ψ            axes of r   ψ_l = ψ,   ψ_r = 0                   (2)

with (ψ; δd) = K δq: the point of r that l is on moves by δd on r.  The rows are those of `rows.py`.

A force λ = (N; F) that is fixed in the axes of the rows turns against the bodies by −ψ_l and −ψ_r.
Beyond forces that are carried along by the bodies it adds to the joint forces

    J_l* (N×ψ_l; F×ψ_l) − J_r* (N×ψ_r − F×δd; F×ψ_r)                                            (3)

which is nothing for a contact in its own axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...algebra.rotation import skew
from ...algebra.small import scaled_identity
from ...algebra.spatial import Transform, carried_acceleration, turning
from ...model.mechanism import Mechanism
from ..linearized.nominal import Nominal
from .description import Contact
from .rows import Held

__all__ = ["Changes", "changes"]


class Changes(NamedTuple):
    """Of all rows, in the axes in which they are solved for.

    K: (rows, nv).  dq, dqd: of K q̈ − k along every direction of q and q̇, (rows, nv).
    turn: ψ×λ, how λ turns against the axes in which it is given, (rows, nv).
    pushed, push: with pushed* push, (nv, nv), joint forces by (3); (any, nv) each.
    """

    K: np.ndarray
    dq: np.ndarray
    dqd: np.ndarray
    turn: np.ndarray
    pushed: np.ndarray
    push: np.ndarray


class _Side(NamedTuple):
    """A body's motion at the frame l, in the axes of rows: (6,), and its columns (6, nv)."""

    V: np.ndarray
    a: np.ndarray
    J: np.ndarray
    first: np.ndarray
    total: np.ndarray
    second: np.ndarray


class _Change(NamedTuple):
    """Of V and (ω̇; p̈), along several directions: (6, n)."""

    V: np.ndarray
    a: np.ndarray


def changes(mech: Mechanism, n: Nominal, places: Sequence[Held], forces: np.ndarray) -> Changes:
    """The changes of all rows on a nominal motion, with forces (rows,) in their solved axes."""
    parts, start = [], 0
    for h in places:
        stop = start + len(h.axes)
        parts.append(_changes(mech, n, h, forces[start:stop]))
        start = stop
    nothing = Changes(*(np.zeros((0, mech.nv)) for _ in Changes._fields))
    return Changes(*map(np.concatenate, zip(nothing, *parts, strict=True)))


def _changes(mech: Mechanism, n: Nominal, h: Held, forces: np.ndarray) -> Changes:
    left, right = _side(mech, n, h.left, h.X), _side(mech, n, h.right, h.Y)
    K, still = left.J - right.J, np.zeros((3, mech.nv))
    turn, shift = K[:3], K[3:]
    turns = (turn, still) if h.right_axes else (still, -turn)  # (2)
    moved = _carried(left, left.first, left.second, turns[0], still)
    under = _carried(right, right.first, right.second, turns[1], shift)
    dq = _rate(h, left, right, moved, under) + h.constraint.stiffness * _error(h, turn, shift)
    pushed = _carried(left, left.J, left.total, still, still)
    under = _carried(right, right.J, right.total, still, still)
    dqd = _rate(h, left, right, pushed, under)
    whole = np.zeros(6, dtype=forces.dtype)
    whole[h.axes] = forces
    rows, push = _pushes(h, left, right, whole, turns, shift)
    against = still if h.turn is None else turn
    at = h.axes
    return Changes(K[at], dq[at], dqd[at], -_crossed(whole, against)[at], rows, push)


def _side(mech: Mechanism, n: Nominal, body: int, X: Transform) -> _Side:
    """What moves with a body, at the pose X on it."""
    V = X.transfer.T @ n.V[body]
    a = carried_acceleration(X.transfer, n.V[body], n.alpha[body], np.zeros(6))
    columns: list[dict[int, np.ndarray]] = [{} for _ in range(4)]
    for _, k in mech.ancestors(body):
        maps = n.H[k], n.H_first[k], n.H_sum[k], n.H_second[k]
        for part, x in zip(columns, maps, strict=True):
            part[k] = X.transfer.T @ x
        X = n.phi[k].pose @ X
    return _Side(V, a, *(mech.join_columns(part, 6) for part in columns))


def _carried(
    s: _Side, theta: np.ndarray, eta: np.ndarray, turn: np.ndarray, shift: np.ndarray
) -> _Change:
    """(1), with the turn of the body in the axes, and the shift of the point on it."""
    w, v, a = skew(s.V[:3]), skew(s.V[3:]), s.a
    return _Change(
        np.concatenate([theta[:3] - w @ turn, theta[3:] - v @ turn + w @ shift]),
        np.concatenate(
            [
                eta[:3] - w @ theta[:3] - skew(a[:3]) @ turn,
                eta[3:] - 2 * v @ theta[:3] - skew(a[3:]) @ turn + turning(s.V[:3], a[:3]) @ shift,
            ]
        ),
    )


def _rate(h: Held, l: _Side, r: _Side, dl: _Change, dr: _Change) -> np.ndarray:
    """The change of K q̇'s rate, of `rows.py` (2), and of its damping: (6, n)."""
    w, u = skew(r.V[:3]), l.V - r.V
    du, da = dl.V - dr.V, dl.a - dr.a
    turn = da[:3] - w @ du[:3] + skew(u[:3]) @ dr.V[:3]
    slide = da[3:] - 2 * w @ du[3:] + 2 * skew(u[3:]) @ dr.V[:3]
    if isinstance(h.constraint, Contact) and h.constraint.kind != "point":
        slide = slide - skew(u[:3]) @ du[3:] + skew(u[3:]) @ du[:3]
    return np.concatenate([turn, slide]) + h.constraint.damping * du


def _error(h: Held, turn: np.ndarray, shift: np.ndarray) -> Any:
    """The change of the error e, of `rows.py`: (6, n)."""
    if h.Z is None:
        return 0.0
    R, d = h.Z.rotation, h.Z.translation
    seen = R if h.right_axes else R.T
    angles = 0.5 * (scaled_identity(np.trace(R)) - seen) @ turn
    free = [i for i in range(3) if i not in h.axes]
    if len(free) == 1:
        angles = -skew(np.eye(3)[free[0]]) @ skew(seen[:, free[0]]) @ turn
    if not h.right_axes:
        shift = shift + skew(R.T @ d) @ turn
    return np.concatenate([angles, shift])


def _pushes(
    h: Held,
    l: _Side,
    r: _Side,
    force: np.ndarray,
    turns: tuple[np.ndarray, np.ndarray],
    shift: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """The rows and the columns of (3)."""
    rows, push = [np.zeros((0, l.J.shape[1]))] * 2
    if h.right_axes:
        rows, push = l.J, _crossed(force, turns[0])
    if h.right:
        moment = np.concatenate([skew(force[3:]) @ shift, np.zeros(shift.shape)])
        rows = np.concatenate([rows, r.J])
        push = np.concatenate([push, moment - _crossed(force, turns[1])])
    return rows, push


def _crossed(force: np.ndarray, turn: np.ndarray) -> np.ndarray:
    """(N×ψ; F×ψ) of columns ψ."""
    return np.concatenate([skew(x) @ turn for x in (force[:3], force[3:])])
