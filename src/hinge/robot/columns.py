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

from ..runtime.arguments import Argument, broadcast, checked_out, refuse_infinite
from ..specialize.routing import Piece

if TYPE_CHECKING:
    from .front import Front

__all__ = ["as_results", "by_columns"]


def by_columns(
    robot: Front,
    where: str,
    pieces: Sequence[Piece],
    static: Mapping[str, Any],
    given: Sequence[Argument],
    out: Any,
) -> list[np.ndarray]:
    """Matrices (…, nv, nv), the last one symmetric, as many as the first piece has directions.

    pieces: algorithms that take unit vectors through the matrices, one after the other.
    """
    nv, at, many = robot.nv, _before_columns(where, given), len(pieces[0].along)
    units = np.eye(many * nv).reshape(many * nv, many, nv)
    moved = [units[:, i] for i in range(many)]
    for piece in pieces:
        along = dict(zip(piece.along, moved, strict=True))
        moved = [robot._ask(piece.algorithm, static, **{**at, **along})]
    columns = moved[0].reshape(*moved[0].shape[:-2], many, nv, nv)
    parts = list(np.swapaxes(np.moveaxis(columns, -3, 0), -1, -2))
    return as_results(robot, where, [*parts[:-1], _symmetric(parts[-1])], out)


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
    shapes, dtype = [x.shape for x in parts], robot.dtype
    if out is None:
        results = robot._backend.empty(shapes, dtype)
    else:
        results = checked_out(where, shapes, dtype, out)
    for result, x in zip(results, parts, strict=True):
        result[...] = x
    return results
