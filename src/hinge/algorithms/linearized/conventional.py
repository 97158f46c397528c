"""Linearised forward dynamics by way of inverse dynamics.  Paper L, Algorithms 3 and 4; math §5.

    Algorithm 3   M δq̈ = δτ − (A_D δq̇ + B_D δq), the bracket by Algorithm 1                     (1)
    Algorithm 4   A_C = M⁻¹ A_D,   B_C = M⁻¹ B_D, from Algorithm 2                              (2)

M = L* D L with rows eliminated from the tips: L is as sparse as M.  Mimicking joints are no
obstacle.
"""

from __future__ import annotations

import numpy as np

from ...algebra.small import mirror_lower, solve_spd
from ...model.ground_axes import Axes, seen_in
from ...model.mechanism import Mechanism
from ..inverse_dynamics import bias_forces
from ..mass_matrix import mass_matrix
from ..singular import sound
from .inverse_derivatives import inverse_dynamics_derivatives, inverse_dynamics_jvp
from .loads import Load

__all__ = [
    "conventional_derivatives",
    "conventional_forward_derivatives",
    "conventional_forward_jvp",
    "conventional_jvp",
    "solve_from_tips",
]


def conventional_forward_jvp(
    mech: Mechanism,
    q: np.ndarray,
    qd: np.ndarray,
    tau: np.ndarray,
    dq: np.ndarray,
    dqd: np.ndarray,
    dtau: np.ndarray,
    f_ext: np.ndarray | None = None,
    points: np.ndarray | None = None,
    load: Load = "body",
    axes: Axes = "body",
) -> np.ndarray:
    """δq̈, (nv,), about the motion that τ causes."""
    qdd = _acceleration(mech, q, qd, tau, f_ext, axes)
    return conventional_jvp(mech, q, qd, qdd, dq, dqd, dtau, f_ext, points, load, axes)


def conventional_forward_derivatives(
    mech: Mechanism,
    q: np.ndarray,
    qd: np.ndarray,
    tau: np.ndarray,
    f_ext: np.ndarray | None = None,
    points: np.ndarray | None = None,
    load: Load = "body",
    axes: Axes = "body",
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """∂q̈/∂q, ∂q̈/∂q̇, M⁻¹ about the motion that τ causes."""
    qdd = _acceleration(mech, q, qd, tau, f_ext, axes)
    return conventional_derivatives(mech, q, qd, qdd, f_ext, points, load, axes)


def _acceleration(
    mech: Mechanism,
    q: np.ndarray,
    qd: np.ndarray,
    tau: np.ndarray,
    f_ext: np.ndarray | None = None,
    axes: Axes = "body",
) -> np.ndarray:
    """q̈ = M⁻¹ (τ − bias), (nv,), with an M and an L that the derivatives need anyway."""
    seen = seen_in(axes, mech, q)
    bias = bias_forces(seen, q, qd, f_ext)
    return solve_from_tips(mass_matrix(seen, q), np.asarray(tau) - bias)


def conventional_jvp(
    mech: Mechanism,
    q: np.ndarray,
    qd: np.ndarray,
    qdd: np.ndarray,
    dq: np.ndarray,
    dqd: np.ndarray,
    dtau: np.ndarray,
    f_ext: np.ndarray | None = None,
    points: np.ndarray | None = None,
    load: Load = "body",
    axes: Axes = "body",
) -> np.ndarray:
    """δq̈, (nv,), about the motion with acceleration qdd.  O(N · depth²)."""
    change = (dq, dqd, np.zeros(mech.nv))
    rho = inverse_dynamics_jvp(mech, q, qd, qdd, *change, f_ext, points, load, axes)
    M = sound(mech, mass_matrix(seen_in(axes, mech, q), q))
    return solve_from_tips(M, np.asarray(dtau) - rho)  # (1)


def conventional_derivatives(
    mech: Mechanism,
    q: np.ndarray,
    qd: np.ndarray,
    qdd: np.ndarray,
    f_ext: np.ndarray | None = None,
    points: np.ndarray | None = None,
    load: Load = "body",
    axes: Axes = "body",
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """∂q̈/∂q, ∂q̈/∂q̇, M⁻¹ about the motion with acceleration qdd.  O(N · nv · depth)."""
    B, A, M = inverse_dynamics_derivatives(mech, q, qd, qdd, f_ext, points, load, axes)
    nv = mech.nv
    X = solve_from_tips(sound(mech, M), np.hstack([-B, -A, np.eye(nv)]))  # (2)
    return X[:, :nv], X[:, nv : 2 * nv], mirror_lower(X[:, 2 * nv :]).reshape(nv, nv)


def solve_from_tips(M: np.ndarray, b: np.ndarray) -> np.ndarray:
    """M⁻¹ b, the last row eliminated first."""
    return solve_spd(M[::-1, ::-1], b[::-1])[::-1]
