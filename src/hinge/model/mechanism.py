"""The mechanism: an immutable tree of bodies and joints, and the walks that sweeps are made of.

Bodies are numbered parents first, depth first; body 0 is the ground.  An algorithm asks for what
it needs at a configuration (`phi`, `H`, `M`), keeps its per-body values in `slots`, walks `outward`
and `inward`, and joins per-body results into vectors and matrices over nv.  Joints that mimic
others are dealt with here, in `coordinates`, `rates` and the joins: no sweep knows about them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..algebra.spatial import ForceTransfer, Inertia, SpatialInertia, Transform
from ..errors import ArgumentError
from .joint import HingeRates, Joint
from .joints import Fixed
from .least import least_inertias
from .shapes import Shape

if TYPE_CHECKING:
    # to a type checker a property: it does not take a cached one for an attribute of a protocol
    cached_property = property
else:
    from functools import cached_property

__all__ = [
    "GROUND",
    "Body",
    "Frame",
    "Mechanism",
    "did_you_mean",
    "ground",
    "hinge_map",
    "transfer",
]

GROUND = "world"


@dataclass(frozen=True)
class Body:
    """A rigid body and the joint that carries it.

    placement: the joint's frame in the parent body; offset: the body in the joint's moving frame.
    """

    name: str
    parent: int
    joint_name: str
    joint: Joint
    placement: Transform
    inertia: Inertia
    offset: Transform = field(default_factory=Transform)
    visuals: tuple[Shape, ...] = ()
    collisions: tuple[Shape, ...] = ()


@dataclass(frozen=True)
class Frame:
    """A named pose fixed to a body."""

    name: str
    body: int
    placement: Transform = field(default_factory=Transform)

    @property
    def transfer(self) -> ForceTransfer:
        """φ(body, frame)."""
        return self.placement.transfer


class _Meetings:
    """The `Meetings` of a mechanism, by body."""

    def __init__(self) -> None:
        self._brought: dict[int, list[tuple[int, Any]]] = {}

    def bring(self, j: int, c: int, what: Any) -> None:
        """As in `Meetings`."""
        self._brought.setdefault(j, []).append((c, what))

    def pairs(self) -> Iterator[tuple[int, Any, Any]]:
        """As in `Meetings`."""
        for j, brought in self._brought.items():
            for (c, a), (d, b) in combinations(brought, 2):
                if c != d:
                    yield j, a, b


@dataclass
class _Shared:
    """A value that belongs to no body."""

    value: Any


class _Share(NamedTuple):
    """Where a body finds its coordinates: the leader's slices, and how it follows them."""

    leader: int
    q: slice
    v: slice
    ratio: float
    offset: float


