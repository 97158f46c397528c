"""Linear models of a motion, continuous or over a step in which the force is held."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np

from .engine import fast_calls_work, helper_library
from .target import host

__all__ = ["linear_model"]


def linear_model(
    dq: np.ndarray,
    dqd: np.ndarray,
    dtau: np.ndarray,
    drift: np.ndarray | None,
    dt: float | None,
) -> tuple[np.ndarray, np.ndarray, int]:
    """A (…, 2 n, 2 n) and B (…, 2 n, n) of δq̈ = dq δq + dqd δq̇ + dtau u, dδq/dt = δq̇ + drift δq.

    All (…, n, n), float64, contiguous.  dt: the step of a discrete model, exact for u that is held.
    The third result is the number of samples whose model is not finite: all of it is NaN.
    """
    setup = _setup(dq.shape, drift is not None, dt)
    A, B = np.empty(setup.A), np.empty(setup.B)
    if not A.size:
        return A, B, 0
    moving = dq if drift is None else drift
    room = np.empty(setup.room)
    return A, B, _held()(dq, dqd, dtau, moving, A, B, room, setup.sizes, setup.step)


class _Setup(NamedTuple):
    """What the code is told: shapes of the results, size of the workspace, numbers."""

    A: tuple[int, ...]
    B: tuple[int, ...]
    room: int
    sizes: np.ndarray
    step: np.ndarray


@lru_cache(maxsize=64)
def _setup(shape: tuple[int, ...], drifts: bool, dt: float | None) -> _Setup:
    from ..emit.llvm.held import BUFFERS, LINE, ROWS

    *lead, n, _ = shape
    lanes = host().lanes("double")
    rows, vectors = -(-2 * n // ROWS) * ROWS, -(-3 * n // lanes)
    sizes = np.array([n, prod(lead), rows, vectors, drifts], dtype=np.int64)
    room = BUFFERS * rows * vectors * lanes + LINE // 8
    whole = (*lead, 2 * n, 2 * n), (*lead, 2 * n, n)
    return _Setup(*whole, room, sizes, np.array([0.0 if dt is None else dt]))


@lru_cache(maxsize=1)
def _held() -> Callable[..., Any]:
    """The code, as a function of arrays."""
    from ..emit.llvm.held import held_text

    quick = fast_calls_work()
    library = helper_library(held_text(host().flavor("double"), quick))
    if quick:
        return library.entry("held_call").function("held")
    plain = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 9)(library.address("held"))

    def held(*arrays: np.ndarray) -> int:
        return plain(*(x.ctypes.data for x in arrays))

    # the code lives as long as what calls it
    held.library = library  # pyright: ignore[reportFunctionMemberAccess]
    return held
