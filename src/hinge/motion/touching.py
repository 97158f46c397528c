"""Points of bodies near the ground: where they are, how they move, and which forces reach them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..algebra.rotation import skew
from ..algebra.small import sign
from ..model.mechanism import Mechanism
from .terrain import Terrain

__all__ = ["Spot", "Touch", "axes_of", "body_velocities", "moves_along_normal", "touches"]

# of a unit force at a metre, below which no joint feels it
_FELT = 1e-9


class Spot(NamedTuple):
    """A sphere (a point, if its radius is 0) on a body, its centre given in the body's frame."""

    body: int
    at: tuple[float, float, float]
    radius: float


class Touch(NamedTuple):
    """Where a spot is nearest to the ground.

    R: the rotation of its body; at: the point of the body, in its axes; p: the same in the world;
    gap: how far it is from the ground; normal: that of the ground, in the world.
    """

    body: int
    R: np.ndarray
    at: np.ndarray
    p: np.ndarray
    gap: Any
    normal: np.ndarray

    def velocity(self, V: Any) -> np.ndarray:
        """Of the point in the world, bodies moving with V."""
        return self.R @ (V[self.body][3:] + skew(V[self.body][:3]) @ self.at)

    def wrench(self, force: Any) -> np.ndarray:
        """A force on the point in the world, or columns of them, as one on the body, its axes."""
        local = self.R.T @ force
        return np.concatenate([skew(self.at) @ local, local])


def touches(mech: Mechanism, spots: Sequence[Spot], terrain: Terrain, q: Any) -> list[Touch]:
    """All spots at a configuration."""
    phi, poses, found = mech.phi(q), {0: None}, []
    for spot in spots:
        X = _pose(mech, phi, spot.body, poses)
        centre = X @ np.array(spot.at)
        distance, n = terrain.nearest(centre.copy())
        at, p = np.array(spot.at), centre
        if spot.radius:
            at, p = at - spot.radius * (X.rotation.T @ n), p - spot.radius * n
        found.append(Touch(spot.body, X.rotation, at, p, distance - spot.radius, n))
    return found


def _pose(mech: Mechanism, phi: Any, k: int, poses: dict[int, Any]) -> Any:
    """X of a body in the world; those on the way are kept."""
    if k not in poses:
        parent = _pose(mech, phi, mech.bodies[k].parent, poses)
        poses[k] = phi[k].pose if parent is None else parent @ phi[k].pose
    return poses[k]


def body_velocities(mech: Mechanism, q: Any, qd: Any) -> list[Any]:
    """V(k), in body axes."""
    H, phi, qd_ = mech.H(q), mech.phi(q), mech.rates(qd)
    (V,) = mech.slots(1)
    for p, k in mech.outward():
        V[k] = phi[k].T @ V[p] + H[k].T @ qd_[k]
    return V


def moves_along_normal(mech: Mechanism, touch: Touch, q: np.ndarray) -> bool:
    """Whether any joint moves a point along the normal of the ground, at a configuration."""
    H, phi, k = mech.H(q), mech.phi(q), touch.body
    w = touch.wrench(touch.normal)
    while k:
        if np.abs(H[k] @ w).max(initial=0.0) > _FELT * np.abs(w).max():
            return True
        w, k = phi[k] @ w, mech.bodies[k].parent
    return False


def axes_of(n: np.ndarray) -> np.ndarray:
    """Rows n and two across it, orthonormal, without a jump but where n points down.

    Duff et al., "Building an orthonormal basis, revisited", J. Comput. Graph. Tech. 6 (2017).
    """
    s = sign(n[2])
    a = -1 / (s + n[2])
    b = n[0] * n[1] * a
    first = np.array([1 + s * n[0] * n[0] * a, s * b, -s * n[0]])
    return np.array([n, first, np.array([b, s + n[1] * n[1] * a, -n[1]])])
