"""Linear systems of one matrix on a card: a thread for every column of their solutions.

    X = −M⁻¹ R,   M⁻¹,   M = m mᵀ with m upper triangular

A block has a few samples, whose numbers of m are in shared memory; each thread holds a column of
every X, or of as many as its registers hold, and all of them go through m at once:

    from the last k on    y_k = x_k / m_kk,   x_j ← x_j − m_jk y_k for j above k                (1)
    from the first on     x_k = (y_k − Σ_j m_jk x_j) / m_kk                                     (2)

A warp has four samples and eight columns side by side; where samples are contiguous in the results,
it has one column of 32 samples.  The warps of a block have the same samples and neighbouring
columns, so that what one leaves of a sector of memory another writes at the same time: with all
columns of its samples a warp took twice as long.  Numbers come in tiles as `kernel.py` writes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...graph.systems import Systems
from ..llvm.builder import UNLIKELY, Function, Value
from ..llvm.flavor import Flavor
from .launch import HEAD, Launch
from .plan import LANES, TILE
from .staging import GLOBAL, NOT_UNROLLED, SHARED, SYNC, WAIT, moved
from .thread import special, special_registers, with_zero_times

__all__ = ["solver_module"]

# samples of a block, and its most warps
_SAMPLES, _MOST_WARPS = {"rows": 4, "columns": 32}, 8
# registers of 32 bits that a thread may fill with columns.  On an H200, Talos, ns a state: three
# columns at once in float32 18.6, two 18.9, one 20.6; in float64 two 28.3, one 28.0.  With fewer
# registers, so that more warps fit, it took longer: 28 and 32
_REGISTERS = 160
_LINE = 16
_BARRIER = "call void @llvm.nvvm.barrier0()"

_DECLARED = """@shared = external addrspace(3) global [0 x i8], align 16
declare void @llvm.nvvm.bar.warp.sync(i32)
declare void @llvm.nvvm.barrier0()
declare float @llvm.fma.f32(float, float, float)
declare double @llvm.fma.f64(double, double, double)
"""


def solver_module(
    systems: Systems, scalar: str, strict: bool, layout: str = "rows"
) -> tuple[str, Launch]:
    """LLVM for `nvptx64-nvidia-cuda`, and how its entry `run` is launched.

    `run` takes pointers to the numbers of m and, if there are R, to theirs, in tiles; for each
    result a pointer, and with layout="columns" the bytes from one entry to the next; then the
    number of samples.  strict: as in `kernel.py`.
    """
    solver = _Solver(systems, Flavor(1, scalar, fused=True), strict, layout)
    parts = [HEAD, _DECLARED, special_registers(), *solver.tables(), solver.text()]
    return "\n".join(parts), solver.launch


class _Solver:
    """The function while it is written."""

    def __init__(self, systems: Systems, f: Flavor, strict: bool, layout: str) -> None:
        self.systems, self.f, self.strict = systems, f, strict
        self.columns, self.n = layout == "columns", systems.rows
        self.samples = _SAMPLES[layout]
        self.side = LANES // self.samples
        self.groups = -(-self.n // self.side)
        rounds = -(-self.groups // _MOST_WARPS)
        self.warps = -(-self.groups // rounds)
        self.threads = LANES * self.warps
        self.count = sum(map(len, systems.above)) + self.n
        # lines of four samples or more, side by side, are in different banks
        lines = -(-self.count * f.word // _LINE)
        self.pitch = (lines | 1) * _LINE
        self.launch = Launch(self.threads, self.samples, self.samples * (self.pitch + _LINE))
        names = ["factor", *(["sides"] if systems.right else [])]
        given = [f"{GLOBAL} {name}" for name in names]
        for i in range(len(systems.outputs)):
            given += [f"{GLOBAL} out{i}", *([f"i64 apart{i}"] if self.columns else [])]
        given.append("i64 samples")
        bound = f'nounwind "nvvm.maxntid"="{self.threads}"'
        self.code = Function("run", "void", *given, attributes=bound, linkage="ptx_kernel ")
        self.given = {value.name[1:]: value for value in self.code.parameters}

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
        tid, block = (code.cast("trunc", special(code, f"{x}.x"), "i32") for x in ("tid", "ctaid"))
        self.tid, lane = tid, code.op("and", tid, LANES - 1)
        warp = code.op("lshr", tid, 5)
        self.sample = code.op("udiv", lane, self.side)
        self.first = code.op("mul", block, self.samples)
        self.fetched()
        shared = Value(SHARED, "@shared")
        self.mine = moved(code, shared, code.op("mul", self.sample, self.pitch))
        flags = moved(code, shared, self.samples * self.pitch)
        self.flag = moved(code, flags, code.op("mul", self.sample, 4))
        code.store(Value("i32", "0"), self.flag, "align 4")
        code.do(WAIT)
        code.do(_BARRIER)
        self.number = code.cast("zext", code.op("add", self.first, self.sample), "i64")
        there = code.compare("icmp slt", self.number, self.given["samples"])
        share = code.cast("zext", warp, "i64"), self.groups, self.warps
        column, bad = code.op("and", lane, self.side - 1), f.value(0.0)
        with code.count(*share, [bad]) as loop:
            code.do(NOT_UNROLLED)
            bad = loop.carried[0]
            self.at(loop.i, column, there)
            for some in self.at_once():
                bad = self.solved(some, bad)
            loop.next = [bad]
        if self.strict:
            self.spoiled(loop.carried[0], share, column, there)
        return code.ret().text()

    def at_once(self) -> Iterator[list[int]]:
        """The results, as many at a time as there are registers for."""
        many = len(self.systems.outputs)
        most = max(1, _REGISTERS * 4 // (self.n * self.f.word))
        size = -(-many // -(-many // most))
        for i in range(0, many, size):
            yield list(range(i, min(i + size, many)))

    # where things are

    def fetched(self) -> None:
        """Begin to copy the numbers of m of all samples to shared memory."""
        code, word, k = self.code, self.f.word, self.samples
        for begin in range(0, k * self.count, self.threads):
            i = code.op("add", self.tid, begin)
            entry, sample = code.op("udiv", i, k), code.op("and", i, k - 1)
            to = code.op("mul", entry, word)
            to = code.op("add", to, code.op("mul", sample, self.pitch))
            at = code.cast("zext", code.op("mul", entry, TILE * word), "i64")
            start = self.of_sample("factor", self.count, sample)
            inside = code.compare("icmp slt", i, k * self.count)
            place = code.cast("ptrtoint", moved(code, Value(SHARED, "@shared"), to), "i32")
            text = f"@$2 cp.async.ca.shared.global [$0], [$1], {word};"
            given = f"{place}, {moved(code, start, at)}, {inside}"
            code.do(f'call void asm sideeffect "{text}", "r,l,b,~{{memory}}"({given})')

    def of_sample(self, name: str, count: int, sample: Value) -> Value:
        """Where the numbers of a sample of the block begin, of which there are so many."""
        code, word = self.code, self.f.word
        number = code.op("add", self.first, sample)
        tile = code.cast("zext", code.op("udiv", number, TILE), "i64")
        own = code.op("mul", code.op("and", number, TILE - 1), word)
        start = moved(code, self.given[name], code.op("mul", tile, count * TILE * word))
        return moved(code, start, code.cast("zext", own, "i64"))

    def at(self, group: Value, column: Value, there: Value) -> None:
        """This thread's column in a group of them, whether there is one, and where it belongs."""
        code, n, word = self.code, self.n, self.f.word
        first = code.op("mul", code.cast("trunc", group, "i32"), self.side)
        column = code.op("add", first, column)
        inside = code.compare("icmp slt", column, n)
        self.column = code.select(inside, column, Value("i32", str(n - 1)))
        self.alive = code.op("and", inside, there)
        far = code.cast("zext", column, "i64")
        self.ends = []
        for i in range(len(self.systems.outputs)):
            if self.columns:
                at = code.op("mul", far, self.given[f"apart{i}"])
                at = code.op("add", at, code.op("mul", self.number, word))
            else:
                at = code.op("mul", self.number, n * n * word)
                at = code.op("add", at, code.op("mul", far, word))
            self.ends.append(moved(code, self.given[f"out{i}"], at))

    # columns

    def solved(self, some: Sequence[int], bad: Value) -> Value:
        """Those columns solved and written; bad: 0, NaN as soon as a result is not finite."""
        code, f = self.code, self.f
        x = [self.entries(i) for i in some]
        signs = [i < len(self.systems.right) for i in some]
        self.eliminated(x, signs)
        code.do(SYNC)
        self.substituted(x)
        with code.when(self.alive):
            for i, column in zip(some, x, strict=True):
                self.written(i, column)
        if self.strict:
            for column in x:
                for value in column:
                    bad = with_zero_times(code, f, bad, value)
        return bad

    def entries(self, i: int) -> list[Value]:
        """A column of R, or of the identity."""
        code, f, n = self.code, self.f, self.n
        if i == len(self.systems.right):
            ones = (code.compare("icmp eq", self.column, k) for k in range(n))
            return [code.select(one, f.value(1.0), f.value(0.0)) for one in ones]
        count = sum(stage.program.output_sizes[0] for stage in self.systems.sides)
        start = self.of_sample("sides", count, self.sample)
        far = code.cast("zext", code.op("mul", self.column, 4), "i64")
        table = moved(code, Value(GLOBAL, f"@right{i}"), far)
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

    def eliminated(self, x: list[list[Value]], signs: Sequence[bool]) -> None:
        """(1), with −y for those of R."""
        place, n = 0, self.n
        m = _Lines(self)
        for i, rows in enumerate(self.systems.above):
            k, scale = n - 1 - i, m.number(self.count - n + i)
            for column, minus in zip(x, signs, strict=True):
                column[k] = self.code.op("fmul", column[k], self.minus(scale) if minus else scale)
            for j in rows:
                entry = m.number(place)
                place += 1
                for column, minus in zip(x, signs, strict=True):
                    own = entry if minus else self.minus(entry)
                    column[j] = self.fused(own, column[k], column[j])

    def substituted(self, x: list[list[Value]]) -> None:
        """(2)."""
        place = self.count - self.n
        m = _Lines(self)
        for k, rows in enumerate(reversed(self.systems.above)):
            for j in reversed(rows):
                place -= 1
                entry = self.minus(m.number(place))
                for column in x:
                    column[k] = self.fused(entry, column[j], column[k])
            scale = m.number(self.count - 1 - k)
            for column in x:
                column[k] = self.code.op("fmul", column[k], scale)

    def minus(self, value: Value) -> Value:
        """−x."""
        return self.code.let(value.type, f"fneg {value}")

    def fused(self, a: Value, b: Value, c: Value) -> Value:
        """a b + c."""
        return self.code.call(f"llvm.fma.{self.f.suffix}", a, b, c, result=self.f.type)

    def written(self, i: int, column: Sequence[Value]) -> None:
        """A column to where it belongs."""
        code, f, apart = self.code, self.f, self.n * self.f.word
        if not self.columns:
            for k, value in enumerate(column):
                code.store(value, moved(code, self.ends[i], k * apart), f"align {f.word}")
            return
        letter = "f" if f.word == 4 else "d"
        for k, value in enumerate(column):
            # LLVM, shown the products, makes all of them before the first is needed
            text = f"mad.lo.s64 at, $1, {k * self.n}, $0; st.global.{f.suffix} [at], $2;"
            given = f"{self.ends[i]}, {self.given[f'apart{i}']}, {value}"
            text = f'asm sideeffect "{{ .reg .b64 at; {text} }}", "l,l,{letter}"'
            code.do(f"call void {text}({given})")

    def spoiled(self, bad: Value, share: tuple[Any, ...], column: Value, there: Value) -> None:
        """NaN in all results of a sample, if any thread of it has found one."""
        code = self.code
        spoilt = code.compare("fcmp uno", bad, bad)
        with code.when(spoilt, UNLIKELY):
            code.store(Value("i32", "1"), self.flag, "align 4")
        code.do(_BARRIER)
        flag = code.compare("icmp ne", code.load("i32", self.flag, "align 4"), 0)
        with (
            code.when(flag, UNLIKELY),
            code.count(*share) as loop,
        ):
            code.do(NOT_UNROLLED)
            self.at(loop.i, column, there)
            nan = Value(self.f.type, "0x7FF8000000000000")
            with code.when(self.alive):
                for i in range(len(self.systems.outputs)):
                    self.written(i, [nan] * self.n)


class _Lines:
    """Numbers of m as they are asked for, read from shared memory in lines."""

    def __init__(self, solver: _Solver) -> None:
        self.solver, self.width = solver, _LINE // solver.f.word
        self.known: dict[int, Value] = {}

    def number(self, i: int) -> Value:
        """One of them."""
        line, at = divmod(i, self.width)
        code, f = self.solver.code, self.solver.f
        kind = f"<{self.width} x {f.type}>"
        if line not in self.known:
            place = moved(code, self.solver.mine, line * _LINE)
            self.known[line] = code.let(kind, f"load volatile {kind}, {place}, align {_LINE}")
        return code.let(f.type, f"extractelement {self.known[line]}, i32 {at}")
