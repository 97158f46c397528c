"""Mass matrix (CRBA) and its direct inverse.  Paper F fig. 7 and eq. 47; math §3, §4.

The composite-body inertia R(k), here `crb`, is that of all bodies beyond joint k, locked together.

    inward    R(p) = R(p) + φ(p,k) R(k) φ*(p,k)                                                 (1)
              F = R(k) H*(k);   M(k,k) = H(k) F + armature(k)                                   (2)
              climbing from k:  F ← φ(p,j) F,   M(p,k) = H(p) F                                 (3)

Blocks of bodies on different branches are never touched: they are exactly zero.

The inverse needs no mass matrix.  With the articulated inertias P, D, G and, outward, the
compliance Υ of each body, M⁻¹ = (1 − HψK)* D⁻¹ (1 − HψK) has the blocks (paper L, Lemmas 4.8, 4.9):

    Υ⁺ = φ*(p,k) Υ(p) φ(p,k),   Z = Υ⁺ G,   M⁻¹(k,k) = L = D⁻¹ + G* Z
    U = Z − H* L,   Υ(k) = Υ⁺ − H* U* − Z H                                                     (4)
    climbing from k, W = φ G(k), then W ← φ (1 − G H)(j) W:   M⁻¹(j,k) = U*(j) W                (5)
    where k and i meet in j from different branches:   M⁻¹(k,i) = W*(k) Υ(j) W(i)               (6)
"""

from __future__ import annotations

import numpy as np

from ..algebra.small import mirror_lower
from ..algebra.spatial import congruence
from ..model.ground_axes import Axes, seen_in
from ..model.protocol import Branches
from .congruences import compliance
from .declare import algorithm
from .riccati import riccati

__all__ = ["crba", "mass_matrix", "mass_matrix_inverse"]


@algorithm(joint_level=True, loops=True, aliases=("crba",), result="M")
def mass_matrix(mech: Branches, q: np.ndarray, axes: Axes = "body") -> np.ndarray:
    """M(q), the symmetric (nv, nv) with ½ q̇ᵀ M q̇ the kinetic energy.  O(N · depth).

    axes: those of the arithmetic; the result does not depend on them.
    """
    mech_ = seen_in(axes, mech, q)
    H, phi, M = mech_.H(q), mech_.phi(q), mech_.M
    crb = mech_.filled(lambda k: M[k])
    (F,), blocks = mech_.slots(1), mech_.pairs()
    for p, k in mech_.inward():
        crb[p] = crb[p] + congruence(crb[k], phi[k])  # (1)
        F[k] = crb[k] @ H[k].T
        blocks[k, k] = mirror_lower(H[k] @ F[k] + np.diag(mech_.armature[k]))  # (2)
        for i, j in mech_.climb(k):
            F[k] = phi[j] @ F[k]
            blocks[i, k] = H[i] @ F[k]  # (3)
    return mech_.join_matrix(blocks)


@algorithm(joint_level=True, loops=True, independent_joints=True, result="M_inverse")
def mass_matrix_inverse(mech: Branches, q: np.ndarray, axes: Axes = "body") -> np.ndarray:
    """M(q)⁻¹, (nv, nv), without forming M.  O(N · nv).

    axes: those of the arithmetic; the result does not depend on them.
    """
    mech_ = seen_in(axes, mech, q)
    rows, phi = mech_.H(q), mech_.phi(q)
    _, _, _, D_inv, G = riccati(mech_, rows, phi)
    H = mech_.each(lambda k: rows[k].T)
    Y, U, W = mech_.slots(3)
    Y[0] = np.zeros((6, 6))
    meeting, blocks = mech_.meetings(), mech_.pairs()
    for p, k in mech_.outward():
        Y_plus = compliance(Y[p], phi[k])
        Z = Y_plus @ G[k]
        blocks[k, k] = L = mirror_lower(D_inv[k] + G[k].T @ Z)
        U[k] = Z - H[k] @ L
        Y[k] = mirror_lower(Y_plus - H[k] @ U[k].T - Z @ H[k].T)  # (4)
        W[k] = G[k]
        for j, c in mech_.climb(k):
            W[k] = phi[c] @ W[k]
            blocks[j, k] = U[j].T @ W[k]  # (5)
            meeting.bring(j, c, (k, W[k]))
            W[k] = W[k] - G[j] @ (H[j].T @ W[k])
    for j, (k, W_k), (i, W_i) in meeting.pairs():
        blocks[k, i] = W_k.T @ Y[j] @ W_i  # (6)
    return mech_.join_matrix(blocks)


crba = mass_matrix
