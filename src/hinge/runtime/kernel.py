"""Kernels: a program compiled for this machine, called on arrays with any leading shape."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from itertools import combinations
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, overload

import numpy as np

from ..errors import ArgumentError
from ..graph.operations import Operations
from . import memory
from .arguments import Argument, checked, named, refuse_infinite
from .artifact import Artifact, build, find
from .check import scalar_of
from .door import Entry
from .engine import Library, fast_calls_work
from .progress import tell_if_long
from .target import Target, host
from .team import HERE, share
from .threads import in_parallel, thread_count

if TYPE_CHECKING:
    from ..graph.loop import LoopProgram
    from ..graph.program import Program

__all__ = ["Kernel", "result_arrays"]

_RUN = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p
)
# a thread that is awake or will soon be is worth telling for about this many operations
_WORK_PER_THREAD = 500_000


P = ParamSpec("P")
R = TypeVar("R")


class Kernel(Generic[P, R]):
    """A compiled program.

    `kernel(*arrays, out=None)`: arguments of shape (…, *shape), leading shapes broadcast, results
    likewise; a NaN or a singular sample spoils only itself.  `kernel.call` is the same as a plain
    function of positional arguments, and the quickest for one sample.
    """

    def __init__(
        self,
        program: Program | LoopProgram | Callable[[], Program | LoopProgram],
        name: str = "kernel",
        names: Sequence[str] = (),
        dtype: Any = np.float64,
        threads: int | None = None,
        target: Target | None = None,
        key: str | None = None,
        strict: bool = False,
    ) -> None:
        """program: or what makes it, called when no compiled code is found under the key.

        name, names: of the function and its arguments, for messages.
        threads: at most so many, None for all cores.
        strict: a sample with a result that is not finite has NaN in all its results.
        """
        self.name, self.dtype = name, np.dtype(dtype)
        self.threads = threads
        self.target = host() if target is None else target
        self._scalar, self._strict, self._key = scalar_of(name, self.dtype), strict, key
        self._make, self._names = program, names

    @cached_property
    def program(self) -> Any:
        """What is computed, traced if it was not yet."""
        return self._make() if callable(self._make) else self._make

    @cached_property
    def artifact(self) -> Artifact:
        """The compiled code, from the cache or made now."""
        key = self.program.digest if self._key is None else self._key
        settings = (key, self.target, self._scalar, self._strict)
        found = find(*settings)
        if found is None:
            tell_if_long(f"compiling {self.name}", sum(self.program.ops))
            found = build(self.program, *settings)
        return found

    @property
    def ops(self) -> Operations:
        """What one sample costs."""
        return self.artifact.ops

    @property
    def names(self) -> tuple[str, ...]:
        """The arguments."""
        count = len(self.artifact.inputs)
        return tuple(self._names) or tuple(f"argument {i + 1}" for i in range(count))

    def source(self, kind: str = "llvm") -> str:
        """The code as text: "llvm" or "c"."""
        if kind == "llvm":
            from ..emit.llvm.module import module_text

            flavor = self.target.flavor(self._scalar)
            return module_text(self.program, flavor, self._strict, fast_calls_work())
        if kind == "c":
            from ..emit.c.source import c_source

            return c_source(self.program, self._scalar, self._names or None)
        raise ArgumentError(f"{self.name}: source is {kind!r}; expected 'llvm' or 'c'")

    @cached_property
    def _library(self) -> Library:
        return Library(self.artifact.code, self.target)

    @cached_property
    def _run(self) -> Any:
        return _RUN(self._library.address("run"))

    @cached_property
    def _scratch_bytes(self) -> int:
        return ctypes.CFUNCTYPE(ctypes.c_int64)(self._library.address("workspace"))()

    @cached_property
    def call(self) -> Callable[..., Any]:
        """The kernel as a plain function of positional arguments."""
        return self.fast(self._slow)

    def fast(
        self, otherwise: Callable[..., Any], form: type = tuple, single: bool = True
    ) -> Callable[..., Any]:
        """Calls that take the short way with arrays of exactly the expected kind.

        otherwise: what to call with any other arguments, with the first batch that is worth
        several threads, with one sample of a large program, and, if the kernel is strict, with one
        sample whose result is not finite.
        form: of several results, tuple or a type derived from it.
        single: whether one sample takes the short way at all.
        """
        if not fast_calls_work():
            return otherwise
        name, own = self._entry(otherwise, form, 0 if single else 2)
        return self._library.method(name, self.name, own)

    def entry(self, otherwise: Callable[..., Any], form: type = tuple, least: int = 0) -> Entry:
        """The same for a door; least: how many samples take the short way."""
        name, own = self._entry(otherwise, form, least)
        return Entry(self._library.address(name), own, self._library)

    def _entry(
        self, otherwise: Callable[..., Any], form: type, least: int
    ) -> tuple[str, tuple[Any, ...]]:
        """The function that Python may call, and what it knows as self."""
        helpers = thread_count(self.threads) - 1
        results = partial(memory.results, self.artifact.outputs, self.dtype)
        batch = (self._worth, helpers, HERE, least, results, memory.LARGE)
        own = (otherwise, form, *batch)
        return "one" if least == 0 and self._library.address("one") else "many", own

    @property
    def _worth(self) -> int:
        """How many samples are worth another thread."""
        return -(-_WORK_PER_THREAD // self._cost)

    @overload
    def __call__(self, *arguments: P.args, **named: P.kwargs) -> R:
        """New results."""
        ...

    @overload
    def __call__(self, *arguments: Any, out: Any, **named: Any) -> R:
        """Results in arrays that are there."""
        ...

    def __call__(self, *arguments: Any, out: Any = None, **named: Any) -> Any:
        if named:
            arguments = self._in_order(arguments, named)
        return self.call(*arguments) if out is None else self.call(*arguments, out=out)

    def _in_order(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
        """Arguments by place and by name, in their order."""
        rest = self.names[len(arguments) :]
        if set(rest) != set(named):
            strange = ", ".join(sorted(set(named) ^ set(rest)))
            raise ArgumentError(
                f"{self.name} takes {', '.join(self.names)}; {strange} is missing, not among them, "
                f"or given twice"
            )
        return (*arguments, *(named[n] for n in rest))

    def _slow(self, *arguments: Any, out: Any = None) -> Any:
        """Any arguments that make sense: other dtypes, strides, leading shapes."""
        expected = dict(zip(self.names, self.artifact.inputs, strict=True))
        arrays, lead = checked(self.name, named(self.name, arguments, expected), self.dtype)
        results = self._filled(self.name, arrays, lead, out)
        return tuple(results) if self.artifact.several else results[0]

    def evaluate(self, where: str, arguments: Sequence[Argument], out: Any = None) -> Any:
        """The same with arguments that say what they are: without a leading shape, what is not
        finite is refused, and so is a result that is not.

        where: what is being called on what, for messages, such as "inverse_dynamics of 'panda'".
        """
        arrays, lead = checked(where, arguments, self.dtype, strict=True)
        results = self._filled(where, arrays, lead, out)
        refuse_infinite(where, lead, results)
        return tuple(results) if self.artifact.several else results[0]

    def _filled(
        self, where: str, arrays: Sequence[np.ndarray], lead: tuple[int, ...], out: Any
    ) -> list[np.ndarray]:
        """The results for sound arrays."""
        shapes = [lead + shape for shape in self.artifact.outputs]
        results = result_arrays(where, shapes, self.dtype, out)
        if out is not None:
            arrays = [x.copy() if _in_the_way(x, results) else x for x in arrays]
        self._run_batch(arrays, results, lead)
        return results

    def _run_batch(
        self, arrays: Sequence[np.ndarray], results: Sequence[np.ndarray], lead: tuple[int, ...]
    ) -> None:
        """Fill the results, which are contiguous, from arguments that broadcast to `lead`."""
        size, item = _size(lead), self.dtype.itemsize
        rows = [_rows(x, lead, s) for x, s in zip(arrays, self.artifact.inputs, strict=True)]
        strides = [stride for _, stride in rows]
        strides += [*(item * _size(shape) for shape in self.artifact.outputs), size]
        addresses = [x.ctypes.data for x, _ in rows] + [x.ctypes.data for x in results]
        a = (ctypes.c_void_p * len(addresses))(*addresses)
        s = (ctypes.c_int64 * len(strides))(*strides)

        helpers = min(thread_count(self.threads) - 1, size // self._worth)
        room, grain = self._scratch_bytes, self.target.lanes(self._scalar)
        if helpers:
            _, place = _scratch(room * (helpers + 1))
            if share((self._library.address("run"), a, s, size), place, room, helpers, grain):
                return

        def work(begin: int, end: int) -> None:
            _, place = _scratch(room)
            self._run(a, s, begin, end, place)

        in_parallel(work, size, grain, self.threads, 1 + helpers)

    @cached_property
    def _cost(self) -> int:
        return 1 + sum(self.ops) + sum(map(_size, self.artifact.outputs))


def result_arrays(
    where: str, shapes: Sequence[tuple[int, ...]], dtype: np.dtype, out: Any
) -> list[np.ndarray]:
    """New arrays for results of these shapes, or the given ones, checked."""
    if out is None:
        return memory.arrays(shapes, dtype)
    given = list(out) if isinstance(out, (tuple, list)) else [out]
    for x, shape in zip(given, shapes, strict=False):
        good = isinstance(x, np.ndarray) and x.dtype == dtype and x.shape == shape
        if not good or not x.flags.carray:
            raise ArgumentError(
                f"{where}: out is not a writeable, aligned, C-contiguous {dtype} array of shape "
                f"{shape}"
            )
    if len(given) != len(shapes):
        raise ArgumentError(f"{where}: out has {len(given)} arrays; expected {len(shapes)}")
    if any(np.may_share_memory(x, y) for x, y in combinations(given, 2)):
        raise ArgumentError(f"{where}: arrays of out share memory; give every result its own")
    return given


def _scratch(size: int) -> tuple[np.ndarray, int]:
    """Memory, and where a line begins in it."""
    memory = np.empty(size + 64, dtype=np.uint8)
    return memory, (memory.ctypes.data + 63) // 64 * 64


def _size(shape: tuple[int, ...]) -> int:
    return math.prod(shape)


def _in_the_way(x: np.ndarray, results: Sequence[np.ndarray]) -> bool:
    """Whether writing a sample of the results could change another sample of an argument."""
    for out in results:
        if np.may_share_memory(x, out):
            same = x.ctypes.data == out.ctypes.data and x.shape == out.shape
            if not same or not x.flags.c_contiguous:
                return True
    return False


def _rows(x: np.ndarray, lead: tuple[int, ...], shape: tuple[int, ...]) -> tuple[np.ndarray, int]:
    """An array whose samples are contiguous rows, and the bytes from one to the next."""
    item = x.dtype.itemsize
    size = _size(shape)
    if x.shape == shape and x.flags.c_contiguous:
        return x, 0
    if x.shape[: x.ndim - len(shape)] != lead:
        x = np.broadcast_to(x, lead + shape)
    if len(lead) == 1 and _packed(x.strides[1:], shape, item) and x.strides[0] >= 0:
        return x, x.strides[0]
    return np.ascontiguousarray(x), size * item


def _packed(strides: tuple[int, ...], shape: tuple[int, ...], item: int) -> bool:
    """Whether the entries of one sample lie next to each other."""
    for stride, n in zip(reversed(strides), reversed(shape), strict=True):
        if n > 1 and stride != item:
            return False
        item *= n
    return True
