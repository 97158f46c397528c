"""The mechanism that algorithms sweep over when their sweeps become loops.

`LoopMechanism` stands in for a mechanism.  Its `outward` and `inward` yield once per kind, with
tokens for parent and body; what the algorithm reads and writes under a token becomes loads and
stores of that kind's step, and when the algorithm asks for the next pair the step is closed.

A slot that is filled before a sweep inward, such as the inertias to which children add theirs, is
not written in advance: the first child stores, the others add, and the body puts its own on top.
So kinds are told apart further, by whether a body has children and is the first of its parent's.

Entries of a slot that are zero for every body are never loaded, and of those that are always equal,
such as the halves of a symmetric matrix, only the first.  Which they are is found by assuming at
first that all are zero: the algorithm is traced again until it does as was assumed.

`climb` inside a sweep yields once per way, a kind of bodies on a kind of parents, and becomes a
loop inside the loop.  What a body carries up is in a slot of its own, F[k] = φ(j) F[k], since only
slots are seen; blocks of matrices go to the `pairs` of the mechanism.

What an algorithm does between its sweeps, to what is `shared` by all bodies, is a step that is done
once.  Bodies at the ends of walks (`walks.py`) are kinds of their own: what an algorithm reads of
them after a sweep, V[3] say, is kept by their own steps.  That it is asked for is known when the
algorithm is traced again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ..algebra.spatial import Transform
from ..errors import TraceError
from ..graph.loop import GROUND, NOTHING, Climb, Load, Stage, Step
from ..graph.pairs import Matrix
from ..model.joint import HingeRates
from ..model.mechanism import Body, Frame, Mechanism, hinge_map, transfer
from ..model.parameters import pose_of
from .kinds import AT, Kind, Role, find_roles, find_ways
from .slots import (
    LOWER,
    OWN,
    PARENT,
    UPPER,
    Filled,
    Joined,
    OpenStep,
    PairSlots,
    Placed,
    Riding,
    SharedSlot,
    Slot,
)
from .walks import Mark, Walk

__all__ = ["Argument", "Known", "LoopMechanism"]


class Known(NamedTuple):
    """What is known of a mechanism, and of an algorithm that was traced on it before.

    assumed: what may be taken for `alike`; shapes: of slots by kind, None if not known.
    kept: by slot and body, the shared slots that the algorithm reads after sweeps.
    """

    kinds: tuple[list[Kind], dict[int, int]]
    walks: Sequence[Walk]
    assumed: dict[tuple[int, int], int] = {}
    shapes: dict[tuple[int, int], tuple[int, ...]] | None = None
    kept: dict[tuple[int, int], int] = {}


class Argument:
    """An array argument: the part that belongs to a body is loaded when a step asks for it."""

    def __init__(self, tracer: LoopMechanism, which: int) -> None:
        self.tracer, self.which = tracer, which

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """All entries: of what belongs to no body."""
        shape = [*self.tracer.arrays.values()][self.which]
        loads = [Load("argument", self.which, GROUND, i) for i in range(prod(shape))]
        return self.tracer.step.array(loads).reshape(shape)


class _View:
    """What a mechanism gives per body, worked out for the kind at hand."""

    def __init__(self, tracer: LoopMechanism, make: Callable[[], Any]) -> None:
        self.tracer, self.make = tracer, make
        self.step: Any = None
        self.values: dict[str, Any] = {}

    def __getitem__(self, row: str) -> Any:
        tracer = self.tracer
        if self.step is not tracer.step:
            self.step, self.values = tracer.step, {}
        if row not in self.values:
            before, tracer.row = tracer.row, row
            self.values[row] = self.make()
            tracer.row = before
        return self.values[row]


class _NoMeetings:
    """The `Meetings` of a chain: there are none."""

    def bring(self, j: str, c: str, what: Any) -> None:
        """As in `Meetings`."""

    def pairs(self) -> Iterator[tuple[Any, Any, Any]]:
        """As in `Meetings`."""
        return iter(())


def _slot(parts: Slot | Filled) -> Slot:
    return parts.made if isinstance(parts, Filled) else parts


class LoopMechanism:
    """The `Tree` of a mechanism whose bodies are visited kind by kind."""

    has_followers = False

    def __init__(self, mech: Mechanism, known: Known, arrays: dict[str, tuple[int, ...]]) -> None:
        self.mech, self.arrays, self.known = mech, arrays, known
        self.name, self.bodies, self.walks = mech.name, mech.bodies, known.walks
        self.shapes, self.assumed = dict(known.shapes or {}), known.assumed
        self.kept: dict[tuple[int, int], int] = {}
        # the numbers of the arrays that have an entry per coordinate
        self.like_q: set[int] = set()
        self.kinds, self.kind_of = known.kinds
        self.roles, self.role_of = find_roles(mech, self.kind_of)
        self.ways = find_ways(mech, self.kind_of)
        self.climbs = known.shapes is not None
        self.backwards, self.row = False, OWN
        self.pair_slots = 0
        self.inner: dict[str, Step] = {}
        self.nv, self.free_fall = mech.nv, mech.free_fall
        self.sizes: list[int] = []
        self.start: dict[int, tuple[float, ...]] = {}
        self.stages: list[Stage] = []
        self.step = OpenStep(Role(0))
        # of each stage, of what is done before it; and of what is to come
        self.first_nodes: list[int] = []
        self.next_node = 0
        self.M = _View(self, lambda: self.body.inertia)
        self.armature = _View(self, self._armature)
        # one step serves all bodies of a kind, whatever is beyond them
        self.least = _View(self, lambda: np.zeros(self.body.joint.nv))

    # what sweeps read

    @property
    def kind(self) -> Kind:
        """The kind of the body at hand."""
        return self.kinds[self.step.kinds[self.row]]

    @property
    def role(self) -> Role:
        """The role of the step at hand."""
        self.step.asks_role = True
        return self.step.role

    @property
    def body(self) -> Body:
        """The body of the step at hand, its numbers loaded where they differ within its kind."""
        bodies = self.step.bodies
        if self.row not in bodies:
            bodies[self.row] = self.kind.body(self._number)
        return bodies[self.row]

    def _number(self, i: int) -> Any:
        common = self.kind.common[i]
        return self.step.load(Load("number", 0, self.row, i)) if common is None else common

    def _armature(self) -> np.ndarray:
        nv = self.body.joint.nv
        return np.array([self._number(AT.armature + i) for i in range(nv)])

    def _share(self, argument: Argument, count: Callable[[Body], int]) -> _View:
        def make() -> np.ndarray:
            n = count(self.kind.example)
            loads = [Load("argument", argument.which, self.row, i) for i in range(n)]
            return self.step.array(loads)

        return _View(self, make)

    def coordinates(self, q: Argument) -> _View:
        """As in `Tree`."""
        self.like_q.add(q.which)
        return self._share(q, lambda body: body.joint.nq)

    def rates(self, qd: Any) -> _View | Slot:
        """As in `Tree`; numbers are those of the kind, joined slots are taken apart."""
        if isinstance(qd, Joined):
            return qd.slot
        if isinstance(qd, np.ndarray):
            return _View(self, lambda: qd[self.kind.v])
        return self._share(qd, lambda body: body.joint.nv)

    def driven(self, active: Any) -> Any:
        """As in `Tree`."""
        return active if isinstance(active, Argument) else np.array(active, dtype=float)

    def locked_beyond(self, active: Any) -> _View:
        """As in `Tree`; loops keep every inertia as a matrix."""
        return _View(self, lambda: False)

    def held_before(self, active: Any) -> _View:
        """As in `Tree`; of a split that comes with the samples nothing is known."""
        return _View(self, lambda: self.kind.held)

    def wrenches(self, f_ext: Any) -> _View:
        """As in `Tree`."""
        if f_ext is None:
            return _View(self, lambda: np.zeros(6))
        given = self._share(f_ext, lambda body: 6)
        return _View(self, lambda: self._original().transfer @ given[self.row])

    def points(self, points: Any) -> _View:
        """As in `Tree`."""
        if points is None:
            return _View(self, lambda: self._original().translation)
        given = self._share(points, lambda body: 3)
        return _View(self, lambda: self._original() @ given[self.row])

    def _original(self) -> Transform:
        """Where the frame of the original body is in that of the canonical one."""
        return pose_of([self._number(i) for i in AT.original])

    def stretches(self, n: int) -> _View:
        """As in `Tree`."""
        return _View(self, lambda: True)

    def phi(self, q: Argument) -> _View:
        """As in `Tree`."""
        own = self.coordinates(q)
        return _View(self, lambda: transfer(self.body, own[self.row]))

    def H(self, q: Argument) -> _View:
        """As in `Tree`."""
        own = self.coordinates(q)
        return _View(self, lambda: hinge_map(self.body, self.body.joint.H(own[self.row])))

    def H_rate(self, q: Argument, qd: Any) -> _View:
        """As in `Tree`."""
        own, rate = self.coordinates(q), self.rates(qd)
        return _View(
            self,
            lambda: hinge_map(self.body, self.body.joint.H_rate(own[self.row], rate[self.row])),
        )

    def hinge_rates(self, q: Argument, qd: Any, qdd: Any) -> _View:
        """As in `Tree`."""
        values = self.coordinates(q), self.rates(qd), self.rates(qdd)

        def make() -> HingeRates:
            rates = self.body.joint.hinge_rates(*(x[self.row] for x in values))
            return HingeRates(*(hinge_map(self.body, x) for x in rates))

        return _View(self, make)

    # walks and slots

    def slots(self, n: int) -> list[Slot]:
        """As in `Tree`."""
        return [Slot(self, self.slot_number()) for _ in range(n)]

    def slot_number(self) -> int:
        """The number of a new one, whatever it is for."""
        self.sizes.append(6)
        return len(self.sizes) - 1

    def shared(self, value: Any) -> SharedSlot:
        """As in `Tree`."""
        new = SharedSlot(self, self.slot_number())
        new.value = value
        return new

    def each(self, make: Callable[[Any], Any]) -> _View:
        """As in `Tree`: worked out anew in every loop."""
        return _View(self, lambda: make(self.row))

    def filled(self, make: Callable[[Any], Any]) -> Slot | Filled:
        """As in `Tree`: where sweeps come by, or a loop of its own if slots are read for it."""
        between, self.step = self.step, OpenStep(Role(0))
        make(OWN)
        reads_slots, self.step = self.step.reads_slots, between
        if not reads_slots:
            return Filled(self, make)
        (slot,) = self.slots(1)
        for _, k in self.outward():
            slot[k] = make(k)
        return slot

    def outward(self) -> Iterator[tuple[str, str]]:
        """Once per kind."""
        return self._sweep(backwards=False)

    def inward(self) -> Iterator[tuple[str, str]]:
        """Once per kind."""
        return self._sweep(backwards=True)

    def frame(self, name: str) -> Frame:
        """As in `Descents`."""
        return self.mech.frame(name)

    def ancestors(self, k: int) -> Iterator[tuple[str, str]]:
        """Once per kind of bodies between the ground and the one that carries the frame."""
        return self._sweep(True, self._on_way(k))

    def descent(self, k: int, above: int = 0) -> Iterator[tuple[str, str]]:
        """The same outward, perhaps from where the ways of a walk meet."""
        on_way, walks = self._on_way(k), enumerate(self.walks if above else ())
        met = [i for i, walk in walks if k in walk.ends and walk.meet == above]

        def beyond(kind: Kind) -> bool:
            return on_way(kind) and not any(all(kind.marks[i].carries) for i in met)

        return self._sweep(False, beyond)

    def common_ancestor(self, j: int, k: int) -> int:
        """As in `Descents`."""
        return self.mech.common_ancestor(j, k)

    def _place(self, k: int) -> tuple[int, int]:
        """The walk that leads to a body, and which of its ends that is."""
        for i, walk in enumerate(self.walks):
            if k in walk.ends:
                return i, walk.ends.index(k)
        ends = {self.mech.bodies[x].name: None for walk in self.walks for x in walk.ends}
        raise TraceError(
            f"{self.mech.name!r}: loops know the ways to bodies that they are told of, "
            f"{[*ends]}, not to {self.mech.bodies[k].name!r}; trace them with a walk to it"
        )

    def _on_way(self, k: int) -> Callable[[Kind], bool]:
        """Whether bodies of a kind are on the way to body k."""
        if not k:
            return lambda kind: False
        walk, end = self._place(k)
        return lambda kind: kind.marks[walk].carries[end]

    def carries(self, k: str, j: int) -> bool:
        """As in `Descents`, of the body at hand."""
        return self._on_way(j)(self.kind)

    def is_at(self, body: int) -> bool:
        """Whether the body at hand is the one at the end of a walk."""
        walk, end = self._place(body)
        return self.kind.marks[walk].is_end[end]

    def carried_ends(self, bodies: tuple[int, ...]) -> list[int]:
        """As in `slots.Tracer`."""
        walk = next(i for i, walk in enumerate(self.walks) if walk.ends == bodies)
        mark: Mark = self.kind.marks[walk]
        ends = [i for i, carried in enumerate(mark.carries) if carried]
        return ends if mark.meet else ends[:1]

    def placed(self, values: Mapping[int, Any]) -> Placed:
        """As in `Descents`."""
        return Placed(self, {k: self.shared(x) for k, x in values.items()})

    def riding(self, values: Mapping[int, Any]) -> Riding:
        """As in `Descents`."""
        return Riding(self, {k: self.shared(x) for k, x in values.items()})

    def kept_of(self, slot: int, body: int) -> int:
        """As in `slots.Tracer`."""
        self._place(body)
        if (slot, body) not in self.kept:
            self.kept[slot, body] = self.slot_number()
        return self.kept[slot, body]

    def kept_by(self, slot: int, row: str) -> int | None:
        """As in `slots.Tracer`."""
        asked = {body: number for (s, body), number in self.known.kept.items() if s == slot}
        if asked and row == PARENT:
            names = [self.mech.bodies[body].name for body in asked]
            raise TraceError(
                f"{self.mech.name!r}: after a sweep loops have what bodies store themselves, not "
                f"what their children add to it, as is read of {names}; use mech.shared"
            )
        return next((number for body, number in asked.items() if self.is_at(body)), None)

    def _sweep(
        self, backwards: bool, among: Callable[[Kind], bool] = lambda kind: True
    ) -> Iterator[tuple[str, str]]:
        between, before = self.step, self._closed_between()
        self.backwards, steps = backwards, []
        # of each kind whose steps are the same whatever the role
        common: dict[int, tuple[Step, Climb]] = {}
        for role in self.roles:
            if not among(self.kinds[role.kind]):
                steps.append((NOTHING, ()))
            elif role.kind not in common:
                self.step = step = OpenStep(role)
                yield PARENT, OWN
                steps.append((step.closed(), step.climb))
                if not step.asks_role:
                    common[role.kind] = steps[-1]
            else:
                steps.append(common[role.kind])
        climbs = tuple(climb for _, climb in steps)
        outer = tuple(step for step, _ in steps)
        self.stages.append(Stage(outer, backwards, climbs if any(climbs) else (), before))
        self.step = between.next_between()

    def climb(self, k: str) -> Iterator[tuple[str, str]]:
        """Once per way that bodies of the kind at hand go."""
        outer = self.step
        climb = [NOTHING] * len(self.ways.kinds)
        for way in sorted(self.ways.under[outer.kind]) if self.climbs else ():
            lower, upper = self.ways.kinds[way]
            self.step = step = OpenStep(outer.role, {LOWER: lower, UPPER: upper})
            yield UPPER, LOWER
            climb[way] = self.same(step.closed())
        self.step, outer.climb = outer, tuple(climb)

    def same(self, step: Step) -> Step:
        """The step, or one that was made before and does the same."""
        return self.inner.setdefault(step.text, step)

    def pairs(self) -> PairSlots:
        """As in `Branches`."""
        return PairSlots(self)

    def meetings(self) -> _NoMeetings:
        """As in `Branches`."""
        if not self.mech.is_chain:
            raise TraceError(f"{self.mech.name!r} has branches, and loops climb along one only")
        return _NoMeetings()

    def pair_slot(self) -> int:
        """The number of a new one."""
        self.pair_slots += 1
        return self.pair_slots - 1

    def join_matrix(self, blocks: PairSlots) -> Matrix:
        """As in `Branches`."""
        return Matrix(blocks.above)

    def join_blocks(self, blocks: PairSlots) -> Matrix:
        """As in `Branches`."""
        return Matrix(blocks.above, blocks.below, triangular=blocks.below is None)

    def join(self, parts: Slot | Filled) -> Joined:
        """As in `Tree`."""
        return Joined(_slot(parts))

    def combined(self, make: Callable[..., Any], *arrays: Any) -> Joined:
        """As in `Tree`."""
        views, (made,) = [self.rates(x) for x in arrays], self.slots(1)
        for _, k in self.outward():
            made[k] = make(*(view[k] for view in views))
        return Joined(made)

    def join_coordinates(self, parts: Slot | Filled) -> Joined:
        """One value per coordinate from those of each body's joint."""
        return Joined(_slot(parts), coordinates=True)

    def join_wrenches(self, parts: Slot) -> Joined:
        """As in `Descents`: where bodies are, and not their canonical frames."""
        given = self.filled(lambda k: self._original().inv.transfer @ parts[k])
        return Joined(_slot(given), columns=True, apart=True)

    def join_rows(self, parts: Slot, rows: int) -> Joined:
        """As in `Descents`."""
        return Joined(parts, rows=rows)

    def join_descent(self, k: int, parts: Slot, rows: int) -> Joined:
        """As in `Descents`."""
        on_way = self._on_way(k)
        for _, body in self._sweep(False, lambda kind: not on_way(kind)):
            parts[body] = np.zeros((self.body.joint.nv, rows))
        return Joined(parts, rows=rows)

    def join_bodies(self, parts: Slot | Filled) -> Joined:
        """As in `Tree`."""
        return Joined(_slot(parts), columns=True)

    def results(self, name: str, parts: Sequence[Any]) -> list[Joined | SharedSlot | Matrix]:
        """What an algorithm gives back, and the end of it: arrays belong to no body."""
        made = [self.shared(x) if isinstance(x, np.ndarray) else x for x in parts]
        of_bodies = all(isinstance(x, (Joined, SharedSlot)) for x in made)
        if not of_bodies and not all(isinstance(x, Matrix) for x in made):
            what = "neither joint forces nor columns of bodies nor arrays"
            raise TraceError(f"{name} gives {what}: it cannot be looped")
        before = self._closed_between()
        self.stages.append(Stage((NOTHING,) * len(self.roles), False, (), before))
        return made

    def _closed_between(self) -> Step:
        """What was done since the last sweep."""
        before = self.step.closed()
        self.first_nodes.append(self.next_node)
        self.next_node = self.step.graph.count
        return before
