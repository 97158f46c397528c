"""Spatial vectors, transforms and inertias (paper F, part 1).

A spatial vector is (angular; linear), a spatial force (moment; force).  A pose is kept as (R, p)
and a rigid inertia as its ten numbers; 6×6 matrices appear only where nothing is known about
their structure.  Everything here runs on any scalar.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from typing import Any

import numpy as np

from ..errors import ImmutableError, ModelError
from .rotation import (
    about_axis,
    from_rpy,
    is_rotation,
    quaternion_from_matrix,
    quaternion_log,
    quaternion_matrix,
    rpy_of,
    skew,
    turned_matrix,
    turned_vector,
)
from .small import is_zero, mirror_lower, scaled_identity

__all__ = [
    "MACHINE_CODE",
    "PLAIN_CODE",
    "ForceTransfer",
    "Inertia",
    "MotionTransfer",
    "SpatialInertia",
    "Transform",
    "carried_acceleration",
    "congruence",
    "cross_force",
    "cross_motion",
    "pose_parts",
    "turning",
]


def cross_motion(V: np.ndarray, W: np.ndarray) -> np.ndarray:
    """V × W = (ω×w; u×w + ω×s) for V = (ω; u), W = (w; s): the rate of W carried along by V."""
    w, u = skew(V[:3]), skew(V[3:])
    return np.concatenate([w @ W[:3], u @ W[:3] + w @ W[3:]])


def cross_force(V: np.ndarray, f: np.ndarray) -> np.ndarray:
    """V ×* f = (ω×n + u×g; ω×g) for f = (n; g): the rate of f carried along by V."""
    w, u = skew(V[:3]), skew(V[3:])
    return np.concatenate([w @ f[:3] + u @ f[3:], w @ f[3:]])


def turning(w: np.ndarray, wd: np.ndarray) -> np.ndarray:
    """U = ω̇× + ω×ω×: a point r of a body that turns with ω, ω̇ is accelerated by U r."""
    x, y, z = w
    xx, yy, zz = x * x, y * y, z * z
    xy, xz, yz = x * y, x * z, y * z
    return np.array([[-yy - zz, xy, xz], [xy, -xx - zz, yz], [xz, yz, -xx - yy]]) + skew(wd)


class Transform:
    """A pose X_AB = (R_AB, p_AB): frame B seen from frame A.

    rotation: (3, 3), turns coordinates in B into coordinates in A; default: none.
    translation: (3,), the origin of B in A; default: zero.
    `X_AB @ X_BC` is X_AC, `X_AB @ point_B` is point_A, `X_AB.inv` is X_BA.

    Quaternions are (w, x, y, z), scalar first, of any length but zero; roll, pitch and yaw those of
    R = Rz(yaw) Ry(pitch) Rx(roll).
    """

    __slots__ = ("rotation", "translation")
    rotation: np.ndarray
    translation: np.ndarray

    def __init__(self, rotation: Any = None, translation: Any = (0.0, 0.0, 0.0)) -> None:
        R = _frozen(np.eye(3) if rotation is None else rotation)
        p = _frozen(translation)
        if R.shape != (3, 3) or p.shape != (3,):
            hint = "; Transform.from_matrix takes a 4×4 matrix" if R.shape == (4, 4) else ""
            raise ModelError(
                f"a Transform needs a 3×3 rotation and a translation of 3 numbers; "
                f"got shapes {R.shape} and {p.shape}{hint}"
            )
        object.__setattr__(self, "rotation", R)
        object.__setattr__(self, "translation", p)

    @classmethod
    def from_matrix(cls, matrix: Any) -> Transform:
        """The pose of a homogeneous matrix (4, 4), [R p; 0 0 0 1]."""
        R, p = MACHINE_CODE["parts"](matrix)
        # one sample, such as machine code has made: nothing else knows the arrays
        return _made(R, p) if R.ndim == 2 else cls(R, p)

    @classmethod
    def from_quaternion(cls, quaternion: Any, translation: Any = (0.0, 0.0, 0.0)) -> Transform:
        """The pose with an orientation (w, x, y, z); of (x, y, z, w) give `np.roll(quat, 1)`."""
        quat = _numbers("a quaternion (w, x, y, z)", quaternion, (4,))
        if not quat.any():
            raise ModelError("a quaternion is zero; give (1, 0, 0, 0) for no rotation")
        return cls(quaternion_matrix(quat), translation)

    @classmethod
    def from_rpy(cls, rpy: Any, translation: Any = (0.0, 0.0, 0.0)) -> Transform:
        """The pose with an orientation (roll, pitch, yaw), as URDF has them."""
        return cls(from_rpy(*_numbers("roll, pitch, yaw", rpy, (3,))), translation)

    @classmethod
    def from_axis_angle(
        cls, axis: Any, angle: Any, translation: Any = (0.0, 0.0, 0.0)
    ) -> Transform:
        """The pose turned by an angle about an axis of any length."""
        direction = _numbers("an axis", axis, (3,))
        turn = _numbers("an angle", angle, ())
        length = np.linalg.norm(direction)
        if length == 0:
            raise ModelError("an axis is zero; give a direction")
        return cls(about_axis(direction / length, turn[None]), translation)

    @property
    def quaternion(self) -> np.ndarray:
        """The orientation as a unit quaternion (w, x, y, z), w ≥ 0."""
        return MACHINE_CODE["quaternion"](self.rotation)

    @property
    def rpy(self) -> np.ndarray:
        """The orientation as (roll, pitch, yaw), |pitch| ≤ π/2; yaw is 0 if pitch is ±π/2."""
        return rpy_of(self.rotation)

    @property
    def axis_angle(self) -> tuple[np.ndarray, float]:
        """The orientation as a unit axis (3,) and an angle from 0 to π; x for no turn."""
        turn = quaternion_log(self.quaternion)
        angle = float(np.linalg.norm(turn))
        return (turn / angle if angle else np.eye(3)[0]), angle

    def __setattr__(self, name: str, value: Any) -> None:
        raise ImmutableError(f"a Transform is immutable: make a new one to change its {name}")

    def __matmul__(self, other: Any) -> Any:
        R, p = self.rotation, self.translation
        if not isinstance(other, Transform):
            return R @ other + p
        B, q = other.rotation, other.translation
        if R.dtype is B.dtype is p.dtype is q.dtype is _FLOAT:
            # the same products as those of @, in less time
            return _made(R.dot(B), R.dot(q) + p)
        return Transform(R @ B, R @ q + p)

    @property
    def inv(self) -> Transform:
        """X_BA of X_AB."""
        R, p = self.rotation.T, self.translation
        return _made(R, (-R).dot(p) if R.dtype is p.dtype is _FLOAT else -R @ p)

    @property
    def matrix(self) -> np.ndarray:
        """The homogeneous (4, 4) matrix [R p; 0 1]."""
        X = np.zeros((4, 4), np.result_type(self.rotation, self.translation))
        X[:3, :3], X[:3, 3], X[3, 3] = self.rotation, self.translation, 1
        return X

    @property
    def numbers(self) -> np.ndarray:
        """All numbers, (12,): those of the rotation row by row, then of the translation."""
        return np.concatenate([self.rotation.ravel(), self.translation])

    @classmethod
    def of_numbers(cls, x: np.ndarray) -> Transform:
        """The pose with these `numbers`."""
        return cls(x[:9].reshape(3, 3), x[9:])

    @property
    def transfer(self) -> ForceTransfer:
        """φ(A, B) of X_AB."""
        return ForceTransfer(self.rotation, self.translation)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Transform)
            and np.array_equal(self.rotation, other.rotation)
            and np.array_equal(self.translation, other.translation)
        )

    def __hash__(self) -> int:
        return hash((*self.rotation.flat, *self.translation))

    def __reduce__(self) -> tuple[Any, ...]:
        return Transform, (self.rotation, self.translation)

    def __repr__(self) -> str:
        return (
            f"Transform(rotation={self.rotation.tolist()}, translation={self.translation.tolist()})"
        )


class ForceTransfer:
    """φ(A, B) = [R p×R; 0 R] for the pose (R, p) of B in A: takes forces on B to forces on A.

    turn: if B is turned from the pose `base` about coordinate axis i, (base, i, cos, sin);
    congruences then need fewer products.
    """

    __slots__ = ("R", "p", "p_cross", "turn")

    def __init__(self, R: np.ndarray, p: np.ndarray, turn: Any = None) -> None:
        self.R, self.p, self.p_cross, self.turn = R, p, skew(p), turn

    def __matmul__(self, f: np.ndarray) -> np.ndarray:
        """φ f for a force (6,) or a column of forces (6, n)."""
        force = self.R @ f[3:]
        return np.concatenate([self.R @ f[:3] + self.p_cross @ force, force])

    @property
    def T(self) -> MotionTransfer:
        """φ*, which takes motions the other way, from A to B."""
        return MotionTransfer(self)

    @property
    def pose(self) -> Transform:
        """X_AB."""
        return Transform(self.R, self.p)


class MotionTransfer:
    """φ*(A, B) = [Rᵀ 0; −Rᵀp× Rᵀ]: takes motions of A to motions of B, the adjoint of φ."""

    __slots__ = ("T",)

    def __init__(self, phi: ForceTransfer) -> None:
        self.T = phi

    def __matmul__(self, V: np.ndarray) -> np.ndarray:
        """φ* V for a motion (6,) or a column of motions (6, n)."""
        R, p_cross = self.T.R.T, self.T.p_cross
        return np.concatenate([R @ V[:3], R @ (V[3:] - p_cross @ V[:3])])


def carried_acceleration(
    phi: ForceTransfer, V: np.ndarray, alpha: np.ndarray, W: np.ndarray
) -> np.ndarray:
    """φ* α + a: the acceleration (ω̇; p̈) of a body that moves with W on a parent with V and α.

    a = (ω×w; ω×(ω×p) + 2 ω×s + w×s) for W = (w; s), in the body's axes.
    """
    R = phi.R.T
    w = R @ V[:3]
    angular = R @ alpha[:3] + skew(w) @ W[:3]
    linear = R @ (alpha[3:] + turning(V[:3], alpha[:3]) @ phi.p) + skew(2 * w + W[:3]) @ W[3:]
    return np.concatenate([angular, linear])


class SpatialInertia:
    """A rigid-body inertia as ten numbers about the origin of its frame.

    mass m, first moment h = m c, second moment J = I_c + m c×c×ᵀ; as a matrix [J h×; h×ᵀ m1].
    """

    __slots__ = ("J", "h", "h_cross", "mass")

    def __init__(self, mass: Any, h: np.ndarray, J: np.ndarray) -> None:
        self.mass, self.h, self.J, self.h_cross = mass, h, J, skew(h)

    @classmethod
    def zero(cls) -> SpatialInertia:
        """Nothing there."""
        return cls(0.0, np.zeros(3), np.zeros((3, 3)))

    @property
    def numbers(self) -> np.ndarray:
        """All numbers, (13,): m, h, J."""
        return np.concatenate([[self.mass], self.h, self.J.ravel()])

    @classmethod
    def of_numbers(cls, x: np.ndarray) -> SpatialInertia:
        """The inertia with these `numbers`."""
        return cls(x[0], x[1:4], x[4:].reshape(3, 3))

    def __matmul__(self, V: np.ndarray) -> np.ndarray:
        """M V for a motion (6,) or a column of motions (6, n): a momentum or a force."""
        w, u = V[:3], V[3:]
        return np.concatenate([self.J @ w + self.h_cross @ u, self.mass * u - self.h_cross @ w])

    def __add__(self, other: SpatialInertia) -> SpatialInertia:
        return SpatialInertia(self.mass + other.mass, self.h + other.h, self.J + other.J)

    # NumPy must leave `array + inertia` to the inertia
    __array_ufunc__ = None

    def __radd__(self, other: np.ndarray) -> np.ndarray:
        """An articulated inertia (6, 6) and a rigid one."""
        return other + self.matrix

    def force(self, V: np.ndarray, alpha: np.ndarray) -> np.ndarray:
        """M α + b: the force that moves the body with velocity V and acceleration α = (ω̇; p̈).

        b = (ω×Jω; ω×(ω×h)).  In terms of U = ω̇× + ω×ω× and Σ = ½ tr(J) 1 − J this is
        (h×p̈ + 2 vee(UΣ); U h + m p̈), vee taking the vector of the skew part: fewer products.
        """
        U = turning(V[:3], alpha[:3])
        J = self.J
        (xx, xy, xz), (_, yy, yz), (_, _, zz) = scaled_identity(0.5 * np.trace(J)) - J
        moment = np.array(
            [
                U[2, 0] * xy
                + U[2, 1] * yy
                - U[1, 2] * zz
                + (U[2, 2] - U[1, 1]) * yz
                - U[1, 0] * xz,
                U[0, 2] * zz
                + (U[0, 0] - U[2, 2]) * xz
                + U[0, 1] * yz
                - U[2, 0] * xx
                - U[2, 1] * xy,
                U[1, 0] * xx
                + (U[1, 1] - U[0, 0]) * xy
                + U[1, 2] * xz
                - U[0, 1] * yy
                - U[0, 2] * yz,
            ]
        )
        linear = self.mass * alpha[3:] + U @ self.h
        return np.concatenate([moment + self.h_cross @ alpha[3:], linear])

    @property
    def spatial(self) -> SpatialInertia:
        """Itself: a body's inertia may be given in this form too."""
        return self

    def moved(self, X_AB: Transform) -> SpatialInertia:
        """This inertia, given in frame B, in frame A."""
        return congruence(self, X_AB.transfer)

    @property
    def matrix(self) -> np.ndarray:
        """The (6, 6) matrix."""
        return np.block([[self.J, self.h_cross], [self.h_cross.T, self.mass * np.eye(3)]])


