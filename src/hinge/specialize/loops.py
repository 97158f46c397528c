"""Sweeps as loops: the same algorithm source, traced once per kind of joint instead of per body.

`LoopMechanism` stands in for a mechanism.  Its `outward` and `inward` yield once per kind, with
tokens for parent and body; what the algorithm reads and writes under a token becomes loads and
stores of that kind's step, and when the algorithm asks for the next pair the step is closed.

Entries of a slot that are zero for every body are never loaded, and of those that are always equal,
such as the halves of a symmetric matrix, only the first.  Which they are is found by assuming at
first that all are zero: the algorithm is traced again until it does as was assumed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any, Concatenate

import numpy as np

from ..algebra.spatial import Transform
from ..errors import TraceError
from ..graph.arrays import Shape
from ..graph.loop import ZERO, Load, LoopProgram, Stage, Step, Store, Visit, alike, pruned
from ..graph.scalar import Graph, Node
from ..model.joint import HingeRates
from ..model.mechanism import Body, Mechanism, hinge_map, transfer
from ..model.parameters import pose_of
from ..model.protocol import Tree
from .canonical import Reframed
from .kinds import AT, Kind, find_kinds

__all__ = ["trace_loops"]

PARENT, OWN = "parent", "own"


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
    while True:
        tracer = LoopMechanism(mech, kinds, arrays, assumed)
        # what is zero so far may be divided by
        with np.errstate(all="ignore"):
            result = algorithm(tracer, **{n: _Argument(tracer, i) for i, n in enumerate(arrays)})
        found = alike(tracer.stages, tracer.start, tracer.sizes, assumed)
        if found == assumed:
            break
        assumed = found
    parts = result if isinstance(result, tuple) else (result,)
    if not all(isinstance(part, _Joined) for part in parts):
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
        self.value: Any = None

    def __getitem__(self, row: str) -> Any:
        if self.step is not self.tracer.step:
            self.step, self.value = self.tracer.step, self.make()
        return self.value


class _Slot:
    """Per-body values of a sweep, in rows of the workspace."""

    def __init__(self, tracer: LoopMechanism, number: int) -> None:
        self.tracer, self.number = tracer, number
        self.shape: dict[int, tuple[int, ...]] = {}
        # of what the ground has, until more is known
        self.first: tuple[int, ...] = (6,)

    def __getitem__(self, row: str) -> Any:
        step = self.tracer.step
        if (self.number, row) not in step.values:
            own = row == OWN and step.kind in self.shape
            shape = self.shape[step.kind] if own else next(iter(self.shape.values()), self.first)
            entries = [self.entry(step, row, i) for i in range(int(np.prod(shape)))]
            step.values[self.number, row] = np.array(entries, dtype=object).reshape(shape)
        return step.values[self.number, row]

    def entry(self, step: _OpenStep, row: str, i: int) -> Node:
        first = self.tracer.assumed.get((self.number, i), ZERO)
        if first == ZERO:
            return step.graph.const(0.0)
        return step.load(Load("slot", self.number, row, first))

    def __setitem__(self, row: Any, value: Any) -> None:
        value = np.asarray(value)
        tracer = self.tracer
        tracer.sizes[self.number] = max(tracer.sizes[self.number], value.size)
        if row == 0:
            self.first = value.shape
            tracer.start[self.number] = tuple(float(x) for x in value.ravel())
            return
        if row == OWN:
            self.shape[tracer.step.kind] = value.shape
        tracer.step.values[self.number, row] = value
        tracer.step.written[self.number, row] = value


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
        *rest, width = next(iter(self.slot.shape.values()))
        lines = range(prod(rest))
        entries = [(slot, k, r * width + i) for r in lines for k in bodies for i in range(width)]
        return (*rest, len(bodies) * width), entries


class _OpenStep:
    """The step of one kind while the algorithm runs through it."""

    def __init__(self, kind: int) -> None:
        self.kind, self.graph = kind, Graph()
        self.body: Body | None = None
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
        ]
        return Step(tuple(self.loads), tuple(stores))


class LoopMechanism:
    """The `Tree` of a mechanism whose bodies are visited kind by kind."""

    has_followers = False

    def __init__(
        self,
        mech: Mechanism,
        kinds: tuple[list[Kind], dict[int, int]],
        arrays: dict[str, tuple[int, ...]],
        assumed: dict[tuple[int, int], int],
    ) -> None:
        """assumed: what may be taken for `alike`."""
        self.mech, self.arrays = mech, arrays
        self.kinds, self.kind_of = kinds
        self.nv, self.free_fall = mech.nv, mech.free_fall
        self.assumed = assumed
        self.sizes: list[int] = []
        self.start: dict[int, tuple[float, ...]] = {}
        self.stages: list[Stage] = []
        self.step = _OpenStep(0)
        self.M = _View(self, lambda: self.body.inertia)
        self.armature = _View(self, self._armature)
        # one step serves all bodies of a kind, whatever is beyond them
        self.least = _View(self, lambda: np.zeros(self.body.joint.nv))

    # what sweeps read

    @property
    def kind(self) -> Kind:
        """The kind of the step at hand."""
        return self.kinds[self.step.kind]

    @property
    def body(self) -> Body:
        """The body of the step at hand, its numbers loaded where they differ within its kind."""
        if self.step.body is None:
            self.step.body = self.kind.body(self._number)
        return self.step.body

    def _number(self, i: int) -> Any:
        common = self.kind.common[i]
        return self.step.load(Load("number", 0, OWN, i)) if common is None else common

    def _armature(self) -> np.ndarray:
        nv = self.body.joint.nv
        return np.array([self._number(AT.armature + i) for i in range(nv)])

    def _share(self, argument: _Argument, count: Callable[[Body], int]) -> _View:
        def make() -> np.ndarray:
            n = count(self.kind.example)
            return self.step.array([Load("argument", argument.which, OWN, i) for i in range(n)])

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
        return _View(self, lambda: self._original().transfer @ given[OWN])

    def points(self, points: Any) -> _View:
        """As in `Tree`."""
        if points is None:
            return _View(self, lambda: self._original().translation)
        given = self._share(points, lambda body: 3)
        return _View(self, lambda: self._original() @ given[OWN])

    def _original(self) -> Transform:
        """Where the frame of the original body is in that of the canonical one."""
        return pose_of([self._number(i) for i in AT.original])

    def phi(self, q: _Argument) -> _View:
        """As in `Tree`."""
        own = self.coordinates(q)
        return _View(self, lambda: transfer(self.body, own[OWN]))

    def H(self, q: _Argument) -> _View:
        """As in `Tree`."""
        own = self.coordinates(q)
        return _View(self, lambda: hinge_map(self.body, self.body.joint.H(own[OWN])))

    def H_rate(self, q: _Argument, qd: Any) -> _View:
        """As in `Tree`."""
        own, rate = self.coordinates(q), self.rates(qd)
        return _View(
            self, lambda: hinge_map(self.body, self.body.joint.H_rate(own[OWN], rate[OWN]))
        )

    def hinge_rates(self, q: _Argument, qd: Any, qdd: Any) -> _View:
        """As in `Tree`."""
        values = self.coordinates(q), self.rates(qd), self.rates(qdd)

        def make() -> HingeRates:
            rates = self.body.joint.hinge_rates(*(x[OWN] for x in values))
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
        return _View(self, lambda: make(OWN))

    def filled(self, make: Callable[[Any], Any]) -> _Slot:
        """As in `Tree`: a loop of its own."""
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
        steps = []
        for kind in range(len(self.kinds)):
            self.step = _OpenStep(kind)
            yield PARENT, OWN
            steps.append(self.step.closed())
        self.stages.append(Stage(tuple(steps), backwards))

    def join(self, parts: _Slot) -> _Joined:
        """As in `Tree`."""
        return _Joined(parts)

    def join_bodies(self, parts: _Slot) -> _Joined:
        """As in `Tree`."""
        return _Joined(parts, columns=True)

    def program(self, name: str, parts: Sequence[_Joined], form: type | None = None) -> LoopProgram:
        """Everything that was traced."""
        mech = self.mech
        visits, rows = [], [iter(kind.table) for kind in self.kinds]
        for k, body in enumerate(mech.bodies[1:], 1):
            kind = self.kind_of[k]
            q, v = mech.q_slice(body.joint_name).start, mech.v_slice(body.joint_name).start
            where = {"q": q, "f_ext": 6 * (k - 1), "points": 3 * (k - 1)}
            places = tuple(where.get(n, v) for n in self.arrays)
            visits.append(Visit(kind, k, body.parent, places, next(rows[kind])))
        shapes, places = zip(*(part.gathered(mech) for part in parts), strict=True)
        results = tuple(place for entries in places for place in entries)
        return LoopProgram(
            name,
            tuple(self.arrays.values()),
            shapes,
            tuple(self.sizes),
            len(mech.bodies),
            self.start,
            pruned(self.stages, results),
            tuple(visits),
            results,
            form,
        )
