"""Loop programs as LLVM: a function per step, and loops that call them thing by thing.

A visit is a row of a table: its role, its places in the arguments, and where its rows and those of
its parent begin in each area of `rows.py`.  Another table has the numbers that steps load.

Climbs are functions too.  What a thing carries up stays in registers; what there is of it and one
thing after the other goes, one after the other, to where results are.

What is done once before a loop is a function like a step's, without a visit.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ...graph.loop import GROUND, PAIR, ZERO, Climb, Load, LoopProgram, Stage, Step, Store
from ...graph.reads import Order
from ...graph.scalar import Node, reachable
from ...graph.workspace import step_plan
from ..layout import LoopLayout
from ..rows import Entry, Place
from .body import SPARE, Bodies, Body, parameters
from .builder import Function, Value
from .flavor import Flavor

__all__ = ["StepBody", "Tables", "escaped", "loop_bodies"]

# in the place of a visit and of its numbers
_NOBODY = Value("ptr", "null")


def loop_bodies(layout: LoopLayout, f: Flavor, tag: str = "", *, tables: bool) -> Bodies:
    """All that a sample takes.

    tag: in all names; tables: whether they are written, or are there already.
    """
    known = Tables(layout, tag)
    parts = [known.text(f)] if tables else []
    for i, stage in enumerate(layout.program.stages):
        if stage.before.stores:
            name = f"before{i}{tag}_{f.name}"
            parts.append(_StepFunction(known, f, name, stage.before).text())
        if not stage.visits_any:
            continue
        for kind, step in _distinct(stage).items():
            name = f"step{i}_{kind}{tag}_{f.name}"
            parts.append(_StepFunction(known, f, name, step).text())
        for kind, climb in _climbs(stage).items():
            parts.append(_ClimbFunction(known, f, f"climb{i}_{kind}{tag}_{f.name}", climb).text())
        parts.append(_stage(known, f, i))
    parts.append(_whole(known, f))
    return Bodies([f"loops{tag}_{f.name}"], "\n".join(parts), iter(()), known.size)


def _distinct(stage: Stage) -> dict[int, Step]:
    """The steps of a stage, each once, by the first role that takes it."""
    return {stage.steps.index(step): step for step in dict.fromkeys(stage.steps)}


def _climbs(stage: Stage) -> dict[int, Climb]:
    """The climbs of a stage, each once, by the first role that takes it."""
    return {stage.climbs.index(climb): climb for climb in dict.fromkeys(stage.climbs) if climb}


class Tables:
    """The tables of visits and of their numbers, and what is where in the workspace.

    column: the number of a column of the visits by its name; numbers: those that steps load.
    """

    def __init__(self, layout: LoopLayout, tag: str = "") -> None:
        self.program = program = layout.program
        self.rows, self.tag = layout.rows, tag
        areas, visits = self.rows.areas, program.visits
        passing = max((areas[n].size for n in ("outward", "inward") if n in areas), default=0)
        # what passes from thing to thing comes first, then what is kept of things and of none
        self.base, self.size = dict.fromkeys(areas, 0), passing
        for name in (x for x in ("kept", GROUND) if x in areas):
            self.base[name], self.size = self.size, self.size + areas[name].size
        columns = {"kind": tuple(v.kind for v in visits)}
        columns |= {
            f"in{i}": tuple(v.places[i] for v in visits) for i in range(len(program.inputs))
        }
        for name, area in ((n, x) for n, x in areas.items() if n != GROUND):
            columns |= {f"{name}.own": tuple(area.own), f"{name}.parent": tuple(area.parent)}
        if program.matrices:
            columns |= _of_pairs(program)
        self.columns: list[tuple[int, ...]] = []
        self.column: dict[str, int] = {}
        for name, values in columns.items():
            self.add(name, values)
        steps = (step for stage in program.stages for step in stage.all_steps)
        loads = (x for step in steps for x in step.used)
        self.numbers = sorted({x.entry for x in loads if x.kind == "number"})

    def add(self, name: str, values: tuple[int, ...]) -> None:
        """A column; one that is there already serves both."""
        if values not in self.columns:
            self.columns.append(values)
        self.column[name] = self.columns.index(values)

    def data(self, f: Flavor) -> dict[str, np.ndarray]:
        """Both by name, a row for each visit."""
        kind = np.float64 if f.scalar == "double" else np.float32
        numbers = [
            [v.numbers[i] if i < len(v.numbers) else 0.0 for i in self.numbers]
            for v in self.program.visits
        ]
        with np.errstate(over="ignore"):
            rows = np.array(numbers, kind)
        visits = np.array(self.columns, np.int32).T
        return {f"visits{self.tag}": visits, f"numbers{self.tag}": rows}

    def text(self, f: Flavor) -> str:
        """Both as bytes: quick to write and to read."""
        return "".join(
            f'@{name} = internal constant [{x.nbytes} x i8] c"{escaped(x)}", align 64\n'
            for name, x in self.data(f).items()
        )


def _of_pairs(program: LoopProgram) -> dict[str, tuple[int, ...]]:
    """What climbs need to know of a visit.

    way: which step leads to its parent, and up: the number of that; dofs: its rows in a matrix.
    pairs, climb: where it has itself, and its first pair; width: how much further the next one is,
    for each row of a pair.
    """
    pairs = program.pairs
    width = tuple(pairs.slots * n for n in pairs.dofs)
    places = {"pairs": tuple(pairs.begin), "climb": tuple(pairs.climb), "width": width}
    return {"way": program.ways, "up": tuple(pairs.above), "dofs": tuple(pairs.dofs), **places}


def escaped(table: np.ndarray) -> str:
    """The bytes of a table, as LLVM writes them."""
    return "\\" + table.tobytes().hex("\\") if table.size else ""


class StepBody(Body):
    """The code of one step: loads and stores at places known when it runs."""

    def __init__(self, tables: Tables, f: Flavor, step: Step, code: Function) -> None:
        self.tables, self.flavor, self.step, self.code = tables, f, step, code
        self.names, self.written = {}, {}
        self.begins: dict[tuple[str, str], str] = {}
        self.nodes = reachable(store.value for store in step.stores)
        self.angles = self.angles_of(self.nodes)
        self.stores: dict[int, list[Store]] = {}
        for store in step.stores:
            self.stores.setdefault(store.value.id, []).append(store)
        # of every pair slot as many
        self.block = Counter(s.slot for s in step.stores if s.row == PAIR)
        self.overwritten = self._overwritten()

    def _overwritten(self) -> dict[tuple[Place, str], Node]:
        """Inputs that are loaded from places to which something is stored."""
        places = self.tables.rows.places
        written = {(places[s.slot, s.entry], s.row) for s in self.step.stores if s.row != PAIR}
        found = {}
        for node in (x for x in self.nodes if x.op == "input"):
            load = self.step.loads[node.value]
            if load.kind == "slot":
                place = places[load.which, load.entry], load.row
                if place in written:
                    found[place] = node
        return found

    @abstractmethod
    def number(self, load: Load) -> str:
        """A number of the thing."""

    @abstractmethod
    def within(self, column: str, row: str, memory: str, base: int, at: int) -> str:
        """The address of a value in the row that begins where a column of a visit says.

        row: whose visit, or GROUND, where there is none and all begins at the beginning.
        memory: an argument, the results or the workspace, so far further on.
        """

    def write(self) -> None:
        """All lines."""
        f, order = self.flavor, Order(n for n in self.nodes if n.op not in ("const", "input"))
        plan = step_plan(order, len(order) or 1, f.registers - SPARE, self.stores)
        self.waiting = plan.slot
        if plan.slots:
            self.room = self.code.room(f"[{plan.slots} x {f.type}]", "align 64").name
        keep = {node.id for node in self.overwritten.values()}
        for step in sum(plan.pieces, []):
            for node in step.nodes:
                self.operation(node)
            if step.node.id in self.waiting:
                self.store(step.node, self.address(self.room, self.waiting[step.node.id]))
            for store in self.stores.get(step.node.id, ()):
                self.put(store)
            for id in set(step.gone) - keep:
                self.names.pop(id, None)
        for store in self.step.stores:
            if store.value.op in ("const", "input"):
                self.put(store)

    def put(self, store: Store) -> None:
        """Store a value, after what is loaded from its place."""
        if store.row != PAIR:
            place = self.tables.rows.places[store.slot, store.entry], store.row
            if place in self.overwritten:
                self.operand(self.overwritten[place])
        self.store(store.value, self.place(store.slot, store.row, store.entry))

    def fetch(self, node: Node) -> str:
        """Load an input, or what was made before and has left its register."""
        if node.id in self.waiting:
            return self.load(self.address(self.room, self.waiting[node.id]))
        if node.op != "input":
            store = self.stores[node.id][0]
            return self.load(self.place(store.slot, store.row, store.entry))
        load = self.step.loads[node.value]
        if load.kind == "number":
            return self.number(load)
        if load.kind == "argument":
            column, memory = f"in{load.which}", f"%in{load.which}"
            return self.load(self.within(column, load.row, memory, 0, load.entry))
        return self.load(self.place(load.which, load.row, load.entry))

    def place(self, slot: int, row: str, entry: int) -> str:
        """Where an entry of a slot is."""
        if row == PAIR:
            return self.within("pairs", PAIR, "%out", 0, slot * self.block[slot] + entry)
        area, at = self.tables.rows.places[slot, entry]
        memory = "%out" if area.startswith("result") else "%ws"
        if row == GROUND:
            return self.within(area, row, memory, self.tables.base[area], at)
        column = f"{area}.{'parent' if row == 'parent' else 'own'}"
        return self.within(column, row, memory, self.tables.base[area], at)


class _InFunction(StepBody):
    """A step in a function that has pointers to visits."""

    def __init__(self, tables: Tables, f: Flavor, step: Step, code: Function) -> None:
        StepBody.__init__(self, tables, f, step, code)
        own = Value("ptr", "%visit")
        self.visits = {"own": own, "parent": own, PAIR: own}
        self.numbers = {"own": Value("ptr", "%numbers")}

    def number(self, load: Load) -> str:
        f, at = self.flavor, self.tables.numbers.index(load.entry)
        number = self.code.entry(f.scalar, self.numbers[load.row], at)
        return f.spread(self.code, number).name

    def within(self, column: str, row: str, memory: str, base: int, at: int) -> str:
        kind = self.flavor.type
        if row == GROUND:
            return self.address(memory, base + at)
        if (column, row) not in self.begins:
            begin = _word(self.code, self.tables, self.visits[row], column)
            start = self.code.at(Value("ptr", memory), begin, kind)
            self.begins[column, row] = self.code.at(start, base, kind).name
        return self.address(self.begins[column, row], at)


def _word(code: Function, tables: Tables, visit: Value, column: str) -> Value:
    """What a column of a visit says."""
    return code.cast("zext", code.entry("i32", visit, tables.column[column]), "i64")


def _visit(code: Function, tables: Tables, f: Flavor, i: Value) -> tuple[Value, Value]:
    """Where visit i and its numbers begin."""
    row, begin = (code.op("mul", i, len(x)) for x in (tables.columns, tables.numbers))
    visit = code.at(Value("ptr", f"@visits{tables.tag}"), row, "i32")
    return visit, code.at(Value("ptr", f"@numbers{tables.tag}"), begin, f.scalar)


class _StepFunction(_InFunction):
    """The same as a function."""

    def __init__(self, tables: Tables, f: Flavor, name: str, step: Step) -> None:
        given = *parameters(tables.program), "ptr visit", "ptr numbers"
        code = Function(name, "void", *given, attributes="#0")
        _InFunction.__init__(self, tables, f, step, code)

    def text(self) -> str:
        self.write()
        return self.code.ret().text()


class _ClimbStep(_InFunction):
    """A step of a climb, in its loop; next: what is carried on, by entry of a slot."""

    def __init__(self, function: _ClimbFunction, step: Step, held: Mapping[Entry, Value]) -> None:
        # LLVM shares out registers: what is carried has them already
        f = replace(function.f, registers=1 << 20)
        _InFunction.__init__(self, function.tables, f, step, function.code)
        self.held, self.next = held, dict(held)

    def fetch(self, node: Node) -> str:
        """What is held needs no loading."""
        load = self.step.loads[node.value] if node.op == "input" else None
        if load and _of_climber(load):
            return self.held[load.which, load.entry].name
        return StepBody.fetch(self, node)

    def put(self, store: Store) -> None:
        """Store what there is of a pair, keep what is carried."""
        if store.row == PAIR:
            StepBody.put(self, store)
        else:
            held = Value(self.flavor.type, self.operand(store.value))
            self.next[store.slot, store.entry] = held


def _of_climber(load: Load) -> bool:
    """Whether a load in a climb is from a slot of the thing that climbs."""
    return load.kind == "slot" and load.row == "own"


class _ClimbFunction:
    """A thing's way to its root.

    held: entries of the thing's own slots that the steps need; carried: those that they change.
    """

    def __init__(self, tables: Tables, f: Flavor, name: str, climb: Climb) -> None:
        self.tables, self.f, self.climb = tables, f, climb
        self.steps = list(dict.fromkeys(step for step in climb if step.stores))
        loads = (x for step in self.steps for x in step.used if _of_climber(x))
        stores = (s for step in self.steps for s in step.stores if s.row != PAIR)
        self.carried: list[Entry] = list(dict.fromkeys((s.slot, s.entry) for s in stores))
        self.held = list(dict.fromkeys([*self.carried, *((x.which, x.entry) for x in loads)]))
        given = *parameters(tables.program), "ptr visit", "ptr numbers", "i64 i"
        self.code = Function(name, "void", *given, attributes="#0")

    def text(self) -> str:
        """The function."""
        code, f, tables = self.code, self.f, self.tables
        own = _InFunction(tables, f, Step((), ()), code)
        held = {e: Value(f.type, own.load(own.place(e[0], "own", e[1]))) for e in self.held}
        visit, numbers, first = code.parameters[-3:]
        width, start = (_word(code, tables, visit, x) for x in ("width", "climb"))
        with code.loop(first, start, *(held[e] for e in self.carried)) as loop:
            i, pair, *carried = loop.carried
            lower = _visit(code, tables, f, i)
            way = code.entry("i32", lower[0], tables.column["way"])
            code.leave(loop, code.compare("icmp eq", way, ZERO))
            up = _word(code, tables, lower[0], "up")
            here = held | dict(zip(self.carried, carried, strict=True))
            upper = _visit(code, tables, f, up)
            at = {"own": (visit, numbers), "lower": lower, "upper": upper}
            after = self.stepped(way, at, pair, here)
            rows = _word(code, tables, upper[0], "dofs")
            pair = code.op("add", pair, code.op("mul", width, rows))
            loop.next = [up, pair, *after]
        for e, value in zip(self.carried, loop.carried[2:], strict=True):
            code.store(value, Value("ptr", own.place(e[0], "own", e[1])), f"align {f.bytes}")
        return code.ret().text()

    def stepped(
        self,
        way: Value,
        at: Mapping[str, tuple[Value, Value]],
        pair: Value,
        held: Mapping[Entry, Value],
    ) -> list[Value]:
        """The step of a way; what is carried on."""
        code, f = self.code, self.f
        out = code.at(Value("ptr", "%out"), pair, f.type).name

        def written(step: Step) -> list[Value]:
            made = _ClimbStep(self, step, held)
            made.visits = {row: visit for row, (visit, _) in at.items()}
            made.numbers = {row: numbers for row, (_, numbers) in at.items()}
            made.begins["pairs", PAIR] = out
            made.write()
            return [made.next[e] for e in self.carried]

        if len(self.steps) == 1:
            return written(self.steps[0])
        ends = [(code.block, [held[e] for e in self.carried])]
        for k in code.cases(way, [k for k, step in enumerate(self.climb) if step.stores]):
            values = written(self.climb[k])
            ends.append((code.block, values))
        return code.either(ends)


def _stage(tables: Tables, f: Flavor, i: int) -> str:
    """The loop of one stage."""
    code = Function(f"stage{i}{tables.tag}_{f.name}", "void", *parameters(tables.program))
    stage, n = tables.program.stages[i], len(tables.program.visits)
    walk = (n - 1, -1, -1) if stage.backwards else (0, n, 1)
    with code.count(*walk) as loop:
        visit, numbers = _visit(code, tables, f, loop.i)
        kind, end = code.entry("i32", visit, tables.column["kind"]), f"{tables.tag}_{f.name}"
        for k in code.cases(kind, range(len(stage.steps))):
            first = stage.steps.index(stage.steps[k])
            code.call(f"step{i}_{first}{end}", *code.parameters, visit, numbers)
            if stage.climbs and stage.climbs[k]:
                first = stage.climbs.index(stage.climbs[k])
                code.call(f"climb{i}_{first}{end}", *code.parameters, visit, numbers, loop.i)
    return code.ret().text()


def _whole(tables: Tables, f: Flavor) -> str:
    """The stages in turn, the ground's rows set before each, the rest of the results gathered."""
    program, rows = tables.program, tables.rows
    code = Function(f"loops{tables.tag}_{f.name}", "void", *parameters(program), attributes="#0")
    *_, out, ws = code.parameters
    align = f"align {f.bytes}"
    for i in range(len(program.stages)):
        for (slot, entry), use in rows.uses.items():
            if use.first == i and use.by_children:
                area, at = rows.places[slot, entry]
                values = program.start.get(slot, ())
                value = f.value(values[entry] if entry < len(values) else 0.0)
                code.store(value, code.at(ws, tables.base[area] + at, f.type), align)
        if program.stages[i].before.stores:
            code.call(f"before{i}{tables.tag}_{f.name}", *code.parameters, _NOBODY, _NOBODY)
        if program.stages[i].visits_any:
            code.call(f"stage{i}{tables.tag}_{f.name}", *code.parameters)
    return _gathered(code, tables, f, out, ws) + code.ret().text()


def _gathered(code: Function, tables: Tables, f: Flavor, out: Value, ws: Value) -> str:
    """Copies what is kept to where results go; the table of both places."""
    entries, align = tables.rows.gathered, f"align {f.bytes}"
    if not entries:
        return ""
    table = Value("ptr", f"@results{tables.tag}_{f.name}")
    with code.count(0, len(entries)) as loop:
        pair = code.at(table, code.op("mul", loop.i, 2), "i32")
        to, place = (code.cast("zext", code.entry("i32", pair, j), "i64") for j in (0, 1))
        value = code.load(f.type, code.at(ws, place, f.type), align)
        code.store(value, code.at(out, to, f.type), align)
    pairs = ", ".join(f"i32 {to}, i32 {tables.base[x.area] + x.at}" for to, x in entries)
    return f"{table.name} = internal constant [{2 * len(entries)} x i32] [{pairs}]\n"
