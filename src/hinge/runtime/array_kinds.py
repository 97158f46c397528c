"""Arrays of other packages that live on a card: looked into without a copy, made in their kind.

PyTorch's and CuPy's are asked directly, which is quick; others by `__cuda_array_interface__` or
DLPack.  No package is imported here that did not make an array which came.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, ClassVar, Protocol, final

import numpy as np

from ..errors import ArgumentError
from . import dlpack
from .device_arrays import DeviceArray, packed_strides
from .driver import PER_THREAD, driver

__all__ = ["Kind", "card_kind", "exchange", "kind_of", "on_card"]


class Kind(Protocol):
    """How arrays of a package are used; quick: signatures tell whether a launch may be repeated."""

    quick: ClassVar[bool]

    def is_on_card(self, x: Any) -> bool:
        """Whether an array of the package is."""
        ...

    def signature(self, x: Any) -> tuple[Any, ...]:
        """All that a launch depends on, but for the address."""
        ...

    def address(self, x: Any) -> int:
        """Where an array of the kind begins, if signatures tell, or a new one."""
        ...

    def seen(self, x: Any, stream: int) -> DeviceArray | None:
        """The array, to be used on a stream; None if its numbers are unknown here."""
        ...

    def stream(self, x: Any, device: int) -> int:
        """The stream that its package works on at present."""
        ...

    def empty(self, shape: tuple[int, ...], dtype: np.dtype, device: int, stream: int) -> Any:
        """A new array, of the kind or our own."""
        ...

    def moved(self, x: Any, axes: Sequence[int]) -> Any:
        """A new array seen with its axes in another order."""
        ...

    def given_back(self, x: Any) -> Any:
        """A new array as the package has it, when its launch is made."""
        ...


@final
class _Torch:
    """PyTorch's tensors."""

    quick: ClassVar[bool] = True

    def __init__(self) -> None:
        self._torch: Any = sys.modules["torch"]
        t = self._torch
        names = "float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8"
        self._numpy = {getattr(t, n): np.dtype(n) for n in names} | {t.bool: np.dtype(bool)}
        self._own = {d: t for t, d in self._numpy.items()}
        self._current = t._C._cuda_getCurrentRawStream
        self._devices: dict[int, Any] = {}

    def is_on_card(self, x: Any) -> bool:
        """As in `Kind`."""
        return x.is_cuda

    def signature(self, x: Any) -> tuple[Any, ...]:
        """As in `Kind`."""
        lost = x.requires_grad and self._torch.is_grad_enabled()
        return x.shape, x.stride(), x.dtype, x.get_device(), lost

    def address(self, x: Any) -> int:
        """As in `Kind`."""
        return x.data_ptr()

    def seen(self, x: Any, stream: int) -> DeviceArray | None:
        """As in `Kind`."""
        if x.dtype not in self._numpy:
            return None
        if x.requires_grad and self._torch.is_grad_enabled():
            raise ArgumentError(
                "a tensor requires grad, and no gradient would come through this call; hinge.torch "
                "has functions with gradients, x.detach() has none"
            )
        dtype = self._numpy[x.dtype]
        strides = [s * dtype.itemsize for s in x.stride()]
        return DeviceArray(x.data_ptr(), x.shape, strides, dtype, x.get_device(), stream, x)

    def stream(self, x: Any, device: int) -> int:
        """As in `Kind`."""
        return self._current(device)

    def empty(self, shape: tuple[int, ...], dtype: np.dtype, device: int, stream: int) -> Any:
        """As in `Kind`."""
        place = self._devices.get(device)
        if place is None:
            place = self._devices[device] = self._torch.device("cuda", device)
        made = self._torch.empty(shape, dtype=self._own[dtype], device=place)
        if stream != self._current(device):
            # or its memory could be given to others while it is written
            made.record_stream(self._torch.cuda.ExternalStream(stream, place))
        return made

    def moved(self, x: Any, axes: Sequence[int]) -> Any:
        """As in `Kind`."""
        return x.permute(*axes)

    def given_back(self, x: Any) -> Any:
        """As in `Kind`."""
        return x


@final
class _Cupy:
    """CuPy's arrays."""

    quick: ClassVar[bool] = True

    def __init__(self) -> None:
        self._cupy: Any = sys.modules["cupy"]

    def is_on_card(self, x: Any) -> bool:
        """As in `Kind`."""
        return True

    def signature(self, x: Any) -> tuple[Any, ...]:
        """As in `Kind`."""
        return x.shape, x.strides, x.dtype, x.device.id

    def address(self, x: Any) -> int:
        """As in `Kind`."""
        return x.data.ptr

    def seen(self, x: Any, stream: int) -> DeviceArray | None:
        """As in `Kind`."""
        return DeviceArray(x.data.ptr, x.shape, x.strides, x.dtype, x.device.id, stream, x)

    def stream(self, x: Any, device: int) -> int:
        """As in `Kind`."""
        return self._cupy.cuda.get_current_stream().ptr

    def empty(self, shape: tuple[int, ...], dtype: np.dtype, device: int, stream: int) -> Any:
        """As in `Kind`."""
        with self._cupy.cuda.Device(device):
            return self._cupy.empty(shape, dtype)

    def moved(self, x: Any, axes: Sequence[int]) -> Any:
        """As in `Kind`."""
        return x.transpose(axes)

    def given_back(self, x: Any) -> Any:
        """As in `Kind`."""
        return x


