"""A traced function: its arguments and results as shapes, its arithmetic as a graph."""

from __future__ import annotations

import gc
import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from math import isnan, nan, prod
from typing import Any

import numpy as np

from ..errors import TooLongError, TraceError
from .arrays import Shape, cut, entries, inputs, lifted
from .operations import OPERATIONS, SINCOS, Operations
from .scalar import Graph, Node, reachable

__all__ = ["Program", "applied", "running", "trace", "without_collection"]

_KNOWN = "the page on compiling lists what may be done with traced arrays"


@dataclass(frozen=True, eq=False)
class Program:
    """Straight-line arithmetic from flat inputs to flat outputs.

    inputs, outputs: the shapes of the arguments and results; input nodes are numbered through all
    arguments in turn.  form: the type that holds the results, None for a single array.
    """

    name: str
    inputs: tuple[Shape, ...]
    outputs: tuple[Shape, ...]
    values: tuple[Node, ...]
    form: type | None = None

    @cached_property
    def nodes(self) -> list[Node]:
        """Every node that the values need, arguments first."""
        return reachable(self.values)

    @cached_property
    def ops(self) -> Operations:
        """How many operations of each kind."""
        count = Counter(node.op for node in self.nodes)
        angles = {node.args[0].id for node in self.nodes if node.op in SINCOS}
        return Operations.counted(count, len(angles))

    @cached_property
    def digest(self) -> str:
        """The same for programs that compute the same in the same way, and for no others."""
        number = {node.id: i for i, node in enumerate(self.nodes)}
        lines = [f"{self.inputs} {self.outputs} {self.form is None}"]
        for node in self.nodes:
            value = node.value.hex() if node.op == "const" else node.value
            lines.append(f"{node.op} {value} {' '.join(str(number[a.id]) for a in node.args)}")
        lines.append(" ".join(str(number[v.id]) for v in self.values))
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()

    @cached_property
    def silent(self) -> set[int]:
        """The numbers of inputs that may not be finite although everything computed is."""
        stack = [v for v in self.values if v.op in OPERATIONS]
        seen = {node.id for node in stack}
        quiet = set(range(sum(self.input_sizes)))
        while stack:
            node = stack.pop()
            if node.op == "input":
                quiet.discard(node.value)
                continue
            for i in OPERATIONS[node.op].shows if node.op in OPERATIONS else ():
                if node.args[i].id not in seen:
                    seen.add(node.args[i].id)
                    stack.append(node.args[i])
        return quiet

    @property
    def input_sizes(self) -> list[int]:
        """How many numbers each argument has."""
        return [prod(shape) for shape in self.inputs]

    @property
    def output_sizes(self) -> list[int]:
        """How many numbers each result has."""
        return [prod(shape) for shape in self.outputs]


def applied(program: Program, graph: Graph, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """A program on arrays of nodes of any graph: its results."""
    given, new = entries(arrays), {}
    for node in program.nodes:
        if node.op == "input":
            new[node.id] = given[node.value]
        elif node.op == "const":
            new[node.id] = graph.const(node.value)
        else:
            new[node.id] = graph.make(node.op, *(new[a.id] for a in node.args))
    return cut([new[node.id] for node in program.values], program.outputs)


def running(program: Program) -> Callable[..., tuple[np.ndarray, ...]]:
    """A program as a function of arrays of traced scalars, of any graph, to a tuple of arrays.

    A function that others give is traced once, and this stands for it wherever it is called: what
    it writes into its arguments, or remembers, stays its own.
    """

    def run(*arrays: Any) -> tuple[np.ndarray, ...]:
        given = [np.asarray(a) for a in arrays]
        graph = next((x.graph for x in entries(given) if isinstance(x, Node)), None) or Graph()
        nodes = [lifted(program.name, graph, a) for a in given]
        return tuple(applied(program, graph, nodes))

    return run


class _Bounded(Graph):
    """A graph that may have so many nodes and no more."""

    def __init__(self, name: str, most: int) -> None:
        Graph.__init__(self)
        self._name, self._most = name, most

    def _new(self, op: str, args: tuple[Node, ...], value: Any) -> Node:
        if self.count >= self._most:
            raise TooLongError(
                f"{self._name} has more than {self._most} operations, too many to compile as "
                f"straight-line code"
            )
        return Graph._new(self, op, args, value)


def trace(
    fn: Callable[..., Any], shapes: Sequence[Shape], name: str = "kernel", most: int | None = None
) -> Program:
    """Run fn once on arrays of traced scalars of the given shapes; most: operations, if bounded."""
    graph = Graph() if most is None else _Bounded(name, most)
    arguments = [inputs(graph, shape) for shape in shapes]
    try:
        with graph.tracing(), without_collection():
            result = fn(*(a[()] for a in arguments))
    except TypeError as error:
        if isinstance(error, TraceError) or not any(
            x in str(error) for x in ("Node", "'O'", "ufunc")
        ):
            raise
        raise TraceError(f"{name} cannot be traced: {error}; {_KNOWN}") from error
    parts = result if isinstance(result, tuple) else (result,)
    arrays = [lifted(name, graph, part) for part in parts]
    form = type(result) if isinstance(result, tuple) else None
    outputs = tuple(a.shape for a in arrays)
    values = tuple(_varying(graph, entries(arrays), entries(arguments)))
    return Program(name, tuple(shapes), outputs, values, form)


def _varying(graph: Graph, values: Sequence[Node], given: Sequence[Node]) -> Sequence[Node]:
    """The values; those that are NaN for certain as products with an argument.

    A sample is spoiled by what is computed for it; its constants are not looked at.
    """
    if not given or not any(v.op == "const" and isnan(v.value) for v in values):
        return values
    nowhere = graph.pair("mul", given[0], graph.const(nan))
    return [nowhere if v.op == "const" and isnan(v.value) else v for v in values]


@contextmanager
def without_collection() -> Iterator[None]:
    """While hundreds of thousands of things are made that all stay, nothing looks for garbage.

    What it gives: a fifth of the time that tracing derivatives of Talos takes.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
