"""Arrays of traced scalars as functions that are traced get them: NumPy's functions work on them.

NumPy calls methods of the entries of an object array for np.exp and the like, but asks them for
truth values in comparisons, np.maximum, np.where, and knows none of them in np.linalg.  A `Traced`
array, and a traced scalar, says itself what these are (`__array_ufunc__`, `__array_function__`):

- of a ufunc what the method of that name does, entry by entry;
- of np.where, np.interp, np.linalg and a few more what `array_functions.py` has;
- of everything else what NumPy does.

hinge's own algorithms get plain object arrays, since asking costs time (`on_plain_arrays`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from functools import lru_cache, partial
from typing import Any

import numpy as np

from ..errors import TraceError
from .array_functions import FUNCTIONS, plain
from .elementary import Elementary

__all__ = ["Dispatching", "Traced", "traced"]

# what NumPy would do by truth values, or not with numbers among traced scalars
_BY_ENTRY = (
    *("exp", "expm1", "exp2", "log", "log1p", "log2", "log10", "sin", "cos", "tan", "sinh", "cosh"),
    *("tanh", "arcsin", "arccos", "arctan", "arcsinh", "arccosh", "arctanh", "sqrt", "floor"),
    *("ceil", "trunc", "rint", "sign", "fabs", "deg2rad", "rad2deg", "radians", "degrees"),
    *("arctan2", "hypot", "fmod", "remainder", "floor_divide", "divmod", "power", "float_power"),
    *("maximum", "minimum", "less", "less_equal", "greater", "greater_equal", "equal", "not_equal"),
    *("fmax", "fmin", "heaviside", "copysign", "logaddexp"),
    *("logical_and", "logical_or", "logical_xor", "logical_not", "isnan", "isfinite", "isinf"),
)

_NESTED = (np.ndarray, list, tuple)
_ON_PLAIN_ARRAYS = ContextVar("on_plain_arrays", default=False)
_FACTORISATIONS = {
    getattr(np.linalg, name)
    for name in ("cond", "eig", "eigh", "eigvals", "eigvalsh", "lstsq", "matrix_rank", "pinv")
    + ("qr", "slogdet", "svd", "svdvals", "tensorinv", "tensorsolve")
}


class Dispatching:
    """What NumPy asks before it does something itself."""

    __slots__ = ()

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        if "out" in keywords:
            keywords["out"] = tuple(map(plain, keywords["out"]))
        own = _entrywise().get(ufunc.__name__, ufunc)
        return _result(getattr(own, method)(*map(plain, inputs), **keywords))

    def __array_function__(
        self, function: Any, types: Any, args: Sequence[Any], keywords: dict[str, Any]
    ) -> Any:
        own = FUNCTIONS.get(function)
        if own is None and function in _FACTORISATIONS:
            raise TraceError(
                f"np.linalg.{function.__name__} is not traced; expected solve, inv, det, cholesky, "
                f"norm or matrix_power of a small matrix"
            )
        if own is not None:
            return _result(own(*args, **keywords))
        # what NumPy does itself knows arrays alone
        empty = np.empty(0, object).view(Traced)
        args = tuple(map(_boxed, args))
        keywords = {k: _boxed(x) for k, x in keywords.items()}
        return _result(np.ndarray.__array_function__(empty, function, (Traced,), args, keywords))


class Traced(Dispatching, np.ndarray):
    """An array of traced scalars, and of numbers among them."""

    @staticmethod
    def on_plain_arrays(
        fn: Callable[..., Any], args: Sequence[Any], keywords: dict[str, Any]
    ) -> Any:
        """What a function that knows nothing of traced arrays makes of them, as traced arrays."""
        args = [plain(x) if isinstance(x, Traced) else x for x in args]
        keywords = {k: plain(x) if isinstance(x, Traced) else x for k, x in keywords.items()}
        before = _ON_PLAIN_ARRAYS.set(True)
        try:
            return traced(fn(*args, **keywords))
        finally:
            _ON_PLAIN_ARRAYS.reset(before)


def traced(x: Any) -> Any:
    """Arrays of objects as traced ones, also in a tuple; anything else as it is."""
    if isinstance(x, np.ndarray):
        return x.view(Traced)[()] if x.dtype == object else x
    if isinstance(x, tuple):
        parts = map(traced, x)
        return type(x)(*parts) if hasattr(x, "_fields") else tuple(parts)
    return x


def _result(x: Any) -> Any:
    """What NumPy is answered: in algorithms plain arrays, elsewhere traced ones."""
    return x if _ON_PLAIN_ARRAYS.get() else traced(x)


def _boxed(x: Any) -> Any:
    """Traced scalars, and lists of them, as arrays, also inside of lists and the like."""
    if isinstance(x, Dispatching):
        return plain(x).view(Traced)
    if isinstance(x, dict):
        return {k: _boxed(value) for k, value in x.items()}
    if type(x) not in (list, tuple):
        return x
    if any(isinstance(e, Elementary) for e in x) and not any(isinstance(e, _NESTED) for e in x):
        return np.array(x, object).view(Traced)
    return type(x)(map(_boxed, x))


@lru_cache(maxsize=1)
def _entrywise() -> dict[str, Any]:
    """For names of ufuncs those that work on entries."""
    own = {
        name: np.frompyfunc(partial(_by_method, name), f.nin, f.nout)
        for name in _BY_ENTRY
        for f in [getattr(np, name)]
    }
    return own | {"clip": np.frompyfunc(_clipped, 3, 1)}


def _by_method(name: str, x: Any, *others: Any) -> Any:
    """What the method of a traced scalar does, or NumPy with numbers."""
    if not isinstance(x, Elementary):
        node = next((other for other in others if isinstance(other, Elementary)), None)
        if node is None:
            return getattr(np, name)(x, *others)
        x = node.graph.lift(x)
    return getattr(x, name)(*others)


def _clipped(x: Any, low: Any, high: Any) -> Any:
    return _by_method("minimum", _by_method("maximum", x, low), high)
