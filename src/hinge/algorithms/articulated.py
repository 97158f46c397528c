"""Articulated-body inertias: the Riccati sweep behind forward dynamics.  Paper F fig. 9; math §4.

inward    D(k) = H(k) P(k) H*(k) + armature(k)                                              (1)
          G(k) = P(k) H*(k) D⁻¹(k)                                                          (2)
          P⁺(k) = P(k) − G(k) H(k) P(k)                                                     (3)
          P(p) = P(p) + φ(p,k) P⁺(k) φ*(p,k)                                                (4)

`released` is one step of it, for sweeps that carry P along with something else.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..mechanism import Mechanism
from ..small import inverse_spd, mirror_lower, solve_spd
from ..spatial import congruence

__all__ = ["articulated_inertias", "released"]


def articulated_inertias(
    mech: Mechanism, H: list[np.ndarray], phi: list[Any]
) -> tuple[list[Any], list[Any], list[Any]]:
    """P⁺ (6, 6), D⁻¹ (dof, dof) and G (6, dof) of every body, given H and φ.  O(N)."""
    P = mech.filled(lambda k: mech.M[k].matrix)
    P_plus, D_inv, G = mech.slots(3)
    for p, k in mech.inward():
        PH = P[k] @ H[k].T
        D_inv[k] = inverse_spd(H[k] @ PH + np.diag(mech.armature[k]))  # (1)
        G[k] = PH @ D_inv[k]  # (2)
        P_plus[k] = mirror_lower(P[k] - G[k] @ PH.T)  # (3)
        P[p] = P[p] + congruence(P_plus[k], phi[k])  # (4)
    return P_plus, D_inv, G


def released(
    P: np.ndarray, H: np.ndarray, armature: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """D (dof, dof), G (6, dof) and P⁺ (6, 6) of a body whose joint is free along H."""
    PH = P @ H.T
    D = mirror_lower(H @ PH + np.diag(armature))  # (1)
    G = solve_spd(D, PH.T).T  # (2)
    return D, G, mirror_lower(P - G @ PH.T)  # (3)
