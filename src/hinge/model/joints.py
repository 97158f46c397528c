"""The kinds of joints: what a body may do relative to its parent (paper F, part 2; math §2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..algebra.exponential import translation_exp, translation_log
from ..algebra.rotation import (
    about_axis,
    cayley_momentum,
    cayley_quaternion,
    quaternion_conjugate,
    quaternion_difference,
    quaternion_exp,
    quaternion_log,
    quaternion_matrix,
    quaternion_product,
    quaternion_unit,
    random_quaternion,
    skew,
)
from ..algebra.small import atan2, cos, sin, sqrt
from ..errors import ModelError
from .joint import Joint, Mimic, Numbers

__all__ = [
    "Axial",
    "Cylindrical",
    "Fixed",
    "Free",
    "Helical",
    "Joint",
    "Mimic",
    "Planar",
    "Prismatic",
    "Revolute",
    "Spherical",
    "Translation",
    "Universal",
]

_Z = np.array([0.0, 0.0, 1.0])


def _angular(*axes: Any) -> np.ndarray:
    return np.array([[*a, 0.0, 0.0, 0.0] for a in axes])


def _linear(*axes: Any) -> np.ndarray:
    return np.array([[0.0, 0.0, 0.0, *a] for a in axes])


def _along(axis: Numbers, q: np.ndarray) -> np.ndarray:
    """The vector q · axis; q: (1,)."""
    return np.array(axis)[:, None] @ q


def _turned(quat: np.ndarray, w: np.ndarray) -> np.ndarray:
    """The unit quaternion after a turn by cay(w)."""
    turned = quaternion_product(quat, cayley_quaternion(w))
    return turned / sqrt(turned @ turned)


def _alike(joint: Joint, stiffness: np.ndarray) -> None:
    """Refuse a spring that turns harder about one axis: it would have no potential."""
    if np.ptp(stiffness) > 0:
        raise ModelError(
            f"{joint}: turns against stiffness {stiffness.tolist()}; give one number for all axes"
        )


@dataclass(frozen=True)
class Axial(Joint):
    """A joint with one axis; kinds that add no data of their own are as frozen as it is.

    Its motion is the same wherever along the axis, and however turned about it, one puts the frame.
    """

    axis: Numbers = (0.0, 0.0, 1.0)


class Revolute(Axial):
    """Turns about an axis: R = exp(a× q)."""

    nq: ClassVar[int] = 1
    nv: ClassVar[int] = 1
    entries: ClassVar[tuple[str, str]] = ("angle", "its rate")

    def pose(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return about_axis(np.array(self.axis), q), np.zeros(3)

    def turn(self, q: np.ndarray) -> tuple[int, Any, Any] | None:
        if sorted(self.axis) != [0.0, 0.0, 1.0]:
            return None
        return list(self.axis).index(1.0), cos(q[0]), sin(q[0])

    def H(self, q: np.ndarray) -> np.ndarray:
        return _angular(self.axis)


class Prismatic(Axial):
    """Slides along an axis: p = a q."""

    nq: ClassVar[int] = 1
    nv: ClassVar[int] = 1
    entries: ClassVar[tuple[str, str]] = ("length", "its rate")

    def pose(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.eye(3), _along(self.axis, q)

    def H(self, q: np.ndarray) -> np.ndarray:
        return _linear(self.axis)


@dataclass(frozen=True)
class Helical(Axial):
    """A screw: turns by q about an axis and slides pitch · q along it; pitch in m per rad."""

    nq: ClassVar[int] = 1
    nv: ClassVar[int] = 1
    entries: ClassVar[tuple[str, str]] = ("angle", "its rate")
    pitch: float = 0.0

    def __post_init__(self) -> None:
        Joint.__post_init__(self)
        if not np.isfinite(self.pitch):
            raise ModelError(f"{self}: pitch is {self.pitch}; give a finite number, in m per rad")

    def pose(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return about_axis(np.array(self.axis), q), self.pitch * _along(self.axis, q)

    def H(self, q: np.ndarray) -> np.ndarray:
        return _angular(self.axis) + self.pitch * _linear(self.axis)


class Cylindrical(Axial):
    """Turns about an axis and slides along it; q = (angle, displacement)."""

    nq: ClassVar[int] = 2
    nv: ClassVar[int] = 2
    entries: ClassVar[tuple[str, str]] = ("angle, displacement", "their rates")

    def pose(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return about_axis(np.array(self.axis), q[:1]), _along(self.axis, q[1:])

    def H(self, q: np.ndarray) -> np.ndarray:
        return np.vstack([_angular(self.axis), _linear(self.axis)])


class Translation(Joint):
    """Slides in all three directions: p = q."""

    nq: ClassVar[int] = 3
    nv: ClassVar[int] = 3
    entries: ClassVar[tuple[str, str]] = ("x, y, z", "their rates")

    def pose(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.eye(3), q

    def H(self, q: np.ndarray) -> np.ndarray:
        return _linear(*np.eye(3))


@dataclass(frozen=True)
class Universal(Joint):
    """Two turns in a row: R = R(axis1, q₁) R(axis2, q₂), qd = dq/dt."""

    nq: ClassVar[int] = 2
    nv: ClassVar[int] = 2
    entries: ClassVar[tuple[str, str]] = ("angle about axis1, angle about axis2", "their rates")
    axis1: Numbers = (1.0, 0.0, 0.0)
    axis2: Numbers = (0.0, 1.0, 0.0)

    def __post_init__(self) -> None:
        Joint.__post_init__(self)
        if np.linalg.norm(np.cross(self.axis1, self.axis2)) < 1e-6:
            raise ModelError(f"{self}: axis1 and axis2 are parallel; give two different axes")

    def pose(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        R1, R2 = about_axis(np.array(self.axis1), q[:1]), about_axis(np.array(self.axis2), q[1:])
        return R1 @ R2, np.zeros(3)

    def H(self, q: np.ndarray) -> np.ndarray:
        R2 = about_axis(np.array(self.axis2), q[1:])
        return _angular(R2.T @ np.array(self.axis1), self.axis2)

    def H_rate(self, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        first, _ = self.H(q)[:, :3]
        return _angular(skew(first) @ _along(self.axis2, qd[1:]), np.zeros(3))

    def H_slope(self, q: np.ndarray) -> np.ndarray:
        first, _ = self.H(q)[:, :3]
        still = np.zeros((2, 6))
        return np.array([still, _angular(skew(first) @ np.array(self.axis2), np.zeros(3))])

    def H_rate_slope(self, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        first, second = self.H(q)[:, :3]
        slope = skew(skew(first) @ second) @ _along(self.axis2, qd[1:])
        return np.array([np.zeros((2, 6)), _angular(slope, np.zeros(3))])


class Spherical(Joint):
    """A ball in a socket: q = quaternion (w, x, y, z), qd = angular velocity in body axes."""

    nq: ClassVar[int] = 4
    nv: ClassVar[int] = 3
    entries: ClassVar[tuple[str, str]] = ("qw, qx, qy, qz: quaternion", "ω in body axes")

    @property
    def commuting(self) -> bool:
        return False

    def __post_init__(self) -> None:
        Joint.__post_init__(self)
        _alike(self, np.atleast_1d(self.stiffness))

    def pose(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return quaternion_matrix(q), np.zeros(3)

    def H(self, q: np.ndarray) -> np.ndarray:
        return _angular(*np.eye(3))

    def neutral(self) -> np.ndarray:
        return np.array([1.0, 0.0, 0.0, 0.0])

    def random(self, rng: np.random.Generator, shape: tuple[int, ...] = ()) -> np.ndarray:
        return random_quaternion(rng, shape)

    def normalize(self, q: np.ndarray) -> np.ndarray:
        return quaternion_unit(q)

    def integrate(self, q: np.ndarray, dv: np.ndarray) -> np.ndarray:
        return quaternion_product(q, quaternion_exp(dv))

    def to_middle(self, q: np.ndarray, u: np.ndarray) -> np.ndarray:
        return _turned(q, u)

    def from_middle(self, q: np.ndarray, u: np.ndarray) -> np.ndarray:
        return _turned(q, u)

    def departing(self, u: np.ndarray, mu: np.ndarray, f: np.ndarray) -> np.ndarray:
        return cayley_momentum(u, mu, f)

    def carried(self, u: np.ndarray, p: np.ndarray) -> np.ndarray:
        back = quaternion_matrix(cayley_quaternion(-u))
        return back @ (back @ p)

    def difference(self, q0: np.ndarray, q1: np.ndarray) -> np.ndarray:
        return quaternion_difference(q0, q1)


class Planar(Joint):
    """Slides in the x-y plane and turns about z: q = (x, y, θ), qd = (vx, vy, ω) in body axes."""

    nq: ClassVar[int] = 3
    nv: ClassVar[int] = 3
    entries: ClassVar[tuple[str, str]] = ("x, y, θ", "vx, vy, ω in body axes")

    @property
    def commuting(self) -> bool:
        return False

    def pose(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return about_axis(_Z, q[2:]), np.array([q[0], q[1], 0])

    def H(self, q: np.ndarray) -> np.ndarray:
        return np.eye(6)[[3, 4, 2]]

    def integrate(self, q: np.ndarray, dv: np.ndarray) -> np.ndarray:
        R, p = self.pose(q)
        p = p + R @ translation_exp(np.array([0, 0, dv[2]]), np.array([dv[0], dv[1], 0]))
        return np.array([p[0], p[1], q[2] + dv[2]])

    def to_middle(self, q: np.ndarray, u: np.ndarray) -> np.ndarray:
        # slides along the axes of the middle
        turned = np.array([0, 0, q[2] + u[2]])
        return self.from_middle(turned, u * np.array([1, 1, 0])) + q * np.array([1, 1, 0])

    def from_middle(self, q: np.ndarray, u: np.ndarray) -> np.ndarray:
        slid = self.pose(q)[0] @ np.array([u[0], u[1], 0])
        return q + np.array([slid[0], slid[1], u[2]])

    def departing(self, u: np.ndarray, mu: np.ndarray, f: np.ndarray) -> np.ndarray:
        x = about_axis(_Z, u[2:]) @ np.array([mu[0] - f[0], mu[1] - f[1], 0])
        moment = mu[0] * u[1] - mu[1] * u[0]
        return np.array([x[0], x[1], mu[2] - f[2] - moment])

    def carried(self, u: np.ndarray, p: np.ndarray) -> np.ndarray:
        back = about_axis(_Z, -u[2:])
        x = back @ np.array([p[0], p[1], 0])
        moment = 2 * (u[0] * x[1] - u[1] * x[0])
        return np.array([*(back @ x)[:2], p[2] - moment])

    def glided(self, q: np.ndarray, h: Any, u: np.ndarray) -> np.ndarray:
        return q + h * (self.pose(q)[0] @ u)

    def gliding(self, h: Any, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        return about_axis(_Z, h * u[2:]).T @ v

    def glide_rate(self, v: np.ndarray) -> np.ndarray:
        return np.array([-v[2] * v[1], v[2] * v[0], 0])

    def coordinate_rates(self, q: np.ndarray) -> np.ndarray:
        return self.pose(q)[0]

    def stretch(self, q: np.ndarray) -> np.ndarray:
        return q - np.array(self.rest)

    def spring_force(self, q: np.ndarray) -> np.ndarray:
        pull = -np.array(self.stiffness) * self.stretch(q)
        return self.coordinate_rates(q).T @ pull

    def difference(self, q0: np.ndarray, q1: np.ndarray) -> np.ndarray:
        turn = atan2(sin(q1[2] - q0[2]), cos(q1[2] - q0[2]))
        R, p = self.pose(q0)
        back = translation_log(np.array([0, 0, turn]), R.T @ (self.pose(q1)[1] - p))
        return np.array([back[0], back[1], turn])


class Free(Joint):
    """No joint at all: q = (position, quaternion w x y z), qd = (ω; v) in body axes."""

    nq: ClassVar[int] = 7
    nv: ClassVar[int] = 6
    entries: ClassVar[tuple[str, str]] = (
        "x, y, z, qw, qx, qy, qz: position in the parent, quaternion",
        "ω; v in body axes",
    )

    @property
    def commuting(self) -> bool:
        return False

    def __post_init__(self) -> None:
        Joint.__post_init__(self)
        _alike(self, np.atleast_1d(self.stiffness)[:3])

    def pose(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return quaternion_matrix(q[3:]), q[:3]

    def H(self, q: np.ndarray) -> np.ndarray:
        return np.eye(6)

    def neutral(self) -> np.ndarray:
        return np.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0])

    def random(self, rng: np.random.Generator, shape: tuple[int, ...] = ()) -> np.ndarray:
        quat = random_quaternion(rng, shape)
        return np.concatenate([rng.uniform(-1, 1, size=(*shape, 3)), quat], axis=-1)

    def normalize(self, q: np.ndarray) -> np.ndarray:
        return np.concatenate([q[:3], quaternion_unit(q[3:])])

    def integrate(self, q: np.ndarray, dv: np.ndarray) -> np.ndarray:
        position = q[:3] + quaternion_matrix(q[3:]) @ translation_exp(dv[:3], dv[3:])
        return np.concatenate([position, quaternion_product(q[3:], quaternion_exp(dv[:3]))])

    def to_middle(self, q: np.ndarray, u: np.ndarray) -> np.ndarray:
        turned = _turned(q[3:], u[:3])
        # slides along the axes of the middle: what nothing pushes goes straight
        return np.concatenate([q[:3] + quaternion_matrix(turned) @ u[3:], turned])

    def from_middle(self, q: np.ndarray, u: np.ndarray) -> np.ndarray:
        position = q[:3] + quaternion_matrix(q[3:]) @ u[3:]
        return np.concatenate([position, _turned(q[3:], u[:3])])

    def departing(self, u: np.ndarray, mu: np.ndarray, f: np.ndarray) -> np.ndarray:
        w, slide = u[:3], u[3:]
        moment = cayley_momentum(w, mu[:3], f[:3] + skew(mu[3:]) @ slide)
        force = quaternion_matrix(cayley_quaternion(w)) @ (mu[3:] - f[3:])
        return np.concatenate([moment, force])

    def carried(self, u: np.ndarray, p: np.ndarray) -> np.ndarray:
        back = quaternion_matrix(cayley_quaternion(-u[:3]))
        moment, force = back @ p[:3], back @ p[3:]
        moment = moment - 2 * (skew(u[3:]) @ force)
        return np.concatenate([back @ moment, back @ force])

    def glided(self, q: np.ndarray, h: Any, u: np.ndarray) -> np.ndarray:
        position = q[:3] + quaternion_matrix(q[3:]) @ (h * u[3:])
        return np.concatenate([position, quaternion_product(q[3:], quaternion_exp(h * u[:3]))])

    def gliding(self, h: Any, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        turn = quaternion_matrix(quaternion_exp(h * u[:3]))
        return np.concatenate([v[:3], turn.T @ v[3:]])

    def glide_rate(self, v: np.ndarray) -> np.ndarray:
        return np.concatenate([np.zeros(3), skew(v[:3]) @ v[3:]])

    def stretch(self, q: np.ndarray) -> np.ndarray:
        back = quaternion_conjugate(quaternion_exp(np.array(self.rest)[:3]))
        turn = quaternion_log(quaternion_product(back, q[3:]))
        return np.concatenate([turn, q[:3] - np.array(self.rest)[3:]])

    def spring_force(self, q: np.ndarray) -> np.ndarray:
        pull = -np.array(self.stiffness) * self.stretch(q)
        return np.concatenate([pull[:3], quaternion_matrix(q[3:]).T @ pull[3:]])

    def difference(self, q0: np.ndarray, q1: np.ndarray) -> np.ndarray:
        turn = quaternion_difference(q0[3:], q1[3:])
        step = quaternion_matrix(q0[3:]).T @ (q1[:3] - q0[:3])
        return np.concatenate([turn, translation_log(turn, step)])


class Fixed(Joint):
    """No motion: a mechanism merges the body into its parent and keeps its frame."""

    nq: ClassVar[int] = 0
    nv: ClassVar[int] = 0

    def pose(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.eye(3), np.zeros(3)

    def H(self, q: np.ndarray) -> np.ndarray:
        return np.zeros((0, 6))
