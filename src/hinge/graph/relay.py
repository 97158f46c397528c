"""Programs that hand arrays on: straight-line parts, and sweeps in loops that they call.

A function of arrays that uses a loop program in the middle, such as a step of time with the
equations of motion of a long mechanism in it, is traced once: what it hands to the sweep ends one
part, and what comes back is an argument of the next.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, NamedTuple

import numpy as np

from .arrays import Shape, entries, inputs, lifted
from .loop import LoopProgram
from .operations import Operations
from .program import Program
from .scalar import Graph

__all__ = ["Call", "Part", "Relay", "trace_relay"]

# a program on arrays; what it gives
Call = Callable[..., tuple[np.ndarray, ...]]


class Part(NamedTuple):
    """A program, and the numbers of the arrays that are its arguments."""

    program: Program | LoopProgram
    takes: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Relay:
    """Parts in turn.

    Arrays are numbered: first the arguments, then the results of each part.  The results of the
    last part, a `Program`, are those of the whole.
    """

    name: str
    inputs: tuple[Shape, ...]
    parts: tuple[Part, ...]

    @property
    def outputs(self) -> tuple[Shape, ...]:
        """The shapes of the results."""
        return self.parts[-1].program.outputs

    @property
    def form(self) -> type | None:
        """The type that holds the results, None for a single array."""
        return self.parts[-1].program.form

    @cached_property
    def ops(self) -> Operations:
        """How many operations of each kind."""
        return Operations(*map(sum, zip(*(part.program.ops for part in self.parts), strict=True)))

    @cached_property
    def digest(self) -> str:
        """The same for relays that compute the same in the same way, and for no others."""
        parts = [(part.program.digest, part.takes) for part in self.parts]
        return hashlib.sha256(repr((self.inputs, parts)).encode()).hexdigest()

    @property
    def input_sizes(self) -> list[int]:
        """How many numbers each argument has."""
        return [prod(shape) for shape in self.inputs]

    @property
    def output_sizes(self) -> list[int]:
        """How many numbers each result has."""
        return [prod(shape) for shape in self.outputs]


def trace_relay(fn: Callable[..., Any], shapes: Sequence[Shape], name: str) -> Relay:
    """Run fn(call, *arrays) once on traced scalars; call(program, *arrays) stands for a sweep.

    What is called again with the same scalars is the same call.
    """
    graph = Graph()
    # the arguments, and what calls give: every part may take all of them that are there by then
    known, numbers = list(shapes), list(range(len(shapes)))
    arguments = [inputs(graph, shape) for shape in shapes]
    parts: list[Part] = []
    given_before: dict[Any, tuple[np.ndarray, ...]] = {}

    def ended(arrays: Sequence[np.ndarray], form: type | None) -> tuple[int, ...]:
        """A straight-line part that gives these; the numbers of its results."""
        first = len(shapes) + sum(len(part.program.outputs) for part in parts)
        values, outputs = tuple(entries(arrays)), tuple(x.shape for x in arrays)
        parts.append(Part(Program(name, tuple(known), outputs, values, form), tuple(numbers)))
        return tuple(range(first, first + len(outputs)))

    def call(program: Program | LoopProgram, *given: Any) -> tuple[np.ndarray, ...]:
        arrays = [lifted(name, graph, np.asarray(x)) for x in given]
        key = program, *(node.id for node in entries(arrays))
        if key not in given_before:
            takes = ended(arrays, tuple)
            parts.append(Part(program, takes))
            first = takes[-1] + 1
            known.extend(program.outputs)
            numbers.extend(range(first, first + len(program.outputs)))
            given_before[key] = tuple(inputs(graph, shape) for shape in program.outputs)
        return given_before[key]

    with graph.tracing():
        results = fn(call, *(a[()] for a in arguments))
    ended([lifted(name, graph, x) for x in results], tuple)
    return Relay(name, tuple(shapes), tuple(parts))
