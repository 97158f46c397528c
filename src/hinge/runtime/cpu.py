"""The backend for CPUs: LLVM compiles, machine code runs batches in vectors and over threads."""

from __future__ import annotations

import ctypes
import platform
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, final

import numpy as np

from . import memory
from .artifact import Artifact, source_digest
from .backend import Settings
from .engine import Library, code_marks, compile_texts, fast_calls_work, helper_library
from .entry import Entry
from .progress import progress
from .target import Target, host
from .team import HERE, share
from .threads import in_parallel, thread_count

if TYPE_CHECKING:
    from ..graph.loop import LoopProgram
    from ..graph.program import Program
    from ..graph.scan import Scan
    from .kernel import Kernel
    from .rollout import Rollout

__all__ = ["Cpu", "Machine"]

# a thread of the team, which is awake or will soon be, is worth telling for about this many
# operations; one of the pool, which time loops have, is worth waking for more
_WORK_PER_HELPER, _WORK_PER_THREAD = 500_000, 4_000_000
# after so many operations Python gets a look-in
_WORK_PER_CALL = 1_000_000_000
_LINE = 64
# scratch of more bytes is not kept
_MOST_KEPT = 1 << 26
# operations up to which LLVM does its utmost: the same bits, but of Talos' ∂q̈ (86 400) a quarter of
# the time to compile for 1 % of the time to run; of smaller programs it would be up to 4 %
_MOST_EFFORT = 20_000


@final
@dataclass(frozen=True)
class Cpu:
    """Machine code for a CPU, that of this machine unless told otherwise.

    threads: how many share a batch at most, None for all cores.
    """

    threads: int | None = None
    target: Target = field(default_factory=host)
    language: ClassVar[str] = "llvm"
    climbs: ClassVar[bool] = True

    @property
    def solves(self) -> bool:
        """As in `Backend`: straight-line code of any length is fast."""
        return False

    def text(self, program: Program | LoopProgram | Scan, settings: Settings) -> str:
        """As in `Backend`."""
        from ..emit.llvm.module import module_text

        flavor = self.target.flavor(settings.scalar)
        return module_text(program, flavor, settings.strict, fast_calls_work())

    def compile(self, program: Program | LoopProgram | Scan, settings: Settings) -> bytes:
        """As in `Backend`: object files."""
        from ..emit.llvm.module import module_texts

        flavor = self.target.flavor(settings.scalar)
        texts = module_texts(program, flavor, settings.strict, fast_calls_work())
        size = getattr(program, "written", sum(program.ops))
        effort = 3 if size <= _MOST_EFFORT else 1
        return compile_texts(texts, self.target, effort)

    def marks(self) -> tuple[str, ...]:
        """As in `Backend`."""
        return code_marks(self.target)

    def needs(self) -> tuple[str, ...]:
        """As in `Backend`: the system and its Python too, which code calls by name."""
        own = f"{sys.platform} {platform.machine()} {sys.implementation.cache_tag}"
        return own, *code_marks(self.target)[:-1], source_digest()

    def __reduce__(self) -> Any:
        """To another machine it comes as the CPU that is there, if it is that of this one."""
        whole = self.target._replace(vector_bits=host().vector_bits)
        if whole != host():
            return Cpu, (self.threads, self.target)
        return _there, (self.threads, None if self.target == whole else self.target.vector_bits)

    def suited(self, settings: Settings, samples: int) -> Cpu:
        """As in `Backend`: steps of one number take less time than those of a whole vector."""
        return _narrow(self, 8 * settings.dtype.itemsize) if samples == 1 else self

    def load(self, artifact: Artifact, settings: Settings) -> _Batches:
        """As in `Backend`."""
        return _Batches(self, artifact, settings)

    def load_scan(
        self, artifact: Artifact, settings: Settings, states: int, inputs: int
    ) -> _TimeLoop:
        """As in `Backend`."""
        return _TimeLoop(self, artifact, settings, states, inputs)

    def caller(self, kernel: Kernel) -> None:
        """As in `Backend`: its arrays are those of the host."""

    def loop_caller(self, rollout: Rollout) -> None:
        """As in `Backend`."""

    def empty(self, shapes: Sequence[tuple[int, ...]], dtype: np.dtype) -> list[np.ndarray]:
        """As in `Backend`."""
        return memory.arrays(shapes, dtype)


def _there(threads: int | None, bits: int | None) -> Cpu:
    """The CPU of this machine, whose code may be for shorter vectors."""
    return Cpu(threads) if bits is None else _narrow(Cpu(threads), bits)


@lru_cache(maxsize=64)
def _narrow(backend: Cpu, bits: int) -> Cpu:
    return replace(backend, target=backend.target._replace(vector_bits=bits))


