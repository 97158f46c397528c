"""DLPack (github.com/dmlc/dlpack, version 0.8): arrays handed from package to package."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .device_arrays import DeviceArray

__all__ = ["CUDA", "MANAGED", "capsule_of", "exchange_api", "tensor_of"]

# kDLCUDA, kDLCUDAManaged
CUDA, MANAGED = 2, 13
_KINDS = {0: "i", 1: "u", 2: "f", 6: "b"}
_NAME, _USED = b"dltensor", b"used_dltensor"


class _Tensor(ctypes.Structure):
    """DLTensor."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
    ]


_DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Managed(ctypes.Structure):
    """DLManagedTensor."""

    _fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", _DELETER)]


_python = ctypes.pythonapi
_new, _pointer = _python.PyCapsule_New, _python.PyCapsule_GetPointer
_rename, _is_valid = _python.PyCapsule_SetName, _python.PyCapsule_IsValid
_object, _word = ctypes.py_object, ctypes.c_char_p
_FINISH = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
_new.restype, _new.argtypes = _object, [ctypes.c_void_p, _word, _FINISH]
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [_object, _word]
_rename.argtypes, _is_valid.argtypes = [_object, _word], [ctypes.c_void_p, _word]
_raw_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, _word)(
    ("PyCapsule_GetPointer", _python)
)


def tensor_of(capsule: Any) -> tuple[Any, ...] | None:
    """Address, shape, strides in bytes (None if packed), dtype, device, and what keeps it.

    The capsule is used up.  None if its numbers are unknown here.
    """
    managed = _Managed.from_address(_pointer(capsule, _NAME) or 0)
    t = managed.tensor
    if t.code not in _KINDS or t.lanes != 1:
        return None
    dtype = np.dtype(f"{_KINDS[t.code]}{t.bits // 8}")
    shape = tuple(t.shape[i] for i in range(t.ndim))
    strides = None
    if t.strides:
        strides = tuple(t.strides[i] * dtype.itemsize for i in range(t.ndim))
    _rename(capsule, _USED)
    return (t.data or 0) + t.offset, shape, strides, dtype, t.device[1], _Borrowed(managed, capsule)


class _Borrowed:
    """Memory of another package, given back when nobody here has it."""

    def __init__(self, managed: _Managed, capsule: Any) -> None:
        self._managed, self._capsule = managed, capsule

    def __del__(self) -> None:
        if self._managed.deleter:
            self._managed.deleter(ctypes.addressof(self._managed))


def exchange_api(capsule: Any) -> int:
    """The address of a package's table of functions in a capsule; 0 if it is of another version."""
    if not _is_valid(id(capsule), b"dlpack_exchange_api"):
        return 0
    address = _pointer(capsule, b"dlpack_exchange_api") or 0
    return address if ctypes.c_uint32.from_address(address).value == 1 else 0


# arrays that other packages have, by the addresses of what was handed to them
_LENT: dict[int, tuple[Any, ...]] = {}


@_DELETER
def _returned(address: int) -> None:
    _LENT.pop(address, None)


@_FINISH
def _dropped(capsule: int) -> None:
    """A capsule that nobody took goes away."""
    if _is_valid(capsule, _NAME):
        _LENT.pop(_raw_pointer(capsule, _NAME) or 0, None)


def capsule_of(x: DeviceArray) -> Any:
    """An array for another package to take, which keeps it as long as it wants to."""
    n, item = x.ndim, x.dtype.itemsize
    shape = (ctypes.c_int64 * n)(*x.shape)
    strides = (ctypes.c_int64 * n)(*(s // item for s in x.strides))
    code = next(k for k, kind in _KINDS.items() if kind == x.dtype.kind)
    pointers = (ctypes.cast(a, ctypes.POINTER(ctypes.c_int64)) for a in (shape, strides))
    own = (ctypes.c_int32 * 2)(CUDA, x.device)
    tensor = _Tensor(x.address, own, n, code, 8 * item, 1, *pointers, 0)
    managed = _Managed(tensor, None, _returned)
    address = ctypes.addressof(managed)
    _LENT[address] = managed, shape, strides, x
    return _new(address, _NAME, _dropped)
