"""Matrices of long mechanisms, column by column.

Mass matrices and derivatives of N bodies take O(N²) straight-line operations, too many to compile
for hundreds of bodies.  What they do to a vector takes O(N) and is compiled as a loop over bodies;
applied to all unit vectors at once, as a batch, it gives all columns.  A batch of states runs
several times slower than straight-line code would (8 times for a mass matrix at 64 bodies), but the
code is there in a second, whatever N.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..model.mechanism import Mechanism
from ..runtime.arguments import Argument, broadcast, refuse_infinite
from ..runtime.kernel import result_arrays
from ..specialize.programs import is_long

if TYPE_CHECKING:
    from .front import Front

__all__ = ["as_results", "by_columns", "derivatives_by_columns", "too_large"]

# results with more blocks (pairs of bodies) than that are not unrolled; compiling as many takes
# some seconds
_MOST_BLOCKS = 4096


def too_large(robot: Front, matrices: int = 1, across: bool = False) -> bool:
    """Whether so many matrices are better made column by column.

    across: they have blocks also for bodies on different branches.
    """
    mech = robot.mechanism
    if not is_long(mech):
        return False
    blocks = robot._keep(("blocks", across), lambda: _blocks(mech, across))
    return matrices * blocks > _MOST_BLOCKS


def _blocks(mech: Mechanism, across: bool) -> int:
    """How many blocks of a matrix are not zero."""
    if across:
        return mech.n_bodies**2
    return sum(2 * len(list(mech.climb(k))) + 1 for _, k in mech.outward())


def by_columns(
    robot: Front, where: str, given: Sequence[Argument], out: Any, steps: Sequence[tuple[str, str]]
) -> np.ndarray:
    """The symmetric matrix (…, nv, nv) that takes a vector through the steps.

    given: q and perhaps numbers of the mechanism.  steps: algorithms of those and of an array, and
    the names of that array.
    """
    at, columns = _before_columns(where, given), np.eye(robot.nv)
    for algorithm, array in steps:
        columns = robot._ask(algorithm, {}, **{**at, array: columns})
    return as_results(robot, where, [_symmetric(columns)], out)[0]


def derivatives_by_columns(
    robot: Front,
    name: str,
    where: str,
    static: Mapping[str, Any],
    given: Sequence[Argument],
    out: Any,
) -> list[np.ndarray]:
    """The derivatives along the first three arrays, each (…, nv, nv), the last one symmetric.

    name: that of the derivatives, whose products with vectors are called jvp instead.
    """
    nv, at = robot.nv, _before_columns(where, given)
    units = np.eye(3 * nv).reshape(3 * nv, 3, nv)
    along = {f"d{a.name}": units[:, i] for i, a in enumerate(given[:3])}
    columns = robot._ask(name.replace("derivatives", "jvp"), static, **{**at, **along})
    parts = np.moveaxis(columns.reshape(*columns.shape[:-2], 3, nv, nv), -3, 0)
    first, second, third = np.swapaxes(parts, -1, -2)
    return as_results(robot, where, [first, second, _symmetric(third)], out)


def _before_columns(where: str, given: Sequence[Argument]) -> dict[str, np.ndarray]:
    """The arguments with one more leading dimension, for the columns."""
    values = broadcast(where, given)
    return {a.name: np.expand_dims(values[a.name], -1 - len(a.shape)) for a in given}


def _symmetric(x: np.ndarray) -> np.ndarray:
    """What is symmetric but for rounding, symmetric."""
    return 0.5 * x + 0.5 * np.swapaxes(x, -1, -2)


def as_results(robot: Front, where: str, parts: Sequence[np.ndarray], out: Any) -> list[np.ndarray]:
    """The matrices in arrays of their own or in those given."""
    refuse_infinite(where, parts[0].shape[:-2], parts)
    results = result_arrays(where, [x.shape for x in parts], robot.dtype, out)
    for result, x in zip(results, parts, strict=True):
        result[...] = x
    return results
