"""A traced function: its arguments and results as shapes, its arithmetic as a graph."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..errors import TraceError
from .operations import Operations
from .scalar import Graph, Node, reachable

__all__ = ["Program", "trace"]

Shape = tuple[int, ...]


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
        angles = {node.args[0].id for node in self.nodes if node.op in ("sin", "cos")}
        rest = ("sqrt", "atan2", "abs", "min", "max", "less", "where")
        return Operations(
            count["mul"],
            count["add"] + count["sub"],
            count["div"],
            len(angles),
            sum(count[op] for op in rest),
        )

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

    @property
    def input_sizes(self) -> list[int]:
        """How many numbers each argument has."""
        return [int(np.prod(shape, dtype=int)) for shape in self.inputs]

    @property
    def output_sizes(self) -> list[int]:
        """How many numbers each result has."""
        return [int(np.prod(shape, dtype=int)) for shape in self.outputs]


def trace(fn: Callable[..., Any], shapes: Sequence[Shape], name: str = "kernel") -> Program:
    """Run fn once on arrays of traced scalars of the given shapes."""
    graph = Graph()
    arguments = [_inputs(graph, shape) for shape in shapes]
    with np.errstate(all="ignore"):
        result = fn(*(a[()] for a in arguments))
    parts = result if isinstance(result, tuple) else (result,)
    arrays = [np.asarray(part) for part in parts]
    values = tuple(_value(graph, x, name) for a in arrays for x in a.ravel())
    form = type(result) if isinstance(result, tuple) else None
    return Program(name, tuple(shapes), tuple(a.shape for a in arrays), values, form)


def _inputs(graph: Graph, shape: Shape) -> np.ndarray:
    array = np.empty(shape, dtype=object)
    for index in np.ndindex(*shape):
        array[index] = graph.input()
    return array


def _value(graph: Graph, x: Any, name: str) -> Node:
    if isinstance(x, (Node, int, float, np.integer, np.floating)):
        return graph.lift(x)
    raise TraceError(
        f"{name} returned a {type(x).__name__} among its results; expected numbers and traced "
        f"scalars in arrays"
    )
