"""Loop-closure and grasp constraints.  Paper F eq. 34; math §3.

A constraint holds frame l on frame r along some axes of r.  In the axes of r, d from r to l:

    K q̇ = (ω_l − ω_r;  u),   u = v_l − v_r − ω_r×d     the velocity of l relative to r          (1)
    K̇ q̇ = (ω̇_l − ω̇_r − ω_r×(ω_l − ω_r);
           v̇_l − v̇_r − ω̇_r×d − ω_r×(ω_r×d) − 2 ω_r×u)  at q̈ = 0                                (2)
    k = −K̇ q̇ − k_d K q̇ − k_p e                         K q̈ = k, and the error e dies out       (3)
    M q̈ − Kᵀ λ = τ − bias                              λ: the force on l, its opposite on r     (4)

so that A λ = k − K M⁻¹(τ − bias) with A = K M⁻¹ Kᵀ.  Redundant constraints make A singular, yet the
system consistent: it is solved by proximal steps λ ← λ + (A + μ)⁻¹(rhs − A λ), which converge to a
solution whatever the rank, and need no decision about it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..algebra.rotation import axial, skew
from ..algebra.small import solve_spd
from ..errors import ArgumentError
from ..model.mechanism import Mechanism
from .declare import algorithm
from .inverse_dynamics import bias_forces
from .kinematics import frame_pose, frame_velocity, jacobian, velocity_product_acceleration
from .mass_matrix import mass_matrix

__all__ = [
    "ConstrainedMotion",
    "LoopConstraint",
    "as_constraints",
    "constrained_forward_dynamics",
    "constraint_bias",
    "constraint_error",
    "constraint_jacobian",
]

# the proximal steps: μ relative to the mean of diag(A), and how many; an eigenvalue σ of A is
# resolved to (μ/(μ + σ))^steps
_PROXIMAL, _STEPS = 1e-7, 5


@dataclass(frozen=True)
class LoopConstraint:
    """Frame `left` stays on frame `right` along `axes`, given in the axes of `right`.

    axes: which of (ωx, ωy, ωz, vx, vy, vz) are held.  All six weld the frames (a grasp);
    (0, 1, 3, 4, 5) leaves a hinge about z, (3, 4, 5) a ball joint, (5,) a point on a plane.
    stiffness k_p, damping k_d: of the stabilisation, in 1/s² and 1/s; 0 for none.
    """

    left: str
    right: str
    axes: tuple[int, ...] = (0, 1, 2, 3, 4, 5)
    stiffness: float = 400.0
    damping: float = 40.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "axes", tuple(np.atleast_1d(self.axes).tolist()))
        known = [i for i in range(6) if i in self.axes]
        if not known or list(self.axes) != known:
            raise ArgumentError(
                f"axes of the constraint {self.left!r} on {self.right!r} are {self.axes}; expected "
                f"some of 0 … 5 (ωx, ωy, ωz, vx, vy, vz), rising"
            )
        for name, gain in (("stiffness", self.stiffness), ("damping", self.damping)):
            if not isinstance(gain, (int, float, np.number)) or not 0 <= gain < np.inf:
                raise ArgumentError(
                    f"{name} of the constraint {self.left!r} on {self.right!r} is {gain!r}; "
                    f"expected a number from 0 on"
                )


def as_constraints(where: str, constraints: Any) -> tuple[LoopConstraint, ...]:
    """One constraint or several as a tuple, if they are constraints."""
    one = isinstance(constraints, LoopConstraint)
    several = (constraints,) if one or not isinstance(constraints, Iterable) else (*constraints,)
    for c in (c for c in several if not isinstance(c, LoopConstraint)):
        raise ArgumentError(f"{where}: {c!r} among the constraints is not a hinge.LoopConstraint")
    return several


class ConstrainedMotion(NamedTuple):
    """qdd: accelerations (nv,); forces: λ (rows,), on `left` at its origin, in `right`'s axes."""

    qdd: Any
    forces: Any


@algorithm()
def constraint_jacobian(
    mech: Mechanism, q: np.ndarray, constraints: Sequence[LoopConstraint]
) -> np.ndarray:
    """K (rows, nv): K q̇ = 0 while the constraints hold (1)."""
    rows = [np.zeros((0, mech.nv))]
    for c in constraints:
        R, d = _relative_pose(mech, q, c)
        left, right = jacobian(mech, q, c.left), jacobian(mech, q, c.right)
        turn = R.T @ (left[:3] - right[:3])
        slide = R.T @ (left[3:] - right[3:] + skew(d) @ right[:3])
        rows.append(np.concatenate([turn, slide])[list(c.axes)])
    return np.concatenate(rows)


