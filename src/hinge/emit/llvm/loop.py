"""Loop programs as LLVM text: a function per step, and loops that call them thing by thing.

A visit is a row of a table: kind, own row, parent row, where its numbers are, its places in the
arguments.  Slots lie one after the other in the workspace, each with a row per thing.
"""

from __future__ import annotations

import numpy as np

from ...graph.loop import Load, LoopProgram, Step, Store
from ...graph.registers import step_plan
from ...graph.scalar import Node, reachable
from .body import SPARE, Body, Flavor

__all__ = ["LoopLayout", "loop_bodies"]


class LoopLayout:
    """Where the results of a loop program go: every entry is a value of its own."""

    def __init__(self, program: LoopProgram) -> None:
        self.program = program
        self.values: list[Node] = []

    @property
    def size(self) -> int:
        """How many values there are."""
        return len(self.program.results)

    varying = size

    @property
    def index(self) -> list[int]:
        """Every entry in its place."""
        return list(range(self.size))


def loop_bodies(layout: LoopLayout, f: Flavor) -> tuple[str, list[str], int]:
    """The text of all that a sample takes, the name of its function, and the workspace slots."""
    program = layout.program
    bases, total = [], 0
    for size in program.slots:
        bases.append(total)
        total += size * program.rows
    name = f"loops_{f.name}"
    # the wide bodies come first, and the others share their tables
    parts = [_visits(program, f)] if f.lanes > 1 else []
    calls = []
    for i, stage in enumerate(program.stages):
        for kind, step in enumerate(stage.steps):
            parts.append(_Step(program, f, step, bases).text(f"step{i}_{kind}_{f.name}"))
        parts.append(_stage(program, f, i))
        calls.append(f"  call void @stage{i}_{f.name}({_parameters(program)})")
    parts.append(_whole(program, f, name, bases, calls))
    return "\n".join(parts), [name], total


def _parameters(program: LoopProgram) -> str:
    """What stages and steps are given, as parameters and as arguments alike."""
    inputs = [f"ptr %in{i}" for i in range(len(program.inputs))]
    return ", ".join([*inputs, "ptr %ws"])


def _columns(program: LoopProgram) -> int:
    return 4 + len(program.inputs)


def _visits(program: LoopProgram, f: Flavor) -> str:
    """The tables of visits and of their numbers, as bytes: quick to write and to read."""
    rows, numbers = [], []
    for visit in program.visits:
        rows.append((visit.kind, visit.own, visit.parent, len(numbers), *visit.places))
        numbers += visit.numbers
    with np.errstate(over="ignore"):
        kinds = {"visits": np.int64, "numbers": np.float64 if f.scalar == "double" else np.float32}
        tables = dict(zip(kinds, (np.ravel(rows), numbers), strict=True))
        data = {name: np.asarray(tables[name], kinds[name]).tobytes() for name in kinds}
    return "".join(
        f'@{name} = internal constant [{len(x)} x i8] c"{_escaped(x)}", align 64\n'
        for name, x in data.items()
    )


def _escaped(data: bytes) -> str:
    return "\\" + data.hex("\\") if data else ""


class _Step(Body):
    """The text of one step: loads and stores at places known when it runs."""

    def __init__(self, program: LoopProgram, f: Flavor, step: Step, bases: list[int]) -> None:
        self.program, self.flavor, self.step, self.bases = program, f, step, bases
        self.lines: list[str] = []
        self.names: dict[int, str] = {}
        self.fresh = 0
        self.nodes = reachable(store.value for store in step.stores)
        self.angles = self.angles_of(self.nodes)
        self.stores: dict[int, list[Store]] = {}
        for store in step.stores:
            self.stores.setdefault(store.value.id, []).append(store)
        self.overwritten = self._overwritten()

    def _overwritten(self) -> dict[tuple[int, str, int], Node]:
        """Inputs that are loaded from places to which something is stored."""
        written = {(store.slot, store.row, store.entry) for store in self.step.stores}
        found = {}
        for node in self.nodes:
            if node.op == "input":
                load = self.step.loads[node.value]
                place = (load.which, load.row, load.entry)
                if load.kind == "slot" and place in written:
                    found[place] = node
        return found

    def text(self, name: str) -> str:
        f, order = self.flavor, [n for n in self.nodes if n.op not in ("const", "input")]
        plan = step_plan(order, self.stores, {}, 0, f.registers - SPARE, len(order) or 1)
        self.waiting = plan.slot
        self.lines.append(f"  %waiting = alloca [{max(plan.slots, 1)} x {f.type}], align 64")
        keep = {node.id for node in self.overwritten.values()}
        for node, gone in sum(plan.pieces, []):
            self.operation(node)
            if node.id in self.waiting:
                self.store(node, "%waiting", self.waiting[node.id])
            for store in self.stores.get(node.id, ()):
                self.put(store)
            for id in set(gone) - keep:
                self.names.pop(id, None)
        for store in self.step.stores:
            if store.value.op in ("const", "input"):
                self.put(store)
        places = "".join(f", i64 %place{i}" for i in range(len(self.program.inputs)))
        signature = f"{_parameters(self.program)}, i64 %own, i64 %parent, ptr %numbers{places}"
        body = "\n".join(self.lines)
        return f"define internal void @{name}({signature}) #0 {{\nentry:\n{body}\n  ret void\n}}\n"

    def put(self, store: Store) -> None:
        """Store a value, after what is loaded from its place."""
        place = (store.slot, store.row, store.entry)
        if place in self.overwritten:
            self.operand(self.overwritten[place])
        self.store_at(self.place(*place), store.value)

    def fetch(self, node: Node) -> str:
        if node.id in self.waiting:
            return self.load("%waiting", self.waiting[node.id])
        if node.op != "input":
            store = self.stores[node.id][0]
            where = self.place(store.slot, store.row, store.entry)
            return self.line(f"load {self.flavor.type}, ptr {where}, align {self.flavor.bytes}")
        load = self.step.loads[node.value]
        if load.kind == "number":
            return self.splat(load.entry)
        where = (
            self.argument(load)
            if load.kind == "argument"
            else self.place(load.which, load.row, load.entry)
        )
        return self.line(f"load {self.flavor.type}, ptr {where}, align {self.flavor.bytes}")

    def splat(self, entry: int) -> str:
        f = self.flavor
        where = self.line(f"getelementptr {f.scalar}, ptr %numbers, i64 {entry}")
        value = self.line(f"load {f.scalar}, ptr {where}")
        if f.lanes == 1:
            return value
        first = self.line(f"insertelement {f.type} poison, {f.scalar} {value}, i32 0")
        zeros = f"<{f.lanes} x i32> zeroinitializer"
        return self.line(f"shufflevector {f.type} {first}, {f.type} poison, {zeros}")

    def argument(self, load: Load) -> str:
        place = self.line(f"add i64 %place{load.which}, {load.entry}")
        return self.line(f"getelementptr {self.flavor.type}, ptr %in{load.which}, i64 {place}")

    def place(self, slot: int, row: str, entry: int) -> str:
        size = self.program.slots[slot]
        offset = self.line(f"mul i64 %{row}, {size}")
        index = self.line(f"add i64 {offset}, {self.bases[slot] + entry}")
        return self.line(f"getelementptr {self.flavor.type}, ptr %ws, i64 {index}")

    def store_at(self, where: str, node: Node) -> None:
        f, value = self.flavor, self.operand(node)
        self.lines.append(f"  store {f.type} {value}, ptr {where}, align {f.bytes}")


