"""Kernels with the time loop inside: a step run many times, for a batch, in one call."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np

from ..errors import ArgumentError
from ..graph.operations import Operations
from ..graph.scan import Scan
from .arguments import checked, named
from .artifact import Artifact, build, find
from .check import check_whole, scalar_of
from .engine import Library
from .progress import progress, tell_if_long
from .target import Target, host
from .threads import in_parallel, thread_count

__all__ = ["Rollout"]

_RUN = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4, *[ctypes.c_int64] * 2, ctypes.c_void_p)
# a thread is worth waking for about this many operations; after so many, Python gets a look-in
_WORK_PER_THREAD, _WORK_PER_CALL = 4_000_000, 1_000_000_000


class Rollout:
    """A compiled time loop.

    `rollout(*arrays, steps=None, every=1)`: states and parameters of shape (…, *shape), inputs of
    shape (steps, …, *shape), leading shapes broadcast.  The results, one row after every so many
    steps, have shape (steps // every, …, *shape).  Samples do not meet: NaN in one stays there.
    """

    def __init__(
        self,
        scan: Scan | Callable[[], Scan],
        shapes: Mapping[str, tuple[int, ...]],
        states: int,
        inputs: int = 0,
        name: str = "rollout",
        dtype: Any = np.float64,
        threads: int | None = None,
        target: Target | None = None,
        key: str | None = None,
        strict: bool = False,
    ) -> None:
        """scan: or what makes it, called when no compiled code is found under the key.

        shapes: of the arguments by name: so many states, so many inputs of each step, parameters.
        strict: a sample that is not finite is NaN in all its results from the next record on.
        """
        self.name, self.shapes, self.dtype = name, dict(shapes), np.dtype(dtype)
        self._scalar = scalar_of(name, self.dtype)
        self.states, self.inputs, self.threads = states, inputs, threads
        self.target = host() if target is None else target
        self._make, self._key, self._strict = scan, key, strict

    @cached_property
    def scan(self) -> Scan:
        """The step and its loop, traced if it was not yet."""
        return self._make() if callable(self._make) else self._make

    @property
    def ops(self) -> Operations:
        """What one step of one sample costs."""
        return self._wide.artifact.ops

    def source(self) -> str:
        """The code as LLVM text."""
        from ..emit.llvm.module import module_text

        return module_text(self.scan, self.target.flavor(self._scalar), self._strict)

    def __call__(self, *arrays: Any, steps: int | None = None, every: int = 1) -> Any:
        """Run; steps: how many, if there are no inputs to tell."""
        timed = list(self.shapes)[self.states : self.states + self.inputs]
        given, lead = checked(self.name, named(self.name, arrays, self.shapes, timed), self.dtype)
        steps = self._steps(given, steps)
        every = check_whole(self.name, "every", every)
        artifact = self._code(math.prod(lead)).artifact
        rows = (steps // every, *lead)
        results = [np.empty(rows + shape, self.dtype) for shape in artifact.outputs]
        self.fill(results, given, lead, steps, every)
        return tuple(results) if artifact.several else results[0]

    def fill(
        self,
        results: Sequence[np.ndarray],
        arrays: Sequence[np.ndarray],
        lead: tuple[int, ...],
        steps: int,
        every: int,
    ) -> list[np.ndarray]:
        """Run, with sound arguments, into contiguous arrays; the states at the end."""
        size = math.prod(lead)
        code = self._code(size)
        table = _Table(self.states, self.inputs, lead, self.dtype)
        for array, shape in zip(arrays, self.shapes.values(), strict=True):
            table.argument(array, shape)
        for array in results:
            table.result(array)
        cost = 1 + sum(code.artifact.ops)
        team = min(thread_count(self.threads), 1 + size * cost // _WORK_PER_THREAD)
        chunk = max(1, _WORK_PER_CALL * team // (1 + size * cost))
        most = 1 + size * cost * min(steps, chunk) // _WORK_PER_THREAD
        for start in progress(range(0, steps, chunk), self.name):
            part = table.at(start, min(chunk, steps - start), every)
            in_parallel(partial(code.run, part), size, code.lanes, self.threads, most)
        return table.kept[: self.states]

    # code

    @cached_property
    def _wide(self) -> _Code:
        return self._compiled(self.target)

    @cached_property
    def _single(self) -> _Code:
        """The same for one sample: its steps take less time than those of a whole vector."""
        return self._compiled(self.target._replace(vector_bits=8 * self.dtype.itemsize))

    def _code(self, size: int) -> _Code:
        return self._single if size == 1 else self._wide

    def _compiled(self, target: Target) -> _Code:
        scalar = self._scalar
        key = self.scan.digest if self._key is None else self._key
        found = find(key, target, scalar, self._strict)
        if found is None:
            tell_if_long(f"compiling {self.name}", sum(self.scan.step.ops))
            found = build(self.scan, key, target, scalar, self._strict)
        return _Code(found, target, target.lanes(scalar))

    # arguments

    def _steps(self, arrays: Sequence[np.ndarray], asked: int | None) -> int:
        """How many steps the inputs are for, or were asked for."""
        names = list(self.shapes)[self.states : self.states + self.inputs]
        lengths = {n: len(x) for n, x in zip(names, arrays[self.states :], strict=False)}
        if asked is not None:
            lengths["steps="] = check_whole(self.name, "steps", asked)
        if len(set(lengths.values())) != 1:
            told = ", ".join(f"{n} {k}" for n, k in lengths.items()) or "nothing tells"
            raise ArgumentError(f"{self.name}: how many steps? {told}; give one number of steps")
        return next(iter(lengths.values()))


class _Code:
    """Machine code of a rollout."""

    def __init__(self, artifact: Artifact, target: Target, lanes: int) -> None:
        self.artifact, self.lanes = artifact, lanes
        self._library = Library(artifact.code, target)
        self._run = _RUN(self._library.address("run"))
        self._scratch = ctypes.CFUNCTYPE(ctypes.c_int64)(self._library.address("workspace"))()

    def run(self, tables: tuple[Any, ...], begin: int, end: int) -> None:
        """Samples begin … end, by tables of addresses, strides, jumps and the plan."""
        scratch = np.empty(self._scratch + 64, dtype=np.uint8)
        aligned = (scratch.ctypes.data + 63) // 64 * 64
        self._run(*tables, begin, end, aligned)


class _Table:
    """Where the arrays of a run are: addresses, bytes between samples and between steps."""

    def __init__(self, states: int, inputs: int, lead: tuple[int, ...], dtype: np.dtype) -> None:
        self.states, self.inputs, self.lead, self.dtype = states, inputs, lead, dtype
        self.kept: list[np.ndarray] = []
        self.strides: list[int] = []
        self.jumps: list[int] = []

    def argument(self, x: np.ndarray, shape: tuple[int, ...]) -> None:
        """The next argument: a state is copied, an input goes on with time, others stay."""
        n, row = len(self.kept), math.prod(shape) * self.dtype.itemsize
        state, timed = n < self.states, self.states <= n < self.states + self.inputs
        own = x.shape[int(timed) : x.ndim - len(shape)]
        shared = not state and math.prod(own) == 1
        if state:
            x = np.array(np.broadcast_to(x, self.lead + shape), order="C")
        elif not shared and own != self.lead:
            time = x.shape[: int(timed)]
            ones = (1,) * (len(self.lead) - len(own))
            x = np.broadcast_to(x.reshape(time + ones + own + shape), time + self.lead + shape)
        self.kept.append(np.ascontiguousarray(x))
        self.strides.append(0 if shared else row)
        self.jumps.append(timed * row * (1 if shared else math.prod(self.lead)))

    def result(self, x: np.ndarray) -> None:
        """The next result: a row for every record."""
        self.kept.append(x)
        samples = math.prod(self.lead)
        row = x[0].nbytes if len(x) else 0
        self.strides.append(row // samples if samples else 0)
        self.jumps.append(row)

    def at(self, start: int, steps: int, every: int) -> tuple[Any, ...]:
        """The tables for so many steps from `start` on."""
        n, arguments = len(self.kept), len(self.strides)
        addresses = []
        for i, (x, jump) in enumerate(zip(self.kept, self.jumps, strict=True)):
            past = start if i < self.states + self.inputs else start // every
            addresses.append(x.ctypes.data + past * jump)
        plan = (ctypes.c_int64 * 3)(steps, every, every - start % every)
        whole = ctypes.c_int64 * arguments
        return (ctypes.c_void_p * n)(*addresses), whole(*self.strides), whole(*self.jumps), plan
