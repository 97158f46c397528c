"""Total rates ν = mᵀ q̇ and working forces ε = m⁻¹ τ: coordinates in which M is the identity.

Paper D tables 1 and 2, corrected; math §4, §6.  L(k) is the upper triangular root of D(k).

    rates     outward   V⁺(k) = φ*(p,k) V(p)
                        ξ(k) = q̇(k) + G*(k) V⁺(k),   ν(k) = L*(k) ξ(k)                          (1)
                        q̇(k) = ξ(k) − G*(k) V⁺(k),   ξ(k) = L⁻*(k) ν(k)                         (2)
                        V(k) = V⁺(k) + H*(k) q̇(k)
    forces    inward    κ(k) = τ(k) − H(k) z(k),     ε(k) = L⁻¹(k) κ(k)                         (3)
                        τ(k) = κ(k) + H(k) z(k),     κ(k) = L(k) ε(k)                           (4)
                        z(p) = z(p) + φ(p,k) (z(k) + G(k) κ(k)),   z starts from −f_ext
    gravity   outward   g(k) = φ*(p,k) g(p),   g(0) = (0; g)
                        ε_g(k) = L*(k) G*(k) g(k)                                               (5)

Kinetic energy is ½ νᵀν = ½ Σ ξᵀ D ξ and power νᵀε = ξᵀκ = q̇ᵀτ.  Gravity acts joint by joint: (5)
asks neither children nor parents for anything but the direction of the fall.
The un-normalised ξ and κ need no root.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...algebra.small import upper_root
from ...model.protocol import Branches, Tree
from ..declare import algorithm
from ..riccati import Riccati, riccati

__all__ = [
    "Innovations",
    "Spread",
    "innovations",
    "joint_forces",
    "joint_rates",
    "spread",
    "total_rates",
    "working_forces",
    "working_gravity",
]


class Innovations(NamedTuple):
    """Joint forces as a filter sees them, from the tips to the base.

    predicted: (nv,), what the joints beyond make of τ at this one; innovation: κ, what is new;
    covariance: (nv, nv), D, block diagonal; whitened: ε = L⁻¹ κ, with the unit covariance.
    """

    predicted: np.ndarray
    innovation: np.ndarray
    covariance: np.ndarray
    whitened: np.ndarray


class Spread(NamedTuple):
    """ξ, joint rates, and the motions of bodies before and after each joint."""

    xi: Any
    qd: Any
    V_plus: Any
    V: Any


@algorithm(joint_level=True, loops=True, independent_joints=True, result="nu")
def total_rates(mech: Tree, q: np.ndarray, qd: np.ndarray, normalized: bool = True) -> np.ndarray:
    """ν = mᵀ q̇, (nv,): half its square is the kinetic energy; not normalized: ξ.  O(N): in, out."""
    H, phi, qd_ = mech.H(q), mech.phi(q), mech.rates(qd)
    known = riccati(mech, H, phi)
    V, nu = mech.slots(2)
    for p, k in mech.outward():
        V_plus = phi[k].T @ V[p]
        xi = qd_[k] + known.G[k].T @ V_plus
        nu[k] = upper_root(known.D[k])[0].T @ xi if normalized else xi  # (1)
        V[k] = V_plus + H[k].T @ qd_[k]
    return mech.join(nu)


@algorithm(joint_level=True, loops=True, independent_joints=True, result="qd")
def joint_rates(mech: Tree, q: np.ndarray, nu: np.ndarray, normalized: bool = True) -> np.ndarray:
    """q̇ = m⁻ᵀ ν, (nv,), the inverse of `total_rates`; not normalized: nu is ξ.  O(N): in, out."""
    H, phi = mech.H(q), mech.phi(q)
    return mech.join(spread(mech, H, phi, riccati(mech, H, phi), nu, normalized).qd)


def spread(
    mech: Tree, H: Any, phi: Any, known: Riccati, nu: np.ndarray, normalized: bool
) -> Spread:
    """Joint rates and body velocities from total rates."""
    nu_ = mech.rates(nu)
    xi, qd, V_plus, V = mech.slots(4)
    for p, k in mech.outward():
        V_plus[k] = phi[k].T @ V[p]
        xi[k] = upper_root(known.D[k])[1].T @ nu_[k] if normalized else nu_[k]
        qd[k] = xi[k] - known.G[k].T @ V_plus[k]  # (2)
        V[k] = V_plus[k] + H[k].T @ qd[k]
    return Spread(xi, qd, V_plus, V)


@algorithm(joint_level=True, loops=True, independent_joints=True, result="eps")
def working_forces(
    mech: Tree,
    q: np.ndarray,
    tau: np.ndarray,
    f_ext: np.ndarray | None = None,
    normalized: bool = True,
) -> np.ndarray:
    """ε = m⁻¹ (τ + Σ Jᵀ f_ext), (nv,); not normalized: κ.  O(N): in, in.

    f_ext: (n_bodies, 6), forces (moment; force) acting on the bodies, in body axes at body origins.
    """
    H, phi, tau_, f_ext_ = mech.H(q), mech.phi(q), mech.rates(tau), mech.wrenches(f_ext)
    known = riccati(mech, H, phi)
    z = mech.filled(lambda k: -f_ext_[k])
    (eps,) = mech.slots(1)
    for p, k in mech.inward():
        kappa = tau_[k] - H[k] @ z[k]
        eps[k] = upper_root(known.D[k])[1] @ kappa if normalized else kappa  # (3)
        z[p] = z[p] + phi[k] @ (z[k] + known.G[k] @ kappa)
    return mech.join(eps)


@algorithm(joint_level=True, loops=True, independent_joints=True, result="tau")
def joint_forces(mech: Tree, q: np.ndarray, eps: np.ndarray, normalized: bool = True) -> np.ndarray:
    """τ = m ε, (nv,), the inverse of `working_forces`; not normalized: eps is κ.  O(N): in, in."""
    H, phi, eps_ = mech.H(q), mech.phi(q), mech.rates(eps)
    known = riccati(mech, H, phi)
    z = mech.filled(lambda k: np.zeros(6))
    (tau,) = mech.slots(1)
    for p, k in mech.inward():
        kappa = upper_root(known.D[k])[0] @ eps_[k] if normalized else eps_[k]
        tau[k] = kappa + H[k] @ z[k]  # (4)
        z[p] = z[p] + phi[k] @ (z[k] + known.G[k] @ kappa)
    return mech.join(tau)


@algorithm(joint_level=True, loops=True, independent_joints=True, result="eps")
def working_gravity(mech: Tree, q: np.ndarray, normalized: bool = True) -> np.ndarray:
    """ε_g = −m⁻¹ g(q), (nv,): what gravity does to each ν, joint by joint.  O(N): in, out."""
    H, phi = mech.H(q), mech.phi(q)
    known = riccati(mech, H, phi)
    fall, eps = mech.slots(2)
    fall[0] = mech.free_fall
    for p, k in mech.outward():
        fall[k] = phi[k].T @ fall[p]
        drop = known.G[k].T @ fall[k]
        eps[k] = (upper_root(known.D[k])[0].T if normalized else known.D[k]) @ drop  # (5)
    return mech.join(eps)


@algorithm(joint_level=True, independent_joints=True)
def innovations(mech: Branches, q: np.ndarray, tau: np.ndarray) -> Innovations:
    """Joint forces taken apart as a Kalman filter takes measurements apart, from tips to base.

    If random forces with the bodies' inertias as covariances act on the bodies, τ has covariance M;
    what is new at each joint, given the joints beyond it, is κ = τ − predicted with covariance D.
    """
    kappa = working_forces(mech, q, tau, normalized=False)
    eps = working_forces(mech, q, tau)
    D = riccati(mech, mech.H(q), mech.phi(q)).D
    covariance = mech.join_matrix({(k, k): D[k] for _, k in mech.outward()})
    return Innovations(tau - kappa, kappa, covariance, eps)
