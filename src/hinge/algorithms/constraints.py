"""Loop-closure and grasp constraints.  Paper F eq. 34; math §3.

A constraint holds frame l on frame r along some axes of r.  In the axes of r, d from r to l:

    K q̇ = (ω_l − ω_r;  u),   u = v_l − v_r − ω_r×d     the velocity of l relative to r          (1)
    K̇ q̇ = (ω̇_l − ω̇_r − ω_r×(ω_l − ω_r);
           v̇_l − v̇_r − ω̇_r×d − ω_r×(ω_r×d) − 2 ω_r×u)  at q̈ = 0                                (2)
    k = −K̇ q̇ − k_d K q̇ − k_p e                         K q̈ = k, and the error e dies out       (3)
    M q̈ − Kᵀ λ = τ − bias                              λ: the force on l, its opposite on r     (4)

so that A λ = k − K M⁻¹(τ − bias) with A = K M⁻¹ Kᵀ.  Redundant constraints make A singular, yet the
system consistent.  In units in which A has a unit diagonal, whatever the masses, it is solved by
proximal steps λ ← λ + (A + μ)⁻¹ r, r = rhs − A λ, which converge whatever the rank, and need no
decision about it.  A row of K that no joint moves is nothing but rounding, and is left out.

What contradicts the rest stays in r and adds as much in every step, to be taken away at the end:
then λ is the least one of those that come nearest; how near, K q̈ − k tells                     (5)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..algebra.rotation import axial, skew
from ..algebra.small import is_zero, one_below_zero, sign, solve_spd, sqrt
from ..errors import ArgumentError, SingularError
from ..model.mechanism import Mechanism
from .declare import algorithm
from .inverse_dynamics import bias_forces
from .kinematics import frame_pose, frame_velocity, jacobian, velocity_product_acceleration
from .mass_matrix import mass_matrix
from .singular import sound

__all__ = [
    "ConstrainedMotion",
    "LoopConstraint",
    "as_constraints",
    "constrained_forward_dynamics",
    "constraint_bias",
    "constraint_error",
    "constraint_jacobian",
]

# the proximal steps: μ beside the unit diagonal, and how many; an eigenvalue σ of the scaled A is
# resolved to (μ/(μ + σ))^steps
_PROXIMAL, _STEPS = 1e-8, 6
# a row of K is rounding where it is less than this of the terms that it is made of
_ROUNDING = 1e-13
# what K q̈ may miss of k, beside the terms of both
_CONFLICT = 1e-4
_AXES = ("ωx", "ωy", "ωz", "vx", "vy", "vz")


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
    M = sound(mech, mass_matrix(mech, q))
    K = constraint_jacobian(mech, q, constraints)
    k = constraint_bias(mech, q, qd, constraints)
    free = solve_spd(M, np.asarray(tau) - bias_forces(mech, q, qd, f_ext))
    response = solve_spd(M, K.T)
    A = K @ response
    units = _units(K, A, M, _reach(mech, q, constraints))
    lam = units * _proximal_solve(units[:, None] * A * units, units * (k - K @ free))
    qdd = free + response @ lam
    missed = _missed(mech, q, qd, constraints, K, k, qdd)
    _refuse_conflict(mech, constraints, missed)
    met = math.prod(map(one_below_zero, missed))
    return ConstrainedMotion(met * qdd, met * lam)


def _units(K: np.ndarray, A: np.ndarray, M: np.ndarray, reach: np.ndarray) -> np.ndarray:
    """1/√A(i,i); 0 for a row of K that is nothing but rounding of the terms it is made of."""
    weights = np.array([0.0 if is_zero(x) else 1 / x for x in np.diagonal(M)])
    excess = (K * K - (_ROUNDING * reach) ** 2) @ weights
    is_row = [0.5 * (1 - sign(-x)) for x in excess]
    pairs = zip(np.diagonal(A), is_row, strict=True)
    return np.array([one / sqrt(one * x + (1 - one)) for x, one in pairs])


def _reach(mech: Mechanism, q: np.ndarray, constraints: Sequence[LoopConstraint]) -> np.ndarray:
    """The size of what cancels in K of (1): (rows, nv)."""
    rows = [np.zeros((0, mech.nv))]
    for c in constraints:
        _, d = _relative_pose(mech, q, c)
        J = abs(jacobian(mech, q, c.left)) + abs(jacobian(mech, q, c.right))
        turn = J[:3].sum(axis=0)
        slide = J[3:].sum(axis=0) + abs(d).sum() * turn
        rows.append(np.array([turn if axis < 3 else slide for axis in c.axes]))
    return np.concatenate(rows)


def _proximal_solve(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The least x of those that bring A x nearest to b, for a positive semidefinite A (5)."""
    n = len(b)
    shifted = A + np.diag([_PROXIMAL] * n)
    x = np.zeros(n)
    for _ in range(_STEPS):
        x = x + solve_spd(shifted, b - A @ x)
    return x - _STEPS * solve_spd(shifted, b - A @ x)


def _missed(
    mech: Mechanism,
    q: np.ndarray,
    qd: np.ndarray,
    constraints: Sequence[LoopConstraint],
    K: np.ndarray,
    k: np.ndarray,
    qdd: np.ndarray,
) -> np.ndarray:
    """By how much K q̈ − k (rows,) is more than it may be, beside the terms that it is made of."""
    terms = np.array([x for c in constraints for x in _terms(mech, q, qd, c)[list(c.axes)]])
    return abs(K @ qdd - k) - _CONFLICT * (abs(k) + abs(K) @ abs(qdd) + terms)


def _terms(mech: Mechanism, q: np.ndarray, qd: np.ndarray, c: LoopConstraint) -> np.ndarray:
    """The size of what cancels in k of (2), (3), turning and sliding: (6,)."""
    turns, slides = c.stiffness, 0.0
    for frame in (c.left, c.right):
        a = abs(velocity_product_acceleration(mech, q, qd, frame))
        V = abs(frame_velocity(mech, q, qd, frame))
        p = abs(frame_pose(mech, q, frame)[:3, 3])
        turns = turns + a[:3].sum() + c.damping * V[:3].sum()
        slides = slides + a[3:].sum() + c.damping * V[3:].sum() + c.stiffness * p.sum()
    return np.array([turns] * 3 + [slides] * 3)


def _refuse_conflict(
    mech: Mechanism, constraints: Sequence[LoopConstraint], missed: np.ndarray
) -> None:
    """Raise if numbers say that the constraints contradict each other, or the joints."""
    if missed.dtype.kind != "f" or not (missed > 0).any():
        return
    c, axis = [(c, axis) for c in constraints for axis in c.axes][int(np.argmax(missed))]
    raise SingularError(
        f"constrained_forward_dynamics of {mech.name!r}: no motion keeps {c.left!r} on {c.right!r} "
        f"along axis {axis} ({_AXES[axis]}) and all other constraints: they contradict each other, "
        f"or no joint moves it; close the loops first (constraint_error), or hold fewer axes"
    )


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
