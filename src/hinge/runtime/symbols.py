"""Where the functions and objects are that compiled code refers to by name."""

from __future__ import annotations

import ctypes
import importlib
import sys
from functools import lru_cache
from typing import Any

import numpy as np

from ..graph.operations import library_functions

__all__ = ["python_symbols", "symbols"]

# of NumPy's C interface, whose numbering is part of its ABI, and of Python's stable one
_PYARRAY_FROM_ANY, _PYARRAY_NEW, _PY_TP_NEW = 69, 93, 65
# the name of a keyword is the one string with its letters
_OUT = sys.intern("out")
_OUT_NAMES = (_OUT,)
_REQUIRES_GRAD = sys.intern("requires_grad")


@lru_cache(maxsize=1)
def symbols() -> dict[str, int]:
    """The address of every name that compiled code may use but does not define."""
    library = _math_library()
    math = {f"hinge_{name}": _address(getattr(library, name)) for name in library_functions()}
    return math | _stack_probe() | python_symbols()


@lru_cache(maxsize=1)
def python_symbols() -> dict[str, int]:
    """Those that only calls from Python need; none where this Python lacks one of them."""
    if sys.implementation.name != "cpython":
        return {}
    try:
        return _python_functions() | _python_objects()
    except (AttributeError, ImportError):
        return {}


def _python_functions() -> dict[str, int]:
    python = ctypes.pythonapi
    functions = {
        "hinge_vectorcall": python.PyObject_Vectorcall,
        "hinge_new_tuple": python.PyTuple_New,
        "hinge_size": python.PyTuple_Size,
        "hinge_item": python.PyTuple_GetItem,
        "hinge_list_size": python.PyList_Size,
        "hinge_list_item": python.PyList_GetItem,
        "hinge_set_item": python.PyTuple_SetItem,
        "hinge_number": python.PyLong_AsSsize_t,
        "hinge_from_number": python.PyLong_FromSsize_t,
        "hinge_retain": python.Py_IncRef,
        "hinge_release": python.Py_DecRef,
        "hinge_allocate": python.PyMem_RawMalloc,
        "hinge_free": python.PyMem_RawFree,
        "hinge_no_memory": python.PyErr_NoMemory,
        "hinge_unlock": python.PyEval_SaveThread,
        "hinge_lock": python.PyEval_RestoreThread,
        "hinge_attribute": python.PyObject_GetAttr,
        "hinge_forget": python.PyErr_Clear,
    }
    table = {name: _address(function) for name, function in functions.items()}
    table["hinge_new_array"] = _array_api(_PYARRAY_NEW)
    table["hinge_from_any"] = _array_api(_PYARRAY_FROM_ANY)
    table["hinge_tuple_subtype"] = _tuple_new()
    return table


def _python_objects() -> dict[str, int]:
    return {
        "hinge_tuple": id(tuple),
        "hinge_list": id(list),
        "hinge_out": id(_OUT),
        "hinge_out_names": id(_OUT_NAMES),
        "hinge_none": id(None),
        "hinge_false": id(False),
        "hinge_requires_grad": id(_REQUIRES_GRAD),
        "hinge_ndarray": id(np.ndarray),
        "hinge_descr_f64": id(np.dtype(np.float64)),
        "hinge_descr_f32": id(np.dtype(np.float32)),
        "hinge_descr_i64": id(np.dtype(np.int64)),
        "hinge_float": id(float),
        "hinge_float64": id(np.float64),
        "hinge_int": id(int),
    }


def _math_library() -> ctypes.CDLL:
    """Where sin and cos are: in this process, as Python's own, or in a library of the system."""
    if sys.platform == "win32":
        return ctypes.CDLL("ucrtbase")
    if hasattr(process := ctypes.CDLL(None), "atan2"):
        return process
    from ctypes import util

    return ctypes.CDLL(util.find_library("m"))


def _stack_probe() -> dict[str, int]:
    """What code for Windows calls before it takes more than a page of the stack at once."""
    if sys.platform != "win32":
        return {}
    return {"__chkstk": _address(getattr(ctypes.CDLL("ntdll"), "__chkstk"))}


def _tuple_new() -> int:
    """tuple.__new__ as C has it."""
    get = ctypes.pythonapi.PyType_GetSlot
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_int]
    return get(tuple, _PY_TP_NEW)


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _array_api(index: int) -> int:
    """An entry of NumPy's C interface."""
    core = importlib.import_module("numpy._core._multiarray_umath")
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = ctypes.cast(get(core._ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))
    return table[index] or 0
