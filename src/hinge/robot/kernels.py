"""Algorithms on a mechanism as kernels."""

from __future__ import annotations

import pickle
from functools import partial
from typing import Any

import numpy as np

from .. import algorithms
from ..errors import ArgumentError
from ..model.mechanism import Mechanism, did_you_mean
from ..model.parameters import PARAMETERS
from ..runtime.backend import Backend
from ..runtime.cache import digest
from ..runtime.kernel import Kernel
from ..specialize.arrays import PER_DOF, array_shape
from ..specialize.programs import robot_program

__all__ = ["robot_kernel"]


def robot_kernel(
    mech: Mechanism,
    name: str,
    arrays: tuple[str, ...],
    static: tuple[tuple[str, Any], ...],
    dtype: Any = np.float64,
    backend: Backend | None = None,
) -> Kernel:
    """The named algorithm on a mechanism, compiled; arrays in order, other arguments fixed.

    Arrays named gravity, inertia or placement are numbers of the mechanism left open.
    """
    if name not in algorithms.__all__:
        hint = did_you_mean(name, algorithms.__all__)
        raise ArgumentError(f"kernel of {mech.name!r}: no algorithm is called {name!r}; {hint}")
    for unknown in (a for a in arrays if array_shape(mech, a) == ()):
        hint = did_you_mean(unknown, ("q", "f_ext", "points", *PARAMETERS, *PER_DOF))
        raise ArgumentError(f"kernel of {mech.name!r}: no array is called {unknown!r}; {hint}")
    make = partial(robot_program, mech, name, arrays, dict(static))
    key = digest(pickle.dumps(mech), name, repr(arrays), repr(static))
    title = f"{name} of {mech.name!r}"
    return Kernel(make, title, arrays, dtype, backend, key, strict=True)
