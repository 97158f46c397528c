"""What a thread asks the card for, its operations, and sums that say whether numbers are finite."""

from __future__ import annotations

from ...graph.scalar import Node
from ..llvm.body import Body
from ..llvm.builder import Function, Value
from ..llvm.flavor import Flavor

__all__ = ["ThreadBody", "reciprocals", "special", "special_registers", "with_zero_times"]

_REGISTER = "llvm.nvvm.read.ptx.sreg"


def special_registers() -> str:
    """Declares them: the thread in its block, the block in the grid, how many blocks there are."""
    return "".join(f"declare i32 @{_REGISTER}.{x}()\n" for x in ("tid.x", "ctaid.x", "nctaid.x"))


def special(code: Function, name: str) -> Value:
    """One of them."""
    return code.cast("zext", code.call(f"{_REGISTER}.{name}", result="i32"), "i64")


def with_zero_times(code: Function, f: Flavor, total: Value, x: Value) -> Value:
    """The total plus 0 · x: NaN from the first x on that is not finite."""
    return code.call(f"llvm.fma.{f.suffix}", x, f.value(0.0), total, result=f.type)


def reciprocals() -> str:
    """Declares the card's own, which are near the right ones."""
    kinds = ("float", "f"), ("double", "d")
    return "".join(f"declare {t} @llvm.nvvm.rcp.approx.ftz.{x}({t})\n" for t, x in kinds)


def _quotient(code: Function, f: Flavor, a: Value, b: Value) -> Value:
    """a / b by Newton's rule, right but for the last bit, without a branch.

        r ≈ 1/b;   r ← r + r (1 − b r), twice for doubles;   q = a r;   q ← q + r (a − b q)

    The last step is left out for 1 / b.  The card's own division calls a function for rare cases,
    and a call costs registers: Talos' forward dynamics in float32 took 1.4 × as long.  Where
    Newton's rule gives NaN (b is 0 or infinite, or the quotient is) the first guess is right.  A
    divisor below the smallest normal number counts as 0, one above 2¹²⁶ (double 2¹⁰²²) as infinite.
    """

    def fma(x: Value, y: Value, z: Value) -> Value:
        return code.call(f"llvm.fma.{f.suffix}", x, y, z, result=f.type)

    letter, minus, one = ("f" if f.word == 4 else "d"), code.let(f.type, f"fneg {b}"), f.value(1.0)
    q = r = code.call(f"llvm.nvvm.rcp.approx.ftz.{letter}", b, result=f.type)
    guess = r if a == one else code.op("fmul", a, r)
    for _ in range(2 if f.word == 8 else int(a == one)):
        q = r = fma(r, fma(minus, r, one), r)
    if a != one:
        q = code.op("fmul", a, r)
        q = fma(r, fma(minus, q, a), q)
    return code.select(code.compare("fcmp ord", q, q), q, guess)


class ThreadBody(Body):
    """Operations of a thread."""

    def operation(self, node: Node) -> None:
        """As in `Body`, but for quotients."""
        if node.op == "div":
            over, under = (Value(self.flavor.type, self.operand(a)) for a in node.args)
            self.names[node.id] = _quotient(self.code, self.flavor, over, under).name
        else:
            Body.operation(self, node)
