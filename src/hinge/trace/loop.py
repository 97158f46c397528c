"""Programs with loops: a sweep over many like things, traced once per kind and not once per thing.

A loop program has arguments and results like any other, a workspace of slots with a row per thing,
and stages.  A stage visits things in order; for each it runs the step of its kind.  A step is a
small graph whose inputs are loads (of an argument, of a row of a slot, of a number of the thing)
and whose values are stored into rows of slots.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from .arrays import Shape
from .operations import Operations
from .scalar import Node, reachable

__all__ = ["Load", "LoopProgram", "Stage", "Step", "Store", "Visit", "pruned"]


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


def pruned(stages: Sequence[Stage], results: Sequence[tuple[int, int, int]]) -> tuple[Stage, ...]:
    """The stages without stores into slots that no result needs, however indirectly."""
    live: set[int] = set()
    found = {slot for slot, _, _ in results}
    while not found <= live:
        live |= found
        found = {
            step.loads[node.value].which
            for stage in stages
            for step in stage.steps
            for node in reachable(s.value for s in step.stores if s.slot in live)
            if node.op == "input" and step.loads[node.value].kind == "slot"
        }
    return tuple(
        Stage(tuple(_stores_into(live, step) for step in stage.steps), stage.backwards)
        for stage in stages
    )


def _stores_into(slots: set[int], step: Step) -> Step:
    return Step(step.loads, tuple(s for s in step.stores if s.slot in slots))
