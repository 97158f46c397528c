"""Rotations and rigid motions as functions of arrays: compiled, batched, and on any scalar.

from hinge.spatial import so3, se3
w = so3.log(R)                       # rotation vectors; R: (…, 3, 3), or quaternions (…, 4)
V = se3.log(X)                       # twists (ω; v); X: (…, 4, 4), or (p, quaternion) (…, 7)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ArgumentError
from ..model.mechanism import did_you_mean
from ..runtime.kernel import Kernel
from . import se3, so3
from .function import FUNCTIONS

__all__ = ["kernel", "se3", "so3"]


def kernel(name: str, quaternion: bool = False, dtype: Any = np.float64) -> Kernel:
    """What computes a function, such as "so3.log": its C source, its operations, for frameworks.

    quaternion: with rotations as quaternions and poses as (p, quaternion), not as matrices.
    """
    if name not in FUNCTIONS:
        raise ArgumentError(
            f"spatial.kernel: name is {name!r}; {did_you_mean(name, sorted(FUNCTIONS))}"
        )
    return FUNCTIONS[name].kernel(int(quaternion), np.dtype(dtype).name)
