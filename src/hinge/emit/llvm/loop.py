"""Loop programs as LLVM: a function per step, and loops that call them thing by thing.

A visit is a row of a table: kind, own row, parent row, where its numbers are, its places in the
arguments.  Slots lie one after the other in the workspace, each with a row per thing.
"""

from __future__ import annotations

import numpy as np

from ...graph.loop import Load, LoopProgram, Step, Store
from ...graph.scalar import Node, reachable
from ...graph.workspace import step_plan
from ..layout import LoopLayout
from .body import SPARE, Body, parameters
from .builder import Function, Value
from .flavor import Flavor

__all__ = ["loop_bodies"]


def loop_bodies(layout: LoopLayout, f: Flavor) -> tuple[str, list[str], int]:
    """The text of all that a sample takes, the name of its function, and the workspace slots."""
    program = layout.program
    bases, total = [], 0
    for size in program.slots:
        bases.append(total)
        total += size * program.rows
    # the wide bodies come first, and the others share their tables
    parts = [_visits(program, f)] if f.lanes > 1 else []
    for i, stage in enumerate(program.stages):
        for kind, step in enumerate(stage.steps):
            parts.append(_Step(program, f, f"step{i}_{kind}_{f.name}", step, bases).text())
        parts.append(_stage(program, f, i))
    parts.append(_whole(program, f, bases))
    return "\n".join(parts), [f"loops_{f.name}"], total


def _shared(program: LoopProgram) -> list[str]:
    """The parameters of stages, and the first ones of steps."""
    return [*(f"ptr in{i}" for i in range(len(program.inputs))), "ptr ws"]


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
    """The code of one step: loads and stores at places known when it runs."""

    def __init__(
        self, program: LoopProgram, f: Flavor, name: str, step: Step, bases: list[int]
    ) -> None:
        self.program, self.flavor, self.step, self.bases = program, f, step, bases
        places = (f"i64 place{i}" for i in range(len(program.inputs)))
        given = *_shared(program), "i64 own", "i64 parent", "ptr numbers", *places
        self.code = Function(name, "void", *given, attributes="#0")
        self.names, self.written = {}, {}
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

    def text(self) -> str:
        f, order = self.flavor, [n for n in self.nodes if n.op not in ("const", "input")]
        plan = step_plan(order, len(order) or 1, f.registers - SPARE, self.stores)
        self.waiting = plan.slot
        self.room = self.code.room(f"[{max(plan.slots, 1)} x {f.type}]", "align 64").name
        keep = {node.id for node in self.overwritten.values()}
        for node, gone in sum(plan.pieces, []):
            self.operation(node)
            if node.id in self.waiting:
                self.store(node, self.address(self.room, self.waiting[node.id]))
            for store in self.stores.get(node.id, ()):
                self.put(store)
            for id in set(gone) - keep:
                self.names.pop(id, None)
        for store in self.step.stores:
            if store.value.op in ("const", "input"):
                self.put(store)
        return self.code.ret().text()

    def put(self, store: Store) -> None:
        """Store a value, after what is loaded from its place."""
        place = (store.slot, store.row, store.entry)
        if place in self.overwritten:
            self.operand(self.overwritten[place])
        self.store(store.value, self.place(*place))

    def fetch(self, node: Node) -> str:
        if node.id in self.waiting:
            return self.load(self.address(self.room, self.waiting[node.id]))
        if node.op != "input":
            store = self.stores[node.id][0]
            return self.load(self.place(store.slot, store.row, store.entry))
        load = self.step.loads[node.value]
        if load.kind == "number":
            f, numbers = self.flavor, Value("ptr", "%numbers")
            return f.spread(self.code, self.code.entry(f.scalar, numbers, load.entry)).name
        if load.kind == "argument":
            return self.load(self.argument(load))
        return self.load(self.place(load.which, load.row, load.entry))

    def argument(self, load: Load) -> str:
        place = self.line(f"add i64 %place{load.which}, {load.entry}")
        return self.line(f"getelementptr {self.flavor.type}, ptr %in{load.which}, i64 {place}")

    def place(self, slot: int, row: str, entry: int) -> str:
        size = self.program.slots[slot]
        offset = self.line(f"mul i64 %{row}, {size}")
        index = self.line(f"add i64 {offset}, {self.bases[slot] + entry}")
        return self.line(f"getelementptr {self.flavor.type}, ptr %ws, i64 {index}")


def _stage(program: LoopProgram, f: Flavor, i: int) -> str:
    """The loop of one stage."""
    code = Function(f"stage{i}_{f.name}", "void", *_shared(program))
    stage, n, inputs = program.stages[i], len(program.visits), len(program.inputs)
    walk = (n - 1, -1, -1) if stage.backwards else (0, n, 1)
    with code.count(*walk) as loop:
        columns = 4 + inputs
        visit = code.at(Value("ptr", "@visits"), code.op("mul", loop.i, columns), "i64")
        kind, own, parent, at, *places = (code.entry("i64", visit, j) for j in range(columns))
        numbers = code.at(Value("ptr", "@numbers"), at, f.scalar)
        for k in code.cases(kind, range(len(stage.steps))):
            given = *code.parameters, own, parent, numbers, *places
            code.call(f"step{i}_{k}_{f.name}", *given)
    return code.ret().text()


def _whole(program: LoopProgram, f: Flavor, bases: list[int]) -> str:
    """Row 0 of every slot set, the stages in turn, the results gathered."""
    code = Function(f"loops_{f.name}", "void", *parameters(program), attributes="#0")
    *inputs, out, ws = code.parameters
    align = f"align {f.bytes}"
    for slot, size in enumerate(program.slots):
        values = program.start.get(slot, (0.0,) * size)
        for entry in range(size):
            value = f.value(values[entry] if entry < len(values) else 0.0)
            code.store(value, code.at(ws, bases[slot] + entry, f.type), align)
    for i in range(len(program.stages)):
        code.call(f"stage{i}_{f.name}", *inputs, ws)
    entries = [bases[s] + row * program.slots[s] + i for s, row, i in program.results]
    with code.count(0, len(entries)) as loop:
        entry = code.entry("i32", Value("ptr", f"@results_{f.name}"), loop.i)
        where = code.at(ws, code.cast("zext", entry, "i64"), f.type)
        code.store(code.load(f.type, where, align), code.at(out, loop.i, f.type), align)
    listed = ", ".join(f"i32 {x}" for x in entries)
    table = f"@results_{f.name} = internal constant [{len(entries)} x i32] [{listed}]"
    return f"{table}\n{code.ret().text()}"
