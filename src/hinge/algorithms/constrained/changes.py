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

All of it goes by columns: those of a body come as a sweep inward passes it, and the poses of the
frames on it go along.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...algebra.rotation import skew
from ...algebra.small import scaled_identity
from ...algebra.spatial import Transform, carried_acceleration, turning
from ...model.protocol import Descents
from ..linearized.nominal import Nominal
from .description import Contact, row_slices
from .rows import Held, in_given_axes

__all__ = ["Changes", "changes"]


class Changes(NamedTuple):
    """Of all rows.

    K: (rows, nv).  dq, dqd: of K q̈ − k along every direction of q and q̇, (rows, nv).
    turn: ψ×λ, how λ turns against the axes in which it is given, (rows, nv).
    pushed, push: with pushed* push, (nv, nv), joint forces by (3); (any, nv) each.
    """

    K: Any
    dq: Any
    dqd: Any
    turn: Any
    pushed: Any
    push: Any


class _Side(NamedTuple):
    """A body's motion at the frame l, in the axes of rows: (6,), and its columns (6, n)."""

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


def changes(
    mech: Descents,
    n: Nominal,
    places: Sequence[Held],
    forces: np.ndarray,
    given_axes: bool = False,
) -> Changes:
    """The changes of all rows on a nominal motion, with forces (rows,) in their solved axes.

    given_axes: whether they are rows as they are given, and not as they are solved for.
    """
    slices = row_slices([h.constraint for h in places])
    passed = [_Passed(mech, n, h, forces[at]) for h, at in zip(places, slices, strict=True)]
    parts = mech.slots(len(Changes._fields))
    for _, k in mech.inward():
        none = np.zeros((0, n.H[k].shape[1]))
        found = [[none] * len(parts), *(x.columns(k, given_axes) for x in passed)]
        for part, rows in zip(parts, zip(*found, strict=True), strict=True):
            part[k] = np.concatenate(rows).T
    rows, pushes = sum(len(h.axes) for h in places), sum(x.pushes for x in passed)
    sizes = (*[rows] * 4, pushes, pushes)
    return Changes(*(mech.join_rows(x, size) for x, size in zip(parts, sizes, strict=True)))


class _Passed:
    """A constraint as a sweep inward passes the bodies on its ways.

    pushes: how many rows of (3) it has.
    """

    def __init__(self, mech: Descents, n: Nominal, h: Held, forces: np.ndarray) -> None:
        whole = np.zeros(6, dtype=forces.dtype)
        whole[h.axes] = forces
        self.h, self.force = h, mech.shared(whole)
        self.Z, self.turn = (None if x is None else mech.shared(x) for x in (h.Z, h.turn))
        self.left, self.right = _Ride(mech, n, h.left, h.X), _Ride(mech, n, h.right, h.Y)
        self.pushes = 6 * (h.right_axes + bool(h.right))

    def columns(self, k: Any, given_axes: bool) -> Changes:
        """Those of the body at hand: (rows, dof), zeros where it is on neither way."""
        dof = self.left.n.H[k].shape[1]
        if not (self.left.passes(k) or self.right.passes(k)):
            sizes = (*[len(self.h.axes)] * 4, self.pushes, self.pushes)
            return Changes(*(np.zeros((size, dof)) for size in sizes))
        Z, turn = (None if x is None else x.value for x in (self.Z, self.turn))
        h = self.h._replace(Z=Z, turn=turn)
        found = _changes(h, self.left.side(k), self.right.side(k), self.force.value)
        if not given_axes:
            return found
        rows = zip(Changes._fields[:4], found[:4], strict=True)
        return found._replace(**{name: in_given_axes([h], x) for name, x in rows})


class _Ride:
    """What moves with a body, at the pose X on it, as seen from the bodies that carry it."""

    def __init__(self, mech: Descents, n: Nominal, body: int, X: Transform) -> None:
        self.mech, self.n, self.body, self.X = mech, n, body, mech.shared(X)
        a = carried_acceleration(X.transfer, n.V[body], n.alpha[body], np.zeros(6))
        self.V, self.a = mech.shared(X.transfer.T @ n.V[body]), mech.shared(a)

    def passes(self, k: Any) -> bool:
        """Whether body k carries it."""
        return self.mech.carries(k, self.body)

    def side(self, k: Any) -> _Side:
        """The columns of the joint of body k, from which X goes on to its parent."""
        n, X = self.n, self.X.value
        maps = n.H[k], n.H_first[k], n.H_sum[k], n.H_second[k]
        if not self.passes(k):
            return _Side(self.V.value, self.a.value, *[np.zeros(maps[0].shape)] * 4)
        self.X.value = n.phi[k].pose @ X
        return _Side(self.V.value, self.a.value, *(X.transfer.T @ x for x in maps))


def _changes(h: Held, left: _Side, right: _Side, force: np.ndarray) -> Changes:
    K = left.J - right.J
    turn, shift = K[:3], K[3:]
    still = np.zeros(turn.shape)
    turns = (turn, still) if h.right_axes else (still, -turn)  # (2)
    moved = _carried(left, left.first, left.second, turns[0], still)
    under = _carried(right, right.first, right.second, turns[1], shift)
    dq = _rate(h, left, right, moved, under) + h.constraint.stiffness * _error(h, turn, shift)
    pushed = _carried(left, left.J, left.total, still, still)
    under = _carried(right, right.J, right.total, still, still)
    dqd = _rate(h, left, right, pushed, under)
    rows, push = _pushes(h, left, right, force, turns, shift)
    against = still if h.turn is None else turn
    at = h.axes
    return Changes(K[at], dq[at], dqd[at], -_crossed(force, against)[at], rows, push)


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
