"""Arithmetic on configurations: q lives on a manifold, its differences are vectors over nv."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..algebra.small import clip
from ..errors import ModelError
from ..model.joint import Joint
from ..model.mechanism import Mechanism
from .declare import algorithm

__all__ = [
    "Limits",
    "arriving",
    "departing",
    "difference",
    "from_middle",
    "glide_rate",
    "glided",
    "gliding",
    "integrate",
    "interpolate",
    "limits",
    "neutral",
    "normalize",
    "precise_rate",
    "precise_velocity",
    "random_configuration",
    "random_velocity",
    "tangent_rate",
    "to_middle",
]


@algorithm()
def neutral(mech: Mechanism) -> np.ndarray:
    """The configuration (nq,) in which every body's frame is at its placement."""
    return _leaders(mech, lambda joint: joint.neutral())


@algorithm()
def random_configuration(
    mech: Mechanism, rng: np.random.Generator, shape: tuple[int, ...] = ()
) -> np.ndarray:
    """Random configurations (*shape, nq) within the joint limits, those of followers included.

    Where limits of a joint and of one that mimics it exclude each other the leader's count.
    """
    return _drawn(mech, shape, lambda joint: joint.random(rng, shape), _narrowed(mech))


@algorithm()
def random_velocity(
    mech: Mechanism, rng: np.random.Generator, shape: tuple[int, ...] = ()
) -> np.ndarray:
    """Random velocities (*shape, nv) within the limits; ±1 rad/s or m/s where there is none."""

    def drawn(joint: Joint) -> np.ndarray:
        limit = np.array(joint.velocity_limit)
        most = np.where(np.isfinite(limit), limit, 1.0)
        return rng.uniform(-most, most, size=(*shape, joint.nv))

    return _drawn(mech, shape, drawn)


@algorithm(result="q_new")
def integrate(mech: Mechanism, q: np.ndarray, dv: np.ndarray) -> np.ndarray:
    """q ⊞ dv: the configuration after moving with the constant velocity dv for a unit of time."""
    return _leaders(mech, lambda joint, qk, dvk: joint.integrate(qk, dvk), (q, "q"), (dv, "v"))


@algorithm(result="dv")
def difference(mech: Mechanism, q0: np.ndarray, q1: np.ndarray) -> np.ndarray:
    """q1 ⊟ q0: the velocity (nv,) that leads from q0 to q1 in a unit of time."""
    return _leaders(mech, lambda joint, a, b: joint.difference(a, b), (q0, "q"), (q1, "q"))


