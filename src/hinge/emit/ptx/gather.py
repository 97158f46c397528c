"""A kernel that copies an array of any strides, and of other numbers, into a packed one."""

from __future__ import annotations

from ..llvm.builder import Function, Value
from .launch import HEAD, Launch

__all__ = ["COUNT", "DIMENSIONS", "GATHER", "gather_text"]

# how many dimensions an array may have
DIMENSIONS = 6
# how many arguments the kernel takes, each of 64 bits
COUNT = 3 + 2 * DIMENSIONS
GATHER = Launch(threads=256, samples=256)

_THREAD = """
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
"""


def gather_text(kind: str, scalar: str) -> str:
    """void gather(ptr to, ptr from, i64 n, i64 sizes…, i64 strides…) of numbers as NumPy says them.

    kind: "f4", "i8", …; scalar: "float" or "double"; a thread for each of n entries; strides in
    bytes.
    """
    names = [f"i64 {x}{d}" for x in ("size", "stride") for d in range(DIMENSIONS)]
    f = Function("gather", "void", "ptr to", "ptr from", "i64 n", *names, linkage="ptx_kernel ")
    to, start, n, *rest = f.parameters
    thread, block = (
        f.cast("zext", f.call(f"llvm.nvvm.read.ptx.sreg.{x}.x", result="i32"), "i64")
        for x in ("tid", "ctaid")
    )
    i = f.op("add", f.op("mul", block, GATHER.threads), thread)
    with f.when(f.compare("icmp ult", i, n)):
        place, left = start, i
        for size, stride in reversed(list(zip(rest[:DIMENSIONS], rest[DIMENSIONS:], strict=True))):
            place = f.at(place, f.op("mul", f.op("urem", left, size), stride))
            left = f.op("udiv", left, size)
        f.put(_converted(f, place, kind, scalar), to, i)
    return HEAD + _THREAD + f.ret().text()


def _converted(f: Function, place: Value, kind: str, scalar: str) -> Value:
    """The number there as one of the scalars."""
    letter, bits = kind[0], 8 * int(kind[1:])
    if letter == "f":
        own = {16: "half", 32: "float", 64: "double"}[bits]
        x = f.load(own, place)
        if own == scalar:
            return x
        return f.cast("fptrunc" if own == "double" else "fpext", x, scalar)
    return f.cast("sitofp" if letter == "i" else "uitofp", f.load(f"i{bits}", place), scalar)
