"""Traced scalars: arithmetic on them writes a graph instead of computing numbers.

A node is an operation and its arguments; "const", "input" and "leaf" carry a value instead.  Equal
nodes are the same object (hash-consing), so common subexpressions are shared by construction, and
`rewrite` folds a node as it is made.  NumPy object arrays of nodes are the containers.  A node
knows nothing of robots, batches or targets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any

import numpy as np

from ..errors import TraceError
from .elementary import Elementary
from .operations import COMMUTATIVE
from .rewrite import added, divided, fold, multiplied, negated, subtracted
from .traced import Dispatching

__all__ = ["Graph", "Node", "reachable"]

Number = (int, float, np.integer, np.floating)


def _operator(rule: Callable[..., Any], same: float | None, reflected: bool = False) -> Any:
    """An operator of nodes; same: the number with which the result is the node itself, if any is.

    Millions of them are met while a large robot is traced, and of those most with numbers that are
    0 or 1, the entries of sparse matrices.  What goes wrong is noted, see `Graph.note`.
    """

    def operate(self: Node, other: Any) -> Any:
        graph = self.graph
        try:
            if other.__class__ is not Node or other.graph is not graph:
                if not isinstance(other, _SCALARS):
                    return NotImplemented
                if other.__class__ is float and other == same:
                    return self
                other = graph.lift(other)
            return rule(graph, self, other)
        except Exception as problem:
            if isinstance(other, Node):
                other.graph.note(problem)
            return graph.note(problem)

    def operate_reflected(self: Node, other: Any) -> Any:
        if not isinstance(other, _SCALARS):
            return NotImplemented
        if other.__class__ is float and other == same:
            return self
        graph = self.graph
        try:
            return rule(graph, graph.lift(other), self)
        except Exception as problem:
            return graph.note(problem)

    return operate_reflected if reflected else operate


class Node(Elementary, Dispatching):
    """One value of a graph.  `value` is the number of a const and the index of an input."""

    __slots__ = ("args", "graph", "id", "op", "value")

    # NumPy must leave `array * node` to the elements, and call our operators for `node * array`
    __array_priority__ = 0

    def __init__(self, graph: Graph, id: int, op: str, args: tuple[Node, ...], value: Any) -> None:
        self.graph, self.id, self.op, self.args, self.value = graph, id, op, args, value

    __add__, __radd__ = _operator(added, 0), _operator(added, 0, reflected=True)
    __sub__, __rsub__ = _operator(subtracted, 0), _operator(subtracted, None, reflected=True)
    __mul__, __rmul__ = _operator(multiplied, 1), _operator(multiplied, 1, reflected=True)
    __truediv__, __rtruediv__ = _operator(divided, 1), _operator(divided, None, reflected=True)

    def __neg__(self) -> Any:
        return negated(self.graph, self)

    def __pos__(self) -> Any:
        return self

    def side(self) -> Any:
        """1 or −1; 1 at zero."""
        negative = self.graph.make("less", self, 0.0)
        return self.graph.make("where", negative, -1.0, 1.0)

    def clip(self, low: float, high: float) -> Any:
        """The number between low and high that is nearest."""
        return self.graph.make("min", self.graph.make("max", self, low), high)

    def above(self, low: Any) -> Any:
        """The number where it is more than low, else NaN."""
        more = self.graph.make("less", low, self)
        return self.graph.make("where", more, self, float("nan"))

    @property
    def vanishes(self) -> bool:
        """Whether it is 0 whatever the inputs are."""
        return self.op == "const" and self.value == 0

    def conjugate(self) -> Any:
        """Traced scalars are real."""
        return self

    # what would freeze a value into the graph is refused

    def __bool__(self) -> bool:
        raise TraceError(
            "a traced scalar has no truth value: the branch would be frozen into the kernel; write "
            "np.where(condition, a, b) for if, & | ~ for and, or, not, and np.stack or "
            "np.array(…, like=x) for arrays that np.array or np.asarray made of traced scalars"
        )

    def __float__(self) -> float:
        raise TraceError(
            "a traced scalar has no value yet and cannot become a float: write np.sin(x) for "
            "math.sin(x), and np.stack([…]) or np.zeros(n, like=x) for an array to put it in"
        )

    __int__ = __complex__ = __index__ = __float__

    def __reduce__(self) -> Any:
        # by its number: a graph pickles as a list, however deep it is
        return _numbered, (self.graph, self.id)

    def __repr__(self) -> str:
        if self.op == "const":
            return f"{self.value:g}"
        if self.op == "input":
            return f"x{self.value}"
        return f"<{self.op} {self.id}>"


_SCALARS = (Node, *Number)


class Graph:
    """The nodes made so far; `inputs` of them are arguments."""

    def __init__(self) -> None:
        self._table: dict[Any, Node] = {}
        self._numbers: dict[float, Node] = {}
        self.count = 0
        self.inputs = 0
        # of a graph that was pickled, by their numbers
        self.arrived: list[Node] = []
        self._problem: Exception | None = None

    def __reduce__(self) -> Any:
        nodes = sorted([*self._table.values(), *self._numbers.values()], key=lambda n: n.id)
        return _regrown, ([(n.op, [a.id for a in n.args], n.value) for n in nodes],)

    def input(self) -> Node:
        """A new argument."""
        node = self.intern("input", (), self.inputs)
        self.inputs += 1
        return node

    def leaf(self) -> Node:
        """A node that stands for another, which is put in its place before anything is compiled."""
        return self.intern("leaf", (), self.count)

    def const(self, value: float) -> Node:
        """The node of a number; there is one zero, without a sign."""
        value = float(value) + 0.0
        node = self._numbers.get(value)
        if node is None:
            node = self._numbers[value] = self._new("const", (), value)
        return node

    def make(self, op: str, *args: Any) -> Node:
        """The node of an operation, folded."""
        return fold(self, op, tuple(self.lift(a) for a in args))

    def lift(self, x: Any) -> Node:
        """x as a node of this graph."""
        if isinstance(x, Node):
            if x.graph is not self:
                raise TraceError("scalars of two traces met; trace the whole function at once")
            return x
        return self.const(x)

    def intern(self, op: str, args: tuple[Node, ...], value: Any = None) -> Node:
        """The one node of this operation and these arguments."""
        if len(args) == 2:
            return self.pair(op, *args)
        key = (op, value, *(a.id for a in args))
        node = self._table.get(key)
        if node is None:
            node = self._table[key] = self._new(op, args, value)
        return node

    def pair(self, op: str, a: Node, b: Node) -> Node:
        """The same of an operation on two values, which nearly all are."""
        first, second = a.id, b.id
        if first > second and op in COMMUTATIVE:
            a, b, first, second = b, a, second, first
        key = (op, first, second)
        node = self._table.get(key)
        if node is None:
            node = self._table[key] = self._new(op, (a, b), None)
        return node

    def _new(self, op: str, args: tuple[Node, ...], value: Any) -> Node:
        node = Node(self, self.count, op, args, value)
        self.count += 1
        return node

    # what goes wrong in an operator

    def note(self, problem: Exception) -> Node:
        """What an operator gives that failed: a NaN; `check` raises the first problem.

        NumPy's matrix product of objects loses a reference to an entry of its result if a product
        fails (NumPy 1.26 to 2.4), and the node is freed while the graph still has it.
        """
        # without the frames that it came through: arrays in these lead back here, unseen by gc
        self._problem = self._problem or problem.with_traceback(None)
        # sets the flag of invalid operations, at which NumPy looks when its loop has ended
        return Node(self, -1, "const", (), _INFINITE - _INFINITE)

    def check(self, *flagged: Any) -> None:
        """Raise what was noted, if anything; also as what `np.errstate` calls after a loop."""
        if self._problem is not None:
            raise copy(self._problem)

    @contextmanager
    def tracing(self) -> Iterator[None]:
        """While functions run on nodes of this graph: what operators noted is raised."""
        try:
            with np.errstate(all="ignore", invalid="call", call=self.check):
                yield
        except Exception:
            # perhaps only what NaN led to
            self.check()
            raise
        except BaseException:
            # an interrupt inside an operator: then no node may ever be freed, see `note`
            _INTERRUPTED.append(self)
            raise
        self.check()


_INFINITE = float("inf")
_INTERRUPTED: list[Graph] = []


def _regrown(rows: list[tuple[str, list[int], Any]]) -> Graph:
    """A graph from what it pickles as."""
    graph, nodes = Graph(), []
    for op, args, value in rows:
        given = tuple(nodes[i] for i in args)
        nodes.append(graph.const(value) if op == "const" else graph.intern(op, given, value))
    graph.arrived, graph.inputs = nodes, sum(op == "input" for op, *_ in rows)
    return graph


def _numbered(graph: Graph, number: int) -> Node:
    """A node of a graph that was pickled."""
    return graph.arrived[number]


def reachable(outputs: Iterable[Node]) -> list[Node]:
    """Every node that the outputs need, arguments before their uses, in order of making."""
    seen: dict[int, Node] = {}
    stack = list(outputs)
    while stack:
        node = stack.pop()
        if node.id not in seen:
            seen[node.id] = node
            stack.extend(node.args)
    return [seen[i] for i in sorted(seen)]
