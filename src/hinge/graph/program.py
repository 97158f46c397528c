"""A traced function: its arguments and results as shapes, its arithmetic as a graph."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from ..errors import TraceError
from .arrays import Shape, entries, inputs, lifted
from .operations import SINCOS, Operations
from .scalar import Graph, Node, reachable

__all__ = ["Program", "trace"]

_KNOWN = (
    "traced scalars have + − × ÷, whole powers, abs, sin, cos, sqrt, and hinge.atan2, less, where, "
    "minimum, maximum; np.linalg does not know them, hinge.algebra.small"
    " has what small matrices need"
)


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

    @property
    def input_sizes(self) -> list[int]:
        """How many numbers each argument has."""
        return [prod(shape) for shape in self.inputs]

    @property
    def output_sizes(self) -> list[int]:
        """How many numbers each result has."""
        return [prod(shape) for shape in self.outputs]


def trace(fn: Callable[..., Any], shapes: Sequence[Shape], name: str = "kernel") -> Program:
    """Run fn once on arrays of traced scalars of the given shapes."""
    graph = Graph()
    arguments = [inputs(graph, shape) for shape in shapes]
    try:
        with np.errstate(all="ignore"):
            result = fn(*(a[()] for a in arguments))
    except TypeError as error:
        if isinstance(error, TraceError) or not any(x in str(error) for x in ("Node", "'O'")):
            raise
        raise TraceError(f"{name} cannot be traced: {error}; {_KNOWN}") from error
    parts = result if isinstance(result, tuple) else (result,)
    arrays = [lifted(name, graph, part) for part in parts]
    form = type(result) if isinstance(result, tuple) else None
    outputs, values = tuple(a.shape for a in arrays), tuple(entries(arrays))
    return Program(name, tuple(shapes), outputs, values, form)
