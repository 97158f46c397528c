"""Spatial algebra as plain matrices, written without the library's own."""

from __future__ import annotations

import numpy as np
from scipy.linalg import block_diag

from hinge.algebra.rotation import skew


def crm(V) -> np.ndarray:
    """V× of a motion (ω; v), on motions."""
    return np.block([[skew(V[:3]), np.zeros((3, 3))], [skew(V[3:]), skew(V[:3])]])


def crf(V) -> np.ndarray:
    """V×*, on forces."""
    return -crm(V).T


def block_diagonal(blocks) -> np.ndarray:
    """The matrix with these blocks on its diagonal; without any it is 0 × 0."""
    blocks = list(blocks)
    return block_diag(*blocks) if blocks else np.zeros((0, 0))


def of_bodies(make, vectors) -> np.ndarray:
    """The block-diagonal operator with make(v) for each 6-vector of a stack."""
    return block_diagonal(make(v) for v in vectors.reshape(-1, 6))


def one_hop(mech, phi) -> np.ndarray:
    """ℰ_φ: forces of every body carried to its parent, if that moves."""
    hop = np.zeros((6 * mech.n_bodies,) * 2)
    for p, k in mech.outward():
        if p:
            hop[6 * p - 6 : 6 * p, 6 * k - 6 : 6 * k] = phi[k] @ np.eye(6)
    return hop


def biggest(*arrays) -> float:
    """The largest magnitude of any entry."""
    return max(float(np.abs(a).max(initial=0.0)) for a in arrays)


def condition(M) -> float:
    """The condition number of a matrix, 1 if it is empty."""
    return float(np.linalg.cond(M)) if M.size else 1.0
