"""Programs with loops: a sweep over many like things, traced once per kind and not once per thing.

A loop program has arguments and results like any other, a workspace of slots with a row per thing,
and stages.  A stage visits things in order; for each it runs the step of its kind.  A step is a
small graph whose inputs are loads (of an argument, of a row of a slot, of a number of the thing)
and whose values are stored into rows of slots.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

from .arrays import Shape
from .operations import Operations
from .scalar import Node, reachable

__all__ = ["ZERO", "Load", "LoopProgram", "Stage", "Step", "Store", "Visit", "alike", "pruned"]

# an entry of a slot that is zero for everything
ZERO = -1


@dataclass(frozen=True)
class Load:
    """Where an input of a step comes from.

    kind: "argument" `which`, at the thing's place in it plus `entry`; "slot" `which`, in the row
    of the thing ("own") or of its parent ("parent"); "number", the thing's own constant `entry`.
    """

    kind: str
    which: int
    row: str
    entry: int


@dataclass(frozen=True)
class Store:
    """Where a value of a step goes: a row of a slot."""

    slot: int
    row: str
    entry: int
    value: Node


@dataclass(frozen=True, eq=False)
class Step:
    """What is done for one kind of thing."""

    loads: tuple[Load, ...]
    stores: tuple[Store, ...]

    @property
    def used(self) -> list[Load]:
        """The loads that stores depend on."""
        nodes = reachable(store.value for store in self.stores)
        return [self.loads[node.value] for node in nodes if node.op == "input"]


@dataclass(frozen=True)
class Visit:
    """One thing in a stage: its kind, rows, places in the arguments, and numbers."""

    kind: int
    own: int
    parent: int
    places: tuple[int, ...]
    numbers: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Stage:
    """A loop: the steps by kind, over the visits of the program, forwards or backwards."""

    steps: tuple[Step, ...]
    backwards: bool


@dataclass(frozen=True, eq=False)
class LoopProgram:
    """Loops over `visits`; results are gathered from rows of slots at the end.

    slots: the number of values in a row of each.  start: slot → values of row 0 before anything.
    results: for every entry of every result, (slot, row, entry).
    """

    name: str
    inputs: tuple[Shape, ...]
    outputs: tuple[Shape, ...]
    slots: tuple[int, ...]
    rows: int
    start: dict[int, tuple[float, ...]]
    stages: tuple[Stage, ...]
    visits: tuple[Visit, ...]
    results: tuple[tuple[int, int, int], ...]
    form: type | None = None

    @cached_property
    def ops(self) -> Operations:
        """How many operations of each kind, over all visits."""
        kinds = Counter(visit.kind for visit in self.visits)
        total = Counter()
        for stage in self.stages:
            for kind, step in enumerate(stage.steps):
                for node in reachable(s.value for s in step.stores):
                    total[node.op] += kinds[kind]
        return Operations.counted(total, max(total["sin"], total["cos"]))

    @cached_property
    def digest(self) -> str:
        """The same for programs that compute the same in the same way."""
        lines = [repr((self.inputs, self.outputs, self.slots, self.start, self.visits))]
        lines.append(repr(self.results))
        for stage in self.stages:
            for step in stage.steps:
                lines.append(repr((stage.backwards, step.loads)))
                for node in reachable(s.value for s in step.stores):
                    lines.append(f"{node.id} {node.op} {node.value} {[a.id for a in node.args]}")
                lines.append(repr([(s.slot, s.row, s.entry, s.value.id) for s in step.stores]))
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()

    @property
    def input_sizes(self) -> list[int]:
        """How many numbers each argument has."""
        return [prod(shape) for shape in self.inputs]

    @property
    def output_sizes(self) -> list[int]:
        """How many numbers each result has."""
        return [prod(shape) for shape in self.outputs]


def alike(
    stages: Sequence[Stage],
    start: Mapping[int, Sequence[float]],
    slots: Sequence[int],
    believed: Mapping[tuple[int, int], int],
) -> dict[tuple[int, int], int]:
    """For entries of slots the first that always equals them, ZERO where that is what they are.

    So a symmetric matrix of six is kept and computed as 21 numbers instead of 36.

    believed: the same, as the stages were made to rely on it; left out is ZERO.
    """
    marks: dict[tuple[int, int], list[Any]] = {}
    for slot, i in ((slot, i) for slot, size in enumerate(slots) for i in range(size)):
        values = start.get(slot, ())
        at_start = values[i] if i < len(values) else 0.0
        marks[slot, i] = [believed.get((slot, i), ZERO), at_start]
    for step in (step for stage in stages for step in stage.steps):
        told: dict[tuple[int, str], dict[int, Any]] = {}
        for store in step.stores:
            x = store.value
            mark = x.value if x.op == "const" else (x.id,)
            told.setdefault((store.slot, store.row), {})[store.entry] = mark
        for (slot, _), entries in told.items():
            for i in range(slots[slot]):
                marks[slot, i].append(entries.get(i, 0.0))
    first: dict[Any, int] = {}
    found = {}
    for (slot, i), mark in marks.items():
        nothing = mark == [ZERO] + [0.0] * (len(mark) - 1)
        found[slot, i] = ZERO if nothing else first.setdefault((slot, *mark), i)
    return found


def pruned(stages: Sequence[Stage], results: Sequence[tuple[int, int, int]]) -> tuple[Stage, ...]:
    """The stages without stores into entries of slots that no result needs, however indirectly."""
    live: set[tuple[int, int]] = set()
    found = {(slot, entry) for slot, _, entry in results}
    while not found <= live:
        live |= found
        found = {
            (load.which, load.entry)
            for stage in stages
            for step in stage.steps
            for load in _stores_into(live, step).used
            if load.kind == "slot"
        }
    return tuple(
        Stage(tuple(_stores_into(live, step) for step in stage.steps), stage.backwards)
        for stage in stages
    )


def _stores_into(entries: set[tuple[int, int]], step: Step) -> Step:
    return Step(step.loads, tuple(s for s in step.stores if (s.slot, s.entry) in entries))
