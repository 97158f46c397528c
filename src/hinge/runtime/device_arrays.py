"""Arrays in the memory of a card: where they are, seen through any strides.

Arrays of other packages become one of these without a copy, by `__cuda_array_interface__` (version
3) or DLPack (dlpack.py), and these become theirs in the same ways.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from math import prod
from typing import Any, final

import numpy as np

from . import dlpack
from .driver import PER_THREAD, Card, driver

__all__ = ["DeviceArray", "is_packed", "packed_strides"]


@final
class DeviceArray:
    """An array on a card; `numpy()` is a copy on the host, `DeviceArray.of(x)` one of an array.

    stream: on which what made it runs.  PyTorch, CuPy, JAX, Numba and Warp take it without a copy:
    `torch.as_tensor(x)`, `cupy.asarray(x)`, `jax.dlpack.from_dlpack(x)`.
    """

    __slots__ = (
        "__weakref__",
        "address",
        "device",
        "dtype",
        "owner",
        "read_only",
        "shape",
        "stream",
        "strides",
    )

    def __init__(
        self,
        address: int,
        shape: Sequence[int],
        strides: Sequence[int],
        dtype: np.dtype,
        device: int = 0,
        stream: int = 0,
        owner: Any = None,
        read_only: bool = False,
    ) -> None:
        """strides: in bytes; owner: what keeps the memory."""
        self.address, self.shape, self.strides = address, tuple(shape), tuple(strides)
        self.dtype, self.device, self.stream = dtype, device, stream
        self.owner, self.read_only = owner, read_only

    @classmethod
    def empty(
        cls, shape: Sequence[int], dtype: np.dtype, card: Card, stream: int = PER_THREAD
    ) -> DeviceArray:
        """A new one, with anything in it, to be used on that stream; its memory goes with it."""
        memory, shape = driver(), tuple(shape)
        address = memory.allocate(card, prod(shape) * dtype.itemsize, stream)
        strides = packed_strides(shape, dtype.itemsize)
        made = cls(address, shape, strides, dtype, card.number, stream)
        made.owner = _Memory()
        weakref.finalize(made.owner, _freed, card, address, stream).atexit = False
        return made

    @classmethod
    def of(cls, x: Any, device: int = 0, stream: int = PER_THREAD) -> DeviceArray:
        """A copy of an array of the host."""
        array = np.ascontiguousarray(x)
        card = driver().card(device)
        made = cls.empty(np.shape(x), array.dtype, card, stream)
        driver().to_card(card, made.address, array.ctypes.data, array.nbytes, stream)
        return made

    @classmethod
    def from_capsule(cls, capsule: Any, stream: int) -> DeviceArray | None:
        """The array in a capsule of DLPack, which is used up; None if its numbers are unknown."""
        found = dlpack.tensor_of(capsule)
        if found is None:
            return None
        address, shape, strides, dtype, device, owner = found
        own = packed_strides(shape, dtype.itemsize) if strides is None else strides
        return cls(address, shape, own, dtype, device, stream, owner)

    def numpy(self) -> np.ndarray:
        """A copy on the host, when all before on its stream is done."""
        begin, end = self.extent
        room = np.empty(end - begin, np.uint8)
        card = driver().card(self.device)
        driver().to_host(card, room.ctypes.data, begin, room.nbytes, self.stream)
        seen = np.ndarray(self.shape, self.dtype, room, self.address - begin, self.strides)
        return seen if self.is_packed else seen.copy()

    @property
    def is_packed(self) -> bool:
        """Whether all entries lie next to each other, in the order of C."""
        return is_packed(self.shape, self.strides, self.dtype.itemsize)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def extent(self) -> tuple[int, int]:
        """The first byte, and the one after the last."""
        if 0 in self.shape:
            return self.address, self.address
        ends = [(n - 1) * s for n, s in zip(self.shape, self.strides, strict=True)]
        low, high = sum(e for e in ends if e < 0), sum(e for e in ends if e > 0)
        return self.address + low, self.address + high + self.dtype.itemsize

    def seen(self, shape: Sequence[int], strides: Sequence[int], begin: int = 0) -> DeviceArray:
        """The same memory with other strides, from so many bytes on."""
        own = self.dtype, self.device, self.stream, self.owner, self.read_only
        return DeviceArray(self.address + begin, shape, strides, *own)

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<DeviceArray {self.shape} {self.dtype} on cuda:{self.device}>"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self.numpy().astype(dtype or self.dtype, copy=False)

    # for other packages

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.shape,
            "strides": None if self.is_packed else self.strides,
            "typestr": self.dtype.str,
            "data": (self.address, self.read_only),
            "version": 3,
            # 1 is the default stream, 0 is not allowed
            "stream": self.stream or 1,
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        return dlpack.CUDA, self.device

    def __dlpack__(self, *, stream: int | None = None, **wishes: Any) -> Any:
        """stream: of the consumer, which waits for this array's; wishes: of later versions."""
        consumer = self.stream if stream in (None, -1) else stream
        if consumer != self.stream:
            driver().after(driver().card(self.device), self.stream, consumer or 0)
        return dlpack.capsule_of(self)


class _Memory:
    """What arrays keep of memory that goes when nobody keeps it."""

    __slots__ = ("__weakref__",)


def _freed(card: Card, address: int, stream: int) -> None:
    driver().free(card, address, stream)


def packed_strides(shape: Sequence[int], item: int) -> tuple[int, ...]:
    """Bytes from entry to entry along each dimension of an array in the order of C."""
    strides = []
    for n in reversed(shape):
        strides.append(item)
        item *= n
    return tuple(reversed(strides))


def is_packed(shape: Sequence[int], strides: Sequence[int], item: int) -> bool:
    """Whether entries lie next to each other, in the order of C."""
    if 0 in shape:
        return True
    pairs = zip(shape, strides, packed_strides(shape, item), strict=True)
    return all(n == 1 or own == packed for n, own, packed in pairs)
