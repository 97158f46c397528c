"""Loop programs as C99: a function per step, and loops that call them body by body.

A visit is a row of a table: kind, own row, parent row, where the body's numbers begin, its places
in the arguments.  The workspace is on the stack, a row per body, with slots as members x0, x1, …
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from itertools import accumulate, groupby

from ...graph.loop import Load, LoopProgram, Stage, Step
from ...graph.schedule import ordered
from .body import Body, Entry
from .file import PART, Front, block, wrapped

__all__ = ["loops_text"]

# members of a visit, and what steps and loops call their own
_LOCALS = ("kind", "own", "parent", "numbers", "visit", "i")
_TABLES = ("visit", "visits", "numbers", "row", "ground", "results")


def loops_text(front: Front, program: LoopProgram) -> str:
    """The whole file."""
    loops = _Loops(front, program)
    return loops.text() if loops.stages else front.file("C99", front.function([], ()), [])


class _Loops:
    """What every part of the file refers to."""

    def __init__(self, front: Front, program: LoopProgram) -> None:
        self.front, self.program, self.scalar = front, program, front.scalar
        self.row = f"struct {front.name}_row"
        self.stages = [s for s in program.stages if any(step.stores for step in s.steps)]
        kinds = range(max((len(stage.steps) for stage in self.stages), default=0))
        others = [f"{front.name}_{table}" for table in _TABLES]
        others += [f"{front.name}_results{i + 2}" for i in range(len(program.results))]
        others += [self.step_name(i, kind) for i in range(len(self.stages)) for kind in kinds]
        front.settle([*_LOCALS, *others])
        loads = [[x for stage in self.stages for x in stage.steps[kind].used] for kind in kinds]
        # of each kind, the numbers that are asked for
        self.columns = [sorted({x.entry for x in own if x.kind == "number"}) for own in loads]
        live = {(x.which, x.entry) for own in loads for x in own if x.kind == "slot"}
        live |= {(slot, entry) for slot, _, entry in program.results}
        steps = [step for stage in self.stages for step in stage.steps]
        live |= {(store.slot, store.entry) for step in steps for store in step.stores}
        # of each slot, the entries that a row has
        self.slots = {
            i: [e for s, e in sorted(live) if s == i] for i in sorted({s for s, _ in live})
        }
        self.places = self._places({x.which for own in loads for x in own if x.kind == "argument"})

    def _places(self, used: set[int]) -> dict[str, tuple[str, tuple[int, ...]]]:
        """Name of an argument → member of a visit, and its value in every visit.

        Arguments that have each body at the same place share a member.
        """
        members: dict[tuple[int, ...], str] = {}
        places = {}
        for i in sorted(used):
            column = tuple(visit.places[i] for visit in self.program.visits)
            name = self.front.arguments[i].name
            places[name] = members.setdefault(column, name), column
        return places

    def place(self, row: str, slot: int, entry: int) -> Entry:
        """An entry of a slot."""
        return Entry(f"{row}->x{slot}", self.slots[slot].index(entry))

    def step_name(self, stage: int, kind: int) -> str:
        """The function of a step."""
        return f"{self.front.name}_step{stage + 1}_kind{kind}"

    def text(self) -> str:
        """The whole file."""
        front, program = self.front, self.program
        steps, lines = [PART], [f"{self.row} w[{program.rows}];", f"w[0] = {front.name}_ground;"]
        for i, stage in enumerate(self.stages):
            cases = []
            for kind, step in enumerate(stage.steps):
                if step.stores:
                    made = _Step(self, self.step_name(i, kind), kind, step)
                    steps.append(made.text)
                    cases += [f"case {kind}:", textwrap.indent(made.call, "    "), "    break;"]
            lines.append(self.loop(stage, cases))
        tables, gathered = self.results()
        used = {*self.places, *(a.name for a in front.results if a.size)}
        whole = front.function([*lines, *gathered], used)
        code = [*self.visits(), *self.numbers(), *self.rows(), *tables, *steps, whole]
        width = sum(map(len, self.slots.values()))
        size, shape = width * program.rows * self.scalar.bytes, f"{program.rows} rows of {width}"
        workspace = f"Workspace on the stack: {size} bytes, {shape} numbers."
        kind = f"C99 with loops over {len(program.visits)} bodies"
        return front.file(kind, "\n\n".join(code), [workspace])

    # tables

    def visits(self) -> list[str]:
        """The table of visits."""
        visits, kind = self.program.visits, f"struct {self.front.name}_visit"
        columns = {n: [getattr(v, n) for v in visits] for n in ("kind", "own", "parent")}
        if any(self.columns):
            sizes = [len(self.columns[v.kind]) for v in visits]
            columns["numbers"] = list(accumulate(sizes[:-1], initial=0))
        columns |= {member: list(column) for member, column in self.places.values()}
        members = wrapped(f"{_integer(columns.values())} ", list(columns), ";")
        rows = [f"{{{', '.join(map(str, row))}}}," for row in zip(*columns.values(), strict=True)]
        note = (
            "/* kind of a body, rows of it and its parent, where its numbers and arguments begin */"
        )
        head = f"static const {kind} {self.front.name}_visits[{len(rows)}] ="
        return [f"{note}\n{_braces(kind, [members])};", f"{_braces(head, rows)};"]

    def numbers(self) -> list[str]:
        """The table of the numbers in which bodies of one kind differ, if they do."""
        table = [[v.numbers[i] for i in self.columns[v.kind]] for v in self.program.visits]
        rows = [wrapped("", self.texts(row), ",") for row in table if row]
        size = sum(map(len, table))
        head = f"static const {self.scalar.name} {self.front.name}_numbers[{size}] ="
        return [f"/* in which bodies of one kind differ */\n{_braces(head, rows)};"] if rows else []

    def rows(self) -> list[str]:
        """What a row of the workspace is, and the row of the ground, which is given."""
        members = [f"x{i}[{len(entries)}]" for i, entries in self.slots.items()]
        given = {i: dict(enumerate(values)) for i, values in self.program.start.items()}
        start = {i: [given.get(i, {}).get(e, 0.0) for e in own] for i, own in self.slots.items()}
        # what is not said is zero, but something has to be said
        said = [i for i in start if any(start[i])] or list(start)[:1]
        lines = [wrapped(f".x{i} = {{", self.texts(start[i]), "},") for i in said]
        head = f"static const {self.row} {self.front.name}_ground ="
        row = _braces(self.row, [wrapped(f"{self.scalar.name} ", members, ";")])
        return [f"/* what the loops keep of a body */\n{row};", f"{_braces(head, lines)};"]

    def texts(self, values: Iterable[float]) -> list[str]:
        """Numbers in C."""
        return [self.scalar.number(x).text for x in values]

    # loops

    def loop(self, stage: Stage, cases: Sequence[str]) -> str:
        """The loop of one stage."""
        name, n = self.front.name, len(self.program.visits)
        visit = f"const struct {name}_visit *visit = &{name}_visits[i];"
        walk = f"i = {n - 1}; i >= 0; i--" if stage.backwards else f"i = 0; i < {n}; i++"
        return _braces(f"for (int {walk})", [visit, "switch (visit->kind) {", *cases, "}"])

    def results(self) -> tuple[list[str], list[str]]:
        """Tables of rows and entries where results are, and the loops that gather them."""
        tables: dict[tuple[tuple[int, int], ...], str] = {}
        loops, entries = [], iter(self.program.results)
        for array in self.front.results:
            found = [(i, *next(entries)) for i in range(array.size)]
            for slot, group in groupby(found, key=lambda x: x[1]):
                run = list(group)
                new = f"{self.front.name}_results{len(tables) + 1 if tables else ''}"
                at = tuple((row, self.slots[slot].index(entry)) for _, _, row, entry in run)
                table = tables.setdefault(at, new)
                first = run[0][0]
                place = f"{first} + i" if first else "i"
                line = f"{array.name}[{place}] = w[{table}[i][0]].x{slot}[{table}[i][1]];"
                loops.append(_braces(f"for (int i = 0; i < {len(run)}; i++)", [line]))
        texts = []
        for table, name in tables.items():
            rows = wrapped("", [f"{{{row}, {entry}}}" for row, entry in table], ",")
            head = f"static const {_integer(table)} {name}[{len(table)}][2] ="
            texts.append(f"/* where results are: row and entry */\n{_braces(head, [rows])};")
        return texts, loops


class _Step:
    """The function of one step, and the call of it in the loop."""

    def __init__(self, file: _Loops, name: str, kind: int, step: Step) -> None:
        """Stores that write over what the step loads come last, from values with names."""
        self.file, self.kind, used = file, kind, set(step.used)
        inputs = {i: self.source(load) for i, load in enumerate(step.loads) if load in used}
        loaded, stores = set(inputs.values()), step.stores
        stored = [(s.value, file.place(s.row, s.slot, s.entry)) for s in stores]
        over = [(node, entry) for node, entry in stored if entry in loaded]
        free = [(node, entry) for node, entry in stored if entry not in loaded]
        results: dict[int, list[Entry]] = {}
        for node, entry in free:
            results.setdefault(node.id, []).append(entry)
        nodes = ordered(node for node, _ in stored)
        kept = [node for node, _ in over if node.op != "const"]
        body = Body(file.scalar, nodes, {}, inputs, results, kept)
        for node, entry in [x for x in free if x[0].op in ("const", "input")] + over:
            body.copy(node, entry)
        self.touched = {array.split("->")[0] for array in body.arrays}
        self.written = {store.row for store in stores}
        self.text = self.function(name, body.lines)
        self.call = self.called(name)

    def source(self, load: Load) -> Entry:
        """Where a load finds its value."""
        if load.kind == "slot":
            return self.file.place(load.row, load.which, load.entry)
        if load.kind == "argument":
            return Entry(self.file.front.arguments[load.which].name, load.entry)
        return Entry("numbers", self.file.columns[self.kind].index(load.entry))

    def function(self, name: str, lines: list[str]) -> str:
        """The text of the function."""
        file = self.file
        arrays = [a for a in file.front.arguments if a.name in self.touched]
        more = [f"const {file.scalar.name} *numbers"] if "numbers" in self.touched else []
        for row in ("parent", "own"):
            if row in self.touched:
                more.append(f"{'' if row in self.written else 'const '}{file.row} *{row}")
        return block(file.front.head("PART", name, arrays, more), lines)

    def called(self, name: str) -> str:
        """The statement that calls it."""
        places = self.file.places.items()
        given = [f"{a} + visit->{member}" for a, (member, _) in places if a in self.touched]
        if "numbers" in self.touched:
            given.append(f"{self.file.front.name}_numbers + visit->numbers")
        given += [f"&w[visit->{row}]" for row in ("parent", "own") if row in self.touched]
        return wrapped(f"{name}(", given, ");", depth=3)


def _integer(table: Iterable[Iterable[int]]) -> str:
    """A type for every entry of a table."""
    return "unsigned short" if max(map(max, table)) < 2**16 else "unsigned long"


def _braces(head: str, lines: Iterable[str]) -> str:
    return "\n".join([f"{head} {{", *(textwrap.indent(line, "    ") for line in lines), "}"])