class Machine(NamedTuple):
    """What other machine code has to know to run a program.

    run: its address; single: that of the code for one sample, 0 if there is none.
    room: bytes of scratch memory for a thread; grain: where parts may begin.
    helpers, worth: how many threads may help, and from how many samples on each is worth it.
    """

    run: int
    single: int
    room: int
    grain: int
    helpers: int
    worth: int


@final
class _Code:
    """Machine code in memory: its `run` takes tables of pointers, then which samples and scratch.

    room: how many bytes of scratch; grain: how many samples are worked on at once.
    """

    def __init__(self, backend: Cpu, artifact: Artifact, settings: Settings, tables: int) -> None:
        self.library = Library(artifact.code, backend.target)
        self.grain = backend.target.lanes(settings.scalar)
        word, pointer = ctypes.c_int64, ctypes.c_void_p
        kind = ctypes.CFUNCTYPE(None, *[pointer] * tables, word, word, pointer)
        self._run = kind(self.library.address("run"))
        self.room = ctypes.CFUNCTYPE(word)(self.library.address("workspace"))()

    def machine(self, threads: int | None, worth: int) -> Machine:
        """For other machine code."""
        find, helpers = self.library.address, thread_count(threads) - 1
        return Machine(find("run"), find("single"), self.room, self.grain, helpers, worth)

    def run(self, tables: Sequence[Any], begin: int, end: int) -> None:
        """Samples begin … end."""
        _, place = _scratch(self.room)
        self._run(*tables, begin, end, place)


_HERE = threading.local()


