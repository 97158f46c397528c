"""What kernels have that solve linear systems of one matrix for many columns at once.

    X = −M⁻¹ R,   M⁻¹,   M = m mᵀ with m upper triangular

The numbers of m of a sample are in shared memory; a thread holds a column of a right-hand side in
its registers, or some, and all of them go through m at once:

    from the last k on    y_k = x_k / m_kk,   x_j ← x_j − m_jk y_k for j above k                (1)
    from the first on     x_k = (y_k − Σ_j m_jk x_j) / m_kk                                     (2)

Numbers come in tiles as `kernel.py` writes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...graph.systems import Systems
from ..llvm.builder import Function, Value
from ..llvm.flavor import Flavor
from .plan import TILE
from .staging import GLOBAL, SHARED, SYNC, moved
from .thread import special

__all__ = ["BARRIER", "DECLARED", "LINE", "Factor", "Solver"]

BARRIER = "call void @llvm.nvvm.barrier0()"
# bytes that a thread reads of the numbers of m at a time
LINE = 16
DECLARED = """@shared = external addrspace(3) global [0 x i8], align 16
declare void @llvm.nvvm.bar.warp.sync(i32)
declare void @llvm.nvvm.barrier0()
declare float @llvm.fma.f32(float, float, float)
declare double @llvm.fma.f64(double, double, double)
"""


class Factor:
    """The numbers of m of a sample, as `factor_numbers` has them, from an address in shared memory.

    above: for each column of m from the last on, the rows above the diagonal that are not zero.
    """

    def __init__(
        self, code: Function, f: Flavor, above: Sequence[Sequence[int]], mine: Value
    ) -> None:
        self.code, self.f, self.above, self.mine = code, f, above, mine
        self.n = len(above)
        self.count = sum(map(len, above)) + self.n

    def solve(self, x: Sequence[list[Value]]) -> None:
        """Columns of R to those of −M⁻¹ R."""
        self.eliminate(x)
        self.code.do(SYNC)
        self.substitute(x)

    def eliminate(self, x: Sequence[list[Value]]) -> None:
        """(1), with −y for y."""
        place, n = 0, self.n
        m = _Lines(self)
        for i, rows in enumerate(self.above):
            k, scale = n - 1 - i, self.minus(m.number(self.count - n + i))
            for column in x:
                column[k] = self.code.op("fmul", column[k], scale)
            for j in rows:
                entry = m.number(place)
                place += 1
                for column in x:
                    column[j] = self.fused(entry, column[k], column[j])

    def substitute(self, x: Sequence[list[Value]]) -> None:
        """(2)."""
        place = self.count - self.n
        m = _Lines(self)
        for k, rows in enumerate(reversed(self.above)):
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


class _Lines:
    """Numbers of m as they are asked for, read from shared memory in lines."""

    def __init__(self, factor: Factor) -> None:
        self.factor, self.width = factor, LINE // factor.f.word
        self.known: dict[int, Value] = {}

    def number(self, i: int) -> Value:
        """One of them."""
        line, at = divmod(i, self.width)
        code, f = self.factor.code, self.factor.f
        kind = f"<{self.width} x {f.type}>"
        if line not in self.known:
            place = moved(code, self.factor.mine, line * LINE)
            self.known[line] = code.let(kind, f"load volatile {kind}, {place}, align {LINE}")
        return code.let(f.type, f"extractelement {self.known[line]}, i32 {at}")


class Solver:
    """The function `run` while it is written, for blocks of so many threads and samples.

    count, right: how many numbers a sample has of m, and of all R together.
    """

    def __init__(
        self,
        systems: Systems,
        f: Flavor,
        columns: bool,
        samples: int,
        threads: int,
        attributes: str = "",
    ) -> None:
        self.systems, self.f, self.n = systems, f, systems.rows
        self.samples, self.threads = samples, threads
        self.count = sum(map(len, systems.above)) + self.n
        self.right = sum(stage.program.output_sizes[0] for stage in systems.sides)
        given = [f"{GLOBAL} {name}" for name in ("factor", *(["sides"] if systems.right else []))]
        for i in range(len(systems.outputs)):
            given += [f"{GLOBAL} out{i}", *([f"i64 apart{i}"] if columns else [])]
        given.append("i64 samples")
        bound = f'nounwind "nvvm.maxntid"="{threads}"{attributes}'
        self.code = Function("run", "void", *given, attributes=bound, linkage="ptx_kernel ")
        self.given = {value.name[1:]: value for value in self.code.parameters}

    def begun(self) -> None:
        """Which thread this is, and which sample is the first of its block."""
        code = self.code
        self.tid, block = (
            code.cast("trunc", special(code, f"{x}.x"), "i32") for x in ("tid", "ctaid")
        )
        self.first = code.op("mul", block, self.samples)

    def of_sample(self, name: str, count: int, sample: Value) -> Value:
        """Where the numbers of a sample of the block begin, of which there are so many."""
        code, word = self.code, self.f.word
        number = code.op("add", self.first, sample)
        tile = code.cast("zext", code.op("udiv", number, TILE), "i64")
        own = code.op("mul", code.op("and", number, TILE - 1), word)
        start = moved(code, self.given[name], code.op("mul", tile, count * TILE * word))
        return moved(code, start, code.cast("zext", own, "i64"))

    def fetched(self, base: Value, pitch: int) -> None:
        """Begin to copy the numbers of m of all samples to shared memory, so far apart."""
        code, word = self.code, self.f.word
        for i, sample, inside in self.one_by_one(self.count):
            to = code.op("add", code.op("mul", i, word), code.op("mul", sample, pitch))
            at = code.op("mul", i, TILE * word)
            self.copied("factor", self.count, sample, at, moved(code, base, to), inside)

    def one_by_one(self, count: int) -> Iterator[tuple[Value, Value, Value]]:
        """Of so many numbers of each sample of the block those of this thread.

        For each of them its own number, the sample, and whether it is there.
        """
        code, every = self.code, self.samples * count
        for begin in range(0, every, self.threads):
            i = code.op("add", self.tid, begin)
            inside = code.compare("icmp slt", i, every)
            yield code.op("udiv", i, self.samples), code.op("urem", i, self.samples), inside

    def copied(
        self, name: str, count: int, sample: Value, at: Value, to: Value, inside: Value
    ) -> None:
        """Begin to copy a number of a sample, so many bytes from its first, to shared memory."""
        code, word = self.code, self.f.word
        start = self.of_sample(name, count, sample)
        at = moved(code, start, code.cast("zext", at, "i64"))
        place = code.cast("ptrtoint", to, "i32")
        text = f"@$2 cp.async.ca.shared.global [$0], [$1], {word};"
        code.do(f'call void asm sideeffect "{text}", "r,l,b,~{{memory}}"({place}, {at}, {inside})')

    def shared(self, offset: int = 0) -> Value:
        """So many bytes from the start of shared memory."""
        return moved(self.code, Value(SHARED, "@shared"), offset)
