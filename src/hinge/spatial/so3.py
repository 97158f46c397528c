"""Rotations: matrices R (…, 3, 3), or quaternions (w, x, y, z) (…, 4) of any length but zero.

A rotation vector w is θ n, the angle times the unit axis; R turns coordinates in B into coordinates
in A.  Where a function takes a rotation, it takes either form, and gives what it was given.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..algebra import exponential, rotation
from ..algebra.small import sign
from ..runtime.check import check_shape
from .function import ANY_ROTATION, ROTATION, compiled

__all__ = [
    "act",
    "angular_velocity",
    "compose",
    "difference",
    "distance",
    "exp",
    "exp_quaternion",
    "from_axis_angle",
    "from_quaternion",
    "from_rpy",
    "hat",
    "integrate",
    "interpolate",
    "inverse",
    "left_jacobian",
    "left_jacobian_inverse",
    "log",
    "log_jacobian",
    "normalize",
    "quaternion_rate",
    "random",
    "right_jacobian",
    "right_jacobian_inverse",
    "to_axis_angle",
    "to_quaternion",
    "to_rpy",
    "vee",
]


def __dir__() -> list[str]:
    return __all__


@compiled(w=(3,))
def exp(w: ArrayLike, out: Any = None) -> np.ndarray:
    """R = exp(w×) of a rotation vector, (…, 3, 3)."""
    return rotation.quaternion_matrix(rotation.quaternion_exp(np.asarray(w)))


@compiled(w=(3,))
def exp_quaternion(w: ArrayLike, out: Any = None) -> np.ndarray:
    """The unit quaternion of a rotation vector, (…, 4)."""
    return rotation.quaternion_exp(np.asarray(w))


@compiled(R=ROTATION)
def log(R: ArrayLike, out: Any = None) -> np.ndarray:
    """The rotation vector w, at most π long, (…, 3).

    At an angle of π both signs are right: of a matrix the largest entry is positive, of a
    quaternion (0, v) it is π v.  No digit is lost there, nor near zero.
    """
    return _log(np.asarray(R))


@compiled(R=ROTATION)
def log_jacobian(R: ArrayLike, out: Any = None) -> np.ndarray:
    """∂ log(R exp(δ×))/∂δ at δ = 0, the inverse right Jacobian at log R, (…, 3, 3)."""
    return exponential.left_jacobian_inverse(-_log(np.asarray(R)))


@compiled(w=(3,))
def left_jacobian(w: ArrayLike, out: Any = None) -> np.ndarray:
    """J with exp((w + δ)×) ≈ exp((J δ)×) exp(w×), (…, 3, 3)."""
    return exponential.left_jacobian(np.asarray(w))


@compiled(w=(3,))
def right_jacobian(w: ArrayLike, out: Any = None) -> np.ndarray:
    """J with exp((w + δ)×) ≈ exp(w×) exp((J δ)×), (…, 3, 3): the transpose of the left one."""
    return exponential.left_jacobian(-np.asarray(w))


@compiled(w=(3,))
def left_jacobian_inverse(w: ArrayLike, out: Any = None) -> np.ndarray:
    """The inverse of the left Jacobian, (…, 3, 3); there is none at turns of 2π, 4π, …"""
    return exponential.left_jacobian_inverse(np.asarray(w))


@compiled(w=(3,))
def right_jacobian_inverse(w: ArrayLike, out: Any = None) -> np.ndarray:
    """The inverse of the right Jacobian, (…, 3, 3); there is none at turns of 2π, 4π, …"""
    return exponential.left_jacobian_inverse(-np.asarray(w))


@compiled(a=ROTATION, b=ROTATION)
def compose(a: ArrayLike, b: ArrayLike, out: Any = None) -> np.ndarray:
    """a b: first b, then a."""
    return _product(np.asarray(a), np.asarray(b))


@compiled(R=ROTATION)
def inverse(R: ArrayLike, out: Any = None) -> np.ndarray:
    """R⁻¹: the transpose, or the conjugate quaternion."""
    return _inverse(np.asarray(R))


@compiled(R=ROTATION, v=(3,))
def act(R: ArrayLike, v: ArrayLike, out: Any = None) -> np.ndarray:
    """R v, a vector turned, (…, 3)."""
    return _matrix(np.asarray(R)) @ np.asarray(v)


@compiled(a=ROTATION, b=ROTATION)
def difference(a: ArrayLike, b: ArrayLike, out: Any = None) -> np.ndarray:
    """The rotation vector from a to b, log(a⁻¹ b), in the axes of the rotated frame, (…, 3)."""
    return _difference(np.asarray(a), np.asarray(b))


@compiled(R=ROTATION, w=(3,))
def integrate(R: ArrayLike, w: ArrayLike, out: Any = None) -> np.ndarray:
    """R exp(w×): a turn about the axes of the rotated frame."""
    return _integrated(np.asarray(R), np.asarray(w))


@compiled(a=ROTATION, b=ROTATION, t=())
def interpolate(a: ArrayLike, b: ArrayLike, t: ArrayLike, out: Any = None) -> np.ndarray:
    """a exp(t log(a⁻¹ b)): from a at t = 0 to b at t = 1, the short way at a constant rate."""
    a = np.asarray(a)
    return _integrated(a, np.array([t]) * _difference(a, np.asarray(b)))


@compiled(a=ROTATION, b=ROTATION)
def distance(a: ArrayLike, b: ArrayLike, out: Any = None) -> np.ndarray:
    """The angle from a to b, 0 to π, (…)."""
    a, b = np.asarray(a), np.asarray(b)
    between = _product(_inverse(a), b)
    quat = between if a.ndim == 1 else rotation.quaternion_from_matrix(between)
    return rotation.rotation_angle(quat)


@compiled(R=ANY_ROTATION)
def normalize(R: ArrayLike, out: Any = None) -> np.ndarray:
    """The rotation nearest to a matrix with a positive determinant, or the unit quaternion."""
    R = np.asarray(R)
    return rotation.quaternion_unit(R) if R.ndim == 1 else rotation.orthonormal(R)


@compiled(R=ROTATION)
def to_quaternion(R: ArrayLike, out: Any = None) -> np.ndarray:
    """The unit quaternion (w, x, y, z) with w ≥ 0, (…, 4)."""
    R = np.asarray(R)
    if R.ndim == 1:
        return rotation.quaternion_unit(R) * np.array([sign(R[0])])
    return rotation.quaternion_from_matrix(R)


@compiled(quaternion=(4,))
def from_quaternion(quaternion: ArrayLike, out: Any = None) -> np.ndarray:
    """R of a quaternion (w, x, y, z) of any length but zero, (…, 3, 3)."""
    return rotation.quaternion_matrix(np.asarray(quaternion))


@compiled(R=ROTATION)
def to_rpy(R: ArrayLike, out: Any = None) -> np.ndarray:
    """(roll, pitch, yaw) with R = Rz(yaw) Ry(pitch) Rx(roll), |pitch| ≤ π/2, (…, 3).

    At pitch = ±π/2, where roll and yaw turn about one axis, yaw is 0.
    """
    return rotation.rpy_of(_matrix(np.asarray(R)))


@compiled(rpy=(3,))
def from_rpy(rpy: ArrayLike, out: Any = None) -> np.ndarray:
    """R = Rz(yaw) Ry(pitch) Rx(roll), the fixed-axis angles of URDF, (…, 3, 3)."""
    roll, pitch, yaw = np.asarray(rpy)
    return rotation.from_rpy(roll, pitch, yaw)


@compiled(R=ROTATION)
def to_axis_angle(R: ArrayLike, out: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """A unit axis (…, 3) and an angle from 0 to π, (…); the axis is x where nothing turns."""
    R = np.asarray(R)
    return rotation.axis_angle_of(R if R.ndim == 1 else rotation.quaternion_from_matrix(R))


@compiled(axis=(3,), angle=())
def from_axis_angle(axis: ArrayLike, angle: ArrayLike, out: Any = None) -> np.ndarray:
    """R of a turn by an angle about an axis of any length but zero, (…, 3, 3)."""
    direction = np.asarray(axis)
    unit = direction / np.array([rotation.norm(direction)])
    return rotation.about_axis(unit, np.array([angle]))


@compiled(quaternion=(4,), rate=(4,))
def angular_velocity(quaternion: ArrayLike, rate: ArrayLike, out: Any = None) -> np.ndarray:
    """ω in the axes of the rotated frame from a quaternion and its time derivative, (…, 3)."""
    quat = np.asarray(quaternion)
    moved = rotation.quaternion_product(rotation.quaternion_conjugate(quat), np.asarray(rate))
    return moved[1:] * np.array([2 / (quat @ quat)])


@compiled(quaternion=(4,), w=(3,))
def quaternion_rate(quaternion: ArrayLike, w: ArrayLike, out: Any = None) -> np.ndarray:
    """The time derivative of a quaternion that turns with ω, given in its own axes, (…, 4)."""
    quat = np.asarray(quaternion)
    return 0.5 * rotation.quaternion_product(quat, np.array([0, *np.asarray(w)]))


@compiled(w=(3,))
def hat(w: ArrayLike, out: Any = None) -> np.ndarray:
    """The matrix w× with (w×) v = w × v, (…, 3, 3)."""
    return rotation.skew(np.asarray(w))


@compiled(W=(3, 3))
def vee(W: ArrayLike, out: Any = None) -> np.ndarray:
    """The w of a matrix w×, or of the skew part of any, (…, 3)."""
    return 0.5 * rotation.axial(np.asarray(W))


def random(
    rng: np.random.Generator | int | None = None, shape: int | tuple[int, ...] = ()
) -> np.ndarray:
    """Rotation matrices, uniform over all rotations: (*shape, 3, 3); rng: a generator or a seed."""
    lead = check_shape("so3.random", "shape", shape)
    return from_quaternion(rotation.random_quaternion(np.random.default_rng(rng), lead))


# one sample, on any scalar


def _matrix(R: np.ndarray) -> np.ndarray:
    return rotation.quaternion_matrix(R) if R.ndim == 1 else R


def _log(R: np.ndarray) -> np.ndarray:
    return rotation.quaternion_log(R) if R.ndim == 1 else rotation.rotation_log(R)


def _inverse(R: np.ndarray) -> np.ndarray:
    return rotation.quaternion_conjugate(R) if R.ndim == 1 else R.T


def _product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return rotation.quaternion_product(a, b) if a.ndim == 1 else a @ b


def _difference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return _log(_product(_inverse(a), b))


def _integrated(R: np.ndarray, w: np.ndarray) -> np.ndarray:
    turn = rotation.quaternion_exp(w)
    return _product(R, turn if R.ndim == 1 else rotation.quaternion_matrix(turn))
