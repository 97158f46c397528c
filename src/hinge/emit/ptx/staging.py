"""Rows of arrays in global memory to shared memory and back, by a whole warp.

The 32 rows of a warp are contiguous, so that it copies them in lines of 16 bytes, without a look at
where one row ends (`cp.async` on the way in: no register waits for memory).  Where four threads or
more would ask the same bank at once, rows are a word further apart and copied word by word.  Any
other stride, a pointer that is not aligned, and the last samples take a plain loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ..llvm.builder import UNLIKELY, Function, Value
from ..llvm.flavor import Flavor
from .plan import LANES, PIECE, Tile

__all__ = ["GLOBAL", "NOT_UNROLLED", "SHARED", "SYNC", "WAIT", "Warp", "aligned", "moved"]

SHARED, GLOBAL = "ptr addrspace(3)", "ptr addrspace(1)"
SYNC = "call void @llvm.nvvm.bar.warp.sync(i32 -1)"
WAIT = 'call void asm sideeffect "cp.async.wait_all;", "~{memory}"()'
# what is rarely done shall not be long
NOT_UNROLLED = 'call void asm sideeffect ".pragma \\22nounroll\\22;", ""()'
_LINE = 16


def moved(code: Function, base: Value, offset: Value | int) -> Value:
    """So many bytes from a pointer of any kind."""
    kind = "i64" if base.type == GLOBAL else "i32"
    by = offset if isinstance(offset, Value) else Value(kind, str(offset))
    return code.let(base.type, f"getelementptr i8, {base}, {by}")


def aligned(code: Function, array: Value) -> Value:
    """Whether a pointer is to whole lines."""
    address = code.cast("trunc", code.cast("ptrtoint", array, "i64"), "i32")
    return code.compare("icmp eq", code.op("and", address, _LINE - 1), 0)


class Warp:
    """A warp at the samples from 32 · number on; base: where its tiles in shared memory begin.

    Numbers have 32 bits, so that an address is one product of 32 bits and a sum.
    """

    def __init__(
        self, code: Function, f: Flavor, base: Value, lane: Value, number: Value, samples: Value
    ) -> None:
        self.code, self.f, self.base, self.lane = code, f, base, lane
        self.number, self.samples = number, samples
        whole = code.cast("trunc", code.op("lshr", samples, 5), "i32")
        self.full = code.compare("icmp slt", number, whole)
        self.align = f"align {f.word}"

    def first(self, size: int = 1) -> Value:
        """The first sample, or where it begins if each takes so much."""
        number = self.code.cast("zext", self.number, "i64")
        return self.code.op("mul", number, LANES * size)

    def mine(self) -> Value:
        """The sample of this thread."""
        return self.code.op("add", self.first(), self.code.cast("zext", self.lane, "i64"))

    def alive(self) -> Value:
        """Whether there is that sample."""
        return self.code.compare("icmp slt", self.mine(), self.samples)

    @contextmanager
    def otherwise(self, truth: Value) -> Iterator[None]:
        """If it is not true, which is rare."""
        code = self.code
        with code.when(code.op("xor", truth, Value("i1", "true")), UNLIKELY):
            yield

    # rows

    def bring_lines(self, tile: Tile, array: Value) -> None:
        """Copy rows of an array in whole lines to their tile."""
        start = moved(self.code, array, self.first(tile.size * self.f.word))
        for where, offset, width, inside in self.lines(tile):
            self.copied(where, moved(self.code, start, offset), width, inside)

    def bring(self, tile: Tile, array: Value, stride: Value, plain: Value) -> None:
        """Copy rows of an array, which are a stride apart, to their tile; plain: in whole lines."""
        code = self.code
        fast = code.op("and", plain, self.full)
        with code.when(fast):
            self.bring_lines(tile, array)
        with self.otherwise(fast):
            last = code.op("sub", self.samples, 1)
            for row, entry, where in self.entries(tile):
                place = code.op("mul", code.least(row, last), stride)
                place = code.op("add", place, code.op("mul", entry, self.f.word))
                value = code.load(self.f.type, moved(code, array, place), self.align)
                code.store(value, where, self.align)

    def take(self, tile: Tile, array: Value, plain: Value) -> None:
        """Copy rows of a tile to where they belong in a result."""
        code = self.code
        fast = code.op("and", plain, self.full)
        with code.when(fast):
            start = moved(code, array, self.first(tile.size * self.f.word))
            for where, offset, width, inside in self.lines(tile):
                with self.only(inside):
                    line = code.load(self.line(width), where, f"align {width}")
                    code.store(line, moved(code, start, offset), f"align {width}")
        with self.otherwise(fast):
            for row, entry, where in self.entries(tile):
                with code.when(code.compare("icmp slt", row, self.samples)):
                    place = code.op("add", code.op("mul", row, tile.size), entry)
                    there = moved(code, array, code.op("mul", place, self.f.word))
                    code.store(code.load(self.f.type, where, self.align), there, self.align)

    def copied(self, to: Value, start: Value, width: int, inside: Value | None = None) -> None:
        """So many bytes to shared memory, later; inside: whether at all, by this thread."""
        way, given = (
            "cg" if width == _LINE else "ca",
            [self.code.cast("ptrtoint", to, "i32"), start],
        )
        text, kinds = f"cp.async.{way}.shared.global [$0], [$1], {width};", "r,l"
        if inside is not None:
            text, kinds, given = f"@$2 {text}", f"{kinds},b", [*given, inside]
        told = ", ".join(map(str, given))
        self.code.do(f'call void asm sideeffect "{text}", "{kinds},~{{memory}}"({told})')

    def line(self, width: int = _LINE) -> str:
        """The type of so many bytes of numbers."""
        n = width // self.f.word
        return f"<{n} x {self.f.type}>" if n > 1 else self.f.type

    def lines(self, tile: Tile) -> Iterator[tuple[Value, Value, int, Value | None]]:
        """This thread's lines: where in shared memory, how far in the rows, how wide, whether."""
        code, width = self.code, _LINE if tile.packed else self.f.word
        pieces = LANES * tile.size * self.f.word // width
        mine = code.op("mul", self.lane, width)
        there = moved(code, moved(code, self.base, tile.start), mine)
        far = code.cast("zext", mine, "i64")
        for k in range(0, pieces, LANES):
            where = moved(code, there, k * width)
            if not tile.packed:
                row = code.op("udiv", code.op("add", self.lane, k), tile.size)
                where = moved(code, where, code.op("mul", row, tile.pitch - tile.size * width))
            yield where, code.op("add", far, k * width), width, self.lane_below(pieces - k)

    def lane_below(self, count: int) -> Value | None:
        """Whether this is one of the first so many threads; None if all are."""
        return None if count >= LANES else self.code.compare("icmp slt", self.lane, count)

    @contextmanager
    def only(self, inside: Value | None) -> Iterator[None]:
        """Only if it is true, or None."""
        if inside is None:
            yield
            return
        with self.code.when(inside):
            yield

    def entries(self, tile: Tile) -> Iterator[tuple[Value, Value, Value]]:
        """Sample, entry and place in shared memory of the numbers this thread copies, in a loop."""
        code, n = self.code, tile.size
        with code.count(code.cast("zext", self.lane, "i64"), LANES * n, LANES) as loop:
            code.do(NOT_UNROLLED)
            i = code.cast("trunc", loop.i, "i32")
            row, entry = code.op("udiv", i, n), code.op("urem", i, n)
            place = code.op("mul", row, tile.pitch)
            place = code.op("add", place, code.op("mul", entry, self.f.word))
            where = moved(code, moved(code, self.base, place), tile.start)
            sample = code.op("add", self.first(), code.cast("zext", row, "i64"))
            yield sample, code.cast("zext", entry, "i64"), where

    # pieces of rows

    def destination(self, array: Value, size: int, plain: Value) -> tuple[Value, Value]:
        """Where in a result this thread writes lines of pieces, and whether it may.

        Threads side by side write the lines of a sample, several samples at a time.
        """
        code, word = self.code, self.f.word
        whole = self.full if size * word % _LINE == 0 else Value("i1", "false")
        row, line = self.of_piece()
        far = code.op("add", code.op("mul", row, size * word), code.op("mul", line, _LINE))
        start = moved(code, array, self.first(size * word))
        start = moved(code, start, code.cast("zext", far, "i64"))
        return start, code.op("and", whole, plain)

    def of_piece(self) -> tuple[Value, Value]:
        """Which of the samples that are written at a time is this thread's, and which line."""
        code, lines = self.code, PIECE[self.f.word] // _LINE
        row = code.op("lshr", self.lane, lines.bit_length() - 1)
        return row, code.op("and", self.lane, lines - 1)

    def put(self, tile: Tile, entry: int, values: Sequence[Value]) -> None:
        """Write a line of numbers to this thread's row of a tile."""
        code, line = self.code, Value(self.line(), "poison")
        for i, value in enumerate(values):
            line = code.let(line.type, f"insertelement {line}, {value}, i32 {i}")
        row = moved(code, self.base, code.op("mul", self.lane, tile.pitch))
        where = moved(code, row, tile.start + entry * self.f.word)
        code.store(line, where, f"align {_LINE}")

    def pour(self, tile: Tile, count: int, start: Value, size: int, entry: int) -> None:
        """Write pieces of `count` numbers, gathered in a tile, to entries of a result in lines."""
        code, word = self.code, self.f.word
        row, line = self.of_piece()
        at = code.op("add", code.op("mul", row, tile.pitch), code.op("mul", line, _LINE))
        here = moved(code, moved(code, self.base, at), tile.start)
        lines = count * word // _LINE
        inside = code.compare("icmp slt", line, lines)
        with code.when(inside):
            for k in range(0, LANES, LANES * _LINE // PIECE[word]):
                value = code.load(self.line(), moved(code, here, k * tile.pitch), f"align {_LINE}")
                there = moved(code, start, (k * size + entry) * word)
                code.store(value, there, f"align {_LINE}")

    def drip(self, tile: Tile, count: int, array: Value, size: int, entry: int) -> None:
        """The same number by number."""
        code, f = self.code, self.f
        rows = code.least(code.op("sub", self.samples, self.first()), Value("i64", str(LANES)))
        for k in range(0, count, LANES):
            with self.only(self.lane_below(count - k)), code.count(0, rows) as loop:
                code.do(NOT_UNROLLED)
                at = code.op("mul", code.cast("trunc", loop.i, "i32"), tile.pitch)
                at = code.op("add", at, code.op("mul", self.lane, f.word))
                here = moved(code, moved(code, self.base, at), tile.start + k * f.word)
                place = code.op("mul", code.op("add", self.first(), loop.i), size)
                place = code.op("add", place, code.cast("zext", self.lane, "i64"))
                there = moved(code, array, code.op("mul", code.op("add", place, entry + k), f.word))
                code.store(code.load(f.type, here, self.align), there, self.align)

    # columns

    def bring_columns(self, tile: Tile, array: Value, stride: Value) -> None:
        """Copy this thread's entries of an array, which are a stride apart, to their tile."""
        code, word = self.code, self.f.word
        mine = code.least(self.mine(), code.op("sub", self.samples, 1))
        at = moved(code, array, code.op("mul", mine, word))
        where = moved(code, self.base, code.op("mul", self.lane, word))
        for entry in range(tile.size):
            self.copied(moved(code, where, tile.start + entry * tile.step), at, word)
            at = moved(code, at, stride)