@algorithm()
def interpolate(mech: Mechanism, q0: np.ndarray, q1: np.ndarray, s: Any) -> np.ndarray:
    """q0 ⊞ s (q1 ⊟ q0): a part s of the shortest way from q0 to q1."""

    def between(joint: Joint, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return joint.integrate(a, s * joint.difference(a, b))

    return _leaders(mech, between, (q0, "q"), (q1, "q"))


@algorithm()
def normalize(mech: Mechanism, q: np.ndarray) -> np.ndarray:
    """The same configuration with quaternions of unit length."""
    return _leaders(mech, lambda joint, qk: joint.normalize(qk), (q, "q"))


def to_middle(mech: Mechanism, q: np.ndarray, u: np.ndarray) -> np.ndarray:
    """The middle of a step of twice u that starts at q."""
    return _leaders(mech, lambda joint, qk, uk: joint.to_middle(qk, uk), (q, "q"), (u, "v"))


def from_middle(mech: Mechanism, q: np.ndarray, u: np.ndarray) -> np.ndarray:
    """The end of a step of twice u whose middle is q."""
    return _leaders(mech, lambda joint, qk, uk: joint.from_middle(qk, uk), (q, "q"), (u, "v"))


def glided(mech: Mechanism, q: Any, h: Any, u: Any) -> np.ndarray:
    """The configuration after a time h of a motion with u, free bodies going straight."""
    return _leaders(mech, lambda joint, qk, uk: joint.glided(qk, h, uk), (q, "q"), (u, "v"))


def gliding(mech: Mechanism, h: Any, u: Any, v: Any) -> np.ndarray:
    """v in the axes at the end of such a motion."""
    return _leaders(mech, lambda joint, uk, vk: joint.gliding(h, uk, vk), (u, "v"), (v, "v"))


def glide_rate(mech: Mechanism, v: Any) -> np.ndarray:
    """What axes that turn along take from v in a unit of time."""
    return _leaders(mech, lambda joint, vk: joint.glide_rate(vk), (v, "v"))


def departing(mech: Mechanism, h: Any, v: Any, p: Any, f: Any) -> np.ndarray:
    """−∂L_d/∂q₀: the momenta at the start of a step of length h.

    L_d(q₀, q₁) = h L(q, v) with the middle q and the rates v there; p, f: ∂L/∂q̇ and ∂L/∂q + forces
    at (q, v).
    """
    start = lambda joint, vk, pk, fk: _start(joint, h, vk, pk, fk)  # noqa: E731
    return _leaders(mech, start, (v, "v"), (p, "v"), (f, "v"))


def arriving(mech: Mechanism, h: Any, v: Any, p: Any, f: Any, start: Any) -> np.ndarray:
    """∂L_d/∂q₁: the momenta at the end of such a step, for those that it starts with.

    What those differ by from `departing` is carried along: no momentum is lost.
    """

    def end(joint: Joint, vk: Any, pk: Any, fk: Any, sk: Any) -> np.ndarray:
        if joint.commuting:
            return sk + h * fk
        left = sk - _start(joint, h, vk, pk, fk)
        return _start(joint, -h, vk, pk, fk) + joint.carried(0.5 * h * vk, left)

    return _leaders(mech, end, (v, "v"), (p, "v"), (f, "v"), (start, "v"))


def _start(joint: Joint, h: Any, v: Any, p: Any, f: Any) -> np.ndarray:
    # rotors are not turned with the body that they drive
    rotors = 0.0 if joint.commuting else np.array(joint.armature) * v
    return joint.departing(0.5 * h * v, p - rotors, 0.5 * h * f) + rotors


@algorithm()
def tangent_rate(mech: Mechanism, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """The rate of u at which q ⊞ u moves with velocity v, to O(u⁴); for integrators."""
    return _leaders(mech, lambda joint, a, b: joint.tangent_rate(a, b), (u, "v"), (v, "v"))


def precise_rate(mech: Mechanism, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """`tangent_rate` to O(u¹⁰)."""
    return _leaders(mech, lambda joint, a, b: joint.tangent_rate(a, b, 10), (u, "v"), (v, "v"))


def precise_velocity(mech: Mechanism, u: np.ndarray, rate: np.ndarray) -> np.ndarray:
    """The velocity of q ⊞ u for a rate of u, to O(u¹⁶)."""
    by = (u, "v"), (rate, "v")
    return _leaders(mech, lambda joint, a, b: joint.tangent_velocity(a, b, 16), *by)


class Limits(NamedTuple):
    """Of every DoF the least and the most of its coordinate, and of its rate, all (nv,).

    place: which entry of q it is, −1 for a DoF of a joint with a quaternion, which has no limits.
    """

    lower: np.ndarray
    upper: np.ndarray
    velocity: np.ndarray
    place: np.ndarray

    @property
    def bounded(self) -> list[int]:
        """The DoF that have limits of position."""
        return np.flatnonzero(np.isfinite(self.lower) | np.isfinite(self.upper)).tolist()

    def kept(self, q: np.ndarray) -> np.ndarray:
        """q with every coordinate within its limits."""
        out = list(q)
        for i in self.bounded:
            at = self.place[i]
            out[at] = clip(out[at], float(self.lower[i]), float(self.upper[i]))
        return np.array(out)

    def room(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """How far every DoF may go down and up from q: (nv,) each, ∓∞ where nothing bounds."""
        coordinates = [q[at] if at >= 0 else 0.0 for at in self.place]
        sides = [
            [b if np.isinf(b) else b - x for b, x in zip(side.tolist(), coordinates, strict=True)]
            for side in (self.lower, self.upper)
        ]
        return np.array(sides[0]), np.array(sides[1])

    def rates(self, q: np.ndarray, dt: float) -> tuple[np.ndarray, np.ndarray]:
        """The least and the most rate of every DoF that stays within all limits for a time dt."""
        least, most = [], []
        for a, b, v in zip(*self.room(q), self.velocity.tolist(), strict=True):
            least.append(-v if _infinite(a) else clip(a / dt, -v, v))
            most.append(v if _infinite(b) else clip(b / dt, -v, v))
        return np.array(least), np.array(most)


def _infinite(x: Any) -> bool:
    return isinstance(x, float) and np.isinf(x)


# of a coordinate: limits that exclude each other by less do so by rounding
_SAME = 1e-9


def limits(mech: Mechanism, strict: bool = True) -> Limits:
    """The limits of a mechanism; a joint that others mimic keeps theirs too.

    strict: refuse limits that exclude each other; else those of the first one count.
    """
    lower, upper, velocity = np.full((3, mech.nv), np.inf) * [[-1], [1], [1]]
    place = np.full(mech.nv, -1)
    offsets, ratios = mech.coordinates(np.zeros(mech.nq)), mech.rates(np.ones(mech.nv))
    for (_, k), b in zip(mech.outward(), mech.bodies[1:], strict=True):
        joint, dof = b.joint, mech.v_slice(b.joint_name)
        with np.errstate(divide="ignore"):
            reach = np.array(joint.velocity_limit) / abs(ratios[k])
        velocity[dof] = np.minimum(velocity[dof], reach)
        if joint.nq == joint.nv and ratios[k].all():
            at = mech.q_slice(b.joint_name)
            place[dof] = np.arange(at.start, at.stop)
            ends = (np.array([joint.lower, joint.upper]) - offsets[k]) / ratios[k]
            low, high = np.maximum(lower[dof], ends.min(0)), np.minimum(upper[dof], ends.max(0))
            touching = (low > high) & (low - high <= _SAME * (1 + abs(low)))
            low = np.where(touching, high, low)
            if (low <= high).all():
                # no −0, of which a range of no length would be negative
                lower[dof], upper[dof] = low + 0.0, high + 0.0
            elif strict:
                raise _excluded(mech, b.joint_name, (lower[dof], upper[dof]), np.sort(ends, axis=0))
    return Limits(lower, upper, velocity, place)


def _excluded(mech: Mechanism, name: str, others: Sequence[np.ndarray], own: Any) -> ModelError:
    """What to say of a joint whose limits exclude those of the joints that it moves with."""
    dof = mech.v_slice(name)
    leaders = (b.joint_name for b in mech.bodies[1:] if b.joint.mimic is None)
    leader = next(x for x in leaders if mech.v_slice(x) == dof)
    own, told = ([f"{x:.6g}" for x in np.ravel(part)] for part in (own, others))
    return ModelError(
        f"{mech.name!r}: no configuration is within the limits of joint {name!r} and of those that "
        f"move with it: {leader!r} would have to be from {own[0]} to {own[-1]} and from {told[0]} "
        f"to {told[-1]}; change the limits, or the mimic"
    )


def _narrowed(mech: Mechanism) -> list[Joint]:
    """The joints that lead, within the limits of their followers too."""
    leaders = [b for b in mech.bodies[1:] if b.joint.mimic is None]
    if not mech.has_followers:
        return [b.joint for b in leaders]
    bounds, found = limits(mech, strict=False), []
    for b in leaders:
        dof = mech.v_slice(b.joint_name)
        ends = {"lower": tuple(bounds.lower[dof]), "upper": tuple(bounds.upper[dof])}
        plain = b.joint.nq == b.joint.nv
        found.append(replace(b.joint, **ends) if plain else b.joint)
    return found


def _drawn(
    mech: Mechanism,
    shape: tuple[int, ...],
    draw: Callable[[Joint], np.ndarray],
    joints: Sequence[Joint] | None = None,
) -> np.ndarray:
    """What is drawn for each joint that leads, side by side."""
    leaders = joints or [b.joint for b in mech.bodies[1:] if b.joint.mimic is None]
    return np.concatenate([np.zeros((*shape, 0)), *map(draw, leaders)], axis=-1)


def _leaders(
    mech: Mechanism, fn: Callable[..., np.ndarray], *vectors: tuple[np.ndarray, str]
) -> np.ndarray:
    """fn of each joint that leads and of its share of the vectors, one after the other."""
    parts: list[np.ndarray] = [np.zeros(0)]
    joints: list[tuple[Joint, dict[str, slice]]] = [
        (b.joint, {"q": mech.q_slice(b.joint_name), "v": mech.v_slice(b.joint_name)})
        for b in mech.bodies[1:]
        if b.joint.mimic is None
    ]
    for joint, share in joints:
        parts.append(fn(joint, *(np.asarray(x)[share[kind]] for x, kind in vectors)))
    return np.concatenate(parts)