@singledispatch
def congruence(P: Any, phi: ForceTransfer) -> Any:
    """φ P φ*: an inertia at B, rigid or articulated, as it is felt at A."""
    raise TypeError(f"an inertia is a SpatialInertia or a (6, 6) array, not {type(P).__name__}")


@congruence.register
def _(M: SpatialInertia, phi: ForceTransfer) -> SpatialInertia:
    if phi.turn is not None:
        base, i, c, s = phi.turn
        M = SpatialInertia(M.mass, turned_vector(M.h, i, c, s), turned_matrix(M.J, i, c, s))
        return congruence(M, base)
    h = phi.R @ M.h
    shifted = h + M.mass * phi.p
    J = phi.R @ M.J @ phi.R.T - phi.p_cross @ skew(h) - skew(shifted) @ phi.p_cross
    return SpatialInertia(M.mass, shifted, mirror_lower(J))


@congruence.register
def _(P: np.ndarray, phi: ForceTransfer) -> np.ndarray:
    blocks = (P[:3, :3], P[:3, 3:], P[3:, 3:])
    if phi.turn is not None:
        base, i, c, s = phi.turn
        J, B, m = (turned_matrix(block, i, c, s) for block in blocks)
        return congruence(np.block([[J, B], [B.T, m]]), base)
    R, p_cross = phi.R, phi.p_cross
    J, B, m = (R @ block @ R.T for block in blocks)
    m = mirror_lower(m)
    B_shifted = B + p_cross @ m
    J_shifted = mirror_lower(J + p_cross @ B.T - B_shifted @ p_cross)
    return np.block([[J_shifted, B_shifted], [B_shifted.T, m]])


