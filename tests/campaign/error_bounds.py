"""A program run on arrays together with bounds of its rounding errors.

Each value x comes with a number e such that whoever computes x with the same operations, each
rounded once or fused with the next, gets within e of it (to first order): the running error
analysis of Wilkinson (Higham, Accuracy and Stability of Numerical Algorithms, §3.3).  It knows
nothing of robots, and is as good for states of 1e200 as for those of 1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from hinge.graph.operations import OPERATIONS

__all__ = ["with_bounds"]

Pair = tuple[np.ndarray, np.ndarray]


def with_bounds(
    program: Any, arguments: Sequence[np.ndarray], of_constants: float = 0.0
) -> list[Pair]:
    """(value, bound) of every entry of the results, each (samples,).

    of_constants: how far constants may be off, in units of eps.
    """
    dtype = arguments[0].dtype
    samples = len(arguments[0])
    flat = np.concatenate([x.reshape(samples, -1) for x in arguments], axis=1)
    columns = [np.ascontiguousarray(c) for c in flat.T]
    eps = float(np.finfo(dtype).eps)
    nothing, values = np.zeros((), dtype), {}
    left = Counter(a.id for node in program.nodes for a in node.args)
    left.update(node.id for node in program.values)
    with np.errstate(all="ignore"):
        for node in program.nodes:
            if node.op == "const":
                value = np.asarray(node.value, dtype)
                values[node.id] = value, np.asarray(of_constants * eps, dtype)
            elif node.op == "input":
                values[node.id] = columns[node.value], nothing
            else:
                given = [values[a.id] for a in node.args]
                values[node.id] = _applied(node.op, given, dtype)
            for a in node.args:
                left[a.id] -= 1
                if not left[a.id]:
                    del values[a.id]
    whole = [np.broadcast_arrays(*values[node.id], flat[:, 0])[:2] for node in program.values]
    return [(x, np.where(np.isnan(e), np.inf, e)) for x, e in whole]


def _applied(op: str, given: Sequence[Pair], dtype: np.dtype) -> Pair:
    """One operation on values with bounds."""
    x, e = zip(*given, strict=True)
    value = OPERATIONS[op].numpy(*x)
    kind = np.finfo(dtype)
    # a rounding, or an underflow; functions are within four units of the last place
    own = np.abs(value) * kind.eps * (4 if op in ("sin", "cos", "atan2") else 1) + kind.tiny
    return value, _RULES[op](value, x, e) + (0 if op in _EXACT else own)


def _product(v: Any, x: Any, e: Any) -> Any:
    return np.abs(x[0]) * e[1] + np.abs(x[1]) * e[0] + e[0] * e[1]


def _quotient(v: Any, x: Any, e: Any) -> Any:
    least = np.abs(x[1]) - e[1]
    return np.where(least > 0, (e[0] + np.abs(v) * e[1]) / least, np.inf)


def _root(v: Any, x: Any, e: Any) -> Any:
    return np.where(e[0] == 0, 0, np.where(x[0] > e[0], e[0] / v, np.inf))


def _angle(v: Any, x: Any, e: Any) -> Any:
    off, far = e[0] + e[1], np.hypot(*x)
    return np.where(off == 0, 0, np.where(far > off, off / (far - off), np.inf))


def _chosen(v: Any, x: Any, e: Any) -> Any:
    """Where the condition is not certain, either branch may be taken."""
    sure = np.where(x[0] != 0, e[1], e[2])
    return np.where(e[0] == 0, sure, np.maximum(e[1], e[2]) + np.abs(x[1] - x[2]))


_EXACT = ("neg", "abs", "min", "max", "less", "where")
_RULES = {
    "add": lambda v, x, e: e[0] + e[1],
    "sub": lambda v, x, e: e[0] + e[1],
    "mul": _product,
    "div": _quotient,
    "neg": lambda v, x, e: e[0],
    "sqrt": _root,
    "sin": lambda v, x, e: np.minimum(e[0], 2),
    "cos": lambda v, x, e: np.minimum(e[0], 2),
    "atan2": _angle,
    "abs": lambda v, x, e: e[0],
    "min": lambda v, x, e: np.maximum(e[0], e[1]),
    "max": lambda v, x, e: np.maximum(e[0], e[1]),
    "less": lambda v, x, e: np.where(np.abs(x[0] - x[1]) <= e[0] + e[1], (e[0] + e[1]) > 0, 0),
    "where": _chosen,
}
