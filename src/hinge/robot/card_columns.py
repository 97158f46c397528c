"""Matrices of long mechanisms on a card: products with all unit vectors, as a batch, turned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..runtime.arguments import Argument, leading_shape
from ..runtime.device_arrays import DeviceArray
from ..runtime.device_calls import among, as_device, device_out
from ..runtime.gather import copy_to
from ..specialize.routing import Piece

if TYPE_CHECKING:
    from .front import Front

__all__ = ["columns_on_card"]


def columns_on_card(
    robot: Front,
    where: str,
    pieces: Sequence[Piece],
    static: Mapping[str, Any],
    given: Sequence[Argument],
    out: Any,
) -> list[Any]:
    """Matrices (…, nv, nv), as many as the first piece has directions, of the kind of the arrays.

    pieces: algorithms that take unit vectors through the matrices, one after the other.
    """
    nv, many, dtype = robot.nv, len(pieces[0].along), robot.dtype
    device: int = robot._backend.device  # pyright: ignore[reportAttributeAccessIssue]
    results = [] if out is None else list(out) if isinstance(out, (tuple, list)) else [out]
    kind, stream = among([*(a.value for a in given), *results], device)
    arrays = [as_device(where, a, device, stream, dtype) for a in given]
    leads = [x.shape[: x.ndim - len(a.shape)] for a, x in zip(given, arrays, strict=True)]
    shape = (*leading_shape(where, given, leads), nv, nv)
    if out is None:
        results = [kind.empty(shape, dtype, device, stream) for _ in range(many)]
    ends = device_out(where, [shape] * many, dtype, device, results, stream)
    at = {a.name: _spread(x, len(a.shape)) for a, x in zip(given, arrays, strict=True)}
    units = np.eye(many * nv, dtype=dtype).reshape(many * nv, many, nv)
    moved = [DeviceArray.of(units[:, i], device, stream) for i in range(many)]
    for piece in pieces:
        along = dict(zip(piece.along, moved, strict=True))
        moved = [robot._ask(piece.algorithm, static, **at, **along)]
    for i, end in enumerate(ends):
        copy_to(end, _part(moved[0], i, nv), stream)
    return [kind.given_back(x) for x in results] if out is None else results


def _spread(x: DeviceArray, n: int) -> DeviceArray:
    """An argument with one more leading dimension, for the columns."""
    k = x.ndim - n
    return x.seen((*x.shape[:k], 1, *x.shape[k:]), (*x.strides[:k], 0, *x.strides[k:]))


def _part(moved: DeviceArray, i: int, nv: int) -> DeviceArray:
    """Matrix i of what the unit vectors became: (…, many nv, nv), rows that are its columns."""
    *lead, column, row = moved.strides
    return moved.seen((*moved.shape[:-2], nv, nv), (*lead, row, column), i * nv * column)
