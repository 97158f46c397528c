"""Rotations: matrices about an axis, quaternions (scalar first), their exponential and logarithm.

R_AB turns coordinates in B into coordinates in A.  Functions run on
any scalar unless they say otherwise; angles are in radians.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .small import atan2, cos, less, one_below_zero, sign, sin, sqrt, where

__all__ = [
    "about_axis",
    "axial",
    "axis_angle_of",
    "cayley_momentum",
    "cayley_quaternion",
    "from_rpy",
    "half_turn",
    "is_rotation",
    "nearest_rotation",
    "norm",
    "orthonormal",
    "quaternion_conjugate",
    "quaternion_difference",
    "quaternion_exp",
    "quaternion_from_matrix",
    "quaternion_log",
    "quaternion_matrix",
    "quaternion_product",
    "quaternion_unit",
    "random_quaternion",
    "rotation_angle",
    "rotation_log",
    "rpy_of",
    "safe_to_square",
    "skew",
    "turned_matrix",
    "turned_vector",
]

# Added to squared angles so that sin(θ)/θ needs no branch: its change is below rounding, and second
# derivatives lose 1e-8 at most, since θ is at least 1e-8.
_TINY = 1e-16


def skew(v: Any) -> np.ndarray:
    """The matrix v× with (v×) w = v × w."""
    x, y, z = v
    return np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])


def axial(A: np.ndarray) -> np.ndarray:
    """The v with v× = A − Aᵀ: of a rotation by θ about n, 2 sin θ n."""
    return np.array([A[2, 1] - A[1, 2], A[0, 2] - A[2, 0], A[1, 0] - A[0, 1]])


def about_axis(axis: np.ndarray, angle: np.ndarray) -> np.ndarray:
    """R = cos q 1 + sin q a× + (1 − cos q) a aᵀ for a unit axis a; angle: (1,)."""
    c, s = cos(angle), sin(angle)
    aa = np.outer(axis, axis)
    return aa + c * (np.eye(3) - aa) + s * skew(axis)


def turned_vector(v: np.ndarray, i: int, c: Any, s: Any) -> np.ndarray:
    """R v for the rotation R about coordinate axis i by an angle with cosine c and sine s."""
    j, k = (i + 1) % 3, (i + 2) % 3
    out = list(v)
    out[j], out[k] = c * v[j] - s * v[k], s * v[j] + c * v[k]
    return np.array(out)


def turned_matrix(A: np.ndarray, i: int, c: Any, s: Any) -> np.ndarray:
    """R A Rᵀ for the rotation R about coordinate axis i: 12 products, 8 if A is symmetric.

    In the plane of the turn, u = s (A_jj − A_kk) + c (A_jk + A_kj) gives all four entries.
    """
    j, k = (i + 1) % 3, (i + 2) % 3
    out = [list(row) for row in A]
    u = s * (A[j, j] - A[k, k]) + c * (A[j, k] + A[k, j])
    su, cu = s * u, c * u
    out[j][j], out[k][k] = A[j, j] - su, A[k, k] + su
    out[j][k], out[k][j] = cu - A[k, j], cu - A[j, k]
    out[i][j], out[i][k] = c * A[i, j] - s * A[i, k], s * A[i, j] + c * A[i, k]
    out[j][i], out[k][i] = c * A[j, i] - s * A[k, i], s * A[j, i] + c * A[k, i]
    return np.array(out)


def from_rpy(roll: float, pitch: float, yaw: float) -> np.ndarray:
    """R = Rz(yaw) Ry(pitch) Rx(roll), the fixed-axis angles of URDF."""
    x, y, z = np.eye(3)
    Rx, Ry, Rz = (about_axis(a, np.array([q])) for a, q in ((x, roll), (y, pitch), (z, yaw)))
    return Rz @ Ry @ Rx


def rpy_of(R: np.ndarray, rounding: float = float(np.finfo(float).eps)) -> np.ndarray:
    """(roll, pitch, yaw) of a rotation matrix, |pitch| ≤ π/2; rounding: of its entries.

    One turn after the other is taken off, so that `from_rpy` gives R back to rounding wherever it
    is; at pitch = ±π/2, where roll and yaw turn about one axis, yaw is 0.
    """
    # what is left of a right angle by rounding has no direction
    level = less(R[0, 0] * R[0, 0] + R[1, 0] * R[1, 0], (4 * rounding) ** 2)
    yaw = atan2(where(level, 0.0, R[1, 0]), where(level, 1.0, R[0, 0]))
    c, s = cos(yaw), sin(yaw)
    pitch = atan2(-R[2, 0], c * R[0, 0] + s * R[1, 0])
    roll = atan2(s * R[0, 2] - c * R[1, 2], c * R[1, 1] - s * R[0, 1])
    return np.array([roll, pitch, yaw])


def safe_to_square(quat: Any, dtype: Any = None) -> Any:
    """A quaternion of floats, scaled by a power of 2 if its norm's square is out of their range.

    dtype: whose range, if not its own.  Of any other scalars as it is.
    """
    if not isinstance(quat, np.ndarray) or quat.dtype.kind not in "fc":
        return quat
    power = np.frexp(np.abs(quat.real).max(axis=0))[1]
    far = np.abs(power) > np.finfo(dtype or quat.dtype).maxexp // 4
    if not far.any():
        return quat
    real = np.ldexp(quat.real, np.where(far, -power, 0))
    if quat.dtype.kind == "f":
        return real
    return real + 1j * np.ldexp(quat.imag, np.where(far, -power, 0))


def quaternion_matrix(quat: np.ndarray) -> np.ndarray:
    """R = ((w² − |v|²) 1 + 2 v vᵀ + 2 w v×)/(w² + |v|²) of a quaternion (w, v), not zero.

    In compiled code NaN, not a wrong rotation, if squares are out of range: ∞ · 0, or 0 · ∞.
    """
    w, x, y, z = safe_to_square(quat)
    ww, xx, yy, zz = w * w, x * x, y * y, z * z
    vv = xx + yy + zz
    inverse = 1 / (ww + vv)
    c, s = (ww - vv) * inverse, inverse + inverse
    xs, ys, zs = x * s, y * s, z * s
    wx, wy, wz = w * xs, w * ys, w * zs
    xy, xz, yz = x * ys, x * zs, y * zs
    return np.array(
        [
            [c + xx * s, xy - wz, xz + wy],
            [xy + wz, c + yy * s, yz - wx],
            [xz - wy, yz + wx, c + zz * s],
        ]
    )


def quaternion_product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a ⊗ b: first turn by b, then by a."""
    aw, ax, ay, az = a
    bw, bx, by, bz = b
    return np.array(
        [
            aw * bw - ax * bx - ay * by - az * bz,
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
        ]
    )


