"""What elementary functions are made of, as LLVM: numbers in two parts, exponents, series.

    exp x = 2ᵏ (1 + r + q),   x = k ln 2 + r + tail,   q = tail + r² Q(r),   |r| ≤ ½ ln 2        (1)
    log x = k ln 2 + 2 artanh s,   x = 2ᵏ (1 + f),   s = f / (2 + f),   ½ ≤ (1 + f)² < 2         (2)

with Taylor's series for Q and fdlibm's polynomials (e_log.c, s_atan.c) for logarithms and angles.
"""

from __future__ import annotations

import math

from .builder import Value
from .math import Series

__all__ = ["Arithmetic", "Two"]

# a number in two parts, of which the second is below half an ulp of the first
Two = tuple[Value, Value]

_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
# rounds to a whole number, which is in the lowest bits of the sum
_SHIFT, _SHIFT_BITS = 6755399441055744.0, 0x4338000000000000
_SMALLEST_NORMAL = 2.0**-1022
# the bits of √½, from which on the significand of a logarithm is taken
_ROOT_HALF, _ONE = 0x3FE6A09E00000000, 0x3FF0000000000000
_FRACTION = (1 << 52) - 1
_EXP = [1 / math.factorial(n) for n in range(13, 1, -1)]
# log(1 + f) = f − ½ f² + s (½ f² + R(s²)), from the highest power down
_LOG = (
    1.479819860511658591e-01,
    1.531383769920937332e-01,
    1.818357216161805012e-01,
    2.222219843214978396e-01,
    2.857142874366239149e-01,
    3.999999999940941908e-01,
    6.666666666666735130e-01,
)
# artanh s = s (1 + s² (⅓ + s²/5 + …)): what follows the third, and what that lacks
_ARTANH = [1 / n for n in range(23, 3, -2)]
_THIRD, _THIRD_REST = 1 / 3, 2.0**-54 / 3
# atan on [0, 7/16], from the highest power down, in powers of t²
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
# from which t on, k: atan t = atan k + atan((t − k)/(1 + k t)), atan k, and what it lacks
_BASES = (
    (7 / 16, 0.5, 4.63647609000806093515e-01, 2.26987774529616870924e-17),
    (11 / 16, 1.0, 7.85398163397448278999e-01, 3.06161699786838301793e-17),
)
_PI, _PI_REST = 3.14159265358979311600e00, 1.22464679914735317636e-16


