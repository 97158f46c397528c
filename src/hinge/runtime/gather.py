"""Arrays on a card as packed ones: copied by a kernel, from any strides and other numbers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod

import numpy as np

from . import cache
from .artifact import full_key
from .check import scalar_of
from .device_arrays import DeviceArray
from .driver import driver
from .forks import MAKING
from .launcher import Launcher, packed
from .ptx import ptx_of
from .target import llvm_version

__all__ = ["copy_to", "packed_copy"]


def packed_copy(
    x: DeviceArray, dtype: np.dtype, stream: int, shape: Sequence[int] | None = None
) -> DeviceArray:
    """A packed copy in a dtype, broadcast to a shape if there is one."""
    wide = x if shape is None else _broadcast(x, tuple(shape))
    made = DeviceArray.empty(wide.shape, dtype, driver().card(x.device), stream)
    copy_to(made, wide, stream)
    return made


def copy_to(to: DeviceArray, x: DeviceArray, stream: int) -> None:
    """Copy an array into a packed one of its shape."""
    from ..emit.ptx.gather import DIMENSIONS

    if 0 in x.shape:
        return
    sizes, strides = _merged(x)
    if len(sizes) > DIMENSIONS:
        # slice by slice
        step = to.dtype.itemsize * prod(sizes[1:])
        packed = to.seen([prod(sizes)], [to.dtype.itemsize])
        for i in range(sizes[0]):
            part = x.seen(sizes[1:], strides[1:], i * strides[0])
            copy_to(packed.seen(sizes[1:], (), i * step), part, stream)
        return
    more = DIMENSIONS - len(sizes)
    n = prod(sizes)
    values = to.address, x.address, n, *(1,) * more, *sizes, *(0,) * more, *strides
    kernel = _gather(x.device, f"{x.dtype.kind}{x.dtype.itemsize}", scalar_of("copy", to.dtype))
    kernel.start(values, kernel.blocks(n), stream)


def _broadcast(x: DeviceArray, shape: tuple[int, ...]) -> DeviceArray:
    before = len(shape) - x.ndim
    strides = (0,) * before + x.strides
    own = (1,) * before + x.shape
    return x.seen(shape, [0 if n == 1 else s for n, s in zip(own, strides, strict=True)])


def _merged(x: DeviceArray) -> tuple[list[int], list[int]]:
    """Sizes and strides, neighbours as one where they can be."""
    sizes, strides = [1], [0]
    for n, s in zip(x.shape, x.strides, strict=True):
        if n == 1:
            continue
        if strides[-1] == n * s and sizes[-1] > 1:
            sizes[-1], strides[-1] = sizes[-1] * n, s
        else:
            sizes.append(n)
            strides.append(s)
    return (sizes[1:], strides[1:]) if len(sizes) > 1 else (sizes, strides)


@lru_cache(maxsize=64)
def _gather(device: int, kind: str, scalar: str) -> Launcher:
    """The kernel, compiled once and kept in the cache."""
    from ..emit.ptx.gather import COUNT, GATHER, gather_text

    card = driver().card(device)
    text = gather_text(kind, scalar)
    key = full_key(text, f"cuda {card.capability} {driver().version}", llvm_version())
    with MAKING:
        code = cache.load(key)
        if code is None:
            code = packed(GATHER, ptx_of(text, card.capability))
            cache.store(key, code)
        return Launcher(card, code, COUNT, "gather", scratch=False)
