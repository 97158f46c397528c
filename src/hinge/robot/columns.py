"""Matrices of long mechanisms, column by column.

The mass matrix of N bodies takes O(N²) straight-line operations, too many to compile for hundreds
of bodies.  What it does to a vector takes O(N) and is compiled as a loop over bodies; applied to
all unit vectors at once, as a batch, it gives all columns.  That runs several times slower than
straight-line code would (8 times at 64 bodies), but its code is there in half a second, whatever N.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from ..compiled import is_long
from ..errors import ArgumentError
from ..mechanism import Mechanism
from ..runtime.call import broadcast, refuse_infinite
from .front import Front

__all__ = ["by_columns", "too_large"]

# matrices of more bodies than that are not unrolled; at so many, compiling takes some seconds
_MOST_UNROLLED = 64


def too_large(mech: Mechanism) -> bool:
    """Whether the mass matrix is better made column by column."""
    return is_long(mech) and mech.n_bodies > _MOST_UNROLLED


def by_columns(
    robot: Front, name: str, q: ArrayLike, out: np.ndarray | None, steps: Sequence[tuple[str, str]]
) -> np.ndarray:
    """The symmetric matrix (…, nv, nv) that takes a vector through the steps.

    steps: algorithms of q and of an array, and the names of that array.
    """
    where, nv = f"{name} of {robot.name!r}", robot.nv
    at = broadcast(where, [robot.argument("q", q)])["q"]
    columns = np.eye(nv)
    for algorithm, array in steps:
        columns = robot.apply(algorithm, {}, q=at[..., None, :], **{array: columns})
    lead = at.shape[:-1]
    refuse_infinite(where, lead, [columns])
    if out is None:
        out = np.empty((*lead, nv, nv), robot.dtype)
    if out.shape != (*lead, nv, nv) or out.dtype != robot.dtype:
        raise ArgumentError(
            f"{where}: out has shape {out.shape} and dtype {out.dtype}; expected "
            f"{(*lead, nv, nv)} and {robot.dtype}"
        )
    # rounding apart it is symmetric as it is
    np.add(0.5 * columns, 0.5 * np.swapaxes(columns, -1, -2), out=out)
    return out
