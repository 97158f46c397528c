"""Forward dynamics (ABA): the accelerations that joint forces cause.  Paper F fig. 9; math §3.

P⁺, D, G are the articulated inertias of `articulated.py`; a(k) and b(k) the Coriolis acceleration
and the gyroscopic force, α = (ω̇; p̈), as in `inverse_dynamics.py`.

    outward   V(k) = φ*(p,k) V(p) + H*(k) q̇(k)                                                  (1)
              a(k) = Coriolis acceleration + Ḣ*(k) q̇(k)                                         (2)
              b(k) = gyroscopic force − f_ext(k)                                                (3)
    inward    z(k) = Σ φ(k,c) z⁺(c) + b(k)                                                      (4)
              ε(k) = τ(k) − H(k) z(k)                                                           (5)
              z⁺(k) = z(k) + P⁺(k) a(k) + G(k) ε(k)                                             (6)
    outward   α⁺(k) = φ*(p,k) α(p) + a(k),   α(0) = −g                                          (7)
              q̈(k) = D⁻¹(k) ε(k) − G*(k) α⁺(k)                                                  (8)
              α(k) = α⁺(k) + H*(k) q̈(k)                                                         (9)
"""

from __future__ import annotations

import numpy as np

from ..mechanism import Mechanism
from ..small import solve_spd
from ..spatial import carried_acceleration
from .articulated import articulated_inertias
from .inverse_dynamics import bias_forces
from .mass_matrix import mass_matrix

__all__ = ["aba", "forward_dynamics"]


def forward_dynamics(
    mech: Mechanism,
    q: np.ndarray,
    qd: np.ndarray,
    tau: np.ndarray,
    f_ext: np.ndarray | None = None,
) -> np.ndarray:
    """q̈ = M⁻¹ (τ − C(q, q̇) − g(q) + Σ Jᵀ f_ext): (nv,).  O(N): out, in, out.

    Where a joint mimics another, branches are tied together and M q̈ = τ − bias is solved instead.
    f_ext: (n_bodies, 6), forces (moment; force) acting on the bodies, in body axes at body origins.
    """
    if mech.has_followers:
        return solve_spd(mass_matrix(mech, q), np.asarray(tau) - bias_forces(mech, q, qd, f_ext))
    H, M, phi, H_rate = mech.H(q), mech.M, mech.phi(q), mech.H_rate(q, qd)
    qd_, tau_, f_ext_ = mech.rates(qd), mech.rates(tau), mech.wrenches(f_ext)
    P_plus, D_inv, G = articulated_inertias(mech, H, phi)
    V, a, z, eps, alpha, qdd = mech.slots(6)
    still = np.zeros(6)
    for p, k in mech.outward():
        W = H[k].T @ qd_[k]
        V[k] = phi[k].T @ V[p] + W  # (1)
        a[k] = carried_acceleration(phi[k], V[p], still, W) + H_rate[k].T @ qd_[k]  # (2)
        z[k] = M[k].force(V[k], still) - f_ext_[k]  # (3)
    for p, k in mech.inward():
        eps[k] = tau_[k] - H[k] @ z[k]  # (5)
        z[p] = z[p] + phi[k] @ (z[k] + P_plus[k] @ a[k] + G[k] @ eps[k])  # (4), (6)
    alpha[0] = -mech.free_fall
    for p, k in mech.outward():
        alpha_plus = phi[k].T @ alpha[p] + a[k]  # (7)
        qdd[k] = D_inv[k] @ eps[k] - G[k].T @ alpha_plus  # (8)
        alpha[k] = alpha_plus + H[k].T @ qdd[k]  # (9)
    return mech.join(qdd)


aba = forward_dynamics
