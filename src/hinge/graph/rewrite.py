"""The folding table: how a node is simplified while it is made.

Each rule takes the graph and the arguments and gives a node, folded as far as a look at the
arguments allows.  What is folded is exact, but for four choices: x/y becomes x · (1/y), so that
denominators are shared; x · (1/y) · y is x; 0 · x is 0 whatever x is; numbers are multiplied
together first.

So NaN that is to be seen must not be a factor of what may be 0 (`Multipliers.doubt`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .operations import OPERATIONS

__all__ = ["added", "divided", "fold", "multiplied", "negated", "subtracted"]


def fold(graph: Any, op: str, args: tuple[Any, ...]) -> Any:
    """The node of an operation, simplified."""
    for a in args:
        if a.op != "const":
            break
    else:
        return graph.const(OPERATIONS[op].value(*(a.value for a in args)))
    rule = _RULES.get(op)
    return graph.intern(op, args) if rule is None else rule(graph, *args)


def added(graph: Any, a: Any, b: Any) -> Any:
    """a + b."""
    if a.op == "const":
        if a.value == 0:
            return b
        if b.op == "const":
            return graph.const(a.value + b.value)
    elif b.op == "const" and b.value == 0:
        return a
    if b.op == "neg":
        return subtracted(graph, a, b.args[0])
    if a.op == "neg":
        return subtracted(graph, b, a.args[0])
    return graph.pair("add", a, b)


def subtracted(graph: Any, a: Any, b: Any) -> Any:
    """a − b."""
    if b.op == "const":
        if b.value == 0:
            return a
        if a.op == "const":
            return graph.const(a.value - b.value)
    elif a.op == "const" and a.value == 0:
        return negated(graph, b)
    if a is b:
        return graph.const(0.0)
    if b.op == "neg":
        return added(graph, a, b.args[0])
    if a.op == "neg":
        return negated(graph, added(graph, a.args[0], b))
    return graph.pair("sub", a, b)


def negated(graph: Any, a: Any) -> Any:
    """−a."""
    if a.op == "neg":
        return a.args[0]
    if a.op == "sub":
        return graph.pair("sub", a.args[1], a.args[0])
    if a.op == "const":
        return graph.const(-a.value)
    return graph.intern("neg", (a,))


def multiplied(graph: Any, a: Any, b: Any) -> Any:
    """a · b."""
    if b.op == "const":
        a, b = b, a
    if a.op == "const":
        return _scaled(graph, a, b)
    if a.op == "neg":
        return negated(graph, multiplied(graph, a.args[0], b))
    if b.op == "neg":
        return negated(graph, multiplied(graph, a, b.args[0]))
    if a.op == "div" or a.op == "mul":
        rest = _cancelled(graph, a, b)
        if rest is not None:
            return rest
    if b.op == "div" or b.op == "mul":
        rest = _cancelled(graph, b, a)
        if rest is not None:
            return rest
    return graph.pair("mul", a, b)


def _scaled(graph: Any, a: Any, b: Any) -> Any:
    """A number times b."""
    if a is b and a.value == 0:
        return a
    if b.op == "const":
        return graph.const(a.value * b.value)
    if a.value == 0 or a.value == 1:
        return b if a.value else a
    if a.value == -1:
        return negated(graph, b)
    if b.op == "neg":
        return multiplied(graph, graph.const(-a.value), b.args[0])
    if b.op == "mul" and b.args[0].op == "const":
        return multiplied(graph, graph.const(a.value * b.args[0].value), b.args[1])
    if b.op == "mul" and b.args[1].op == "const":
        return multiplied(graph, graph.const(a.value * b.args[1].value), b.args[0])
    return graph.pair("mul", a, b)


def _cancelled(graph: Any, a: Any, d: Any) -> Any:
    """a · d where a is 1/d, or x · (1/d); None if it is neither."""
    if a.op == "div" and a.args[1] is d:
        return graph.const(1.0)
    if a.op == "mul":
        x, y = a.args
        if y.op == "div" and y.args[1] is d:
            return x
        if x.op == "div" and x.args[1] is d:
            return y
    return None


def divided(graph: Any, a: Any, b: Any) -> Any:
    """a / b."""
    if b.op == "neg":
        return negated(graph, divided(graph, a, b.args[0]))
    if b.op == "const":
        if a.op == "const":
            return graph.const(OPERATIONS["div"].value(a.value, b.value))
        return multiplied(graph, graph.const(OPERATIONS["div"].value(1.0, b.value)), a)
    if a.op == "const" and a.value == 1:
        return graph.intern("div", (a, b))
    return multiplied(graph, a, graph.intern("div", (graph.const(1.0), b)))


def _sin(graph: Any, a: Any) -> Any:
    if a.op == "neg":
        return negated(graph, graph.intern("sin", a.args))
    return graph.intern("sin", (a,))


def _cos(graph: Any, a: Any) -> Any:
    return graph.intern("cos", a.args if a.op == "neg" else (a,))


def _where(graph: Any, condition: Any, a: Any, b: Any) -> Any:
    if a is b:
        return a
    if condition.op == "const":
        return a if condition.value else b
    return graph.intern("where", (condition, a, b))


_RULES: dict[str, Callable[..., Any]] = {
    "add": added,
    "sub": subtracted,
    "neg": negated,
    "mul": multiplied,
    "div": divided,
    "sin": _sin,
    "cos": _cos,
    "where": _where,
}
