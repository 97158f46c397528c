"""Functions of NumPy that it would not do itself on traced scalars: choices, and small matrices.

Their names, arguments and results are NumPy's; entries are traced scalars and numbers, mixed.
Linear systems are solved by elimination with the largest pivot of each column, which is found by
choices: n³/3 products and as many choices.  A matrix without an inverse gives NaN.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import TraceError
from .elementary import Elementary

__all__ = ["FUNCTIONS", "plain"]

Row = list[Any]


def plain(x: Any) -> Any:
    """What is traced as a plain array of objects; anything else as it is."""
    if isinstance(x, np.ndarray):
        return x.view(np.ndarray)
    if isinstance(x, Elementary):
        box = np.empty((), object)
        box[()] = x
        return box
    return x


def _choose(condition: Any, a: Any, b: Any) -> Any:
    if isinstance(condition, Elementary):
        return condition.graph.make("where", condition, a, b)
    return a if condition else b


_CHOICES = np.frompyfunc(_choose, 3, 1)


def _where(condition: Any, *values: Any) -> Any:
    """np.where."""
    if len(values) != 2:
        raise TraceError(
            "np.where(condition) of traced scalars: which entries these are is not known before "
            "they have values; write np.where(condition, a, b)"
        )
    return _CHOICES(plain(condition), *map(plain, values))


def _select(conditions: Sequence[Any], choices: Sequence[Any], default: Any = 0) -> Any:
    """np.select: the first choice whose condition is true."""
    value = default
    for condition, choice in reversed([*zip(conditions, choices, strict=True)]):
        value = _where(condition, choice, value)
    return value


def _interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
) -> Any:
    """np.interp, whose points are in order."""
    if period is not None:
        raise TraceError("np.interp of traced scalars has no period: write x % period for x")
    x, xp, fp = plain(x), _entries(xp), _entries(fp)
    left, right = (
        end if given is None else given for given, end in ((left, fp[0]), (right, fp[-1]))
    )
    # NaN stays
    value = _where(_compared(operator.lt, xp[-1], x), right, x)
    value = _where(_compared(operator.eq, xp[-1], x), fp[-1], value)
    for i in reversed(range(len(xp) - 1)):
        slope = (fp[i + 1] - fp[i]) / (xp[i + 1] - xp[i])
        value = _where(_compared(operator.gt, xp[i + 1], x), slope * (x - xp[i]) + fp[i], value)
    return _where(_compared(operator.gt, xp[0], x), left, value)


def _compared(how: Callable[[Any, Any], Any], a: Any, x: Any) -> Any:
    """A comparison of one number with each entry."""
    return np.frompyfunc(lambda entry: how(a, entry), 1, 1)(x)


def _entries(x: Any) -> Row:
    """The numbers and traced scalars of a vector."""
    return [e if isinstance(e, Elementary) else float(e) for e in np.asarray(x, object).ravel()]


# matrices


def _over_matrices(fn: Callable[..., Any], *arrays: Any) -> np.ndarray:
    """A function of matrices, on all of those in arrays whose leading shapes broadcast."""
    given = [plain(np.asarray(a, object)) for a in arrays]
    lead = np.broadcast_shapes(*(a.shape[:-2] for a in given))
    given = [np.broadcast_to(a, (*lead, *a.shape[-2:])) for a in given]
    indices = [*np.ndindex(*lead)]
    results = [np.array(fn(*(_rows(a[i]) for a in given)), object) for i in indices]
    out = np.empty((*lead, *(results[0].shape if results else ())), object)
    for i, result in zip(indices, results, strict=True):
        out[i] = result
    return out[()]


def _rows(a: np.ndarray) -> list[Row]:
    return [_entries(row) for row in a]


def _square(name: str, a: Any) -> None:
    shape = np.shape(a)
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise TraceError(f"np.linalg.{name} of an array of shape {shape}; expected (…, n, n)")


def _vanishes(x: Any) -> bool:
    return x.vanishes if isinstance(x, Elementary) else x == 0


def _larger(x: Any, y: Any) -> Any:
    """Whether |x| > |y|, as far as it is known."""
    if _vanishes(x):
        return False
    return True if _vanishes(y) else abs(x) > abs(y)


def _eliminated(rows: list[Row]) -> tuple[list[Row], Any]:
    """The rows of a matrix, and what stands right of it, made triangular; the sign of the swaps."""
    n, sign = len(rows), 1.0
    for k in range(n):
        for i in range(k + 1, n):
            swap = _larger(rows[i][k], rows[k][k])
            pairs = [*zip(rows[k], rows[i], strict=True)]
            rows[k] = [_choose(swap, below, above) for above, below in pairs]
            rows[i] = [_choose(swap, above, below) for above, below in pairs]
            sign = _choose(swap, -sign, sign)
        for i in range(k + 1, n):
            if not _vanishes(rows[i][k]):
                factor = rows[i][k] / _divisor(rows[k][k])
                left = [x - factor * y for x, y in zip(rows[i], rows[k], strict=True)]
                rows[i] = [0.0] * (k + 1) + left[k + 1 :]
    return rows, sign


def _divisor(x: Any) -> Any:
    """A pivot, NaN for 0."""
    if isinstance(x, Elementary):
        return x.graph.make("where", x, x, math.nan)
    return x or math.nan


def _solved(a: list[Row], b: list[Row]) -> list[Row]:
    n = len(a)
    rows, _ = _eliminated([[*x, *y] for x, y in zip(a, b, strict=True)])
    x: list[Row] = [[] for _ in rows]
    for i in reversed(range(n)):
        pivot = _divisor(rows[i][i])
        for j, value in enumerate(rows[i][n:]):
            for k in range(i + 1, n):
                value = value - rows[i][k] * x[k][j]
            x[i].append(value / pivot)
    return x


def _solve(a: Any, b: Any) -> Any:
    """np.linalg.solve."""
    _square("solve", a)
    if np.ndim(b) == 1:
        return _over_matrices(_solved, a, np.asarray(b, object)[:, None])[..., 0]
    return _over_matrices(_solved, a, b)


def _inv(a: Any) -> Any:
    """np.linalg.inv."""
    _square("inv", a)
    return _over_matrices(_solved, a, np.eye(np.shape(a)[-1]))


def _det(a: Any) -> Any:
    """np.linalg.det."""
    _square("det", a)
    return _over_matrices(_determinant, a)


def _determinant(a: list[Row]) -> Any:
    """By Leibniz' formula up to 3 × 3, which needs no pivots, else the product of the pivots."""
    if len(a) < 4:
        return _expanded(a)
    rows, n = [[*row] for row in a], len(a)
    rows, value = _eliminated(rows)
    for i in range(n):
        value = value * rows[i][i]
    return value


