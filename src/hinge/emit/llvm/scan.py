"""Time loops as LLVM: a tile of samples goes through all steps before the next tile starts.

The states of a tile stay in the scratch memory, as vectors over its samples, from the first step to
the last.  A step loads its inputs, runs the bodies once for each stage, hands the new states on,
and now and then writes down its results.  One lane makes the same code for a single sample.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate

from ...graph.relay import Relay
from ...graph.scan import Scan
from ..layout import Layout
from .batch import indexed
from .body import Bodies, bodies, put_constants
from .builder import Function, Value, i64
from .flavor import Flavor, number_text
from .library import declarations
from .math import angles_loop
from .relay import relay_bodies
from .tiles import sums, tiles

__all__ = ["scan_parts", "take"]

# bytes of a vector that every CPU has whose code is written as bytes, and of a line
_VECTOR, _LINE = 32, 64


def scan_parts(scan: Scan, f: Flavor, strict: bool) -> tuple[Layout, Bodies, list[str]]:
    """Where results go, the bodies, and the texts that a module has of its own.

    strict: a sample with an argument or a state that is not finite is NaN from the next record on.
    """
    turns = {f.name: f}
    if isinstance(scan.step, Relay):
        layout, made = relay_bodies(scan.step, f)
    else:
        # many angles of a single sample are turned at once
        wide = replace(f, lanes=_VECTOR // f.word) if f.lanes == 1 and f.direct else f
        layout, turns[wide.name] = Layout(scan.step), wide
        made = bodies(layout, f, wide)
    rows = tiles(f) if f.lanes > 1 else _rows_alone(f)
    parts = [x for g in turns.values() for x in (declarations(g), angles_loop(g))]
    parts += [rows, _splat(f), take(f), _fetch(f), _table(scan, f)]
    parts += [sums(f)] if strict else []
    loop = _Loop(scan, layout, f, strict)
    size = i64((loop.scratch + _whole_lines(made.slots, f)) * f.bytes)
    workspace = Function("workspace", "i64", linkage="").ret(size).text()
    return layout, made, [*parts, loop.text(), workspace]


def _whole_lines(values: int, f: Flavor) -> int:
    """So many values or a few more, such that vectors may begin behind them."""
    line = max(1, _LINE // f.bytes)
    return -(-values // line) * line


def _table(scan: Scan, f: Flavor) -> str:
    numbers = [f"{f.scalar} {number_text(x, f.scalar)}" for row in scan.stages for x in row]
    return f"@stages = internal constant [{len(numbers)} x {f.scalar}] [{', '.join(numbers)}]"


def _rows_alone(f: Flavor) -> str:
    """`pack` and `unpack` of one sample; the sum is not used here."""
    tile, total = ("ptr base", "i64 stride", "i64 b", "i64 end", "ptr tile", "i64 n"), f"{f.type} s"
    code = Function(f"pack_{f.name}", f.type, *tile, total)
    base, stride, b, _, tile_, n, s = code.parameters
    code.call(f"splat_{f.name}", code.at(base, code.op("mul", b, stride)), tile_, n)
    pack = code.ret(s).text()
    code = Function(f"unpack_{f.name}", f.type, *tile, "ptr index", total)
    base, stride, b, _, tile_, n, index, s = code.parameters
    code.call(f"take_{f.name}", tile_, index, code.at(base, code.op("mul", b, stride)), n)
    return pack + code.ret(s).text()


def _splat(f: Flavor) -> str:
    """n numbers to all lanes."""
    code = Function(f"splat_{f.name}", "void", "ptr noalias from", "ptr noalias to", "i64 n")
    numbers, to, n = code.parameters
    with code.count(0, n) as loop:
        code.put(f.spread(code, code.entry(f.scalar, numbers, loop.i)), to, loop.i)
    return code.ret().text()


def take(f: Flavor) -> str:
    """n values to the places that the index has for them."""
    given = "ptr noalias from", "ptr index", "ptr noalias to", "i64 n"
    code = Function(f"take_{f.name}", "void", *given)
    values, index, to, n = code.parameters
    with code.count(0, n) as loop:
        number = code.cast("zext", code.entry("i32", index, loop.i), "i64")
        code.put(code.entry(f.type, values, number), to, loop.i)
    return code.ret().text()


def _fetch(f: Flavor) -> str:
    """Rows of n entries as vectors, one row for all samples if they are no distance apart."""
    given = "ptr a", "i64 stride", "i64 b", "i64 end", "ptr to", "i64 n"
    code = Function(f"fetch_{f.name}", "void", *given)
    a, stride, _, _, to, n = code.parameters
    with code.when(code.compare("icmp eq", stride, 0)):
        code.call(f"splat_{f.name}", a, to, n)
        code.ret()
    code.call(f"pack_{f.name}", *code.parameters, f.value(0.0), result=f.type)
    return code.ret().text()


class _Loop:
    """void run(ptr arrays, ptr strides, ptr jumps, ptr plan, i64 begin, i64 end, ptr scratch).

    arrays: the addresses of all arguments, then of what is recorded; strides: bytes from a sample
    to the next; jumps: bytes from a step, or a record, to the next; plan: how many steps, every how
    many of them to record, after how many the first time.  The states are written back at the end.

    Two blocks of values take turns: the states are read from one (`now`) while results are written
    to the other, which the next stage reads.
    """

    def __init__(self, scan: Scan, layout: Layout, f: Flavor, strict: bool) -> None:
        self.scan, self.layout, self.f, self.strict = scan, layout, f, strict
        self.sizes = scan.step.input_sizes
        self.entries = list(accumulate(scan.step.output_sizes, initial=0))
        # a value that is two entries of the states, or a constant, has to be put in its places
        self.together = sum(self.sizes[: scan.states])
        self.in_place = list(layout.index[: self.together]) == list(range(self.together))
        self.block = layout.size if self.in_place else max(self.together, layout.size)
        given = "ptr arrays", "ptr strides", "ptr jumps", "ptr plan", "i64 begin", "i64 end"
        self.code = Function("run", "void", *given, "ptr scratch", linkage="")
        self.end = self.code.parameters[5]

    @property
    def scratch(self) -> int:
        """How many values `run` keeps besides the workspace of the bodies."""
        blocks = self.block * (2 if self.in_place else 3)
        return _whole_lines(sum(self.sizes[self.scan.states :]) + blocks, self.f)

    def text(self) -> str:
        """The function: tile by tile."""
        code, scan, begin = self.code, self.scan, self.code.parameters[4]
        self.read()
        with code.count(begin, self.end, self.f.lanes) as loop:
            self.b = loop.i
            for i, state in enumerate(self.states(self.blocks[0])):
                self.fetched(i, self.arrays[i], state)
            for i in range(scan.states + scan.inputs_per_step, len(scan.inputs)):
                self.fetched(i, self.arrays[i], self.inputs[i - scan.states])
            made = self.steps()
            for i in range(scan.states):
                self.unpacked(i, self.arrays[i], i, made)
        return code.ret().text()

    def read(self) -> None:
        """Addresses, strides, jumps, the plan, and where things are in the scratch memory."""
        code, scan = self.code, self.scan
        arrays, strides, jumps, plan, _, _, scratch = code.parameters
        count = range(len(scan.inputs) + len(scan.recorded))
        self.arrays = [code.entry("ptr", arrays, i) for i in count]
        self.strides = [code.entry("i64", strides, i) for i in count]
        self.jumps = [code.entry("i64", jumps, i) for i in count]
        sizes = [*self.sizes[scan.states :], self.block, self.block]
        sizes += [] if self.in_place else [self.block]
        at = accumulate((size * self.f.bytes for size in sizes), initial=0)
        *parts, _ = [code.at(scratch, offset) for offset in at]
        self.workspace = code.at(scratch, self.scratch * self.f.bytes)
        self.inputs = parts[: len(self.sizes) - scan.states]
        # results go where the next states are read, or to a place of their own
        self.blocks = parts[len(self.inputs) :][:2]
        self.own = None if self.in_place else parts[-1]
        self.count, self.every, self.first = (code.entry("i64", plan, i) for i in range(3))

    def steps(self) -> Value:
        """All steps of a tile; where the results of the last one are."""
        code, scan = self.code, self.scan
        start = [self.first, i64(0), *self.blocks]
        with code.count(0, self.count, carried=start) as loop:
            left, row, now, other = loop.carried
            if scan.until is not None:
                code.leave(loop, self.finished(loop.i, code.at(now, scan.until, self.f.type)))
            for i in range(scan.states, scan.states + scan.inputs_per_step):
                given = self.moved(i, loop.i)
                self.fetched(i, given, self.inputs[i - scan.states])
            now, other = self.stages(now, other)
            left = code.op("sub", left, 1)
            due = code.compare("icmp eq", left, 0)
            with code.when(due):
                self.recorded(row, other, now)
            left = code.select(due, self.every, left)
            row = code.op("add", row, code.cast("zext", due, "i64"))
            loop.next = [left, row, now, other]
        return self.own or loop.carried[2]

    def finished(self, steps: Value, mark: Value) -> Value:
        """Whether some step was taken, and the mark at that address is not 0 in any lane."""
        code, f = self.code, self.f
        truth = code.compare("fcmp une", code.load(f.type, mark), f.value(0.0))
        if f.lanes > 1:
            whole = code.cast("bitcast", truth, f"i{f.lanes}")
            truth = code.compare("icmp eq", whole, -1)
        return code.op("and", code.compare("icmp sgt", steps, 0), truth)

    def stages(self, now: Value, other: Value) -> tuple[Value, Value]:
        """All stages of a step: where the new states are, and where those of the last stage are."""
        code, f, stages = self.code, self.f, len(self.scan.stages)
        with code.count(0, stages, carried=[now, other]) as loop:
            now, other = loop.carried
            states = self.states(now)
            if self.scan.staged:
                n = self.sizes[-1]
                at = code.op("mul", loop.i, n)
                numbers = code.at(Value("ptr", "@stages"), at, f.scalar)
                code.call(f"splat_{f.name}", numbers, self.inputs[-1], i64(n))
            made = self.own or other
            code.call(f"all_{f.name}", *states, *self.inputs, made, self.workspace)
            if self.own:
                put_constants(code, self.layout, f, made)
                self.taken(made, other)
            loop.next = [other, now]
        now, other = loop.carried
        return now, other

    def states(self, block: Value) -> list[Value]:
        """The addresses of the states in a block."""
        sizes = self.sizes[: self.scan.states]
        starts = accumulate((size * self.f.bytes for size in sizes[:-1]), initial=0)
        return [self.code.at(block, at) for at in starts]

    def fetched(self, i: int, rows: Value, to: Value) -> None:
        """Argument i of the tile."""
        given = rows, self.strides[i], self.b, self.end, to, i64(self.sizes[i])
        self.code.call(f"fetch_{self.f.name}", *given)

    def moved(self, i: int, count: Value) -> Value:
        """Array i after so many steps or records."""
        return self.code.at(self.arrays[i], self.code.op("mul", count, self.jumps[i]))

    def taken(self, values: Value, block: Value) -> None:
        """The new states, to where the next stage reads them."""
        given = values, Value("ptr", "@index"), block, i64(self.together)
        self.code.call(f"take_{self.f.name}", *given)

    def recorded(self, row: Value, now: Value, new: Value) -> None:
        """Write down results; now: the states they came from; new: those they are."""
        code, f, layout = self.code, self.f, self.layout
        made = self.own or new
        if self.in_place:
            put_constants(code, layout, f, made)
        if self.strict:
            nan = self.finite_sum(now, made)
            code.call(f"take_away_{f.name}", made, i64(layout.varying), nan)
            put_constants(code, layout, f, made, nan)
            if self.own:
                self.taken(made, new)
        for i, number in enumerate(self.scan.recorded, len(self.scan.inputs)):
            self.unpacked(number, self.moved(i, row), i, made)

    def finite_sum(self, now: Value, made: Value) -> Value:
        """0 if all arguments and values are finite, else NaN: the bits of all x − x gathered."""
        code, f, bits = self.code, self.f, self.f.pattern(0)
        places = [*self.states(now), *self.inputs, made]
        for place, size in zip(places, [*self.sizes, self.layout.varying], strict=True):
            bits = code.call(f"gather_{f.name}", place, i64(size), bits, result=f.bits)
        return code.cast("bitcast", bits, f.type)

    def unpacked(self, result: int, rows: Value, array: int, made: Value) -> None:
        """A result of the tile into rows of an array."""
        f, size = self.f, self.scan.step.output_sizes[result]
        given = rows, self.strides[array], self.b, self.end, made, i64(size)
        index, zero = indexed(self.entries[result]), f.value(0.0)
        self.code.call(f"unpack_{f.name}", *given, index, zero, result=f.type)