def quaternion_conjugate(quat: np.ndarray) -> np.ndarray:
    """The turn back."""
    return quat * np.array([1, -1, -1, -1])


def quaternion_exp(w: np.ndarray) -> np.ndarray:
    """The unit quaternion of the rotation vector w: (cos θ/2, w sin(θ/2)/θ), θ = |w|."""
    c, s = half_turn(w)
    return np.array([c, w[0] * s, w[1] * s, w[2] * s])


def half_turn(w: np.ndarray) -> tuple[Any, Any]:
    """cos θ/2 and sin(θ/2)/θ of a rotation vector, θ = |w|."""
    angle = sqrt(w @ w + _TINY)
    s = sin(0.5 * angle) / angle
    return cos(0.5 * angle), s


def cayley_quaternion(w: np.ndarray) -> np.ndarray:
    """A quaternion of cay(w) = (1 − ½w×)⁻¹(1 + ½w×), a turn by 2 atan ½|w|; not of unit length."""
    return np.array([1, *(0.5 * w)])


def cayley_momentum(w: np.ndarray, mu: np.ndarray, f: np.ndarray) -> np.ndarray:
    """The momentum at R cay(−w) of a turn that has μ at R, where half its impulse f has acted.

    dcay⁻¹ = E + O with E = 1 + ¼wwᵀ, O = ½w×;  (E − O)ᵀ(μ − E⁻¹(f + Oᵀμ)).
    """
    g = f - 0.5 * (skew(w) @ mu)
    x = mu - g + (w @ g) / (4 + w @ w) * w
    return x + 0.25 * (w @ x) * w + 0.5 * (skew(w) @ x)


def quaternion_log(quat: np.ndarray) -> np.ndarray:
    """The rotation vector of a quaternion, not zero: at most π long.

    In compiled code NaN, not a wrong vector, if squares are out of range.
    """
    quat = safe_to_square(quat)
    n = quat @ quat
    w, *v = np.array([sqrt(n) * (1 / n)]) * quat
    vector, side = np.array(v), sign(w)
    sine = sqrt(vector @ vector + _TINY)
    return np.array([2 * side * atan2(sine, side * w) / sine]) * vector


