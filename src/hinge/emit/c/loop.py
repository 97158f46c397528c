"""Loop programs as C99: a function per step, and loops that call them body by body.

A visit is a row of a table: kind, own row, parent row, where the body's numbers begin, its places
in the arguments.  The workspace is on the stack, a row per body, with slots as members x0, x1, …
What there is of a pair of bodies goes straight to the results that are matrices (`climb.py`); what
belongs to no body is in an array of its own, `shared`.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from itertools import accumulate, groupby

from ...graph.loop import GROUND, PAIR, LoopProgram, Stage, Step
from .body import Entry
from .climb import CLIMBING, Climbs, climbing_columns, put_function, zeroed
from .file import Front, braces, wrapped
from .step import BeforeFunction, StepFunction

__all__ = ["loops_text"]

# members of a visit, and what steps and loops call their own
_LOCALS = ("kind", "own", "parent", "numbers", "visit", "shared", "i", *CLIMBING)
_TABLES = ("visit", "visits", "numbers", "row", "ground", "results", "put")


def loops_text(front: Front, program: LoopProgram) -> str:
    """The whole file."""
    loops = Loops(front, program)
    if loops.stages:
        return loops.text()
    return front.file(front.dialect.name, front.function([], ()), [])


class Loops:
    """What every part of the file refers to."""

    def __init__(self, front: Front, program: LoopProgram) -> None:
        self.front, self.program, self.scalar = front, program, front.scalar
        self.row = f"struct {front.name}_row"
        self.stages = [s for s in program.stages if any(step.stores for step in s.all_steps)]
        kinds = range(max((len(stage.steps) for stage in self.stages), default=0))
        others = [f"{front.name}_{table}" for table in _TABLES]
        others += [f"{front.name}_results{i + 2}" for i in range(len(program.results))]
        others += [self.step_name(i, kind) for i in range(len(self.stages)) for kind in kinds]
        others += [self.before_name(i) for i in range(len(self.stages))]
        front.settle([*_LOCALS, *others])
        loads = [[x for stage in self.stages for x in stage.steps[kind].used] for kind in kinds]
        # of each kind, the numbers that are asked for
        numbers = [{x.entry for x in own if x.kind == "number"} for own in loads]
        self.columns = [sorted(own) for own in _where_steps_are_shared(self.stages, numbers)]
        inner = [step for stage in self.stages for step in stage.inner]
        if inner:
            # those that climb ask for numbers of others
            loads.append([x for step in inner for x in step.used])
            all_numbers = {x.entry for own in loads for x in own if x.kind == "number"}
            self.columns = [sorted(all_numbers) for _ in kinds]
        steps = [step for stage in self.stages for step in stage.all_steps]
        touched = {(x.which, x.entry, x.row) for s in steps for x in s.used if x.kind == "slot"}
        touched |= {(s.slot, s.entry, s.row) for x in steps for s in x.stores if s.row != PAIR}
        live = {(slot, entry) for slot, entry, _ in touched}
        live |= {(slot, entry) for slot, _, entry in program.results}
        # the entries that belong to no body, and of each slot those that a row has
        self.shared = sorted({(slot, entry) for slot, entry, row in touched if row == GROUND})
        live -= {*self.shared}
        self.slots = {
            i: [e for s, e in sorted(live) if s == i] for i in sorted({s for s, _ in live})
        }
        asked = (x for own in loads for x in own if x.kind == "argument" and x.row != GROUND)
        self.places = self._places({x.which for x in asked})

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
        if row == GROUND:
            return Entry("shared", self.shared.index((slot, entry)))
        return Entry(f"{row}->x{slot}", self.slots[slot].index(entry))

    def step_name(self, stage: int, kind: int) -> str:
        """The function of a step."""
        return f"{self.front.name}_step{stage + 1}_kind{kind}"

    def before_name(self, stage: int) -> str:
        """The function of what is done before a loop."""
        return f"{self.front.name}_before{stage + 1}"

    def distinct(self, stage: Stage) -> list[tuple[list[int], Step]]:
        """Steps that do something, each with the kinds that take it and have the same numbers."""
        kinds: dict[tuple[Step, tuple[int, ...]], list[int]] = {}
        for kind, step in enumerate(stage.steps):
            if step.stores:
                kinds.setdefault((step, tuple(self.columns[kind])), []).append(kind)
        return [(own, step) for (step, _), own in kinds.items()]

    def text(self) -> str:
        """The whole file."""
        front, program = self.front, self.program
        dialect, steps = front.dialect, [x for x in [front.dialect.parts] if x]
        lines = [f"{self.row} w[{program.rows}];", f"w[0] = {front.name}_ground;"]
        if self.shared:
            lines.append(f"{self.scalar.name} shared[{len(self.shared)}];")
        given = {x.which for s in self.stages for x in s.before.used if x.kind == "argument"}
        if program.matrices:
            steps.append(put_function(front))
            lines += zeroed(front, program)
        for i, stage in enumerate(self.stages):
            if stage.before.stores:
                before = BeforeFunction(self, self.before_name(i), 0, stage.before)
                steps.append(before.text)
                lines.append(before.call)
            if not stage.visits_any:
                continue
            cases = []
            for kinds, step in self.distinct(stage):
                made = StepFunction(self, self.step_name(i, kinds[0]), kinds[0], step)
                steps.append(made.text)
                labels = [f"case {kind}:" for kind in kinds]
                cases += [*labels, textwrap.indent(made.call, "    "), "    break;"]
            climbs = Climbs(self, stage, i)
            steps += climbs.functions
            lines.append(self.loop(stage, cases, climbs))
        tables, gathered = self.results() if not program.matrices else ([], [])
        used = {*self.places, *(a.name for a in front.results if a.size)}
        used |= {front.arguments[i].name for i in given}
        declared = [*self.visits(), *self.numbers(), *self.rows(), *tables]
        inside = [x for x in declared if dialect.header and "static const" in x]
        whole = front.function([*inside, *lines, *gathered], used)
        code = [*(x for x in declared if x not in inside), *steps, whole]
        width = sum(map(len, self.slots.values()))
        size = (width * program.rows + len(self.shared)) * self.scalar.bytes
        shape = f"{program.rows} rows of {width} numbers"
        shape += f", and {len(self.shared)} more" if self.shared else ""
        workspace = f"Workspace on the stack: {size} bytes, {shape}."
        kind = f"{dialect.name} with loops over {len(program.visits)} bodies"
        return front.file(kind, "\n\n".join(code), [workspace])

    # tables

    def visits(self) -> tuple[str, str]:
        """What a visit is, and the table of them."""
        visits, kind = self.program.visits, f"struct {self.front.name}_visit"
        columns = {n: [getattr(v, n) for v in visits] for n in ("kind", "own", "parent")}
        if any(self.columns):
            sizes = [len(self.columns[v.kind]) for v in visits]
            columns["numbers"] = list(accumulate(sizes[:-1], initial=0))
        columns |= {member: list(column) for member, column in self.places.values()}
        if self.program.matrices:
            columns |= climbing_columns(self.program)
        members = wrapped(f"{_integer(columns.values())} ", list(columns), ";")
        rows = [f"{{{', '.join(map(str, row))}}}," for row in zip(*columns.values(), strict=True)]
        note = (
            "/* kind of a body, rows of it and its parent, where its numbers and arguments begin */"
        )
        head = f"static const {kind} {self.front.name}_visits[{len(rows)}] ="
        return f"{note}\n{braces(kind, [members])};", f"{braces(head, rows)};"

    def numbers(self) -> list[str]:
        """The table of the numbers in which bodies of one kind differ, if they do."""
        visits = self.program.visits
        table = [
            [v.numbers[i] if i < len(v.numbers) else 0.0 for i in self.columns[v.kind]]
            for v in visits
        ]
        rows = [wrapped("", self.texts(row), ",") for row in table if row]
        size = sum(map(len, table))
        head = f"static const {self.scalar.name} {self.front.name}_numbers[{size}] ="
        return [f"/* in which bodies of one kind differ */\n{braces(head, rows)};"] if rows else []

    def rows(self) -> tuple[str, str]:
        """What a row of the workspace is, and the row of the ground, which is given."""
        members = [f"x{i}[{len(entries)}]" for i, entries in self.slots.items()]
        given = {i: dict(enumerate(values)) for i, values in self.program.start.items()}
        start = {i: [given.get(i, {}).get(e, 0.0) for e in own] for i, own in self.slots.items()}
        # what is not said is zero, but something has to be said; C++ has no names for it
        if self.front.dialect.header:
            lines = [wrapped("{", self.texts(values), "},") for values in start.values()]
        else:
            said = [i for i in start if any(start[i])] or list(start)[:1]
            lines = [wrapped(f".x{i} = {{", self.texts(start[i]), "},") for i in said]
        head = f"static const {self.row} {self.front.name}_ground ="
        row = braces(self.row, [wrapped(f"{self.scalar.name} ", members, ";")])
        return f"/* what the loops keep of a body */\n{row};", f"{braces(head, lines)};"

    def texts(self, values: Iterable[float]) -> list[str]:
        """Numbers in C."""
        return [self.scalar.number(x).text for x in values]

    # loops

    def loop(self, stage: Stage, cases: Sequence[str], climbs: Climbs) -> str:
        """The loop of one stage."""
        name, n = self.front.name, len(self.program.visits)
        visit = f"const struct {name}_visit *visit = &{name}_visits[i];"
        walk = f"i = {n - 1}; i >= 0; i--" if stage.backwards else f"i = 0; i < {n}; i++"
        lines = [visit, *climbs.before, "switch (visit->kind) {", *cases, "}", *climbs.after]
        return braces(f"for (int {walk})", lines)

    def results(self) -> tuple[list[str], list[str]]:
        """Tables of rows and entries where results are, and the loops that gather them."""
        tables: dict[tuple[tuple[int, int], ...], str] = {}
        loops, entries = [], iter(self.program.results)
        for array in self.front.results:
            found = [(i, *next(entries)) for i in range(array.size)]
            for slot, group in groupby(found, key=lambda x: x[1]):
                run = list(group)
                new = f"{self.front.name}_results{len(tables) + 1 if tables else ''}"
                first = run[0][0]
                place = f"{first} + i" if first else "i"
                if slot not in self.slots:
                    where = [(i, self.shared.index((slot, entry))) for i, _, _, entry in run]
                    loops += [f"{array.name}[{i}] = shared[{at}];" for i, at in where]
                    continue
                at = tuple((row, self.slots[slot].index(entry)) for _, _, row, entry in run)
                table = tables.setdefault(at, new)
                line = f"{array.name}[{place}] = w[{table}[i][0]].x{slot}[{table}[i][1]];"
                loops.append(braces(f"for (int i = 0; i < {len(run)}; i++)", [line]))
        texts = []
        for table, name in tables.items():
            rows = wrapped("", [f"{{{row}, {entry}}}" for row, entry in table], ",")
            head = f"static const {_integer(table)} {name}[{len(table)}][2] ="
            texts.append(f"/* where results are: row and entry */\n{braces(head, [rows])};")
        return texts, loops


def _where_steps_are_shared(stages: Sequence[Stage], numbers: list[set[int]]) -> list[set[int]]:
    """The numbers of each kind and of those with which it shares a step: one function for all."""
    for _ in numbers:
        for steps in (stage.steps for stage in stages):
            for step in (x for x in dict.fromkeys(steps) if x.stores):
                kinds = [kind for kind, other in enumerate(steps) if other is step]
                both = set().union(*(numbers[kind] for kind in kinds))
                numbers = [both if kind in kinds else x for kind, x in enumerate(numbers)]
    return numbers


def _integer(table: Iterable[Iterable[int]]) -> str:
    """A type for every entry of a table."""
    return "unsigned short" if max(map(max, table)) < 2**16 else "unsigned long"
