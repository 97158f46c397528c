"""Algebra on matrices up to about 6×6 that runs on any scalar.

NumPy's `@`, `+`, `concatenate` already work on object arrays; `np.linalg` and the elementary
functions do not.  This file has what is missing, in straight-line code: no pivoting, no branches
on values, so that the same lines run on floats, complex numbers, symbols and traced scalars.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Mapping, Sequence
from numbers import Number
from typing import Any

import numpy as np

__all__ = [
    "Factor",
    "atan2",
    "clip",
    "cos",
    "half_upper",
    "inverse_spd",
    "is_masked",
    "is_zero",
    "less",
    "mirror_lower",
    "more_than",
    "one_below_zero",
    "scaled_identity",
    "sign",
    "sin",
    "solve_spd",
    "sparse_product",
    "sqrt",
    "upper_root",
    "vanishes",
    "where",
]

_NUMBERS = (float, complex, int, np.number)
# a pivot of so many roundings of its entry means nothing
_LOST = 8


def _elementary(name: str, x: Any) -> Any:
    """The function `name` of one scalar, as the library that made the scalar defines it."""
    if isinstance(x, _NUMBERS):
        return getattr(np, name)(x)
    method = getattr(x, name, None)
    if method is not None:
        return method()
    return getattr(_library(x), name, getattr(math, name))(x)


def _library(x: Any) -> Any:
    """The package that made a scalar."""
    return sys.modules[type(x).__module__.partition(".")[0]]


def _elementwise(name: str, x: Any) -> Any:
    if not isinstance(x, np.ndarray):
        return _elementary(name, x)
    if x.dtype != object:
        return getattr(np, name)(x)
    return np.array([_elementary(name, e) for e in x.ravel()], dtype=object).reshape(x.shape)


def sin(x: Any) -> Any:
    """Sine of a scalar or of each entry of an array."""
    return _elementwise("sin", x)


def cos(x: Any) -> Any:
    """Cosine of a scalar or of each entry of an array."""
    return _elementwise("cos", x)


def sqrt(x: Any) -> Any:
    """Square root of a scalar or of each entry of an array."""
    return _elementwise("sqrt", x)


def atan2(y: Any, x: Any) -> Any:
    """The angle of the point (x, y); of complex numbers to first order in their imaginary part."""
    if isinstance(y, _NUMBERS) and isinstance(x, _NUMBERS):
        if np.iscomplexobj(y) or np.iscomplexobj(x):
            a, b = np.real(x), np.real(y)
            slope = (a * np.imag(y) - b * np.imag(x)) / (a * a + b * b)
            return np.arctan2(b, a) + 1j * slope
        return np.arctan2(y, x)
    return _library(x if isinstance(y, _NUMBERS) else y).atan2(y, x)


def sign(x: Any) -> Any:
    """1 or −1, by the sign of the real part of a number; 1 at zero."""
    if isinstance(x, _NUMBERS):
        return -1.0 if np.real(x) < 0 else 1.0
    return x.side() if hasattr(x, "side") else x.sign()


def one_below_zero(x: Any) -> Any:
    """1 where a number, by its real part, is 0 or less, else NaN."""
    return math.nan if isinstance(x, _NUMBERS) and np.real(x) > 0 else sqrt(sign(-x))


def is_zero(x: Any) -> bool:
    """Whether a scalar is known to be 0: of a traced scalar or a symbol it is not known."""
    return isinstance(x, Number) and x == 0


def vanishes(x: Any) -> bool:
    """The same, and of a traced scalar whether it is no more than that number."""
    return is_zero(x) or getattr(x, "vanishes", False)


def is_masked(x: Any) -> bool:
    """Whether entries of an array, or of arrays in a list, are masked, and so no numbers."""
    masked = sys.modules.get("numpy.ma")
    # importing it takes 10 ms; while nobody has, there is none
    if masked is None:
        return False
    parts = x if isinstance(x, (list, tuple)) else (x,)
    return any(isinstance(part, masked.MaskedArray) and masked.is_masked(part) for part in parts)


def clip(x: Any, low: float, high: float) -> Any:
    """x between two bounds; of a complex number by its real part; of an array each entry."""
    if isinstance(x, np.ndarray):
        return np.array([clip(e, low, high) for e in x.ravel()]).reshape(x.shape)
    if isinstance(x, _NUMBERS):
        return low if np.real(x) < low else high if np.real(x) > high else x
    method = getattr(x, "clip", None)
    if method is not None:
        return method(low, high)
    library = _library(x)
    least, most = (getattr(library, name, None) for name in ("fmin", "fmax"))
    return least(most(x, low), high) if least and most else min(max(x, low), high)


def less(a: Any, b: Any) -> Any:
    """1 where a < b, else 0; of complex numbers by their real parts."""
    if isinstance(a, _NUMBERS) and isinstance(b, _NUMBERS):
        return 1.0 if np.real(a) < np.real(b) else 0.0
    function: Any = getattr(_library(b if isinstance(a, _NUMBERS) else a), "less", operator.lt)
    return function(a, b)


def where(condition: Any, a: Any, b: Any) -> Any:
    """a where the condition is not 0, else b; of arrays of one shape entry by entry."""
    if isinstance(condition, _NUMBERS):
        return a if condition else b
    if isinstance(a, np.ndarray) and a.ndim:
        pairs = zip(a.ravel(), b.ravel(), strict=True)
        return np.array([where(condition, x, y) for x, y in pairs]).reshape(a.shape)
    library = _library(condition)
    return (getattr(library, "where", None) or library.if_else)(condition, a, b)


def scaled_identity(x: Any) -> np.ndarray:
    """x 1, (3, 3)."""
    return np.array([[x, 0, 0], [0, x, 0], [0, 0, x]])


def mirror_lower(A: np.ndarray) -> np.ndarray:
    """The symmetric matrix with the lower triangle of A; the upper one is not looked at."""
    n = len(A)
    return np.array([[A[max(i, j), min(i, j)] for j in range(n)] for i in range(n)]).reshape(n, n)


def _pivot(left: Any, whole: Any) -> Any:
    """What elimination has left of a diagonal entry; NaN where it is known to be no more than 0.

    Of rounding numbers that is what is not more than the rounding of the whole entry.
    """
    if isinstance(left, _NUMBERS) and isinstance(whole, _NUMBERS):
        rounding = np.finfo(np.result_type(np.asarray(whole).dtype, np.float32)).eps
        return left if np.real(left) > _LOST * rounding * np.real(whole) else math.nan
    return math.nan if vanishes(left) else left


def _ldl(A: np.ndarray, low: Any = None) -> tuple[list[list[Any]], list[Any]]:
    """L and d of A = L diag(d) Lᵀ, L unit lower triangular.  Only the lower triangle is read."""
    n = len(A)
    L: list[list[Any]] = [[0.0] * n for _ in range(n)]
    d: list[Any] = []
    for j in range(n):
        scaled = {k: L[j][k] * d[k] for k in range(j) if not is_zero(L[j][k])}
        left = _less_products(A[j, j], L[j], scaled)
        d.append(_pivot(left, A[j, j]) if low is None else _raised(left, low[j]))
        for i in range(j + 1, n):
            left = _less_products(A[i, j], L[i], scaled)
            L[i][j] = 0.0 if is_zero(left) else left / d[j]
    return L, d


def _raised(left: Any, low: Any) -> Any:
    return where(less(left, low), low, left)


def _less_products(x: Any, row: Sequence[Any], others: Mapping[int, Any]) -> Any:
    """x − Σ row(k) others(k), without what is known to be 0."""
    products = [row[k] * y for k, y in others.items() if not is_zero(row[k])]
    return x - sum(products) if products else x


class Factor:
    """A = L diag(d) Lᵀ of a symmetric positive definite A, to be solved with several times.

    What is known to be 0 in L costs nothing.  low: (n,), to which smaller entries of d are raised.
    """

    __slots__ = ("columns", "d_inv", "rows")

    def __init__(self, A: np.ndarray, low: np.ndarray | None = None) -> None:
        L, d = _ldl(A, low)
        self._set(L, np.array([1 / x for x in d]))

    def _set(self, L: Sequence[Sequence[Any]], d_inv: np.ndarray) -> None:
        self.rows, self.columns = (
            [{k: x for k, x in enumerate(row) if not is_zero(x)} for row in half]
            for half in (L, zip(*L, strict=True))
        )
        self.d_inv = d_inv

    @property
    def numbers(self) -> np.ndarray:
        """All numbers, (n, n): those of L below the diagonal, and 1/d on it."""
        whole = np.diag(self.d_inv)
        for i, row in enumerate(self.rows):
            for k, x in row.items():
                whole[i, k] = x
        return whole

    @classmethod
    def of_numbers(cls, x: np.ndarray) -> Factor:
        """The factor with these `numbers`."""
        made = cls.__new__(cls)
        n = len(x)
        made._set([[x[i, k] if k < i else 0.0 for k in range(n)] for i in range(n)], np.diagonal(x))
        return made

    def half(self, b: np.ndarray) -> np.ndarray:
        """y = L⁻¹ b of a vector or a matrix: bᵀ A⁻¹ c is y(b)ᵀ diag(1/d) y(c)."""
        x = list(b)
        for i, row in enumerate(self.rows):
            x[i] = _less_products(x[i], x, row)
        return np.array(x).reshape(b.shape)

    def solve(self, b: np.ndarray) -> np.ndarray:
        """A⁻¹ b of a vector or a matrix."""
        if b.ndim == 2:
            return np.array([self.solve(column) for column in b.T]).reshape(b.shape[::-1]).T
        x = list(self.half(b) * self.d_inv)
        for i in reversed(range(len(b))):
            x[i] = _less_products(x[i], x, self.columns[i])
        return np.array(x)


def solve_spd(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A⁻¹ b for a symmetric positive definite A, by LDLᵀ; b is a vector or a matrix."""
    return Factor(A).solve(b)


