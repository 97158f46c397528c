"""Hybrid dynamics: some degrees of freedom are driven, the others are not.  Paper U (5.4); math §7.

Of an active DoF the acceleration is given and the force is found, of a passive one the force is
given and the acceleration is found, in any mixture, within a joint too.  Let m be 1 for active and
0 for passive DoF and s = 1 − m.  The motion is that of inverse dynamics at q̈ = m q̈_given, and a
change α on top of it made by the passive DoF alone (`forward_dynamics.py`):

    outward   V(k), α̂(k), f̂(k)   as in `inverse_dynamics.py`, with q̈ = m q̈_given                (1)
    inward    z(k) = Σ φ(k,c) z⁺(c) + f̂(k)                                                      (2)
              ε(k) = s (τ_given(k) − H(k) z(k));   ν(k) = D⁻¹(k) ε(k)                           (3)
              z⁺(k) = z(k) + G(k) ε(k)                                                          (4)
    outward   α⁺(k) = φ*(p,k) α(p),   α(0) = 0                                                  (5)
              δ(k) = s (ν(k) − G*(k) α⁺(k))                                                     (6)
              α(k) = α⁺(k) + H_p*(k) δ(k)                                                       (7)
              q̈(k) = m q̈_given(k) + δ(k)                                                        (8)
              τ(k) = s τ_given(k) + m (H(k) (z(k) + P(k) α(k)) + armature(k) q̈_given(k))        (9)

P, D, G are the articulated inertias of the passive DoF: H_p = s H, and D has a one on the diagonal
for every active DoF, which keeps it invertible and nothing else.  So the same lines serve a split
known in advance, whose zeros and ones fold, and one given with each sample.  All active folds to
inverse dynamics, all passive to forward dynamics, operation by operation; beyond the last passive
DoF inertias stay the ten numbers of rigid ones.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...algebra.small import solve_spd
from ...algebra.spatial import carried_acceleration, congruence
from ...model.protocol import PerBody, Tree
from ..declare import algorithm
from ..riccati import released

__all__ = ["HybridDynamics", "hybrid_dynamics", "hybrid_response", "respond"]


class HybridDynamics(NamedTuple):
    """tau, qdd: forces and accelerations of all DoF (nv,), the given ones among them."""

    tau: Any
    qdd: Any


@algorithm(joint_level=True, loops=True, independent_joints=True)
def hybrid_dynamics(
    mech: Tree,
    q: np.ndarray,
    qd: np.ndarray,
    qdd_active: np.ndarray,
    tau_passive: np.ndarray,
    active: Any,
    f_ext: np.ndarray | None = None,
) -> HybridDynamics:
    """τ of the active DoF and q̈ of the passive ones, joined with what is given.  O(N).

    active: names of the joints that are driven, or a mask (nv,).  qdd_active, tau_passive: (nv,);
    entries of the other kind of DoF are not used.  f_ext: (n_bodies, 6), as in `inverse_dynamics`.
    """
    mask = mech.driven(active)
    H, M, phi, H_rate = mech.H(q), mech.M, mech.phi(q), mech.H_rate(q, qd)
    qd_, f_ext_, m = mech.rates(qd), mech.wrenches(f_ext), mech.rates(mask)
    qdd_given, tau_given = mech.rates(qdd_active), mech.rates(tau_passive)
    locked, held = mech.locked_beyond(mask), mech.held_before(mask)
    P = mech.filled(lambda k: M[k] if locked[k] else M[k].matrix)
    V, alpha_hat, z, G, nu, alpha, qdd, tau = mech.slots(8)
    alpha_hat[0] = -mech.free_fall
    for p, k in mech.outward():
        W = H[k].T @ qd_[k]
        V[k] = phi[k].T @ V[p] + W
        own = H[k].T @ (m[k] * qdd_given[k]) + H_rate[k].T @ qd_[k]
        alpha_hat[k] = carried_acceleration(phi[k], V[p], alpha_hat[p], W) + own
        z[k] = M[k].force(V[k], alpha_hat[k]) - f_ext_[k]  # (1)
    for p, k in mech.inward():
        D, G[k], P_plus = _half_released(mech, k, P[k], H[k], m[k], locked[k])
        P[p] = P[p] + congruence(P_plus, phi[k])
        eps = (1 - m[k]) * (tau_given[k] - H[k] @ z[k])
        nu[k] = solve_spd(D, eps)  # (3)
        z[p] = z[p] + phi[k] @ (z[k] + G[k] @ eps)  # (2), (4)
    for p, k in mech.outward():
        alpha_plus = np.zeros(6) if held[k] else phi[k].T @ alpha[p]  # (5)
        delta = (1 - m[k]) * (nu[k] - G[k].T @ alpha_plus)  # (6)
        alpha[k] = alpha_plus + _passive_part(H[k], m[k]).T @ delta  # (7)
        qdd[k] = m[k] * qdd_given[k] + delta  # (8)
        drive = H[k] @ (z[k] + P[k] @ alpha[k]) + mech.armature[k] * qdd_given[k]
        tau[k] = (1 - m[k]) * tau_given[k] + m[k] * drive  # (9)
    return HybridDynamics(mech.join(tau), mech.join(qdd))


@algorithm(joint_level=True, loops=True, independent_joints=True)
def hybrid_response(mech: Tree, q: np.ndarray, given: np.ndarray, active: Any) -> np.ndarray:
    """[S_aa S_ap; −S_apᵀ S_pp] given, without velocities, gravity or forces.  O(N) a vector.

    given: accelerations of active DoF and forces of passive ones, (nv,), or (nv, n) for several at
    once; the result has the forces of the active and the accelerations of the passive ones in
    their places.
    """
    mask, given_, nothing = mech.driven(active), mech.rates(given), mech.each(lambda k: 0.0)
    if np.ndim(given) < 2:
        return mech.join(respond(mech, q, given_, mask, nothing, np.zeros(6)))
    still = np.zeros((6, np.shape(given)[1]))
    return np.concatenate([still[:0], *respond(mech, q, given_, mask, nothing, still)[1:]])


def respond(
    mech: Tree, q: np.ndarray, given: PerBody, mask: Any, felt: PerBody, still: np.ndarray
) -> Any:
    """The response of each joint, to one given vector or to columns of several.

    (5.4) with a = b = 0: z(k) starts from P(k) H*(k) m q̈_given(k), and (5) – (9) follow.
    felt: forces at the joints besides, of which τ of an active DoF has to overcome its own.
    still: zeros, as many for a body as there are vectors.
    """
    H, phi, m, locked = mech.H(q), mech.phi(q), mech.rates(mask), mech.locked_beyond(mask)
    P = mech.filled(lambda k: mech.M[k] if locked[k] else mech.M[k].matrix)
    z = mech.filled(lambda k: still)
    G, nu, alpha, found = mech.slots(4)
    alpha[0] = still
    for p, k in mech.inward():
        D, G[k], P_plus = _half_released(mech, k, P[k], H[k], m[k], locked[k])
        P[p] = P[p] + congruence(P_plus, phi[k])
        z[k] = z[k] + P[k] @ (H[k].T @ _rows(m[k], given[k]))
        eps = _rows(1 - m[k], given[k] - felt[k] - H[k] @ z[k])
        nu[k] = solve_spd(D, eps)
        z[p] = z[p] + phi[k] @ (z[k] + G[k] @ eps)
    for p, k in mech.outward():
        alpha_plus = phi[k].T @ alpha[p]
        delta = nu[k] - G[k].T @ alpha_plus
        moved = alpha_plus + _passive_part(H[k], m[k]).T @ delta
        drive = H[k] @ (z[k] + P[k] @ moved) + _rows(mech.armature[k], given[k]) + felt[k]
        alpha[k] = moved + H[k].T @ _rows(m[k], given[k])
        found[k] = _rows(m[k], drive) + delta
    return found


def _rows(factors: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Each entry of a vector, or each row of a matrix, times its own factor."""
    return (factors * x.T).T


def _passive_part(H: np.ndarray, m: np.ndarray) -> np.ndarray:
    """H_p: the rows of active DoF made zero."""
    return (1 - m)[:, None] * H


def _half_released(
    mech: Tree, k: Any, P: Any, H: np.ndarray, m: np.ndarray, locked: bool
) -> tuple[np.ndarray, np.ndarray, Any]:
    """D, G, P⁺ of a joint of which the DoF with m = 0 are free, the others held."""
    if locked:
        return np.eye(len(m)), np.zeros((6, len(m))), P
    rotors = (1 - m) * mech.armature[k] + m
    return released(P, _passive_part(H, m), rotors, (1 - m) * mech.least[k])
