"""What every linearised model is built on: the nominal motion, and how joints bend it.  Paper L §2.

⁺ marks the motion of the parent, seen at the origin and in the axes of body k:

    outward   V⁺ = φ*(p,k) V(p),   V = V⁺ + W,   W = H* q̇                                        (1)
              α as in `inverse_dynamics.py`, α(0) = −g                                          (2)
              H′  = V⁺ × H* + slope                                                             (3)
              Ḣ + H′ = 2 V⁺ × H* + spin + slope                                                 (4)
              H″  = α⁺ × H* + V⁺ × (V⁺ × H*) + 2 V⁺ × slope + bend                              (5)
    inward    f = M α + b − f_ext + Σ φ(k,c) f(c),   F = H* ×* f,   E = bracket · f             (6)

H′ and H″ are the first and second change of the body's motion with the joint's own coordinates
(they replace the paper's Ḣ and Ḧ, which are the same for one DoF); spin, slope, bend and bracket
are the joint's own (`joint.HingeRates`).  F enters with E, so that joint k's own column is right:
Hᵀ F − E is zero for a joint whose H is constant in the parent.

With α = (ω̇; p̈) and U = ω̇× + ω×ω×, (5) for a row (h; s) of H is
(U⁺ h; p̈⁺ × h + U⁺ s + 2 u⁺ × (ω⁺ × h)) + 2 V⁺ × slope + bend.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...algebra.rotation import skew
from ...algebra.spatial import carried_acceleration, cross_motion, turning
from ...model.protocol import PerBody, Tree

__all__ = ["Nominal", "nominal"]


class Nominal(NamedTuple):
    """Per body, in its axes; motions and forces of the joint's DoF are columns (6, dof)."""

    H: Any  # H*
    H_first: Any  # H′
    H_sum: Any  # Ḣ + H′
    H_second: Any  # H″
    F: Any  # S[H*] f
    E: Any  # (dof, dof)
    V: Any
    alpha: Any  # (ω̇; p̈), of what gravity does not act on
    phi: Any


def nominal(
    mech: Tree,
    q: np.ndarray,
    qd: np.ndarray,
    qdd: np.ndarray,
    f_ext: np.ndarray | None,
    push: PerBody | None = None,
    falls: bool = True,
) -> Nominal:
    """The nominal motion at (q, q̇, q̈), its forces, and the joint maps.  O(N).

    push: forces on bodies besides f_ext; falls: whether gravity acts.
    """
    rows, M, phi, H_rate = mech.H(q), mech.M, mech.phi(q), mech.H_rate(q, qd)
    qd_, qdd_, f_ext_ = mech.rates(qd), mech.rates(qdd), mech.wrenches(f_ext)
    joint = mech.hinge_rates(q, qd, qdd)
    V, alpha, f, H_first, H_sum, H_second, F, E = mech.slots(8)
    H = mech.each(lambda k: rows[k].T)
    alpha[0] = -mech.free_fall if falls else np.zeros(6)
    for p, k in mech.outward():
        W = H[k] @ qd_[k]
        V_plus = phi[k].T @ V[p]
        V[k] = V_plus + W  # (1)
        alpha_plus = carried_acceleration(phi[k], V[p], alpha[p], np.zeros(6))
        turn = cross_motion(V_plus, H[k])
        coriolis = np.concatenate([turn[:3] @ qd_[k], skew(V_plus[:3] + V[k][:3]) @ W[3:]])
        alpha[k] = alpha_plus + H[k] @ qdd_[k] + H_rate[k].T @ qd_[k] + coriolis  # (2)
        slope = joint[k].slope.T
        H_first[k] = turn + slope  # (3)
        H_sum[k] = turn + turn + joint[k].spin.T + slope  # (4)
        twice = cross_motion(V_plus + V_plus, slope)
        H_second[k] = (
            _carried_twice(V_plus, alpha_plus, H[k], turn) + twice + joint[k].bend.T
        )  # (5)
        f[k] = M[k].force(V[k], alpha[k]) - (f_ext_[k] if push is None else f_ext_[k] + push[k])
    for p, k in mech.inward():
        F[k] = _cross_force_columns(H[k], f[k])  # (6)
        E[k] = joint[k].bracket @ f[k]
        f[p] = f[p] + phi[k] @ f[k]
    return Nominal(H, H_first, H_sum, H_second, F, E, V, alpha, phi)


def _cross_force_columns(H: np.ndarray, f: np.ndarray) -> np.ndarray:
    """H ×* f for every column of H: how f changes if it is carried along them, (6, n)."""
    n, g = skew(f[:3]), skew(f[3:])
    return -np.concatenate([n @ H[:3] + g @ H[3:], g @ H[:3]])


def _carried_twice(V: np.ndarray, alpha: np.ndarray, H: np.ndarray, turn: np.ndarray) -> np.ndarray:
    """α × H + V × (V × H), α spatial, from α = (ω̇; p̈) and turn = V × H."""
    U, u = turning(V[:3], alpha[:3]), V[3:]
    linear = skew(alpha[3:]) @ H[:3] + U @ H[3:] + skew(u + u) @ turn[:3]
    return np.concatenate([U @ H[:3], linear])
