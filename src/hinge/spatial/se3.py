"""Poses: homogeneous matrices X (…, 4, 4), or (p, quaternion) (…, 7), the coordinates of `Free`.

A twist V is (ω; v), a wrench (moment; force): angular first.  Where a function takes a pose, it
takes either form, and gives what it was given.  X_AB is frame B seen from frame A.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..algebra import exponential, rotation
from ..algebra.small import sign
from ..algebra.spatial import Transform, cross_force, cross_motion
from ..runtime.check import check_shape
from . import so3
from .function import ANY_POSE, POSE, ROTATION, compiled

__all__ = [
    "act",
    "ad",
    "adjoint",
    "coad",
    "coadjoint",
    "compose",
    "difference",
    "exp",
    "exp_quaternion",
    "from_parts",
    "from_quaternion",
    "integrate",
    "interpolate",
    "inverse",
    "left_jacobian",
    "left_jacobian_inverse",
    "log",
    "log_jacobian",
    "normalize",
    "random",
    "right_jacobian",
    "right_jacobian_inverse",
    "to_parts",
    "to_quaternion",
]


def __dir__() -> list[str]:
    return __all__


@compiled(V=(6,))
def exp(V: ArrayLike, out: Any = None) -> np.ndarray:
    """X = exp [ω× v; 0 0] of a twist, (…, 4, 4): where one gets in a unit of time."""
    return _pose(_exp(np.asarray(V))).matrix


@compiled(V=(6,))
def exp_quaternion(V: ArrayLike, out: Any = None) -> np.ndarray:
    """The same pose as (p, quaternion), (…, 7)."""
    return _exp(np.asarray(V))


@compiled(X=POSE)
def log(X: ArrayLike, out: Any = None) -> np.ndarray:
    """The twist V whose exp is X, with |ω| ≤ π, (…, 6).

    At an angle of π, ω is as in `so3.log`.  No digit is lost there, nor near zero.
    """
    return _log(np.asarray(X))


@compiled(X=POSE)
def log_jacobian(X: ArrayLike, out: Any = None) -> np.ndarray:
    """∂ log(X exp δ)/∂δ at δ = 0, the inverse right Jacobian at log X, (…, 6, 6)."""
    return exponential.pose_left_jacobian_inverse(-_log(np.asarray(X)))


@compiled(V=(6,))
def left_jacobian(V: ArrayLike, out: Any = None) -> np.ndarray:
    """J with exp(V + δ) ≈ exp(J δ) exp V, (…, 6, 6)."""
    return exponential.pose_left_jacobian(np.asarray(V))


@compiled(V=(6,))
def right_jacobian(V: ArrayLike, out: Any = None) -> np.ndarray:
    """J with exp(V + δ) ≈ exp(V) exp(J δ), (…, 6, 6)."""
    return exponential.pose_left_jacobian(-np.asarray(V))


@compiled(V=(6,))
def left_jacobian_inverse(V: ArrayLike, out: Any = None) -> np.ndarray:
    """The inverse of the left Jacobian, (…, 6, 6); there is none at turns of 2π, 4π, …"""
    return exponential.pose_left_jacobian_inverse(np.asarray(V))


@compiled(V=(6,))
def right_jacobian_inverse(V: ArrayLike, out: Any = None) -> np.ndarray:
    """The inverse of the right Jacobian, (…, 6, 6); there is none at turns of 2π, 4π, …"""
    return exponential.pose_left_jacobian_inverse(-np.asarray(V))


@compiled(X=POSE)
def adjoint(X: ArrayLike, out: Any = None) -> np.ndarray:
    """Ad(X_AB) = [R 0; p×R R], (…, 6, 6): takes twists in B to twists in A."""
    T = _pose(np.asarray(X))
    return np.block([[T.rotation, np.zeros((3, 3))], [_lever(T), T.rotation]])


@compiled(X=POSE)
def coadjoint(X: ArrayLike, out: Any = None) -> np.ndarray:
    """Ad(X_AB)⁻ᵀ = [R p×R; 0 R], (…, 6, 6): takes wrenches in B to wrenches in A."""
    T = _pose(np.asarray(X))
    return np.block([[T.rotation, _lever(T)], [np.zeros((3, 3)), T.rotation]])


@compiled(V=(6,))
def ad(V: ArrayLike, out: Any = None) -> np.ndarray:
    """The matrix V× = [ω× 0; v× ω×] with (V×) W = V × W for twists, (…, 6, 6)."""
    V = np.asarray(V)
    return np.array([cross_motion(V, W) for W in np.eye(6)]).T


@compiled(V=(6,))
def coad(V: ArrayLike, out: Any = None) -> np.ndarray:
    """The matrix V×* = −(V×)ᵀ with (V×*) f = V ×* f for wrenches, (…, 6, 6)."""
    V = np.asarray(V)
    return np.array([cross_force(V, f) for f in np.eye(6)]).T


@compiled(a=POSE, b=POSE)
def compose(a: ArrayLike, b: ArrayLike, out: Any = None) -> np.ndarray:
    """a b: X_AC of X_AB and X_BC."""
    return _product(np.asarray(a), np.asarray(b))


@compiled(X=POSE)
def inverse(X: ArrayLike, out: Any = None) -> np.ndarray:
    """X⁻¹: X_BA of X_AB."""
    return _inverse(np.asarray(X))


@compiled(X=POSE, point=(3,))
def act(X: ArrayLike, point: ArrayLike, out: Any = None) -> np.ndarray:
    """R point + p: a point in frame B as frame A has it, (…, 3)."""
    return _pose(np.asarray(X)) @ np.asarray(point)


@compiled(a=POSE, b=POSE)
def difference(a: ArrayLike, b: ArrayLike, out: Any = None) -> np.ndarray:
    """The twist from a to b, log(a⁻¹ b), in the axes of a, (…, 6)."""
    return _log(_product(_inverse(np.asarray(a)), np.asarray(b)))


@compiled(X=POSE, V=(6,))
def integrate(X: ArrayLike, V: ArrayLike, out: Any = None) -> np.ndarray:
    """X exp V: along a twist in the axes of the moving frame, for a unit of time."""
    return _integrated(np.asarray(X), np.asarray(V))


@compiled(a=POSE, b=POSE, t=())
def interpolate(a: ArrayLike, b: ArrayLike, t: ArrayLike, out: Any = None) -> np.ndarray:
    """a exp(t log(a⁻¹ b)): from a at t = 0 to b at t = 1, along one screw."""
    a = np.asarray(a)
    step = _log(_product(_inverse(a), np.asarray(b)))
    return _integrated(a, np.array([t]) * step)


@compiled(X=ANY_POSE)
def normalize(X: ArrayLike, out: Any = None) -> np.ndarray:
    """The pose with the rotation nearest to that of X, or with the unit quaternion."""
    X = np.asarray(X)
    if X.ndim == 1:
        return np.concatenate([X[:3], rotation.quaternion_unit(X[3:])])
    return Transform(rotation.orthonormal(X[:3, :3]), X[:3, 3]).matrix


@compiled(R=ROTATION, p=(3,))
def from_parts(R: ArrayLike, p: ArrayLike, out: Any = None) -> np.ndarray:
    """X = [R p; 0 0 0 1] of a rotation, in either form, and a translation, (…, 4, 4)."""
    R = np.asarray(R)
    return Transform(rotation.quaternion_matrix(R) if R.ndim == 1 else R, np.asarray(p)).matrix


@compiled(X=POSE)
def to_parts(X: ArrayLike, out: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """The rotation matrix (…, 3, 3) and the translation (…, 3)."""
    T = _pose(np.asarray(X))
    return T.rotation, T.translation


@compiled(x=(7,))
def from_quaternion(x: ArrayLike, out: Any = None) -> np.ndarray:
    """X of (p, quaternion), (…, 4, 4)."""
    return _pose(np.asarray(x)).matrix


@compiled(X=POSE)
def to_quaternion(X: ArrayLike, out: Any = None) -> np.ndarray:
    """(p, quaternion) with a unit quaternion, w ≥ 0, (…, 7)."""
    X = np.asarray(X)
    if X.ndim == 1:
        return np.concatenate([X[:3], rotation.quaternion_unit(X[3:]) * np.array([sign(X[3])])])
    return np.concatenate([X[:3, 3], rotation.quaternion_from_matrix(X[:3, :3])])


def random(
    rng: np.random.Generator | int | None = None, shape: int | tuple[int, ...] = ()
) -> np.ndarray:
    """Poses (*shape, 4, 4): any rotation, a point with entries from −1 to 1; rng: or a seed."""
    generator, lead = np.random.default_rng(rng), check_shape("se3.random", "shape", shape)
    return from_parts(so3.random(generator, lead), generator.uniform(-1, 1, size=(*lead, 3)))


# one sample, on any scalar


def _pose(x: np.ndarray) -> Transform:
    if x.ndim == 1:
        return Transform(rotation.quaternion_matrix(x[3:]), x[:3])
    return Transform(x[:3, :3], x[:3, 3])


def _lever(T: Transform) -> np.ndarray:
    return rotation.skew(T.translation) @ T.rotation


def _exp(V: np.ndarray) -> np.ndarray:
    p = exponential.translation_exp(V[:3], V[3:])
    return np.concatenate([p, rotation.quaternion_exp(V[:3])])


def _log(X: np.ndarray) -> np.ndarray:
    if X.ndim == 1:
        w, p = rotation.quaternion_log(X[3:]), X[:3]
    else:
        w, p = rotation.rotation_log(X[:3, :3]), X[:3, 3]
    return np.concatenate([w, exponential.translation_log(w, p)])


def _product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if a.ndim == 2:
        return (_pose(a) @ _pose(b)).matrix
    p = a[:3] + rotation.quaternion_matrix(a[3:]) @ b[:3]
    return np.concatenate([p, rotation.quaternion_product(a[3:], b[3:])])


def _inverse(X: np.ndarray) -> np.ndarray:
    T = _pose(X).inv
    if X.ndim == 2:
        return T.matrix
    return np.concatenate([T.translation, rotation.quaternion_conjugate(X[3:])])


def _integrated(X: np.ndarray, V: np.ndarray) -> np.ndarray:
    step = _exp(V)
    return _product(X, step if X.ndim == 1 else _pose(step).matrix)