def quaternion_difference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The rotation vector that leads from a to b, in the axes of a."""
    return quaternion_log(
        quaternion_product(quaternion_conjugate(safe_to_square(a)), safe_to_square(b))
    )


def quaternion_from_matrix(R: np.ndarray) -> np.ndarray:
    """The unit quaternion (w ≥ 0) of a rotation matrix."""
    quat = _quaternion_along(R)
    return quat * np.array([sign(quat[0]) / sqrt(quat @ quat)])


def rotation_log(R: np.ndarray) -> np.ndarray:
    """The rotation vector of a matrix, at most π long; at π its largest entry is positive."""
    return quaternion_log(_quaternion_along(R))


def _quaternion_along(R: np.ndarray) -> np.ndarray:
    """A quaternion of a rotation matrix, of a length from 2 to 4.

    4 q qᵀ has entries that are sums of those of R; its row with the largest diagonal is the one
    from which nothing is lost.
    """
    t, a, S = R[0, 0] + R[1, 1] + R[2, 2], axial(R), R + R.T
    rows = [
        np.array([1 + t, *a]),
        np.array([a[0], 1 - t + S[0, 0], S[0, 1], S[0, 2]]),
        np.array([a[1], S[0, 1], 1 - t + S[1, 1], S[1, 2]]),
        np.array([a[2], S[0, 2], S[1, 2], 1 - t + S[2, 2]]),
    ]
    most, quat = rows[0][0], rows[0]
    for i in (1, 2, 3):
        more = less(most, rows[i][i])
        most, quat = where(more, rows[i][i], most), where(more, rows[i], quat)
    return quat


def norm(v: np.ndarray) -> Any:
    """|v|, whose derivative at zero is zero."""
    square = v @ v
    there = less(0.0, square)
    return where(there, sqrt(where(there, square, 1.0)), 0.0)


def rotation_angle(quat: np.ndarray) -> Any:
    """The angle of a quaternion, not zero, from 0 to π."""
    quat = safe_to_square(quat)
    return 2 * atan2(norm(quat[1:]), quat[0] * sign(quat[0]))


def axis_angle_of(quat: np.ndarray) -> tuple[np.ndarray, Any]:
    """The unit axis and the angle, 0 to π, of a quaternion, not zero; x where nothing turns."""
    quat = safe_to_square(quat)
    sine, side = norm(quat[1:]), sign(quat[0])
    there = less(0.0, sine)
    x, y, z = quat[1:] * np.array([side / where(there, sine, 1.0)])
    return np.array([where(there, x, 1.0), y, z]), 2 * atan2(sine, quat[0] * side)


def quaternion_unit(quat: np.ndarray) -> np.ndarray:
    """The unit quaternion of a quaternion, not zero; in compiled code NaN if squares overflow."""
    quat = safe_to_square(quat)
    return quat / np.array([sqrt(quat @ quat)])


def random_quaternion(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Unit quaternions, uniform over all rotations."""
    quat = rng.normal(size=(*shape, 4))
    return quat / np.linalg.norm(quat, axis=-1, keepdims=True)


def orthonormal(A: np.ndarray) -> np.ndarray:
    """The rotation nearest to a matrix with a positive determinant, NaN to any other.

    Newton's steps X ← ½ (γ X + X⁻ᵀ/γ) to the polar factor, γ² = |X⁻¹|/|X|: eight are enough, the
    last of them doubling digits that are there.
    """
    for _ in range(8):
        # the rows of X⁻ᵀ are cross products of those of X, over the determinant
        x, y, z = A
        cofactors = np.array([skew(y) @ z, skew(z) @ x, skew(x) @ y])
        determinant = x @ cofactors[0]
        inverse = cofactors * np.array([one_below_zero(-determinant) / determinant])
        scale = sqrt(sqrt(np.sum(inverse * inverse) / np.sum(A * A)))
        A = 0.5 * (np.array([scale]) * A + np.array([1 / scale]) * inverse)
    return A


def is_rotation(R: np.ndarray) -> bool:
    """Whether R is orthonormal, to the six digits that files have, and right-handed."""
    return bool(np.abs(R @ R.T - np.eye(3)).max() < 1e-6 and np.linalg.det(R) > 0)


def nearest_rotation(R: np.ndarray) -> np.ndarray:
    """The rotation nearest to an R that is one to some digits; R itself, if it is to rounding.

    Newton's steps R ← ½ R (3 − RᵀR) to the polar factor: each doubles the digits.
    """
    while np.abs(excess := R.T @ R - np.eye(3)).max() > 8 * np.finfo(float).eps:
        R = R - 0.5 * R @ excess
    return R
