"""The numbers of a mechanism as arrays: taken out, put back, or left open as inputs of a kernel.

    gravity     (3,)               m/s²
    inertia     (n_bodies, 10)     m, h = m c (3), J about the body's origin: xx, yx, yy, zx, zy, zz
    placement   (n_bodies, 12)     R row by row (9), p (3): each joint's frame in the parent body

Nothing is checked, and the numbers may be traced: `with_parameters` is for identification, domain
randomisation and derivatives with respect to the mechanism.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..algebra.spatial import SpatialInertia, Transform
from .mechanism import Mechanism

__all__ = [
    "PARAMETERS",
    "inertia_numbers",
    "inertia_of",
    "parameter_shape",
    "parameters",
    "pose_numbers",
    "pose_of",
    "with_more_armature",
    "with_parameters",
]

PARAMETERS = ("gravity", "inertia", "placement")


def parameter_shape(mech: Mechanism, name: str) -> tuple[int, ...]:
    """The shape of one of the parameters."""
    n = mech.n_bodies
    return {"gravity": (3,), "inertia": (n, 10), "placement": (n, 12)}[name]


def parameters(mech: Mechanism) -> dict[str, np.ndarray]:
    """All numbers of a mechanism."""
    bodies = mech.bodies[1:]
    values = {
        "gravity": mech.gravity,
        "inertia": [inertia_numbers(b.inertia.spatial) for b in bodies],
        "placement": [pose_numbers(b.placement) for b in bodies],
    }
    return {name: np.array(x).reshape(parameter_shape(mech, name)) for name, x in values.items()}


def with_parameters(
    mech: Mechanism, gravity: Any = None, inertia: Any = None, placement: Any = None
) -> Mechanism:
    """The mechanism with other numbers; what is not given stays."""
    if gravity is None and inertia is None and placement is None:
        return mech
    bodies = list(mech.bodies)
    for k in range(1, len(bodies)):
        if inertia is not None:
            bodies[k] = replace(bodies[k], inertia=inertia_of(inertia[k - 1]))
        if placement is not None:
            bodies[k] = replace(bodies[k], placement=pose_of(placement[k - 1]))
    pull = mech.gravity if gravity is None else tuple(gravity)
    return replace(mech, bodies=tuple(bodies), gravity=pull)


def with_more_armature(mech: Mechanism, more: Sequence[Any]) -> Mechanism:
    """The mechanism with more armature at the joint of each body, of any scalar: for sweeps alone,
    its joints do not know of it.
    """
    other = replace(mech)
    # in the place of what it would find out when first asked
    total = [x + y for x, y in zip(mech.armature, more, strict=True)]
    vars(other).update(armature=tuple(total), least=mech.least)
    return other


def inertia_numbers(M: SpatialInertia) -> tuple[Any, ...]:
    """m, h, and J row by row up to its diagonal: 10 numbers."""
    return (M.mass, *M.h, *(M.J[i, j] for i in range(3) for j in range(i + 1)))


def inertia_of(numbers: Any) -> SpatialInertia:
    """The inertia with these numbers."""
    mass, hx, hy, hz, xx, yx, yy, zx, zy, zz = numbers
    J = np.array([[xx, yx, zx], [yx, yy, zy], [zx, zy, zz]])
    return SpatialInertia(mass, np.array([hx, hy, hz]), J)


def pose_numbers(X: Transform) -> tuple[Any, ...]:
    """R row by row, and p: 12 numbers."""
    return (*X.rotation.flat, *X.translation)


def pose_of(numbers: Any) -> Transform:
    """The pose with these numbers."""
    return Transform(np.array(numbers[:9]).reshape(3, 3), np.array(numbers[9:]))
