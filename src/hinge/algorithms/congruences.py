"""How matrices without the structure of an inertia go from body to body.

φ = φ(p,k) has R and p; in [·] blocks of three.

    two_sided    φ Z φ*             any (6, 6)
    left_half    φ [A 0; B 0] φ*    = [A′ + p×B′  0; B′  0],   A′ = R A Rᵀ, B′ = R B Rᵀ
    compliance   φ* Υ φ             symmetric; shifted first, then turned
    mixed        φ* J φ*⁻¹          motions on both sides
"""

from __future__ import annotations

import numpy as np

from ..algebra.rotation import turned_matrix
from ..algebra.small import mirror_lower
from ..algebra.spatial import ForceTransfer

__all__ = ["compliance", "left_half", "mixed", "two_sided"]


def two_sided(Z: np.ndarray, phi: ForceTransfer) -> np.ndarray:
    """φ Z φ* for any (6, 6) matrix that takes motions to forces."""
    return (phi @ (phi @ Z).T).T


def left_half(P: np.ndarray, phi: ForceTransfer) -> np.ndarray:
    """φ [P 0] φ* for the left half P (6, 3) of a matrix without a right half: again a left half."""
    A, B = P[:3], P[3:]
    if phi.turn is not None:
        base, i, c, s = phi.turn
        turned = [turned_matrix(block, i, c, s) for block in (A, B)]
        return left_half(np.concatenate(turned), base)
    A, B = (phi.R @ block @ phi.R.T for block in (A, B))
    return np.concatenate([A + phi.p_cross @ B, B])


def compliance(Y: np.ndarray, phi: ForceTransfer) -> np.ndarray:
    """φ* Υ φ for a symmetric (6, 6) matrix that takes forces to motions."""
    a, b, c = Y[:3, :3], Y[:3, 3:], Y[3:, 3:]
    shifted = b + a @ phi.p_cross
    c = mirror_lower(c + b.T @ phi.p_cross - phi.p_cross @ shifted)
    blocks = (_turned_back(block, phi) for block in (a, shifted, c))
    a, b, c = blocks
    return np.block([[mirror_lower(a), b], [b.T, mirror_lower(c)]])


def mixed(J: np.ndarray, phi: ForceTransfer) -> np.ndarray:
    """φ* J φ*⁻¹ for any (6, 6) matrix that takes motions to motions."""
    return phi.T @ (phi.pose.inv.transfer @ J.T).T


def _turned_back(A: np.ndarray, phi: ForceTransfer) -> np.ndarray:
    """Rᵀ A R."""
    if phi.turn is None:
        return phi.R.T @ A @ phi.R
    base, i, c, s = phi.turn
    return turned_matrix(base.R.T @ A @ base.R, i, c, -s)
