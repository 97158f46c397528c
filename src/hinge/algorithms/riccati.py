"""Articulated-body inertias: the Riccati sweep behind forward dynamics.  Paper F fig. 9; math §4.

inward    D(k) = H(k) P(k) H*(k) + armature(k)                                              (1)
          G(k) = P(k) H*(k) D⁻¹(k)                                                          (2)
          P⁺(k) = P(k) − G(k) H(k) P(k)                                                     (3)
          P(p) = P(p) + φ(p,k) P⁺(k) φ*(p,k)                                                (4)

`released` is one step of it, for sweeps that carry P along with something else.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..algebra.small import inverse_spd, mirror_lower, more_than, solve_spd
from ..algebra.spatial import congruence
from ..model.protocol import PerBody, Tree

__all__ = ["Riccati", "released", "riccati"]


class Riccati(NamedTuple):
    """What the sweep leaves with every body: P, P⁺ (6, 6), D, D⁻¹ (dof, dof) and G (6, dof)."""

    P: Any
    P_plus: Any
    D: Any
    D_inv: Any
    G: Any


def riccati(
    mech: Tree,
    H: PerBody,
    phi: PerBody,
    armature: PerBody | None = None,
) -> Riccati:
    """The sweep, given H and φ; H and armature may be those of some degrees of freedom only.  O(N).

    armature: by default that of all of them.
    """
    rotors = mech.armature if armature is None else armature
    P = mech.filled(lambda k: mech.M[k].matrix)
    P_plus, D, D_inv, G = mech.slots(4)
    for p, k in mech.inward():
        least = mech.least[k] if armature is None else 0 * rotors[k]
        D[k], G[k], P_plus[k] = released(P[k], H[k], rotors[k], least)  # (1) to (3)
        D_inv[k] = inverse_spd(D[k])
        P[p] = P[p] + congruence(P_plus[k], phi[k])  # (4)
    return Riccati(P, P_plus, D, D_inv, G)


def released(
    P: np.ndarray, H: np.ndarray, armature: np.ndarray, least: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """D (dof, dof), G (6, dof) and P⁺ (6, 6) of a body whose joint is free along H.

    least: NaN where a D is not more than that, and nothing but rounding.
    """
    PH = P @ H.T
    D = more_than(mirror_lower(H @ PH + np.diag(armature)), least)  # (1)
    G = solve_spd(D, PH.T).T  # (2)
    return D, G, mirror_lower(P - G @ PH.T)  # (3)
