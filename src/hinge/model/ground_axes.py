"""A mechanism seen in the axes of the ground: no turns between bodies, and few shifts.

In body axes inertias are constants and hinge maps are simple, but every step from body to body
turns and shifts what it carries.  In ground axes nothing is turned, and of four bodies after one
another all are taken about the origin of the first, their station, so that most steps cost
nothing: what goes over all pairs of bodies becomes cheap, what is done once per body costs more.
Stations stay near their bodies, so that no digits are lost far from the ground's origin.

Any sweep runs on `InGroundAxes(mech, q)` as on `mech`, at that q.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..algebra.small import mirror_lower, scaled_identity
from ..algebra.spatial import ForceTransfer, SpatialInertia, congruence
from .joint import HingeRates
from .mechanism import Mechanism

if TYPE_CHECKING:
    # to a type checker a property: it does not take a cached one for an attribute of a protocol
    cached_property = property
else:
    from functools import cached_property

__all__ = ["InGroundAxes"]

# how many bodies after one another share a station
_SHARING = 4


class InGroundAxes:
    """The `Branches` of a mechanism at one configuration, every vector turned to the ground."""

    def __init__(self, mech: Mechanism, q: np.ndarray) -> None:
        here = np.zeros(3)
        self._mech = mech
        self._R: list[Any] = [np.eye(3)]
        self._phi: list[Any] = [None]
        self._from_station: list[Any] = [_shift(here)]
        depth = [-1]
        for (p, _), phi in zip(mech.outward(), mech.phi(q)[1:], strict=True):
            depth.append(depth[p] + 1)
            offset = self._from_station[p].p + self._R[p] @ phi.p
            first = depth[-1] % _SHARING == 0
            self._phi.append(_shift(offset if first else here))
            self._from_station.append(_shift(here if first else offset))
            self._R.append(_turned(self._R[p], phi))
        self._H = [self._rows(k, H) for k, H in enumerate(mech.H(q))]
        # what is the same in all axes
        self.nv, self.has_followers = mech.nv, mech.has_followers
        self.armature, self.least, self.free_fall = mech.armature, mech.least, mech.free_fall
        self.coordinates, self.rates, self.driven = mech.coordinates, mech.rates, mech.driven
        self.held_before, self.locked_beyond = mech.held_before, mech.locked_beyond
        self.outward, self.inward, self.climb = mech.outward, mech.inward, mech.climb
        self.slots, self.each, self.filled = mech.slots, mech.each, mech.filled
        self.join, self.join_matrix = mech.join, mech.join_matrix
        self.join_blocks, self.join_bodies = mech.join_blocks, mech.join_bodies

    @cached_property
    def M(self) -> list[SpatialInertia]:
        """As in `Tree`."""
        turned = [
            SpatialInertia(M.mass, R @ M.h, _turned_inertia(M.J, R))
            for M, R in zip(self._mech.M, self._R, strict=True)
        ]
        return [congruence(M, s) for M, s in zip(turned, self._from_station, strict=True)]

    def phi(self, q: Any) -> list[Any]:
        """As in `Tree`: shifts only."""
        return self._phi

    def H(self, q: Any) -> list[np.ndarray]:
        """As in `Tree`."""
        return self._H

    def H_rate(self, q: Any, qd: Any) -> list[np.ndarray]:
        """As in `Tree`: the rate of the components in body axes."""
        return [self._rows(k, x) for k, x in enumerate(self._mech.H_rate(q, qd))]

    def hinge_rates(self, q: Any, qd: Any, qdd: Any) -> list[Any]:
        """As in `Tree`."""
        rates = enumerate(self._mech.hinge_rates(q, qd, qdd)[1:], 1)
        return [None, *(HingeRates(*(self._rows(k, x) for x in r)) for k, r in rates)]

    def wrenches(self, f_ext: Any) -> list[np.ndarray]:
        """As in `Tree`."""
        parts = zip(self._mech.wrenches(f_ext), self._R, self._from_station, strict=True)
        return [s @ (f.reshape(2, 3) @ R.T).ravel() for f, R, s in parts]

    def points(self, points: Any) -> list[np.ndarray]:
        """As in `Tree`."""
        parts = zip(self._mech.points(points), self._R, self._from_station, strict=True)
        return [s.p + R @ x for x, R, s in parts]

    def _rows(self, k: int, x: np.ndarray) -> np.ndarray:
        """Motions (…, 6) of body k, turned, at its station."""
        turned = (x.reshape(-1, 3) @ self._R[k].T).reshape(-1, 6)
        w, u = turned[:, :3].T, turned[:, 3:].T
        return np.concatenate([w, u + self._from_station[k].p_cross @ w]).T.reshape(x.shape)


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


def _turned_inertia(J: np.ndarray, R: np.ndarray) -> np.ndarray:
    """R J Rᵀ = J_zz 1 + x aᵀ + a xᵀ + y bᵀ + b yᵀ, x, y, z being the columns of R."""
    x, y, z = R.T
    a = np.array([x, y, z]).T @ np.array([0.5 * (J[0, 0] - J[2, 2]), J[1, 0], J[2, 0]])
    b = np.array([y, z]).T @ np.array([0.5 * (J[1, 1] - J[2, 2]), J[2, 1]])
    half = np.outer(x, a) + np.outer(y, b)
    return mirror_lower(half + half.T) + scaled_identity(J[2, 2])
