"""Checks of arguments that are not arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..algebra.rotation import is_rotation
from ..algebra.small import is_masked
from ..errors import ArgumentError

__all__ = [
    "check_choice",
    "check_dtype",
    "check_number",
    "check_pose",
    "check_shape",
    "check_whole",
    "scalar_of",
]

_SCALARS = {np.dtype(np.float64): "double", np.dtype(np.float32): "float"}


def check_dtype(where: str, dtype: Any) -> np.dtype:
    """The dtype, if compiled code knows its numbers."""
    try:
        found = np.dtype(dtype)
    except TypeError:
        raise ArgumentError(
            f"{where}: dtype is {dtype!r}; kernels come in float64 and float32"
        ) from None
    scalar_of(where, found)
    return found


def scalar_of(where: str, dtype: np.dtype) -> str:
    """What compiled code calls a number of that dtype."""
    if dtype not in _SCALARS:
        raise ArgumentError(f"{where}: dtype is {dtype}; kernels come in float64 and float32")
    return _SCALARS[dtype]


def check_choice(where: str, name: str, value: Any, known: tuple[Any, ...]) -> Any:
    """The value, if it is one of the known ones."""
    if isinstance(value, np.ndarray) or value not in known:
        words = ", ".join(repr(k) for k in known)
        raise ArgumentError(f"{where}: {name} is {value!r}; expected one of {words}")
    return value


def check_number(where: str, name: str, value: Any, above: float) -> float:
    """The value, if it is a finite number above the bound."""
    if not isinstance(value, (int, float, np.number)) or not above < value < np.inf:
        raise ArgumentError(f"{where}: {name} is {value!r}; expected a finite number above {above}")
    return float(value)


def check_whole(where: str, name: str, value: Any, above: int = 0) -> int:
    """The value, if it is a whole number above the bound."""
    if not isinstance(value, (int, np.integer)) or value <= above:
        raise ArgumentError(f"{where}: {name} is {value!r}; expected a whole number above {above}")
    return int(value)


def check_shape(where: str, name: str, value: Any) -> tuple[int, ...]:
    """The value as a shape: whole numbers, none negative, or one such number."""
    sizes = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    if not all(isinstance(n, (int, np.integer)) and n >= 0 for n in sizes):
        raise ArgumentError(
            f"{where}: {name} is {value!r}; expected how many, such as 100 or (10, 4)"
        )
    return tuple(int(n) for n in sizes)


def check_pose(where: str, name: str, value: Any) -> np.ndarray:
    """The value as a homogeneous matrix (4, 4), if it is a pose."""
    if is_masked(value):
        raise ArgumentError(f"{where}: {name} has masked entries; expected a pose (4, 4)")
    try:
        X = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise ArgumentError(f"{where}: {name} is {value!r}; expected a pose (4, 4)") from None
    if X.shape != (4, 4):
        raise ArgumentError(f"{where}: {name} has shape {X.shape}; expected a pose (4, 4)")
    if not np.isfinite(X).all() or not is_rotation(X[:3, :3]) or np.any(X[3] != (0, 0, 0, 1)):
        raise ArgumentError(
            f"{where}: {name} is not a pose: expected [R p; 0 0 0 1] with a rotation R, got "
            f"{X.tolist()}"
        )
    return X
