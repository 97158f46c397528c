"""A program as a kernel: one thread a sample, the rows of a warp staged in shared memory.

A warp copies its 32 rows of every argument to shared memory, where there is room those of its next
samples meanwhile; each thread reads a number there when it is first needed, leaves what does not
fit its registers (`plan.py`), and puts results into rows that the warp copies out.  Results too
large for that are gathered in pieces.  Warps know nothing of each other.  Needs
compute capability 8.0 (`cp.async`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce

from ...graph.loop import LoopProgram
from ...graph.operations import SINCOS
from ...graph.program import Program
from ...graph.scalar import Node
from ..llvm.body import Body
from ..llvm.builder import UNLIKELY, Function, Value
from ..llvm.flavor import Flavor
from ..llvm.math import Series
from .launch import HEAD, Launch
from .loop import loop_module
from .math import device_functions
from .plan import (
    FAR,
    LANES,
    SLOT,
    Place,
    Plan,
    card_plan,
    input_places,
    result_places,
)
from .staging import GLOBAL, NOT_UNROLLED, SHARED, SYNC, WAIT, Warp, aligned, moved
from .thread import special, special_registers, with_zero_times

__all__ = ["kernel_module", "kernel_text"]

# angles whose quarter turns are in one word
_TURNS = 16

_DECLARED = """@shared = external addrspace(3) global [0 x i8], align 16
declare void @llvm.nvvm.bar.warp.sync(i32)
declare i64 @llvm.smin.i64(i64, i64)
declare float @llvm.nvvm.rcp.approx.ftz.f(float)
declare double @llvm.nvvm.rcp.approx.ftz.d(double)
"""


def kernel_module(
    program: Program | LoopProgram, scalar: str, strict: bool, layout: str = "rows"
) -> tuple[str, Launch]:
    """LLVM for `nvptx64-nvidia-cuda`, and how its entry `run` is launched.

    `run` takes, for each argument: a pointer, and the bytes from one sample to the next (0: one
    sample for all); for each result a pointer, its rows contiguous; then the number of samples,
    and a pointer to scratch.  With layout="columns" entries are a stride apart and samples
    contiguous: the number is the bytes from one entry to the next, and results have one too.
    strict: a sample with an argument or a result that is not finite gets NaN in all its results.
    """
    if isinstance(program, LoopProgram):
        return loop_module(program, scalar, strict, layout)
    columns = layout == "columns"
    plan = card_plan(program, 4 if scalar == "float" else 8, columns)
    return kernel_text(program, scalar, strict, columns, plan)


def kernel_text(
    program: Program, scalar: str, strict: bool, columns: bool, plan: Plan
) -> tuple[str, Launch]:
    """The module of a program by a plan, and its launch."""
    f = Flavor(1, scalar, fused=True)
    kernel = _Kernel(program, f, strict, columns, plan)
    parts = [HEAD, _DECLARED, special_registers(), device_functions(f), kernel.text()]
    return "\n".join(parts), kernel.launch


class _Kernel(Body):
    """The function while it is written."""

    def __init__(
        self, program: Program, f: Flavor, strict: bool, columns: bool, plan: Plan
    ) -> None:
        self.program, self.flavor, self.strict, self.columns = program, f, strict, columns
        self.plan, self.stage, self.tiles = plan, plan.stage, plan.stage.tiles
        threads = LANES * plan.warps_of_block
        far = plan.far * threads * f.word
        shared, again = plan.room * plan.warps_of_block, bool(far or plan.stage.ahead)
        self.launch = Launch(threads, threads, shared, far, again, plan.as_written)
        given = [x for i in range(len(program.inputs)) for x in (f"{GLOBAL} in{i}", f"i64 to{i}")]
        for i in range(len(program.outputs)):
            given += [f"{GLOBAL} out{i}", *([f"i64 apart{i}"] if columns else [])]
        given += ["i64 samples", f"{GLOBAL} scratch"]
        bound = f'nounwind "nvvm.maxntid"="{threads}"'
        self.code = Function("run", "void", *given, attributes=bound, linkage="ptx_kernel ")
        self.given = {value.name[1:]: value for value in self.code.parameters}
        self.names, self.written = {}, {}
        self.angles = self.angles_of(step.node for step in plan.steps)
        self.arguments, self.results = input_places(program), result_places(program, plan.stage)
        self.early = _sines(program, plan.stage.angles)
        self.place_of_angle = {angle.id: i for i, angle in enumerate(plan.stage.angles)}
        self.bad = f.value(0.0)

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
            if not self.tiles[n + i].size and not self.columns
        }
        at = code.op("mul", warp.mine(), self.flavor.word)
        self.columns_at = [
            moved(code, self.given[f"out{i}"], at) for i in range(len(self.program.outputs))
        ]
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
        if not self.stage.few_angles:
            self.reduced_angles()
        for node, gone in self.plan.steps:
            self.step(node)
            for id in gone:
                self.names.pop(id, None)
        values = iter(self.program.values)
        for i, size in enumerate(self.program.output_sizes, len(self.program.inputs)):
            for e in range(size):
                node, place = next(values), Place(self.stage.twins.get(i, i), e)
                if self.tiles[i].size and self.results.get(node.id) != place:
                    self.park(node, place)

    def step(self, node: Node) -> None:
        """An operation, and its value to where it waits; or what is no operation."""
        if node.op == "put":
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

    def operation(self, node: Node) -> None:
        """As in `Body`, but for quotients."""
        if node.op == "div":
            over, under = (Value(self.flavor.type, self.operand(a)) for a in node.args)
            self.names[node.id] = _quotient(self.code, self.flavor, over, under).name
        else:
            Body.operation(self, node)

    # sines and cosines

    def sincos(self, node: Node) -> None:
        """Both of an angle, without a branch if what is large was reduced before."""
        angle = node.args[0].id
        if node.id in self.names or angle not in self.early:
            Body.sincos(self, node)
        elif self.stage.few_angles:
            self.all_at_once()
        else:
            series, x = Series(self.code, self.flavor), self.operand(node.args[0])
            r, quadrant = series.reduced_fused(Value(self.flavor.type, x))
            quadrant = self.code.op("add", quadrant, self.turn_of(angle))
            self.name_pair(angle, *series.turned(quadrant, *series.kernels_fused(r)))

    def name_pair(self, angle: int, sine: Value, cosine: Value) -> None:
        """Values for the sine and cosine of an angle."""
        for partner in self.early[angle]:
            self.names[partner.id] = (sine if partner.op == "sin" else cosine).name

    def all_at_once(self) -> None:
        """Both of all angles, with one branch for large ones."""
        given = [Value(self.flavor.type, self.operand(angle)) for angle in self.stage.angles]
        code, series = self.code, Series(self.code, self.flavor)
        quick = [series.both(x) for x in given]
        with code.when(self.any_beyond(given), UNLIKELY) as case:
            slow = [self.slow(x) for x in given]
        for angle, *ways in zip(self.stage.angles, slow, quick, strict=True):
            pair = (code.merged(case, a, b) for a, b in zip(*ways, strict=True))
            self.name_pair(angle.id, *pair)

    def reduced_angles(self) -> None:
        """Large angles less whole quarter turns where they are, and the turns in bits, 2 for each.

        So that sines are made where they are needed without a branch: with one for each, Talos'
        inverse dynamics in double spilled 1.5 kB.
        """
        code, f, angles = self.code, self.flavor, self.stage.angles
        places = [self.where(self.arguments[angle.value]) for angle in angles]
        given = [code.load(f.type, place, f"align {f.word}") for place in places]
        series, none = Series(code, f), Value("i32", "0")
        words = [none] * -(-len(angles) // _TURNS)
        with code.when(self.any_beyond(given), UNLIKELY) as case:
            for i, (x, place) in enumerate(zip(given, places, strict=True)):
                wide = x if f.word == 8 else code.cast("fpext", x, "double")
                pair = code.call("slow_turns", wide, result="{ double, i64 }")
                r = code.let("double", f"extractvalue {pair}, 0")
                r = r if f.word == 8 else code.cast("fptrunc", r, "float")
                turns = code.cast("trunc", code.let("i64", f"extractvalue {pair}, 1"), "i32")
                large = series.beyond(x)
                code.store(code.select(large, r, x), place, f"align {f.word}")
                turns = code.op("shl", code.select(large, turns, none), 2 * (i % _TURNS))
                words[i // _TURNS] = code.op("or", turns, words[i // _TURNS])
        self.turns = [code.merged(case, word, none) for word in words]

    def turn_of(self, angle: int) -> Value:
        """How many quarter turns an angle was reduced by; only the last two bits count."""
        word, bit = divmod(self.place_of_angle[angle], _TURNS)
        turns = self.code.op("lshr", self.turns[word], 2 * bit)
        return turns if self.flavor.word == 4 else self.code.cast("zext", turns, "i64")

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

    def fetch(self, node: Node) -> str:
        """Load an argument from its tile, what was made before from where it waits."""
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
        if self.columns:
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

    def write_column(self, i: int, entry: int, value: Value) -> None:
        """An entry of this thread's sample, if there is one."""
        code, f, apart = self.code, self.flavor, self.given[f"apart{i}"]
        start, letter = self.columns_at[i], "f" if f.word == 4 else "d"
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
                apart = self.given[f"apart{i}"] if self.columns else Value("i64", str(f.word))
                at = code.op("mul", warp.mine(), f.word if self.columns else size * f.word)
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


