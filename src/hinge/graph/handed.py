"""Loop programs whose steps between loops hand on what later ones of them need.

All of those steps are written on one graph, since an algorithm may use a value whenever it likes.
What one of them makes and a later one needs is stored, and loaded there: by then what it was made
of may have changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .fusion import Rewritten
from .loop import GROUND, Load, Stage, Step, Store
from .scalar import Node

__all__ = ["with_values_handed_on"]


def with_values_handed_on(
    stages: Sequence[Stage], first: Sequence[int], slot: int
) -> tuple[list[Stage], int]:
    """Stages that share values of the steps before them in a new slot, and how many there are.

    first: for each stage the number of the first node that is made in the step before it.
    """
    handed = _Handed(slot)
    made: list[Stage] = []
    # what a step is asked for is known once all later ones were looked at
    for stage, begin in zip(reversed(stages), reversed(first), strict=True):
        made.append(replace(stage, before=handed.step(stage.before, begin)))
    return made[::-1], len(handed.place)


class _Handed:
    """What is handed on.

    place: by the number of its node; asked: nodes that no step was found to make yet.
    """

    def __init__(self, slot: int) -> None:
        self.slot = slot
        self.place: dict[int, int] = {}
        self.asked: dict[int, Node] = {}

    def step(self, step: Step, begin: int) -> Step:
        """A step whose nodes are those from `begin` on."""
        mine = [node for id, node in self.asked.items() if id >= begin]
        self.asked = {id: node for id, node in self.asked.items() if id < begin}
        new = (Store(self.slot, GROUND, self.place[node.id], node) for node in mine)
        made = Rewritten()

        def instead(node: Node) -> Node | None:
            if node.id >= begin or node.op == "const":
                return None
            self.asked[node.id] = node
            at = self.place.setdefault(node.id, len(self.place))
            return made.load(Load("slot", self.slot, GROUND, at))

        stores = made.replayed(Step(step.loads, (*step.stores, *new)), instead=instead)
        return made.closed({(s.slot, s.row, s.entry): x for s, x in stores})
