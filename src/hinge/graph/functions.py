"""Functions that traced and plain numbers share, for code that is to be traced."""

from __future__ import annotations

from typing import Any

import numpy as np

from .operations import OPERATIONS
from .scalar import Node
from .traced import traced

__all__ = ["atan2", "greater", "less", "maximum", "minimum", "where"]


def _apply(op: str, *args: Any) -> Any:
    """An operation on scalars, or entry by entry on arrays that broadcast."""
    if any(isinstance(a, np.ndarray) and a.ndim for a in args):
        arrays = np.broadcast_arrays(*(np.asarray(a, dtype=object) for a in args))
        flat = [_apply(op, *entries) for entries in zip(*(a.ravel() for a in arrays), strict=True)]
        return traced(np.array(flat).reshape(arrays[0].shape))
    args = tuple(a.item() if isinstance(a, np.ndarray) else a for a in args)
    node = next((a for a in args if isinstance(a, Node)), None)
    if node is None:
        return OPERATIONS[op].value(*(float(a) for a in args))
    return node.graph.make(op, *args)


def where(condition: Any, a: Any, b: Any) -> Any:
    """a where the condition is not 0, else b; both are evaluated."""
    return _apply("where", condition, a, b)


def less(a: Any, b: Any) -> Any:
    """1 where a < b, else 0."""
    return _apply("less", a, b)


def greater(a: Any, b: Any) -> Any:
    """1 where a > b, else 0."""
    return _apply("less", b, a)


def minimum(a: Any, b: Any) -> Any:
    """The smaller of two."""
    return _apply("min", a, b)


def maximum(a: Any, b: Any) -> Any:
    """The larger of two."""
    return _apply("max", a, b)


def atan2(y: Any, x: Any) -> Any:
    """The angle of the point (x, y)."""
    return _apply("atan2", y, x)