def sparse_product(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """A B of matrices, without products with what is known to be 0 in either."""
    rows, columns = (
        [{k: x for k, x in enumerate(row) if not vanishes(x)} for row in half] for half in (A, B.T)
    )
    out = np.zeros((len(A), B.shape[1]), dtype=np.result_type(A, B))
    for i, row in enumerate(rows):
        for j, column in enumerate(columns):
            first, *others = [x * column[k] for k, x in row.items() if k in column] or [0.0]
            out[i, j] = sum(others, first)
    return out


def more_than(A: np.ndarray, least: np.ndarray) -> np.ndarray:
    """A symmetric A, with NaN in it where a pivot of its elimination is not more than that."""
    if all(map(is_zero, least)):
        return A
    if len(A) == 1:
        return np.array([[_above(A[0, 0], least[0])]])
    lost = sum(_above(x, low) - x for x, low in zip(_ldl(A)[1], least, strict=True))
    return A + np.diag([lost] + [0.0] * (len(A) - 1))


def _above(x: Any, low: Any) -> Any:
    """x where it is more than that, else NaN; of symbols it is not known."""
    if isinstance(x, _NUMBERS) and isinstance(low, _NUMBERS):
        return x if np.real(x) > np.real(low) else math.nan
    method = getattr(x, "above", None)
    return x if method is None else method(low)


def inverse_spd(A: np.ndarray) -> np.ndarray:
    """A⁻¹ of a symmetric positive definite A, exactly symmetric."""
    if len(A) == 0:
        return A
    return mirror_lower(solve_spd(A, np.eye(len(A))))


def upper_root(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The upper triangular L with A = L Lᵀ of a symmetric positive definite A, and L⁻¹.

    Cholesky's factor of the matrix read backwards; only the upper triangle of A is looked at.
    """
    n = len(A)
    L: list[list[Any]] = [[0.0] * n for _ in range(n)]
    inverse: list[list[Any]] = [[0.0] * n for _ in range(n)]
    for j in reversed(range(n)):
        left = A[j, j] - sum(L[j][k] * L[j][k] for k in range(j + 1, n))
        L[j][j] = sqrt(_pivot(left, A[j, j]))
        inverse[j][j] = 1 / L[j][j]
        for i in range(j):
            rest = A[i, j] - sum(L[i][k] * L[j][k] for k in range(j + 1, n))
            L[i][j] = rest * inverse[j][j]
        for i in range(j + 1, n):
            row = sum(L[j][k] * inverse[k][i] for k in range(j + 1, i + 1))
            inverse[j][i] = -row * inverse[j][j]
    return np.array(L).reshape(n, n), np.array(inverse).reshape(n, n)


def half_upper(A: np.ndarray) -> np.ndarray:
    """Φ(A): the part of A above the diagonal and half of the diagonal.

    The rate of the root in `upper_root` is L̇ = L Φ(L⁻¹ Ȧ L⁻ᵀ), whatever the size; ½ Ȧ L⁻ᵀ is right
    for one number only.
    """
    n = len(A)
    weight = np.triu(np.ones((n, n))) - 0.5 * np.eye(n)
    return weight * A
