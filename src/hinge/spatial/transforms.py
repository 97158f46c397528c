"""`Transform` by machine code: what users ask it most often, from kernels of `so3` and `se3`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..algebra.spatial import PLAIN_CODE
from . import kernel

__all__ = ["function"]

_KERNELS = {"parts": "se3.to_parts", "quaternion": "so3.to_quaternion"}


def function(name: str) -> Callable[..., Any]:
    """The kernel that takes what it can, and leaves the rest to the plain code."""
    return kernel(_KERNELS[name]).fast(PLAIN_CODE[name])
