"""What cards have no instruction for: sines of large angles, and atan2, out of line.

Sines of angles up to 10⁶ (float: 6000) are inline, as on CPUs.  A larger angle takes a call, which
a thread makes for itself; so what the call needs is no burden on the others.  Its reduction is
Payne and Hanek's, exact for every double: with x = m 2ᵉ, m whole,

    x · 2/π mod 4 = 4 (m F mod 1),   F = 2ᵉ⁻² · 2/π mod 1                                        (1)

where the 192 bits of F that count are read from a table; the product of whole numbers keeps 128
bits behind the point, at least 64 of which are left of any double.  atan2 is fdlibm's (e_atan2.c,
s_atan.c) without branches.  Floats go through double.  Infinite and NaN give NaN.
"""

from __future__ import annotations

from functools import lru_cache

from ...graph.operations import intrinsics
from ..llvm.builder import Function, Value, i64
from ..llvm.flavor import Flavor
from ..llvm.math import Series

__all__ = ["device_functions"]

_DOUBLE, _PAIR = Flavor(1, "double", fused=True), "{ double, double }"
# zeros before the bits of 2/π, for exponents below 0; and words of 64 bits
_BEFORE, _WORDS = 64, 21
_TABLE = Value("ptr addrspace(1)", "@two_over_pi")

# atan on [0, 7/16], from the highest power down, in powers of t² (fdlibm s_atan.c)
_ATAN = (
    1.62858201153657823623e-02,
    -3.65315727442169155270e-02,
    4.97687799461593236017e-02,
    -5.83357013379057348645e-02,
    6.66107313738753120669e-02,
    -7.69187620504482999495e-02,
    9.09088713343650656196e-02,
    -1.11111104054623557880e-01,
    1.42857142725034663711e-01,
    -1.99999999998764832476e-01,
    3.33333333333329318027e-01,
)
# (from which t on, k: atan t = atan k + atan((t − k)/(1 + k t)), atan k, and what it lacks)
_BASES = (
    (7 / 16, 0.5, 4.63647609000806093515e-01, 2.26987774529616870924e-17),
    (11 / 16, 1.0, 7.85398163397448278999e-01, 3.06161699786838301793e-17),
)
_PI, _PI_REST = 3.14159265358979311600e00, 1.22464679914735317636e-16


def device_functions(f: Flavor) -> str:
    """Everything that bodies call: intrinsics, and the functions of this module."""
    needed = {"fabs": 1, "fma": 3, "fmuladd": 3} | intrinsics()
    lines = [_declared(name, n, f.suffix, f.type) for name, n in needed.items()]
    if f.scalar == "float":
        lines += [_declared(name, n, "f64", "double") for name, n in needed.items()]
    lines += ["declare i64 @llvm.ctlz.i64(i64, i1)", "declare i64 @llvm.fshl.i64(i64, i64, i64)"]
    lines += [_table(), _slow_sincos(), _atan2()]
    return "\n".join([*lines, *_of_float()] if f.scalar == "float" else lines)


def _declared(name: str, count: int, suffix: str, kind: str) -> str:
    return f"declare {kind} @llvm.{name}.{suffix}({', '.join([kind] * count)})"


def _of_float() -> list[str]:
    """The same of floats."""
    pair = "{ float, float }"
    code = Function("slow_sincos_f32", pair, "float x", attributes="noinline cold #1")
    wide = code.cast("fpext", code.parameters[0], "double")
    both = code.call("slow_sincos_f64", wide, result=_PAIR)
    value = Value(pair, "poison")
    for i in range(2):
        part = code.cast("fptrunc", code.let("double", f"extractvalue {both}, {i}"), "float")
        value = code.let(pair, f"insertvalue {value}, {part}, {i}")
    sines = code.ret(value).text()
    code = Function("atan2_f32", "float", "float y", "float x", attributes="noinline #1")
    given = [code.cast("fpext", x, "double") for x in code.parameters]
    angle = code.call("atan2_f64", *given, result="double")
    return [sines, code.ret(code.cast("fptrunc", angle, "float")).text()]


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


# atan2


def _atan2() -> str:
    """The angle of (x, y), as in C."""
    code = Function("atan2_f64", "double", "double y", "double x", attributes="noinline #1")
    y, x = code.parameters
    across, along = (code.call("llvm.fabs.f64", a, result="double") for a in (y, x))
    steep = code.compare("fcmp ogt", across, along)
    small, large = code.select(steep, along, across), code.select(steep, across, along)
    t = code.op("fdiv", small, large)
    # 0/0 is 0, ∞/∞ is 1
    same, none = code.compare("fcmp oeq", small, large), code.compare("fcmp oeq", large, _number(0))
    t = code.select(same, _number(1.0), t)
    t = code.select(none, _number(0.0), t)
    angle, rest = _atan(code, t)
    angle, rest = _from(code, steep, angle, rest, 0.5)
    backwards = code.compare("icmp slt", code.cast("bitcast", x, "i64"), 0)
    angle, rest = _from(code, backwards, angle, rest, 1.0)
    angle = code.op("fadd", angle, rest)
    sign = code.op("and", code.cast("bitcast", y, "i64"), 1 << 63)
    bits = code.op("or", code.cast("bitcast", angle, "i64"), sign)
    unordered = code.compare("fcmp uno", x, y)
    return code.ret(
        code.select(unordered, code.op("fadd", x, y), code.cast("bitcast", bits, "double"))
    ).text()


def _number(x: float) -> Value:
    return _DOUBLE.value(x)


def _from(
    code: Function, truth: Value, angle: Value, rest: Value, part: float
) -> tuple[Value, Value]:
    """Where it is so, a part of π less the angle, in two parts."""
    whole, lacking = _number(part * _PI), _number(part * _PI_REST)
    top = code.op("fsub", whole, angle)
    lost = code.op("fsub", code.op("fsub", whole, top), angle)
    below = code.op("fadd", lost, code.op("fsub", lacking, rest))
    return code.select(truth, top, angle), code.select(truth, below, rest)


def _atan(code: Function, t: Value) -> tuple[Value, Value]:
    """atan t for 0 ≤ t ≤ 1, in two parts."""
    angle = rest = _number(0.0)
    turned = t
    for start, k, base, lacking in _BASES:
        beyond = code.compare("fcmp oge", t, _number(start))
        above = code.op("fsub", t, _number(k))
        below = code.call("llvm.fmuladd.f64", t, _number(k), _number(1.0), result="double")
        turned = code.select(beyond, code.op("fdiv", above, below), turned)
        angle = code.select(beyond, _number(base), angle)
        rest = code.select(beyond, _number(lacking), rest)
    z = code.op("fmul", turned, turned)
    series = _number(_ATAN[0])
    for c in _ATAN[1:]:
        series = code.call("llvm.fmuladd.f64", series, z, _number(c), result="double")
    # t − t z S(z)
    less = code.op("fmul", code.op("fmul", turned, z), series)
    small = code.op("fsub", rest, less)
    top = code.op("fadd", angle, turned)
    lost = code.op("fadd", code.op("fsub", angle, top), turned)
    return top, code.op("fadd", lost, small)
