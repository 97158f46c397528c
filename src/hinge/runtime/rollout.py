"""Kernels with the time loop inside: a step run many times, for a batch, in one call."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError
from ..graph.operations import Operations
from ..graph.scan import Scan
from .arguments import checked, named
from .artifact import Artifact, Source
from .backend import Backend, LoadedScan
from .check import check_dtype, check_whole
from .cpu import Cpu

__all__ = ["Rollout"]


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
        self, *arrays: Any, steps: int | None = None, every: int = 1, **unknown: Any
    ) -> Any:
        """Run; steps: how many, if there are no inputs to tell."""
        if unknown:
            raise ArgumentError(
                f"{self.name}: {', '.join(unknown)} is not an argument; it takes "
                f"{', '.join(self.shapes)} by place, and steps and every; numbers of the mechanism "
                f"are parameters of a step that takes them, in with_parameters of hinge.model"
            )
        timed = list(self.shapes)[self.states : self.states + self.inputs]
        given, lead = checked(self.name, named(self.name, arrays, self.shapes, timed), self.dtype)
        steps = self._steps(given, steps)
        every = check_whole(self.name, "every", every)
        artifact, loaded = self._code(lead)
        rows = (steps // every, *lead)
        results = self.backend.empty([rows + shape for shape in artifact.outputs], self.dtype)
        loaded.run(given, results, lead, steps, every)
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
        return self._code(lead)[1].run(arrays, results, lead, steps, every)

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
        names = list(self.shapes)[self.states : self.states + self.inputs]
        lengths = {n: len(x) for n, x in zip(names, arrays[self.states :], strict=False)}
        if asked is not None:
            lengths["steps="] = check_whole(self.name, "steps", asked)
        if len(set(lengths.values())) != 1:
            told = ", ".join(f"{n} {k}" for n, k in lengths.items()) or "nothing tells"
            raise ArgumentError(f"{self.name}: how many steps? {told}; give one number of steps")
        return next(iter(lengths.values()))
