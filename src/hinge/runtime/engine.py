"""LLVM at work: text to object code for one CPU, object code to callable addresses."""

from __future__ import annotations

import ctypes
import importlib
import platform
import sys
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

__all__ = [
    "Library",
    "Target",
    "compile_text",
    "fast_calls_work",
    "host",
    "llvm_version",
]


@dataclass(frozen=True)
class Target:
    """A CPU to compile for: its name, its features, and how many bits a vector has."""

    cpu: str
    features: str
    vector_bits: int

    def lanes(self, scalar: str) -> int:
        """How many numbers are worked on at once."""
        return self.vector_bits // (64 if scalar == "double" else 32)

    @property
    def fused(self) -> bool:
        """Whether it multiplies and adds in one operation."""
        return "+fma" in self.features.split(",") or platform.machine() in ("aarch64", "arm64")


@lru_cache(maxsize=1)
def host() -> Target:
    """The CPU of this machine."""
    llvm = _llvm()
    features = llvm.get_host_cpu_features()
    bits = 512 if features.get("avx512f") else 256 if features.get("avx2") else 128
    return Target(llvm.get_host_cpu_name(), features.flatten(), bits)


@lru_cache(maxsize=1)
def _llvm() -> Any:
    """llvmlite, initialised, with the addresses that compiled code refers to by name."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    for name, address in _symbols().items():
        llvm.add_symbol(name, address)
    return llvm


def _symbols() -> dict[str, int]:
    python, math = ctypes.pythonapi, _math_library()
    functions = {
        "hinge_sin": math.sin,
        "hinge_cos": math.cos,
        "hinge_atan2": math.atan2,
        "hinge_vectorcall": python.PyObject_Vectorcall,
        "hinge_new_tuple": python.PyTuple_New,
        "hinge_size": python.PyTuple_Size,
        "hinge_item": python.PyTuple_GetItem,
        "hinge_set_item": python.PyTuple_SetItem,
        "hinge_number": python.PyLong_AsSsize_t,
        "hinge_retain": python.Py_IncRef,
        "hinge_release": python.Py_DecRef,
        "hinge_allocate": python.PyMem_RawMalloc,
        "hinge_free": python.PyMem_RawFree,
        "hinge_no_memory": python.PyErr_NoMemory,
        "hinge_unlock": python.PyEval_SaveThread,
        "hinge_lock": python.PyEval_RestoreThread,
    }
    table = {name: _address(fn) for name, fn in functions.items()}
    table["hinge_new_array"] = _array_api(93)
    table["hinge_tuple_subtype"] = _tuple_new()
    table["hinge_tuple"] = id(tuple)
    table["hinge_out"] = id(_OUT)
    table["hinge_ndarray"] = id(np.ndarray)
    table["hinge_descr_f64"] = id(np.dtype(np.float64))
    table["hinge_descr_f32"] = id(np.dtype(np.float32))
    return table


def _math_library() -> ctypes.CDLL:
    """Where sin and cos are: in this process, as Python's own, or in a library to look for."""
    if sys.platform != "win32" and hasattr(process := ctypes.CDLL(None), "atan2"):
        return process
    from ctypes import util

    return ctypes.CDLL(util.find_library("m"))


# the name of a keyword is the one string with its letters
_OUT = sys.intern("out")


def _tuple_new() -> int:
    """tuple.__new__ as C has it: its slot has number 65 in the stable ABI."""
    get = ctypes.pythonapi.PyType_GetSlot
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_int]
    return get(tuple, 65)


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _array_api(index: int) -> int:
    """An entry of NumPy's C interface; its numbering is part of its ABI."""
    core = importlib.import_module("numpy._core._multiarray_umath")
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = ctypes.cast(get(core._ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))
    return table[index] or 0


def llvm_version() -> str:
    """The version of LLVM and of its wrapper."""
    import llvmlite

    return f"{llvmlite.__version__} {_llvm().llvm_version_info}"


def fast_calls_work() -> bool:
    """Whether this Python lays objects out as the single call assumes."""
    return (
        sys.implementation.name == "cpython"
        and sys.maxsize > 2**32
        and not sysconfig.get_config_var("Py_GIL_DISABLED")
        and not sysconfig.get_config_var("Py_TRACE_REFS")
    )


def compile_text(text: str, target: Target) -> bytes:
    """Object code of a module."""
    llvm = _llvm()
    module = llvm.parse_assembly(text)
    module.triple = llvm.get_process_triple()
    machine = _machine(target)
    options = llvm.create_pipeline_tuning_options(speed_level=0)
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return machine.emit_object(module)


def _machine(target: Target) -> Any:
    llvm = _llvm()
    return llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(
        cpu=target.cpu, features=target.features, opt=3, reloc="pic", codemodel="small"
    )


class Library:
    """Object code in memory, its functions found by name."""

    def __init__(self, code: bytes, target: Target) -> None:
        llvm = _llvm()
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _machine(target))
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        self._engine.finalize_object()

    def address(self, name: str) -> int:
        """Where a function is."""
        return self._engine.get_function_address(name)

    def method(self, name: str, title: str, own: tuple[Any, ...]) -> Callable[..., Any]:
        """A built-in function on the code of that name; `own` is what its code knows as self."""
        definition = _MethodDef(title.encode(), self.address(name), 0x0080 | 0x0002, None)
        _KEPT.append(definition)
        new = ctypes.pythonapi.PyCFunction_NewEx
        new.restype = ctypes.py_object
        new.argtypes = [ctypes.POINTER(_MethodDef), ctypes.py_object, ctypes.py_object]
        # a function keeps its module alive: here the library, that is the code
        return new(ctypes.byref(definition), own, self)


class _MethodDef(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("method", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


# a function object reads its definition even when it is collected
_KEPT: list[_MethodDef] = []
