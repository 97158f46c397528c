"""How functions are differentiated, on arrays of traced scalars."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from ..graph.program import Program

__all__ = ["Arrays", "Rule", "Shape", "program_rule", "running"]

Shape = tuple[int, ...]
Arrays = Sequence[Any]


class Rule(NamedTuple):
    """A function's two derivatives.

    push: from (x, y, ẋ) to ẏ; pull: from (x, y, ȳ) to x̄; all of them tuples.
    """

    push: Callable[[Arrays, Arrays, Arrays], Arrays]
    pull: Callable[[Arrays, Arrays, Arrays], Arrays]


def program_rule(make: Callable[[], Program]) -> Rule:
    """The derivatives of a program, by its graph."""
    from ..functions.derivatives import jvp, vjp

    fn = running(make())

    def push(x: Arrays, y: Arrays, dots: Arrays) -> Arrays:
        return jvp(fn)(tuple(x), tuple(dots))

    def pull(x: Arrays, y: Arrays, bars: Arrays) -> Arrays:
        return vjp(fn)(tuple(x), tuple(bars))

    return Rule(push, pull)


def running(program: Program) -> Callable[..., tuple[np.ndarray, ...]]:
    """A program as a function of arrays of traced scalars, of any graph, to a tuple of arrays."""
    from ..graph.arrays import entries, lifted
    from ..graph.program import applied
    from ..graph.scalar import Graph, Node

    def run(*arrays: Any) -> tuple[np.ndarray, ...]:
        given = [np.asarray(a) for a in arrays]
        graph = next((x.graph for x in entries(given) if isinstance(x, Node)), None) or Graph()
        nodes = [lifted(program.name, graph, a) for a in given]
        return tuple(applied(program, graph, nodes))

    return run
