"""Loop programs as kernels: a thread takes a sample through all loops, body after body.

What the loops keep of a body is in global memory: value after value, and of each the threads of a
block side by side, so that a warp reads and writes whole lines; what only passes from a body to the
next is in shared memory where there is room.  Blocks go on from samples to samples, and memory is
needed for as many as are at work at once.  Tables of visits and of the bodies' numbers are
constants of the module; all threads read the same entry at once.

The grid may be any: the more blocks, the more memory; a card is busy with four blocks on each of
its multiprocessors.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...errors import TraceError
from ...graph.loop import GROUND, Load, LoopProgram, Step
from ...graph.scalar import Node
from ..layout import LoopLayout
from ..llvm.builder import Function, Operand, Value, i64
from ..llvm.flavor import Flavor
from ..llvm.loop import StepBody, Tables, escaped
from .launch import HEAD, Launch
from .math import device_functions
from .thread import special, special_registers, with_zero_times

__all__ = ["loop_module"]

_THREADS = 64
# registers of a thread: more of them at work are worth a little that is spilled
_MOST = {"float": 128, "double": 168}
# bytes of shared memory of a block, so that at least six are at work at once
_MOST_SHARED = 1 << 15
_TABLE, _CONSTANT = "ptr addrspace(1)", "!invariant.load !1"
_SHARED = "@shared = external addrspace(3) global [0 x i8], align 16"
_NEAR = "ptr addrspace(3) @shared"
# of short loops the assembler would make long lines, and take twice the registers for them
_NOT_UNROLLED = """!1 = !{}
module asm ".pragma \\22nounroll\\22;"
"""


def loop_module(
    program: LoopProgram, scalar: str, strict: bool, layout: str = "rows"
) -> tuple[str, Launch]:
    """The module, as `kernel_module` says."""
    if program.matrices:
        raise TraceError(
            f"{program.name}: cards have no loops inside loops; matrices come column by column "
            f"there, from a robot with device='cuda'"
        )
    # the assembler shares out registers
    f = Flavor(1, scalar, fused=True, registers=1 << 20)
    loops = _Loops(program, f, strict, layout == "columns")
    text = loops.text()
    parts = [HEAD, _NOT_UNROLLED, _SHARED, special_registers(), device_functions(f, text)]
    launch = Launch(_THREADS, _THREADS, loops.shared, loops.scratch, persistent=True)
    return "\n".join([*parts, loops.constants(), text]), launch


class _Step(StepBody):
    """The code of one step, in the midst of its loop; i: the number of the visit, if it has one."""

    def __init__(self, loops: _Loops, step: Step, i: Value) -> None:
        StepBody.__init__(self, loops.tables, loops.f, step, loops.code)
        self.loops, self.i = loops, i
        self.read: list[Value] = []

    def fetch(self, node: Node) -> str:
        """As in `Body`; what comes from arguments is written down."""
        name = StepBody.fetch(self, node)
        if node.op == "input" and self.step.loads[node.value].kind == "argument":
            self.read.append(Value(self.flavor.type, name))
        return name

    def number(self, load: Load) -> str:
        """As in `StepBody`."""
        code, numbers = self.code, self.tables.numbers
        row = code.op("mul", self.i, len(numbers))
        index = code.op("add", row, numbers.index(load.entry))
        return self.loops.constant("numbers", self.flavor.type, index).name

    def within(self, column: str, row: str, memory: str, base: int, at: int) -> str:
        """As in `StepBody`; an area has a base of its own here."""
        loops, area = self.loops, column.split(".")[0]
        start, apart = loops.argument(area) if area in loops.rows else loops.area(area)
        if row == GROUND:
            return loops.entry(start, i64(at), apart).name
        if (column, row) not in self.begins:
            begin = loops.entry(start, loops.visited(self.i, column), apart)
            self.begins[column, row] = begin.name
        return loops.entry(Value("ptr", self.begins[column, row]), i64(at), apart).name


class _Loops:
    """The kernel.

    apart: bytes from a value of a thread to its next; passing: how many pass from body to body.
    """

    def __init__(self, program: LoopProgram, f: Flavor, strict: bool, columns: bool) -> None:
        self.program, self.f, self.strict, self.columns = program, f, strict, columns
        self.tables, self.apart = Tables(LoopLayout(program)), _THREADS * f.bytes
        # roles that take one step in a stage take one way
        for i, stage in enumerate(program.stages):
            first = [stage.steps.index(step) for step in stage.steps]
            self.tables.add(f"step{i}", tuple(first[visit.kind] for visit in program.visits))
        far = [base for area, base in self.tables.base.items() if area in ("kept", GROUND)]
        self.passing = min(far, default=self.tables.size)
        given, bound = _parameters(program, columns), f'nounwind "nvvm.maxnreg"="{_MOST[f.scalar]}"'
        self.code = Function("run", "void", *given, attributes=bound, linkage="ptx_kernel ")
        self.given = {x.name[1:]: x for x in self.code.parameters}

    # memory

    @property
    def shared(self) -> int:
        """Bytes of shared memory of a block: what passes and the mark, if there is room."""
        size = (self.passing + 1) * self.apart
        return size if size <= _MOST_SHARED else 0

    @property
    def scratch(self) -> int:
        """Bytes of global memory of a block: the rest, the results, and the mark."""
        return (self.first_result + len(self.program.results) + 1) * self.apart

    @property
    def first_result(self) -> int:
        """Where the results begin, behind what is kept."""
        return self.tables.size - (self.passing if self.shared else 0)

    def area(self, name: str) -> tuple[Value, int]:
        """Where an area begins, and how far its values are apart."""
        if name in ("outward", "inward"):
            return self.near, self.apart
        near = self.passing if self.shared else 0
        base = self.first_result if name.startswith("result") else self.tables.base[name] - near
        return self.code.at(self.work, base * self.apart), self.apart

    def argument(self, name: str) -> tuple[Value, Operand]:
        """Where an argument of the sample begins, and how far its entries are apart."""
        apart = self.given[name.replace("in", "to")] if self.columns else self.f.bytes
        return self.rows[name], apart

    def entry(self, start: Value, index: Value, apart: Operand) -> Value:
        """The address of an entry."""
        return self.code.at(start, self.code.op("mul", index, apart))

    def constant(self, table: str, kind: str, index: Value) -> Value:
        """An entry of a table of the module."""
        where = self.code.let(_TABLE, f"getelementptr {kind}, {_TABLE} @{table}, {index}")
        return self.code.load(kind, where, _CONSTANT)

    def word(self, table: str, index: Value) -> Value:
        """A whole number of a table."""
        return self.code.cast("zext", self.constant(table, "i32", index), "i64")

    def visited(self, i: Value, column: str) -> Value:
        """What a column of the visits says."""
        row = self.code.op("mul", i, len(self.tables.columns))
        return self.word("visits", self.code.op("add", row, self.tables.column[column]))

    def constants(self) -> str:
        """All tables, as bytes."""
        near, base = self.passing if self.shared else 0, self.tables.base
        gathered = [(i, base[x.area] - near + x.at) for i, x in self.tables.rows.gathered]
        data = {**self.tables.data(self.f), "gathered": np.array(gathered, np.int32)}
        return "".join(
            f"@{name} = internal addrspace(1) constant [{x.nbytes} x i8] "
            f'c"{escaped(x)}", align 16\n'
            for name, x in data.items()
        )

    # loops

    def text(self) -> str:
        """The function: samples in turn."""
        code, samples = self.code, self.given["samples"]
        block, thread, blocks = (special(code, x) for x in ("ctaid.x", "tid.x", "nctaid.x"))
        mine = code.op("mul", thread, self.f.bytes)
        far = code.op("add", code.op("mul", block, self.scratch), mine)
        self.work = self.near = code.at(self.given["scratch"], far)
        last = self.scratch - self.apart
        if self.shared:
            self.near = code.at(code.let("ptr", f"addrspacecast {_NEAR} to ptr"), mine)
            last = self.shared - self.apart
        # 0, or NaN once an argument was not finite
        self.mark = code.at(self.near, last)
        first = code.op("add", code.op("mul", block, _THREADS), thread)
        step = code.op("mul", blocks, _THREADS)
        with code.loop(first) as loop:
            (sample,) = loop.carried
            code.stay(loop, code.compare("icmp slt", sample, samples))
            self.sample(sample)
            loop.next = [code.op("add", sample, step)]
        return code.ret().text()

    def sample(self, sample: Value) -> None:
        """All that a sample takes."""
        code, program = self.code, self.program
        self.rows = {f"in{i}": self.row(i, sample) for i in range(len(program.inputs))}
        code.store(self.f.value(0.0), self.mark)
        for i, stage in enumerate(program.stages):
            self.ground(i)
            self.once(stage.before)
            if not stage.visits_any:
                continue
            n = len(program.visits)
            walk = (n - 1, -1, -1) if stage.backwards else (0, n, 1)
            with code.count(*walk) as loop:
                steps = {stage.steps.index(step): step for step in stage.steps}
                for k in code.cases(self.visited(loop.i, f"step{i}"), steps):
                    step = _Step(self, steps[k], loop.i)
                    step.write()
                    self.marked(step.read)
        self.gather()
        self.put_out(sample)

    def once(self, before: Step) -> None:
        """What is done before a loop."""
        step = _Step(self, before, i64(0))
        step.write()
        self.marked(step.read)

    def row(self, i: int, sample: Value) -> Value:
        """The address of the first entry of an argument of the sample."""
        apart = self.f.bytes if self.columns else self.given[f"to{i}"]
        return self.entry(self.given[f"in{i}"], sample, apart)

    def ground(self, i: int) -> None:
        """The rows of the ground, before a stage that is the first to use them."""
        rows, start = self.tables.rows, self.program.start
        for (slot, entry), use in rows.uses.items():
            if use.first == i and use.by_children:
                area, at = rows.places[slot, entry]
                values = start.get(slot, ())
                value = self.f.value(values[entry] if entry < len(values) else 0.0)
                self.code.store(value, self.entry(self.area(area)[0], i64(at), self.apart))

    # results

    def gather(self) -> None:
        """What is kept and also a result, to the results."""
        code, work, results = self.code, self.work, self.area("results")[0]
        with code.count(0, len(self.tables.rows.gathered)) as loop:
            pair = code.op("mul", loop.i, 2)
            to, place = (self.word("gathered", code.op("add", pair, k)) for k in (0, 1))
            value = code.load(self.f.type, self.entry(work, place, self.apart))
            code.store(value, self.entry(results, to, self.apart))

    def put_out(self, sample: Value) -> None:
        """Write the results; all are NaN if one of them, or an argument, is not finite."""
        code, f, start = self.code, self.f, 0
        bad = self.unsound() if self.strict else f.value(0.0)
        for i, size in enumerate(self.program.output_sizes):
            own = f.bytes if self.columns else size * f.bytes
            out = self.entry(self.given[f"out{i}"], sample, own)
            apart = self.given[f"apart{i}"] if self.columns else f.bytes
            with code.count(0, size) as loop:
                x = self.made(code.op("add", loop.i, start))
                x = code.op("fadd", x, bad) if self.strict else x
                code.store(x, self.entry(out, loop.i, apart))
            start += size

    def made(self, i: Value) -> Value:
        """A result."""
        return self.code.load(self.f.type, self.entry(self.area("results")[0], i, self.apart))

    # samples that are not finite

    def marked(self, read: Sequence[Value]) -> None:
        """The mark, after a step that read these of the arguments."""
        if self.strict and read:
            mark = self.code.load(self.f.type, self.mark)
            for x in read:
                mark = with_zero_times(self.code, self.f, mark, x)
            self.code.store(mark, self.mark)

    def unsound(self) -> Value:
        """0, or NaN if an argument or a result is not finite."""
        code, f, bad = self.code, self.f, self.code.load(self.f.type, self.mark)
        for i in self.read_in_part():
            start, apart = self.argument(f"in{i}")
            with code.count(0, self.program.input_sizes[i], carried=[bad]) as loop:
                x = code.load(f.type, self.entry(start, loop.i, apart))
                loop.next = [with_zero_times(code, f, loop.carried[0], x)]
            (bad,) = loop.carried
        with code.count(0, len(self.program.results), carried=[bad]) as loop:
            loop.next = [with_zero_times(code, f, loop.carried[0], self.made(loop.i))]
        return loop.carried[0]

    def read_in_part(self) -> list[int]:
        """The arguments of which some entry is read by no step."""
        read: list[set[int]] = [set() for _ in self.program.inputs]
        for stage in self.program.stages:
            loads = [[x for x in step.used if x.kind == "argument"] for step in stage.steps]
            for x in (x for x in stage.before.used if x.kind == "argument"):
                read[x.which].add(x.entry)
            for visit in self.program.visits:
                for x in loads[visit.kind]:
                    read[x.which].add(visit.places[x.which] + x.entry)
        return [i for i, n in enumerate(self.program.input_sizes) if len(read[i]) < n]


def _parameters(program: LoopProgram, columns: bool) -> list[str]:
    """Those of `run`, as `kernel_module` says."""
    given = [x for i in range(len(program.inputs)) for x in (f"ptr in{i}", f"i64 to{i}")]
    for i in range(len(program.outputs)):
        given += [f"ptr out{i}", *([f"i64 apart{i}"] if columns else [])]
    return [*given, "i64 samples", "ptr scratch"]