def _stage(program: LoopProgram, f: Flavor, i: int) -> str:
    """The loop of one stage."""
    stage, columns, n = program.stages[i], _columns(program), len(program.visits)
    first, last = (n - 1, -1) if stage.backwards else (0, n)
    lines = []
    fields = ["kind", "own", "parent", "at", *(f"place{j}" for j in range(len(program.inputs)))]
    for j, field in enumerate(fields):
        lines.append(f"  %p_{field} = getelementptr i64, ptr %visit, i64 {j}")
        lines.append(f"  %{field} = load i64, ptr %p_{field}")
    places = "".join(f", i64 %place{j}" for j in range(len(program.inputs)))
    cases, calls = [], []
    for kind in range(len(stage.steps)):
        cases.append(f"i64 {kind}, label %kind{kind}")
        given = f"{_parameters(program)}, i64 %own, i64 %parent, ptr %numbers{places}"
        call = f"call void @step{i}_{kind}_{f.name}({given})"
        calls.append(f"kind{kind}:\n  {call}\n  br label %next")
    newline = "\n"
    return f"""define internal void @stage{i}_{f.name}({_parameters(program)}) #1 {{
entry:
  br label %head
head:
  %i = phi i64 [ {first}, %entry ], [ %in_, %next ]
  %end = icmp eq i64 %i, {last}
  br i1 %end, label %done, label %body
body:
  %row = mul i64 %i, {columns}
  %visit = getelementptr i64, ptr @visits, i64 %row
{newline.join(lines)}
  %numbers = getelementptr {f.scalar}, ptr @numbers, i64 %at
  switch i64 %kind, label %next [ {" ".join(cases)} ]
{newline.join(calls)}
next:
  %in_ = add i64 %i, {-1 if stage.backwards else 1}
  br label %head
done:
  ret void
}}
"""


def _whole(program: LoopProgram, f: Flavor, name: str, bases: list[int], calls: list[str]) -> str:
    """Row 0 of every slot set, the stages in turn, the results gathered."""
    lines = []
    for slot, size in enumerate(program.slots):
        values = program.start.get(slot, (0.0,) * size)
        for entry in range(size):
            value = values[entry] if entry < len(values) else 0.0
            where = f"%start{slot}_{entry}"
            lines.append(f"  {where} = getelementptr {f.type}, ptr %ws, i64 {bases[slot] + entry}")
            lines.append(f"  store {f.type} {f.const(value)}, ptr {where}, align {f.bytes}")
    entries = [bases[s] + row * program.slots[s] + i for s, row, i in program.results]
    table = ", ".join(f"i32 {x}" for x in entries)
    inputs = ", ".join(f"ptr noalias %in{i}" for i in range(len(program.inputs)))
    newline, n = "\n", len(entries)
    return f"""@results_{f.name} = internal constant [{n} x i32] [{table}]
define internal void @{name}({inputs}, ptr noalias %out, ptr noalias %ws) #0 {{
entry:
{newline.join(lines)}
{newline.join(calls)}
  br label %head
head:
  %j = phi i64 [ 0, %entry ], [ %jn, %more ]
  %end = icmp eq i64 %j, {n}
  br i1 %end, label %done, label %more
more:
  %rp = getelementptr i32, ptr @results_{f.name}, i64 %j
  %r = load i32, ptr %rp
  %w = zext i32 %r to i64
  %p = getelementptr {f.type}, ptr %ws, i64 %w
  %v = load {f.type}, ptr %p, align {f.bytes}
  %q = getelementptr {f.type}, ptr %out, i64 %j
  store {f.type} %v, ptr %q, align {f.bytes}
  %jn = add i64 %j, 1
  br label %head
done:
  ret void
}}
"""