def _scratch(size: int) -> tuple[np.ndarray, int]:
    """Memory, and where a line begins in it; a thread has the same for one call after the other."""
    block = getattr(_HERE, "block", None)
    if block is None or block.nbytes < size + _LINE:
        block = np.empty(size + _LINE, dtype=np.uint8)
        _HERE.block = block if size <= _MOST_KEPT else None
    return block, -(-block.ctypes.data // _LINE) * _LINE


def _pointers(addresses: Sequence[int]) -> ctypes.Array[ctypes.c_void_p]:
    return (ctypes.c_void_p * len(addresses))(*addresses)


def _words(numbers: Sequence[int]) -> ctypes.Array[ctypes.c_int64]:
    return (ctypes.c_int64 * len(numbers))(*numbers)


# batches


@final
class _Batches:
    """A program in machine code."""

    def __init__(self, backend: Cpu, artifact: Artifact, settings: Settings) -> None:
        self._threads, self._artifact, self._dtype = backend.threads, artifact, settings.dtype
        self._code = _Code(backend, artifact, settings, tables=2)

    @cached_property
    def _worth(self) -> int:
        """How many samples are worth another thread."""
        artifact = self._artifact
        return -(-_WORK_PER_HELPER // (1 + sum(artifact.ops) + sum(map(prod, artifact.outputs))))

    def entry(self, otherwise: Callable[..., Any], form: type, least: int) -> Entry | None:
        """As in `Loaded`."""
        if not fast_calls_work():
            return None
        library, helpers = self._code.library, thread_count(self._threads) - 1
        results = partial(memory.results, self._artifact.outputs, self._dtype)
        single = least == 0 and library.address("one")
        room = ctypes.CFUNCTYPE(ctypes.c_int64)(library.address("room"))() if single else 0
        own = (form, self._worth, helpers, HERE, least, results, memory.LARGE)
        own += (np.empty(room + _LINE if room else 0, np.uint8), memory.KEPT)
        name = "one" if single else "many"
        ready = library.entry(name, (otherwise, *own)).function(name)
        copies = _copies().entry("copies", (otherwise, ready, self._dtype)).function("copies")
        return library.entry(name, (copies, *own))

    @property
    def machine(self) -> Machine:
        """For other machine code."""
        return self._code.machine(self._threads, self._worth)

    def run(
        self, arrays: Sequence[np.ndarray], results: Sequence[np.ndarray], lead: tuple[int, ...]
    ) -> None:
        """As in `Loaded`."""
        code, size, artifact = self._code, prod(lead), self._artifact
        rows = [_rows(x, lead, s) for x, s in zip(arrays, artifact.inputs, strict=True)]
        strides = [stride for _, stride in rows]
        strides += [self._dtype.itemsize * prod(shape) for shape in artifact.outputs]
        addresses = [x.ctypes.data for x, _ in rows] + [x.ctypes.data for x in results]
        tables = _pointers(addresses), _words([*strides, size])

        helpers = min(thread_count(self._threads) - 1, size // self._worth)
        if helpers:
            _, place = _scratch(code.room * (helpers + 1))
            batch = (code.library.address("run"), *tables, size)
            if share(batch, place, code.room, helpers, code.grain):
                return
        in_parallel(partial(code.run, tables), size, code.grain, self._threads, 1 + helpers)


def _rows(x: np.ndarray, lead: tuple[int, ...], shape: tuple[int, ...]) -> tuple[np.ndarray, int]:
    """An array whose samples are contiguous rows, and the bytes from one to the next."""
    item = x.dtype.itemsize
    if x.shape == shape and x.flags.c_contiguous:
        return x, 0
    if x.shape[: x.ndim - len(shape)] != lead:
        x = np.broadcast_to(x, lead + shape)
    if len(lead) == 1 and _packed(x.strides[1:], shape, item) and x.strides[0] >= 0:
        return x, x.strides[0]
    return np.ascontiguousarray(x), prod(shape) * item


def _packed(strides: tuple[int, ...], shape: tuple[int, ...], item: int) -> bool:
    """Whether the entries of one sample lie next to each other."""
    for stride, n in zip(reversed(strides), reversed(shape), strict=True):
        if n > 1 and stride != item:
            return False
        item *= n
    return True


@lru_cache(maxsize=1)
def _copies() -> Library:
    """The code that copies what kernels do not take as it lies."""

    def text() -> str:
        from ..emit.llvm.copies import copies_text

        return copies_text()

    return helper_library(text, name="copies")


# time loops


@final
class _TimeLoop:
    """A scan in machine code."""

    def __init__(
        self, backend: Cpu, artifact: Artifact, settings: Settings, states: int, inputs: int
    ) -> None:
        self._threads, self._artifact, self._settings = backend.threads, artifact, settings
        self._states, self._inputs = states, inputs
        self._code = _Code(backend, artifact, settings, tables=4)

    @property
    def machine(self) -> Machine:
        """For other machine code; a sample counts once for every step."""
        worth = -(-_WORK_PER_HELPER // (1 + sum(self._artifact.ops)))
        return self._code.machine(self._threads, worth)

    def run(
        self,
        arrays: Sequence[np.ndarray],
        results: Sequence[np.ndarray],
        lead: tuple[int, ...],
        steps: int,
        every: int,
    ) -> list[np.ndarray]:
        """As in `LoadedScan`."""
        table = _Table(self._states, self._inputs, lead, self._settings.dtype)
        for array, shape in zip(arrays, self._artifact.inputs, strict=True):
            table.argument(array, shape)
        for array in results:
            table.result(array)
        size, code, threads = prod(lead), self._code, self._threads
        work = size * (1 + sum(self._artifact.ops))
        team = min(thread_count(threads), 1 + work // _WORK_PER_THREAD)
        chunk = max(1, _WORK_PER_CALL * team // (1 + work))
        most = 1 + work * min(steps, chunk) // _WORK_PER_THREAD
        for start in progress(range(0, steps, chunk), self._settings.name):
            part = table.at(start, min(chunk, steps - start), every)
            in_parallel(partial(code.run, part), size, code.grain, threads, most)
        return table.kept[: self._states]


@final
class _Table:
    """Where the arrays of a run are: addresses, bytes between samples and between steps."""

    def __init__(self, states: int, inputs: int, lead: tuple[int, ...], dtype: np.dtype) -> None:
        self.states, self.inputs, self.lead, self.dtype = states, inputs, lead, dtype
        self.kept: list[np.ndarray] = []
        self.strides: list[int] = []
        self.jumps: list[int] = []

    def argument(self, x: np.ndarray, shape: tuple[int, ...]) -> None:
        """The next argument: a state is copied, an input goes on with time, others stay."""
        n, row = len(self.kept), prod(shape) * self.dtype.itemsize
        state, timed = n < self.states, self.states <= n < self.states + self.inputs
        own = x.shape[int(timed) : x.ndim - len(shape)]
        shared = not state and prod(own) == 1
        if state:
            whole = self.lead + shape
            x = np.array(x if x.shape == whole else np.broadcast_to(x, whole), order="C")
        elif not shared and own != self.lead:
            time = x.shape[: int(timed)]
            ones = (1,) * (len(self.lead) - len(own))
            x = np.broadcast_to(x.reshape(time + ones + own + shape), time + self.lead + shape)
        self.kept.append(np.asarray(x, order="C"))
        self.strides.append(0 if shared else row)
        self.jumps.append(timed * row * (1 if shared else prod(self.lead)))

    def result(self, x: np.ndarray) -> None:
        """The next result: a row for every record."""
        self.kept.append(x)
        samples = prod(self.lead)
        row = x[0].nbytes if len(x) else 0
        self.strides.append(row // samples if samples else 0)
        self.jumps.append(row)

    def at(self, start: int, steps: int, every: int) -> tuple[Any, ...]:
        """The tables for so many steps from `start` on."""
        addresses = []
        for i, (x, jump) in enumerate(zip(self.kept, self.jumps, strict=True)):
            past = start if i < self.states + self.inputs else start // every
            addresses.append(x.ctypes.data + past * jump)
        plan = _words((steps, every, every - start % every))
        return _pointers(addresses), _words(self.strides), _words(self.jumps), plan
