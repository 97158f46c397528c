"""Compliant contact: springs and dampers under each point.  Runs on any scalar.

    f_n = k d (1 + c ḋ),   d = −gap, neither factor below 0                                      (1)
    f = f_n (n − μ s(|v|) v/|v|),   v along the ground                                           (2)

(1) is Hunt and Crossley's law (J. Appl. Mech. 42, 1975) with a linear spring, which never pulls;
s of (2) is that of friction in joints: x (3 − x²)/2 with x = |v| / slip speed, and 1 beyond.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..algebra.small import clip, sqrt
from ..model.mechanism import Mechanism
from .terrain import Terrain
from .touching import Spot, body_velocities, touches

__all__ = ["Compliance", "Pressed", "pressed"]

_FAR = 1e30


class Compliance(NamedTuple):
    """The numbers of the law: k, c, the slip speed, μ of each point."""

    stiffness: float
    dissipation: float
    slip_speed: float
    friction: tuple[float, ...]


class Pressed(NamedTuple):
    """f_ext (n_bodies, 6), body axes at body origins; forces (points, 3), world axes."""

    f_ext: np.ndarray
    forces: np.ndarray


def pressed(
    mech: Mechanism, spots: Sequence[Spot], terrain: Terrain, law: Compliance, q: Any, qd: Any
) -> Pressed:
    """What the ground does to a mechanism in a state."""
    V = body_velocities(mech, q, qd)
    wrenches: list[Any] = [np.zeros(6) for _ in mech.bodies]
    forces = []
    for touch, mu in zip(touches(mech, spots, terrain, q), law.friction, strict=True):
        v = touch.velocity(V)
        forces.append(_force(law, mu, touch.gap, touch.normal, v))
        wrenches[touch.body] = wrenches[touch.body] + touch.wrench(forces[-1])
    return Pressed(np.array(wrenches[1:]), np.array(forces))


def _force(law: Compliance, mu: float, gap: Any, n: np.ndarray, v: np.ndarray) -> np.ndarray:
    along = n @ v
    depth = clip(-gap, 0.0, _FAR)
    push = law.stiffness * depth * clip(1 - law.dissipation * along, 0.0, _FAR)  # (1)
    if not mu:
        return push * n
    slip = v - along * n
    square, slow = slip @ slip, law.slip_speed**2
    grip = (1.5 - 0.5 * clip(square / slow, 0.0, 1.0)) / sqrt(clip(square, slow, _FAR))
    return push * (n - mu * grip * slip)  # (2)
