"""A mechanism seen in the axes of the ground: no turns between bodies, and few shifts.

In body axes inertias are constants and hinge maps are simple, but every step from body to body
turns and shifts what it carries.  In ground axes nothing is turned, and of four bodies after one
another all are taken about the origin of the first, their station, so that most steps cost
nothing: what goes over all pairs of bodies becomes cheap, what is done once per body costs more.
Loops over bodies take each about its own origin, where hinges only turn.
Stations stay near their bodies, so that no digits are lost far from the ground's origin.

Any sweep runs on `InGroundAxes(mech, q)` as on `mech`, at that q.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ..algebra.rotation import skew
from ..algebra.small import mirror_lower, scaled_identity
from ..algebra.spatial import ForceTransfer, SpatialInertia, congruence
from .joint import HingeRates
from .protocol import Branches, PerBody

if TYPE_CHECKING:
    # to a type checker a property: it does not take a cached one for an attribute of a protocol
    cached_property = property
else:
    from functools import cached_property

__all__ = ["Axes", "InGroundAxes", "seen_in"]

# how many bodies after one another share a station
_SHARING = 4


class InGroundAxes:
    """The `Branches` of a mechanism at one configuration, every vector turned to the ground."""

    def __init__(self, mech: Branches, q: Any) -> None:
        here = np.zeros(3)
        self._mech = mech
        # shifts: from the parent's station to a body's own; offsets: of bodies from their stations
        self._R, self._shifts, self._offsets = mech.slots(3)
        self._R[0], self._shifts[0], self._offsets[0] = np.eye(3), here, here
        phi, rows, first = mech.phi(q), mech.H(q), mech.stretches(_SHARING)
        for p, k in mech.outward():
            offset = self._offsets[p] + self._R[p] @ phi[k].p
            self._shifts[k], self._offsets[k] = (offset, here) if first[k] else (here, offset)
            self._R[k] = _turned(self._R[p], phi[k])
        self._H = mech.filled(lambda k: self._rows(k, rows[k]))
        self._phi = mech.each(lambda k: _shift(self._shifts[k]))
        # what is the same in all axes
        self.nv, self.has_followers = mech.nv, mech.has_followers
        self.armature, self.least, self.free_fall = mech.armature, mech.least, mech.free_fall
        self.coordinates, self.rates, self.driven = mech.coordinates, mech.rates, mech.driven
        self.held_before, self.locked_beyond = mech.held_before, mech.locked_beyond
        self.outward, self.inward, self.climb = mech.outward, mech.inward, mech.climb
        self.slots, self.each, self.filled = mech.slots, mech.each, mech.filled
        self.shared, self.combined = mech.shared, mech.combined
        self.stretches, self.pairs, self.meetings = mech.stretches, mech.pairs, mech.meetings
        self.join, self.join_matrix = mech.join, mech.join_matrix
        self.join_blocks, self.join_bodies = mech.join_blocks, mech.join_bodies

    @cached_property
    def M(self) -> PerBody:
        """As in `Tree`."""
        return self.each(lambda k: self._turned_inertia(self._mech.M[k], k))

    def _turned_inertia(self, M: SpatialInertia, k: Any) -> SpatialInertia:
        R = self._R[k]
        turned = SpatialInertia(M.mass, R @ M.h, _turned_moments(M.J, R))
        return congruence(turned, _shift(self._offsets[k]))

    def phi(self, q: Any) -> PerBody:
        """As in `Tree`: shifts only."""
        return self._phi

    def H(self, q: Any) -> PerBody:
        """As in `Tree`."""
        return self._H

    def H_rate(self, q: Any, qd: Any) -> PerBody:
        """As in `Tree`: the rate of the components in body axes."""
        rate = self._mech.H_rate(q, qd)
        return self.each(lambda k: self._rows(k, rate[k]))

    def hinge_rates(self, q: Any, qd: Any, qdd: Any) -> PerBody:
        """As in `Tree`."""
        rates = self._mech.hinge_rates(q, qd, qdd)
        return self.each(lambda k: rates[k] and HingeRates(*(self._rows(k, x) for x in rates[k])))

    def wrenches(self, f_ext: Any) -> PerBody:
        """As in `Tree`."""
        given = self._mech.wrenches(f_ext)
        return self.each(
            lambda k: _shift(self._offsets[k]) @ (given[k].reshape(2, 3) @ self._R[k].T).ravel()
        )

    def points(self, points: Any) -> PerBody:
        """As in `Tree`."""
        given = self._mech.points(points)
        return self.each(lambda k: self._offsets[k] + self._R[k] @ given[k])

    def _rows(self, k: Any, x: np.ndarray) -> np.ndarray:
        """Motions (…, 6) of body k, turned, at its station."""
        turned = (x.reshape(-1, 3) @ self._R[k].T).reshape(-1, 6)
        w, u = turned[:, :3].T, turned[:, 3:].T
        return np.concatenate([w, u + skew(self._offsets[k]) @ w]).T.reshape(x.shape)


Axes = Literal["body", "ground"]


def seen_in(axes: Axes, mech: Branches, q: Any) -> Branches:
    """The mechanism itself, or seen in ground axes."""
    return InGroundAxes(mech, q) if axes == "ground" else mech


def _shift(p: np.ndarray) -> ForceTransfer:
    return ForceTransfer(np.eye(3), p)


def _turned(R: np.ndarray, phi: ForceTransfer) -> np.ndarray:
    """R R_pk, by the turn of the joint alone where there is one."""
    if phi.turn is None:
        return R @ phi.R
    base, i, c, s = phi.turn
    j, k = (i + 1) % 3, (i + 2) % 3
    columns = list((R @ base.R).T)
    c, s = np.array([c]), np.array([s])
    columns[j], columns[k] = c * columns[j] + s * columns[k], c * columns[k] - s * columns[j]
    return np.array(columns).T


def _turned_moments(J: np.ndarray, R: np.ndarray) -> np.ndarray:
    """R J Rᵀ = J_zz 1 + x aᵀ + a xᵀ + y bᵀ + b yᵀ, x, y, z being the columns of R."""
    x, y, z = R.T
    a = np.array([x, y, z]).T @ np.array([0.5 * (J[0, 0] - J[2, 2]), J[1, 0], J[2, 0]])
    b = np.array([y, z]).T @ np.array([0.5 * (J[1, 1] - J[2, 2]), J[2, 1]])
    half = np.outer(x, a) + np.outer(y, b)
    return mirror_lower(half + half.T) + scaled_identity(J[2, 2])
