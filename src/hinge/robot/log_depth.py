"""Forward and hybrid dynamics of one state by many lanes: the sweeps of `log_depth.py` as scans.

Bodies, path after path, are cut into stretches, one for each lane.  Every scan goes the same way:
each lane sweeps its stretch to what it does as a whole, those are joined in log₂(lanes) steps, and
each lane sweeps its stretch again from what then reaches it.  Bodies take the place that samples
have elsewhere: stretches are swept by time loops, joined by kernels on batches, on whatever the
robot runs on.  Arrays are (bodies of a stretch, stretches, *shape).
"""

from __future__ import annotations

import inspect
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np

from ..algorithms import log_depth as steps
from ..algorithms.underactuated.hybrid_dynamics import HybridDynamics
from ..errors import ArgumentError
from ..graph.program import Program, trace
from ..graph.scan import Scan
from ..model.mechanism import Mechanism, hinge_map, transfer
from ..model.parameters import PARAMETERS, inertia_numbers
from ..runtime.arguments import Argument, broadcast
from ..runtime.cache import digest
from ..runtime.entry import Entry
from ..runtime.kernel import Kernel
from ..runtime.rollout import Rollout
from ..specialize.arrays import array_shape
from ..specialize.canonical import Reframed
from ..specialize.kinds import AT, Kind, find_kinds
from ..specialize.paths import Level, levels, stretches
from .replay import Replay, are_tensors_on_card
from .results import as_results

if TYPE_CHECKING:
    from .front import Front

__all__ = ["ByScan"]

# into how many stretches the bodies of a level are cut: what vectors on a few threads hold; and how
# many bodies a stretch has on a card
_LANES, _ON_CARD = 32, 8

_SHAPES: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("R", "R0"), (3, 3)),
    **dict.fromkeys(("p", "p0"), (3,)),
    **dict.fromkeys(("W", "W0", "V", "own", "alpha", "a", "f_ext", "b", "eta", "f", "z"), (6,)),
    **dict.fromkeys(("g", "g0", "given"), (6,)),
    **dict.fromkeys(("A", "C", "J", "M", "P", "F", "F0"), (6, 6)),
    **dict.fromkeys(("armature", "tau", "nu", "qdd"), ("dof",)),
    "H": ("dof", 6),
    "G": (6, "dof"),
    "inertia": (10,),
    "s": (),
}
_ELEMENT = ("A", "b", "C", "eta", "J")


