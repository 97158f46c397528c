"""Time loops as kernels: a thread takes a sample through all steps, its states in registers.

`run` takes, in order,

    for each argument (states, inputs of each step, parameters):  pointer, i64 stride, i64 jump
    for each result that is recorded:                             pointer, i64 stride, i64 jump
    i64 steps, i64 every, i64 first, i64 samples, pointer to scratch (null: it needs none)

stride: bytes from a sample to the next, 0 if one serves all; jump: bytes from a step, or a record,
to the next.  Entries of a sample are contiguous.  Results are recorded every so many steps, the
first time after `first` of them.  The states, which have a stride of their own, are written back
after the last step: so a long run may be cut into launches, with pointers and `first` moved on, as
`_Table.at` in `runtime/cpu.py` does.

A step of very many operations, over which assemblers take minutes, comes as functions of some
thousand each that find their values in the thread's local memory, and so does one with loops over
bodies in it.

What it gives: RK4 steps of the Panda, 1000 of them and half a million samples, on an H200: 5.7
billion a second in float32, 3.0 in float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

import numpy as np

from ...graph.program import Program
from ...graph.relay import Relay
from ...graph.scalar import Node
from ...graph.scan import Scan
from ...graph.schedule import ordered
from ..layout import Layout
from ..llvm.body import Body, all_bodies, bodies, put_constants
from ..llvm.builder import Function, Loop, Value, i64
from ..llvm.flavor import Flavor, number_text
from ..llvm.math import angles_loop
from ..llvm.relay import relay_bodies
from ..llvm.scan import take
from .launch import HEAD, Launch
from .math import device_functions
from .thread import special, special_registers, with_zero_times

__all__ = ["scan_module"]

# small blocks spread small batches over the card; threads have nothing to say to each other
_THREADS = 32
# operations of a step in the midst of the loop
_MOST_INLINE = 15_000
# numbers that functions hold in registers
_HELD = {"float": 160, "double": 80}
_TABLE, _CONSTANT = "ptr addrspace(1)", "ptr addrspace(4)"


def scan_module(scan: Scan, scalar: str, strict: bool) -> tuple[str, Launch]:
    """LLVM for `nvptx64-nvidia-cuda`, and how its entry `run` is launched.

    strict: a sample with an argument or a state that is not finite is NaN from the next record on.
    """
    f = Flavor(1, scalar, fused=True)
    short = isinstance(scan.step, Program) and sum(scan.step.ops) <= _MOST_INLINE
    loop = (_Loop if short else _LongLoop)(scan, f, strict)
    text = loop.text()
    parts = [HEAD, special_registers(), device_functions(f, text), _table(scan, f), text]
    return "\n".join(parts), Launch(_THREADS, _THREADS)


def _table(scan: Scan, f: Flavor) -> str:
    """The numbers of the stages, in the memory of constants."""
    numbers = [f"{f.scalar} {number_text(x, f.scalar)}" for row in scan.stages for x in row]
    kind = f"[{len(numbers)} x {f.scalar}]"
    return f"@stages = internal addrspace(4) constant {kind} [{', '.join(numbers)}]\n"


def _parameters(scan: Scan) -> list[str]:
    arrays = len(scan.inputs) + len(scan.recorded)
    listed = [x for i in range(arrays) for x in (f"ptr a{i}", f"i64 stride{i}", f"i64 jump{i}")]
    return [*listed, "i64 steps", "i64 every", "i64 first", "i64 samples", "ptr scratch"]


class _Step(Body):
    """The code of one stage, in the midst of the loop: values have names and no places."""

    def __init__(self, loop: _Loop, states: Sequence[Value], stage: Value | None) -> None:
        self.flavor, self.code = loop.f, loop.code
        self.loop, self.states, self.stage = loop, states, stage
        order = ordered(loop.values).nodes
        self.names, self.written, self.angles = {}, {}, self.angles_of(order)
        for node in order:
            self.operation(node)

    def fetch(self, node: Node) -> str:
        """A state is there; what else there is is read where it is used, and needs no register."""
        if node.value < len(self.states):
            return self.states[node.value].name
        return self.loop.read(node.value, self.stage).name

    def results(self) -> list[Value]:
        """All results: the new states, then others."""
        return [Value(self.flavor.type, self.operand(node)) for node in self.loop.values]


class _Loop:
    """The kernel.

    now: where the rows of the arguments begin, of this sample and in this step.
    bad: 0, or NaN once the sample has been found not to be finite.
    """

    def __init__(self, scan: Scan, f: Flavor, strict: bool) -> None:
        self.scan, self.f, self.strict = scan, f, strict
        self.code = Function("run", "void", *_parameters(scan), linkage="ptx_kernel ")
        *arrays, self.steps, self.every, self.first, self.samples, _ = self.code.parameters
        self.arrays, self.strides, self.jumps = arrays[::3], arrays[1::3], arrays[2::3]
        self.values = scan.step.values if isinstance(scan.step, Program) else ()
        sizes = scan.step.input_sizes
        # where each flat input is: which argument, which entry
        self.where = [(a, i) for a, size in enumerate(sizes) for i in range(size)]
        self.together = sum(sizes[: scan.states])
        self.entries = list(accumulate(scan.step.output_sizes, initial=0))

    def text(self) -> str:
        """The function."""
        code, scan = self.code, self.scan
        block, thread = special(code, "ctaid.x"), special(code, "tid.x")
        self.sample = code.op("add", code.op("mul", block, _THREADS), thread)
        with code.when(code.compare("icmp sge", self.sample, self.samples)):
            code.ret()
        self.now = [self.row(i, self.sample) for i in range(len(scan.inputs))]
        states = self.begun()
        bad = self.unsound(self.f.value(0.0), states) if self.strict else self.f.value(0.0)
        bad, states = self.all_steps(bad, states)
        sample = self.again(self.sample)
        rows = [self.row(i, sample) for i in range(scan.states)]
        for i, (array, entry) in enumerate(self.where[: self.together]):
            code.store(self.sound(states[i], bad), self.entry(rows[array], entry))
        return code.ret().text()

    # arrays

    def row(self, i: int, sample: Value) -> Value:
        """Where the row of a sample in an array begins."""
        return self.code.at(self.arrays[i], self.code.op("mul", sample, self.strides[i]))

    def again(self, x: Value) -> Value:
        """The number, so that what is computed from it is computed anew: addresses that are kept
        from the start until they are needed would take 25 registers of the Panda's.
        """
        return self.code.let(x.type, f'call i64 asm sideeffect "mov.b64 $0, $1;", "=l,l"({x})')

    def entry(self, row: Value, i: int) -> Value:
        """The address of an entry of a row."""
        return self.code.at(row, i * self.f.bytes)

    def read(self, i: int, stage: Value | None = None) -> Value:
        """Flat input i, from memory."""
        code, f, (array, entry) = self.code, self.f, self.where[i]
        if stage is None or array < len(self.scan.inputs):
            return code.load(f.type, self.entry(self.now[array], entry))
        place = code.op("add", code.op("mul", stage, len(self.scan.stages[0])), entry)
        where = code.let(_CONSTANT, f"getelementptr {f.type}, {_CONSTANT} @stages, {place}")
        return code.load(f.type, where)

    # steps

    def begun(self) -> Sequence[Value]:
        """The states at the start."""
        return [self.read(i) for i in range(self.together)]

    def carried(self, states: Sequence[Value]) -> Sequence[Value]:
        """What of the states goes from step to step in registers."""
        return states[: self.together]

    def all_steps(self, bad: Value, states: Sequence[Value]) -> tuple[Value, Sequence[Value]]:
        """0 or NaN, and the states, after all steps."""
        code, scan, start = self.code, self.scan, self.now
        begin = [self.first, i64(0), bad, *self.carried(states)]
        with code.count(0, self.steps, carried=begin) as loop:
            left, row, bad, *kept = loop.carried
            states = kept or states
            if scan.until is not None:
                self.leave_if_done(loop, states[scan.until])
            self.now = list(start)
            for i in range(scan.states, scan.states + scan.inputs_per_step):
                self.now[i] = code.at(start[i], code.op("mul", loop.i, self.jumps[i]))
            left = code.op("sub", left, 1)
            due = code.compare("icmp eq", left, 0)
            if self.strict:
                with code.when(due) as case:
                    found = self.unsound(bad, states)
                bad = code.merged(case, found, bad)
            results = self.stages(states)
            bad = self.recorded(due, row, bad, results)
            left = code.select(due, self.every, left)
            row = code.op("add", row, code.cast("zext", due, "i64"))
            loop.next = [left, row, bad, *self.carried(results)]
        _, _, bad, *kept = loop.carried
        return bad, kept or states

    def leave_if_done(self, loop: Loop, mark: Value) -> None:
        """Leave once some step was taken and the mark is not 0."""
        code = self.code
        done = code.compare("fcmp une", mark, self.f.value(0.0))
        code.leave(loop, code.op("and", code.compare("icmp sgt", loop.i, 0), done))

    def stages(self, states: Sequence[Value]) -> Sequence[Value]:
        """All stages of a step: the results of the last."""
        code, scan = self.code, self.scan
        if not scan.staged:
            return _Step(self, states, None).results()
        # results that are no states are carried along only if they are recorded
        more = any(i >= scan.states for i in scan.recorded)
        others = [self.f.value(0.0)] * (self.entries[-1] - self.together if more else 0)
        with code.count(0, len(scan.stages), carried=[*states, *others]) as loop:
            made = _Step(self, loop.carried[: self.together], loop.i).results()
            loop.next = made[: len(loop.carried)]
        return loop.carried

    def recorded(self, due: Value, row: Value, bad: Value, results: Sequence[Value]) -> Value:
        """Write down results where they are due; 0, or NaN if one of them is not finite."""
        code, scan = self.code, self.scan
        if not scan.recorded:
            return bad
        with code.when(due) as case:
            found = self.with_values(bad, results) if self.strict else bad
            sample = self.again(self.sample)
            for i, number in enumerate(scan.recorded, len(scan.inputs)):
                place = code.at(self.row(i, sample), code.op("mul", row, self.jumps[i]))
                self.written(place, results, number, found)
        return code.merged(case, found, bad)

    def written(self, row: Value, results: Sequence[Value], number: int, bad: Value) -> None:
        """One of the results, into a row."""
        start, end = self.entries[number : number + 2]
        for i in range(start, end):
            self.code.store(self.sound(results[i], bad), self.entry(row, i - start))

    # samples that are not finite

    def sound(self, value: Value, bad: Value) -> Value:
        """The value, NaN if its sample is not finite."""
        return self.code.op("fadd", value, bad) if self.strict else value

    def unsound(self, bad: Value, states: Sequence[Value]) -> Value:
        """What it was, or NaN if the states or what is read in this step are not finite."""
        given = range(self.together, len(self.where) - len(self.scan.stages[0]))
        return self.with_values(self.with_values(bad, states), [self.read(i) for i in given])

    def with_values(self, bad: Value, values: Sequence[Value]) -> Value:
        """What it was, or NaN if one of the values is not finite."""
        for x in values:
            bad = with_zero_times(self.code, self.f, bad, x)
        return bad


class _Kept(Sequence[Value]):
    """Numbers in local memory, loaded where they are used; table: of their places, in order."""

    def __init__(self, loop: _Loop, room: Value, table: str, size: int) -> None:
        self.code, self.f, self.room = loop.code, loop.f, room
        self.table, self.size = Value(_TABLE, f"@{table}"), size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, i: Any) -> Any:
        return self.at(i64(i))

    def at(self, i: Value) -> Value:
        """One of them, by a number that is known when it runs."""
        code = self.code
        where = code.let(_TABLE, f"getelementptr i32, {self.table}, {i}")
        return code.entry(self.f.type, self.room, code.cast("zext", code.load("i32", where), "i64"))


class _LongLoop(_Loop):
    """The same with a step in functions, and all their values in local memory."""

    def text(self) -> str:
        """The functions, then the kernel."""
        f, step = replace(self.f, registers=_HELD[self.f.scalar]), self.scan.step
        if isinstance(step, Relay):
            layout, made = relay_bodies(step, f)
        else:
            layout = Layout(step)
            made = bodies(layout, f, f)
        parts = [angles_loop(f), take(f), made.first, *made.pieces]
        parts.append(all_bodies(step, f, made.names))
        parts += [_places("index", layout.index), _places("own", range(self.together))]
        self.given, self.made, self.work = map(
            self.room, (len(self.where), layout.size, made.slots)
        )
        self.results = _Kept(self, self.made, "index", len(layout.index))
        put_constants(self.code, layout, f, self.made)
        return "\n".join([*parts, _Loop.text(self)])

    def room(self, size: int) -> Value:
        """Local memory for so many numbers."""
        return self.code.room(f"[{max(size, 1)} x {self.f.type}]", "align 16")

    def begun(self) -> Sequence[Value]:
        """States and parameters, put where the functions find them."""
        scan = self.scan
        timed = range(scan.states, scan.states + scan.inputs_per_step)
        inside = [i for i, (array, _) in enumerate(self.where) if array < len(scan.inputs)]
        self.timed = [i for i in inside if self.where[i][0] in timed]
        self.handed_over([i for i in inside if self.where[i][0] not in timed])
        return _Kept(self, self.given, "own", self.together)

    def handed_over(self, inputs: Sequence[int], stage: Value | None = None) -> None:
        """Read flat inputs, and put them where the functions find them."""
        for i in inputs:
            self.code.put(self.read(i, stage), self.given, i)

    def carried(self, states: Sequence[Value]) -> Sequence[Value]:
        """Nothing: the states are in memory."""
        return ()

    def stages(self, states: Sequence[Value]) -> Sequence[Value]:
        """All stages of a step: the results of the last."""
        code, f, scan = self.code, self.f, self.scan
        starts = list(accumulate(scan.step.input_sizes, initial=0))
        self.handed_over(self.timed)
        with code.count(0, len(scan.stages)) as loop:
            if scan.staged:
                self.handed_over(range(starts[-2], starts[-1]), loop.i)
            arguments = [code.at(self.given, start, f.type) for start in starts[:-1]]
            code.call(f"all_{f.name}", *arguments, self.made, self.work)
            with code.count(0, self.together) as entry:
                code.put(self.results.at(entry.i), self.given, entry.i)
        return self.results

    def written(self, row: Value, results: Sequence[Value], number: int, bad: Value) -> None:
        """The same in a loop, since it may have thousands of entries."""
        code, (start, end) = self.code, self.entries[number : number + 2]
        with code.count(0, end - start) as loop:
            value = self.results.at(code.op("add", loop.i, start))
            code.put(self.sound(value, bad), row, loop.i)

    def with_values(self, bad: Value, values: Sequence[Value]) -> Value:
        """The same in a loop, of values in memory."""
        if not isinstance(values, _Kept):
            return _Loop.with_values(self, bad, values)
        with self.code.count(0, len(values), carried=[bad]) as loop:
            loop.next = [with_zero_times(self.code, self.f, loop.carried[0], values.at(loop.i))]
        return loop.carried[0]


def _places(name: str, numbers: Sequence[int] | np.ndarray) -> str:
    """A table of places."""
    listed = ", ".join(f"i32 {x}" for x in numbers)
    return f"@{name} = internal addrspace(1) constant [{len(numbers)} x i32] [{listed}]\n"
