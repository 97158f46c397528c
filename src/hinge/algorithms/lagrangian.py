"""The derivatives of the Lagrangian L = ½ q̇ᵀM(q)q̇ − U(q), for integrators that are made of them.

    outward   A(k) = φ*(p,k) V(p),   V(k) = A(k) + H*(k) q̇(k)                                   (1)
              g(k) = φ*(p,k) g(p),   g(0) = (0; gravity)                                        (2)
              h(k) = M(k) V(k),      f(k) = M(k) g(k) + f_ext(k)                                (3)
    inward    ∂L/∂q̇(k) = H(k) h(k) + armature(k) q̇(k)                                           (4)
              ∂L/∂q(k) = H(k) (f(k) − A(k) ×* h(k)) + σ(k) h(k)                                 (5)
              h(p) = h(p) + φ(p,k) h(k),   f(p) = f(p) + φ(p,k) f(k)                            (6)

Moving joint k along Hᵀη turns what the parent gives, A, by −(Hᵀη) × A, and its own motion by σᵀη,
where H depends on q; all bodies beyond feel that change of V(k), and h(k) is their momentum.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..algebra.spatial import cross_force
from ..model.protocol import Tree
from .declare import algorithm

__all__ = ["LagrangianDerivatives", "lagrangian_derivatives"]


class LagrangianDerivatives(NamedTuple):
    """dqd: ∂L/∂q̇ = M q̇, the momenta; dq: ∂L/∂q along the joints' tangents, with f_ext: (nv,)."""

    dqd: np.ndarray
    dq: np.ndarray


@algorithm(joint_level=True, loops=True)
def lagrangian_derivatives(
    mech: Tree, q: np.ndarray, qd: np.ndarray, f_ext: np.ndarray | None = None
) -> LagrangianDerivatives:
    """∂L/∂q̇ and ∂L/∂q + Σ Jᵀ f_ext: (nv,) each.  O(N): one sweep out, one sweep in.

    U is that of gravity; springs are among the `passive_forces`.
    """
    M, H, phi = mech.M, mech.H(q), mech.phi(q)
    qd_, f_ext_ = mech.rates(qd), mech.wrenches(f_ext)
    hinge = mech.hinge_rates(q, qd, np.zeros(mech.nv))
    A, V, g, h, f, dqd, dq = mech.slots(7)
    g[0] = mech.free_fall
    for p, k in mech.outward():
        A[k], g[k] = phi[k].T @ V[p], phi[k].T @ g[p]  # (2)
        V[k] = A[k] + H[k].T @ qd_[k]  # (1)
        h[k], f[k] = M[k] @ V[k], M[k] @ g[k] + f_ext_[k]  # (3)
    for p, k in mech.inward():
        dqd[k] = H[k] @ h[k] + mech.armature[k] * qd_[k]  # (4)
        dq[k] = H[k] @ (f[k] - cross_force(A[k], h[k])) + hinge[k].slope @ h[k]  # (5)
        h[p], f[p] = h[p] + phi[k] @ h[k], f[p] + phi[k] @ f[k]  # (6)
    return LagrangianDerivatives(mech.join(dqd), mech.join(dq))
