"""Loop programs as C99: a function per step, and loops that call them body by body.

A visit is a row of a table: kind, own row, parent row, where the body's numbers begin, its places
in the arguments.  The workspace is on the stack, a row per body, with slots as members x0, x1, …
What there is of a pair of bodies goes straight to the results that are matrices (`climb.py`).
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from itertools import accumulate, groupby

from ...graph.loop import PAIR, LoopProgram, Stage, Step
from .body import Entry
from .climb import CLIMBING, Climbs, climbing_columns, put_function, zeroed
from .file import Front, braces, wrapped
from .step import StepFunction

__all__ = ["loops_text"]

# members of a visit, and what steps and loops call their own
_LOCALS = ("kind", "own", "parent", "numbers", "visit", "i", *CLIMBING)
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
        done = [(s, (*s.steps, *s.inner)) for s in program.stages]
        self.stages = [s for s, steps in done if any(step.stores for step in steps)]
        kinds = range(max((len(stage.steps) for stage in self.stages), default=0))
        others = [f"{front.name}_{table}" for table in _TABLES]
        others += [f"{front.name}_results{i + 2}" for i in range(len(program.results))]
        others += [self.step_name(i, kind) for i in range(len(self.stages)) for kind in kinds]
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
        live = {(x.which, x.entry) for own in loads for x in own if x.kind == "slot"}
        live |= {(slot, entry) for slot, _, entry in program.results}
        steps = [step for stage in self.stages for step in (*stage.steps, *stage.inner)]
        live |= {(s.slot, s.entry) for step in steps for s in step.stores if s.row != PAIR}
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
        if program.matrices:
            steps.append(put_function(front))
            lines += zeroed(front, program)
        for i, stage in enumerate(self.stages):
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
        declared = [*self.visits(), *self.numbers(), *self.rows(), *tables]
        inside = [x for x in declared if dialect.header and "static const" in x]
        whole = front.function([*inside, *lines, *gathered], used)
        code = [*(x for x in declared if x not in inside), *steps, whole]
        width = sum(map(len, self.slots.values()))
        size, shape = width * program.rows * self.scalar.bytes, f"{program.rows} rows of {width}"
        workspace = f"Workspace on the stack: {size} bytes, {shape} numbers."
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
                at = tuple((row, self.slots[slot].index(entry)) for _, _, row, entry in run)
                table = tables.setdefault(at, new)
                first = run[0][0]
                place = f"{first} + i" if first else "i"
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
