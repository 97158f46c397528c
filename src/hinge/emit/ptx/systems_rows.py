"""The kernel that solves linear systems where samples follow each other in the results.

The right-hand sides of a sample lie in shared memory as the results will: R, and −1 for M⁻¹.  So
all columns are alike, side by side, and a warp goes on 32 of them at a time, or a few times that;
each is solved where it lies.  Then the warp of a sample copies its results out in lines, one after
the other: threads that wrote their columns themselves would touch every sector several times.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext

import numpy as np

from ...graph.systems import Systems
from ..llvm.builder import UNLIKELY, Value
from ..llvm.flavor import Flavor
from .launch import Launch
from .plan import LANES, OF_BLOCK, SHARED_BYTES, TILE
from .solver import BARRIER, LINE, Factor, Solver
from .staging import GLOBAL, NOT_UNROLLED, SYNC, WAIT, aligned, moved
from .thread import with_zero_times

__all__ = ["RowsSolver"]

_PAIR = "<2 x i32>"
# columns that a thread holds at once, in so many bytes of registers, and samples of a block.  On an
# H200, the systems of Talos' ∂q̈, ns a state: float32, two columns of two samples 10.2; one column
# 11.8, three 13.0, four 11.6; two of one sample 12.4, of four 11.2.  float64: 22.2; one column 26,
# three 27.0; of one sample 25.8.  With two warps for each sample: 12.4 and 24.3
_COLUMNS, _HELD, _SAMPLES = 2, 640, 2
# lines that a thread copies at a time
_AT_A_TIME = 8


class RowsSolver(Solver):
    """The function while it is written.

    wide: how many columns a matrix has, with some that are none, so that the next begins a line.
    each: how many numbers lie from a matrix to the next, so that columns side by side, of one or of
    two, are in different banks.
    """

    def __init__(self, systems: Systems, f: Flavor, strict: bool) -> None:
        self.strict = strict
        line, banks, n = LINE // f.word, 4 * LANES // f.word, systems.rows
        self.wide = -(-n // line) * line
        self.each = n * n + (self.wide - n * n) % banks
        self.side_by_side = max(1, min(_COLUMNS, _HELD // (n * f.word)))
        self.matrices = len(systems.outputs) * self.each * f.word
        count = sum(map(len, systems.above)) + n
        self.numbers = -(-count * f.word // LINE) * LINE
        room = self.matrices + self.numbers + LINE
        samples = _SAMPLES if _SAMPLES * room <= SHARED_BYTES else 1
        blocks = max(1, (SHARED_BYTES + OF_BLOCK) // (samples * room + OF_BLOCK))
        bound = f' "nvvm.minctasm"="{blocks}"'
        Solver.__init__(self, systems, f, False, samples, LANES * samples, bound)
        self.launch = Launch(self.threads, samples, samples * room)
        tables = [table.ravel() for table in systems.right]
        self.entries = [
            (table[at] * TILE * f.word, self.place(i, int(at)))
            for i, table in enumerate(tables)
            for at in np.flatnonzero(table >= 0)
        ]

    def tables(self) -> Iterator[str]:
        """Of every entry of an R that is not zero: bytes to its number, and to where it belongs."""
        if self.entries:
            listed = ", ".join(f"{_PAIR} <i32 {a}, i32 {b}>" for a, b in self.entries)
            kind = f"[{len(self.entries)} x {_PAIR}]"
            yield f"@entries = internal addrspace(1) constant {kind} [{listed}], align 8"

    def place(self, matrix: int, entry: int) -> int:
        """Where an entry of a matrix is, in bytes."""
        return (matrix * self.each + entry) * self.f.word

    def text(self) -> str:
        """The whole function."""
        code = self.code
        self.begun()
        self.lane, sample = code.op("and", self.tid, LANES - 1), code.op("lshr", self.tid, 5)
        numbers = self.samples * self.matrices
        flags = numbers + self.samples * self.numbers
        self.mine = moved(code, self.shared(), code.op("mul", sample, self.matrices))
        own = moved(code, self.shared(numbers), code.op("mul", sample, self.numbers))
        self.factor = Factor(code, self.f, self.systems.above, own)
        self.flag = moved(code, self.shared(flags), code.op("mul", sample, LINE))
        self.number = code.cast("zext", code.op("add", self.first, sample), "i64")
        self.fetched(self.shared(numbers), self.numbers)
        self.right_hand_sides()
        self.solved()
        with code.when(code.compare("icmp slt", self.number, self.given["samples"])):
            for i in range(len(self.systems.outputs)):
                self.copied_out(i)
        return code.ret().text()

    # right-hand sides

    def right_hand_sides(self) -> None:
        """All of them, with the other sign, of all samples of the block, by all of its threads."""
        code, f = self.code, self.f
        code.store(Value("i32", "0"), self.flag, "align 4")
        start = moved(code, self.shared(), code.op("mul", self.tid, LINE))
        lines = self.samples * self.matrices // LINE
        for k in range(0, lines, self.threads):
            with self.below(lines - k, self.tid, self.threads):
                zeros = Value(self.line, "zeroinitializer")
                code.store(zeros, moved(code, start, k * LINE), f"align {LINE}")
        code.do(BARRIER)
        for i, sample, inside in self.one_by_one(len(self.entries)):
            i = code.select(inside, i, Value("i32", "0"))
            row = code.cast("zext", code.op("mul", i, 8), "i64")
            pair = code.load(_PAIR, moved(code, Value(GLOBAL, "@entries"), row), "align 8")
            at, to = (code.let("i32", f"extractelement {pair}, i32 {n}") for n in (0, 1))
            to = code.op("add", to, code.op("mul", sample, self.matrices))
            self.copied("sides", self.right, sample, at, moved(code, self.shared(), to), inside)
        first = moved(code, self.shared(), self.place(len(self.systems.outputs) - 1, 0))
        for row, sample, inside in self.one_by_one(self.n):
            at = code.op("mul", row, (self.n + 1) * f.word)
            at = code.op("add", at, code.op("mul", sample, self.matrices))
            with code.when(inside):
                code.store(f.value(-1.0), moved(code, first, at), f"align {f.word}")
        code.do(WAIT)
        code.do(BARRIER)

    def below(self, count: int, number: Value, most: int) -> AbstractContextManager[object]:
        """Only if a number, which is below another one, is below this."""
        if count >= most:
            return nullcontext()
        return self.code.when(self.code.compare("icmp slt", number, count))

    @property
    def line(self) -> str:
        """The type of a line of numbers."""
        return f"<{LINE // self.f.word} x {self.f.type}>"

    # columns

    def solved(self) -> None:
        """All columns of a sample, and NaN everywhere if one of their numbers is not finite."""
        code, bad = self.code, self.f.value(0.0)
        some = LANES * self.side_by_side
        rounds = -(-self.wide * len(self.systems.outputs) // some)
        with code.count(0, rounds, carried=[bad]) as loop:
            code.do(NOT_UNROLLED)
            first = code.op("mul", code.cast("trunc", loop.i, "i32"), some)
            first = code.op("add", first, self.lane)
            columns = [self.column(code.op("add", first, k)) for k in range(0, some, LANES)]
            loop.next = [self.round(columns, loop.carried[0])]
        if self.strict:
            spoilt = code.compare("fcmp uno", loop.carried[0], loop.carried[0])
            with code.when(spoilt, UNLIKELY):
                code.store(Value("i32", "1"), self.flag, "align 4")
        code.do(SYNC)
        if self.strict:
            self.spoiled()

    def column(self, number: Value) -> tuple[Value, Value]:
        """Whether there is that column, and where it begins."""
        code, f = self.code, self.f
        matrix, column = code.op("udiv", number, self.wide), code.op("urem", number, self.wide)
        there = code.compare("icmp slt", matrix, len(self.systems.outputs))
        there = code.op("and", there, code.compare("icmp slt", column, self.n))
        at = code.op("add", code.op("mul", matrix, self.each), column)
        at = code.select(there, code.op("mul", at, f.word), Value("i32", "0"))
        return there, moved(code, self.mine, at)

    def round(self, columns: Sequence[tuple[Value, Value]], bad: Value) -> Value:
        """Some columns solved where they are; bad: NaN as soon as a number is not finite."""
        code, f, apart = self.code, self.f, self.n * self.f.word
        rows = range(0, self.n * apart, apart)
        x = [
            [code.load(f.type, moved(code, at, row), f"align {f.word}") for row in rows]
            for _, at in columns
        ]
        self.factor.solve(x)
        kind = "f" if f.word == 4 else "d"
        for (there, at), values in zip(columns, x, strict=True):
            own, place = bad, code.cast("ptrtoint", at, "i32")
            for row, value in zip(rows, values, strict=True):
                # no branch, behind which LLVM would put all that this column takes
                text = f"@$2 st.shared.{f.suffix} [$0+{row}], $1;"
                told = f'asm sideeffect "{text}", "r,{kind},b,~{{memory}}"'
                code.do(f"call void {told}({place}, {value}, {there})")
                own = with_zero_times(code, f, own, value) if self.strict else own
            bad = code.select(there, own, bad)
        return bad

    def spoiled(self) -> None:
        """NaN in all columns of a sample if a thread has said so."""
        code, word = self.code, self.f.word
        flag = code.compare("icmp ne", code.load("i32", self.flag, "align 4"), 0)
        with code.when(flag, UNLIKELY), self.numbers_of(self.matrices // word) as i:
            at = moved(code, self.mine, code.op("mul", code.cast("trunc", i, "i32"), word))
            code.store(Value(self.f.type, "0x7FF8000000000000"), at, f"align {word}")
        code.do(SYNC)

    @contextmanager
    def numbers_of(self, count: int) -> Iterator[Value]:
        """Those of so many numbers that are this thread's, in a loop."""
        with self.code.count(self.code.cast("zext", self.lane, "i64"), count, LANES) as loop:
            self.code.do(NOT_UNROLLED)
            yield loop.i

    # results

    def copied_out(self, i: int) -> None:
        """A result to where it belongs, in lines if these lie as they do here."""
        code, word, size = self.code, self.f.word, self.n * self.n * self.f.word
        here = moved(code, self.mine, self.place(i, 0))
        there = moved(code, self.given[f"out{i}"], code.op("mul", self.number, size))
        whole = size % LINE == 0
        plain = aligned(code, self.given[f"out{i}"]) if whole else Value("i1", "false")
        if whole:
            with code.when(plain):
                self.lines(here, there, size // LINE)
        rare = code.op("xor", plain, 1)
        with code.when(rare, UNLIKELY), self.numbers_of(self.n * self.n) as number:
            at = code.op("mul", number, word)
            value = moved(code, here, code.cast("trunc", at, "i32"))
            value = code.load(self.f.type, value, f"align {word}")
            code.store(value, moved(code, there, at), f"align {word}")

    def lines(self, here: Value, there: Value, count: int) -> None:
        """So many lines, a few of each thread at a time."""
        code, own = self.code, self.code.op("mul", self.lane, LINE)
        here = moved(code, here, own)
        there = moved(code, there, code.cast("zext", own, "i64"))
        for first in range(0, count, _AT_A_TIME * LANES):
            some = range(first, min(first + _AT_A_TIME * LANES, count), LANES)
            # behind the last line there are others, or numbers of m
            places = [moved(code, here, k * LINE) for k in some]
            loaded = [code.load(self.line, place, f"align {LINE}") for place in places]
            for k, line in zip(some, loaded, strict=True):
                with self.below(count - k, self.lane, LANES):
                    code.store(line, moved(code, there, k * LINE), f"align {LINE}")
