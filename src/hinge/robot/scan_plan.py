"""Forward and hybrid dynamics by scans as a list of operations, whatever carries them out.

A joint of several degrees of freedom is as many joints of one, with nothing between them: the
first of them has its pose, the last has the body.  Each has a place: those of a level, path after
path, are cut into stretches, and after all levels there is one place for the ground.  Everything is
in arrays with a row for each place, of which operations read and write some: `Each` one by one,
`Along` the stretches of a level, as scans (`log_depth.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from inspect import signature
from typing import Any, NamedTuple, final

import numpy as np

from ..algorithms import log_depth as steps
from ..model.mechanism import Mechanism, hinge_map, transfer
from ..model.parameters import inertia_numbers
from ..specialize.canonical import Reframed
from ..specialize.kinds import AT, Kind, find_kinds
from ..specialize.paths import Level, levels, stretches

__all__ = ["INERTIAS", "Along", "Each", "Operation", "Place", "Places", "Plan", "Stretches", "Way"]
__all__ += ["shapes_of"]

_SHAPES: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(("R", "R0"), (3, 3)),
    **dict.fromkeys(("p", "p0"), (3,)),
    **dict.fromkeys(("W", "W0", "V", "own", "alpha", "a", "f_ext", "b", "eta", "f", "z"), (6,)),
    **dict.fromkeys(("g", "g0", "given"), (6,)),
    **dict.fromkeys(("A", "C", "J", "M", "P", "F", "F0"), (6, 6)),
    **dict.fromkeys(("armature", "tau", "nu", "qdd", "active"), (1,)),
    "H": (1, 6),
    "G": (6, 1),
    "inertia": (10,),
    "s": (),
}


def shapes_of(fn: Callable[..., Any]) -> dict[str, tuple[int, ...]]:
    """The arguments of a function of `log_depth.py`, for joints of one degree of freedom."""
    return {n: _SHAPES[n] for n in signature(fn).parameters}


# operations


class Place(NamedTuple):
    """Rows of an array: those of the stretches of a level (None), or by their numbers.

    rows: (…) of rows, or (…, *shape) where rows are single numbers; −1 is none.
    """

    array: str
    rows: np.ndarray | None = None


class Each(NamedTuple):
    """A function of single samples; key: what tells it from others, None if nothing short does."""

    fn: Callable[..., Any]
    shapes: Mapping[str, tuple[int, ...]]
    reads: Sequence[Place]
    writes: Sequence[Place]
    key: str | None = None


class Way(NamedTuple):
    """A scan of `log_depth.py`: functions to sweep a stretch, to join two, to walk along one.

    enters: which of the arrays of an element a walk begins with.
    """

    sweep: Callable[..., Any]
    join: Callable[..., Any] | None
    walk: Callable[..., Any]
    enters: tuple[int, ...]

    @property
    def none(self) -> list[np.ndarray]:
        """The element of no bodies: what a sweep begins with."""
        size = {steps.rigid_step: 3, steps.element_step: 5, steps.change_step: 2}[self.sweep]
        shapes = list(shapes_of(self.sweep).values())[:size]
        # the first array is what such a stretch hands on as it is
        return [np.zeros(shape) if i else np.eye(shape[0]) for i, shape in enumerate(shapes)]


VELOCITIES = Way(steps.rigid_step, steps.rigid_product, steps.velocity_step, (2,))
FORCES = Way(steps.rigid_step, steps.rigid_product, steps.force_step, (2,))
INERTIAS = Way(steps.element_step, None, steps.articulated_step, (2, 1))
CHANGES = Way(steps.change_step, steps.change_product, steps.acceleration_step, (1,))


class Along(NamedTuple):
    """A scan along a level.

    reads: of the walk, but for what it carries; swept: which of them a sweep takes.
    writes: of some results of the walk, by their numbers.
    """

    way: Way
    level: int
    inward: bool
    reads: Sequence[Place]
    swept: Sequence[int]
    writes: Mapping[int, Place]


Operation = Each | Along


# places


class Stretches(NamedTuple):
    """A level: its first place, the most that a stretch has, the lanes.

    What is number t of lane l is at first + t · lanes + l.  lengths: of the stretches, by lane.
    starts: bodies that begin a path; parents: those that carry them.
    """

    first: int
    steps: int
    lanes: int
    lengths: list[int]
    starts: list[int]
    parents: list[int]

    @property
    def size(self) -> int:
        """How many places it has."""
        return self.steps * self.lanes


@final
class Places:
    """Where bodies are; count: of places, the ground's among them, which is the last.

    of: of each body the places of its degrees of freedom, outward.
    lanes: at most, of a level; together: of what number they are a multiple.
    """

    def __init__(self, mech: Mechanism, lanes: int, together: int) -> None:
        self.mech, self.levels, self.count = mech, [], 0
        self.of: dict[int, list[int]] = {}
        for level in levels(mech):
            self.levels.append(self._cut(level, lanes, together))
            self.count += self.levels[-1].size
        self.of[0], self.count = [self.count], self.count + 1

    def _cut(self, level: Level, lanes: int, together: int) -> Stretches:
        cut = stretches(self.mech, level, lanes)
        lengths, wide = [len(x) for x in cut], -(-len(cut) // together) * together
        for lane, own in enumerate(cut):
            for t, (k, _) in enumerate(own):
                self.of.setdefault(k, []).append(self.count + t * wide + lane)
        starts = [level.bodies[row] for row in level.starts]
        parents = [self.mech.bodies[k].parent for k in starts]
        lengths += [0] * (wide - len(cut))
        return Stretches(self.count, max(lengths), wide, lengths, starts, parents)

    def first(self, bodies: Sequence[int]) -> np.ndarray:
        """Where poses of bodies are."""
        return np.array([self.of[k][0] for k in bodies], int)

    def last(self, bodies: Sequence[int]) -> np.ndarray:
        """Where bodies themselves are."""
        return np.array([self.of[k][-1] for k in bodies], int)

    def filled(self, empty: Any) -> np.ndarray:
        """The same in all places."""
        out = np.empty((self.count, *np.shape(empty)))
        out[...] = empty
        return out


@final
class Plan:
    """The operations for one state of a mechanism, and the arrays that they work on.

    external: the names of the arguments; split: whether some q̈ are given; active: which, if that
    does not come with the arguments.
    constant: arrays with a row for each place, or others, that stay; begun: that are so at first.
    results: the names of the arrays (nv,) that hold them.
    """

    def __init__(
        self, places: Places, external: Sequence[str], active: Sequence[bool] | None = None
    ) -> None:
        self.places, self.external, self.split = places, external, "qdd_active" in external
        self.mech = places.mech
        self.branched = len(places.levels) > 1
        self.constant: dict[str, np.ndarray] = self._constants()
        if active is not None:
            self.constant["active"] = np.array([*active, False], float)
        self.begun = self._begun()
        self.results = ("tau_all", "qdd_all") if self.split else ("change",)
        # where nothing moves there is nothing to do
        self.operations: list[Operation] = [*self._operations()] if self.mech.nv else []

    def _constants(self) -> dict[str, np.ndarray]:
        places, filled, bodies = self.places, self.places.filled, self.mech.bodies[1:]
        made = {"s": filled(1.0), "inertia": filled(np.zeros(10)), "M": filled(np.zeros((6, 6)))}
        made |= {"armature": filled(np.ones(1)), "no_load": filled(np.zeros(6))}
        for level in places.levels:
            made["s"][places.first(level.starts)] = 0
        for k, b in enumerate(bodies, 1):
            M, at = b.inertia.spatial, places.of[k]
            made["inertia"][at[-1]], made["M"][at[-1]] = inertia_numbers(M), M.matrix
            if b.joint.nv:
                made["armature"][at, 0] = b.joint.armature
        return made

    def _begun(self) -> dict[str, np.ndarray]:
        """Arrays that are written, as they are where nobody writes."""
        filled, none, square = self.places.filled, np.zeros(6), np.zeros((6, 6))
        vectors = "W", "own", "V", "a", "alpha", "f", "given", "change_alpha"
        made = {name: filled(none) for name in vectors}
        made["alpha"][-1] = -self.mech.free_fall
        made |= {"R": filled(np.eye(3)), "p": filled(np.zeros(3)), "nu": filled(np.zeros(1))}
        made |= {"H": filled(np.zeros((1, 6))), "G": filled(np.zeros((6, 1)))}
        made |= {"P": filled(square), "z": filled(none), "C": filled(square), "b": filled(none)}
        made |= {"M_all": self.constant["M"]} if self.branched else {}
        if self.split:
            made |= {"H_passive": made["H"], "armature_passive": filled(np.ones(1))}
            # and one more for those that are not there
            each = "qdd", "tau", "forces", "tau_all", "qdd_all"
            made |= dict.fromkeys(each, np.zeros(self.mech.nv + 1))
        return made | {"change": np.zeros(self.mech.nv + 1)}

    # tables

    @cached_property
    def _per_dof(self) -> np.ndarray:
        """Of each place the number of its degree of freedom."""
        found = np.full((self.places.count, 1), -1)
        for k, b in enumerate(self.mech.bodies[1:], 1):
            v = self.mech.v_slice(b.joint_name)
            found[self.places.of[k][: b.joint.nv], 0] = range(v.start, v.stop)
        return found

    @cached_property
    def _bodies(self) -> np.ndarray:
        """Of each place the number of its body, from 0 on."""
        found = np.full(self.places.count, -1)
        found[self.places.last(range(1, len(self.mech.bodies)))] = range(len(self.mech.bodies) - 1)
        return found

    def _of_level(self, table: np.ndarray, n: int) -> np.ndarray:
        level = self.places.levels[n]
        return table[level.first : level.first + level.size]

    def _begins(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Where the paths of a level begin, and where the bodies are that carry them."""
        level = self.places.levels[n]
        return self.places.first(level.starts), self.places.last(level.parents)

    # operations

    def _operations(self) -> Iterator[Operation]:
        outward = range(len(self.places.levels))
        each = np.arange(self.mech.nv)
        if self.split:
            given = [Place(n, each) for n in ("active", "qdd_active", "tau_passive")]
            yield _each_dof(steps.split, given, [Place("qdd", each), Place("tau", each)])
        yield from self._motions()
        for n in outward:
            yield from self._outward(n)
        for n in reversed(outward):
            yield from self._inward(n)
        for n in outward:
            yield from self._changes(n)
        if self.split:
            for n in outward:
                yield self._driven(n)
            known = [Place(n, each) for n in ("active", "qdd", "tau", "change", "forces")]
            yield _each_dof(steps.put_together, known, [Place(n, each) for n in self.results])

    def _motions(self) -> Iterator[Each]:
        """Poses and hinge maps, kind by kind."""
        mech = self.mech
        kinds, kind_of = find_kinds(Reframed.same(mech), None)
        for number, kind in enumerate(kinds):
            bodies = [k for k, own in kind_of.items() if own == number]
            names = [mech.bodies[k].joint_name for k in bodies]
            q, v = (
                np.array([range(x.start, x.stop) for x in map(of, names)], int)
                for of in (mech.q_slice, mech.v_slice)
            )
            differ = [i for i in (*AT.placement, AT.zero) if kind.common[i] is None]
            own = f"numbers{number}"
            self.constant[own] = np.array([[x[i] for i in differ] for x in kind.table])
            reads = [Place(own, np.arange(len(bodies))), Place("q", q), Place("qd", v)]
            reads += [Place("qdd", v)] if self.split else []
            at = self.places.first(bodies)
            each = np.array([self.places.of[k][: v.shape[1]] for k in bodies], int)
            writes = [Place(x, each if x == "H" else at) for x in ("R", "p", "H", "W", "own")]
            shapes = {"numbers": (len(differ),), "q": q.shape[1:], "qd": v.shape[1:]}
            shapes |= {"qdd": v.shape[1:]} if self.split else {}
            yield Each(_local_motion(kind, differ), shapes, reads, writes)

    def _outward(self, n: int) -> Iterator[Operation]:
        """V, then α̂ and f̂ (1)."""
        at, parents = self._begins(n)
        own = [Place(x, at) for x in ("R", "p", "W", "own")]
        carrier = [Place(x, parents) for x in ("V", "alpha")]
        yield _each_place(steps.first_step, [*own, *carrier], own[2:])
        pose = [Place(x) for x in ("R", "p", "s")]
        yield _along(VELOCITIES, n, {0: "V", 1: "a"}, *pose, Place("W"), Place("own"))
        loads = Place("no_load")
        if "f_ext" in self.external:
            loads = Place("f_ext", self._of_level(self._bodies, n))
        rest = Place("a"), Place("V"), Place("inertia"), loads
        yield _along(FORCES, n, {0: "alpha", 1: "f"}, *pose, *rest)

    def _inward(self, n: int) -> Iterator[Operation]:
        """What is left with the bodies, and what limbs hand on."""
        H, armature = Place("H"), Place("armature")
        tau = Place("tau", self._of_level(self._per_dof, n))
        if self.split:
            level = self.places.levels[n]
            here = np.arange(level.first, level.first + level.size)
            active = Place("active", self._of_level(self._per_dof, n))
            reads = [Place("H", here), Place("armature", here), active]
            writes = [Place("H_passive", here), Place("armature_passive", here)]
            yield _each_place(steps.passive_part, reads, writes)
            H, armature = Place("H_passive"), Place("armature_passive")
        pose = [Place(x) for x in ("R", "p", "s")]
        kept = {2: "P", 3: "z", 4: "G", 5: "nu", 6: "C", 7: "b"}
        M = Place("M_all" if self.branched else "M")
        given = *pose, H, armature, M, Place("f"), tau
        yield _along(INERTIAS, n, kept, *given, inward=True)
        for order, limbs, carriers in self._limbs(n):
            own = [Place("M_all" if order else "M", carriers), Place("f", carriers)]
            limb = [Place(x, limbs) for x in ("C", "b")]
            writes = [Place("M_all", carriers), own[1]]
            yield _each_place(steps.with_limb, [*own, *limb], writes)

    def _limbs(self, n: int) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        """The paths of a level that do not begin on the ground: of each body the first, …"""
        level, seen = self.places.levels[n], Counter[int]()
        groups: dict[int, list[tuple[int, int]]] = {}
        for start, parent in zip(level.starts, level.parents, strict=True):
            if parent:
                groups.setdefault(seen[parent], []).append((start, parent))
                seen[parent] += 1
        for order, pairs in groups.items():
            limbs, carriers = zip(*pairs, strict=True)
            yield order, self.places.first(limbs), self.places.last(carriers)

    def _changes(self, n: int) -> Iterator[Operation]:
        """α of all bodies, and what the joints make of it."""
        if n:
            at, parents = self._begins(n)
            reads = [Place("R", at), Place("p", at), Place("change_alpha", parents)]
            yield _each_place(steps.given_step, reads, [Place("given", at)])
        H = "H_passive" if self.split else "H"
        given = [Place(x) for x in ("R", "p", "s", H, "G", "nu", "given")]
        kept = {0: "change_alpha", 1: Place("change", self._of_level(self._per_dof, n))}
        yield _along(CHANGES, n, kept, *given)

    def _driven(self, n: int) -> Each:
        """τ of degrees of freedom whose accelerations are given."""
        level, table = self.places.levels[n], self._of_level(self._per_dof, n)
        here = np.arange(level.first, level.first + level.size)
        reads = [Place(x, here) for x in ("H", "P", "z", "change_alpha", "armature")]
        writes = [Place("forces", table)]
        return _each_place(steps.driven_forces, [*reads, Place("qdd", table)], writes)


