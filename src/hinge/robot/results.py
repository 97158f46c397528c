"""Results that were put together in Python, handed over like those of a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..runtime.arguments import checked_out, refuse_infinite

if TYPE_CHECKING:
    from .front import Front

__all__ = ["as_results"]


def as_results(
    robot: Front, where: str, parts: Sequence[np.ndarray], out: Any, entries: int = 2
) -> list[np.ndarray]:
    """Matrices, or arrays of so many dimensions, in arrays of their own or in those given."""
    refuse_infinite(where, parts[0].shape[: parts[0].ndim - entries], parts)
    shapes, dtype = [x.shape for x in parts], robot.dtype
    if out is None:
        results = robot._backend.empty(shapes, dtype)
    else:
        results = checked_out(where, shapes, dtype, out)
    for result, x in zip(results, parts, strict=True):
        result[...] = x
    return results
