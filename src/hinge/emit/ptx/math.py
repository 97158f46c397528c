"""What GPUs have no instruction for: sines of large angles, and elementary functions, out of line.

Sines of angles up to 10⁶ (float: 6000) are inline, as on CPUs.  A larger angle takes a call, which
a thread makes for itself; so what the call needs is no burden on the others.  Its reduction is
Payne and Hanek's, exact for every double: with x = m 2ᵉ, m whole,

    x · 2/π mod 4 = 4 (m F mod 1),   F = 2ᵉ⁻² · 2/π mod 1                                        (1)

where the 192 bits of F that count are read from a table; the product of whole numbers keeps 128
bits behind the point, at least 64 of which are left of any double.  Elementary functions are those
of CPUs (`emit/llvm/elementary.py`).  Floats go through double.
"""

from __future__ import annotations

from functools import lru_cache

from ..llvm.builder import Function, Value, i64
from ..llvm.flavor import Flavor
from ..llvm.library import declared_intrinsics, definitions
from ..llvm.math import Series

__all__ = ["device_functions"]

_DOUBLE, _PAIR = Flavor(1, "double", fused=True), "{ double, double }"
# zeros before the bits of 2/π, for exponents below 0; and words of 64 bits
_BEFORE, _WORDS = 64, 21
_TABLE = Value("ptr addrspace(1)", "@two_over_pi")


def device_functions(f: Flavor, text: str) -> str:
    """Everything that a text calls: intrinsics, elementary functions, and those of this module."""
    lines = declared_intrinsics(f)
    if f.scalar == "float":
        lines += [*declared_intrinsics(_DOUBLE), _of_float()]
    lines += ["declare i64 @llvm.ctlz.i64(i64, i1)", "declare i64 @llvm.fshl.i64(i64, i64, i64)"]
    return "\n".join([*lines, _table(), _slow_sincos(), definitions(text, f, complete=True)])


def _of_float() -> str:
    """The sine and cosine of a float."""
    pair = "{ float, float }"
    code = Function("slow_sincos_f32", pair, "float x", attributes="noinline cold #1")
    wide = code.cast("fpext", code.parameters[0], "double")
    both = code.call("slow_sincos_f64", wide, result=_PAIR)
    value = Value(pair, "poison")
    for i in range(2):
        part = code.cast("fptrunc", code.let("double", f"extractvalue {both}, {i}"), "float")
        value = code.let(pair, f"insertvalue {value}, {part}, {i}")
    return code.ret(value).text()


# sines of large angles


@lru_cache(maxsize=1)
def _table() -> str:
    """The bits of 2/π, in words: π by Machin's formula, in whole numbers."""
    bits = 64 * _WORDS
    one = 1 << (bits + 64)

    def inverse_tangent(n: int) -> int:
        total, term, k = 0, one // n, 1
        while term:
            total += term // k if k % 4 == 1 else -(term // k)
            term, k = term // (n * n), k + 2
        return total

    pi = 4 * (4 * inverse_tangent(5) - inverse_tangent(239))
    number = (2 * one << (bits - _BEFORE)) // pi
    words = (number >> (bits - 64 * (i + 1)) & (1 << 64) - 1 for i in range(_WORDS))
    listed = ", ".join(f"i64 {word}" for word in words)
    return f"@two_over_pi = internal addrspace(1) constant [{_WORDS} x i64] [{listed}]"


def _slow_sincos() -> str:
    """Sine and cosine of an angle that is not small."""
    code = Function("slow_sincos_f64", _PAIR, "double x", attributes="noinline cold #1")
    (x,) = code.parameters
    bits = code.cast("bitcast", x, "i64")
    exponent = code.op("and", code.op("lshr", bits, 52), 2047)
    m = code.op("or", code.op("and", bits, (1 << 52) - 1), 1 << 52)
    place = code.op("sub", exponent, 1023 + 52 + 2 - _BEFORE)
    r, quadrant = _rest(code, _turned(code, m, place))
    series = Series(code, _DOUBLE)
    s, c = series.turned(quadrant, *series.kernels_fused(r))
    # sin(−x) = −sin x; what is not finite leaves NaN
    sign = code.op("and", bits, 1 << 63)
    s = code.cast("bitcast", code.op("xor", code.cast("bitcast", s, "i64"), sign), "double")
    nothing = code.op("fsub", x, x)
    value = Value(_PAIR, "poison")
    for i, part in enumerate((s, c)):
        value = code.let(_PAIR, f"insertvalue {value}, {code.op('fadd', part, nothing)}, {i}")
    return code.ret(value).text()


def _turned(code: Function, m: Value, place: Value) -> Value:
    """m F mod 1 in 128 bits, F from the bit of the table on that is at a place."""
    word, shift = code.op("lshr", place, 6), code.op("and", place, 63)
    words = [_word(code, code.op("add", word, k)) for k in range(4)]
    pairs = zip(words, words[1:], strict=False)
    high, middle, low = (code.call("llvm.fshl.i64", *p, shift, result="i64") for p in pairs)
    wide = [code.cast("zext", x, "i128") for x in (m, high, middle, low)]
    top = code.op("shl", code.op("mul", wide[0], wide[1]), 64)
    rest = code.op("lshr", code.op("mul", wide[0], wide[3]), 64)
    return code.op("add", code.op("add", top, code.op("mul", wide[0], wide[2])), rest)


def _word(code: Function, index: Value) -> Value:
    """A word of the table; for what is not finite the last, whatever it is."""
    within = code.compare("icmp ult", index, _WORDS)
    index = code.select(within, index, i64(_WORDS - 1))
    where = code.let(_TABLE.type, f"getelementptr i64, {_TABLE}, {index}")
    return code.load("i64", where)


def _rest(code: Function, turns: Value) -> tuple[Value, Value]:
    """From quarter turns, the point after two bits: the angle to the nearest quarter, and which."""
    quadrant = code.cast("trunc", code.op("lshr", turns, 126), "i64")
    part = code.op("shl", turns, 2)
    negative = code.compare("icmp slt", part, 0)
    quadrant = code.op("add", quadrant, code.cast("zext", negative, "i64"))
    part = code.select(negative, code.op("sub", Value("i128", "0"), part), part)
    # the leading 64 bits, of which the exponent is known
    upper, lower = (code.cast("trunc", x, "i64") for x in (code.op("lshr", part, 64), part))
    empty = code.compare("icmp eq", upper, 0)
    first, second = code.select(empty, lower, upper), code.select(empty, i64(0), lower)
    zeros = code.call("llvm.ctlz.i64", first, Value("i1", "false"), result="i64")
    leading = code.call("llvm.fshl.i64", first, second, zeros, result="i64")
    zeros = code.op("add", zeros, code.select(empty, i64(64), i64(0)))
    # times π/4, in whole numbers, then twice that
    quarter = Value("i128", str(_PI_OVER_4))
    product = code.op("mul", code.cast("zext", leading, "i128"), quarter)
    size = code.cast("uitofp", code.cast("trunc", code.op("lshr", product, 64), "i64"), "double")
    scale = code.op("shl", code.op("sub", i64(1023 + 1 - 64), zeros), 52)
    r = code.op("fmul", size, code.cast("bitcast", scale, "double"))
    return code.select(negative, code.let("double", f"fneg {r}"), r), quadrant


# π/4 · 2⁶⁴
_PI_OVER_4 = 14488038916154245685
