"""How many units in the last place elementary functions are off, against many digits (mpmath).

Arguments are of every size that a function takes, subnormal ones too, next to where it is 0 or has
a branch, and uniform in between.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import mpmath
import numpy as np

import hinge

__all__ = ["FUNCTIONS", "Function", "section", "worst"]

Arrays = tuple[np.ndarray, ...]
_BITS = 160


class Function(NamedTuple):
    """A function of NumPy's name, what it is exactly, and random arguments, a number of them."""

    exact: Callable[..., Any]
    arguments: Callable[[np.random.Generator, int], Arrays]
    about: str


def _sizes(rng: np.random.Generator, n: int, low: float, high: float) -> np.ndarray:
    """Numbers from 2^low to 2^high, as many of every size."""
    return 2.0 ** rng.uniform(low, high, n)


def _anywhere(rng: np.random.Generator, n: int, *, low: float, high: float, near: float) -> Arrays:
    """Between two numbers, of any size down to subnormals, and uniform near 0."""
    small = _sizes(rng, n, -1074, 2) * rng.choice([-1.0, 1.0], n)
    parts = [rng.uniform(low, high, n), small, rng.uniform(-near, near, n)]
    return (np.clip(np.concatenate(parts), low, high),)


def _positive(rng: np.random.Generator, n: int) -> Arrays:
    return (np.concatenate([_sizes(rng, n, -1074, 1023), rng.uniform(0.5, 2, n)]),)


def _above_one(rng: np.random.Generator, n: int) -> Arrays:
    return (1 + np.concatenate([_sizes(rng, n, -52, 4), _sizes(rng, n, 0, 1000)]),)


def _any_size(rng: np.random.Generator, n: int, lowest: float = -np.inf) -> Arrays:
    x = np.concatenate([_sizes(rng, n, -1074, 1000), _sizes(rng, n, -5, 5)])
    return (np.maximum(x * rng.choice([-1.0, 1.0], 2 * n), lowest),)


def _within_one(rng: np.random.Generator, n: int) -> Arrays:
    x = np.concatenate([_sizes(rng, n, -1074, 0), 1 - _sizes(rng, n, -52, -1)])
    return (x * rng.choice([-1.0, 1.0], 2 * n),)


def _pairs(rng: np.random.Generator, n: int) -> Arrays:
    x, y = ((_any_size(rng, n)[0]) for _ in range(2))
    return x, y


def _bases(rng: np.random.Generator, n: int) -> Arrays:
    x = np.concatenate([_sizes(rng, n, -1074, 1000), _sizes(rng, n, -1, 1), _sizes(rng, n, -8, 8)])
    return x, rng.uniform(-700, 700, 3 * n) / np.maximum(1, np.abs(np.log(x)))


FUNCTIONS = {
    "sin": Function(mpmath.sin, partial(_anywhere, low=-1e5, high=1e5, near=4), "up to 10⁵"),
    "cos": Function(mpmath.cos, partial(_anywhere, low=-1e5, high=1e5, near=4), "up to 10⁵"),
    "tan": Function(mpmath.tan, partial(_anywhere, low=-1e5, high=1e5, near=4), "up to 10⁵"),
    "arcsin": Function(mpmath.asin, _within_one, "all"),
    "arccos": Function(mpmath.acos, _within_one, "all"),
    "arctan2": Function(mpmath.atan2, _pairs, "all"),
    "exp": Function(mpmath.exp, partial(_anywhere, low=-745, high=709, near=2), "all"),
    "expm1": Function(mpmath.expm1, partial(_anywhere, low=-50, high=709, near=2), "all"),
    "log": Function(mpmath.log, _positive, "all"),
    "log1p": Function(mpmath.log1p, partial(_any_size, lowest=-0.9999), "all"),
    "sinh": Function(mpmath.sinh, partial(_anywhere, low=-710, high=710, near=2), "all"),
    "cosh": Function(mpmath.cosh, partial(_anywhere, low=-710, high=710, near=2), "all"),
    "tanh": Function(mpmath.tanh, partial(_anywhere, low=-25, high=25, near=2), "all"),
    "arcsinh": Function(mpmath.asinh, _any_size, "all"),
    "arccosh": Function(mpmath.acosh, _above_one, "all"),
    "arctanh": Function(mpmath.atanh, _within_one, "all"),
    "hypot": Function(mpmath.hypot, _pairs, "all"),
    "power": Function(mpmath.power, _bases, "x > 0"),
}


def worst(name: str, dtype: Any, count: int = 1000, kernel: Any = None) -> float:
    """The largest error of a compiled function, in units of the last place."""
    function, rng = FUNCTIONS[name], np.random.default_rng(0)
    with np.errstate(all="ignore"):
        x = [a.astype(dtype) for a in function.arguments(rng, count)]
    got = (kernel or compiled(name, dtype))(*x)
    with mpmath.workprec(_BITS):
        pairs = zip(got, zip(*x, strict=True), strict=True)
        return max(_off(g, given, function.exact, dtype) for g, given in pairs)


def compiled(name: str, dtype: Any) -> hinge.Kernel:
    """The function alone, as a kernel of scalars."""
    fn: Any = getattr(np, name)
    if name in ("arctan2", "hypot", "power"):
        return hinge.compile(lambda x, y: fn(x, y), dtype=dtype, x=(), y=())
    return hinge.compile(lambda x: fn(x), dtype=dtype, x=())


def _off(got: Any, x: tuple[Any, ...], exact: Callable[..., Any], dtype: Any) -> float:
    """Units in the last place; where an argument or the result is 0 or out of range nothing."""
    with np.errstate(all="ignore"):
        if not np.isfinite(x).all() or not np.all(x):
            return 0.0
        truth = exact(*(mpmath.mpf(float(a)) for a in x))
        nearest = dtype(float(truth))
        if not np.isfinite(nearest):
            return 0.0
        unit = mpmath.mpf(float(np.spacing(np.abs(nearest))))
        return float(abs(mpmath.mpf(float(got)) - truth) / unit) if np.isfinite(got) else np.inf


_TEXT = """Compiled functions against 160 bits (mpmath), the largest error of some thousand random
arguments of every size, subnormal ones too, in units of the last place (0.5 is exact rounding).
Results at ±0, ±∞, NaN and where they overflow are those of NumPy, sign included.
The same code runs on CPUs, on vectors and single numbers, and on GPUs; C calls the C library.
Sums, products, quotients, √x, |x|, floor, rint and % are the hardware's, or exact."""


def section(count: int = 3000) -> list[str]:
    """Lines of the page."""
    lines = ["", "## Elementary functions", "", _TEXT, "", "| | arguments | float64 | float32 |"]
    lines.append("|---|---|---:|---:|")
    for name, function in FUNCTIONS.items():
        cells = " | ".join(f"{worst(name, t, count):.2f}" for t in (np.float64, np.float32))
        lines.append(f"| `np.{name}` | {function.about} | {cells} |")
    return lines