def _expanded(a: list[Row]) -> Any:
    if not a:
        return 1.0
    minors = [[row[:j] + row[j + 1 :] for row in a[1:]] for j in range(len(a))]
    terms = [x * _expanded(minor) for x, minor in zip(a[0], minors, strict=True)]
    return sum(terms[2::2], terms[0]) - sum(terms[1::2], 0.0)


def _cholesky(a: Any, *, upper: bool = False) -> Any:
    """np.linalg.cholesky."""
    _square("cholesky", a)
    if upper:
        return np.swapaxes(_cholesky(np.swapaxes(a, -1, -2)), -1, -2)
    return _over_matrices(_lower_root, a)


def _lower_root(a: list[Row]) -> list[Row]:
    n = len(a)
    root: list[Row] = [[0.0] * n for _ in range(n)]
    for j in range(n):
        left = a[j][j] - sum(x * x for x in root[j][:j])
        root[j][j] = left.sqrt() if isinstance(left, Elementary) else float(np.sqrt(left))
        for i in range(j + 1, n):
            rest = a[i][j] - sum(x * y for x, y in zip(root[i][:j], root[j][:j], strict=True))
            root[i][j] = rest / _divisor(root[j][j])
    return root


def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """np.linalg.norm of vectors, and of all entries of a matrix."""
    a = plain(np.asarray(x, object))
    whole = axis is None and (ord is None or (ord == "fro" and a.ndim == 2))
    if not whole and (isinstance(axis, tuple) or (axis is None and a.ndim != 1)):
        raise TraceError(
            f"np.linalg.norm(ord={ord!r}, axis={axis!r}) of traced scalars: expected one axis, or "
            f"the Frobenius norm of a matrix"
        )
    if whole or ord in (None, 2):
        total = plain(np.sum(a * a, axis=axis, keepdims=keepdims))
        return np.frompyfunc(lambda e: e.sqrt() if isinstance(e, Elementary) else e**0.5, 1, 1)(
            total
        )
    if ord == 1:
        return np.sum(abs(a), axis=axis, keepdims=keepdims)
    if ord == math.inf:
        largest = np.frompyfunc(_maximum, 2, 1)
        return largest.reduce(abs(a), axis=axis or 0, keepdims=keepdims)
    raise TraceError(f"np.linalg.norm(ord={ord!r}) of traced scalars: expected 1, 2 or np.inf")


def _maximum(a: Any, b: Any) -> Any:
    first, second = (a, b) if isinstance(a, Elementary) else (b, a)
    return first.maximum(second) if isinstance(first, Elementary) else max(a, b)


def _made(function: Callable[..., Any]) -> Callable[..., Any]:
    """np.zeros(…, like=x) and the like: an array that traced scalars can be put in."""
    return lambda *args, **keywords: np.asarray(function(*args, **keywords)).astype(object)


FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.where: _where,
    np.select: _select,
    np.interp: _interp,
    np.linalg.solve: _solve,
    np.linalg.inv: _inv,
    np.linalg.det: _det,
    np.linalg.cholesky: _cholesky,
    np.linalg.norm: _norm,
    **{f: _made(f) for f in (np.array, np.asarray, np.zeros, np.ones, np.full, np.empty, np.eye)},
}
