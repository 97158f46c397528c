"""Derivatives on a graph: forward, backward and whole Jacobians, from the slopes of operations.

forward     ṅ = Σᵢ ∂n/∂aᵢ ȧᵢ                 from the leaves to the values
backward    ā = Σ n̄ ∂n/∂a over uses n of a    from the values to the leaves

A leaf is where differentiation stops: it need not be an input.  Derivatives that are zero whatever
the numbers are never become nodes, so each sweep costs the paths there are from leaves to values.
A sweep takes time linear in the graph, and no recursion.

At a kink the rules take one side: |a| at 0 has slope 1; min and max of equal arguments follow the
one that depends on leaves, of two the one that was traced first.  A branch that is not taken has
derivative 0, even where its own is infinite or undefined.

A function is differentiated on leaves of its own (`on_new_leaves`), so that what else its arguments
depend on does not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from .arrays import Shape, cut, entries, leaves, lifted
from .operations import OPERATIONS, Slope
from .rewrite import fold
from .scalar import Graph, Node, reachable

__all__ = ["OnNewLeaves", "adjoints", "jacobian_nodes", "on_new_leaves", "substitute", "tangents"]

# a node, and its arguments that depend on leaves, each with the slope
Step = tuple[Node, list[tuple[Node, Slope]]]
# derivatives of nodes, by node id; then by number of the leaf (forward) or the value (backward)
Sparse = dict[int, dict[int, Node]]


def tangents(values: Sequence[Node], seeds: Mapping[Node, Any]) -> list[Node]:
    """Σ ∂value/∂leaf · seed(leaf) for each value, in one forward sweep; the keys are the leaves."""
    dots: Sparse = {}
    for leaf, seed in seeds.items():
        _add(dots, leaf, 0, leaf.graph.lift(seed))
    _forward(_steps(values, seeds), dots)
    return [_entry(dots, v, 0) for v in values]


def adjoints(
    values: Sequence[Node], weights: Sequence[Any], leaves: Iterable[Node] | None = None
) -> dict[Node, Node]:
    """∂(Σ weight · value)/∂leaf for each leaf, in one backward sweep; by default for all inputs."""
    if leaves is None:
        leaves = [node for node in reachable(values) if node.op == "input"]
    leaves = list(leaves)
    bars: Sparse = {}
    for value, weight in zip(values, weights, strict=True):
        _add(bars, value, 0, value.graph.lift(weight))
    _backward(_steps(values, leaves), bars)
    return {leaf: _entry(bars, leaf, 0) for leaf in leaves}


def jacobian_nodes(values: Sequence[Node], leaves: Sequence[Node]) -> np.ndarray:
    """∂value/∂leaf: (len(values), len(leaves)), by the sweep with fewer operations.

    Both sweeps carry only derivatives that are not structurally zero; their products and sums are
    counted beforehand, on bit masks.  Zeros of the result are const nodes.
    """
    steps = _steps(values, leaves)
    forward = _forward_count(steps, leaves) <= _backward_count(steps, values)
    sparse: Sparse = {}
    for i, node in enumerate(leaves if forward else values):
        _add(sparse, node, i, node.graph.const(1))
    (_forward if forward else _backward)(steps, sparse)
    out = np.empty((len(values), len(leaves)), dtype=object)
    for i, j in np.ndindex(*out.shape):
        out[i, j] = _entry(sparse, *((values[i], j) if forward else (leaves[j], i)))
    return out


def _steps(values: Iterable[Node], leaves: Iterable[Node]) -> list[Step]:
    """What lies between leaves and values, arguments first."""
    active = {leaf.id for leaf in leaves}
    seen: dict[int, Node] = {}
    stack = list(values)
    while stack:
        node = stack.pop()
        if node.id not in seen and node.id not in active:
            seen[node.id] = node
            stack.extend(node.args)
    steps: list[Step] = []
    for i in sorted(seen):
        node = seen[i]
        if not node.args:
            continue
        row = OPERATIONS[node.op]
        pairs = zip(node.args, row.slopes, strict=True)
        edges = [(a, slope) for a, slope in pairs if slope is not None and a.id in active]
        if len(edges) == 1 and row.alone is not None and edges[0][0] is node.args[1]:
            edges = [(node.args[1], row.alone)]
        if edges:
            active.add(i)
            steps.append((node, edges))
    return steps


def _forward(steps: list[Step], dots: Sparse) -> None:
    for node, edges in steps:
        for a, rule in edges:
            slope = _at(node, rule)
            for leaf, dot in dots.get(a.id, {}).items():
                _add(dots, node, leaf, _times(slope, dot))


def _backward(steps: list[Step], bars: Sparse) -> None:
    for node, edges in reversed(steps):
        rows = bars.pop(node.id, None)
        if not rows:
            continue
        for a, rule in edges:
            slope = _at(node, rule)
            for value, bar in rows.items():
                _add(bars, a, value, _times(slope, bar))


def _at(node: Node, slope: Slope) -> Node:
    return slope(node) if callable(slope) else node.graph.const(slope)


def _add(sparse: Sparse, node: Node, index: int, term: Node) -> None:
    """Add to one entry of the derivatives of a node; structural zeros leave no entry."""
    if _is_zero(term):
        return
    entries = sparse.setdefault(node.id, {})
    total = _plus(entries[index], term) if index in entries else term
    if _is_zero(total):
        del entries[index]
    else:
        entries[index] = total


def _entry(sparse: Sparse, node: Node, index: int) -> Node:
    found = sparse.get(node.id, {}).get(index)
    return node.graph.const(0) if found is None else found


# products and sums that look into choices where(c, a, b)


def _times(slope: Node, x: Node) -> Node:
    """slope · x, inside a choice if there is one: what is not chosen is 0, even times infinity."""
    if slope.op == "const" and slope.value == 1:
        return x
    if _is_gate(slope):
        return _gated(slope, x)
    if _is_guarded(x):
        condition, a, b = x.args
        return x.graph.make("where", condition, slope * a, slope * b)
    return fold(x.graph, "mul", (slope, x))


def _gated(gate: Node, x: Node) -> Node:
    """where(c, 1, 0) · x or where(c, 0, 1) · x, as one choice also where x is one."""
    make = x.graph.make
    c, on, off = gate.args
    if not _is_guarded(x) or x.args[0] is c:
        a, b = x.args[1:] if _is_guarded(x) else (x, x)
        return make("where", c, on * a, off * b)
    condition, a, b = x.args
    idle = 1.0 if _is_zero(a) else 0.0
    both = (c, condition, idle) if _is_zero(off) else (c, idle, condition)
    return make("where", make("where", *both), a, b)


def _plus(x: Node, y: Node) -> Node:
    """x + y; choices on one condition become one."""
    if x.op == y.op == "where" and x.args[0] is y.args[0]:
        return x.graph.make("where", x.args[0], x.args[1] + y.args[1], x.args[2] + y.args[2])
    return fold(x.graph, "add", (x, y))


def _is_zero(node: Node) -> bool:
    return node.op == "const" and node.value == 0


def _is_gate(node: Node) -> bool:
    if node.op != "where":
        return False
    a, b = node.args[1:]
    return a.op == b.op == "const" and {a.value, b.value} == {0, 1}


def _is_guarded(node: Node) -> bool:
    return node.op == "where" and (_is_zero(node.args[1]) or _is_zero(node.args[2]))


# how many products and sums a sweep makes; bit i of a mask stands for derivative i


def _forward_count(steps: list[Step], leaves: Sequence[Node]) -> int:
    masks: dict[int, int] = {}
    for i, leaf in enumerate(leaves):
        masks[leaf.id] = masks.get(leaf.id, 0) | 1 << i
    count = 0
    for node, edges in steps:
        mask, free = 0, OPERATIONS[node.op].free
        for a, _ in edges:
            count += (mask & masks[a.id]).bit_count()
            count += 0 if free else masks[a.id].bit_count()
            mask |= masks[a.id]
        masks[node.id] = mask
    return count


def _backward_count(steps: list[Step], values: Sequence[Node]) -> int:
    masks: dict[int, int] = {}
    for i, value in enumerate(values):
        masks[value.id] = masks.get(value.id, 0) | 1 << i
    count = 0
    for node, edges in reversed(steps):
        mask, free = masks.get(node.id, 0), OPERATIONS[node.op].free
        for a, _ in edges:
            old = masks.get(a.id, 0)
            count += (old & mask).bit_count() + (0 if free else mask.bit_count())
            masks[a.id] = old | mask
    return count


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
    fresh = [leaves(graph, shape) for shape in shapes]
    places = (graph.lift(x) for x in entries(arrays[i] for i in chosen))
    arguments = dict(enumerate(arrays)) | dict(zip(chosen, fresh, strict=True))
    # a scalar comes as itself, not as an array of no dimensions; arrays may be written to
    result = fn(*(a.copy()[()] for a in arguments.values()))
    form = type(result) if isinstance(result, tuple) else None
    parts = result if form else (result,)
    results = [lifted(f"{title}: the function", graph, part) for part in parts]
    stops = entries(fresh)
    return OnNewLeaves(shapes, stops, dict(zip(stops, places, strict=True)), results, form)


def substitute(nodes: Sequence[Node], places: Mapping[Node, Node]) -> list[Node]:
    """The nodes with others in the places of some, folded anew."""
    new = {old.id: node for old, node in places.items()}
    for node in reachable(nodes):
        if node.id not in new:
            args = tuple(new[a.id] for a in node.args)
            same = all(a is b for a, b in zip(args, node.args, strict=True))
            new[node.id] = node if same else node.graph.make(node.op, *args)
    return [new[node.id] for node in nodes]
