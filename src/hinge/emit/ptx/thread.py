"""What a thread asks the card for, and sums that tell whether numbers are finite."""

from __future__ import annotations

from ..llvm.builder import Function, Value
from ..llvm.flavor import Flavor

__all__ = ["special", "special_registers", "with_zero_times"]

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
