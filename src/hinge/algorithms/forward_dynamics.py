"""Forward dynamics (ABA): the accelerations that joint forces cause.  Paper F fig. 9; math §3.

The motion is that of inverse dynamics at q̈ = 0 and a change α on top of it, which has no velocity
and no gravity in it: what remains for the articulated inertias P, D, G of `riccati.py` is to
answer the forces f̂ that the motion at q̈ = 0 needs and does not get.

    outward   V(k), α̂(k), f̂(k)   as in `inverse_dynamics.py`, with q̈ = 0                        (1)
    inward    z(k) = Σ φ(k,c) z⁺(c) + f̂(k)                                                      (2)
              ε(k) = τ(k) − H(k) z(k)                                                           (3)
              ν(k) = D⁻¹(k) ε(k)                                                                (4)
              z⁺(k) = z(k) + G(k) ε(k)                                                          (5)
    outward   α⁺(k) = φ*(p,k) α(p),   α(0) = 0                                                  (6)
              q̈(k) = ν(k) − G*(k) α⁺(k)                                                         (7)
              α(k) = α⁺(k) + H*(k) q̈(k)                                                         (8)

The usual form takes the Coriolis accelerations a(k) through P⁺ a, 30 products a body; riding along
in α̂ they cost half of that.
"""

from __future__ import annotations

import numpy as np

from ..algebra.small import solve_spd
from ..algebra.spatial import congruence
from ..model.protocol import Tree
from .declare import algorithm
from .inverse_dynamics import motion
from .riccati import released

__all__ = ["aba", "forward_dynamics"]


@algorithm(joint_level=True, loops=True, independent_joints=True, aliases=("aba",), result="qdd")
def forward_dynamics(
    mech: Tree,
    q: np.ndarray,
    qd: np.ndarray,
    tau: np.ndarray,
    f_ext: np.ndarray | None = None,
) -> np.ndarray:
    """q̈ = M⁻¹ (τ − C(q, q̇) − g(q) + Σ Jᵀ f_ext): (nv,).  O(N): out, in, out.

    f_ext: (n_bodies, 6), forces (moment; force) acting on the bodies, in body axes at body origins.
    """
    H, phi, tau_ = mech.H(q), mech.phi(q), mech.rates(tau)
    z = motion(mech, H, phi, q, qd, np.zeros(mech.nv), f_ext).f  # (1)
    P = mech.filled(lambda k: mech.M[k].matrix)
    G, nu, alpha, qdd = mech.slots(4)
    for p, k in mech.inward():
        D, G[k], P_plus = released(P[k], H[k], mech.armature[k], mech.least[k])
        P[p] = P[p] + congruence(P_plus, phi[k])
        eps = tau_[k] - H[k] @ z[k]  # (3)
        nu[k] = solve_spd(D, eps)  # (4)
        z[p] = z[p] + phi[k] @ (z[k] + G[k] @ eps)  # (2), (5)
    for p, k in mech.outward():
        alpha_plus = phi[k].T @ alpha[p]  # (6)
        qdd[k] = nu[k] - G[k].T @ alpha_plus  # (7)
        alpha[k] = alpha_plus + H[k].T @ qdd[k]  # (8)
    return mech.join(qdd)


aba = forward_dynamics
