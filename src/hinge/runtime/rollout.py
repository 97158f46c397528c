"""Kernels with the time loop inside: a step run many times, for a batch, in one call."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError, located
from ..graph.operations import Operations
from ..graph.scan import Scan
from .arguments import Argument, checked, checked_out, named, out_of_the_way
from .artifact import Artifact, Source
from .backend import Backend, LoadedScan, LoopCaller
from .check import check_dtype, check_whole
from .cpu import Cpu
from .forks import made_once
from .guests import guest_among
from .streams import using

__all__ = ["Rollout", "blocks_of_steps", "check_indexed"]


class Rollout:
    """A compiled time loop.

    `rollout(*arrays, steps=None, every=1, out=None)`: states and parameters of shape (…, *shape),
    inputs of shape (steps, …, *shape), leading shapes broadcast.  The results, one row after every
    so many steps, have shape (steps // every, …, *shape).  Samples do not meet: NaN in one stays
    there.
    """

    records = True

    def __init__(
        self,
        scan: Scan | Callable[[], Scan],
        shapes: Mapping[str, tuple[int, ...]],
        states: int,
        inputs: int = 0,
        name: str = "rollout",
        dtype: Any = np.float64,
        backend: Backend | None = None,
        key: str | None = None,
        strict: bool = False,
    ) -> None:
        """scan: or what makes it, called when no compiled code is found under the key.

        shapes: of the arguments by name: so many states, so many inputs of each step, parameters.
        backend: what it runs on, None for this machine's CPU.
        strict: a sample that is not finite is NaN in all its results from the next record on.
        """
        self.name, self.shapes, self.dtype = name, dict(shapes), check_dtype(name, dtype)
        self.states, self.inputs, self.backend = states, inputs, backend or Cpu()
        self._source = Source(scan, name, self.dtype, strict, key)
        self._loaded: dict[Backend, tuple[Artifact, LoadedScan]] = {}

    def __getstate__(self) -> dict[str, Any]:
        """What was made of it with its code; loaded is that where it comes to."""
        return {n: x for n, x in self.__dict__.items() if n not in ("_loaded", "_caller")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _loaded={})

    def on(self, backend: Backend) -> Rollout:
        """The same on another backend."""
        other = object.__new__(type(self))
        other.__setstate__({**self.__getstate__(), "backend": backend})
        return other

    @made_once
    def _caller(self) -> LoopCaller | None:
        return self.backend.loop_caller(self)

    @property
    def timed(self) -> tuple[str, ...]:
        """The inputs, which have a dimension for the steps."""
        return tuple(self.shapes)[self.states : self.states + self.inputs]

    @property
    def scan(self) -> Scan:
        """The step and its loop, traced if it was not yet."""
        return self._source.program

    @property
    def ops(self) -> Operations:
        """What one step of one sample costs."""
        return self._source.artifact(self.backend).ops

    def source(self) -> str:
        """The code as text in the language of the backend, LLVM on a CPU."""
        return self.backend.text(self.scan, self._source.settings)

    def __call__(
        self,
        *arrays: Any,
        steps: int | None = None,
        every: int | None = 1,
        out: Any = None,
        **unknown: Any,
    ) -> Any:
        """Run; steps: how many, if there are no inputs to tell; every: None for the last alone."""
        if self._caller is not None and "stream" in unknown:
            with using(unknown.pop("stream")):
                return self(*arrays, steps=steps, every=every, out=out, **unknown)
        if unknown:
            raise ArgumentError(
                f"{self.name}: {', '.join(unknown)} is not an argument; it takes "
                f"{', '.join(self.shapes)} by place, and steps, every and out; numbers of the "
                f"mechanism are parameters of a step that takes them, in with_parameters of "
                f"hinge.model"
            )
        caller = self._caller
        away = caller is not None and caller.takes(arrays)
        guest = None if away else guest_among(arrays, out)
        if guest is not None:
            settings = {"steps": steps, "every": every, "out": out}
            return guest.answered(self.name, self, arrays, settings)
        if away:
            return self._there(arrays, steps, every, out)
        given, lead = checked(self.name, self._named(arrays), self.dtype)
        steps, every = self._plan(given, steps, every)
        artifact, loaded = self._code(lead)
        shapes = [(steps // every, *lead, *shape) for shape in artifact.outputs]
        if out is None:
            results = self.backend.empty(shapes, self.dtype)
        else:
            results = checked_out(self.name, shapes, self.dtype, out)
            given = [out_of_the_way(x, results) for x in given]
        loaded.run(given, results, lead, steps, every)
        return tuple(results) if artifact.several else results[0]

    def _there(self, arrays: Sequence[Any], steps: int | None, every: int | None, out: Any) -> Any:
        """With arrays where the rollout runs, if that is not the host."""
        if out is not None:
            raise ArgumentError(f"{self.name}: it takes no out with arrays on a card; leave it out")
        caller: Any = self._caller
        given, lead, origin = caller.arrays(self.name, self._named(arrays))
        steps, every = self._plan(given, steps, every)
        artifact, loaded = self._code(lead)
        shapes = [(steps // every, *lead, *shape) for shape in artifact.outputs]
        results = caller.run(loaded, given, shapes, lead, steps, every, origin)
        return tuple(results) if artifact.several else results[0]

    def _plan(self, given: Sequence[Any], steps: int | None, every: int | None) -> tuple[int, int]:
        """How many steps, and every how many of them are recorded."""
        many = self._steps(given, steps)
        return many, many if every is None else check_whole(self.name, "every", every)

    def _named(self, arrays: Sequence[Any]) -> list[Argument]:
        return named(self.name, arrays, self.shapes, self.timed)

    def stream(self, *arrays: Any, every: int = 1) -> Iterator[Any]:
        """Yield what is recorded of one block of steps after the other.

        The inputs are iterables of blocks, (steps of a block, …, *shape); each block goes on from
        the states that the one before left.
        """
        n, taken = self.states, 0
        check_indexed(self.name, arrays)
        if len(arrays) != len(self.shapes):
            self._named(arrays)
        states, fixed = list(arrays[:n]), arrays[n + self.inputs :]
        for block in blocks_of_steps(self.name, self.timed, arrays[n:]):
            if taken % check_whole(self.name, "every", every):
                raise ArgumentError(
                    f"{self.name}: a block ended after {taken} steps, and every {every} are "
                    f"recorded; give blocks of so many, or of whole multiples"
                )
            with located(f"the block after {taken} steps"):
                records = self(*states, *block, *fixed, every=every)
            taken += np.shape(block[0])[0]
            parts = records if isinstance(records, tuple) else (records,)
            states = [x[-1] for x in parts[:n]] if taken % every == 0 else states
            yield records

    def fill(
        self,
        results: Sequence[np.ndarray],
        arrays: Sequence[np.ndarray],
        lead: tuple[int, ...],
        steps: int,
        every: int,
    ) -> list[np.ndarray]:
        """Run, with sound arguments, into contiguous arrays; the states at the end."""
        return self._code(lead)[1].run(arrays, results, lead, steps, every)

    def fill_there(
        self, results: Sequence[Any], arrays: Sequence[Any], steps: int, every: int
    ) -> list[Any]:
        """The same with arrays where the rollout runs, if that is not the host."""
        caller: Any = self._caller
        given, lead, origin = caller.arrays(self.name, self._named(arrays))
        return caller.into(self._code(lead)[1], given, results, lead, steps, every, origin)

    def _code(self, lead: tuple[int, ...]) -> tuple[Artifact, LoadedScan]:
        """The code that suits a batch."""
        source = self._source
        backend = self.backend.suited(source.settings, math.prod(lead))
        found = self._loaded.get(backend)
        if found is None:
            artifact = source.artifact(backend)
            loaded = backend.load_scan(artifact, source.settings, self.states, self.inputs)
            found = self._loaded[backend] = artifact, loaded
        return found

    def _steps(self, arrays: Sequence[np.ndarray], asked: int | None) -> int:
        """How many steps the inputs are for, or were asked for."""
        given = zip(self.timed, arrays[self.states :], strict=False)
        lengths = {n: len(x) for n, x in given}
        if asked is not None:
            lengths["steps="] = check_whole(self.name, "steps", asked)
        if len(set(lengths.values())) != 1:
            told = ", ".join(f"{n} {k}" for n, k in lengths.items()) or "nothing tells"
            raise ArgumentError(f"{self.name}: how many steps? {told}; give one number of steps")
        return next(iter(lengths.values()))


def check_indexed(where: str, arrays: Sequence[Any]) -> None:
    """Refuse arrays of which no part can be taken, since results are of their kind."""
    for x in arrays:
        if hasattr(x, "shape") and not hasattr(x, "__getitem__"):
            raise ArgumentError(
                f"{where}: a {type(x).__name__} has no parts that could be taken, and results "
                f"would be such; give arrays of PyTorch, CuPy or NumPy"
            )


def blocks_of_steps(
    where: str, names: Sequence[str], arrays: Sequence[Iterable[Any]]
) -> Iterator[tuple[Any, ...]]:
    """One block of each input after the other; arrays: iterables of them, one for each name."""
    if not names:
        raise ArgumentError(
            f"{where}: it has no inputs of each step that could come in blocks; call it with "
            f"steps=…, and again from the states that it gives"
        )
    rows = [iter(x) for _, x in zip(names, arrays, strict=False)]
    while True:
        block = [next(row, None) for row in rows]
        if all(x is None for x in block):
            return
        lengths = [None if x is None else np.shape(x)[0] for x in block]
        if len(set(lengths)) > 1:
            told = ", ".join(f"{n} {k or 'none'}" for n, k in zip(names, lengths, strict=True))
            raise ArgumentError(f"{where}: blocks of steps differ in length: {told}")
        yield tuple(block)
