"""Text to object code for one CPU, and object code to callable addresses."""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import Any

from . import cache
from .artifact import full_key
from .entry import Entry
from .forks import MAKING
from .loader import load
from .symbols import python_symbols, symbols
from .target import Target, host, llvm_version

__all__ = ["Library", "code_marks", "compile_text", "fast_calls_work", "helper_library"]


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
        with MAKING:
            self._image = load(code, symbols()) or _Linked(code, target)

    def address(self, name: str) -> int:
        """Where a function is, 0 if there is none of that name."""
        return self._image.address(name)

    def entry(self, name: str, own: tuple[Any, ...] = ()) -> Entry:
        """The function of that name for Python to call; `own` is what its code knows as self."""
        return Entry(self.address(name), own, self)


def code_marks(target: Target) -> tuple[str, ...]:
    """What object code depends on besides its text."""
    kind = f"{target.vector_bits} {fast_calls_work()}"
    return kind, target.cpu, target.features, llvm_version()


def helper_library(text: str) -> Library:
    """A module that is no program, for this machine, compiled once and kept in the cache."""
    key = full_key(text, *code_marks(host()))
    with MAKING:
        code = cache.load(key)
        if code is None:
            code = compile_text(text, host())
            cache.store(key, code)
        return Library(code, host())
