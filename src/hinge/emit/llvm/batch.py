"""`run`, the batch driver: tile after tile, from rows to vectors, through the bodies, and back."""

from __future__ import annotations

from collections.abc import Collection

from ..layout import Layout
from .body import put_constants
from .builder import UNLIKELY, Function, Value, i64
from .flavor import Flavor

__all__ = ["RUN", "indexed", "run"]

# arrays: the addresses of all arguments, then of all results; strides: bytes from a sample to the
# next, then how many samples the whole call has; entries of a sample are contiguous; scratch:
# aligned to 64 bytes
RUN = ("ptr arrays", "ptr strides", "i64 begin", "i64 end", "ptr scratch")


def run(
    layout: Layout, f: Flavor, strict: bool, name: str = "run", by_lines: Collection[int] = ()
) -> str:
    """The function; by_lines: the results that are written past the caches."""
    return _Run(layout, f, name, by_lines).text(strict)


def indexed(entry: int) -> Value:
    """The index from an entry of the results on."""
    return Value("ptr", f"getelementptr (i32, ptr @index, i64 {entry})")


class _Run:
    """The function while it is written, and what it finds before its loop."""

    def __init__(self, layout: Layout, f: Flavor, name: str, by_lines: Collection[int]) -> None:
        self.layout, self.f, self.by_lines = layout, f, by_lines
        self.code = code = Function(name, "void", *RUN, linkage="")
        arrays, strides, self.begin, self.end, self.scratch = code.parameters
        program, at = layout.program, 0
        self.rows, self.inputs = [], []
        for i, size in enumerate(program.input_sizes + program.output_sizes):
            self.rows.append((code.entry("ptr", arrays, i), code.entry("i64", strides, i)))
            if i < len(program.inputs):
                self.inputs.append(code.at(self.scratch, at))
                at += size * f.bytes
        self.out = code.at(self.scratch, at)
        self.workspace = code.at(self.scratch, at + layout.size * f.bytes)

    def text(self, strict: bool) -> str:
        """The whole function."""
        code, f, layout = self.code, self.f, self.layout
        put_constants(code, layout, f, self.out)
        with code.count(self.begin, self.end, f.lanes) as loop:
            total = self.packed(loop.i)
            code.call(f"all_{f.name}", *self.inputs, self.out, self.workspace)
            total = self.unpacked(loop.i, total)
            if strict:
                self.spoiled(loop.i, total)
        return code.ret().text()

    def packed(self, b: Value) -> Value:
        """Rows of the arguments as vectors; the sum of all that passed."""
        total, f = self.f.value(0.0), self.f
        sizes = self.layout.program.input_sizes
        for row, tile, size in zip(self.rows, self.inputs, sizes, strict=False):
            given = *row, b, self.end, tile, i64(size), total
            total = self.code.call(f"pack_{f.name}", *given, result=f.type)
        return total

    def unpacked(self, b: Value, total: Value) -> Value:
        """Vectors as rows of the results; the sum with all that passed."""
        f, entry = self.f, 0
        rows = self.rows[len(self.inputs) :]
        for i, (row, size) in enumerate(zip(rows, self.layout.program.output_sizes, strict=True)):
            way = "stream" if i in self.by_lines else "unpack"
            given = *row, b, self.end, self.out, i64(size), indexed(entry), total
            total = self.code.call(f"{way}_{f.name}", *given, result=f.type)
            entry += size
        return total

    def spoiled(self, b: Value, total: Value) -> None:
        """Should a sample have a number that is not finite: all its results NaN, written again.

        A sum that is not finite only makes suspicious: it may have overflowed.
        """
        code, f, layout = self.code, self.f, self.layout
        varying, arguments = i64(layout.varying), i64(sum(layout.program.input_sizes))
        zero = code.cast("bitcast", code.op("fsub", total, total), f.bits)
        doubt = code.call(f"spoilt_{f.name}", zero, result="i1")
        with code.when(doubt, UNLIKELY):
            gather, bits = f"gather_{f.name}", f.pattern(0)
            bits = code.call(gather, self.scratch, arguments, bits, result=f.bits)
            bits = code.call(gather, self.out, varying, bits, result=f.bits)
            with code.when(code.call(f"spoilt_{f.name}", bits, result="i1")):
                nan = code.cast("bitcast", bits, f.type)
                code.call(f"take_away_{f.name}", self.out, varying, nan)
                put_constants(code, layout, f, self.out, nan)
                self.unpacked(b, f.value(0.0))
                put_constants(code, layout, f, self.out)
