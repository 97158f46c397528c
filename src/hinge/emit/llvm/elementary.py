"""Elementary functions as LLVM, for any number of lanes: exp, log, powers, angles and the like.

On vectors each is straight-line code of sums, products and bits, without tables, and without a call
of the C library but for tangents of angles past 10⁶.  What would lose digits is carried in two
parts (Dekker): quotients, and the logarithm of 66 bits that powers need.  Errors are on the page
`accuracy`.  Floats go through double.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from .arithmetic import Arithmetic
from .builder import UNLIKELY, Value

__all__ = ["ELEMENTARY"]

# below this x is x + x²
_TINY = 2.0**-54


def _exp(w: Arithmetic, x: Value) -> Value:
    """eˣ."""
    r, q, k = w.exp(w.bounded(x, -746.0, 710.0))
    return w.scaled(w.add(w(1.0), w.add(r, q)), k)


def _expm1(w: Arithmetic, x: Value) -> Value:
    """eˣ − 1."""
    value = w.add(*w.expm1_in_two(w.bounded(x, -40.0, 710.0)))
    return w.select(w.compare("olt", w.size(x), _TINY), x, value)


def _log(w: Arithmetic, x: Value) -> Value:
    """The natural logarithm."""
    return w.log(x)


def _log1p(w: Arithmetic, x: Value) -> Value:
    """log(1 + x)."""
    value = w.log(*w.sum(w(1.0), x))
    return w.select(w.compare("olt", w.size(x), _TINY), x, value)


def _sinh(w: Arithmetic, x: Value) -> Value:
    """½ (E + E / (E + 1)), E = exp |x| − 1; past 40 the second term is nothing beside the first."""
    size = w.size(x)
    small = w.bounded(size, 0.0, 40.0)
    high, low = w.expm1_in_two(small)
    top, rest = w.sum(w(1.0), high)
    second, lost = w.quotient((high, low), (top, w.add(rest, low)))
    top, rest = w.ordered_sum(high, second)
    value = w.mul(w(0.5), w.add(top, w.add(rest, w.add(low, lost))))
    value = w.select(w.compare("ogt", size, 40.0), _half_of_exp(w, size), value)
    return w.signed(w.select(w.compare("olt", size, _TINY), size, value), x)


def _half_of_exp(w: Arithmetic, size: Value) -> Value:
    """½ eˣ."""
    r, q, k = w.exp(w.bounded(size, 0.0, 712.0))
    return w.scaled(w.add(w(1.0), w.add(r, q)), w.whole("sub", k, 1))


def _cosh(w: Arithmetic, x: Value) -> Value:
    """½ eˣ + ¼ / (½ eˣ) of |x|."""
    (high, low), k = w.exp_in_two(w.bounded(w.size(x), 0.0, 712.0))
    k = w.whole("sub", k, 1)
    half, rest = w.scaled(high, k), w.scaled(low, k)
    return w.add(half, w.add(rest, w.div(w(0.25), half)))


def _tanh(w: Arithmetic, x: Value) -> Value:
    """E / (E + 2), E = exp 2|x| − 1."""
    size = w.size(x)
    high, low = w.expm1_in_two(w.bounded(w.mul(w(2.0), size), 0.0, 60.0))
    top, rest = w.sum(w(2.0), high)
    value = w.add(*w.quotient((high, low), (top, w.add(rest, low))))
    return w.signed(w.select(w.compare("olt", size, _TINY), size, value), x)


def _asinh(w: Arithmetic, x: Value) -> Value:
    """log1p(|x| + x² / (1 + √(1 + x²))); past 2²⁸ log |x| + log 2."""
    size = w.size(x)
    large = w.compare("ogt", size, 2.0**28)
    a = w.select(large, 1.0, size)
    square = w.mul(a, a)
    root = w.intrinsic("sqrt", w.add(w(1.0), square))
    more, lost = w.ordered_sum(a, w.div(square, w.add(w(1.0), root)))
    high, low = w.sum(w(1.0), more)
    moderate = w.log(high, w.add(low, lost))
    value = w.select(large, w.add(w.log(size), w(math.log(2))), moderate)
    return w.signed(w.select(w.compare("olt", size, 2.0**-27), size, value), x)


def _acosh(w: Arithmetic, x: Value) -> Value:
    """log1p(t + √(2 t + t²)), t = x − 1; past 2²⁸ log x + log 2."""
    large = w.compare("ogt", x, 2.0**28)
    t, rest = w.sum(w.select(large, 2.0, x), w(-1.0))
    root = w.intrinsic("sqrt", w.fma(t, t, w.mul(w(2.0), t)))
    more, lost = w.sum(root, t)
    high, low = w.sum(w(1.0), more)
    moderate = w.log(high, w.add(low, w.add(lost, rest)))
    moderate = w.select(w.compare("oeq", x, 1.0), 0.0, moderate)
    value = w.select(large, w.add(w.log(x), w(math.log(2))), moderate)
    return w.select(w.compare("oge", x, 1.0), value, math.nan)


def _atanh(w: Arithmetic, x: Value) -> Value:
    """½ log1p(2 |x| / (1 − |x|))."""
    size = w.size(x)
    high, low = w.quotient((w.mul(w(2.0), size), w(0.0)), w.sum(w(1.0), w.neg(size)))
    top, rest = w.sum(w(1.0), high)
    value = w.mul(w(0.5), w.log(top, w.add(rest, low)))
    value = w.select(w.compare("oeq", size, 1.0), math.inf, value)
    return w.signed(w.select(w.compare("olt", size, 2.0**-28), size, value), x)


def _tan(w: Arithmetic, x: Value) -> Value:
    """sin x / cos x, both in two parts, the other way round after an odd number of quarters."""
    code = w.code
    beyond = w.beyond(x)
    large = w.any(beyond)
    r, tail, quadrant = w.reduced(x)
    z, rest = w.product(r, r)
    # sin r = r + r z S(z), cos r = 1 − ½ z + z² C(z)
    s, c = w.polynomials(z)
    sine = w.ordered_sum(r, w.fma(w.mul(r, z), s, tail))
    top, lost = w.ordered_sum(w(1.0), w.mul(w(-0.5), z))
    small = w.sub(w.mul(w.mul(z, z), c), w.fma(w(0.5), rest, w.mul(r, tail)))
    cosine = w.ordered_sum(top, w.add(lost, small))
    odd = code.compare("icmp ne", w.whole("and", quadrant, 1), w.f.pattern(0))
    over = [code.select(odd, w.neg(b), a) for a, b in zip(sine, cosine, strict=True)]
    under = [code.select(odd, a, b) for a, b in zip(sine, cosine, strict=True)]
    value = w.add(*w.quotient((over[0], over[1]), (under[0], under[1])))
    value = w.select(w.compare("olt", w.size(x), 2.0**-27), x, value)
    with code.when(large, UNLIKELY) as case:
        sine_of, cosine_of = w.from_library(x, beyond, value, w(1.0))
        slow = w.div(sine_of, cosine_of)
    return code.merged(case, slow, value)


def _atan2(w: Arithmetic, y: Value, x: Value) -> Value:
    """The angle of (x, y), as in C."""
    across, along = w.size(y), w.size(x)
    steep = w.compare("ogt", across, along)
    small, large = w.select(steep, along, across), w.select(steep, across, along)
    # 0/0 is 0, ∞/∞ is 1
    t = w.select(w.compare("oeq", small, large), 1.0, w.div(small, large))
    t = w.select(w.compare("oeq", large, 0.0), 0.0, t)
    angle = w.from_part_of_pi(steep, w.atan(t), 0.5)
    backwards = w.code.compare("icmp slt", w.bits(x), w.f.pattern(0))
    value = w.signed(w.add(*w.from_part_of_pi(backwards, angle, 1.0)), y)
    return w.select(w.compare("uno", x, y), w.add(x, y), value)


def _other_leg(w: Arithmetic, x: Value) -> Value:
    """√(1 − x²)."""
    high, low = w.product(x, x)
    return w.intrinsic("sqrt", w.sub(w.sub(w(1.0), high), low))


def _angle(w: Arithmetic, y: Value, x: Value) -> Value:
    return w.code.call(f"atan2_{w.f.name}", y, x, result=w.f.type)


def _asin(w: Arithmetic, x: Value) -> Value:
    """The angle of (√(1 − x²), x)."""
    return _angle(w, x, _other_leg(w, x))


def _acos(w: Arithmetic, x: Value) -> Value:
    """The angle of (x, √(1 − x²))."""
    return _angle(w, _other_leg(w, x), x)


def _hypot(w: Arithmetic, x: Value, y: Value) -> Value:
    """√(x² + y²), both by a power of two that keeps squares in range."""
    x, y = w.size(x), w.size(y)
    first = w.compare("ogt", x, y)
    large, small = w.select(first, x, y), w.select(first, y, x)
    exponent = w.whole("and", w.bits(w.bounded(large, 2.0**-1022, 2.0**1022)), 0x7FF << 52)
    scale = w.number(w.whole("sub", w.f.pattern(2046 << 52), exponent))
    (a, lost), b = w.product(*[w.mul(large, scale)] * 2), w.mul(small, scale)
    root = w.intrinsic("sqrt", w.add(a, w.fma(b, b, lost)))
    value = w.mul(root, w.number(exponent))
    value = w.select(w.compare("oeq", x, math.inf), x, value)
    return w.select(w.compare("oeq", y, math.inf), y, value)


def _pow(w: Arithmetic, x: Value, y: Value) -> Value:
    """exp(y log |x|), with the sign of xʸ; 1 of anything to 0, and of 1 to anything."""
    size = w.size(x)
    high, low = w.log_in_two(size)
    high = w.logarithm_at_ends(size, high)
    top, rest = w.product(y, high)
    near = w.compare("olt", w.size(top), 800.0)
    rest = w.select(near, w.fma(y, low, rest), 0.0)
    r, q, k = w.exp(w.bounded(top, -800.0, 800.0), rest)
    value = w.scaled(w.add(w(1.0), w.add(r, q)), k)
    value = w.select(w.compare("oeq", size, 1.0), 1.0, value)
    return _with_sign_of_power(w, x, y, value)


def _with_sign_of_power(w: Arithmetic, x: Value, y: Value, value: Value) -> Value:
    """|x|ʸ made xʸ: negative x need whole y, odd ones of which keep the sign, that of 0 too."""
    half = w.mul(w(0.5), y)
    whole = w.compare("oeq", w.intrinsic("floor", y), y)
    odd = w.code.op("and", whole, w.compare("one", w.intrinsic("floor", half), half))
    value = w.select(odd, w.signed(value, x), value)
    sensible = w.code.op("or", whole, w.compare("uge", x, 0.0))
    sensible = w.code.op("or", sensible, w.compare("oeq", x, -math.inf))
    value = w.select(sensible, value, math.nan)
    value = w.select(w.compare("oeq", y, 0.0), 1.0, value)
    return w.select(w.compare("oeq", x, 1.0), 1.0, value)


def _fmod(w: Arithmetic, x: Value, y: Value) -> Value:
    """x − n y, n = x/y towards 0: exactly, some bits of n at a time."""
    code, f = w.code, w.f
    bits = 51 if f.fused else 24
    y = w.size(y)
    sensible = code.op("and", w.compare("olt", w.size(x), math.inf), w.compare("ogt", y, 0.0))
    with code.loop(w.select(sensible, w.size(x), math.nan)) as loop:
        (left,) = loop.carried
        code.stay(loop, w.any(w.compare("oge", left, y)))
        over = w.whole("sub", _exponent(w, left), w.whole("add", _exponent(w, y), bits))
        none = code.compare("icmp slt", over, f.pattern(0))
        over = code.select(none, f.pattern(0), over)
        half = w.whole("ashr", over, 1)
        divisor = w.scaled(w.scaled(y, half), w.whole("sub", over, half))
        n = w.intrinsic("floor", w.div(left, divisor))
        high, low = w.product(n, divisor)
        rest = w.sub(w.sub(left, high), low)
        rest = w.select(w.compare("olt", rest, 0.0), w.add(rest, divisor), rest)
        loop.next = [w.select(w.compare("oge", left, y), rest, left)]
    return w.signed(left, x)


def _exponent(w: Arithmetic, x: Value) -> Value:
    """⌊log₂ x⌋ and a constant."""
    tiny = w.compare("olt", x, 2.0**-1022)
    found = w.whole("lshr", w.bits(w.select(tiny, w.mul(x, w(2.0**54)), x)), 52)
    return w.code.select(tiny, w.whole("sub", found, 54), found)


class _Written(NamedTuple):
    """How a function is written, and how many arguments it has."""

    write: Callable[..., Value]
    arity: int = 1


ELEMENTARY = {
    "exp": _Written(_exp),
    "expm1": _Written(_expm1),
    "log": _Written(_log),
    "log1p": _Written(_log1p),
    "sinh": _Written(_sinh),
    "cosh": _Written(_cosh),
    "tanh": _Written(_tanh),
    "asinh": _Written(_asinh),
    "acosh": _Written(_acosh),
    "atanh": _Written(_atanh),
    "tan": _Written(_tan),
    "asin": _Written(_asin),
    "acos": _Written(_acos),
    "atan2": _Written(_atan2, 2),
    "hypot": _Written(_hypot, 2),
    "pow": _Written(_pow, 2),
    "fmod": _Written(_fmod, 2),
}
