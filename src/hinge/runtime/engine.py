"""Text to object code for one CPU, and object code to callable addresses."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

from . import cache
from .artifact import full_key
from .entry import Entry
from .forks import MAKING
from .loader import load, objects_in, packed
from .symbols import python_symbols, symbols
from .target import Target, host, llvm_version
from .threads import thread_count

__all__ = ["Library", "code_marks", "compile_text", "compile_texts"]
__all__ += ["fast_calls_work", "helper_library"]


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


def compile_text(text: str, target: Target, effort: int = 3) -> bytes:
    """Object code of a module; effort: LLVM's level of optimisation, 0 to 3."""
    llvm = _llvm()
    # in a context of its own, so that others can be compiled at the same time
    with llvm.create_context() as context, llvm.parse_assembly(text, context) as module:
        module.triple = _triple()
        machine = _machine(target, effort)
        options = llvm.create_pipeline_tuning_options(speed_level=0)
        builder = llvm.create_pass_builder(machine, options)
        builder.getModulePassManager().run(module, builder)
        return _object(machine, module)


def _object(machine: Any, module: Any) -> bytes:
    """`machine.emit_object(module)` without the lock by which llvmlite keeps all but one thread out
    of LLVM: that is for modules that share a context.
    """
    from llvmlite.binding import ffi

    emit = ffi.lib.LLVMPY_TargetMachineEmitToMemory
    with ffi.OutputString() as error:
        buffer = getattr(emit, "_cfn", emit)(machine, module, 1, error)
    if not buffer:
        # says why not
        return machine.emit_object(module)
    try:
        start, size = ffi.lib.LLVMPY_GetBufferStart(buffer), ffi.lib.LLVMPY_GetBufferSize(buffer)
        return ctypes.string_at(start, size)
    finally:
        ffi.lib.LLVMPY_DisposeMemoryBuffer(buffer)


def compile_texts(texts: Iterable[str | bytes], target: Target, effort: int = 3) -> bytes:
    """Object code of modules, of which the first may call functions of the others, and comes last.

    Each is compiled on a thread of its own as soon as it is written; object code stays as it is.
    """
    from .crew import Crew

    crew = Crew(lambda text: _object_code(text, target, effort), thread_count(None))
    first, *others = crew.results(texts)
    return packed([*others, first])


def _object_code(text: str | bytes, target: Target, effort: int) -> bytes:
    return text if isinstance(text, bytes) else compile_text(text, target, effort)


def _triple() -> str:
    """What LLVM calls this system; on Windows it can link ELF objects in memory, but no others."""
    triple = _llvm().get_process_triple()
    return f"{triple}-elf" if sys.platform == "win32" else triple


def _machine(target: Target, effort: int = 3) -> Any:
    llvm, triple = _llvm(), _triple()
    cpu, features = target.cpu, target.features
    if target.native:
        cpu, features = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    # on Windows memory may come from anywhere, so that no offset of 32 bits is sure to reach it
    reach = ("static", "large") if "windows" in triple else ("pic", "small")
    return llvm.Target.from_triple(triple).create_target_machine(
        cpu=cpu, features=features, opt=effort, reloc=reach[0], codemodel=reach[1]
    )


class _Linked:
    """Object code that LLVM has put into memory."""

    def __init__(self, code: bytes, target: Target, own: Mapping[str, int]) -> None:
        llvm = _llvm()
        for name, address in own.items():
            llvm.add_symbol(name, address)
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _machine(target))
        for one in objects_in(code):
            self._engine.add_object_file(llvm.ObjectFileRef.from_data(one))
        self._engine.finalize_object()

    def address(self, name: str) -> int:
        """Where a function is, 0 if there is none of that name."""
        return self._engine.get_function_address(name)


class Library:
    """Object code in memory, its functions found by name."""

    def __init__(self, code: bytes, target: Target, own: Mapping[str, int] | None = None) -> None:
        """own: addresses of what only this one refers to, by name."""
        own = dict(own or {})
        with MAKING:
            self._image = load(code, symbols() | own) or _Linked(code, target, own)

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


def helper_library(
    text: str | Callable[[], str], own: Mapping[str, int] | None = None, name: str = ""
) -> Library:
    """A module that is no program, for this machine, compiled once and kept in the cache.

    text: or what makes it, if it is always the same, for which a name stands then.
    own: as of `Library`; every call loads the code anew.
    """
    key = full_key(text if isinstance(text, str) else name, *code_marks(host()))
    with MAKING:
        code = cache.load(key)
        if code is None:
            code = compile_text(text if isinstance(text, str) else text(), host())
            cache.store(key, code)
        return Library(code, host(), own)
