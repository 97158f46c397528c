"""Algorithms on a mechanism as kernels."""

from __future__ import annotations

import pickle
from functools import partial
from typing import Any

import numpy as np

from ..algorithms.declare import ALGORITHMS
from ..errors import ArgumentError
from ..model.mechanism import Mechanism, did_you_mean
from ..model.parameters import PARAMETERS
from ..runtime.cache import digest
from ..runtime.kernel import Kernel
from ..specialize.arrays import PER_DOF, array_shape
from ..specialize.programs import robot_program

__all__ = ["known_key", "robot_kernel"]

_OURS = f"{__name__.partition('.')[0]}."


def robot_kernel(
    mech: Mechanism,
    name: str,
    arrays: tuple[str, ...],
    static: tuple[tuple[str, Any], ...],
    dtype: Any = np.float64,
    threads: int | None = None,
) -> Kernel:
    """The named algorithm on a mechanism, compiled; arrays in order, other arguments fixed.

    Arrays named gravity, inertia or placement are numbers of the mechanism left open.
    """
    if name not in ALGORITHMS:
        hint = did_you_mean(name, ALGORITHMS)
        raise ArgumentError(f"kernel of {mech.name!r}: no algorithm is called {name!r}; {hint}")
    for unknown in (a for a in arrays if array_shape(mech, a) == ()):
        hint = did_you_mean(unknown, ("q", "f_ext", "points", *PARAMETERS, *PER_DOF))
        raise ArgumentError(f"kernel of {mech.name!r}: no array is called {unknown!r}; {hint}")
    make = partial(robot_program, mech, name, arrays, dict(static))
    maker = ALGORITHMS[name].function.__module__
    key = known_key(mech, name, repr(arrays), repr(static), maker=maker)
    title = f"{name} of {mech.name!r}"
    return Kernel(make, title, arrays, dtype, threads, key=key, strict=True)


def known_key(mech: Mechanism, *asked: str, maker: str | None = __name__) -> str | None:
    """What the code for a mechanism is kept under, known before anything is traced.

    None if a joint, or the module that makes the function, is not of this package: its source may
    change while its name stays, so that only the program that tracing gives can tell.
    """
    makers = {maker, *(type(body.joint).__module__ for body in mech.bodies)}
    if not all(str(name).startswith(_OURS) for name in makers):
        return None
    return digest(pickle.dumps(mech), *asked)
