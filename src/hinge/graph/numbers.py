"""Loop programs whose numbers are made beforehand.

What a step makes of a thing's numbers alone is the same for every sample: it is worked out once and
is one more number of the thing, or, where no two things differ in it, a constant that may fold.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from .fusion import Rewritten
from .interpret import evaluated
from .loop import Load, Stage, Step, Visit
from .scalar import Node, reachable

__all__ = ["with_numbers_made"]


def with_numbers_made(
    stages: Sequence[Stage], visits: Sequence[Visit]
) -> tuple[list[Stage], tuple[Visit, ...]]:
    """Stages that load such numbers, and visits that have them."""
    numbers = _Numbers(visits)
    made = [numbers.loaded(stage) for stage in stages]
    return made, numbers.visits()


class _Numbers:
    """The numbers of all things, a row each, and the columns that steps add to them."""

    def __init__(self, visits: Sequence[Visit]) -> None:
        self.given = visits
        self.width = max((len(v.numbers) for v in visits), default=0)
        self.table = np.zeros((len(visits), self.width))
        for row, visit in zip(self.table, visits, strict=True):
            row[: len(visit.numbers)] = visit.numbers
        self.kinds = np.array([v.kind for v in visits], int)
        self.added: dict[bytes, tuple[int, np.ndarray]] = {}

    def visits(self) -> tuple[Visit, ...]:
        """The visits with all of their numbers."""
        rows = np.column_stack([self.table, *(x for _, x in self.added.values())]).tolist()
        return tuple(replace(v, numbers=tuple(x)) for v, x in zip(self.given, rows, strict=True))

    def loaded(self, stage: Stage) -> Stage:
        """A stage whose steps load what they would make of numbers."""
        kinds: dict[Step, list[int]] = {}
        for kind, step in enumerate(stage.steps):
            kinds.setdefault(step, []).append(kind)
        new = {step: self.step(step, np.isin(self.kinds, own)) for step, own in kinds.items()}
        steps = tuple(new[step] for step in stage.steps)
        return Stage(steps, stage.backwards, stage.climbs, stage.before)

    def step(self, step: Step, which: np.ndarray) -> Step:
        """A step; which: the things that do it."""
        wanted = _of_numbers(step)
        if not wanted or not which.any():
            return step
        made, things = Rewritten(), self.table[which]
        values = evaluated(
            reachable(wanted), lambda i: things[:, step.loads[i].entry], np.dtype(float)
        )
        there: dict[int, Node] = {}
        for node in wanted:
            column = np.zeros(len(which))
            column[which] = values[node.id]
            first, *rest = column[which]
            alike = all(x == first for x in rest)
            there[node.id] = made.graph.const(first) if alike else made.load(self.number(column))
        stores = made.replayed(step, instead=lambda node: there.get(node.id))
        return made.closed({(s.slot, s.row, s.entry): x for s, x in stores})

    def number(self, column: np.ndarray) -> Load:
        """The load of a new number, or of one that is the same for everything."""
        at = self.width + len(self.added)
        at, _ = self.added.setdefault(column.tobytes(), (at, column))
        return Load("number", 0, "own", at)


def _of_numbers(step: Step) -> list[Node]:
    """The operations on nothing but numbers whose results go into others, or are stored."""
    nodes = reachable(store.value for store in step.stores)
    alone: set[int] = set()
    for node in nodes:
        inputs = node.op == "input" and step.loads[node.value].kind == "number"
        if node.op == "const" or inputs or (node.args and alone >= {a.id for a in node.args}):
            alone.add(node.id)
    users: Iterable[Node] = (a for node in nodes if node.id not in alone for a in node.args)
    ends = {x.id: x for x in (*users, *(s.value for s in step.stores))}
    return [x for x in ends.values() if x.id in alone and x.args]