# the sweep that finds α̂ is one of velocities, which are accelerations there
_ALIAS = {(steps.force_step, "a"): "W"}


def _along(
    way: Way, n: int, writes: Mapping[int, str | Place], *given: Place, inward: bool = False
) -> Along:
    """A scan along level n; given: what the walk takes, the sweep takes those of the same names."""
    walk = list(signature(way.walk).parameters)[len(way.enters) :]
    swept = [_ALIAS.get((way.walk, x), x) for x in walk]
    names = list(signature(way.sweep).parameters)[len(way.none) :]
    kept = {i: x if isinstance(x, Place) else Place(x) for i, x in writes.items()}
    return Along(way, n, inward, given, [swept.index(x) for x in names], kept)


def _each_place(fn: Callable[..., Any], reads: Sequence[Place], writes: Sequence[Place]) -> Each:
    """A function of `log_depth.py` on what places have."""
    return Each(fn, shapes_of(fn), reads, writes, fn.__name__)


def _each_dof(fn: Callable[..., Any], reads: Sequence[Place], writes: Sequence[Place]) -> Each:
    """One on single numbers, those of degrees of freedom."""
    return Each(fn, dict.fromkeys(signature(fn).parameters, ()), reads, writes, fn.__name__)


def _local_motion(kind: Kind, differ: Sequence[int]) -> Callable[..., Any]:
    """φ as (R, p), H, H*q̇ and Ḣ*q̇ + H*q̈ of bodies of a kind."""

    def local_motion(numbers: Any, q: Any, qd: Any, qdd: Any = None) -> tuple[Any, ...]:
        own = dict(zip(differ, numbers, strict=True))
        body = kind.body(lambda i: own.get(i, kind.common[i] or 0.0))
        joint, phi = body.joint, transfer(body, q)
        H, rate = (hinge_map(body, x) for x in (joint.H(q), joint.H_rate(q, qd)))
        own_rate = rate.T @ qd if qdd is None else rate.T @ qd + H.T @ qdd
        return phi.R, phi.p, H[:, None], H.T @ qd, own_rate

    return local_motion
