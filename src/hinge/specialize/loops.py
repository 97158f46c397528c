"""Sweeps as loops: the same algorithm source, traced once per kind of joint instead of per body.

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
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from typing import Any, Concatenate

import numpy as np

from ..algebra.spatial import Transform
from ..errors import TraceError
from ..graph.angles import with_angles_kept
from ..graph.arrays import Shape
from ..graph.fusion import fused
from ..graph.loop import (
    PAIR,
    ZERO,
    Climb,
    Load,
    LoopProgram,
    Stage,
    Step,
    Store,
    Visit,
    alike,
    pruned,
)
from ..graph.pairs import Matrix
from ..graph.scalar import Graph, Node
from ..model.joint import HingeRates
from ..model.mechanism import Body, Mechanism, hinge_map, transfer
from ..model.parameters import pose_of
from ..model.protocol import Tree
from .canonical import Reframed
from .kinds import AT, Kind, Role, find_kinds, find_roles, find_ways

__all__ = ["trace_loops"]

PARENT, OWN, LOWER, UPPER = "parent", "own", "lower", "upper"
_NOTHING = Step((), ())


def trace_loops(
    algorithm: Callable[Concatenate[Tree, ...], Any],
    form: Reframed,
    arrays: dict[str, tuple[int, ...]],
    name: str,
    active: Sequence[bool] | None = None,
) -> LoopProgram:
    """The algorithm on arrays of the given names and shapes, its sweeps as loops over bodies.

    active: which DoF are driven, where the algorithm is told so in advance.
    """
    mech = form.mechanism
    if mech.has_followers:
        raise TraceError(f"{mech.name!r} has joints that mimic others: it cannot be looped")
    kinds = find_kinds(form, active)
    assumed: dict[tuple[int, int], int] = {}
    shapes: dict[tuple[int, int], tuple[int, ...]] | None = None
    while True:
        tracer = LoopMechanism(mech, kinds, arrays, assumed, shapes)
        # what is zero so far may be divided by
        with np.errstate(all="ignore"):
            result = algorithm(tracer, **{n: _Argument(tracer, i) for i, n in enumerate(arrays)})
        found = alike(tracer.stages, tracer.start, tracer.sizes, assumed)
        if found == assumed and shapes is not None:
            break
        assumed, shapes = found, tracer.shapes
    parts = result if isinstance(result, tuple) else (result,)
    if not _loopable(parts):
        what = "neither joint forces nor columns of bodies"
        raise TraceError(f"{name} gives {what}: it cannot be looped")
    return tracer.program(name, parts, type(result) if isinstance(result, tuple) else None)


def _loopable(parts: Sequence[Any]) -> bool:
    return any(all(isinstance(x, kind) for x in parts) for kind in (_Joined, Matrix))


class _Argument:
    """An array argument: the part that belongs to a body is loaded when a step asks for it."""

    def __init__(self, tracer: LoopMechanism, which: int) -> None:
        self.tracer, self.which = tracer, which


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


class _Slot:
    """Per-body values of a sweep, in rows of the workspace: arrays, or what is made of some."""

    def __init__(self, tracer: LoopMechanism, number: int) -> None:
        self.tracer, self.number = tracer, number
        # of what the ground has, until more is known
        self.first: tuple[int, ...] = (6,)
        self.kind: Any = None

    def __getitem__(self, row: str) -> Any:
        step = self.tracer.step
        step.reads_slots = True
        if (self.number, row) not in step.values:
            shape = self.shape(step.kinds.get(row))
            entries = [self.entry(step, row, i) for i in range(int(np.prod(shape)))]
            whole = np.array(entries, dtype=object).reshape(shape)
            step.values[self.number, row] = whole
        return self.formed(step.values[self.number, row])

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

    def entry(self, step: _OpenStep, row: str, i: int) -> Node:
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
        if row == 0:
            self.first = value.shape
            tracer.start[self.number] = tuple(float(x) for x in value.ravel())
            return
        if row == OWN:
            tracer.shapes[self.number, tracer.step.kinds[OWN]] = value.shape
        tracer.step.values[self.number, row] = value
        tracer.step.written[self.number, row] = value


class _Filled:
    """A slot that has something for every body before the first sweep that uses it.

    made: the slot; added: what children add to it in that sweep, if it goes inward.
    """

    def __init__(self, tracer: LoopMechanism, make: Callable[[Any], Any]) -> None:
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


class _Joined:
    """What a slot holds: joint forces, one row per body, or columns side by side."""

    def __init__(self, slot: _Slot, columns: bool = False) -> None:
        self.slot, self.columns = slot, columns

    def gathered(self, mech: Mechanism) -> tuple[Shape, list[tuple[int, int, int]]]:
        """The shape of the result, and where each of its entries is."""
        slot, bodies = self.slot.number, range(1, len(mech.bodies))
        if not self.columns:
            sizes = [mech.bodies[k].joint.nv for k in bodies]
            rows = [(slot, k, i) for k, n in zip(bodies, sizes, strict=True) for i in range(n)]
            return (mech.nv,), rows
        *rest, width = self.slot.shape(None)
        lines = range(prod(rest))
        entries = [(slot, k, r * width + i) for r in lines for k in bodies for i in range(width)]
        return (*rest, len(bodies) * width), entries


class _Pairs:
    """Blocks of a matrix: what a body has with itself, and as it climbs, with those above it.

    above, below: the pair slots of blocks (upper, body) and (body, upper).
    """

    def __init__(self, tracer: LoopMechanism) -> None:
        self.tracer = tracer
        self.above, self.below = tracer.pair_slot(), None

    def __setitem__(self, pair: tuple[str, str], value: Any) -> None:
        slot = self.above
        if pair == (OWN, UPPER):
            self.below = slot = self.tracer.pair_slot() if self.below is None else self.below
        self.tracer.step.written[slot, PAIR] = np.asarray(value)


class _NoMeetings:
    """The `Meetings` of a chain: there are none."""

    def bring(self, j: str, c: str, what: Any) -> None:
        """As in `Meetings`."""

    def pairs(self) -> Iterator[tuple[Any, Any, Any]]:
        """As in `Meetings`."""
        return iter(())


class _OpenStep:
    """The step of one role while the algorithm runs through it.

    kinds: of the bodies whose rows it sees; climb: its steps, if it has some.
    reads_slots: whether it has read any; asks_role: whether it matters what its role is.
    """

    def __init__(self, role: Role, kinds: Mapping[str, int] | None = None) -> None:
        self.role, self.kind, self.graph = role, role.kind, Graph()
        self.kinds = {OWN: role.kind, **(kinds or {})}
        self.climb: Climb = ()
        self.reads_slots = self.asks_role = False
        self.bodies: dict[str, Body] = {}
        self.loads: dict[Load, Node] = {}
        self.values: dict[tuple[int, str], Any] = {}
        self.written: dict[tuple[int, str], Any] = {}

    def load(self, load: Load) -> Node:
        if load not in self.loads:
            self.loads[load] = self.graph.input()
        return self.loads[load]

    def array(self, loads: list[Load]) -> np.ndarray:
        out = np.empty(len(loads), dtype=object)
        out[:] = [self.load(load) for load in loads]
        return out

    def closed(self) -> Step:
        stores = [
            Store(slot, row, i, self.graph.lift(x))
            for (slot, row), value in self.written.items()
            for i, x in enumerate(value.ravel())
            if self.loads.get(Load("slot", slot, row, i)) is not x
        ]
        return Step(tuple(self.loads), tuple(stores))


def _slot(parts: _Slot | _Filled) -> _Slot:
    return parts.made if isinstance(parts, _Filled) else parts


class LoopMechanism:
    """The `Tree` of a mechanism whose bodies are visited kind by kind."""

    has_followers = False

    def __init__(
        self,
        mech: Mechanism,
        kinds: tuple[list[Kind], dict[int, int]],
        arrays: dict[str, tuple[int, ...]],
        assumed: dict[tuple[int, int], int],
        shapes: dict[tuple[int, int], tuple[int, ...]] | None,
    ) -> None:
        """assumed: what may be taken for `alike`; shapes: of slots by kind, None if not known."""
        self.mech, self.arrays, self.shapes = mech, arrays, dict(shapes or {})
        self.kinds, self.kind_of = kinds
        self.roles, self.role_of = find_roles(mech, self.kind_of)
        self.ways = find_ways(mech, self.kind_of)
        self.climbs = shapes is not None
        self.backwards, self.row = False, OWN
        self.pair_slots = 0
        self.inner: dict[str, Step] = {}
        self.nv, self.free_fall = mech.nv, mech.free_fall
        self.assumed = assumed
        self.sizes: list[int] = []
        self.start: dict[int, tuple[float, ...]] = {}
        self.stages: list[Stage] = []
        self.step = _OpenStep(Role(0))
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

    def _share(self, argument: _Argument, count: Callable[[Body], int]) -> _View:
        def make() -> np.ndarray:
            n = count(self.kind.example)
            loads = [Load("argument", argument.which, self.row, i) for i in range(n)]
            return self.step.array(loads)

        return _View(self, make)

    def coordinates(self, q: _Argument) -> _View:
        """As in `Tree`."""
        return self._share(q, lambda body: body.joint.nq)

    def rates(self, qd: Any) -> _View | _Slot:
        """As in `Tree`; numbers are those of the kind, joined slots are taken apart."""
        if isinstance(qd, _Joined):
            return qd.slot
        if isinstance(qd, np.ndarray):
            return _View(self, lambda: qd[self.kind.v])
        return self._share(qd, lambda body: body.joint.nv)

    def driven(self, active: Any) -> Any:
        """As in `Tree`."""
        return active if isinstance(active, _Argument) else np.array(active, dtype=float)

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

    def phi(self, q: _Argument) -> _View:
        """As in `Tree`."""
        own = self.coordinates(q)
        return _View(self, lambda: transfer(self.body, own[self.row]))

    def H(self, q: _Argument) -> _View:
        """As in `Tree`."""
        own = self.coordinates(q)
        return _View(self, lambda: hinge_map(self.body, self.body.joint.H(own[self.row])))

    def H_rate(self, q: _Argument, qd: Any) -> _View:
        """As in `Tree`."""
        own, rate = self.coordinates(q), self.rates(qd)
        return _View(
            self,
            lambda: hinge_map(self.body, self.body.joint.H_rate(own[self.row], rate[self.row])),
        )

    def hinge_rates(self, q: _Argument, qd: Any, qdd: Any) -> _View:
        """As in `Tree`."""
        values = self.coordinates(q), self.rates(qd), self.rates(qdd)

        def make() -> HingeRates:
            rates = self.body.joint.hinge_rates(*(x[self.row] for x in values))
            return HingeRates(*(hinge_map(self.body, x) for x in rates))

        return _View(self, make)

    # walks and slots

    def slots(self, n: int) -> list[_Slot]:
        """As in `Tree`."""
        new = [_Slot(self, len(self.sizes) + i) for i in range(n)]
        self.sizes += [6] * n
        return new

    def each(self, make: Callable[[Any], Any]) -> _View:
        """As in `Tree`: worked out anew in every loop."""
        return _View(self, lambda: make(self.row))

    def filled(self, make: Callable[[Any], Any]) -> _Slot | _Filled:
        """As in `Tree`: where sweeps come by, or a loop of its own if slots are read for it."""
        self.step = _OpenStep(Role(0))
        make(OWN)
        if not self.step.reads_slots:
            return _Filled(self, make)
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

    def _sweep(self, backwards: bool) -> Iterator[tuple[str, str]]:
        self.backwards, steps = backwards, []
        # of each kind whose steps are the same whatever the role
        common: dict[int, tuple[Step, Climb]] = {}
        for role in self.roles:
            if role.kind not in common:
                self.step = step = _OpenStep(role)
                yield PARENT, OWN
                steps.append((step.closed(), step.climb))
                if not step.asks_role:
                    common[role.kind] = steps[-1]
            else:
                steps.append(common[role.kind])
        climbs = tuple(climb for _, climb in steps)
        outer = tuple(step for step, _ in steps)
        self.stages.append(Stage(outer, backwards, climbs if any(climbs) else ()))

    def climb(self, k: str) -> Iterator[tuple[str, str]]:
        """Once per way that bodies of the kind at hand go."""
        outer = self.step
        climb = [_NOTHING] * len(self.ways.kinds)
        for way in sorted(self.ways.under[outer.kind]) if self.climbs else ():
            lower, upper = self.ways.kinds[way]
            self.step = step = _OpenStep(outer.role, {LOWER: lower, UPPER: upper})
            yield UPPER, LOWER
            climb[way] = self._same(step.closed())
        self.step, outer.climb = outer, tuple(climb)

    def _same(self, step: Step) -> Step:
        """The step, or one that was made before and does the same."""
        return self.inner.setdefault(step.text, step)

    def pairs(self) -> _Pairs:
        """As in `Branches`."""
        return _Pairs(self)

    def meetings(self) -> _NoMeetings:
        """As in `Branches`."""
        if not self.mech.is_chain:
            raise TraceError(f"{self.mech.name!r} has branches, and loops climb along one only")
        return _NoMeetings()

    def pair_slot(self) -> int:
        """The number of a new one."""
        self.pair_slots += 1
        return self.pair_slots - 1

    def join_matrix(self, blocks: _Pairs) -> Matrix:
        """As in `Branches`."""
        return Matrix(blocks.above)

    def join_blocks(self, blocks: _Pairs) -> Matrix:
        """As in `Branches`."""
        return Matrix(blocks.above, blocks.below)

    def join(self, parts: _Slot | _Filled) -> _Joined:
        """As in `Tree`."""
        return _Joined(_slot(parts))

    def join_bodies(self, parts: _Slot | _Filled) -> _Joined:
        """As in `Tree`."""
        return _Joined(_slot(parts), columns=True)

    def program(self, name: str, parts: Sequence[Any], form: type | None = None) -> LoopProgram:
        """Everything that was traced."""
        matrices = tuple(part for part in parts if isinstance(part, Matrix))
        gathered = [part.gathered(self.mech) for part in parts if isinstance(part, _Joined)]
        results = tuple(place for _, entries in gathered for place in entries)
        shapes = [shape for shape, _ in gathered] or [(self.nv, self.nv)] * len(matrices)
        stages = fused(pruned(self.stages, results))
        lower: list[set[int]] = [set() for _ in self.ways.kinds]
        for k, way in enumerate(self.ways.of, 1):
            if way != ZERO:
                lower[way].add(self.role_of[k])
        stages, angles = with_angles_kept(stages, len(self.sizes), lower)
        return LoopProgram(
            name,
            tuple(self.arrays.values()),
            tuple(shapes),
            (*self.sizes, angles),
            len(self.mech.bodies),
            self.start,
            pruned(stages, results),
            self._visits(),
            results,
            form,
            self.ways.of,
            matrices,
            tuple(body.joint.nv for body in self.mech.bodies[1:]) if matrices else (),
        )

    def _visits(self) -> tuple[Visit, ...]:
        mech = self.mech
        visits, rows = [], [iter(kind.table) for kind in self.kinds]
        for k, body in enumerate(mech.bodies[1:], 1):
            kind, role = self.kind_of[k], self.role_of[k]
            q, v = mech.q_slice(body.joint_name).start, mech.v_slice(body.joint_name).start
            where = {"q": q, "f_ext": 6 * (k - 1), "points": 3 * (k - 1)}
            places = tuple(where.get(n, v) for n in self.arrays)
            visits.append(Visit(role, k, body.parent, places, next(rows[kind])))
        return tuple(visits)
