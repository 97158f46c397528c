"""Mass matrix (CRBA) and its direct inverse.  Paper F fig. 7 and eq. 47; math §3, §4.

The composite-body inertia R(k), here `crb`, is that of all bodies beyond joint k, locked together.

    inward    R(p) = R(p) + φ(p,k) R(k) φ*(p,k)                                                 (1)
              F = R(k) H*(k);   M(k,k) = H(k) F + armature(k)                                   (2)
              climbing from k:  F ← φ(p,j) F,   M(p,k) = H(p) F                                 (3)

Blocks of bodies on different branches are never touched: they are exactly zero.
The inverse needs no mass matrix: M⁻¹ = (1 − HψK)* D⁻¹ (1 − HψK), one sweep in, one sweep out, on a
unit force per DoF.
"""

from __future__ import annotations

import numpy as np

from ..mechanism import Mechanism
from ..small import inverse_spd, mirror_lower
from ..spatial import SpatialInertia, congruence
from .articulated import riccati

__all__ = ["crba", "mass_matrix", "mass_matrix_inverse"]


def mass_matrix(mech: Mechanism, q: np.ndarray) -> np.ndarray:
    """M(q), the symmetric (nv, nv) with ½ q̇ᵀ M q̇ the kinetic energy.  O(N · depth)."""
    H, phi = mech.H(q), mech.phi(q)
    crb = [SpatialInertia.zero(), *mech.M[1:]]
    blocks = {}
    for p, k in mech.inward():
        crb[p] = crb[p] + congruence(crb[k], phi[k])  # (1)
        F = crb[k] @ H[k].T
        blocks[k, k] = mirror_lower(H[k] @ F + np.diag(mech.armature[k]))  # (2)
        for i, j in mech.ancestors(k):
            F = phi[j] @ F
            if i:
                blocks[i, k] = H[i] @ F  # (3)
    return mech.join_matrix(blocks)


def mass_matrix_inverse(mech: Mechanism, q: np.ndarray) -> np.ndarray:
    """M(q)⁻¹, (nv, nv), without forming M.  O(N · nv)

    where no joint mimics another; a follower ties branches together, and then M is inverted.

        inward    ε(k) = 1(k) − H(k) z(k);   z(p) = z(p) + φ(p,k) (z(k) + G(k) ε(k))
        outward   λ = φ*(p,k) λ(p);   row(k) = D⁻¹(k) ε(k) − G*(k) λ;   λ(k) = λ + H*(k) row(k)
    """
    if mech.has_followers:
        return inverse_spd(mass_matrix(mech, q))
    H, phi = mech.H(q), mech.phi(q)
    known = riccati(mech, H, phi)
    D_inv, G = known.D_inv, known.G
    unit = np.eye(mech.nv)
    z = [np.zeros((6, mech.nv)) for _ in mech.bodies]
    lam, eps, rows = mech.slots(3)
    for p, k in mech.inward():
        eps[k] = unit[mech.v_slice(mech.bodies[k].joint_name)] - H[k] @ z[k]
        z[p] = z[p] + phi[k] @ (z[k] + G[k] @ eps[k])
    lam[0] = np.zeros((6, mech.nv))
    for p, k in mech.outward():
        lam_plus = phi[k].T @ lam[p]
        rows[k] = D_inv[k] @ eps[k] - G[k].T @ lam_plus
        lam[k] = lam_plus + H[k].T @ rows[k]
    return np.vstack([np.zeros((0, mech.nv)), *rows[1:]])


crba = mass_matrix
