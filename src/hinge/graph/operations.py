"""Every operation of a graph, one row each: what it does to numbers, to slopes, on each target.

A new operation is a row of this table, and a function in `functions.py` if users are to call it.
Rules that simplify it (`rewrite.py`) may follow; nothing else lists operations.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

__all__ = [
    "ATOM",
    "CHOICE",
    "COMMUTATIVE",
    "OPERATIONS",
    "PRODUCT",
    "SIGN",
    "SINCOS",
    "SUM",
    "TRUTH",
    "InC",
    "Operation",
    "Operations",
    "Slope",
    "functions_of_c",
    "intrinsics",
    "library_functions",
]

# ∂n/∂a from a node n of the operation, or a number
Slope = Callable[[Any], Any] | float

# how tightly an expression of C holds together; in parentheses where it must hold more
TRUTH, CHOICE, SUM, SIGN, PRODUCT, ATOM = range(6)
# made together: both of an angle cost little more than one
SINCOS = ("sin", "cos")


class InC(NamedTuple):
    """An expression of C: its text, how tightly each argument must hold, how it holds itself.

    {f} is the ending of functions of float.
    """

    text: str
    inner: tuple[int, ...]
    level: int

    def said(self, i: int) -> int:
        """How often the text says argument i."""
        return self.text.count(f"{{{i}}}")


@dataclass(frozen=True, slots=True)
class Operation:
    """A row of the table.

    value: of plain numbers; numpy: of arrays.
    slopes: for each argument, ∂n/∂a of a node n; None where it is zero.
    c: an expression.
    llvm: lines of which the last is the value.  {0}, {1}, … are the arguments, {last} the line
    before, {t} the type, {x} the ending of its functions, {truth} the type of a comparison, {zero}
    and {one} constants.  @llvm.NAME.{x} is an intrinsic, @NAME_{x} is NAME of the C library.
    cost: where it counts among `Operations`, "" if it costs nothing.
    alone: the slope of the second argument, where the first does not depend on leaves.
    free: the slopes are ±1 or choices, which need no multiplication.
    shows: of which arguments the value cannot be finite if they are not.
    """

    value: Callable[..., float]
    numpy: Callable[..., Any]
    slopes: tuple[Slope | None, ...]
    c: InC
    llvm: tuple[str, ...]
    cost: str = "others"
    commutative: bool = False
    alone: Slope | None = None
    free: bool = False
    shows: tuple[int, ...] = ()

    @property
    def arity(self) -> int:
        """How many arguments it has."""
        return len(self.slopes)


class Operations(NamedTuple):
    """What one evaluation costs; the sine and cosine of one angle are one sincos."""

    multiplications: int
    additions: int
    divisions: int
    sincos: int
    others: int

    @classmethod
    def counted(cls, nodes: Mapping[str, int], sincos: int) -> Operations:
        """From the number of nodes of each operation, and of angles whose sine or cosine is taken.

        Signs cost nothing.
        """
        count = dict.fromkeys(cls._fields, 0)
        for op, row in OPERATIONS.items():
            if row.cost:
                count[row.cost] += nodes.get(op, 0)
        return cls(**(count | {"sincos": sincos}))


def _divide(a: float, b: float) -> float:
    if b:
        return a / b
    return math.nan if a == 0 or a != a else math.copysign(math.inf, a) * math.copysign(1, b)


def _over_square(n: Any) -> Any:
    """1/(y² + x²) of atan2(y, x)."""
    y, x = n.args
    return 1 / (y * y + x * x)


def _elementary(
    name: str,
    numpy: Callable[..., Any],
    *slopes: Slope | None,
    c: InC | None = None,
    shows: tuple[int, ...] = (0,),
) -> Operation:
    """A function of the C library, of which `emit/llvm/elementary.py` has one of vectors."""
    given = ", ".join(f"{{t}} {{{i}}}" for i in range(len(slopes)))
    call = f"call {{t}} @{name}_{{x}}({given})"
    return Operation(
        _of_numbers(numpy), numpy, slopes, c or _function(name, len(slopes)), (call,), shows=shows
    )


def _of_numbers(numpy: Callable[..., Any]) -> Callable[..., float]:
    """A function of NumPy on plain numbers, without warnings."""

    def value(*numbers: float) -> float:
        with np.errstate(all="ignore"):
            return float(numpy(*numbers))

    return value


def _other_leg(n: Any) -> Any:
    """√(1 − x²) of a function of x."""
    x = n.args[0]
    return ((1 - x) * (1 + x)).sqrt()


def _power_slope(n: Any) -> Any:
    """y x^(y − 1), 0 where y is 0."""
    x, y = n.args
    make = n.graph.make
    if y.op == "const":
        return y * make("pow", x, y - 1)
    none = make("equal", y, 0.0)
    return y * make("pow", x, make("where", none, 1.0, y - 1))


def _exponent_slope(n: Any) -> Any:
    """xʸ log x, 0 where x is 0."""
    x = n.args[0]
    return n * n.graph.make("where", n.graph.make("equal", x, 0.0), 1.0, x).log()


def _compared(
    how: str, sign: str, numpy: Callable[..., Any], commutative: bool = False
) -> Operation:
    """A comparison: 1 or 0."""
    return Operation(
        value=lambda a, b: float(numpy(a, b)),
        numpy=lambda a, b: np.asarray(numpy(a, b), dtype=np.result_type(a, b)),
        slopes=(None, None),
        c=_binary(sign, SUM, SUM, level=TRUTH),
        llvm=(f"fcmp {how} {{t}} {{0}}, {{1}}", "select {truth} {last}, {t} {one}, {t} {zero}"),
        commutative=commutative,
    )


def _choice(condition: Callable[[Any], Any], then: float, otherwise: float) -> Slope:
    return lambda n: n.graph.make("where", condition(n), then, otherwise)


def _less(i: int, j: int) -> Callable[[Any], Any]:
    return lambda n: n.graph.make("less", n.args[i], n.args[j])


def _binary(sign: str, *inner: int, level: int) -> InC:
    return InC(f"{{0}} {sign} {{1}}", inner, level)


def _function(name: str, arity: int = 1) -> InC:
    given = ", ".join(f"{{{i}}}" for i in range(arity))
    return InC(f"{name}{{f}}({given})", (CHOICE,) * arity, ATOM)


def intrinsics() -> dict[str, int]:
    """The intrinsics of LLVM that operations call, and how many arguments they have."""
    return _called(r"llvm\.(\w+)\.\{x\}")


def library_functions() -> dict[str, int]:
    """The functions of the C library that operations call, and how many arguments they have."""
    return dict.fromkeys(SINCOS, 1) | _called(r"(\w+)_\{x\}")


def _called(name: str) -> dict[str, int]:
    lines = " ".join(line for row in OPERATIONS.values() for line in row.llvm)
    found = re.findall(rf"@{name}\(([^)]*)\)", lines)
    return {name: given.count("{t}") for name, given in found}


def functions_of_c() -> set[str]:
    """The functions of math.h that operations call."""
    texts = " ".join(row.c.text for row in OPERATIONS.values())
    return set(re.findall(r"(\w+)\{f\}\(", texts))


# min and max do not commute: what they make of NaN depends on the order.  NaN in the first
# argument stays.
OPERATIONS: dict[str, Operation] = {
    "add": Operation(
        value=lambda a, b: a + b,
        numpy=np.add,
        slopes=(1.0, 1.0),
        c=_binary("+", SUM, PRODUCT, level=SUM),
        llvm=("fadd contract {t} {0}, {1}",),
        cost="additions",
        commutative=True,
        free=True,
        shows=(0, 1),
    ),
    "sub": Operation(
        value=lambda a, b: a - b,
        numpy=np.subtract,
        slopes=(1.0, -1.0),
        c=_binary("-", SUM, PRODUCT, level=SUM),
        llvm=("fsub contract {t} {0}, {1}",),
        cost="additions",
        free=True,
        shows=(0, 1),
    ),
    "mul": Operation(
        value=lambda a, b: a * b,
        numpy=np.multiply,
        slopes=(lambda n: n.args[1], lambda n: n.args[0]),
        c=_binary("*", SIGN, ATOM, level=PRODUCT),
        llvm=("fmul contract {t} {0}, {1}",),
        cost="multiplications",
        commutative=True,
        shows=(0, 1),
    ),
    "div": Operation(
        value=_divide,
        numpy=np.divide,
        slopes=(lambda n: 1 / n.args[1], lambda n: -n / n.args[1]),
        c=_binary("/", SIGN, ATOM, level=PRODUCT),
        llvm=("fdiv {t} {0}, {1}",),
        cost="divisions",
        shows=(0,),
    ),
    "neg": Operation(
        value=lambda a: -a,
        numpy=np.negative,
        slopes=(-1.0,),
        c=InC("-{0}", (ATOM,), SIGN),
        llvm=("fneg {t} {0}",),
        cost="",
        free=True,
        shows=(0,),
    ),
    "sqrt": Operation(
        value=lambda a: math.sqrt(a) if a >= 0 else math.nan,
        numpy=np.sqrt,
        slopes=(lambda n: 0.5 / n,),
        c=_function("sqrt"),
        llvm=("call {t} @llvm.sqrt.{x}({t} {0})",),
        shows=(0,),
    ),
    "sin": Operation(
        value=lambda a: math.sin(a) if math.isfinite(a) else math.nan,
        numpy=np.sin,
        slopes=(lambda n: n.args[0].cos(),),
        c=_function("sin"),
        llvm=(),
        cost="sincos",
        shows=(0,),
    ),
    "cos": Operation(
        value=lambda a: math.cos(a) if math.isfinite(a) else math.nan,
        numpy=np.cos,
        slopes=(lambda n: -n.args[0].sin(),),
        c=_function("cos"),
        llvm=(),
        cost="sincos",
        shows=(0,),
    ),
    "atan2": Operation(
        value=math.atan2,
        numpy=np.arctan2,
        slopes=(lambda n: n.args[1] * _over_square(n), lambda n: -n.args[0] * _over_square(n)),
        c=_function("atan2", arity=2),
        llvm=("call {t} @atan2_{x}({t} {0}, {t} {1})",),
    ),
    "exp": _elementary("exp", np.exp, lambda n: n, shows=()),
    "expm1": _elementary("expm1", np.expm1, lambda n: n + 1, shows=()),
    "log": _elementary("log", np.log, lambda n: 1 / n.args[0]),
    "log1p": _elementary("log1p", np.log1p, lambda n: 1 / (1 + n.args[0])),
    "sinh": _elementary("sinh", np.sinh, lambda n: n.args[0].cosh()),
    "cosh": _elementary("cosh", np.cosh, lambda n: n.args[0].sinh()),
    "tanh": _elementary("tanh", np.tanh, lambda n: (1 - n) * (1 + n), shows=()),
    "asinh": _elementary("asinh", np.arcsinh, lambda n: 1 / (n.args[0] * n.args[0] + 1).sqrt()),
    "acosh": _elementary(
        "acosh", np.arccosh, lambda n: 1 / ((n.args[0] - 1) * (n.args[0] + 1)).sqrt()
    ),
    "atanh": _elementary("atanh", np.arctanh, lambda n: 1 / ((1 - n.args[0]) * (1 + n.args[0]))),
    "tan": _elementary("tan", np.tan, lambda n: 1 + n * n),
    "asin": _elementary("asin", np.arcsin, lambda n: 1 / _other_leg(n)),
    "acos": _elementary("acos", np.arccos, lambda n: -1 / _other_leg(n)),
    "hypot": _elementary(
        "hypot", np.hypot, lambda n: n.args[0] / n, lambda n: n.args[1] / n, shows=(0, 1)
    ),
    "pow": _elementary("pow", np.power, _power_slope, _exponent_slope, shows=()),
    "fmod": _elementary("fmod", np.fmod, 1.0, lambda n: (n - n.args[0]) / n.args[1]),
    "floor": Operation(
        value=_of_numbers(np.floor),
        numpy=np.floor,
        slopes=(None,),
        c=_function("floor"),
        llvm=("call {t} @llvm.floor.{x}({t} {0})",),
        shows=(0,),
    ),
    # half a number goes to the even one
    "rint": Operation(
        value=_of_numbers(np.rint),
        numpy=np.rint,
        slopes=(None,),
        c=_function("rint"),
        llvm=("call {t} @llvm.rint.{x}({t} {0})",),
        shows=(0,),
    ),
    # 0 of −0 too
    "sign": Operation(
        value=_of_numbers(np.sign),
        numpy=np.sign,
        slopes=(None,),
        c=InC("{0} < 0 ? -1 : {0} > 0 ? 1 : {0} + 0", (SUM,), CHOICE),
        llvm=(
            "fcmp one {t} {0}, {zero}",
            "select {truth} {last}, {t} {one}, {t} {0}",
            "call {t} @llvm.copysign.{x}({t} {last}, {t} {0})",
            "fadd {t} {last}, {zero}",
        ),
    ),
    "abs": Operation(
        value=lambda a: abs(a),
        numpy=np.abs,
        slopes=(lambda n: n.graph.make("sign", n.args[0]),),
        c=_function("fabs"),
        llvm=("call {t} @llvm.fabs.{x}({t} {0})",),
        shows=(0,),
    ),
    "min": Operation(
        value=lambda a, b: b if b < a else a,
        numpy=lambda a, b: np.where(b < a, b, a),
        slopes=(_choice(_less(1, 0), 0, 1), _choice(_less(1, 0), 1, 0)),
        c=InC("{1} < {0} ? {1} : {0}", (SUM, SUM), CHOICE),
        llvm=("fcmp olt {t} {1}, {0}", "select {truth} {last}, {t} {1}, {t} {0}"),
        alone=_choice(_less(0, 1), 0, 1),
        free=True,
    ),
    "max": Operation(
        value=lambda a, b: b if b > a else a,
        numpy=lambda a, b: np.where(b > a, b, a),
        slopes=(_choice(_less(0, 1), 0, 1), _choice(_less(0, 1), 1, 0)),
        c=InC("{1} > {0} ? {1} : {0}", (SUM, SUM), CHOICE),
        llvm=("fcmp ogt {t} {1}, {0}", "select {truth} {last}, {t} {1}, {t} {0}"),
        alone=_choice(_less(1, 0), 0, 1),
        free=True,
    ),
    "less": Operation(
        value=lambda a, b: float(a < b),
        numpy=lambda a, b: np.asarray(a < b, dtype=np.asarray(a).dtype),
        slopes=(None, None),
        c=_binary("<", SUM, SUM, level=TRUTH),
        llvm=("fcmp olt {t} {0}, {1}", "select {truth} {last}, {t} {one}, {t} {zero}"),
    ),
    "at_most": _compared("ole", "<=", np.less_equal),
    "equal": _compared("oeq", "==", np.equal, commutative=True),
    "where": Operation(
        value=lambda c, a, b: a if c else b,
        numpy=lambda c, a, b: np.where(c != 0, a, b),
        slopes=(
            None,
            _choice(lambda n: n.args[0], 1, 0),
            _choice(lambda n: n.args[0], 0, 1),
        ),
        c=InC("{0} ? {1} : {2}", (TRUTH, SUM, SUM), CHOICE),
        llvm=("fcmp une {t} {0}, {zero}", "select {truth} {last}, {t} {1}, {t} {2}"),
        free=True,
    ),
}

COMMUTATIVE = frozenset(op for op, row in OPERATIONS.items() if row.commutative)
