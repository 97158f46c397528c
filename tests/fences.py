"""Arrays between pages that must not be touched: a step outside of one ends the process."""

from __future__ import annotations

import ctypes
import mmap
from functools import cache
from typing import Any

import numpy as np

__all__ = ["fenced"]


def fenced(values: np.ndarray, at_end: bool) -> np.ndarray:
    """A copy of the values right after a page that must not be touched, or right before one."""
    page = mmap.PAGESIZE
    size = -(-max(values.nbytes, 1) // page) * page
    memory = mmap.mmap(-1, size + 2 * page)
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for at in (0, page + size):
        assert _protect()(base + at, page, 0) == 0
    begin = page + (size - values.nbytes if at_end else 0)
    array = np.frombuffer(memory, values.dtype, values.size, begin).reshape(values.shape)
    array[...] = values
    return array


@cache
def _protect() -> Any:
    protect = ctypes.CDLL(None).mprotect
    protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return protect
