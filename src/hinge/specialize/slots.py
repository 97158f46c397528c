"""What sweeps in loops read and write per body, while one step of them is traced.

A slot is a row of the workspace for every body, and what is done to it under a token becomes loads
and stores of the step at hand; joined slots and blocks of pairs are what a program gives back.
What belongs to no body is shared by all steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any, Protocol

import numpy as np

from ..graph.arrays import Shape
from ..graph.loop import GROUND, PAIR, ZERO, Climb, Load, Stage, Step, Store
from ..graph.scalar import Graph, Node
from ..model.mechanism import Body, Mechanism
from .kinds import Kind, Role

__all__ = ["LOWER", "OWN", "PARENT", "UPPER", "Filled", "Joined", "OpenStep", "PairSlots"]
__all__ += ["Placed", "Riding", "SharedSlot", "Slot"]

# whose row it is: of the parent, of the body itself, and of both ends of a step of its climb
PARENT, OWN, LOWER, UPPER = "parent", "own", "lower", "upper"


class Tracer(Protocol):
    """What slots ask of the one who traces.

    step: the one at hand; shapes: of slots by kind; assumed: what may be taken for `alike`; sizes,
    start: of slots, as in `LoopProgram`; backwards: whether the sweep at hand goes inward.
    """

    step: OpenStep
    shapes: dict[tuple[int, int], tuple[int, ...]]
    assumed: dict[tuple[int, int], int]
    sizes: list[int]
    start: dict[int, tuple[float, ...]]
    stages: list[Stage]
    backwards: bool

    @property
    def kind(self) -> Kind:
        """The kind of the body at hand."""
        ...

    @property
    def role(self) -> Role:
        """The role of the step at hand."""
        ...

    def slots(self, n: int) -> list[Slot]:
        """New ones."""
        ...

    def slot_number(self) -> int:
        """The number of a new one, whatever it is for."""
        ...

    def is_at(self, body: int) -> bool:
        """Whether the body at hand is the one at the end of a walk."""
        ...

    def carried_ends(self, bodies: tuple[int, ...]) -> list[int]:
        """Which of the ends of a walk the body at hand carries, and is to bring inward.

        All of them where the ways meet; beyond that they are one.
        """
        ...

    def kept_of(self, slot: int, body: int) -> int:
        """The number of the shared slot with what a body at the end of a walk has in a slot."""
        ...

    def kept_by(self, slot: int, row: str) -> int | None:
        """The same of the body whose row is written, None if nobody asks for it."""
        ...

    def pair_slot(self) -> int:
        """The number of a new one."""
        ...


class OpenStep:
    """The step of one role while the algorithm runs through it.

    kinds: of the bodies whose rows it sees; climb: its steps, if it has some.
    reads_slots: whether it has read any; asks_role: whether it matters what its role is.
    earlier: the loads of steps before it on its graph.
    """

    def __init__(self, role: Role, kinds: Mapping[str, int] | None = None) -> None:
        self.role, self.kind, self.graph = role, role.kind, Graph()
        self.earlier: tuple[Load, ...] = ()
        self.kinds = {OWN: role.kind, **(kinds or {})}
        self.climb: Climb = ()
        self.reads_slots = self.asks_role = False
        self.bodies: dict[str, Body] = {}
        self.loads: dict[Load, Node] = {}
        self.values: dict[tuple[int, str], Any] = {}
        self.written: dict[tuple[int, str], Any] = {}

    def next_between(self) -> OpenStep:
        """After a step that is done once the next one, which may use all that this one has made."""
        new = OpenStep(self.role)
        new.graph, new.earlier = self.graph, (*self.earlier, *self.loads)
        return new

    def load(self, load: Load) -> Node:
        """The input that is loaded there."""
        if load not in self.loads:
            self.loads[load] = self.graph.input()
        return self.loads[load]

    def array(self, loads: list[Load]) -> np.ndarray:
        """The inputs of several loads."""
        out = np.empty(len(loads), dtype=object)
        out[:] = [self.load(load) for load in loads]
        return out

    def closed(self) -> Step:
        """The step, done."""
        self.graph.check()
        stores = [
            Store(slot, row, i, self.graph.lift(x))
            for (slot, row), value in self.written.items()
            for i, x in enumerate(value.ravel())
            if self.loads.get(Load("slot", slot, row, i)) is not x
        ]
        return Step((*self.earlier, *self.loads), tuple(stores))


class Slot:
    """Per-body values of a sweep, in rows of the workspace: arrays, or what is made of some."""

    def __init__(self, tracer: Tracer, number: int) -> None:
        self.tracer, self.number = tracer, number
        # of what the ground has, until more is known
        self.first: tuple[int, ...] = (6,)
        self.kind: Any = None
        # what bodies at the ends of walks have before any sweep
        self.at_end: dict[int, Any] = {}

    def __getitem__(self, row: Any) -> Any:
        if isinstance(row, int):
            return self.after_sweeps(row)
        step = self.tracer.step
        step.reads_slots = True
        for body, value in self.at_end.items():
            if row == OWN and self.tracer.is_at(body):
                step.values.setdefault((self.number, row), value)
        if (self.number, row) not in step.values:
            shape = self.shape(step.kinds.get(row))
            entries = [self.entry(step, row, i) for i in range(int(np.prod(shape)))]
            whole = np.array(entries, dtype=object).reshape(shape)
            step.values[self.number, row] = whole
        return self.formed(step.values[self.number, row])

    def after_sweeps(self, body: int) -> Any:
        """What a body at the end of a walk was given, or the ground has."""
        if body:
            kept = SharedSlot(self.tracer, self.tracer.kept_of(self.number, body))
            kept.kind, kept.shape = self.kind, self.shape(None)
            self.tracer.sizes[kept.number] = prod(kept.shape)
            return kept.value
        start = self.tracer.start.get(self.number, (0.0,) * prod(self.first))
        return self.formed(np.reshape(start, self.first))

    def formed(self, numbers: np.ndarray) -> Any:
        """What they are the numbers of."""
        return numbers if self.kind is None else self.kind.of_numbers(numbers)

    def like(self, value: Any) -> None:
        """Take it that values are such as this one."""
        if hasattr(value, "numbers"):
            self.kind, value = type(value), value.numbers
        self.first = np.shape(value)

    def shape(self, kind: int | None) -> tuple[int, ...]:
        """Of what a body of a kind has, or any, if that is not known yet."""
        known = self.tracer.shapes
        if kind is not None and (self.number, kind) in known:
            return known[self.number, kind]
        return next((x for (slot, _), x in known.items() if slot == self.number), self.first)

    def entry(self, step: OpenStep, row: str, i: int) -> Node:
        """Entry i of a row, loaded if it is not known to be zero."""
        first = self.tracer.assumed.get((self.number, i), ZERO)
        if first == ZERO:
            return step.graph.const(0.0)
        return step.load(Load("slot", self.number, row, first))

    def __setitem__(self, row: Any, value: Any) -> None:
        if hasattr(value, "numbers"):
            self.kind, value = type(value), value.numbers
        value = np.asarray(value)
        tracer = self.tracer
        tracer.sizes[self.number] = max(tracer.sizes[self.number], value.size)
        if isinstance(row, int) and row:
            self.first = value.shape
            self.at_end[row] = value
            return
        if row == 0:
            self.first = value.shape
            tracer.start[self.number] = tuple(float(x) for x in value.ravel())
            return
        if row == OWN:
            tracer.shapes[self.number, tracer.step.kinds[OWN]] = value.shape
        if (kept := tracer.kept_by(self.number, row)) is not None:
            tracer.step.written[kept, GROUND] = value
        tracer.step.values[self.number, row] = value
        tracer.step.written[self.number, row] = value


class SharedSlot:
    """A value that belongs to no body: the same row for all steps, and what is between sweeps."""

    def __init__(self, tracer: Tracer, number: int) -> None:
        self.tracer, self.number = tracer, number
        self.shape: tuple[int, ...] = ()
        self.kind: Any = None

    @property
    def value(self) -> Any:
        """What there is by now; of what is zero for certain the number."""
        step, place = self.tracer.step, (self.number, GROUND)
        step.reads_slots = True
        if place not in step.values:
            whole = np.empty(prod(self.shape), dtype=object)
            for i in range(len(whole)):
                first = self.tracer.assumed.get((self.number, i), ZERO)
                load = Load("slot", self.number, GROUND, first)
                whole[i] = 0.0 if first == ZERO else step.load(load)
            step.values[place] = whole.reshape(self.shape)
        numbers = step.values[place]
        return numbers[()] if self.kind is None else self.kind.of_numbers(numbers)

    @value.setter
    def value(self, value: Any) -> None:
        """Store it, when the step at hand is done."""
        self.kind = type(value) if hasattr(value, "numbers") else None
        numbers = np.asarray(value if self.kind is None else value.numbers)
        self.shape, sizes = numbers.shape, self.tracer.sizes
        sizes[self.number] = max(sizes[self.number], numbers.size)
        step = self.tracer.step
        step.values[self.number, GROUND] = step.written[self.number, GROUND] = numbers

    def gathered(self, mech: Mechanism) -> tuple[Shape, list[tuple[int, int, int]]]:
        """The shape of the result, and where each of its entries is."""
        return self.shape, [(self.number, 0, i) for i in range(prod(self.shape))]


class Placed:
    """Values on the bodies at the ends of a walk, zeros on all others."""

    def __init__(self, tracer: Tracer, values: Mapping[int, SharedSlot]) -> None:
        self.tracer, self.values = tracer, values

    def __getitem__(self, row: str) -> Any:
        for body, value in self.values.items():
            if self.tracer.is_at(body):
                return value.value
        return np.zeros(next((x.shape for x in self.values.values()), ()))


class Riding:
    """What rides inward from the ends of a walk: one value for each way, that passes all bodies.

    Where ways meet values are added, and from there on the first of them is the sum.
    """

    def __init__(self, tracer: Tracer, values: Mapping[int, SharedSlot]) -> None:
        self.tracer, self.ends, self.passing = tracer, tuple(values), list(values.values())

    def __getitem__(self, row: str) -> Any:
        first, *rest = (self.passing[i] for i in self.tracer.carried_ends(self.ends))
        # on its way to the parent is nothing but what the body at hand brings
        return np.zeros(first.shape) if row == PARENT else sum((x.value for x in rest), first.value)

    def __setitem__(self, row: str, value: Any) -> None:
        self.passing[self.tracer.carried_ends(self.ends)[0]].value = value


class Filled:
    """A slot that has something for every body before the first sweep that uses it.

    made: the slot; added: what children add to it in that sweep, if it goes inward.
    """

    def __init__(self, tracer: Tracer, make: Callable[[Any], Any]) -> None:
        self.tracer, self.make = tracer, make
        self.made, self.added = tracer.slots(2)
        self.sweep: int | None = None

    @property
    def filling(self) -> bool:
        """Whether the sweep at hand is the first to use it."""
        if self.sweep is None:
            self.sweep = len(self.tracer.stages)
        return self.sweep == len(self.tracer.stages)

    @property
    def number(self) -> int:
        """The number of the slot."""
        return self.made.number

    def fill(self) -> Any:
        """What the body at hand has: its own, and inward what its children have added."""
        step, tracer = self.tracer.step, self.tracer
        if (self.number, OWN) not in step.values:
            own = self.make(OWN)
            if tracer.backwards and not tracer.role.leaf:
                self.added.like(own)
                own = own + self.added[OWN]
            self.made[OWN] = own
        return self.made[OWN]

    def __getitem__(self, row: str) -> Any:
        if not self.filling:
            return self.made[row]
        own, step = self.fill(), self.tracer.step
        if row == OWN:
            return own
        if not self.tracer.backwards:
            return self.made[row]
        self.added.like(own)
        if self.tracer.role.first and (self.added.number, row) not in step.values:
            return self.added.formed(np.zeros(self.added.first))
        return self.added[row]

    def __setitem__(self, row: Any, value: Any) -> None:
        if self.filling and row == PARENT and self.tracer.backwards:
            self.fill()
            self.added[row] = value
        else:
            self.made[row] = value


class Joined:
    """What a slot holds: joint forces, one row per body, or columns side by side.

    rows: of joint forces, how many there are of each DoF.
    coordinates: whether there is an entry for each of these, instead of each DoF.
    apart: whether bodies have rows of their own, instead of columns.
    """

    def __init__(
        self,
        slot: Slot,
        columns: bool = False,
        rows: int | None = None,
        coordinates: bool = False,
        apart: bool = False,
    ) -> None:
        self.slot, self.columns, self.rows, self.coordinates = slot, columns, rows, coordinates
        self.apart = apart

    def gathered(self, mech: Mechanism) -> tuple[Shape, list[tuple[int, int, int]]]:
        """The shape of the result, and where each of its entries is."""
        slot, bodies = self.slot.number, range(1, len(mech.bodies))
        if self.coordinates:
            joints = [(k, mech.bodies[k].joint) for k in bodies]
            return (mech.nq,), [(slot, k, i) for k, joint in joints for i in range(joint.nq)]
        if not self.columns:
            n = 1 if self.rows is None else self.rows
            dofs = [(k, i) for k in bodies for i in range(mech.bodies[k].joint.nv)]
            entries = [(slot, k, i * n + r) for r in range(n) for k, i in dofs]
            return ((mech.nv,) if self.rows is None else (n, mech.nv)), entries
        *rest, width = self.slot.shape(None)
        lines = range(prod(rest))
        entries = [(slot, k, r * width + i) for r in lines for k in bodies for i in range(width)]
        return (len(bodies), width) if self.apart else (*rest, len(bodies) * width), entries


class PairSlots:
    """Blocks of a matrix: what a body has with itself, and as it climbs, with those above it.

    above, below: the pair slots of blocks (upper, body) and (body, upper).
    """

    def __init__(self, tracer: Tracer) -> None:
        self.tracer = tracer
        self.above, self.below = tracer.pair_slot(), None

    def __setitem__(self, pair: tuple[str, str], value: Any) -> None:
        slot = self.above
        if pair == (OWN, UPPER):
            self.below = slot = self.tracer.pair_slot() if self.below is None else self.below
        self.tracer.step.written[slot, PAIR] = np.asarray(value)
