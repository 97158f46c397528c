"""Linear models of a motion, continuous or over a step in which the force is held."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from .artifact import object_code
from .engine import Library, fast_calls_work
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
    lead, n = dq.shape[:-2], dq.shape[-1]
    A, B = np.empty((*lead, 2 * n, 2 * n)), np.empty((*lead, 2 * n, n))
    bad, samples = 0, prod(lead) if n else 0
    if samples:
        sizes, room = _setup(n, samples, drift is not None)
        moving = dq if drift is None else drift
        bad = _held()(dq, dqd, dtau, moving, A, B, np.empty(room), sizes, _step(dt or 0.0))
    return A, B, bad


@lru_cache(maxsize=64)
def _step(dt: float) -> np.ndarray:
    return np.array([dt])


@lru_cache(maxsize=64)
def _setup(n: int, samples: int, drifts: bool) -> tuple[np.ndarray, int]:
    """The sizes that the code is told, and that of its workspace."""
    from ..emit.llvm.held import BUFFERS, LINE, ROWS

    lanes = host().lanes("double")
    rows, vectors = -(-2 * n // ROWS) * ROWS, -(-3 * n // lanes)
    sizes = np.array([n, samples, rows, vectors, drifts], dtype=np.int64)
    return sizes, BUFFERS * rows * vectors * lanes + LINE // 8


@lru_cache(maxsize=1)
def _held() -> Callable[..., Any]:
    """The code, as a function of arrays."""
    from ..emit.llvm.held import held_text

    quick = fast_calls_work()
    library = Library(object_code(held_text(host().flavor("double"), quick), host()), host())
    if quick:
        return library.method("held_call", "held", ())
    plain = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 9)(library.address("held"))

    def held(*arrays: np.ndarray) -> int:
        return plain(*(x.ctypes.data for x in arrays))

    # the code lives as long as what calls it
    held.library = library  # pyright: ignore[reportFunctionMemberAccess]
    return held