@final
class _Other:
    """Those of any other package, and our own."""

    quick: ClassVar[bool] = False

    def __init__(self, package: str) -> None:
        self._package = package

    def is_on_card(self, x: Any) -> bool:
        """As in `Kind`."""
        if isinstance(x, DeviceArray) or hasattr(x, "__cuda_array_interface__"):
            return True
        return hasattr(x, "__dlpack_device__") and _is_cuda(x.__dlpack_device__()[0])

    def signature(self, x: Any) -> tuple[Any, ...]:
        """As in `Kind`: it is not asked."""
        return ()

    def address(self, x: Any) -> int:
        """As in `Kind`."""
        return x.address

    def seen(self, x: Any, stream: int) -> DeviceArray | None:
        """As in `Kind`."""
        if isinstance(x, DeviceArray):
            if x.stream != stream:
                driver().after(driver().card(x.device), x.stream, stream)
            return x
        # JAX works on streams of its own, and only DLPack makes them wait for each other
        if self._package != "jaxlib" and hasattr(x, "__cuda_array_interface__"):
            return _by_interface(x, stream)
        # 1 is the default stream, 0 is not allowed
        return DeviceArray.from_capsule(x.__dlpack__(stream=stream or 1), stream)

    def stream(self, x: Any, device: int) -> int:
        """As in `Kind`."""
        if isinstance(x, DeviceArray):
            return x.stream
        if self._package == "warp":
            return sys.modules["warp"].get_stream(f"cuda:{device}").cuda_stream
        if self._package != "jaxlib" and hasattr(x, "__cuda_array_interface__"):
            return x.__cuda_array_interface__.get("stream") or 0
        return PER_THREAD

    def empty(self, shape: tuple[int, ...], dtype: np.dtype, device: int, stream: int) -> Any:
        """As in `Kind`."""
        return DeviceArray.empty(shape, dtype, driver().card(device), stream)

    def moved(self, x: Any, axes: Sequence[int]) -> Any:
        """As in `Kind`."""
        return x.seen([x.shape[a] for a in axes], [x.strides[a] for a in axes])

    def given_back(self, x: Any) -> Any:
        """As in `Kind`."""
        if self._package == "jaxlib":
            return sys.modules["jax"].dlpack.from_dlpack(x)
        if self._package == "numba":
            return sys.modules["numba.cuda"].as_cuda_array(x)
        if self._package == "warp":
            return sys.modules["warp"].from_dlpack(x)
        return x


def _is_cuda(device: Any) -> bool:
    return device in (dlpack.CUDA, dlpack.MANAGED)


def _by_interface(x: Any, stream: int) -> DeviceArray:
    """What `__cuda_array_interface__` says; version 3, and 2 which knows no streams."""
    told = x.__cuda_array_interface__
    dtype, shape = np.dtype(told["typestr"]), tuple(told["shape"])
    strides = told.get("strides") or packed_strides(shape, dtype.itemsize)
    address, read_only = told["data"]
    device = driver().card_of(address) if address else 0
    if (own := told.get("stream")) and own != (stream or 1):
        driver().after(driver().card(device), own, stream)
    return DeviceArray(address, shape, strides, dtype, device, stream, x, read_only)


@lru_cache(maxsize=256)
def kind_of(kind: type) -> Kind | None:
    """How arrays of a type are used; None for what cannot be on a card."""
    package = kind.__module__.partition(".")[0]
    if issubclass(kind, (np.ndarray, np.generic, int, float, list, tuple, str)):
        return None
    if package == "torch" or any(b.__module__ == "torch" for b in kind.__mro__):
        return _torch()
    if package == "cupy":
        return _cupy()
    known = hasattr(kind, "__dlpack_device__") or hasattr(kind, "__cuda_array_interface__")
    return _Other(package) if known else None


@lru_cache(maxsize=1)
def _torch() -> _Torch:
    return _Torch()


@lru_cache(maxsize=1)
def _cupy() -> _Cupy:
    return _Cupy()


def exchange() -> tuple[int, int]:
    """Where PyTorch has the functions that look into its tensors, and their type; 0 without.

    They are those of DLPack 1.3, part of whose ABI the numbers here are.
    """
    torch: Any = sys.modules.get("torch")
    capsule = getattr(getattr(torch, "Tensor", None), "__dlpack_c_exchange_api__", None)
    address = 0 if capsule is None else dlpack.exchange_api(capsule)
    return (address, id(torch.Tensor)) if address else (0, 0)


def card_kind(x: Any) -> Kind | None:
    """How an array is used that lives on a card; None if it does not."""
    kind = kind_of(type(x))
    return kind if kind is not None and kind.is_on_card(x) else None


def on_card(x: Any) -> bool:
    """Whether an array lives on a card."""
    return card_kind(x) is not None