def _quotient(code: Function, f: Flavor, a: Value, b: Value) -> Value:
    """a / b by Newton's rule, right but for the last bit, without a branch.

        r ≈ 1/b;   r ← r + r (1 − b r), twice for doubles;   q = a r;   q ← q + r (a − b q)

    The card's own division calls a function for rare cases, and a call costs registers: Talos'
    forward dynamics in float32 took 1.4 × as long.  Where Newton's rule gives NaN (b is 0 or
    infinite, or the quotient is) the first guess is right.  A divisor below the smallest normal
    number counts as 0, one above 2¹²⁶ (double 2¹⁰²²) as infinite.
    """

    def fma(x: Value, y: Value, z: Value) -> Value:
        return code.call(f"llvm.fma.{f.suffix}", x, y, z, result=f.type)

    letter, minus = ("f" if f.word == 4 else "d"), code.let(f.type, f"fneg {b}")
    r = code.call(f"llvm.nvvm.rcp.approx.ftz.{letter}", b, result=f.type)
    guess = code.op("fmul", a, r)
    for _ in range(2 if f.word == 8 else 0):
        r = fma(r, fma(minus, r, f.value(1.0)), r)
    q = code.op("fmul", a, r)
    q = fma(r, fma(minus, q, a), q)
    return code.select(code.compare("fcmp ord", q, q), q, guess)
