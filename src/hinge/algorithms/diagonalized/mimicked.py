"""Total rates and working forces where a joint mimics another.  math §4, §7, §8.

A follower ties branches together, the Riccati sweep does not apply, and everything is worked out
from the dense M = m mᵀ, m upper triangular, and its rate:

    ν = mᵀ q̇,   ε = m⁻¹ τ,   ṁ = m Φ(ℓ Ṁ ℓᵀ),   C = ℓ (bias − g) − Φᵀ(ℓ Ṁ ℓᵀ) ν

L is the part of m within each joint.  O(nv³).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...algebra.small import half_upper, upper_root
from ...model.mechanism import Mechanism
from ..inverse_dynamics import bias_forces, gravity_forces
from ..mass_matrix import mass_matrix
from .sensitivity import coriolis_matrix as joint_coriolis_matrix
from .sensitivity import mass_matrix_rate

__all__ = [
    "coriolis",
    "coriolis_matrix",
    "dynamics",
    "joint_forces",
    "joint_rates",
    "mass_factor_rate",
    "roots",
    "total_rates",
    "working_forces",
    "working_gravity",
]


class Roots(NamedTuple):
    """m, its inverse ℓ, and the parts L, L⁻¹ of both within each joint."""

    m: np.ndarray
    l: np.ndarray
    L: np.ndarray
    L_inv: np.ndarray


def roots(mech: Mechanism, q: np.ndarray) -> Roots:
    """The factor of M and the roots of its blocks, (nv, nv) each."""
    m, l = upper_root(mass_matrix(mech, q))
    own = _within_joints(mech)
    return Roots(m, l, own * m, own * l)


def _within_joints(mech: Mechanism) -> np.ndarray:
    """1 where row and column belong to the same joint, else 0: (nv, nv)."""
    leaders = {k: b.joint.nv for k, b in enumerate(mech.bodies) if b.joint.mimic is None}
    return mech.join_matrix({(k, k): np.ones((nv, nv)) for k, nv in leaders.items() if k})


def total_rates(mech: Mechanism, q: np.ndarray, qd: np.ndarray, normalized: bool) -> np.ndarray:
    """ν or ξ."""
    r = roots(mech, q)
    nu = r.m.T @ qd
    return nu if normalized else r.L_inv.T @ nu


def joint_rates(mech: Mechanism, q: np.ndarray, nu: np.ndarray, normalized: bool) -> np.ndarray:
    """q̇ of ν or ξ."""
    r = roots(mech, q)
    return r.l.T @ (nu if normalized else r.L.T @ nu)


def working_forces(
    mech: Mechanism, q: np.ndarray, tau: np.ndarray, f_ext: np.ndarray | None, normalized: bool
) -> np.ndarray:
    """ε or κ."""
    r, still = roots(mech, q), np.zeros(mech.nv)
    external = gravity_forces(mech, q) - bias_forces(mech, q, still, f_ext)
    eps = r.l @ (tau + external)
    return eps if normalized else r.L @ eps


def joint_forces(mech: Mechanism, q: np.ndarray, eps: np.ndarray, normalized: bool) -> np.ndarray:
    """τ of ε or κ."""
    r = roots(mech, q)
    return r.m @ (eps if normalized else r.L_inv @ eps)


def working_gravity(mech: Mechanism, q: np.ndarray, normalized: bool) -> np.ndarray:
    """ε_g or κ_g."""
    return working_forces(mech, q, -gravity_forces(mech, q), None, normalized)


def coriolis(mech: Mechanism, q: np.ndarray, nu: np.ndarray, normalized: bool) -> np.ndarray:
    """C or C_ξ."""
    r = roots(mech, q)
    nu = nu if normalized else r.L.T @ nu
    qd = r.l.T @ nu
    turn = half_upper(r.l @ mass_matrix_rate(mech, q, qd) @ r.l.T)
    C = r.l @ (bias_forces(mech, q, qd) - gravity_forces(mech, q)) - turn.T @ nu
    return C if normalized else r.L @ (C + (_within_joints(mech) * turn).T @ nu)


def dynamics(
    mech: Mechanism,
    q: np.ndarray,
    nu: np.ndarray,
    tau: np.ndarray,
    f_ext: np.ndarray | None,
    normalized: bool,
) -> np.ndarray:
    """ν̇ or ξ̇."""
    force = working_forces(mech, q, tau, f_ext, normalized) + working_gravity(mech, q, normalized)
    rate = force - coriolis(mech, q, nu, normalized)
    if normalized:
        return rate
    r = roots(mech, q)
    return r.L_inv.T @ (r.L_inv @ rate)


def coriolis_matrix(mech: Mechanism, q: np.ndarray, nu: np.ndarray) -> np.ndarray:
    """The skew A with C = A ν."""
    r = roots(mech, q)
    qd = r.l.T @ nu
    turn = half_upper(r.l @ mass_matrix_rate(mech, q, qd) @ r.l.T)
    return r.l @ joint_coriolis_matrix(mech, q, qd) @ r.l.T - turn.T


def mass_factor_rate(mech: Mechanism, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
    """ṁ."""
    r = roots(mech, q)
    return r.m @ half_upper(r.l @ mass_matrix_rate(mech, q, qd) @ r.l.T)
