"""Functions of arrays on new leaves, in the places of the arguments that derivatives are of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from .arrays import Shape, cut, entries, inputs, lifted
from .scalar import Graph, Node, reachable

__all__ = ["OnNewLeaves", "on_new_leaves", "substitute"]


@dataclass(frozen=True)
class OnNewLeaves:
    """A function evaluated on new leaves in the places of some arguments.

    New, so that what the function closes over, or has in another argument, is not moved along with
    them, even if it is the same scalar.  form: the type that holds the results, None for one array.
    """

    shapes: list[Shape]
    leaves: list[Node]
    places: dict[Node, Node]
    results: list[np.ndarray]
    form: type | None

    @property
    def values(self) -> list[Node]:
        """Every entry of the results."""
        return entries(self.results)

    @property
    def described(self) -> str:
        """The results in words."""
        if self.form is None:
            return f"an array of shape {self.results[0].shape}"
        return f"a tuple of {len(self.results)}"

    def on_arguments(self, nodes: Iterable[Node]) -> list[Node]:
        """The nodes with the arguments back in their places."""
        return substitute(list(nodes), self.places)

    def like_arguments(self, nodes: Iterable[Node]) -> list[np.ndarray]:
        """One node for each leaf, as arrays of the shapes of the arguments."""
        return cut(self.on_arguments(nodes), self.shapes)

    def blocks(self, row: np.ndarray) -> list[np.ndarray]:
        """An array over (…, leaves) cut into one over (…, *shape) for each argument."""
        ends = np.cumsum([prod(shape) for shape in self.shapes])[:-1]
        parts = np.split(row, ends, axis=-1)
        pairs = zip(parts, self.shapes, strict=True)
        return [part.reshape(row.shape[:-1] + shape) for part, shape in pairs]


def on_new_leaves(
    fn: Callable[..., Any],
    graph: Graph,
    arrays: Sequence[np.ndarray],
    chosen: Sequence[int],
    title: str,
) -> OnNewLeaves:
    """Evaluate fn in the graph, with new leaves for the chosen arguments."""
    shapes = [arrays[i].shape for i in chosen]
    fresh = [inputs(graph, shape) for shape in shapes]
    leaves = entries(fresh)
    places = (graph.lift(x) for x in entries(arrays[i] for i in chosen))
    arguments = dict(enumerate(arrays)) | dict(zip(chosen, fresh, strict=True))
    # a scalar comes as itself, not as an array of no dimensions
    result = fn(*(a[()] for a in arguments.values()))
    form = type(result) if isinstance(result, tuple) else None
    parts = result if form else (result,)
    results = [lifted(f"{title}: the function", graph, part) for part in parts]
    return OnNewLeaves(shapes, leaves, dict(zip(leaves, places, strict=True)), results, form)


def substitute(nodes: Sequence[Node], places: Mapping[Node, Node]) -> list[Node]:
    """The nodes with others in the places of some, folded anew."""
    new = {old.id: node for old, node in places.items()}
    for node in reachable(nodes):
        if node.id not in new:
            args = tuple(new[a.id] for a in node.args)
            same = all(a is b for a, b in zip(args, node.args, strict=True))
            new[node.id] = node if same else node.graph.make(node.op, *args)
    return [new[node.id] for node in nodes]