@algorithm()
def constraint_bias(
    mech: Mechanism, q: np.ndarray, qd: np.ndarray, constraints: Sequence[LoopConstraint]
) -> np.ndarray:
    """k (rows,) of K q̈ = k, stabilised (2), (3)."""
    rows = [np.zeros(0)]
    for c in constraints:
        R, d = _relative_pose(mech, q, c)
        V = frame_velocity(mech, q, qd, c.left) - frame_velocity(mech, q, qd, c.right)
        a_right = velocity_product_acceleration(mech, q, qd, c.right)
        a = velocity_product_acceleration(mech, q, qd, c.left) - a_right
        w = skew(frame_velocity(mech, q, qd, c.right)[:3])
        u = V[3:] - w @ d  # (1)
        turn = a[:3] - w @ V[:3]
        slide = a[3:] - skew(a_right[:3]) @ d - w @ (w @ d) - 2 * w @ u  # (2)
        velocity = np.concatenate([R.T @ V[:3], R.T @ u])[list(c.axes)]
        rate = np.concatenate([R.T @ turn, R.T @ slide])[list(c.axes)]
        error = constraint_error(mech, q, [c])
        rows.append(-rate - c.damping * velocity - c.stiffness * error)  # (3)
    return np.concatenate(rows)


@algorithm()
def constraint_error(
    mech: Mechanism, q: np.ndarray, constraints: Sequence[LoopConstraint]
) -> np.ndarray:
    """e (rows,): how far `left` is off `right` along the axes held; ė = K q̇ at e = 0.

    Angles are small-angle ones, half the skew part of the relative rotation; where just one of the
    three is free, they are the tilt of that free axis, whatever the turn about it.
    """
    rows = [np.zeros(0)]
    for c in constraints:
        R_right, d = _relative_pose(mech, q, c)
        R = R_right.T @ frame_pose(mech, q, c.left)[:3, :3]
        turn = 0.5 * axial(R)
        free = [i for i in range(3) if i not in c.axes]
        if len(free) == 1:
            turn = skew(np.eye(3)[free[0]]) @ R[:, free[0]]
        rows.append(np.concatenate([turn, R_right.T @ d])[list(c.axes)])
    return np.concatenate(rows)


@algorithm()
def constrained_forward_dynamics(
    mech: Mechanism,
    q: np.ndarray,
    qd: np.ndarray,
    tau: np.ndarray,
    constraints: Sequence[LoopConstraint],
    f_ext: np.ndarray | None = None,
) -> ConstrainedMotion:
    """q̈ and λ with M q̈ − Kᵀλ = τ − bias and K q̈ = k (4).  O(nv³).

    Of redundant constraints λ is one of the many force systems that hold them; q̈ is unique.
    """
    M = mass_matrix(mech, q)
    K = constraint_jacobian(mech, q, constraints)
    k = constraint_bias(mech, q, qd, constraints)
    free = solve_spd(M, np.asarray(tau) - bias_forces(mech, q, qd, f_ext))
    response = solve_spd(M, K.T)
    lam = _proximal_solve(K @ response, k - K @ free)
    return ConstrainedMotion(free + response @ lam, lam)


def _proximal_solve(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A solution of A x = b for a positive semidefinite A of any rank, b in its range."""
    n = len(b)
    mean = sum(A[i, i] for i in range(n)) / max(n, 1)
    shifted = A + np.diag([_PROXIMAL * mean] * n)
    x = np.zeros(n)
    for _ in range(_STEPS):
        x = x + solve_spd(shifted, b - A @ x)
    return x


def _relative_pose(
    mech: Mechanism, q: np.ndarray, c: LoopConstraint
) -> tuple[np.ndarray, np.ndarray]:
    """The rotation of `right` and the vector d from `right` to `left`, in world axes."""
    body = mech.frame(c.left).body
    if body == mech.frame(c.right).body:
        raise ArgumentError(
            f"{mech.name!r}: frames {c.left!r} and {c.right!r} of a constraint are both on body "
            f"{mech.bodies[body].name!r}, and cannot move against each other; name another frame"
        )
    right, left = frame_pose(mech, q, c.right), frame_pose(mech, q, c.left)
    return right[:3, :3], left[:3, 3] - right[:3, 3]