class Inertia:
    """The mass, centre of mass and rotational inertia of a rigid body, as a user gives them.

    mass: kg; com: (3,) in the body frame, m; about_com: (3, 3) about the centre of mass, in the
    axes of the body frame, kg m².  The default is a body without mass.
    """

    __slots__ = ("about_com", "com", "mass")
    mass: Any
    com: np.ndarray
    about_com: np.ndarray

    def __init__(self, mass: Any = 0.0, com: Any = (0.0, 0.0, 0.0), about_com: Any = None) -> None:
        c = _frozen(com)
        I = _frozen(np.zeros((3, 3)) if about_com is None else about_com)
        if c.shape != (3,) or I.shape != (3, 3):
            raise ModelError(
                f"an Inertia needs a com of 3 numbers and a 3×3 about_com; "
                f"got shapes {c.shape} and {I.shape}"
            )
        object.__setattr__(self, "mass", mass)
        object.__setattr__(self, "com", c)
        object.__setattr__(self, "about_com", I)

    def __setattr__(self, name: str, value: Any) -> None:
        raise ImmutableError(f"an Inertia is immutable: make a new one to change its {name}")

    @property
    def spatial(self) -> SpatialInertia:
        """The same inertia as ten numbers about the frame's origin."""
        c = skew(self.com)
        h = self.mass * self.com
        return SpatialInertia(self.mass, h, mirror_lower(self.about_com - skew(h) @ c))

    def moved(self, X_AB: Transform) -> Inertia:
        """This inertia, given in frame B, in frame A."""
        R = X_AB.rotation
        return Inertia(self.mass, X_AB @ self.com, mirror_lower(R @ self.about_com @ R.T))

    def __add__(self, other: Inertia) -> Inertia:
        """Both bodies welded together; both inertias in the same frame."""
        mass = self.mass + other.mass
        if is_zero(mass):
            return Inertia(mass, self.com, self.about_com + other.about_com)
        com = (self.mass * self.com + other.mass * other.com) / mass
        about = self.about_com + other.about_com
        for part in (self, other):
            r = skew(part.com - com)
            about = about - part.mass * r @ r
        return Inertia(mass, com, about)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Inertia)
            and self.mass == other.mass
            and np.array_equal(self.com, other.com)
            and np.array_equal(self.about_com, other.about_com)
        )

    def __hash__(self) -> int:
        return hash((self.mass, *self.com, *self.about_com.flat))

    def __reduce__(self) -> tuple[Any, ...]:
        return Inertia, (self.mass, self.com, self.about_com)

    def __repr__(self) -> str:
        com, about = self.com.tolist(), self.about_com.tolist()
        return f"Inertia(mass={self.mass}, com={com}, about_com={about})"


