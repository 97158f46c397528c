"""Traced scalars: arithmetic on them writes a graph instead of computing numbers.

A node is an operation and its arguments; "const" and "input" carry a value instead.  Equal nodes
are the same object (hash-consing), so common subexpressions are shared by construction, and
`rewrite` folds a node as it is made.  NumPy object arrays of nodes are the containers.  A node
knows nothing of robots, batches or targets.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..errors import TraceError
from .operations import OPERATIONS
from .rewrite import fold

__all__ = ["Graph", "Node", "reachable"]

Number = (int, float, np.integer, np.floating)


class Node:
    """One value of a graph.  `value` is the number of a const and the index of an input."""

    __slots__ = ("args", "graph", "id", "op", "value")

    # NumPy must leave `array * node` to the elements, and call our operators for `node * array`
    __array_priority__ = 0

    def __init__(self, graph: Graph, id: int, op: str, args: tuple[Node, ...], value: Any) -> None:
        self.graph, self.id, self.op, self.args, self.value = graph, id, op, args, value

    def __add__(self, other: Any) -> Any:
        return self.graph.make("add", self, other) if _scalar(other) else NotImplemented

    def __radd__(self, other: Any) -> Any:
        return self.graph.make("add", other, self) if _scalar(other) else NotImplemented

    def __sub__(self, other: Any) -> Any:
        return self.graph.make("sub", self, other) if _scalar(other) else NotImplemented

    def __rsub__(self, other: Any) -> Any:
        return self.graph.make("sub", other, self) if _scalar(other) else NotImplemented

    def __mul__(self, other: Any) -> Any:
        return self.graph.make("mul", self, other) if _scalar(other) else NotImplemented

    def __rmul__(self, other: Any) -> Any:
        return self.graph.make("mul", other, self) if _scalar(other) else NotImplemented

    def __truediv__(self, other: Any) -> Any:
        return self.graph.make("div", self, other) if _scalar(other) else NotImplemented

    def __rtruediv__(self, other: Any) -> Any:
        return self.graph.make("div", other, self) if _scalar(other) else NotImplemented

    def __neg__(self) -> Any:
        return self.graph.make("neg", self)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return self.graph.make("abs", self)

    def __pow__(self, exponent: Any) -> Any:
        if not isinstance(exponent, int) or exponent < 1:
            raise TraceError(
                f"a traced scalar can be raised to a whole number above 0, not to {exponent!r}; "
                f"use sqrt, or divide"
            )
        half = self ** (exponent // 2) if exponent > 1 else None
        if half is None:
            return self
        return half * half * self if exponent % 2 else half * half

    # NumPy calls these methods for np.sin(array of objects) and the like

    def sin(self) -> Any:
        """Sine."""
        return self.graph.make("sin", self)

    def cos(self) -> Any:
        """Cosine."""
        return self.graph.make("cos", self)

    def sqrt(self) -> Any:
        """Square root."""
        return self.graph.make("sqrt", self)

    def sign(self) -> Any:
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

    def conjugate(self) -> Any:
        """Traced scalars are real."""
        return self

    # what would freeze a value into the graph is refused

    def __bool__(self) -> bool:
        raise TraceError(
            "a traced scalar has no truth value: the branch would be frozen into the kernel; use "
            "hinge.where(condition, a, b)"
        )

    # nodes are kept in sets and dictionaries as the objects they are
    __hash__ = object.__hash__

    def __eq__(self, other: Any) -> Any:
        return self._refuse_equality("==") if _scalar(other) else NotImplemented

    def __ne__(self, other: Any) -> Any:
        return self._refuse_equality("!=") if _scalar(other) else NotImplemented

    def _refuse_equality(self, sign: str) -> Any:
        raise TraceError(
            f"whether traced scalars are equal (a {sign} b) is not known before they have values: "
            f"use hinge.where(hinge.less(abs(a - b), tolerance), then, otherwise)"
        )

    def __lt__(self, other: Any) -> Any:
        return self._refuse_order("<")

    def __le__(self, other: Any) -> Any:
        return self._refuse_order("<=")

    def __gt__(self, other: Any) -> Any:
        return self._refuse_order(">")

    def __ge__(self, other: Any) -> Any:
        return self._refuse_order(">=")

    def _refuse_order(self, sign: str) -> Any:
        raise TraceError(
            f"traced scalars have no order (a {sign} b): use hinge.less(a, b) with hinge.where, or "
            f"hinge.minimum and hinge.maximum"
        )

    def __float__(self) -> float:
        raise TraceError(
            "a traced scalar has no value yet and cannot become a float; keep it in an object "
            "array, and use sin, cos, sqrt of hinge.algebra.small instead of the math module"
        )

    __int__ = __complex__ = __index__ = __float__

    def __repr__(self) -> str:
        if self.op == "const":
            return f"{self.value:g}"
        if self.op == "input":
            return f"x{self.value}"
        return f"<{self.op} {self.id}>"


def _scalar(x: Any) -> bool:
    return isinstance(x, (Node, *Number))


class Graph:
    """The nodes made so far; `inputs` of them are arguments."""

    def __init__(self) -> None:
        self._table: dict[Any, Node] = {}
        self.count = 0
        self.inputs = 0

    def input(self) -> Node:
        """A new argument."""
        node = self.intern("input", (), self.inputs)
        self.inputs += 1
        return node

    def const(self, value: float) -> Node:
        """The node of a number; there is one zero, without a sign."""
        return self.intern("const", (), float(value) + 0.0)

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
        if len(args) == 2 and args[0].id > args[1].id and OPERATIONS[op].commutative:
            args = (args[1], args[0])
        key = (op, value, *(a.id for a in args))
        node = self._table.get(key)
        if node is None:
            node = self._table[key] = Node(self, self.count, op, args, value)
            self.count += 1
        return node


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
