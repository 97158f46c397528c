"""What every joint has: its data, checked, and the arithmetic of its coordinates.

Each kind (in `joints.py`) gives its pose (R, p), its hinge map H (dof × 6, in the axes of the body
it carries) and the derivatives of H where H is not constant.  All of it runs on any scalar.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from math import factorial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..algebra.spatial import cross_motion
from ..errors import ModelError

__all__ = ["HingeRates", "Joint", "Mimic", "Numbers", "PerDof"]

Numbers = Sequence[float] | np.ndarray
PerDof = float | Numbers
_INF = float("inf")
# u/(1 − e⁻ᵘ) = 1 + Σ uᵏ / these
_BERNOULLI = (2, 12, None, -720, None, 30240, None, -1209600)
_LOADS = ("armature", "stiffness", "damping", "friction")


@dataclass(frozen=True)
class Mimic:
    """This joint follows another: q = ratio · q_leader + offset.  It has no DoF of its own."""

    joint: str
    ratio: float = 1.0
    offset: float = 0.0


class HingeRates(NamedTuple):
    """How H turns and bends as the joint moves; zero for a joint of one DoF with a constant H.

    With W = Hᵀ q̇ and ∂_b the derivative along DoF b, all in body axes:

    spin: (nv, 6), the rate of H seen from the parent, W × H_a + Σ_b q̇_b ∂_b H_a.
    slope: (nv, 6), σ_b = Σ_a q̇_a ∂_b H_a, the change of W with q but for its turning along.
    bend: (nv, 6), W × σ_b + Σ_a (q̈_a ∂_b H_a + q̇_a ∂_b Ḣ_a).
    bracket: (nv, nv, 6), H_a × H_b − ∂_b H_a.
    """

    spin: np.ndarray
    slope: np.ndarray
    bend: np.ndarray
    bracket: np.ndarray


@dataclass(frozen=True)
class Joint(ABC):
    """A joint and its data; every number of the data may be one for all DoF or one per DoF.

    armature: reflected rotor inertia, kg m² (kg for sliding DoF), added to the diagonal of M.
    stiffness, rest: a spring on every DoF and where it is slack, as a displacement from neutral.
    damping, friction: viscous and Coulomb coefficients.  Springs, damping and friction are in
    `passive_forces` and act in simulation; they are not in the dynamics.
    lower, upper: limits of q, where q is a vector; velocity_limit, effort_limit: of qd and tau.
    restitution: the part of its speed with which a DoF comes back from a limit, in simulation.
    """

    nq: ClassVar[int]
    nv: ClassVar[int]
    # what those of q and of qd are, for people
    entries: ClassVar[tuple[str, str]] = ("coordinates", "their rates")

    armature: PerDof = field(default=0.0, kw_only=True)
    stiffness: PerDof = field(default=0.0, kw_only=True)
    rest: PerDof = field(default=0.0, kw_only=True)
    damping: PerDof = field(default=0.0, kw_only=True)
    friction: PerDof = field(default=0.0, kw_only=True)
    lower: PerDof = field(default=-_INF, kw_only=True)
    upper: PerDof = field(default=_INF, kw_only=True)
    restitution: PerDof = field(default=0.0, kw_only=True)
    velocity_limit: PerDof = field(default=_INF, kw_only=True)
    effort_limit: PerDof = field(default=_INF, kw_only=True)
    mimic: Mimic | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        for name in (*_LOADS, "velocity_limit", "effort_limit", "restitution"):
            values = self._per_dof(name)
            if any(v < 0 for v in values):
                raise ModelError(f"{self}: {name} is {min(values):g}; it must not be negative")
        if max(self._per_dof("restitution"), default=0.0) > 1:
            raise ModelError(f"{self}: restitution is {self.restitution}; it is no more than 1")
        if not np.isfinite(self._per_dof("rest")).all():
            raise ModelError(f"{self}: rest is {self.rest}; give finite numbers")
        lower, upper = self._per_dof("lower"), self._per_dof("upper")
        if any(a > b for a, b in zip(lower, upper, strict=True)):
            raise ModelError(f"{self}: lower limit {lower} is above upper limit {upper}")
        if self.nq != self.nv and np.isfinite([*lower, *upper]).any():
            raise ModelError(f"{self}: has a quaternion in q, which no lower and upper can bound")
        if self.mimic is not None and self.nv != 1:
            raise ModelError(f"{self}: has {self.nv} DoF; only a joint of one DoF can mimic")
        for axis in (f.name for f in fields(self) if f.name.startswith("axis")):
            object.__setattr__(self, axis, _unit(axis, getattr(self, axis), self))

    def _per_dof(self, name: str) -> tuple[float, ...]:
        """Replace a datum by one float per DoF, and check them."""
        datum = getattr(self, name)
        done = isinstance(datum, tuple) and [type(x) for x in datum] == [float] * self.nv
        if done and all(x == x for x in datum):
            return datum
        given = _numbers(f"{self}: {name}", datum)
        if given.shape not in ((), (self.nv,)):
            raise ModelError(
                f"{self}: {name} has shape {given.shape}; give 1 number, or {self.nv}, one per DoF"
            )
        values = tuple(float(x) for x in given) if given.ndim else (float(given),) * self.nv
        if any(x != x for x in values):
            raise ModelError(f"{self}: {name} is NaN; give a number")
        object.__setattr__(self, name, values)
        return values

    def __str__(self) -> str:
        return type(self).__name__

    @property
    def commuting(self) -> bool:
        """Whether `integrate` adds: finite motions of the joint commute, or q is a chart."""
        return True

    @abstractmethod
    def pose(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(R, p) of the body's frame in the joint's frame on the parent."""

    @abstractmethod
    def H(self, q: np.ndarray) -> np.ndarray:
        """The hinge map (nv, 6): the body moves relative to its parent with Hᵀ qd, body axes."""

    def turn(self, q: np.ndarray) -> tuple[int, Any, Any] | None:
        """(i, cos, sin) if the pose is no more than a turn about coordinate axis i."""
        return None

    def H_rate(self, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """The componentwise time derivative of H, (nv, 6): zero unless H depends on q."""
        return np.zeros((self.nv, 6))

    def H_slope(self, q: np.ndarray) -> np.ndarray:
        """∂_b H_a, (nv, nv, 6), b first: zero unless H depends on q."""
        return np.zeros((self.nv, self.nv, 6))

    def H_rate_slope(self, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """∂_b of `H_rate`, (nv, nv, 6), b first: zero unless H depends on q."""
        return np.zeros((self.nv, self.nv, 6))

    def hinge_rates(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> HingeRates:
        """What derivatives of the dynamics need to know of this joint besides H."""
        H, d, d_rate = self.H(q), self.H_slope(q), self.H_rate_slope(q, qd)
        slope = np.array([d_b.T @ qd for d_b in d])
        changing = np.array([d_b.T @ qdd + r_b.T @ qd for d_b, r_b in zip(d, d_rate, strict=True)])
        bend = cross_motion(H.T @ qd, slope.T).T + changing
        bracket = np.array([cross_motion(H[a], H.T).T - d[:, a] for a in range(self.nv)])
        spin = np.array([-(row.T @ qd) for row in bracket])
        return HingeRates(spin, slope, bend, bracket)

    def neutral(self) -> np.ndarray:
        """The coordinates at which the body's frame coincides with the joint's frame."""
        return np.zeros(self.nq)

    def random(self, rng: np.random.Generator, shape: tuple[int, ...] = ()) -> np.ndarray:
        """Uniform within the limits; ±π for an angle and ±1 m for a length that has none."""
        reach = np.where(np.abs(self.H(self.neutral())[:, :3]).any(axis=1), np.pi, 1.0)
        lower, upper = np.array(self.lower), np.array(self.upper)
        low = np.where(np.isfinite(lower), lower, np.minimum(-reach, upper - reach))
        high = np.where(np.isfinite(upper), upper, np.maximum(reach, low + reach))
        return rng.uniform(low, high, size=(*shape, self.nq))

    def normalize(self, q: np.ndarray) -> np.ndarray:
        """The same place with a quaternion, if q has one, of unit length."""
        return q

    def integrate(self, q: np.ndarray, dv: np.ndarray) -> np.ndarray:
        """q after moving along the constant velocity dv for a unit of time."""
        return q + dv

    def difference(self, q0: np.ndarray, q1: np.ndarray) -> np.ndarray:
        """The dv with integrate(q0, dv) = q1, the shortest one."""
        return q1 - q0

    def coordinate_rates(self, q: np.ndarray) -> np.ndarray:
        """E with dq/dt = E q̇, (nv, nv): where q is a vector, which limits are for."""
        return np.eye(self.nv)

    def stretch(self, q: np.ndarray) -> np.ndarray:
        """How far each DoF is from where its spring is slack: (nv,)."""
        return self.difference(self.integrate(self.neutral(), np.array(self.rest)), q)

    def spring_force(self, q: np.ndarray) -> np.ndarray:
        """The force of the springs, the negative gradient of ½ Σ stiffness · stretch²: (nv,)."""
        return -np.array(self.stiffness) * self.stretch(q)

    def tangent_rate(self, u: np.ndarray, v: np.ndarray, order: int = 4) -> np.ndarray:
        """u̇ for which integrate(q, u) moves with velocity v: v + ½[u,v] + ⅟₁₂[u,[u,v]] − …, to
        O(uᵒʳᵈᵉʳ).
        """
        return self._brackets(u, v, _BERNOULLI[: order - 2])

    def tangent_velocity(self, u: np.ndarray, rate: np.ndarray, order: int = 4) -> np.ndarray:
        """The velocity of integrate(q, u) for the rate u̇: u̇ − ½[u,u̇] + ⅙[u,[u,u̇]] − …"""
        return self._brackets(u, rate, [(-1) ** k * factorial(k + 1) for k in range(1, order)])

    def _brackets(self, u: np.ndarray, v: np.ndarray, parts: Sequence[float | None]) -> np.ndarray:
        """v + Σ [u, [u, … v]] / part."""
        if self.commuting:
            return v
        H, total = self.H(self.neutral()), v
        for part in parts:
            v = H @ cross_motion(H.T @ u, H.T @ v)
            total = total if part is None else total + v / part
        return total

    # steps about a middle, for integrators: from q₀ over q to q₁, as far on both sides

    def to_middle(self, q: np.ndarray, u: np.ndarray) -> np.ndarray:
        """The middle of a step of twice u that starts at q; `integrate` but for O(u³)."""
        if not self.commuting:
            raise ModelError(
                f"{self}: its velocities do not commute; give it `to_middle`, `from_middle`, "
                f"`departing` and `carried`"
            )
        return q + u

    def from_middle(self, q: np.ndarray, u: np.ndarray) -> np.ndarray:
        """The end of a step of twice u whose middle is q; with −u, its start."""
        return q + u

    def departing(self, u: np.ndarray, mu: np.ndarray, f: np.ndarray) -> np.ndarray:
        """−∂/∂q₀ of a function of q and u with derivatives f along q and μ along u, f halved.

        So the momentum at the start of a step, from that of its middle and half its impulse; the
        momentum at the end is departing(−u, μ, −f).
        """
        return mu - f

    def carried(self, u: np.ndarray, p: np.ndarray) -> np.ndarray:
        """A momentum at the start of such a step as the parent has it, in the axes of its end."""
        return p

    def glided(self, q: np.ndarray, h: Any, u: np.ndarray) -> np.ndarray:
        """q after moving for a time h with u, which stays as the parent has it; `integrate` but for
        O(h²).
        """
        return self.integrate(q, h * u)

    def gliding(self, h: Any, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        """v, which stays as the parent has it, in the axes at the end of such a motion."""
        return v

    def glide_rate(self, v: np.ndarray) -> np.ndarray:
        """−d/dh of `gliding` with u = v at h = 0, what axes that turn along make of v."""
        return np.zeros(self.nv)

    def drift(self, v: np.ndarray) -> np.ndarray:
        """−[v, ·], (nv, nv): how a displacement changes if both its ends move with velocity v."""
        if self.commuting:
            return np.zeros((self.nv, self.nv))
        H = self.H(self.neutral())
        return -(H @ cross_motion(H.T @ v, H.T))


def _numbers(what: str, value: Any) -> np.ndarray:
    try:
        return np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise ModelError(f"{what} is {value!r}; give numbers") from None


def _unit(name: str, axis: Any, joint: Joint) -> tuple[float, ...]:
    a = _numbers(f"{joint}: {name}", axis)
    if a.shape != (3,) or not np.isfinite(a).all():
        raise ModelError(f"{joint}: {name} is {axis}; give three finite numbers")
    length = np.linalg.norm(a)
    if length < 1e-12:
        raise ModelError(f"{joint}: {name} is {tuple(a.tolist())}; give a non-zero axis")
    # one that was made here stays as it is
    unit = a if abs(length - 1) <= 2 * np.finfo(float).eps else a / length
    return tuple(unit.tolist())
