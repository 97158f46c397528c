"""Programs with loops: a sweep over many like things, traced once per kind and not once per thing.

A loop program has arguments and results like any other, a workspace of slots with a row per thing,
and stages.  A stage visits things in order; for each it runs the step of its kind.  A step is a
small graph whose inputs are loads (of an argument, of a row of a slot, of a number of the thing)
and whose values are stored into rows of slots.

After its step a thing may climb: a loop inside the loop, over its parent, that one's parent and so
on, for what there is of every pair of things on one branch.  A step of a climb loads from the rows
of the thing that climbs and of the two that it comes from ("lower") and to ("upper"); it stores
into the row of the thing itself, which carries its values from one to the next, and into that of
the pair.  Matrices over all things are made of pairs (`pairs.py`).

Some slots have one row, the ground's, which belongs to no thing: every step may load from it and
store into it, so that it is where sums over all things come together.  What is made of those sums,
or of arguments that belong to no thing, is a step of its own, done once before the things of a
stage are visited.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

from .arrays import Shape
from .operations import Operations
from .pairs import Matrix, Pairs
from .scalar import Node, reachable

__all__ = ["GROUND", "NOTHING", "PAIR", "ZERO", "Climb", "Load", "LoopProgram", "Stage", "Step"]
__all__ += ["Store", "Visit", "alike", "pruned"]

# an entry of a slot that is zero for everything
ZERO = -1
# the row of what there is of a thing that climbs and the one it comes to; before it climbs, itself
PAIR = "pair"
# the row of what belongs to no thing
GROUND = "ground"


@dataclass(frozen=True)
class Load:
    """Where an input of a step comes from.

    kind: "argument" `which`, at the thing's place in it plus `entry`; "slot" `which`, in the row
    of the thing ("own") or of its parent ("parent"); "number", the thing's own constant `entry`.
    In a climb all three may be of "lower" or "upper" too.  Of GROUND a slot has its only row, and
    an argument all of its entries.
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

    @property
    def text(self) -> str:
        """The same for steps that do the same in the same way."""
        lines, number = [], {}
        for node in reachable(store.value for store in self.stores):
            number[node.id] = len(number)
            value = self.loads[node.value] if node.op == "input" else node.value
            lines.append(f"{node.op} {value} {[number[a.id] for a in node.args]}")
        stores = [(s.slot, s.row, s.entry, number[s.value.id]) for s in self.stores]
        return "\n".join([*lines, repr(stores)])


NOTHING = Step((), ())


@dataclass(frozen=True)
class Visit:
    """One thing in a stage: its kind, rows, places in the arguments, and numbers."""

    kind: int
    own: int
    parent: int
    places: tuple[int, ...]
    numbers: tuple[float, ...]


# the steps of a climb, by the way of the lower of two things; () where nothing climbs
Climb = tuple[Step, ...]


@dataclass(frozen=True, eq=False)
class Stage:
    """A loop: the steps by kind, over the visits of the program, forwards or backwards.

    climbs: by kind too, if anything climbs.  before: what is done once, before any visit.
    """

    steps: tuple[Step, ...]
    backwards: bool
    climbs: tuple[Climb, ...] = ()
    before: Step = NOTHING

    @property
    def inner(self) -> list[Step]:
        """The steps of all climbs, each once."""
        return list(dict.fromkeys(step for climb in self.climbs for step in climb))

    @property
    def all_steps(self) -> list[Step]:
        """Those of climbs, and what is done before, among them; each once."""
        return list(dict.fromkeys((self.before, *self.steps, *self.inner)))

    @property
    def visits_any(self) -> bool:
        """Whether there is anything to be done for things."""
        return any(step.stores for step in (*self.steps, *self.inner))