def pose_parts(matrix: Any) -> tuple[np.ndarray, np.ndarray]:
    """R and p of a homogeneous matrix (4, 4), which has to be a pose."""
    X = _numbers("a matrix", matrix, (4, 4))
    if not is_rotation(X[:3, :3]) or np.any(X[3] != (0, 0, 0, 1)):
        raise ModelError(
            f"a pose is [R p; 0 0 0 1] with a rotation R; got {X.tolist()}; the nearest one is "
            f"hinge.spatial.se3.normalize's"
        )
    return X[:3, :3].copy(), X[:3, 3].copy()


def _at_first(name: str) -> Callable[..., Any]:
    def call(x: Any) -> Any:
        MACHINE_CODE[name] = MACHINE_CODE["load"](name)
        return MACHINE_CODE[name](x)

    return call


# what users ask poses for most often, in plain code
PLAIN_CODE = {"parts": pose_parts, "quaternion": quaternion_from_matrix}
# what answers them, loaded at the first call; load: where from, which a room above may change
MACHINE_CODE = {name: _at_first(name) for name in PLAIN_CODE}
MACHINE_CODE["load"] = PLAIN_CODE.__getitem__
_FLOAT = np.dtype(float)


def _made(R: np.ndarray, p: np.ndarray) -> Transform:
    """The pose of new arrays of the right shapes, which nothing else will write to."""
    R.setflags(write=False)
    p.setflags(write=False)
    made = object.__new__(Transform)
    object.__setattr__(made, "rotation", R)
    object.__setattr__(made, "translation", p)
    return made


def _numbers(what: str, values: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Finite floats of a shape."""
    try:
        found = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        found = np.full((), np.nan)
    if found.shape != shape or not np.isfinite(found).all():
        raise ModelError(f"{what} is {values!r}; expected finite numbers of shape {shape}")
    return found


def _frozen(values: Any) -> np.ndarray:
    """A read-only copy; whole numbers become floats, every other scalar stays what it is."""
    a = np.array(values)
    if a.dtype.kind in "biu":
        a = a.astype(float)
    a.setflags(write=False)
    return a