@final
class ByScan:
    """The answer of `method="scan"`, state by state."""

    def __init__(
        self, robot: Front, name: str, arrays: tuple[str, ...], static: Mapping[str, Any]
    ) -> None:
        self.robot, self.arrays, self.static = robot, arrays, static
        _refuse_what_scans_do_not_know(robot, name, arrays)
        mech = robot.mechanism
        self.dof = max([b.joint.nv for b in mech.bodies[1:]], default=0)
        self.steps = _Steps(robot, self.dof)
        lanes = _LANES if robot.device == "cpu" else max(_LANES, mech.n_bodies // _ON_CARD)
        self.lanes = [_Lanes(mech, level, self.dof, lanes) for level in levels(mech)]
        self.kinds = _alike(robot, self.dof)
        self._placed: dict[tuple[Any, ...], list[_Level]] = {}
        self._replays: dict[tuple[Any, ...], Replay] = {}

    def __call__(self, where: str, given: Sequence[Argument], out: Any) -> Any:
        values = broadcast(where, given)
        dtype = self.robot.dtype
        lead, count = values["q"].shape[:-1], 2 if "qdd_active" in values else 1
        whole = np.empty((count, *lead, self.robot.nv), dtype)
        for at in np.ndindex(*lead):
            state = {n: x[at].astype(dtype) for n, x in values.items()}
            found = self._results(self._marked(state))
            for part, x in zip(whole, found, strict=True):
                part[at] = x
        results = as_results(self.robot, where, list(whole), out, entries=1)
        return HybridDynamics(*results) if count == 2 else results[0]

    def on_card(self, given: Mapping[str, Any]) -> Any:
        """The same of one state in tensors on the card, which it does not leave; else None."""
        mech, dtype = self.robot.mechanism, self.robot.dtype
        shapes = {n: array_shape(mech, n, self.static) for n in given}
        if not are_tensors_on_card(given, shapes, dtype):
            return None
        key = next(iter(given.values())).device, *given
        if key not in self._replays:
            self._replays[key] = Replay(self._results, self._marked(given))
        results = self._replays[key](given)
        return HybridDynamics(*results) if len(results) == 2 else results[0]

    def _marked(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments, and a split that does not change with them."""
        if "active" not in self.static:
            return dict(given)
        marks = np.array(self.static["active"], float)
        return {**given, "active": _Arrays(given["q"]).put(marks)}

    def _results(self, given: Mapping[str, Any]) -> list[Any]:
        """The results of one state; arrays are of any kind."""
        return _State(self, given).results()

    def placed(self, arrays: _Arrays) -> list[_Level]:
        """What does not change with the state, in arrays of a kind."""
        if arrays.key not in self._placed:
            self._placed[arrays.key] = [_Level(self, n, arrays) for n in range(len(self.lanes))]
        return self._placed[arrays.key]

    def entry(self, otherwise: Callable[..., Any]) -> Entry | None:
        """Scans are put together in Python."""
        return None


def _refuse_what_scans_do_not_know(robot: Front, name: str, arrays: tuple[str, ...]) -> None:
    known = next((a for a in arrays if a in PARAMETERS), "")
    why = f"{known} comes with each sample" if known else "joints mimic others"
    if known or robot.mechanism.has_followers:
        raise ArgumentError(
            f"{name} of {robot.name!r}: {why}, which a scan does not know; leave out method='scan'"
        )


# kernels


@final
class _Steps:
    """The functions of `log_depth.py` for joints of so many degrees of freedom, compiled."""

    def __init__(self, robot: Front, dof: int) -> None:
        self._robot, self._dof = robot, dof
        self._rounding = float(np.finfo(robot.dtype).eps)

    def kernel(self, fn: Callable[..., Any]) -> Kernel:
        """A function on batches."""
        return self._kernel(fn, self._shapes(fn))

    @property
    def product(self) -> Kernel:
        """Products of elements."""

        def element_product(*x: Any) -> tuple[Any, ...]:
            i, j = steps.Element(*x[:5]), steps.Element(*x[5:])
            return tuple(steps.product(i, j, self._rounding))

        shapes = {f"{n}_{i}": _SHAPES[n] for i in "ij" for n in _ELEMENT}
        return self._kernel(element_product, shapes)

    def along(
        self, fn: Callable[..., Any], states: Sequence[Any], given: Sequence[Any], *keep: int
    ) -> Any:
        """A function as a step along stretches: its results of the numbers `keep`.

        Without such its states, when all steps are done.
        states: (stretches, …), those at the beginning; given: (bodies, stretches, …).
        """
        if keep:
            return self._rollout(fn, len(states), keep)(*states, *given)
        whole = self._rollout(fn, len(states), tuple(range(len(states))))
        return [x[0] for x in whole(*states, *given, every=len(given[0]))]

    def _rollout(self, fn: Callable[..., Any], states: int, keep: tuple[int, ...]) -> Rollout:
        robot, shapes, asked = self._robot, self._shapes(fn), self._asked(fn, keep)
        inputs = len(shapes) - states

        def make() -> Scan:
            return Scan(_traced(fn, shapes), states, inputs, recorded=keep)

        made = partial(Rollout, make, shapes, states, inputs, fn.__name__, robot.dtype)
        return robot._keep(asked, lambda: made(robot._backend, digest(*asked)))

    def _kernel(self, fn: Callable[..., Any], shapes: dict[str, tuple[int, ...]]) -> Kernel:
        robot, asked = self._robot, self._asked(fn)
        made = partial(Kernel, partial(_traced, fn, shapes), fn.__name__, tuple(shapes))
        return robot._keep(asked, lambda: made(robot.dtype, robot._backend, digest(*asked)))

    def _asked(self, fn: Callable[..., Any], keep: tuple[int, ...] = ()) -> tuple[str, ...]:
        """What the code is kept under: it is the same for all robots."""
        return "log depth", fn.__name__, str(self._dof), str(self._rounding), str(keep)

    def _shapes(self, fn: Callable[..., Any]) -> dict[str, tuple[int, ...]]:
        names = inspect.signature(fn).parameters
        return {n: tuple(self._dof if k == "dof" else k for k in _SHAPES[n]) for n in names}


def _traced(fn: Callable[..., Any], shapes: Mapping[str, tuple[int, ...]]) -> Program:
    return trace(fn, list(shapes.values()), fn.__name__)


@final
class _Alike:
    """Bodies of one kind, whose poses and hinge maps one kernel gives."""

    def __init__(self, robot: Front, kind: Kind, bodies: list[int], dof: int) -> None:
        mech, self.bodies = robot.mechanism, bodies
        names = [mech.bodies[k].joint_name for k in bodies]
        self.q, self.v = (
            np.array([range(x.start, x.stop) for x in map(of, names)])
            for of in (mech.q_slice, mech.v_slice)
        )
        differ = [i for i in (*AT.placement, AT.zero) if kind.common[i] is None]
        self.numbers = np.array([[row[i] for i in differ] for row in kind.table])

        def local_motion(numbers: Any, q: Any, qd: Any, qdd: Any) -> tuple[Any, ...]:
            """φ as (R, p), H, H*q̇ and Ḣ*q̇ + H*q̈."""
            own = dict(zip(differ, numbers, strict=True))
            body = kind.body(lambda i: own.get(i, kind.common[i] or 0.0))
            joint, phi = body.joint, transfer(body, q)
            H, rate = (hinge_map(body, x) for x in (joint.H(q), joint.H_rate(q, qd)))
            padded = np.concatenate([H, np.zeros((dof - joint.nv, 6))])
            return phi.R, phi.p, padded, H.T @ qd, rate.T @ qd + H.T @ qdd

        nq, nv = kind.example.joint.nq, kind.example.joint.nv
        shapes = {"numbers": (len(differ),), "q": (nq,), "qd": (nv,), "qdd": (nv,)}
        make = partial(_traced, local_motion, shapes)
        self.motion = Kernel(make, "local_motion", tuple(shapes), robot.dtype, robot._backend)
        self._placed: dict[tuple[Any, ...], tuple[Any, ...]] = {}

    def placed(self, arrays: _Arrays) -> tuple[Any, ...]:
        """Their numbers, and where their coordinates and rates are, in arrays of a kind."""
        if arrays.key not in self._placed:
            self._placed[arrays.key] = tuple(map(arrays.put, (self.numbers, self.q, self.v)))
        return self._placed[arrays.key]


def _alike(robot: Front, dof: int) -> list[_Alike]:
    kinds, kind_of = find_kinds(Reframed.same(robot.mechanism), None)
    bodies: list[list[int]] = [[] for _ in kinds]
    for k, number in kind_of.items():
        bodies[number].append(k)
    return [_Alike(robot, *pair, dof) for pair in zip(kinds, bodies, strict=True)]


# arrays, of NumPy or of whoever made the arguments


@final
class _Arrays:
    """New arrays of the kind of another."""

    def __init__(self, like: Any) -> None:
        package: Any = sys.modules[type(like).__module__.partition(".")[0]]
        self._package, self._dtype, self._where = package, like.dtype, {}
        self._contiguous = getattr(package, "ascontiguousarray", lambda x: x)
        if package.__name__ == "torch":
            self._where = {"device": like.device}

    @property
    def key(self) -> tuple[Any, ...]:
        """What tells kinds apart."""
        return self._package.__name__, *map(str, (self._dtype, *self._where.values()))

    def put(self, x: Any) -> Any:
        """Numbers, or an index."""
        x = np.asarray(x)
        if x.dtype.kind == "i":
            return self._package.asarray(x, **self._where)
        return self._package.asarray(x, dtype=self._dtype, **self._where)

    def zeros(self, *shape: int) -> Any:
        """Zeros."""
        return self._package.zeros(shape, dtype=self._dtype, **self._where)

    def flipped(self, x: Any) -> Any:
        """The first two dimensions the other way round, in a new array."""
        return self._contiguous(self._package.flip(x, (0, 1)))

    def joined(self, *parts: Any) -> Any:
        """One after the other, in a new array."""
        return self._package.concatenate(parts)


class _Limbs(NamedTuple):
    """Paths that begin on bodies of one level, no two on the same.

    level: that of the bodies; at: where these are; own: which of the paths; start: where they
    begin.
    """

    level: int
    at: Any
    own: Any
    start: Any


@final
class _Lanes:
    """The bodies of a level in stretches: where each is, and what does not change with the state.

    at: of each body (t, l), its place in the stretch and the stretch.
    starts: the bodies that begin a path; parents: those that carry them.
    """

    def __init__(self, mech: Mechanism, level: Level, dof: int, lanes: int) -> None:
        cut = stretches(mech, level, lanes)
        self.shape = max(map(len, cut)), len(cut)
        places = [(t, lane) for lane, rows in enumerate(cut) for t in range(len(rows))]
        self.at = dict(zip(level.bodies, places, strict=True))
        self.starts = [level.bodies[row] for row in level.starts]
        self.parents = [mech.bodies[k].parent for k in self.starts]
        bodies = {k: mech.bodies[k] for k in level.bodies}
        inertias = {k: b.inertia.spatial for k, b in bodies.items()}
        self.s = self._spread({k: 0.0 for k in self.starts}, 1.0)
        numbers = {k: inertia_numbers(M) for k, M in inertias.items()}
        self.inertia = self._spread(numbers, np.zeros(10))
        self.M = self._spread({k: M.matrix for k, M in inertias.items()}, np.zeros((6, 6)))
        self.armature = np.ones((*self.shape, dof))
        # where each degree of freedom, and each body, is in arrays that have one more at the end
        self.v, self.body = np.full((*self.shape, dof), mech.nv), np.full(self.shape, mech.n_bodies)
        for k, b in bodies.items():
            v = mech.v_slice(b.joint_name)
            self.armature[self.at[k]][: b.joint.nv] = b.joint.armature
            self.v[self.at[k]][: b.joint.nv] = range(v.start, v.stop)
            self.body[self.at[k]] = k - 1

    def _spread(self, values: Mapping[int, Any], empty: Any) -> np.ndarray:
        """Values of bodies, and that of no body in the places that are left."""
        out = np.empty((*self.shape, *np.shape(empty)))
        out[...] = empty
        for k, value in values.items():
            out[self.at[k]] = value
        return out

    def places(self, bodies: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        """An index of bodies."""
        t, lanes = np.array([self.at[k] for k in bodies], int).reshape(-1, 2).T
        return t, lanes


def _limbs(all_lanes: Sequence[_Lanes], n: int) -> list[_Limbs]:
    """The paths of level n that do not begin on the ground, in groups."""
    groups: dict[tuple[int, int], list[int]] = {}
    before: Counter[int] = Counter()
    for i, parent in enumerate(all_lanes[n].parents):
        for level, lanes in enumerate(all_lanes[:n]):
            if parent in lanes.at:
                groups.setdefault((level, before[parent]), []).append(i)
                before[parent] += 1
    found = []
    for (level, _), own in groups.items():
        at = all_lanes[level].places([all_lanes[n].parents[i] for i in own])
        start = all_lanes[n].places([all_lanes[n].starts[i] for i in own])
        found.append(_Limbs(level, at, np.array(own), start))
    return found


@final
class _Level:
    """`_Lanes` with arrays of the kind of the arguments."""

    def __init__(self, scan: ByScan, n: int, arrays: _Arrays) -> None:
        lanes, put = scan.lanes[n], arrays.put
        self.shape, self.arrays, self.paths = lanes.shape, arrays, len(lanes.starts)
        self.s, self.inertia, self.M = put(lanes.s), put(lanes.inertia), put(lanes.M)
        self.armature, self.v, self.body = put(lanes.armature), put(lanes.v), put(lanes.body)
        self.first = self._places(lanes.places(lanes.starts))
        self.limbs = [
            _Limbs(x.level, self._places(x.at), put(x.own), self._places(x.start))
            for x in _limbs(scan.lanes, n)
        ]
        self.alike = [self._rows(lanes, alike.bodies) for alike in scan.kinds]
        self.none = {name: self._each(x) for name, x in _NOTHING.items()}
        fall = -scan.robot.mechanism.free_fall
        self.still, self.falling = (put(np.tile(x, (self.paths, 1))) for x in (0 * fall, fall))

    def _places(self, at: tuple[np.ndarray, np.ndarray]) -> tuple[Any, Any]:
        return self.arrays.put(at[0]), self.arrays.put(at[1])

    def _rows(self, lanes: _Lanes, bodies: Sequence[int]) -> tuple[Any, Any]:
        """Which of some bodies are of this level, and where they are."""
        here = [i for i, k in enumerate(bodies) if k in lanes.at]
        at = lanes.places([bodies[i] for i in here])
        return self.arrays.put(np.array(here, int)), self._places(at)

    def _each(self, x: np.ndarray) -> Any:
        """The same for every stretch."""
        return self.arrays.put(np.tile(x, (self.shape[1], *[1] * x.ndim)))

    def backward(self, x: Any) -> Any:
        """Stretches, and what is in them, the other way round."""
        return self.arrays.flipped(x)

    def per_dof(self, x: Any) -> Any:
        """Values (nv,), those of each body's joint in its place."""
        return self.arrays.joined(x, self.arrays.zeros(1))[self.v]

    def carriers(self, values: Sequence[Any], ground: Any) -> Any:
        """Values of the bodies that paths begin on, from those of their levels: (paths, 6)."""
        found = 1 * ground
        for limbs in self.limbs:
            found[limbs.own] = values[limbs.level][limbs.at]
        return found

    def before(
        self, join: Callable[..., Any], whole: Sequence[Any], none: Sequence[Any]
    ) -> list[Any]:
        """What all stretches before each do together, from what each does.

        none: what a stretch of no bodies does; such are before the first, so that all are joined
        with one `reach` before them alike.
        """
        count, reach = self.shape[1], 1
        empty = 1 << max(count - 1, 1).bit_length() - 1
        now = [self.arrays.joined(x[:empty], y) for x, y in zip(none, whole, strict=True)]
        then = [1 * x for x in now]
        while reach < count:
            first = empty - reach
            before = (x[first : first + count] for x in now)
            join(*before, *(x[empty:] for x in now), out=tuple(x[empty:] for x in then))
            now, then, reach = then, now, 2 * reach
        return [x[empty - 1 : -1] for x in now]


_NOTHING = {
    "rotation": np.eye(3),
    "translation": np.zeros(3),
    "one": np.eye(6),
    "matrix": np.zeros((6, 6)),
    "vector": np.zeros(6),
}


# the scans


class _Local(NamedTuple):
    """Of the bodies of a level φ as (R, p), H, H*q̇ and Ḣ*q̇ + H*q̈."""

    R: Any
    p: Any
    H: Any
    W: Any
    own: Any


class _Left(NamedTuple):
    """What the inward scan leaves with the bodies of a level; H is of what is not driven."""

    P: Any
    z: Any
    G: Any
    nu: Any
    H: Any


class _State:
    """One state: its scans, one after the other."""

    def __init__(self, scan: ByScan, given: Mapping[str, Any]) -> None:
        """given: the arguments by name; `active` (nv,) is 1 where q̈ is given, not τ."""
        self.arrays = _Arrays(given["q"])
        self.scan, self.steps, self.given = scan, scan.steps, given
        self.mech, self.levels = scan.robot.mechanism, scan.placed(self.arrays)

    def results(self) -> list[Any]:
        """q̈ (nv,), or τ and q̈."""
        given, none = self.given, self.arrays.zeros(self.mech.nv)
        m = given.get("active", none)
        split = m is not none
        qdd = m * given["qdd_active"] if split else none
        tau = (1 - m) * given["tau_passive"] if split else given["tau"]
        local = self._moving(qdd)
        left = self._articulated(local, self._forces(local), tau, m)
        alpha, delta = self._accelerations(local, left)
        if not split:
            return [delta]
        forces = self.arrays.zeros(self.mech.nv + 1)
        for level, own, a, part in zip(self.levels, local, alpha, left, strict=True):
            rest = part.P, part.z, a, level.armature, level.per_dof(qdd)
            forces[level.v] = self.steps.kernel(steps.driven_forces)(own.H, *rest)
        return [tau + m * forces[:-1], qdd + delta]

    def _moving(self, qdd: Any) -> list[_Local]:
        shapes, found = ((3, 3), (3,), (self.scan.dof, 6), (6,), (6,)), []
        for level in self.levels:
            found.append(_Local(*(self.arrays.zeros(*level.shape, *shape) for shape in shapes)))
            found[-1].R[...] = level.none["rotation"][0]
        for i, alike in enumerate(self.scan.kinds):
            numbers, of_q, of_v = alike.placed(self.arrays)
            q, qd = self.given["q"][of_q], self.given["qd"][of_v]
            made = alike.motion(numbers, q, qd, qdd[of_v])
            for level, local in zip(self.levels, found, strict=True):
                rows, at = level.alike[i]
                for x, y in zip(local, made, strict=True):
                    x[at] = y[rows]
        return found

    def _forces(self, local: Sequence[_Local]) -> list[Any]:
        """f̂ of all bodies, level by level: V, then α̂ and f̂."""
        V, alpha, forces, along = [], [], [], self.steps.along
        for level, (R, p, _, W, own) in zip(self.levels, local, strict=True):
            carried = level.carriers(V, level.still), level.carriers(alpha, level.falling)
            seeds = (x[level.first] for x in (R, p, W, own))
            W[level.first], a_first = self.steps.kernel(steps.first_step)(*seeds, *carried)
            pose = [R, p, level.s]
            start = [self._rigid(level, pose, W)]
            V_, a = along(steps.velocity_step, start, [*pose, W, own], 0, 1)
            a[level.first] = a_first
            start, loads = [self._rigid(level, pose, a)], self._loads(level)
            given = [*pose, a, V_, level.inertia, loads]
            alpha_, f = along(steps.force_step, start, given, 0, 1)
            V.append(V_)
            alpha.append(alpha_)
            forces.append(f)
        return forces

    def _rigid(self, level: _Level, pose: Sequence[Any], W: Any) -> Any:
        """What reaches each stretch from before: (stretches, 6)."""
        none = [level.none[n] for n in ("rotation", "translation", "vector")]
        whole = self.steps.along(steps.rigid_step, none, [*pose, W])
        return level.before(self.steps.kernel(steps.rigid_product), whole, none)[2]

    def _loads(self, level: _Level) -> Any:
        """External forces."""
        if "f_ext" not in self.given:
            return self.arrays.zeros(*level.shape, 6)
        return self.arrays.joined(self.given["f_ext"], self.arrays.zeros(1, 6))[level.body]

    def _articulated(
        self, local: Sequence[_Local], f: Sequence[Any], tau: Any, mask: Any
    ) -> list[_Left]:
        """What is left with all bodies, limbs before what carries them."""
        M, left, along = [1 * level.M for level in self.levels], [], self.steps.along
        for n in reversed(range(len(self.levels))):
            level, own = self.levels[n], local[n]
            m = level.per_dof(mask)
            H, armature = (1 - m)[..., None] * own.H, (1 - m) * level.armature + m
            given = [own.R, own.p, level.s, H, armature, M[n], f[n], level.per_dof(tau)]
            given = [level.backward(x) for x in given]
            none = [level.none[x] for x in ("one", "vector", "matrix", "vector", "matrix")]
            whole = along(steps.element_step, none, given)
            _, b, C, _, _ = level.before(self.steps.product, whole, none)
            found = along(steps.articulated_step, [C, b], given, *range(2, 8))
            P, z, G, nu, C, b = (level.backward(x) for x in found)
            left.insert(0, _Left(P, z, G, nu, H))
            for limbs in level.limbs:
                M[limbs.level][limbs.at] += C[limbs.start]
                f[limbs.level][limbs.at] += b[limbs.start]
        return left

    def _accelerations(
        self, local: Sequence[_Local], left: Sequence[_Left]
    ) -> tuple[list[Any], Any]:
        """α of all bodies, level by level, and what the joints make of it: (nv,)."""
        alpha, delta = [], self.arrays.zeros(self.mech.nv + 1)
        for level, own, part in zip(self.levels, local, left, strict=True):
            begun, carried = self.arrays.zeros(*level.shape, 6), level.carriers(alpha, level.still)
            pose = own.R[level.first], own.p[level.first]
            begun[level.first] = self.steps.kernel(steps.given_step)(*pose, carried)
            given = [own.R, own.p, level.s, part.H, part.G, part.nu, begun]
            none = [level.none[n] for n in ("one", "vector")]
            whole = self.steps.along(steps.change_step, none, given)
            start = level.before(self.steps.kernel(steps.change_product), whole, none)[1:]
            alpha_, qdd = self.steps.along(steps.acceleration_step, start, given, 0, 1)
            alpha.append(alpha_)
            delta[level.v] = qdd
        return alpha, delta[:-1]
