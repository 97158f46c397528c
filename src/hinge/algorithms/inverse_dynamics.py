"""Inverse dynamics (RNEA): the joint forces that a motion needs.  Paper F fig. 5; math §3.

    outward   V(k) = φ*(p,k) V(p) + H*(k) q̇(k)                                                  (1)
              α(k) = φ*(p,k) α(p) + a(k) + H*(k) q̈(k) + Ḣ*(k) q̇(k),   α(0) = −g                (2)
              f(k) = M(k) α(k) + b(k) − f_ext(k)                                                (3)
    inward    τ(k) = H(k) f(k) + armature(k) q̈(k)                                               (4)
              f(p) = f(p) + φ(p,k) f(k)                                                         (5)

α = (ω̇; p̈) is the acceleration of a body's origin as one measures it: the Coriolis acceleration a
and the gyroscopic force b then need no linear velocity (`carried_acceleration` and `force` in
`spatial.py`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..algebra.spatial import carried_acceleration
from ..model.protocol import PerBody, Slot, Tree
from .declare import algorithm

__all__ = ["bias_forces", "gravity_forces", "inverse_dynamics", "joint_forces", "motion", "rnea"]


@algorithm(joint_level=True, loops=True, aliases=("rnea",), result="tau")
def inverse_dynamics(
    mech: Tree,
    q: np.ndarray,
    qd: np.ndarray,
    qdd: np.ndarray,
    f_ext: np.ndarray | None = None,
) -> np.ndarray:
    """τ = M(q) q̈ + C(q, q̇) + g(q) − Σ Jᵀ f_ext: (nv,).  O(N): one sweep out, one sweep in.

    f_ext: (n_bodies, 6), forces (moment; force) acting on the bodies, in body axes at body origins.
    """
    H, phi = mech.H(q), mech.phi(q)
    return joint_forces(mech, H, phi, motion(mech, H, phi, q, qd, qdd, f_ext).f, qdd)


def joint_forces(mech: Tree, H: PerBody, phi: PerBody, f: Slot, qdd: np.ndarray) -> np.ndarray:
    """The inward sweep (4) and (5) over the forces that bodies need, which it uses up.  O(N)."""
    qdd_, (tau,) = mech.rates(qdd), mech.slots(1)
    for p, k in mech.inward():
        tau[k] = H[k] @ f[k] + mech.armature[k] * qdd_[k]  # (4)
        f[p] = f[p] + phi[k] @ f[k]  # (5)
    return mech.join(tau)


class Motion(NamedTuple):
    """V, α and f of every body: velocity, acceleration, and the force that it needs by itself."""

    V: Slot
    alpha: Slot
    f: Slot


def motion(
    mech: Tree,
    H: PerBody,
    phi: PerBody,
    q: np.ndarray,
    qd: np.ndarray,
    qdd: np.ndarray,
    f_ext: np.ndarray | None,
) -> Motion:
    """The outward sweep (1) to (3), given H and φ.  O(N)."""
    qd_, qdd_, f_ext_ = mech.rates(qd), mech.rates(qdd), mech.wrenches(f_ext)
    M, H_rate = mech.M, mech.H_rate(q, qd)
    V, alpha, f = mech.slots(3)
    alpha[0] = -mech.free_fall
    for p, k in mech.outward():
        W = H[k].T @ qd_[k]
        V[k] = phi[k].T @ V[p] + W  # (1)
        own = H[k].T @ qdd_[k] + H_rate[k].T @ qd_[k]
        alpha[k] = carried_acceleration(phi[k], V[p], alpha[p], W) + own  # (2)
        f[k] = M[k].force(V[k], alpha[k]) - f_ext_[k]  # (3)
    return Motion(V, alpha, f)


@algorithm(joint_level=True, loops=True, result="tau")
def bias_forces(
    mech: Tree, q: np.ndarray, qd: np.ndarray, f_ext: np.ndarray | None = None
) -> np.ndarray:
    """C(q, q̇) + g(q) − Σ Jᵀ f_ext: the joint forces at q̈ = 0, (nv,).  O(N)."""
    return inverse_dynamics(mech, q, qd, np.zeros(mech.nv), f_ext)


@algorithm(joint_level=True, loops=True, result="tau")
def gravity_forces(mech: Tree, q: np.ndarray) -> np.ndarray:
    """g(q): the joint forces that hold the mechanism still, (nv,).  O(N)."""
    still = np.zeros(mech.nv)
    return inverse_dynamics(mech, q, still, still)


rnea = inverse_dynamics
