"""The folding table: how a node is simplified while it is made.

Each rule takes the graph and the arguments and gives a node, folded as far as a look at the
arguments allows.  What is folded is exact, but for four choices: x/y becomes x · (1/y), so that
denominators are shared; x · (1/y) · y is x; 0 · x is 0 whatever x is; numbers are multiplied
together first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .operations import OPERATIONS

__all__ = ["fold"]


def fold(graph: Any, op: str, args: tuple[Any, ...]) -> Any:
    """The node of an operation, simplified."""
    for a in args:
        if a.op != "const":
            break
    else:
        return graph.const(OPERATIONS[op].value(*(a.value for a in args)))
    rule = _RULES.get(op)
    return graph.intern(op, args) if rule is None else rule(graph, *args)


def _add(graph: Any, a: Any, b: Any) -> Any:
    if a.op == "const" and a.value == 0:
        return b
    if b.op == "const" and b.value == 0:
        return a
    if b.op == "neg":
        return _sub(graph, a, b.args[0])
    if a.op == "neg":
        return _sub(graph, b, a.args[0])
    return graph.intern("add", (a, b))


def _sub(graph: Any, a: Any, b: Any) -> Any:
    if b.op == "const" and b.value == 0:
        return a
    if a.op == "const" and a.value == 0:
        return _neg(graph, b)
    if a is b:
        return graph.const(0.0)
    if b.op == "neg":
        return _add(graph, a, b.args[0])
    if a.op == "neg":
        return _neg(graph, _add(graph, a.args[0], b))
    return graph.intern("sub", (a, b))


def _neg(graph: Any, a: Any) -> Any:
    if a.op == "neg":
        return a.args[0]
    if a.op == "sub":
        return graph.intern("sub", (a.args[1], a.args[0]))
    if a.op == "const":
        return graph.const(-a.value)
    return graph.intern("neg", (a,))


def _mul(graph: Any, a: Any, b: Any) -> Any:
    if b.op == "const":
        a, b = b, a
    if a.op == "const":
        if a.value == 0 or a.value == 1:
            return b if a.value else a
        if a.value == -1:
            return _neg(graph, b)
        if b.op == "neg":
            return _mul(graph, graph.const(-a.value), b.args[0])
        if b.op == "mul" and b.args[0].op == "const":
            return _mul(graph, graph.const(a.value * b.args[0].value), b.args[1])
        if b.op == "mul" and b.args[1].op == "const":
            return _mul(graph, graph.const(a.value * b.args[1].value), b.args[0])
        return graph.intern("mul", (a, b))
    if a.op == "neg":
        return _neg(graph, _mul(graph, a.args[0], b))
    if b.op == "neg":
        return _neg(graph, _mul(graph, a, b.args[0]))
    for x, d in ((a, b), (b, a)):
        rest = _cancelled(graph, x, d)
        if rest is not None:
            return rest
    return graph.intern("mul", (a, b))


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


def _div(graph: Any, a: Any, b: Any) -> Any:
    if b.op == "neg":
        return _neg(graph, _div(graph, a, b.args[0]))
    if b.op == "const":
        return _mul(graph, graph.const(OPERATIONS["div"].value(1.0, b.value)), a)
    if a.op == "const" and a.value == 1:
        return graph.intern("div", (a, b))
    return _mul(graph, a, graph.intern("div", (graph.const(1.0), b)))


def _sin(graph: Any, a: Any) -> Any:
    if a.op == "neg":
        return _neg(graph, graph.intern("sin", a.args))
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
    "add": _add,
    "sub": _sub,
    "neg": _neg,
    "mul": _mul,
    "div": _div,
    "sin": _sin,
    "cos": _cos,
    "where": _where,
}
