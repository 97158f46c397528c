"""A program as a kernel: one thread a sample, the rows of a warp staged in shared memory.

A warp copies its 32 rows of every argument to shared memory, where there is room those of its next
samples meanwhile; each thread reads a number there when it is first needed, leaves what does not
fit its registers (`plan.py`), and puts results into rows that the warp copies out.  Results too
large for that are gathered in pieces.  Warps know nothing of each other.  Needs
compute capability 8.0 (`cp.async`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial, reduce

from ...graph.loop import LoopProgram
from ...graph.operations import SINCOS
from ...graph.program import Program
from ...graph.scalar import Node
from ...graph.sums import term_by_term
from ..llvm.body import Body
from ..llvm.builder import UNLIKELY, Function, Value
from ..llvm.flavor import Flavor
from ..llvm.math import Series
from .latency import FETCH, instructions
from .launch import HEAD, Launch
from .loop import loop_module
from .math import device_functions
from .plan import (
    FAR,
    LANES,
    SLOT,
    TILE,
    Place,
    Plan,
    card_plan,
    input_places,
    result_places,
)
from .staging import GLOBAL, NOT_UNROLLED, SHARED, SYNC, WAIT, Warp, aligned, moved
from .thread import ThreadBody, reciprocals, special, special_registers, with_zero_times
from .turns import TOGETHER

__all__ = ["kernel_module", "kernel_text"]

_DECLARED = """@shared = external addrspace(3) global [0 x i8], align 16
declare void @llvm.nvvm.bar.warp.sync(i32)
declare i64 @llvm.smin.i64(i64, i64)
"""


def kernel_module(
    program: Program | LoopProgram,
    scalar: str,
    strict: bool,
    layout: str = "rows",
    tiled: int = 0,
) -> tuple[str, Launch]:
    """LLVM for `nvptx64-nvidia-cuda`, and how its entry `run` is launched.

    `run` takes, for each argument: a pointer, and the bytes from one sample to the next (0: one
    sample for all); for each result a pointer, its rows contiguous; then the number of samples,
    and a pointer to scratch.  With layout="columns" entries are a stride apart and samples
    contiguous: the number is the bytes from one entry to the next, and results have one too.  With
    tiled only the arguments are as the layout says, and there is one result: in tiles of `TILE`
    samples, in which samples are contiguous and have so many numbers; it may be some of them.
    Tiles have to be there for whole warps.
    strict: a sample with an argument or a result that is not finite gets NaN in all its results.
    """
    if isinstance(program, LoopProgram):
        return loop_module(program, scalar, strict, layout)
    program, columns = term_by_term(program), layout == "columns"
    plan = card_plan(program, 4 if scalar == "float" else 8, columns, columns or tiled > 0)
    return kernel_text(program, scalar, strict, columns, plan, tiled)


def kernel_text(
    program: Program, scalar: str, strict: bool, columns: bool, plan: Plan, tiled: int = 0
) -> tuple[str, Launch]:
    """The module of a program by a plan, and its launch."""
    f = Flavor(1, scalar, fused=True)
    kernel = _Kernel(program, f, strict, columns, plan, tiled)
    text = kernel.text()
    tables = [_table(f"offsets{i}", t.offsets, f) for i, t in enumerate(plan.stage.turns)]
    if kernel.numbers:
        tables.append(_table("numbers", kernel.numbers, f))
    parts = [HEAD, _DECLARED, special_registers(), reciprocals()]
    parts += [device_functions(f, text), *tables, text]
    return "\n".join(parts), kernel.launch


def _table(name: str, numbers: Iterable[float], f: Flavor) -> str:
    """Numbers in the memory of constants, by a name that instructions know."""
    listed = [str(f.value(x)) for x in numbers]
    kind = f"[{len(listed)} x {f.type}]"
    return f"@{name} = addrspace(4) constant {kind} [{', '.join(listed)}]\n"


class _Kernel(ThreadBody):
    """The function while it is written."""

    def __init__(
        self, program: Program, f: Flavor, strict: bool, columns: bool, plan: Plan, tiled: int
    ) -> None:
        self.program, self.flavor, self.strict, self.columns = program, f, strict, columns
        self.tiled, self.at_once = tiled, columns or tiled > 0
        self.plan, self.stage, self.tiles = plan, plan.stage, plan.stage.tiles
        threads = LANES * plan.warps_of_block
        far = plan.far * threads * f.word
        shared, again = plan.room * plan.warps_of_block, bool(far or plan.stage.ahead)
        self.launch = Launch(threads, threads, shared, far, again, plan.as_written)
        given = [x for i in range(len(program.inputs)) for x in (f"{GLOBAL} in{i}", f"i64 to{i}")]
        for i in range(len(program.outputs)):
            given += [f"{GLOBAL} out{i}", *([f"i64 apart{i}"] if columns and not tiled else [])]
        given += ["i64 samples", f"{GLOBAL} scratch"]
        bound = f'nounwind "nvvm.maxntid"="{threads}"'
        if not plan.stage.piece.size:
            # as many registers as leave room for all warps; what gathers pieces would spill
            bound += f' "nvvm.minctasm"="{plan.trial.warps // plan.warps_of_block}"'
        self.code = Function("run", "void", *given, attributes=bound, linkage="ptx_kernel ")
        self.given = {value.name[1:]: value for value in self.code.parameters}
        self.names, self.written = {}, {}
        self.angles = self.angles_of(step.node for step in plan.steps)
        self.arguments, self.results = input_places(program), result_places(program, plan.stage)
        self.early = _sines(program, plan.stage.angles)
        self.bad = f.value(0.0)
        self.numbers: dict[float, int] = {}

    # samples after samples

    def text(self) -> str:
        """The whole function."""
        code, ahead, samples = self.code, self.stage.ahead, self.given["samples"]
        tid, block, blocks = (special(code, f"{x}.x") for x in ("tid", "ctaid", "nctaid"))
        short = code.cast("trunc", tid, "i32")
        self.lane, warp = code.op("and", short, LANES - 1), code.op("lshr", short, 5)
        self.base = moved(code, Value(SHARED, "@shared"), code.op("mul", warp, self.plan.room))
        self.far_places(tid, block)
        self.plain = self.in_whole_lines()
        first, step = (
            code.op("mul", code.cast("trunc", x, "i32"), self.plan.warps_of_block)
            for x in (block, blocks)
        )
        first = code.op("add", first, warp)
        rounds = code.op("lshr", code.op("add", samples, LANES - 1), 5)
        self.rounds = code.cast("trunc", rounds, "i32")
        # a round fetches the arguments of the next, and the first round does nothing else
        start = code.op("sub", first, step) if ahead else first
        with code.loop(start, Value("i32", str(ahead))) as loop:
            now, at = loop.carried
            code.leave(loop, code.compare("icmp sge", now, self.rounds))
            following = code.op("add", now, step)
            if ahead:
                self.round_ahead(now, at, following)
            else:
                self.fetched(self.warp(now))
                self.settled()
                self.sample(self.warp(now), self.base)
            if not self.launch.persistent:
                code.jump(loop.done)
                code.label(code.fresh())
            loop.next = [following, code.op("sub", Value("i32", str(ahead)), at)]
        return code.ret().text()

    def round_ahead(self, now: Value, at: Value, following: Value) -> None:
        """One round, with arguments `at` so many bytes, and those of the following fetched."""
        code = self.code
        self.settled()
        there = moved(code, self.base, code.op("sub", Value("i32", str(self.stage.ahead)), at))
        with code.when(code.compare("icmp slt", following, self.rounds)):
            self.fetched(self.warp(following, there))
        with code.when(code.compare("icmp sge", now, 0)):
            self.sample(self.warp(now), moved(code, self.base, at))

    def warp(self, number: Value, base: Value | None = None) -> Warp:
        """This warp at some samples; base: where tiles of arguments begin."""
        given = self.base if base is None else base
        return Warp(self.code, self.flavor, given, self.lane, number, self.given["samples"])

    def in_whole_lines(self) -> dict[str, Value]:
        """Of each array whether rows follow each other, from an aligned pointer on."""
        code, word, found = self.code, self.flavor.word, {}
        for i, size in enumerate(self.program.input_sizes):
            packed = code.compare("icmp eq", self.given[f"to{i}"], size * word)
            found[f"in{i}"] = code.op("and", packed, aligned(code, self.given[f"in{i}"]))
        for i in range(len(self.program.outputs)):
            found[f"out{i}"] = aligned(code, self.given[f"out{i}"])
        return found

    def far_places(self, tid: Value, block: Value) -> None:
        """Where this thread's places far away begin."""
        if self.plan.far:
            at = self.code.op("mul", block, self.launch.scratch)
            at = self.code.op("add", at, self.code.op("mul", tid, self.flavor.word))
            self.far = moved(self.code, self.given["scratch"], at)

    def fetched(self, warp: Warp) -> None:
        """Begin to copy the arguments of a warp."""
        code, n = self.code, len(self.program.inputs)
        given = [(self.tiles[i], self.given[f"in{i}"], self.given[f"to{i}"]) for i in range(n)]
        if self.columns:
            for tile, array, stride in given:
                warp.bring_columns(tile, array, stride)
            return
        plain = [self.plain[f"in{i}"] for i in range(n)]
        fast = reduce(partial(code.op, "and"), plain, warp.full)
        with code.when(fast):
            for tile, array, _ in given:
                warp.bring_lines(tile, array)
        with warp.otherwise(fast):
            for array, whole in zip(given, plain, strict=True):
                warp.bring(*array, whole)

    def settled(self) -> None:
        """Wait for copies, and for all threads of the warp."""
        self.code.do(WAIT)
        self.code.do(SYNC)

    # one sample

    def sample(self, warp: Warp, here: Value) -> None:
        """One sample for each thread; here: where the tiles of arguments begin."""
        code, n = self.code, len(self.program.inputs)
        self.at_work, self.bad, self.names = warp, self.flavor.value(0.0), {}
        rows = [(tile, here if i < n else self.base) for i, tile in enumerate(self.tiles)]
        rows += [(self.plan.slots, self.base)]
        self.rows = {
            (tile.pitch, base.name): moved(code, base, code.op("mul", self.lane, tile.pitch))
            for tile, base in rows
        }
        self.here = here
        self.destinations = {
            i: warp.destination(self.given[f"out{i}"], size, self.plain[f"out{i}"])
            for i, size in enumerate(self.program.output_sizes)
            if not self.tiles[n + i].size and not self.at_once
        }
        self.columns_at = [self.column_of(warp, i) for i in range(len(self.program.outputs))]
        self.evaluated()
        code.do(SYNC)
        for i in range(len(self.program.outputs)):
            if self.tiles[n + i].size:
                warp.take(self.tiles[n + i], self.given[f"out{i}"], self.plain[f"out{i}"])
        if self.strict or self.launch.persistent:
            code.do(SYNC)
        if self.strict:
            self.spoiled(warp)

    def evaluated(self) -> None:
        """All steps, and the entries that are constants, arguments, or the same as others."""
        if self.strict:
            used = {a.value for step in self.plan.steps for a in step.node.args if a.op == "input"}
            for i in self.program.silent - used:
                self.doubt(self.load_at(self.arguments[i]))
        self.turned()
        for node in instructions(self.program, self.plan, self.flavor.word):
            self.step(node)
        values = iter(self.program.values)
        for i, size in enumerate(self.program.output_sizes, len(self.program.inputs)):
            for e in range(size):
                node, place = next(values), Place(self.stage.twins.get(i, i), e)
                if self.tiles[i].size and self.results.get(node.id) != place:
                    self.park(node, place)

    def step(self, node: Node) -> None:
        """An operation, and its value to where it waits; or what is no operation."""
        if node.op == FETCH:
            self.names[node.args[0].id] = self.fetch(node.args[0])
        elif node.op == "put":
            self.put(node)
        elif node.op == "write":
            self.write(node)
        elif node.op != "keep":
            self.operation(node)
            if node.id in self.plan.places:
                self.park(node, self.plan.places[node.id])
            if node.id in self.results:
                self.park(node, self.results[node.id])
                self.doubt(self.names[node.id])

    # sines and cosines

    def sincos(self, node: Node) -> None:
        """Both of an angle; of few angles, those of all at once."""
        angle = node.args[0].id
        if node.id in self.names or angle not in self.early:
            Body.sincos(self, node)
        else:
            self.all_at_once()

    def name_pair(self, angle: int, sine: Value, cosine: Value) -> None:
        """Values for the sine and cosine of an angle."""
        for partner in self.early[angle]:
            self.names[partner.id] = (sine if partner.op == "sin" else cosine).name

    def all_at_once(self) -> None:
        """Both of all angles, with one branch for large ones."""
        given = [Value(self.flavor.type, self.operand(angle)) for angle in self.stage.angles]
        for angle, pair in zip(self.stage.angles, self.both(given), strict=True):
            self.name_pair(angle.id, *pair)

    def turned(self) -> None:
        """Sines in the place of angles, and cosines in slots, a few at a time in a loop."""
        code, slot = self.code, 0
        for i, turns in enumerate(self.stage.turns):
            count = len(turns.offsets)
            sines, cosines = self.arguments[turns.first], Place(SLOT, slot)
            with code.count(0, count // TOGETHER) as loop:
                first = code.op("mul", code.cast("trunc", loop.i, "i32"), TOGETHER)
                self.turn(i, sines, cosines, first, TOGETHER)
            if left := count % TOGETHER:
                self.turn(i, sines, cosines, Value("i32", str(count - left)), left)
            slot += count

    def turn(self, i: int, sines: Place, cosines: Place, first: Value, count: int) -> None:
        """So many angles from one on, side by side."""
        code, f = self.code, self.flavor
        numbers = [code.op("add", first, k) for k in range(count)]
        at = [self.along(sines, number) for number in numbers]
        given = [code.load(f.type, place, f"align {f.word}") for place in at]
        if any(self.stage.turns[i].offsets):
            offsets = [self.offset(i, number) for number in numbers]
            given = [code.op("fadd", x, y) for x, y in zip(given, offsets, strict=True)]
        for place, number, (s, c) in zip(at, numbers, self.both(given), strict=True):
            code.store(s, place, f"align {f.word}")
            code.store(c, self.along(cosines, number), f"align {f.word}")

    def offset(self, i: int, number: Value) -> Value:
        """What is added to an angle."""
        table = Value("ptr addrspace(4)", f"@offsets{i}")
        kind = self.flavor.type
        where = self.code.let(table.type, f"getelementptr {kind}, {table}, {number}")
        return self.code.load(kind, where)

    def both(self, angles: Sequence[Value]) -> list[list[Value]]:
        """Sines and cosines, with one branch if any is large."""
        code, series = self.code, Series(self.code, self.flavor)
        quick = code.in_turns([partial(series.both, x) for x in angles])
        with code.when(self.any_beyond(angles), UNLIKELY) as case:
            slow = [self.slow(x) for x in angles]
        return [
            [code.merged(case, a, b) for a, b in zip(*ways, strict=True)]
            for ways in zip(slow, quick, strict=True)
        ]

    def along(self, place: Place, number: Value) -> Value:
        """The address so many entries after a place."""
        step = (self.plan.slots if place.tile == SLOT else self.tiles[place.tile]).step
        return moved(self.code, self.where(place), self.code.op("mul", number, step))

    def any_beyond(self, angles: Sequence[Value]) -> Value:
        """Whether any is too large for the series."""
        series = Series(self.code, self.flavor)
        return reduce(partial(self.code.op, "or"), [series.beyond(x) for x in angles])

    def slow(self, angle: Value) -> tuple[Value, Value]:
        """Both of an angle of any size."""
        code, t = self.code, self.flavor.type
        pair = code.call(f"slow_sincos_{self.flavor.name}", angle, result=f"{{ {t}, {t} }}")
        sine, cosine = (code.let(t, f"extractvalue {pair}, {i}") for i in range(2))
        return sine, cosine

    # what waits

    def operand(self, node: Node) -> str:
        """As in `Body`; a number may have been fetched."""
        fetched = self.names.get(node.id) if node.op == "const" else None
        return fetched or Body.operand(self, node)

    def fetch(self, node: Node) -> str:
        """Load an argument from its tile, what was made before from where it waits."""
        if node.op == "const":
            at = self.flavor.word * self.numbers.setdefault(node.value, len(self.numbers))
            return self.line(
                f'call double asm sideeffect "ld.const.f64 $0, [numbers+{at}];", "=d"()'
            )
        if node.op == "input":
            value = self.load_at(self.arguments[node.value])
            if node.value in self.program.silent:
                self.doubt(value)
            return value
        return self.load_at(self.plan.places.get(node.id) or self.results[node.id])

    def load_at(self, place: Place) -> str:
        """What waits in a place; volatile, since compilers would keep it in a register instead."""
        f = self.flavor
        if place.tile == FAR:
            letter, at = "f" if f.word == 4 else "d", place.entry * self.launch.threads * f.word
            text = f'asm sideeffect "ld.global.{f.suffix} $0, [$1+{at}];", "={letter},l"'
            return self.line(f"call {f.type} {text}({self.far})")
        return self.line(f"load volatile {f.type}, {self.where(place)}, align {f.word}")

    def park(self, node: Node, place: Place) -> None:
        """Put a value to where it waits."""
        f, value = self.flavor, self.operand(node)
        if place.tile == FAR:
            letter, at = "f" if f.word == 4 else "d", place.entry * self.launch.threads * f.word
            text = f'asm sideeffect "st.global.{f.suffix} [$0+{at}], $1;", "l,{letter}"'
            self.code.do(f"call void {text}({self.far}, {f.type} {value})")
        else:
            self.code.do(f"store volatile {f.type} {value}, {self.where(place)}, align {f.word}")

    def where(self, place: Place) -> Value:
        """The address of a place in shared memory."""
        tile = self.plan.slots if place.tile == SLOT else self.tiles[place.tile]
        argument = 0 <= place.tile < len(self.program.inputs)
        row = self.rows[tile.pitch, (self.here if argument else self.base).name]
        return moved(self.code, row, tile.start + place.entry * tile.step)

    # results that are written in pieces

    def put(self, node: Node) -> None:
        """A line of entries to where they are gathered; of a column, an entry to its place."""
        i, entry, k = node.value
        values = [Value(self.flavor.type, self.operand(a)) for a in node.args]
        for a, value in zip(node.args, values, strict=True):
            if a.op not in ("const", "input"):
                self.doubt(value.name)
        if self.at_once:
            self.write_column(i, entry + k, *values)
            return
        if k == 0:
            self.code.do(SYNC)
        self.at_work.put(self.stage.piece, k, values)

    def write(self, node: Node) -> None:
        """What was gathered, to where it belongs, by all threads of the warp together."""
        i, entry, count = node.value
        code, warp, size = self.code, self.at_work, self.program.output_sizes[i]
        start, fast = self.destinations[i]
        if count * self.flavor.word % 16:
            fast = Value("i1", "false")
        code.do(SYNC)
        with code.when(fast):
            warp.pour(self.stage.piece, count, start, size, entry)
        with warp.otherwise(fast):
            warp.drip(self.stage.piece, count, self.given[f"out{i}"], size, entry)

    def column_of(self, warp: Warp, i: int) -> Value:
        """Where this thread's sample begins in a result whose samples are side by side."""
        code, word = self.code, self.flavor.word
        at = code.op("mul", warp.mine(), word)
        if self.tiled:
            tile = code.op("udiv", warp.mine(), TILE)
            at = code.op("mul", code.op("urem", warp.mine(), TILE), word)
            at = code.op("add", at, code.op("mul", tile, TILE * self.tiled * word))
        return moved(code, self.given[f"out{i}"], at)

    def write_column(self, i: int, entry: int, value: Value) -> None:
        """An entry of this thread's sample, if there is one; in tiles there is one."""
        code, f = self.code, self.flavor
        start, letter = self.columns_at[i], "f" if f.word == 4 else "d"
        if self.tiled:
            text = f"st.global.{f.suffix} [$0+{entry * TILE * f.word}], $1;"
            code.do(f'call void asm sideeffect "{text}", "l,{letter}"({start}, {value})')
            return
        apart = self.given[f"apart{i}"]
        # a predicate, since a branch would cut the code into small blocks; and LLVM, shown the
        # products, takes minutes over them
        text = f".reg .b64 at; mad.lo.s64 at, $2, {entry}, $1; @$0 st.global.{f.suffix} [at], $3;"
        given = f"{self.at_work.alive()}, {start}, {apart}, {value}"
        code.do(f'call void asm sideeffect "{{ {text} }}", "b,l,l,{letter}"({given})')

    # samples with numbers that are not finite

    def doubt(self, value: str) -> None:
        """Remember whether a number is not finite."""
        if self.strict:
            given = Value(self.flavor.type, value)
            self.bad = with_zero_times(self.code, self.flavor, self.bad, given)

    def spoiled(self, warp: Warp) -> None:
        """NaN in all results of this thread's sample, if there was one."""
        code, f = self.code, self.flavor
        spoilt = code.compare("fcmp uno", self.bad, self.bad)
        with code.when(spoilt, UNLIKELY), code.when(warp.alive()):
            for i, size in enumerate(self.program.output_sizes):
                apart = Value("i64", str(TILE * f.word if self.tiled else f.word))
                start = self.columns_at[i]
                if self.columns and not self.tiled:
                    apart = self.given[f"apart{i}"]
                elif not self.tiled:
                    at = code.op("mul", warp.mine(), size * f.word)
                    start = moved(code, self.given[f"out{i}"], at)
                with code.count(0, size) as loop:
                    code.do(NOT_UNROLLED)
                    there = moved(code, start, code.op("mul", loop.i, apart))
                    code.store(self.bad, there, f"align {f.word}")


def _sines(program: Program, angles: Sequence[Node]) -> dict[int, list[Node]]:
    """The sines and cosines of angles."""
    found: dict[int, list[Node]] = {angle.id: [] for angle in angles}
    for node in program.nodes:
        if node.op in SINCOS and node.args[0].id in found:
            found[node.args[0].id].append(node)
    return found
