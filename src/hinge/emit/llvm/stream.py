"""Results that are larger than the caches, written past them.

A plain store of a line reads it first; a streamed one does not, but has to be a whole line at its
place.  Samples that are so far apart that all their rows begin at the same place in a line are
taken together: a few entries by plain stores up to the next line, then line by line.

What it gives, for 4096 states on one thread: Talos' mass matrix (47 MB) 747 → 456 ns a state, ∂τ
2.4 → 1.5 µs, ∂q̈ 5.3 → 3.6 µs; ANYmal's ∂τ 733 → 532 ns, ∂q̈ 1172 → 943 ns.
"""

from __future__ import annotations

from math import gcd

from ..layout import Layout
from .batch import RUN
from .builder import STREAMED, Function, Value, i64
from .flavor import Flavor
from .tiles import unpack

__all__ = ["streamed", "streams"]

_LINE = 64
# results of a call that have more bytes than this go past the caches
_LARGE = 1 << 24
# rows with fewer bytes than this are mostly ends of lines
_LONG = 1 << 11


def streamed(layout: Layout, f: Flavor) -> list[int]:
    """Which results are worth it, if vectors are lines: those with the longest rows."""
    sizes = layout.program.output_sizes
    if f.bytes != _LINE or not sizes or max(sizes) * f.word < _LONG:
        return []
    return [i for i, size in enumerate(sizes) if size == max(sizes)]


def streams(layout: Layout, f: Flavor, results: list[int]) -> str:
    """`stream`, an `unpack` for rows that all begin alike, and `run`, which chooses."""
    lines = unpack(f, "lines", f"align {_LINE}, {STREAMED}")
    return "\n".join([lines, _stream(f), _run(layout, f, results)])


def _stream(f: Flavor) -> str:
    """Up to the next line by plain stores, then lines."""
    tile = "ptr base", "i64 stride", "i64 b", "i64 end", "ptr tile", "i64 n", "ptr index"
    code = Function(f"stream_{f.name}", f.type, *tile, f"{f.type} sum")
    base, stride, b, end, tile, n, index, total = code.parameters
    row = code.at(base, code.op("mul", b, stride))
    away = code.op("sub", i64(0), code.cast("ptrtoint", row, "i64"))
    up = code.op("and", away, _LINE - 1)
    few = code.op("udiv", up, f.word)
    first = base, stride, b, end, tile, few, index
    total = code.call(f"unpack_{f.name}", *first, total, result=f.type)
    rest = code.at(base, up), stride, b, end, tile
    rest = *rest, code.op("sub", n, few), code.at(index, few, "i32")
    return code.ret(code.call(f"lines_{f.name}", *rest, total, result=f.type)).text()


def _run(layout: Layout, f: Flavor, results: list[int]) -> str:
    """All samples as they come, or every so manieth of them in turn, by lines."""
    code, program = Function("run", "void", *RUN, linkage=""), layout.program
    arrays, strides, begin, end, scratch = code.parameters
    count = len(program.inputs) + len(program.outputs)
    own, apart = code.room(f"[{count} x ptr]"), code.room(f"[{count} x i64]")
    size = program.output_sizes[results[0]]
    by_lines = _large(code, strides, count, len(results) * size * f.word)
    for i in results:
        # the samples follow one another without a gap
        stride = code.entry("i64", strides, len(program.inputs) + i)
        by_lines = code.op("and", by_lines, code.compare("icmp eq", stride, size * f.word))
    with code.when(code.compare("icmp eq", by_lines, 0)):
        code.call("run_plain", *code.parameters)
        code.ret()
    step = f.lanes // gcd(size, f.lanes)
    with code.count(0, step) as loop:
        first = code.op("add", begin, loop.i)
        for i in range(count):
            stride = code.entry("i64", strides, i)
            row = code.at(code.entry("ptr", arrays, i), code.op("mul", stride, first))
            code.put(row, own, i)
            code.put(code.op("mul", stride, step), apart, i)
        left = code.op("add", code.op("sub", end, first), step - 1)
        samples = code.op("sdiv", left, step)
        code.call("run_lines", own, apart, i64(0), samples, scratch)
    # whoever is told that the results are there finds them
    code.do("fence seq_cst")
    return code.ret().text()


def _large(code: Function, strides: Value, arrays: int, row: int) -> Value:
    """Whether the whole call has results larger than the caches."""
    samples = code.entry("i64", strides, arrays)
    return code.compare("icmp sgt", code.op("mul", samples, row), _LARGE)