@dataclass(frozen=True, eq=False)
class LoopProgram:
    """Loops over `visits`; results are gathered from rows of slots at the end.

    slots: the number of values in a row of each.  start: slot → values of row 0 before anything.
    results: for every entry of every result, (slot, row, entry).
    ways: of each visit, which step of a climb leads from it to its parent; ZERO from a root.
    matrices: what the results are instead, with numbers of pair slots of their own.
    dofs: of each visit, how many rows and columns of a matrix it has.
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
    ways: tuple[int, ...] = ()
    matrices: tuple[Matrix, ...] = ()
    dofs: tuple[int, ...] = ()

    @cached_property
    def pairs(self) -> Pairs:
        """Where pairs of things are, and what matrices have of them."""
        index = {visit.own: i for i, visit in enumerate(self.visits)}
        above = [index.get(visit.parent, ZERO) for visit in self.visits]
        return Pairs(above, self.dofs, self.matrices)

    @cached_property
    def ops(self) -> Operations:
        """How many operations of each kind, over all visits."""
        kinds = Counter(visit.kind for visit in self.visits)
        total = Counter()
        for stage in self.stages:
            total.update(node.op for node in reachable(s.value for s in stage.before.stores))
            for kind, step in enumerate(stage.steps):
                for node in reachable(s.value for s in step.stores):
                    total[node.op] += kinds[kind]
            for step, times in self._climbed(stage).items():
                for node in reachable(s.value for s in step.stores):
                    total[node.op] += times
        return Operations.counted(total, max(total["sin"], total["cos"]))

    @cached_property
    def written(self) -> int:
        """How many operations the code of all steps has, however often they are done."""
        steps = {step for stage in self.stages for step in stage.all_steps}
        return sum(len(reachable(s.value for s in step.stores)) for step in steps)

    def _climbed(self, stage: Stage) -> Counter[Step]:
        """How often each step of the climbs of a stage is done."""
        times: Counter[Step] = Counter()
        before: dict[int, Counter[int]] = {0: Counter()}
        for visit, way in zip(self.visits, self.ways, strict=True) if stage.climbs else ():
            before[visit.own] = before[visit.parent] + Counter([way] if way != ZERO else [])
            if climb := stage.climbs[visit.kind]:
                for i, n in before[visit.own].items():
                    times[climb[i]] += n
        return times

    @cached_property
    def digest(self) -> str:
        """The same for programs that compute the same in the same way."""
        lines = [repr((self.inputs, self.outputs, self.slots, self.start, self.visits))]
        lines.append(repr((self.results, self.ways, self.matrices, self.dofs)))
        for stage in self.stages:
            inner = stage.inner
            climbs = [[inner.index(step) for step in climb] for climb in stage.climbs]
            lines.append(repr((stage.backwards, climbs)))
            lines += [f"before {stage.before.text}"] if stage.before.stores else []
            lines += [step.text for step in (*stage.steps, *inner)]
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
    for step in (step for stage in stages for step in stage.all_steps):
        told: dict[tuple[int, str], dict[int, Any]] = {}
        for store in (s for s in step.stores if s.row != PAIR):
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
    """The stages without stores into entries of slots that no result needs, however indirectly.

    What a thing keeps for itself is needed if a step of its own kind loads it; for what others load
    of it, or results are, all kinds count.  What there is of pairs is a result.
    """
    live: set[_Needed] = set()
    found: set[_Needed] = {(slot, entry, None) for slot, _, entry in results}
    done = {(step, kind) for stage in stages for step, kind in _by_kind(stage)}
    while True:
        for step, kind in done:
            for load in (x for x in _stores_into(live, step, kind).used if x.kind == "slot"):
                found.add((load.which, load.entry, kind if load.row == "own" else None))
        if found <= live:
            break
        # what any kind needs may come from a child, which does not know the kind of its parent
        live |= found | {(slot, entry, _ANY) for slot, entry, _ in found}
    made: dict[Any, Step] = {}

    def kept(step: Step, kind: int) -> Step:
        less = _stores_into(live, step, kind)
        return made.setdefault((step, less.stores), less)

    return tuple(
        Stage(
            tuple(kept(step, kind) for kind, step in enumerate(stage.steps)),
            stage.backwards,
            tuple(tuple(kept(x, kind) for x in own) for kind, own in enumerate(stage.climbs)),
            kept(stage.before, _ANY),
        )
        for stage in stages
    )


# an entry of a slot, and the kind of the things of which it is needed; None: of all of them, or
# _ANY: of some
_Needed = tuple[int, int, int | None]
_ANY = -1


def _by_kind(stage: Stage) -> Iterator[tuple[Step, int]]:
    """The steps of a stage and of its climbs, and the kinds of things that do them."""
    yield stage.before, _ANY
    yield from ((step, kind) for kind, step in enumerate(stage.steps))
    yield from ((step, kind) for kind, own in enumerate(stage.climbs) for step in own)


def _stores_into(live: set[_Needed], step: Step, kind: int) -> Step:
    def needed(s: Store) -> bool:
        kinds = (kind, None) if s.row == "own" else (_ANY,)
        return any((s.slot, s.entry, x) in live for x in kinds)

    return Step(step.loads, tuple(s for s in step.stores if s.row == PAIR or needed(s)))
