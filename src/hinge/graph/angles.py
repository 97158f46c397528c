"""Loop programs that turn each angle once.

A sine or cosine of arguments and numbers alone, which several stages need, is kept by the first of
them for the others, and for things that climb past.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from .fusion import Rewritten
from .loop import Load, Stage, Step, Store
from .operations import SINCOS
from .scalar import Node, reachable

__all__ = ["with_angles_kept"]

# what an angle is: operations on loads, as nested tuples
Key = Any


def with_angles_kept(
    stages: Sequence[Stage], slot: int, lower: Sequence[set[int]]
) -> tuple[list[Stage], int]:
    """Stages that share sines and cosines in a new slot, and how many entries it has.

    lower: of each way of climbs the kinds of the things that it leads from.
    """
    angles = _Angles(stages, slot, lower)
    return [angles.shared(i) for i in range(len(stages))], len(angles.place)


class _Kept(NamedTuple):
    """An angle of a step that is kept: its node, its place, whose row, and if it is there yet."""

    node: Node
    at: int
    row: str
    there: bool


class _Angles:
    """Which angles are kept.

    first: by kind and key, the stage that turns it first; place: by key.
    """

    def __init__(self, stages: Sequence[Stage], slot: int, lower: Sequence[set[int]]) -> None:
        self.stages, self.slot, self.lower = stages, slot, lower
        self.made: dict[Any, Step] = {}
        self.first: dict[tuple[int, Key], int] = {}
        wanted: list[Key] = []
        for i, stage in enumerate(stages):
            for kind, step in enumerate(stage.steps):
                for key in _angles(step):
                    if self.first.setdefault((kind, key), i) < i:
                        wanted.append(key)
            for climb in dict.fromkeys(stage.climbs):
                for way, step in enumerate(climb):
                    wanted += [key for key in _angles(step, "lower") if self.known(i, way, key)]
        self.place = {key: at for at, key in enumerate(dict.fromkeys(wanted))}

    def known(self, i: int, way: int, key: Key) -> bool:
        """Whether those that a climb of stage i comes from have turned an angle by then."""
        latest = i - 1 if self.stages[i].backwards else i
        return all(self.first.get((kind, key), i + 1) <= latest for kind in self.lower[way])

    def shared(self, i: int) -> Stage:
        """Stage i, its steps loading what is there and storing what is not."""
        stage = self.stages[i]
        steps = tuple(self.outer(i, kind, step) for kind, step in enumerate(stage.steps))
        climbs = tuple(
            tuple(self.inner(i, way, step) for way, step in enumerate(climb))
            for climb in stage.climbs
        )
        return Stage(steps, stage.backwards, climbs, stage.before)

    def outer(self, i: int, kind: int, step: Step) -> Step:
        kept = [(key, node) for key, node in _angles(step).items() if key in self.place]
        return self.sharing(
            step,
            [_Kept(x, self.place[key], "own", self.first[kind, key] < i) for key, x in kept],
        )

    def inner(self, i: int, way: int, step: Step) -> Step:
        known = [(k, x) for k, x in _angles(step, "lower").items() if self.known(i, way, k)]
        return self.sharing(step, [_Kept(x, self.place[k], "lower", True) for k, x in known])

    def sharing(self, step: Step, kept: Sequence[_Kept]) -> Step:
        """A step that stores or loads some of its sines and cosines."""
        asked = step, tuple((k.node.id, k.at, k.there) for k in kept)
        if kept and asked not in self.made:
            made = Rewritten()
            fetched = {
                k.node.id: made.load(Load("slot", self.slot, k.row, k.at)) for k in kept if k.there
            }
            new = (Store(self.slot, k.row, k.at, k.node) for k in kept if not k.there)
            values = made.replayed(
                Step(step.loads, (*step.stores, *new)), instead=lambda node: fetched.get(node.id)
            )
            self.made[asked] = made.closed({(s.slot, s.row, s.entry): x for s, x in values})
        return self.made[asked] if kept else step


def _angles(step: Step, row: str = "own") -> Mapping[Key, Node]:
    """The sines and cosines of a step that depend on a thing's arguments and numbers alone.

    row: which thing's; the keys are as if it were the step's own.
    """
    keys: dict[int, Key] = {}
    found = {}
    for node in reachable(store.value for store in step.stores):
        if node.op == "input":
            load = step.loads[node.value]
            own = load.kind != "slot" and load.row == row
            keys[node.id] = replace(load, row="own") if own else None
            continue
        parts = [keys[a.id] for a in node.args]
        keys[node.id] = None if None in parts else (node.op, node.value, *parts)
        if node.op in SINCOS and keys[node.id] is not None:
            found[keys[node.id]] = node
    return found