@dataclass(frozen=True)
class Mechanism:
    """An immutable mechanism, made by `MechanismBuilder`; compared, hashed, pickled by value."""

    name: str
    bodies: tuple[Body, ...]
    frames: tuple[Frame, ...]
    gravity: tuple[float, float, float] = (0.0, 0.0, -9.81)

    # names and sizes

    @cached_property
    def joint_names(self) -> tuple[str, ...]:
        """Joints that move, in the order of their bodies; followers included."""
        return tuple(b.joint_name for b in self.bodies[1:])

    @cached_property
    def body_names(self) -> tuple[str, ...]:
        """Moving bodies, without the ground: the rows of `f_ext`."""
        return tuple(b.name for b in self.bodies[1:])

    @cached_property
    def frame_names(self) -> tuple[str, ...]:
        """Every body, every merged link and every added frame, the ground included."""
        return tuple(f.name for f in self.frames)

    @cached_property
    def _joint_numbers(self) -> dict[str, int]:
        return {b.joint_name: k for k, b in enumerate(self.bodies) if k}

    @cached_property
    def _body_numbers(self) -> dict[str, int]:
        return {b.name: k for k, b in enumerate(self.bodies)}

    @cached_property
    def _frame_numbers(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.frame_names)}

    @property
    def n_bodies(self) -> int:
        """How many bodies move."""
        return len(self.bodies) - 1

    @cached_property
    def nq(self) -> int:
        """The number of coordinates."""
        return sum(b.joint.nq for b in self.bodies if b.joint.mimic is None)

    @cached_property
    def nv(self) -> int:
        """The number of degrees of freedom."""
        return sum(b.joint.nv for b in self.bodies if b.joint.mimic is None)

    @cached_property
    def has_followers(self) -> bool:
        """Whether some joint mimics another."""
        return any(b.joint.mimic for b in self.bodies)

    def joint_index(self, name: str) -> int:
        """The number of the body that the named joint carries."""
        return _lookup("joint", name, self._joint_numbers, self.name)

    def body_index(self, name: str) -> int:
        """The number of the named body; 0 is the ground."""
        return _lookup("body", name, self._body_numbers, self.name)

    def frame(self, name: str) -> Frame:
        """The named frame; by the name of a joint, what it moves, where it does."""
        if isinstance(name, str) and name not in self._frame_numbers:
            k = self._joint_numbers.get(name)
            if k is not None:
                offset = self.bodies[k].offset
                return Frame(name, k, offset if offset == Transform() else offset.inv)
        return self.frames[_lookup("frame", name, self._frame_numbers, self.name)]

    def q_slice(self, joint: str) -> slice:
        """Where the joint's coordinates are in q; a follower's are its leader's."""
        return self._shares[self.joint_index(joint)].q

    def v_slice(self, joint: str) -> slice:
        """Where the joint's rates are in qd, qdd and tau; a follower's are its leader's."""
        return self._shares[self.joint_index(joint)].v

    # traversals

    def outward(self) -> Iterator[tuple[int, int]]:
        """(parent, body) from the base to the tips."""
        return ((b.parent, k) for k, b in enumerate(self.bodies) if k)

    def inward(self) -> Iterator[tuple[int, int]]:
        """(parent, body) from the tips to the base."""
        return ((self.bodies[k].parent, k) for k in range(self.n_bodies, 0, -1))

    def ancestors(self, k: int) -> Iterator[tuple[int, int]]:
        """(parent, body) from body k to its root; nothing for the ground."""
        while k:
            p = self.bodies[k].parent
            yield p, k
            k = p

    def descent(self, k: int, above: int = 0) -> Iterator[tuple[int, int]]:
        """(parent, body) from the root, or from what a body above carries, to body k."""
        return reversed([(p, j) for p, j in self.ancestors(k) if j > above])

    def common_ancestor(self, j: int, k: int) -> int:
        """The nearest body that carries both of two bodies, or is one of them; 0 if none does."""
        below = {i for _, i in self.ancestors(j)}
        return next((i for _, i in self.ancestors(k) if i in below), 0)

    def carries(self, k: int, j: int) -> bool:
        """Whether body j is body k or beyond it; the ground is beyond nothing."""
        return any(i == k for _, i in self.ancestors(j))

    def climb(self, k: int) -> Iterator[tuple[int, int]]:
        """(parent, body) from body k to its root, without the last step onto the ground."""
        return ((p, j) for p, j in self.ancestors(k) if p)

    @property
    def is_chain(self) -> bool:
        """Whether no two bodies are on different branches."""
        return all(body.parent == k for k, body in enumerate(self.bodies[1:]))

    def stretches(self, n: int) -> list[bool]:
        """Whether each body is the first of n after one another."""
        depth = [-1]
        for body in self.bodies[1:]:
            depth.append(depth[body.parent] + 1)
        return [d % n == 0 for d in depth]

    def pairs(self) -> dict[tuple[int, int], np.ndarray]:
        """Blocks (i, j) of pairs of bodies on one branch, to be filled in."""
        return {}

    def meetings(self) -> _Meetings:
        """What bodies bring to those where their branches meet."""
        return _Meetings()

    def slots(self, n: int) -> list[list[Any]]:
        """n lists to be filled in by a sweep, an entry per body; the ground's is six zeros."""
        return [[np.zeros(6), *[None] * self.n_bodies] for _ in range(n)]

    def each(self, make: Callable[[int], Any]) -> Sequence[Any]:
        """make(k) for every body, the ground included, to be read by a sweep."""
        return [make(k) for k in range(len(self.bodies))]

    def filled(self, make: Callable[[int], Any]) -> list[Any]:
        """A list with make(k) for every body, the ground included, to be changed by a sweep."""
        return [make(k) for k in range(len(self.bodies))]

    def placed(self, values: Mapping[int, np.ndarray]) -> Sequence[Any]:
        """The values on the bodies that have one, zeros of their shape on all others."""
        nothing = np.zeros(np.shape(next(iter(values.values()), 0.0)))
        return [values.get(k, nothing) for k in range(len(self.bodies))]

    def riding(self, values: Mapping[int, np.ndarray]) -> list[Any]:
        """The same as a list, to be changed by a sweep inward along the ways from those bodies."""
        return [*self.placed(values)]

    def shared(self, value: Any) -> _Shared:
        """A value that belongs to no body, for sweeps to read and to change."""
        return _Shared(value)

    # what sweeps read

    @cached_property
    def M(self) -> tuple[SpatialInertia, ...]:
        """M(k), the spatial inertia of each body about its frame."""
        return (SpatialInertia.zero(), *(b.inertia.spatial for b in self.bodies[1:]))

    @cached_property
    def armature(self) -> tuple[np.ndarray, ...]:
        """The reflected rotor inertias of each joint."""
        return tuple(np.array(b.joint.armature) for b in self.bodies)

    @cached_property
    def least(self) -> tuple[np.ndarray, ...]:
        """What an articulated inertia along each joint has to exceed to be more than rounding."""
        return least_inertias(self)

    @cached_property
    def free_fall(self) -> np.ndarray:
        """(0; g), the spatial acceleration of whatever nothing holds."""
        return np.array([0.0, 0.0, 0.0, *self.gravity])

    def coordinates(self, q: Any) -> list[np.ndarray]:
        """The coordinates of each body's joint."""
        q = np.asarray(q)
        return [np.zeros(0)] + [
            q[s.q] if s.ratio == 1 and s.offset == 0 else s.ratio * q[s.q] + s.offset
            for s in self._shares[1:]
        ]

    def rates(self, qd: Any) -> list[np.ndarray]:
        """The rates (or accelerations) of each body's joint."""
        qd = np.asarray(qd)
        return [np.zeros(0)] + [
            qd[s.v] if s.ratio == 1 else s.ratio * qd[s.v] for s in self._shares[1:]
        ]

    def driven(self, active: Any) -> np.ndarray:
        """1 for active DoF, 0 for passive ones: (nv,); active: names of joints, or such a mask."""
        mask = _marks(active)
        if not mask.size and isinstance(active, Iterator):
            raise ArgumentError(
                f"{self.name!r}: active is a {type(active).__name__} that gives nothing, used up "
                f"perhaps; expected a tuple of names of joints, () for none"
            )
        if all(isinstance(name, str) for name in mask.flat):
            chosen, mask = mask.flat, np.zeros(self.nv)
            for name in chosen:
                mask[self.v_slice(str(name))] = 1.0
            return mask
        lost = any(mark is None for mark in mask.flat)
        if mask.shape != (self.nv,) or lost:
            raise ArgumentError(
                f"{self.name!r}: active {f'is {active!r}' if lost else f'has shape {mask.shape}'}; "
                f"expected names of joints, or a mask that says for each of the nv = {self.nv} DoF "
                f"whether it is driven"
            )
        if mask.dtype != object and not ((mask == 0) | (mask == 1)).all():
            raise ArgumentError(
                f"{self.name!r}: active is {mask.tolist()}; expected true or false for each DoF"
            )
        return mask if mask.dtype == object else mask.astype(float)

    def held_before(self, active: np.ndarray) -> list[bool]:
        """Whether all DoF before each body's joint are active, as far as numbers can tell."""
        told = active.dtype != object
        held, out = [True] * len(self.bodies), [True] * len(self.bodies)
        for p, k in self.outward():
            out[k] = held[p]
            held[k] = held[p] and bool(told and active[self._shares[k].v].all())
        return out

    def locked_beyond(self, active: np.ndarray) -> list[bool]:
        """Whether each body's joint and all beyond it are active, as far as numbers can tell."""
        told = active.dtype != object
        out = [told] * len(self.bodies)
        for p, k in self.inward():
            out[k] = out[k] and bool(told and active[self._shares[k].v].all())
            out[p] = out[p] and out[k]
        return out

    def wrenches(self, f_ext: Any) -> Sequence[np.ndarray]:
        """The external force on each body; the ground's is zero."""
        rows = np.zeros((self.n_bodies, 6)) if f_ext is None else np.asarray(f_ext)
        return [np.zeros(6), *rows]

    def points(self, points: Any) -> Sequence[np.ndarray]:
        """The point of each body at which a force acts; the ground's is its origin."""
        rows = np.zeros((self.n_bodies, 3)) if points is None else np.asarray(points)
        return [np.zeros(3), *rows]

    def phi(self, q: Any) -> list[Any]:
        """φ(p, k) of each body k and its parent p at configuration q."""
        parts = zip(self.bodies[1:], self.coordinates(q)[1:], strict=True)
        return [None, *(transfer(body, qk) for body, qk in parts)]

    def H(self, q: Any) -> list[np.ndarray]:
        """H(k), the hinge map of each body's joint at configuration q."""
        parts = zip(self.bodies, self.coordinates(q), strict=True)
        return [hinge_map(b, b.joint.H(qk)) for b, qk in parts]

    def H_rate(self, q: Any, qd: Any) -> list[np.ndarray]:
        """The componentwise rate of H(k)."""
        parts = zip(self.bodies, self.coordinates(q), self.rates(qd), strict=True)
        return [hinge_map(b, b.joint.H_rate(qk, qdk)) for b, qk, qdk in parts]

    def hinge_rates(self, q: Any, qd: Any, qdd: Any) -> list[Any]:
        """How H(k) turns and bends as the joint moves, for derivatives of the dynamics."""
        parts = zip(self.bodies, self.coordinates(q), self.rates(qd), self.rates(qdd), strict=True)
        rates = [(b, b.joint.hinge_rates(*values)) for b, *values in parts if b.parent >= 0]
        return [None, *(HingeRates(*(hinge_map(b, x) for x in r)) for b, r in rates)]

    def H_second(self, q: Any, u: Any, v: Any) -> list[np.ndarray]:
        """The derivative along v of the componentwise rate of H(k) along u."""
        parts = zip(self.bodies, self.coordinates(q), self.rates(u), self.rates(v), strict=True)
        slopes = [(b, b.joint.H_rate_slope(qk, uk), vk) for b, qk, uk, vk in parts]
        return [hinge_map(b, np.einsum("b,bij->ij", vk, slope)) for b, slope, vk in slopes]

    # what sweeps give back

    def join(self, parts: Sequence[Any]) -> np.ndarray:
        """One force per DoF from the forces at each body's joint; followers push their leader."""
        return self.join_columns({k: parts[k][None, :] for _, k in self.outward()}, 1)[0]

    def combined(self, make: Callable[..., Any], *arrays: Any) -> np.ndarray:
        """What is made of the entries of arrays (nv,), DoF by DoF."""
        return make(*map(np.asarray, arrays))

    def join_bodies(self, parts: Sequence[Any]) -> np.ndarray:
        """The columns of all bodies side by side; the ground has none."""
        return np.concatenate(parts, axis=-1)

    def join_columns(self, parts: Mapping[int, np.ndarray], rows: int) -> np.ndarray:
        """(rows, nv) from a block of columns per body; bodies left out have none."""
        out = np.zeros((rows, self.nv), dtype=_common_dtype(parts.values()))
        for k, block in parts.items():
            s = self._shares[k]
            out[:, s.v] = out[:, s.v] + (block if s.ratio == 1 else s.ratio * block)
        return out

    def join_wrenches(self, parts: Sequence[Any]) -> np.ndarray:
        """(n_bodies, 6) from the forces on all bodies."""
        return np.array(parts[1:]).reshape(-1, 6)

    def join_rows(self, parts: Sequence[Any], rows: int) -> np.ndarray:
        """(rows, nv) from the rows (dof, rows) of all bodies, as columns."""
        return self.join_columns({k: parts[k].T for _, k in self.outward()}, rows)

    def join_descent(self, k: int, parts: Sequence[Any], rows: int) -> np.ndarray:
        """(rows, nv) from the rows (dof, rows) of the bodies from the root to k, as columns."""
        return self.join_columns({j: parts[j].T for _, j in self.descent(k)}, rows)

    def join_matrix(self, blocks: Mapping[tuple[int, int], np.ndarray]) -> np.ndarray:
        """The symmetric (nv, nv) from its blocks (i, j), i an ancestor of j or j itself."""
        both = {}
        for (i, j), block in blocks.items():
            both[j, i], both[i, j] = block.T, block
        return self.join_blocks(both)

    def join_blocks(self, blocks: Mapping[tuple[int, int], np.ndarray]) -> np.ndarray:
        """(nv, nv) from blocks (i, j) of any pairs of bodies; those left out are zero."""
        out = np.zeros((self.nv, self.nv), dtype=_common_dtype(blocks.values()))
        for (i, j), block in blocks.items():
            a, b = self._shares[i], self._shares[j]
            scaled = block if a.ratio * b.ratio == 1 else a.ratio * b.ratio * block
            out[a.v, b.v] = out[a.v, b.v] + scaled
        return out

    @cached_property
    def _shares(self) -> tuple[_Share, ...]:
        shares: dict[int, _Share] = {0: _Share(0, slice(0, 0), slice(0, 0), 1.0, 0.0)}
        nq = nv = 0
        for k, body in enumerate(self.bodies):
            joint = body.joint
            if k and joint.mimic is None:
                q, v = slice(nq, nq + joint.nq), slice(nv, nv + joint.nv)
                shares[k] = _Share(k, q, v, 1.0, 0.0)
                nq, nv = q.stop, v.stop
        for k, body in enumerate(self.bodies):
            if mimic := body.joint.mimic:
                lead = shares[self.joint_index(mimic.joint)]
                shares[k] = _Share(lead.leader, lead.q, lead.v, mimic.ratio, mimic.offset)
        return tuple(shares[k] for k in range(len(self.bodies)))

    def __repr__(self) -> str:
        return f"<Mechanism {self.name!r}: {self.n_bodies} bodies, nq = {self.nq}, nv = {self.nv}>"

    def __getstate__(self) -> dict[str, Any]:
        return {name: self.__dict__[name] for name in self.__dataclass_fields__}


