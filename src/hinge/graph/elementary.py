"""What may be done with a traced scalar besides sums and products, by the names that NumPy calls.

NumPy calls these methods for np.exp(array of objects) and the like, and `traced.py` does where it
would not.  What is not an operation of its own is made of such:

    x % y = m + y where the signs of m and y differ, else m,   m = fmod(x, y)
    max(x, y) = y where x < y, x where y < x, else ½ x + ½ y

Slopes at kinks are JAX's: half of each where two are equal, 0 for |x| at 0, 0 at steps.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..errors import TraceError

__all__ = ["Elementary"]

# powers up to this are products
_PRODUCTS = 64
_NUMBERS = (int, float, np.integer, np.floating, np.bool_)


def _function(op: str, what: str) -> Any:
    """A method that is an operation."""

    def method(self: Elementary, *others: Any) -> Any:
        return self.graph.make(op, self, *others)

    method.__doc__ = what
    return method


def _operator(rule: Any, reflected: bool = False) -> Any:
    """An operator on two scalars; of an array NumPy takes care."""

    def operate(self: Elementary, other: Any) -> Any:
        if not isinstance(other, (Elementary, *_NUMBERS)):
            return NotImplemented
        other = self.graph.lift(other)
        return rule(other, self) if reflected else rule(self, other)

    return operate


class Elementary:
    """Functions of one scalar, comparisons, and what joins these."""

    __slots__ = ()

    graph: Any
    op: str
    args: tuple[Any, ...]
    value: Any
    vanishes: Any
    # sums and products are those of `Node`
    __add__: Any
    __sub__: Any
    __mul__: Any
    __rmul__: Any
    __truediv__: Any
    __rtruediv__: Any
    __neg__: Any

    sin, cos, sqrt = (
        _function("sin", "Sine."),
        _function("cos", "Cosine."),
        _function("sqrt", "√x."),
    )
    exp, expm1 = _function("exp", "eˣ."), _function("expm1", "eˣ − 1.")
    log, log1p = _function("log", "Natural logarithm."), _function("log1p", "log(1 + x).")
    tan, tanh = _function("tan", "Tangent."), _function("tanh", "Hyperbolic tangent.")
    sinh, cosh = _function("sinh", "Hyperbolic sine."), _function("cosh", "Hyperbolic cosine.")
    arcsin, arccos = _function("asin", "Angle of a sine."), _function("acos", "Angle of a cosine.")
    arcsinh, arccosh = (
        _function("asinh", "Inverse of sinh."),
        _function("acosh", "Inverse of cosh."),
    )
    arctanh = _function("atanh", "Inverse of tanh.")
    arctan2 = _function("atan2", "The angle of the point (other, self).")
    hypot, fmod = _function("hypot", "√(x² + y²)."), _function("fmod", "Rest, with the sign of x.")
    floor, rint = _function("floor", "Rounded down."), _function("rint", "Rounded, half to even.")
    sign, fabs = _function("sign", "−1, 0 or 1."), _function("abs", "|x|.")
    absolute = __abs__ = fabs
    __floor__, less = floor, _function("less", "self < other.")
    less_equal, equal = _function("at_most", "self ≤ other."), _function("equal", "self = other.")

    def arctan(self) -> Any:
        """The angle of a tangent."""
        return self.graph.make("atan2", self, 1.0)

    def exp2(self) -> Any:
        """2ˣ."""
        return self.graph.make("pow", 2.0, self)

    def log2(self) -> Any:
        """The logarithm to base 2."""
        return self.log() * (1 / math.log(2))

    def log10(self) -> Any:
        """The logarithm to base 10."""
        return self.log() * (1 / math.log(10))

    def square(self) -> Any:
        """x²."""
        return self * self

    def reciprocal(self) -> Any:
        """1 / x."""
        return 1 / self

    def deg2rad(self) -> Any:
        """Degrees as radians."""
        return self * (math.pi / 180)

    def rad2deg(self) -> Any:
        """Radians as degrees."""
        return self * (180 / math.pi)

    radians, degrees = deg2rad, rad2deg

    # whole numbers

    def ceil(self) -> Any:
        """Rounded up."""
        return -(-self).floor()

    def trunc(self) -> Any:
        """Rounded towards 0."""
        return self.graph.make("where", self.less(0.0), self.ceil(), self.floor())

    fix, __ceil__, __trunc__ = trunc, ceil, trunc

    def __round__(self, digits: int | None = None) -> Any:
        scale = 10.0 ** (digits or 0)
        return (self * scale).rint() / scale

    def remainder(self, other: Any) -> Any:
        """The rest of self / other, with the sign of other."""
        graph, rest, other = self.graph, self.fmod(other), self.graph.lift(other)
        less, more = rest.less(0.0), graph.make("less", 0.0, rest)
        below = graph.make("where", more, rest + other, rest)
        above = graph.make("where", less, rest + other, rest)
        return graph.make("where", other.less(0.0), below, above)

    def floor_divide(self, other: Any) -> Any:
        """self / other rounded down."""
        return ((self - self.remainder(other)) / other).rint()

    def divmod(self, other: Any) -> Any:
        """Both of these."""
        return self.floor_divide(other), self.remainder(other)

    mod = remainder
    __mod__ = _operator(remainder)
    __rmod__ = _operator(remainder, reflected=True)
    __floordiv__ = _operator(floor_divide)
    __rfloordiv__ = _operator(floor_divide, reflected=True)
    __divmod__, __rdivmod__ = _operator(divmod), _operator(divmod, reflected=True)

    # powers

    def power(self, exponent: Any) -> Any:
        """Products of a whole exponent, √x of ½, else the function."""
        if isinstance(exponent, Elementary):
            if exponent.op != "const":
                return self.graph.make("pow", self, exponent)
            exponent = exponent.value
        if abs(exponent) <= _PRODUCTS and exponent == int(exponent):
            n = int(exponent)
            return self.graph.lift(_power(self, n) if n >= 0 else 1 / _power(self, -n))
        if abs(exponent) == 0.5:
            return self.sqrt() if exponent > 0 else 1 / self.sqrt()
        return self.graph.make("pow", self, exponent)

    float_power = power
    __pow__, __rpow__ = _operator(power), _operator(power, reflected=True)

    # the larger, the smaller, comparisons

    def maximum(self, other: Any) -> Any:
        """The larger of two; NaN if one is."""
        graph, other = self.graph, self.graph.lift(other)
        mean = 0.5 * self + 0.5 * other
        rest = graph.make("where", graph.make("less", other, self), self, mean)
        return graph.make("where", self.less(other), other, rest)

    def minimum(self, other: Any) -> Any:
        """The smaller of two; NaN if one is."""
        graph, other = self.graph, self.graph.lift(other)
        mean = 0.5 * self + 0.5 * other
        rest = graph.make("where", graph.make("less", other, self), other, mean)
        return graph.make("where", self.less(other), self, rest)

    def fmax(self, other: Any) -> Any:
        """The larger of two, of a number and NaN the number."""
        return self.graph.make("where", self.isnan(), other, self.graph.make("max", self, other))

    def fmin(self, other: Any) -> Any:
        """The smaller of two, of a number and NaN the number."""
        return self.graph.make("where", self.isnan(), other, self.graph.make("min", self, other))

    def heaviside(self, at_zero: Any) -> Any:
        """0 below 0, 1 above."""
        graph, above = self.graph, self.sign()
        return graph.make("where", self.equal(0.0), at_zero, above.maximum(0.0))

    def copysign(self, other: Any) -> Any:
        """|x| with the sign of the other; −0 counts as 0."""
        size = self.fabs()
        return self.graph.make("where", self.graph.make("less", other, 0.0), -size, size)

    def logaddexp(self, other: Any) -> Any:
        """log(eˣ + eʸ)."""
        return self.maximum(other) + (-(self - other).fabs()).exp().log1p()

    def greater(self, other: Any) -> Any:
        """self > other."""
        return self.graph.make("less", other, self)

    def greater_equal(self, other: Any) -> Any:
        """self ≥ other."""
        return self.graph.make("at_most", other, self)

    def not_equal(self, other: Any) -> Any:
        """self ≠ other."""
        return self.equal(other).logical_not()

    __lt__, __le__ = _operator(less), _operator(less_equal)
    __gt__, __ge__ = _operator(greater), _operator(greater_equal)
    __eq__, __ne__ = _operator(equal), _operator(not_equal)  # type: ignore[assignment]
    # sets and dictionaries have them as the objects they are
    __hash__ = object.__hash__

    def isnan(self) -> Any:
        """Whether it is no number."""
        return self.not_equal(self)

    def isfinite(self) -> Any:
        """Whether it is a number and not infinite."""
        return self.fabs().less(math.inf)

    def isinf(self) -> Any:
        """Whether it is infinite."""
        return self.fabs().equal(math.inf)

    # what is true

    @property
    def is_truth(self) -> bool:
        """Whether it is a comparison, or made of such: 1 or 0."""
        if self.op == "where":
            return all(x.is_truth for x in self.args[1:])
        if self.op == "const":
            return self.value in (0, 1)
        return self.op in ("less", "at_most", "equal")

    def truth(self) -> Any:
        """1 or 0: whether it is not 0."""
        return self if self.is_truth else self.graph.make("where", self, 1.0, 0.0)

    def logical_not(self) -> Any:
        """1 where it is 0, else 0."""
        return self.graph.make("where", self, 0.0, 1.0)

    def logical_and(self, other: Any) -> Any:
        """Whether both are not 0."""
        return self.graph.make("where", self, self.graph.lift(other).truth(), 0.0)

    def logical_or(self, other: Any) -> Any:
        """Whether one is not 0."""
        return self.graph.make("where", self, 1.0, self.graph.lift(other).truth())

    def logical_xor(self, other: Any) -> Any:
        """Whether one alone is not 0."""
        other = self.graph.lift(other).truth()
        return self.graph.make("where", self, other.logical_not(), other)

    def _join(self, other: Any, how: str) -> Any:
        if not isinstance(other, (Elementary, bool, np.bool_)):
            return NotImplemented
        other = self.graph.lift(other)
        self._comparison(how)
        other._comparison(how)
        names = {"&": "logical_and", "|": "logical_or", "^": "logical_xor"}
        return getattr(self, names[how])(other)

    def _comparison(self, how: str) -> None:
        if not self.is_truth:
            raise TraceError(
                f"{how} is for comparisons, as in (x > 0) {how} (x < 1); this is a traced number"
            )

    def __and__(self, other: Any) -> Any:
        return self._join(other, "&")

    def __or__(self, other: Any) -> Any:
        return self._join(other, "|")

    def __xor__(self, other: Any) -> Any:
        return self._join(other, "^")

    def __invert__(self) -> Any:
        self._comparison("~")
        return self.logical_not()

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__


def _power(x: Any, n: int) -> Any:
    """xⁿ by products."""
    if n < 2:
        return x if n else 1.0
    half = _power(x, n // 2)
    return half * half * x if n % 2 else half * half
