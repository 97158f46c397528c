"""How the mass matrix changes with the configuration.  Paper D eq. 6.12, general; math §8.

h(k), (6, nv), are the momenta of the bodies beyond joint k for a unit rate of each DoF: the rows of
φMφ*H*.  Moving along rates that make W(i) across joint i changes the mass matrix by N + N*:

    outward   V(k) = φ*(p,k) V(p) + H*(k);   h(k) = M(k) V(k)                                   (1)
    inward    h(p) = h(p) + φ(p,k) h(k)                                                         (2)
    inward    y(p) = y(p) + φ(p,k) (y(k) + W(k) ×* h(k))                                        (3)
              N(k) = H(k) y(k) + H°(k) h(k)                                                     (4)

H° is the componentwise rate of H, zero for all joints but the universal one.  The Coriolis matrix
is made of the rates of the unit velocities and of a skew operator for each body:

    outward   V̇(k) = φ*(p,k) V̇(p) − W(k) × V⁺(k) + H°*(k)                                       (5)
              f(k) = M(k) V̇(k) + (V ×* M + M V ×) V(k),   summed inward;   rows H(k) f(k)       (6)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..mechanism import Mechanism
from ..spatial import cross_force, cross_motion

__all__ = ["coriolis_matrix", "mass_matrix_rate", "mass_matrix_sensitivity"]


def mass_matrix_rate(mech: Mechanism, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
    """Ṁ(q, q̇), symmetric (nv, nv).  O(N · nv): out, in, in."""
    H, phi = mech.H(q), mech.phi(q)
    return _rate(mech, q, qd, H, phi, _momenta(mech, H, phi))


def mass_matrix_sensitivity(mech: Mechanism, q: np.ndarray) -> np.ndarray:
    """∂M/∂q along every joint tangent, (nv, nv, nv): [:, :, i] = ∂M/∂q_i.  O(N · nv²)."""
    H, phi, nv = mech.H(q), mech.phi(q), mech.nv
    h = _momenta(mech, H, phi)
    slices = [_rate(mech, q, e, H, phi, h) for e in np.eye(nv)]
    return np.array(slices).reshape(nv, nv, nv).transpose(1, 2, 0)


def coriolis_matrix(mech: Mechanism, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
    """C(q, q̇), (nv, nv): C q̇ = bias − gravity, and C + Cᵀ = Ṁ.  O(N · nv): out, in."""
    H, phi, qd_, H_rate = mech.H(q), mech.phi(q), mech.rates(qd), mech.H_rate(q, qd)
    unit = mech.rates(np.eye(mech.nv))
    still = np.zeros((6, mech.nv))
    V, rate, f = ([still, *[None] * mech.n_bodies] for _ in range(3))
    columns = {}
    for p, k in mech.outward():
        V_plus = phi[k].T @ V[p]
        V[k] = V_plus + H[k].T @ unit[k]
        own = V[k] @ np.asarray(qd)
        carried = cross_motion(H[k].T @ qd_[k], V_plus)
        rate[k] = phi[k].T @ rate[p] - carried + H_rate[k].T @ unit[k]  # (5)
        gyroscopic = cross_force(own, mech.M[k] @ V[k]) + mech.M[k] @ cross_motion(own, V[k])
        f[k] = mech.M[k] @ rate[k] + gyroscopic  # (6)
    for p, k in mech.inward():
        columns[k] = (H[k] @ f[k]).T
        f[p] = f[p] + phi[k] @ f[k]
    return mech.join_columns(columns, mech.nv).T


def _momenta(mech: Mechanism, H: Any, phi: Any) -> list[Any]:
    """h(k), (6, nv), of the bodies beyond every joint for a unit rate of each DoF."""
    unit = mech.rates(np.eye(mech.nv))
    V, h = ([np.zeros((6, mech.nv)), *[None] * mech.n_bodies] for _ in range(2))
    for p, k in mech.outward():
        V[k] = phi[k].T @ V[p] + H[k].T @ unit[k]
        h[k] = mech.M[k] @ V[k]  # (1)
    for p, k in mech.inward():
        h[p] = h[p] + phi[k] @ h[k]  # (2)
    return h


def _rate(
    mech: Mechanism, q: np.ndarray, qd: np.ndarray, H: Any, phi: Any, h: list[Any]
) -> np.ndarray:
    qd_, H_rate = mech.rates(qd), mech.H_rate(q, qd)
    y = mech.filled(lambda k: np.zeros((6, mech.nv)))
    columns = {}
    for p, k in mech.inward():
        columns[k] = (H[k] @ y[k] + H_rate[k] @ h[k]).T  # (4)
        y[p] = y[p] + phi[k] @ (y[k] + cross_force(H[k].T @ qd_[k], h[k]))  # (3)
    N = mech.join_columns(columns, mech.nv)
    return N + N.T
