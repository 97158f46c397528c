"""The numbers of a mechanism as arrays: taken out, put back, or left open as inputs of a kernel.

    gravity     (3,)               m/s²
    inertia     (n_bodies, 10)     m, h = m c (3), J about the body's origin: xx, yx, yy, zx, zy, zz
    placement   (n_bodies, 12)     R row by row (9), p (3): each joint's frame in the parent body

Nothing is checked, and the numbers may be traced: `with_parameters` is for identification, domain
randomisation and derivatives with respect to the mechanism.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .mechanism import Mechanism
from .spatial import SpatialInertia, Transform

__all__ = ["PARAMETERS", "parameter_shape", "parameters", "with_parameters"]

PARAMETERS = ("gravity", "inertia", "placement")


def parameter_shape(mech: Mechanism, name: str) -> tuple[int, ...]:
    """The shape of one of the parameters."""
    n = mech.n_bodies
    return {"gravity": (3,), "inertia": (n, 10), "placement": (n, 12)}[name]


def parameters(mech: Mechanism) -> dict[str, np.ndarray]:
    """All numbers of a mechanism."""
    inertia, placement = [], []
    for body in mech.bodies[1:]:
        M, X = body.inertia.spatial, body.placement
        inertia.append([M.mass, *M.h, *(M.J[i, j] for i, j in _LOWER)])
        placement.append([*X.rotation.flat, *X.translation])
    values = {"gravity": mech.gravity, "inertia": inertia, "placement": placement}
    return {name: np.array(x).reshape(parameter_shape(mech, name)) for name, x in values.items()}


def with_parameters(
    mech: Mechanism, gravity: Any = None, inertia: Any = None, placement: Any = None
) -> Mechanism:
    """The mechanism with other numbers; what is not given stays."""
    bodies = list(mech.bodies)
    for k in range(1, len(bodies)):
        if inertia is not None:
            bodies[k] = replace(bodies[k], inertia=_inertia(inertia[k - 1]))
        if placement is not None:
            row = np.asarray(placement[k - 1])
            bodies[k] = replace(bodies[k], placement=Transform(row[:9].reshape(3, 3), row[9:]))
    pull = mech.gravity if gravity is None else tuple(gravity)
    return replace(mech, bodies=tuple(bodies), gravity=pull)


_LOWER = ((0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2))


def _inertia(row: Any) -> SpatialInertia:
    mass, hx, hy, hz, xx, yx, yy, zx, zy, zz = row
    J = np.array([[xx, yx, zx], [yx, yy, zy], [zx, zy, zz]])
    return SpatialInertia(mass, np.array([hx, hy, hz]), J)
