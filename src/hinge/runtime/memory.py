"""Memory of large results, used again once nobody holds it.

Fresh memory of many megabytes comes from the system page by page, each zeroed first, which takes
longer than most kernels.  So the blocks of large results are remembered, and a block that nobody
refers to any more, neither the array that was returned nor any view of it, serves the next result
of about its size.  Batches of 4096 Talos: the mass matrix 3.6, its derivatives 3 times faster than
into fresh memory.  At most LIMIT bytes are remembered.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from math import prod

import numpy as np

from .forks import fork_safe_lock

__all__ = ["KEPT", "LARGE", "LIMIT", "arrays", "release", "results"]

# results of a call with more bytes than this take part; smaller ones the C library keeps by itself
LARGE = 1 << 22
# how much is remembered at most, in bytes and in blocks; a block may be larger than need be
LIMIT, _MOST, _SLACK = 1 << 28, 16, 1.25
_LINE = 64

# the address of memory that batches work in, one after the other, while none of them has it
KEPT = np.zeros(1, dtype=np.int64)

_BLOCKS: list[np.ndarray] = []
_LOCK = fork_safe_lock()


def _references(blocks: list[np.ndarray], i: int) -> int:
    """To a block of a list: that of the list, and what Python counts of this very line."""
    return sys.getrefcount(blocks[i])


# those to a block that nobody has; what a line counts for is another in Python 3.14
_FREE = _references([np.empty(0)], 0) if hasattr(sys, "getrefcount") else 0


def arrays(shapes: Sequence[tuple[int, ...]], dtype: np.dtype) -> list[np.ndarray]:
    """New arrays, with anything in them."""
    sizes = [prod(shape) * dtype.itemsize for shape in shapes]
    if sum(sizes) <= LARGE or not hasattr(sys, "getrefcount"):
        return [np.empty(shape, dtype) for shape in shapes]
    return [_array(shape, dtype, size) for shape, size in zip(shapes, sizes, strict=True)]


def results(
    shapes: Sequence[tuple[int, ...]], dtype: np.dtype, samples: int
) -> tuple[np.ndarray, ...]:
    """New arrays for so many samples of results of these shapes."""
    return tuple(arrays([(samples, *shape) for shape in shapes], dtype))


def release() -> int:
    """Forget all blocks; how many bytes nobody else held."""
    with _LOCK:
        free = [i for i in range(len(_BLOCKS)) if _references(_BLOCKS, i) <= _FREE]
        size = sum(_BLOCKS[i].nbytes for i in free)
        _BLOCKS.clear()
    return size


def _array(shape: tuple[int, ...], dtype: np.dtype, size: int) -> np.ndarray:
    with _LOCK:
        block = _found(size)
        if block is None:
            block = np.empty(size + _LINE, dtype=np.uint8)
        _BLOCKS.append(block)
        while len(_BLOCKS) > _MOST or sum(b.nbytes for b in _BLOCKS) > max(LIMIT, block.nbytes):
            del _BLOCKS[0]
        # made under the lock: from here on the block is taken
        return np.ndarray(shape, dtype, block, -block.ctypes.data % _LINE)


def _found(size: int) -> np.ndarray | None:
    """A block of that size, or somewhat larger, that nobody has; it leaves the list."""
    for i in range(len(_BLOCKS)):
        fits = size + _LINE <= _BLOCKS[i].nbytes <= _SLACK * size + _LINE
        if fits and _references(_BLOCKS, i) <= _FREE:
            return _BLOCKS.pop(i)
    return None
