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

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Concatenate

import numpy as np

from ..algebra.spatial import Transform
from ..errors import TraceError
from ..graph.angles import with_angles_kept
from ..graph.autodiff import jacobian_nodes, on_new_leaves
from ..graph.fusion import fused
from ..graph.loop import (
    ZERO,
    Climb,
    Load,
    LoopProgram,
    Stage,
    Step,
    Visit,
    alike,
    pruned,
)
from ..graph.numbers import with_numbers_made
from ..graph.pairs import Matrix
from ..model.joint import HingeRates
from ..model.mechanism import Body, Frame, Mechanism, hinge_map, transfer
from ..model.parameters import pose_of
from ..model.protocol import Tree
from .canonical import Reframed
from .kinds import AT, Kind, Role, Way, find_kinds, find_roles, find_ways
from .slots import LOWER, OWN, PARENT, UPPER, Filled, Joined, OpenStep, PairSlots, Slot

__all__ = ["trace_loops"]

_NOTHING = Step((), ())


def trace_loops(
    algorithm: Callable[Concatenate[Tree, ...], Any],
    form: Reframed,
    arrays: dict[str, tuple[int, ...]],
    name: str,
    active: Sequence[bool] | None = None,
    frame: str | None = None,
) -> LoopProgram:
    """The algorithm on arrays of the given names and shapes, its sweeps as loops over bodies.

    active: which DoF are driven, where the algorithm is told so in advance.
    frame: the one to which there is a way that the algorithm goes.
    """
    mech = form.mechanism
    if mech.has_followers:
        raise TraceError(f"{mech.name!r} has joints that mimic others: it cannot be looped")
    carrier = 0 if frame is None else mech.frame(frame).body
    kinds = find_kinds(form, active, carrier)
    assumed: dict[tuple[int, int], int] = {}
    shapes: dict[tuple[int, int], tuple[int, ...]] | None = None
    while True:
        tracer = LoopMechanism(mech, kinds, arrays, assumed, shapes, carrier)
        # what is zero so far may be divided by
        with np.errstate(all="ignore"):
            result = algorithm(tracer, **{n: _Argument(tracer, i) for i, n in enumerate(arrays)})
        found = alike(tracer.stages, tracer.start, tracer.sizes, assumed)
        if found == assumed and shapes is not None:
            break
        assumed, shapes = found, tracer.shapes
    parts = result if isinstance(result, tuple) else (result,)
    if not any(all(isinstance(x, kind) for x in parts) for kind in (Joined, Matrix)):
        what = "neither joint forces nor columns of bodies"
        raise TraceError(f"{name} gives {what}: it cannot be looped")
    return tracer.program(name, parts, type(result) if isinstance(result, tuple) else None)


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

    def __init__(
        self,
        mech: Mechanism,
        kinds: tuple[list[Kind], dict[int, int]],
        arrays: dict[str, tuple[int, ...]],
        assumed: dict[tuple[int, int], int],
        shapes: dict[tuple[int, int], tuple[int, ...]] | None,
        carrier: int,
    ) -> None:
        """assumed: what may be taken for `alike`; shapes: of slots by kind, None if not known.

        carrier: the body to which there is a way, 0 if it is the ground.
        """
        self.mech, self.arrays, self.shapes = mech, arrays, dict(shapes or {})
        # the numbers of the arrays that have an entry per coordinate
        self.like_q: set[int] = set()
        self.carrier = carrier
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
        self.step = OpenStep(Role(0))
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

    def tangents(self, q: _Argument) -> _View:
        """The changes along each body's joint as its coordinates change, (nv, nq)."""
        own = self.coordinates(q)

        def make() -> np.ndarray:
            joint, here = self.body.joint, own[self.row]
            apart = partial(joint.difference, here)
            inside = on_new_leaves(apart, here[0].graph, [here], [0], "the tangents of a joint")
            slopes = jacobian_nodes(inside.values, inside.leaves).ravel()
            return np.array(inside.on_arguments(slopes)).reshape(joint.nv, joint.nq)

        return _View(self, make)

    # walks and slots

    def slots(self, n: int) -> list[Slot]:
        """As in `Tree`."""
        new = [Slot(self, len(self.sizes) + i) for i in range(n)]
        self.sizes += [6] * n
        return new

    def each(self, make: Callable[[Any], Any]) -> _View:
        """As in `Tree`: worked out anew in every loop."""
        return _View(self, lambda: make(self.row))

    def filled(self, make: Callable[[Any], Any]) -> Slot | Filled:
        """As in `Tree`: where sweeps come by, or a loop of its own if slots are read for it."""
        self.step = OpenStep(Role(0))
        make(OWN)
        if not self.step.reads_slots:
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
        self._refuse_other_ways(k)
        return self._sweep(True, (Way.ON, Way.END))

    def descent(self, k: int) -> Iterator[tuple[str, str]]:
        """The same outward."""
        self._refuse_other_ways(k)
        return self._sweep(False, (Way.ON, Way.END))

    def _refuse_other_ways(self, k: int) -> None:
        if k != self.carrier:
            asked, known = (self.mech.bodies[x].name for x in (k, self.carrier))
            raise TraceError(
                f"{self.mech.name!r}: loops know the way to one body, {known!r}, not to {asked!r}"
            )

    def _sweep(
        self, backwards: bool, ways: Sequence[Way] = tuple(Way)
    ) -> Iterator[tuple[str, str]]:
        self.backwards, steps = backwards, []
        # of each kind whose steps are the same whatever the role
        common: dict[int, tuple[Step, Climb]] = {}
        for role in self.roles:
            if self.kinds[role.kind].way not in ways:
                steps.append((_NOTHING, ()))
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
        self.stages.append(Stage(outer, backwards, climbs if any(climbs) else ()))

    def climb(self, k: str) -> Iterator[tuple[str, str]]:
        """Once per way that bodies of the kind at hand go."""
        outer = self.step
        climb = [_NOTHING] * len(self.ways.kinds)
        for way in sorted(self.ways.under[outer.kind]) if self.climbs else ():
            lower, upper = self.ways.kinds[way]
            self.step = step = OpenStep(outer.role, {LOWER: lower, UPPER: upper})
            yield UPPER, LOWER
            climb[way] = self._same(step.closed())
        self.step, outer.climb = outer, tuple(climb)

    def _same(self, step: Step) -> Step:
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

    def join_coordinates(self, parts: Slot | Filled) -> Joined:
        """One value per coordinate from those of each body's joint."""
        return Joined(_slot(parts), coordinates=True)

    def join_descent(self, k: int, parts: Slot, rows: int) -> Joined:
        """As in `Descents`."""
        for _, body in self._sweep(False, (Way.BESIDE,)):
            parts[body] = np.zeros((self.body.joint.nv, rows))
        return Joined(parts, rows=rows)

    def join_bodies(self, parts: Slot | Filled) -> Joined:
        """As in `Tree`."""
        return Joined(_slot(parts), columns=True)

    def program(self, name: str, parts: Sequence[Any], form: type | None = None) -> LoopProgram:
        """Everything that was traced."""
        matrices = tuple(part for part in parts if isinstance(part, Matrix))
        gathered = [part.gathered(self.mech) for part in parts if isinstance(part, Joined)]
        results = tuple(place for _, entries in gathered for place in entries)
        shapes = [shape for shape, _ in gathered] or [(self.nv, self.nv)] * len(matrices)
        stages = fused(pruned(self.stages, results))
        lower: list[set[int]] = [set() for _ in self.ways.kinds]
        for k, way in enumerate(self.ways.of, 1):
            if way != ZERO:
                lower[way].add(self.role_of[k])
        stages, angles = with_angles_kept(stages, len(self.sizes), lower)
        stages, visits = with_numbers_made(stages, self._visits())
        return LoopProgram(
            name,
            tuple(self.arrays.values()),
            tuple(shapes),
            (*self.sizes, angles),
            len(self.mech.bodies),
            self.start,
            pruned(stages, results),
            visits,
            results,
            form,
            self.ways.of,
            matrices,
            tuple(body.joint.nv for body in self.mech.bodies[1:]) if matrices else (),
        )

    def _visits(self) -> tuple[Visit, ...]:
        mech = self.mech
        visits, rows = [], [iter(kind.table) for kind in self.kinds]
        like_q = [n for i, n in enumerate(self.arrays) if i in self.like_q]
        for k, body in enumerate(mech.bodies[1:], 1):
            kind, role = self.kind_of[k], self.role_of[k]
            q, v = mech.q_slice(body.joint_name).start, mech.v_slice(body.joint_name).start
            where = {"f_ext": 6 * (k - 1), "points": 3 * (k - 1), **{n: q for n in like_q}}
            places = tuple(where.get(n, v) for n in self.arrays)
            visits.append(Visit(role, k, body.parent, places, next(rows[kind])))
        return tuple(visits)