def ground(
    visuals: tuple[Shape, ...] = (),
    collisions: tuple[Shape, ...] = (),
    inertia: Inertia | None = None,
) -> Body:
    """Body 0, which does not move; no sweep reads its inertia."""
    still = Inertia() if inertia is None else inertia
    return Body(GROUND, -1, "", Fixed(), Transform(), still, Transform(), visuals, collisions)


def transfer(body: Body, q: np.ndarray) -> ForceTransfer:
    """φ from a body to its parent."""
    X = body.placement @ Transform(*body.joint.pose(q)) @ body.offset
    turn = body.joint.turn(q)
    if turn is None or body.offset != Transform():
        return X.transfer
    return ForceTransfer(X.rotation, X.translation, (body.placement.transfer, *turn))


def hinge_map(body: Body, H: np.ndarray) -> np.ndarray:
    """Rows of motions (…, 6) given in the joint's moving frame, in the body's frame."""
    moved = body.offset.transfer.T @ H.reshape(-1, 6).T
    return moved.T.reshape(H.shape)


def _marks(active: Any) -> np.ndarray:
    """Names of joints or marks of DoF as an array; what is neither has none of their shapes."""
    try:
        whole = isinstance(active, (str, np.ndarray))
        return np.atleast_1d(active) if whole else np.asarray(list(active))
    except (TypeError, ValueError):
        return np.array([[None]])


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint for a name that is not there: the nearest one, or all of a few."""
    import difflib

    known = tuple(known)
    near = difflib.get_close_matches(name, known, n=1)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"known: {', '.join(known[:12])}{', …' if len(known) > 12 else ''}"


def _lookup(what: str, name: str, known: dict[str, int], where: str) -> int:
    try:
        return known[name]
    except (KeyError, TypeError):  # a list, say, is no name
        hint = did_you_mean(str(name), known)
        raise ArgumentError(f"{where!r} has no {what} {name!r}; {hint}") from None


def _common_dtype(blocks: Iterable[np.ndarray]) -> np.dtype:
    return np.result_type(float, *(b.dtype for b in blocks))
