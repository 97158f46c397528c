"""The mass factor: M = m mᵀ with m from the Riccati sweep.  Paper D §4, §5; math §4.

P, D, G are those of `riccati.py`, and D(k) = L(k) L*(k):

    m = (1 + H φ K) L        climbing from k:  F = G(k) L(k);  F ← φ(p,j) F,   m(p,k) = H(p) F  (1)
    ℓ = m⁻¹ = L⁻¹ (1 − H ψ K)                  ℓ(k,k) = L⁻¹(k),  z = G(k)
              climbing:  z ← φ(p,j) z,   κ = −H(p) z,   ℓ(p,k) = L⁻¹(p) κ,   z ← z + G(p) κ     (2)

Every block root L(k) is upper triangular, so that m is: it is the one upper triangular matrix with
a positive diagonal and M = m mᵀ, Cholesky's factor of M read from the tips to the base.  It has the
zeros of M for branches.
"""

from __future__ import annotations

import numpy as np

from ...algebra.small import upper_root
from ...model.protocol import Branches
from ..declare import algorithm
from ..riccati import riccati

__all__ = ["mass_factor", "mass_factor_inverse"]


@algorithm(joint_level=True, loops=True, independent_joints=True)
def mass_factor(mech: Branches, q: np.ndarray) -> np.ndarray:
    """m(q), the upper triangular (nv, nv) with M = m mᵀ and a positive diagonal.  O(N · depth)."""
    H, phi = mech.H(q), mech.phi(q)
    known = riccati(mech, H, phi)
    (F,), blocks = mech.slots(1), mech.pairs()
    for _, k in mech.outward():
        L, _ = upper_root(known.D[k])
        blocks[k, k], F[k] = L, known.G[k] @ L
        for i, j in mech.climb(k):
            F[k] = phi[j] @ F[k]
            blocks[i, k] = H[i] @ F[k]  # (1)
    return mech.join_blocks(blocks)


@algorithm(joint_level=True, loops=True, independent_joints=True)
def mass_factor_inverse(mech: Branches, q: np.ndarray) -> np.ndarray:
    """ℓ(q) = m(q)⁻¹, upper triangular (nv, nv): M⁻¹ = ℓᵀ ℓ.  O(N · depth)."""
    H, phi = mech.H(q), mech.phi(q)
    known = riccati(mech, H, phi)
    (L_inv, z), blocks = mech.slots(2), mech.pairs()
    for _, k in mech.outward():
        L_inv[k] = upper_root(known.D[k])[1]
        blocks[k, k], z[k] = L_inv[k], known.G[k]
        for i, j in mech.climb(k):
            z[k] = phi[j] @ z[k]
            kappa = -H[i] @ z[k]
            blocks[i, k] = L_inv[i] @ kappa  # (2)
            z[k] = z[k] + known.G[i] @ kappa
    return mech.join_blocks(blocks)