class Arithmetic(Series):
    """What the functions are made of; all of doubles."""

    def __call__(self, x: float) -> Value:
        """A number."""
        return self.f.value(x)

    def add(self, a: Value, b: Value) -> Value:
        """A sum, rounded."""
        return self.code.op("fadd", a, b)

    def div(self, a: Value, b: Value) -> Value:
        """A quotient, rounded."""
        return self.code.op("fdiv", a, b)

    def neg(self, a: Value) -> Value:
        """−a."""
        return self.code.let(a.type, f"fneg {a}")

    def intrinsic(self, name: str, *args: Value) -> Value:
        """An intrinsic of LLVM."""
        return self.code.call(f"llvm.{name}.{self.f.suffix}", *args, result=self.f.type)

    def compare(self, how: str, a: Value, b: Value | float) -> Value:
        """Whether it is so; how: olt, ogt, uno and the like."""
        return self.code.compare(f"fcmp {how}", a, b if isinstance(b, Value) else self(b))

    def select(self, truth: Value, a: Value | float, b: Value | float) -> Value:
        """One or the other."""
        values = (x if isinstance(x, Value) else self(x) for x in (a, b))
        return self.code.select(truth, *values)

    def whole(self, how: str, a: Value, b: Value | int) -> Value:
        """An operation on bits."""
        return self.code.op(how, a, b if isinstance(b, Value) else self.f.pattern(b))

    def number(self, bits: Value) -> Value:
        """The number that has these bits."""
        return self.code.cast("bitcast", bits, self.f.type)

    def size(self, x: Value) -> Value:
        """|x|."""
        return self.intrinsic("fabs", x)

    def signed(self, size: Value, x: Value) -> Value:
        """The size with the sign of x."""
        return self.intrinsic("copysign", size, x)

    def bounded(self, x: Value, low: float, high: float) -> Value:
        """x between two bounds; NaN stays."""
        x = self.select(self.compare("olt", x, low), low, x)
        return self.select(self.compare("ogt", x, high), high, x)

    # numbers in two parts

    def ordered_sum(self, a: Value, b: Value) -> Two:
        """a + b, where |a| ≥ |b| or a is 0."""
        high = self.add(a, b)
        return high, self.sub(b, self.sub(high, a))

    def sum(self, a: Value, b: Value) -> Two:
        """a + b."""
        high = self.add(a, b)
        part = self.sub(high, a)
        return high, self.add(self.sub(a, self.sub(high, part)), self.sub(b, part))

    def product(self, a: Value, b: Value) -> Two:
        """a b."""
        high = self.mul(a, b)
        if self.f.fused:
            return high, self.intrinsic("fma", a, b, self.neg(high))
        (a1, a2), (b1, b2) = self._halves(a), self._halves(b)
        low = self.sub(self.mul(a1, b1), high)
        low = self.add(self.add(low, self.mul(a1, b2)), self.mul(a2, b1))
        return high, self.add(low, self.mul(a2, b2))

    def _halves(self, a: Value) -> Two:
        """A number in two parts of half of its bits."""
        high = self.number(self.whole("and", self.bits(a), -(1 << 27)))
        return high, self.sub(a, high)

    def times(self, a: Two, b: Two) -> Two:
        """a b of both parts."""
        high, low = self.product(a[0], b[0])
        return high, self.fma(a[0], b[1], self.fma(a[1], b[0], low))

    def quotient(self, a: Two, b: Two) -> Two:
        """a / b of both parts."""
        high = self.div(a[0], b[0])
        top, rest = self.product(high, b[0])
        left = self.sub(self.sub(a[0], top), rest)
        left = self.sub(self.add(left, a[1]), self.mul(high, b[1]))
        return high, self.div(left, b[0])

    # powers of two

    def power_of_two(self, k: Value) -> Value:
        """2ᵏ of a whole number from −1022 to 1023."""
        return self.number(self.whole("shl", self.whole("add", k, 1023), 52))

    def scaled(self, x: Value, k: Value) -> Value:
        """x 2ᵏ for |k| up to 2000, rounded once."""
        half = self.whole("ashr", k, 1)
        x = self.mul(x, self.power_of_two(half))
        return self.mul(x, self.power_of_two(self.whole("sub", k, half)))

    def rounded(self, x: Value, per: float) -> tuple[Value, Value]:
        """The whole number that is nearest to x · per, as a number and as bits."""
        shifted = self.fma(x, self(per), self(_SHIFT))
        return self.sub(shifted, self(_SHIFT)), self.whole("sub", self.bits(shifted), _SHIFT_BITS)

    # exp and log

    def exp(self, x: Value, more: Value | None = None) -> tuple[Value, Value, Value]:
        """r, q and k of (1) for |x| up to 1000; more: what x lacks."""
        n, k = self.rounded(x, 1 / math.log(2))
        above, below = self.sub(x, self.mul(n, self(_LN2_HIGH))), self.mul(n, self(_LN2_LOW))
        r = self.sub(above, below)
        tail = self.sub(self.sub(above, r), below)
        if more is not None:
            r, tail = self.sum(r, self.add(tail, more))
        return r, self.fma(self.mul(r, r), self.horner(r, _EXP), tail), k

    def exp_in_two(self, x: Value) -> tuple[Two, Value]:
        """exp x without its factor 2ᵏ, and k."""
        r, q, k = self.exp(x)
        high, low = self.ordered_sum(self(1.0), r)
        return self.ordered_sum(high, self.add(low, q)), k

    def expm1_in_two(self, x: Value) -> Two:
        """exp x − 1 for −40 ≤ x ≤ 700."""
        r, q, k = self.exp(x)
        less = self.code.select(
            self.code.compare("icmp sgt", k, self.f.pattern(60)), self.f.pattern(60), k
        )
        one = self.sub(self(1.0), self.power_of_two(self.whole("sub", self.f.pattern(0), less)))
        r, rest = self.ordered_sum(r, q)
        high, low = self.sum(one, r)
        high, low = self.ordered_sum(high, self.add(low, rest))
        return self.scaled(high, k), self.scaled(low, k)

    def split(self, x: Value) -> tuple[Value, Value]:
        """x = 2ᵏ m with ½ ≤ m² < 2, for what is positive and finite: m, k as a number."""
        tiny = self.compare("olt", x, _SMALLEST_NORMAL)
        bits = self.bits(self.select(tiny, self.mul(x, self(2.0**54)), x))
        bits = self.whole("add", bits, _ONE - _ROOT_HALF)
        m = self.whole("add", self.whole("and", bits, _FRACTION), _ROOT_HALF)
        k = self.whole("add", self.whole("lshr", bits, 52), _SHIFT_BITS - 1023)
        k = self.sub(self.number(k), self(_SHIFT))
        return self.number(m), self.sub(k, self.select(tiny, 54.0, 0.0))

    def log(self, x: Value, more: Value | None = None) -> Value:
        """log of x by (2); more: what x lacks."""
        m, k = self.split(x)
        f = self.sub(m, self(1.0))
        s = self.div(f, self.add(f, self(2.0)))
        half = self.mul(self.mul(f, self(0.5)), f)
        z = self.mul(s, s)
        low = self.mul(k, self(_LN2_LOW))
        if more is not None:
            low = self.add(low, self.div(more, x))
        rest = self.fma(s, self.fma(z, self.horner(z, _LOG), half), low)
        value = self.sub(self.mul(k, self(_LN2_HIGH)), self.sub(self.sub(half, rest), f))
        return self.logarithm_at_ends(x, value)

    def logarithm_at_ends(self, x: Value, value: Value) -> Value:
        """What a logarithm is of 0, of infinity, and of what is less than 0 or no number."""
        value = self.select(self.compare("oeq", x, math.inf), x, value)
        value = self.select(self.compare("oeq", x, 0.0), -math.inf, value)
        return self.select(self.compare("oge", x, 0.0), value, math.nan)

    def log_in_two(self, x: Value) -> Two:
        """log x to 66 bits, for what is positive and finite."""
        m, k = self.split(x)
        s = self.quotient((self.sub(m, self(1.0)), self(0.0)), self.sum(m, self(1.0)))
        z = self.times(s, s)
        c, rest = self.ordered_sum(self(_THIRD), self.mul(z[0], self.horner(z[0], _ARTANH)))
        t = self.times(z, (c, self.add(rest, self(_THIRD_REST))))
        one, rest = self.ordered_sum(self(1.0), t[0])
        high, low = self.times(s, (one, self.add(rest, t[1])))
        two, low = self.mul(high, self(2.0)), self.mul(low, self(2.0))
        top, rest = self.sum(self.mul(k, self(_LN2_HIGH)), two)
        rest = self.add(rest, self.fma(k, self(_LN2_LOW), low))
        return self.ordered_sum(top, rest)

    # angles

    def from_part_of_pi(self, truth: Value, angle: Two, part: float) -> Two:
        """Where it is so, a part of π less the angle."""
        whole, lacking = self(part * _PI), self(part * _PI_REST)
        top = self.sub(whole, angle[0])
        lost = self.sub(self.sub(whole, top), angle[0])
        below = self.add(lost, self.sub(lacking, angle[1]))
        return self.select(truth, top, angle[0]), self.select(truth, below, angle[1])

    def atan(self, t: Value) -> Two:
        """atan t for 0 ≤ t ≤ 1."""
        angle = rest = self(0.0)
        moved = t
        for start, k, base, lacking in _BASES:
            beyond = self.compare("oge", t, start)
            below = self.fma(t, self(k), self(1.0))
            moved = self.select(beyond, self.div(self.sub(t, self(k)), below), moved)
            angle, rest = self.select(beyond, base, angle), self.select(beyond, lacking, rest)
        z = self.mul(moved, moved)
        small = self.sub(rest, self.mul(self.mul(moved, z), self.horner(z, _ATAN)))
        top = self.add(angle, moved)
        lost = self.add(self.sub(angle, top), moved)
        return top, self.add(lost, small)
