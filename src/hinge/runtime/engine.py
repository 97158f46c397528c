"""Text to object code for one CPU, and object code to callable addresses."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

from .loader import load
from .symbols import python_symbols, symbols
from .target import Target

__all__ = ["Library", "compile_text", "fast_calls_work"]


@lru_cache(maxsize=1)
def _llvm() -> Any:
    """llvmlite, initialised, with the addresses that compiled code refers to by name."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    for name, address in symbols().items():
        llvm.add_symbol(name, address)
    return llvm


# bytes at the beginning of every object; other builds have more, or count references otherwise
_HEAD = object.__basicsize__


def fast_calls_work() -> bool:
    """Whether this Python has all that its calls of compiled code need, laid out as they assume."""
    return _HEAD == 16 and bool(python_symbols())


def compile_text(text: str, target: Target) -> bytes:
    """Object code of a module."""
    llvm = _llvm()
    module = llvm.parse_assembly(text)
    module.triple = _triple()
    machine = _machine(target)
    options = llvm.create_pipeline_tuning_options(speed_level=0)
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return machine.emit_object(module)


def _triple() -> str:
    """What LLVM calls this system; on Windows it can link ELF objects in memory, but no others."""
    triple = _llvm().get_process_triple()
    return f"{triple}-elf" if sys.platform == "win32" else triple


def _machine(target: Target) -> Any:
    llvm, triple = _llvm(), _triple()
    cpu, features = target.cpu, target.features
    if target.native:
        cpu, features = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    # on Windows memory may come from anywhere, so that no offset of 32 bits is sure to reach it
    reach = ("static", "large") if "windows" in triple else ("pic", "small")
    return llvm.Target.from_triple(triple).create_target_machine(
        cpu=cpu, features=features, opt=3, reloc=reach[0], codemodel=reach[1]
    )


class _Linked:
    """Object code that LLVM has put into memory."""

    def __init__(self, code: bytes, target: Target) -> None:
        llvm = _llvm()
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _machine(target))
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        self._engine.finalize_object()

    def address(self, name: str) -> int:
        """Where a function is, 0 if there is none of that name."""
        return self._engine.get_function_address(name)


class Library:
    """Object code in memory, its functions found by name."""

    def __init__(self, code: bytes, target: Target) -> None:
        self._image = load(code, symbols()) or _Linked(code, target)

    def address(self, name: str) -> int:
        """Where a function is, 0 if there is none of that name."""
        return self._image.address(name)

    def method(
        self, name: str, title: str, own: tuple[Any, ...], doc: str = ""
    ) -> Callable[..., Any]:
        """A built-in function on the code of that name; `own` is what its code knows as self."""
        definition = _definition(title, self.address(name), doc)
        new = ctypes.pythonapi.PyCFunction_NewEx
        new.restype = ctypes.py_object
        new.argtypes = [ctypes.POINTER(_MethodDef), ctypes.py_object, ctypes.py_object]
        # a function keeps its module alive: here the library, that is the code
        return new(ctypes.byref(definition), own, self)


# of methodobject.h: arguments come as an array, the names of keywords behind them
_FASTCALL, _KEYWORDS = 0x0080, 0x0002


class _MethodDef(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("method", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


@cache
def _definition(title: str, address: int, doc: str) -> _MethodDef:
    """Kept for ever: a function object reads its definition even when it is collected."""
    words = doc.encode() if doc else None
    return _MethodDef(title.encode(), address, _FASTCALL | _KEYWORDS, words)
