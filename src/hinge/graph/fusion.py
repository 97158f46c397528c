"""Loop programs made lighter: stages that go one way become one.

Two stages are one where a thing may do both before the next thing does the first; what the second
loads and the first has just stored then stays in a register.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from .loop import GROUND, PAIR, Load, Stage, Step, Store
from .scalar import Graph, Node

__all__ = ["Rewritten", "fused"]

Entry = tuple[int, int]


def fused(stages: Iterable[Stage]) -> list[Stage]:
    """Stages that do the same in fewer loops."""
    made: list[Stage] = []
    for stage in stages:
        if made and _may_follow_at_once(made[-1], stage):
            made[-1] = _both(made[-1], stage)
        else:
            made.append(stage)
    return made


class _Traffic(NamedTuple):
    """The entries of slots that a stage touches, in rows of things and of their parents."""

    loads: dict[str, set[Entry]]
    stores: dict[str, set[Entry]]

    @classmethod
    def of(cls, stage: Stage) -> _Traffic:
        return cls.of_steps({*stage.steps, *stage.inner})

    @classmethod
    def of_steps(cls, steps: Iterable[Step]) -> _Traffic:
        rows = ("own", "parent", "lower", "upper", PAIR, GROUND)
        loads, stores = ({row: set() for row in rows} for _ in range(2))
        for step in steps:
            for load in (x for x in step.used if x.kind == "slot"):
                loads[load.row].add((load.which, load.entry))
            for store in step.stores:
                stores[store.row].add((store.slot, store.entry))
        return cls(loads, stores)

    def meets_on_ground(self, other: _Traffic) -> bool:
        """Whether one stores what the other touches, of what belongs to no thing."""
        a, b = self, other
        stored, touched = a.stores[GROUND], b.stores[GROUND] | b.loads[GROUND]
        return bool(stored & touched or a.loads[GROUND] & b.stores[GROUND])


def _may_follow_at_once(first: Stage, second: Stage) -> bool:
    """Whether a thing may do the second before the next thing does the first.

    Outward, parents come before: they must not be changed, and what the first has of them must be
    as the first left it.  Inward, parents come later: what the first does to them is not complete,
    and what the second does to them comes too early for the first; nor may the second climb over
    what the first has yet to make.  What belongs to no thing is complete when all were visited.
    """
    if first.backwards != second.backwards or first.climbs:
        return False
    a, b = _Traffic.of(first), _Traffic.of(second)
    if a.meets_on_ground(b) or a.meets_on_ground(_Traffic.of_steps([second.before])):
        return False
    if not first.backwards:
        unchanged = not a.stores["parent"] and not b.stores["parent"]
        return unchanged and not a.loads["parent"] & b.stores["own"]
    stored = a.stores["own"] | a.stores["parent"]
    touched = stored | a.loads["own"] | a.loads["parent"]
    if (b.loads["lower"] | b.loads["upper"]) & stored:
        return False
    return not b.loads["parent"] & stored and not b.stores["parent"] & touched


def _both(first: Stage, second: Stage) -> Stage:
    made: dict[tuple[Step, Step], Step] = {}
    for pair in zip(first.steps, second.steps, strict=True):
        if pair not in made:
            made[pair] = _in_turn(*pair)
    steps = tuple(made[p] for p in zip(first.steps, second.steps, strict=True))
    before = _in_turn(first.before, second.before) if second.before.stores else first.before
    return Stage(steps, first.backwards, second.climbs, before)


def _in_turn(first: Step, second: Step) -> Step:
    """One step that does both."""
    step = Rewritten()
    stores = {(s.slot, s.row, s.entry): x for s, x in step.replayed(first)}
    known = dict(stores)

    def loaded(load: Load) -> Node:
        place = (load.which, load.row, load.entry)
        return known[place] if load.kind == "slot" and place in known else step.load(load)

    stores |= {(s.slot, s.row, s.entry): x for s, x in step.replayed(second, loaded)}
    return step.closed(stores)


class Rewritten:
    """A step while it is made from others."""

    def __init__(self) -> None:
        self.graph = Graph()
        self.loads: dict[Load, Node] = {}

    def load(self, load: Load) -> Node:
        """The input that is loaded there."""
        if load not in self.loads:
            self.loads[load] = self.graph.input()
        return self.loads[load]

    def replayed(
        self,
        step: Step,
        loaded: Callable[[Load], Node] | None = None,
        instead: Callable[[Node], Node | None] = lambda node: None,
    ) -> list[tuple[Store, Node]]:
        """The stores of a step, and their values here; instead: what takes a node's place."""
        loaded, new = loaded or self.load, {}
        for node in _needed((s.value for s in step.stores), instead):
            other = instead(node)
            if other is not None:
                new[node.id] = other
            elif node.op == "input":
                new[node.id] = loaded(step.loads[node.value])
            elif node.op == "const":
                new[node.id] = self.graph.const(node.value)
            else:
                new[node.id] = self.graph.make(node.op, *(new[a.id] for a in node.args))
        return [(s, new[s.value.id]) for s in step.stores]

    def closed(self, stores: dict[tuple[int, str, int], Node]) -> Step:
        """The step."""
        return Step(tuple(self.loads), tuple(Store(*place, x) for place, x in stores.items()))


def _needed(values: Iterable[Node], instead: Callable[[Node], Node | None]) -> list[Node]:
    """The nodes that values need, without what only replaced ones need."""
    seen: dict[int, Node] = {}
    stack = list(values)
    while stack:
        node = stack.pop()
        if node.id not in seen:
            seen[node.id] = node
            stack.extend(() if instead(node) is not None else node.args)
    return [seen[i] for i in sorted(seen)]
