"""Climbs as C99: a loop from a body to its root inside the loop over bodies.

The blocks that a step makes of a pair of bodies are in a short array, `pair`, and go from there to
their places in the matrices.
"""

from __future__ import annotations

import textwrap
from itertools import accumulate

from ...graph.loop import PAIR, Climb, Load, LoopProgram, Stage, Step
from .body import Entry
from .file import Front, block, braces, wrapped
from .step import LoopFile, StepFunction

__all__ = ["CLIMBING", "Climbs", "climbing_columns", "put_function", "zeroed"]

# more members of a visit, and names in the loops
CLIMBING = ("way", "up", "first", "dofs", "lower", "upper", "pair")
CLIMBING += tuple(f"{row}_numbers" for row in ("lower", "upper"))


def climbing_columns(program: LoopProgram) -> dict[str, list[int]]:
    """What a visit says besides.

    way: of the climb to its parent, counted from 1, 0 from a root; up: the number of that; first,
    dofs: its rows in a matrix.
    """
    pairs = program.pairs
    first = list(accumulate(pairs.dofs[:-1], initial=0))
    up = [max(i, 0) for i in pairs.above]
    return {"way": [w + 1 for w in program.ways], "up": up, "first": first, "dofs": [*pairs.dofs]}


def put_function(front: Front) -> str:
    """The function that puts a block to its place in a matrix."""
    scalar, n = front.scalar.name, front.results[0].shape[0]
    more = [f"unsigned long {x}" for x in ("row", "column", "rows", "columns")] + ["int turned"]
    arrays = [f"{scalar} *matrix", f"const {scalar} *block"]
    head = front.head(front.dialect.part, f"{front.name}_put", [], [*arrays, *more])
    entry = f"matrix[(row + i) * {n} + column + j]"
    line = f"{entry} = turned ? block[j * rows + i] : block[i * columns + j];"
    inner = braces("for (unsigned long j = 0; j < columns; j++)", [line])
    return block(head, [braces("for (unsigned long i = 0; i < rows; i++)", [inner])])


def zeroed(front: Front, program: LoopProgram) -> list[str]:
    """The loops that clear matrices of which not every entry is put."""
    if program.pairs.everywhere:
        return []
    return [
        braces(f"for (int i = 0; i < {a.size}; i++)", [f"{a.name}[i] = 0;"]) for a in front.results
    ]


class Climbs:
    """The climbs of one stage.

    functions: of their steps; before, after: lines of the loop before and after a body's own step.
    """

    def __init__(self, file: LoopFile, stage: Stage, number: int) -> None:
        self.file, self.stage = file, stage
        self.functions: list[str] = []
        self.before: list[str] = []
        self.after: list[str] = []
        own = {s.slot for step in stage.steps for s in step.stores if s.row == PAIR}
        if not own and not stage.inner:
            return
        pairs, start = file.program.pairs, f"{file.front.name}_step{number + 1}_climb"
        self.before = [f"{file.scalar.name} pair[{pairs.slots * max(pairs.dofs) ** 2}];"]
        self.after = self.puts(own, "visit", "visit")
        steps = enumerate(step for step in stage.inner if step.stores)
        made = {step: _ClimbStep(file, f"{start}{i}", 0, step) for i, step in steps}
        self.functions = [function.text for function in made.values()]
        cases = []
        for climb in dict.fromkeys(climb for climb in stage.climbs if climb):
            kinds = [k for k, other in enumerate(stage.climbs) if other == climb]
            loop = self.loop(climb, {step: function.call for step, function in made.items()})
            cases += [*(f"case {k}:" for k in kinds), textwrap.indent(loop, "    "), "    break;"]
        self.after += ["switch (visit->kind) {", *cases, "}"] if cases else []

    def loop(self, climb: Climb, calls: dict[Step, str]) -> str:
        """From a body to its root."""
        name = self.file.front.name
        steps = [step for step in climb if step.stores]
        slots = {s.slot for step in steps for s in step.stores if s.row == PAIR}
        cases: list[str] = []
        for step in dict.fromkeys(steps):
            ways = [way for way, other in enumerate(climb, 1) if other is step]
            call = textwrap.indent(calls[step], "    ")
            cases += [*(f"case {way}:" for way in ways), call, "    break;"]
        lines = [f"upper = &{name}_visits[lower->up];", "switch (lower->way) {", *cases, "}"]
        walk = f"const struct {name}_visit *lower = visit, *upper; lower->way; lower = upper"
        return braces(f"for ({walk})", [*lines, *self.puts(slots, "upper", "visit")])

    def puts(self, slots: set[int], row: str, column: str) -> list[str]:
        """The calls that put blocks of a pair to their places in all matrices."""
        calls, name = [], f"{self.file.front.name}_put"
        places = f"{row}->first, {column}->first, {row}->dofs, {column}->dofs"
        back = f"{column}->first, {row}->first, {column}->dofs, {row}->dofs"
        for array, m in zip(self.file.front.results, self.file.program.matrices, strict=True):
            ways = [(m.above, places, 0)]
            if row != column and not m.triangular:
                ways.append((m.above, back, 1) if m.below is None else (m.below, back, 0))
            for slot, where, turned in ways:
                if slot in slots:
                    block = f"pair + {slot} * {row}->dofs * {column}->dofs" if slot else "pair"
                    calls.append(f"{name}({array.name}, {block}, {where}, {turned});")
        return calls


class _ClimbStep(StepFunction):
    """The function of a step of a climb: rows and arguments of three bodies."""

    rows = ("own", "lower", "upper")

    def source(self, load: Load) -> Entry:
        """As in `StepFunction`; what is not the climbing body's own is called after its body."""
        own = StepFunction.source(self, load)
        if load.kind == "slot" or load.row == "own":
            return own
        return Entry(f"{load.row}_{own.array}", own.offset)

    def _given(self) -> list[tuple[str, str]]:
        """Parameters that are touched, and what they are given."""
        file, scalar = self.file, f"const {self.file.scalar.name}"
        given = []
        for row, visit in zip(self.rows, ("visit", "lower", "upper"), strict=True):
            before = "" if row == "own" else f"{row}_"
            for a, (member, _) in file.places.items():
                given.append((f"{scalar} *{before}{a}", f"{a} + {visit}->{member}"))
            numbers = f"{file.front.name}_numbers + {visit}->numbers"
            given.append((f"{scalar} *{before}numbers", numbers))
            kind = file.row if row in self.written else f"const {file.row}"
            given.append((f"{kind} *{row}", f"&w[{visit}->own]"))
        given.append((f"{file.scalar.name} *pair", "pair"))
        return [(p, x) for p, x in given if p.rpartition("*")[2] in self.touched]

    def function(self, name: str, lines: list[str]) -> str:
        """The text of the function."""
        front = self.file.front
        return block(front.head(front.dialect.part, name, [], [p for p, _ in self._given()]), lines)

    def called(self, name: str) -> str:
        """The statement that calls it."""
        return wrapped(f"{name}(", [x for _, x in self._given()], ");", depth=5)
