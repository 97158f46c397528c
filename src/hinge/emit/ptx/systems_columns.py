"""The kernel that solves linear systems where samples are contiguous in the results.

A warp has one column of 32 samples; the warps of a block have the same samples and neighbouring
columns.  What a result has of a column is a register of each thread, which it writes itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...graph.systems import Systems
from ..llvm.builder import UNLIKELY, Value
from ..llvm.flavor import Flavor
from .launch import Launch
from .plan import LANES, TILE
from .solver import BARRIER, LINE, Factor, Solver
from .staging import GLOBAL, NOT_UNROLLED, WAIT, moved
from .thread import with_zero_times

__all__ = ["ColumnsSolver"]

_MOST_WARPS = 8
# registers of 32 bits that a thread may fill with columns: the more, the fewer threads
_REGISTERS = 160


class ColumnsSolver(Solver):
    """The function while it is written."""

    def __init__(self, systems: Systems, f: Flavor, strict: bool) -> None:
        self.strict = strict
        self.groups = systems.rows
        rounds = -(-self.groups // _MOST_WARPS)
        self.warps = -(-self.groups // rounds)
        Solver.__init__(self, systems, f, True, LANES, LANES * self.warps)
        # lines of samples side by side are in different banks
        lines = -(-self.count * f.word // LINE)
        self.pitch = (lines | 1) * LINE
        self.launch = Launch(self.threads, self.samples, self.samples * (self.pitch + LINE))

    def tables(self) -> Iterator[str]:
        """Of every R, where its entries are: bytes from its sample's first number, −1 for none."""
        for i, table in enumerate(self.systems.right):
            apart = TILE * self.f.word
            entries = ", ".join(f"i32 {apart * k if k >= 0 else -1}" for k in table.ravel())
            kind = f"[{table.size} x i32]"
            yield f"@right{i} = internal addrspace(1) constant {kind} [{entries}], align 4"

    def text(self) -> str:
        """The whole function."""
        code, f = self.code, self.f
        self.begun()
        self.sample, warp = code.op("and", self.tid, LANES - 1), code.op("lshr", self.tid, 5)
        self.fetched(self.shared(), self.pitch)
        mine = moved(code, self.shared(), code.op("mul", self.sample, self.pitch))
        self.factor = Factor(code, f, self.systems.above, mine)
        flags = self.shared(self.samples * self.pitch)
        self.flag = moved(code, flags, code.op("mul", self.sample, 4))
        code.store(Value("i32", "0"), self.flag, "align 4")
        code.do(WAIT)
        code.do(BARRIER)
        self.number = code.cast("zext", code.op("add", self.first, self.sample), "i64")
        self.alive = code.compare("icmp slt", self.number, self.given["samples"])
        share, bad = (code.cast("zext", warp, "i64"), self.n, self.warps), f.value(0.0)
        with code.count(*share, [bad]) as loop:
            code.do(NOT_UNROLLED)
            bad = loop.carried[0]
            ends = self.ends(loop.i)
            for some in self.at_once():
                bad = self.solved(some, loop.i, ends, bad)
            loop.next = [bad]
        if self.strict:
            self.spoiled(loop.carried[0], share)
        return code.ret().text()

    def at_once(self) -> Iterator[list[int]]:
        """The results, as many at a time as there are registers for."""
        many = len(self.systems.outputs)
        most = max(1, _REGISTERS * 4 // (self.n * self.f.word))
        size = -(-many // -(-many // most))
        for i in range(0, many, size):
            yield list(range(i, min(i + size, many)))

    def ends(self, column: Value) -> list[Value]:
        """Where a column of this thread's sample begins, in each result."""
        code, found = self.code, []
        for i in range(len(self.systems.outputs)):
            at = code.op("mul", column, self.given[f"apart{i}"])
            at = code.op("add", at, code.op("mul", self.number, self.f.word))
            found.append(moved(code, self.given[f"out{i}"], at))
        return found

    def solved(self, some: Sequence[int], column: Value, ends: list[Value], bad: Value) -> Value:
        """That column of some results; bad: 0, NaN as soon as a number is not finite."""
        code, f = self.code, self.f
        x = [self.entries(i, column) for i in some]
        self.factor.solve(x)
        with code.when(self.alive):
            for i, values in zip(some, x, strict=True):
                self.written(i, ends[i], values)
        if self.strict:
            for value in (value for values in x for value in values):
                bad = with_zero_times(code, f, bad, value)
        return bad

    def entries(self, i: int, column: Value) -> list[Value]:
        """A column of R, or of −1 for M⁻¹."""
        code, f, n = self.code, self.f, self.n
        if i == len(self.systems.right):
            ones = (code.compare("icmp eq", column, k) for k in range(n))
            return [code.select(one, f.value(-1.0), f.value(0.0)) for one in ones]
        start = self.of_sample("sides", self.right, self.sample)
        table = moved(code, Value(GLOBAL, f"@right{i}"), code.op("mul", column, 4))
        kind, zero = ("f", "0f00000000") if f.word == 4 else ("d", "0d0000000000000000")
        text = (
            f"{{ .reg .pred p; setp.ge.s32 p, $2, 0; mov.{f.suffix} $0, {zero}; "
            f"@p ld.global.{f.suffix} $0, [$1]; }}"
        )
        where = [code.load("i32", moved(code, table, 4 * n * k), "align 4") for k in range(n)]
        found = []
        for at in where:
            given = f"{moved(code, start, code.cast('zext', at, 'i64'))}, {at}"
            found.append(code.let(f.type, f'call {f.type} asm "{text}", "=&{kind},l,r"({given})'))
        return found

    def written(self, i: int, end: Value, column: Sequence[Value]) -> None:
        """A column to where it belongs."""
        letter = "f" if self.f.word == 4 else "d"
        for k, value in enumerate(column):
            # LLVM, shown the products, makes all of them before the first is needed
            text = f"mad.lo.s64 at, $1, {k * self.n}, $0; st.global.{self.f.suffix} [at], $2;"
            given = f"{end}, {self.given[f'apart{i}']}, {value}"
            text = f'asm sideeffect "{{ .reg .b64 at; {text} }}", "l,l,{letter}"'
            self.code.do(f"call void {text}({given})")

    def spoiled(self, bad: Value, share: tuple[Any, ...]) -> None:
        """NaN in all results of a sample, if any thread of it has found one."""
        code = self.code
        spoilt = code.compare("fcmp uno", bad, bad)
        with code.when(spoilt, UNLIKELY):
            code.store(Value("i32", "1"), self.flag, "align 4")
        code.do(BARRIER)
        flag = code.compare("icmp ne", code.load("i32", self.flag, "align 4"), 0)
        flag = code.op("and", flag, self.alive)
        with code.when(flag, UNLIKELY), code.count(*share) as loop:
            code.do(NOT_UNROLLED)
            nan = Value(self.f.type, "0x7FF8000000000000")
            for i, end in enumerate(self.ends(loop.i)):
                self.written(i, end, [nan] * self.n)
