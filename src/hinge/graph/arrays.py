"""Arrays of nodes: of new inputs, of what a function returned, one after the other or apart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any

import numpy as np

from ..errors import TraceError
from .scalar import Graph, Node
from .traced import Traced, plain

__all__ = ["Shape", "cut", "entries", "inputs", "leaves", "lifted"]

Shape = tuple[int, ...]


def inputs(graph: Graph, shape: Shape) -> np.ndarray:
    """An array of new inputs."""
    return _array([graph.input() for _ in range(prod(shape))], shape)


def leaves(graph: Graph, shape: Shape) -> np.ndarray:
    """An array of new leaves: no inputs, and so without a number among these."""
    return _array([graph.leaf() for _ in range(prod(shape))], shape)


def lifted(who: str, graph: Graph, part: Any) -> np.ndarray:
    """What a function returned, as an array of nodes; who: the function, for messages."""
    graph.check()
    a = plain(np.asarray(part))
    for x in a.ravel():
        if not isinstance(x, (Node, int, float, np.integer, np.floating)):
            raise TraceError(
                f"{who} returned a {type(x).__name__} among its results; expected numbers and "
                f"traced scalars in arrays"
            )
    return _array([graph.lift(x) for x in a.ravel()], a.shape)


def entries(arrays: Iterable[np.ndarray]) -> list[Any]:
    """What the arrays hold, one after the other."""
    return [x for a in arrays for x in plain(a).ravel()]


def cut(nodes: Sequence[Node], shapes: Sequence[Shape]) -> list[np.ndarray]:
    """The nodes as arrays of these shapes, one after the other."""
    out, start = [], 0
    for shape in shapes:
        out.append(_array(nodes[start : start + prod(shape)], shape))
        start += prod(shape)
    return out


def _array(nodes: Sequence[Node], shape: Shape) -> np.ndarray:
    out = np.empty(len(nodes), dtype=object)
    out[:] = nodes
    return out.reshape(shape).view(Traced)
