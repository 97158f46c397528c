"""Linearised hybrid dynamics.  Paper U with paper L; math §3, §7.

What is found, y = (τ_a; q̈_p), is a function of what is given, x = (q̈_a; τ_p), and of q and q̇; both
are kept as vectors over the DoF, an entry each.  With ∂τ = B_D ∂q + A_D ∂q̇ + M ∂q̈ at the motion
that was found (`linearized/inverse_derivatives.py`), s = 1 for passive and m = 1 for active DoF,
passive DoF answer forces with accelerations Y, and active ones hold on against those, N = m M s:

    (s M s + m) [Y, Z_B, Z_A] = s [1, −B_D, −A_D]                                               (1)
    ∂y/∂q = Z_B + m B_D + N Z_B,     ∂y/∂q̇ = Z_A + m A_D + N Z_A                                (2)
    ∂y/∂x = S = Y + N Y − (N Y)* + m M m − N Y N*                                               (3)

s M s = L* D L is eliminated from the tips, and as sparse as M.  Where all are passive it is forward
dynamics (`linearized/forward_derivatives.py`), which needs no M.

In one direction, δτ = B_D δq + A_D δq̇ is felt at the joints: with S, the operator of
`hybrid_response`, δy = m δτ + S (δx − s δτ)                                                    (4)
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...algebra.small import is_zero, mirror_lower, sparse_product
from ...model.mechanism import Mechanism
from ..declare import algorithm
from ..linearized.conventional import solve_from_tips
from ..linearized.forward_derivatives import forward_dynamics_derivatives
from ..linearized.inverse_derivatives import inverse_dynamics_derivatives, inverse_dynamics_jvp
from ..singular import sound
from .hybrid_dynamics import hybrid_dynamics, respond

__all__ = ["HybridDerivatives", "hybrid_dynamics_derivatives", "hybrid_dynamics_jvp"]


class HybridDerivatives(NamedTuple):
    """dq, dqd, dgiven: (nv, nv), rows τ of active and q̈ of passive DoF.

    Columns of dgiven are q̈ of active and τ of passive DoF: all active is (B_D, A_D, M), all passive
    is (∂q̈/∂q, ∂q̈/∂q̇, M⁻¹).
    """

    dq: Any
    dqd: Any
    dgiven: Any


@algorithm(joint_level=True)
def hybrid_dynamics_derivatives(
    mech: Mechanism,
    q: np.ndarray,
    qd: np.ndarray,
    qdd_active: np.ndarray,
    tau_passive: np.ndarray,
    active: Any,
    f_ext: np.ndarray | None = None,
) -> HybridDerivatives:
    """Derivatives of hybrid dynamics, ∂q along the joints' tangents.  O(N · nv · depth).

    f_ext is fixed in body axes.
    """
    m = mech.driven(active)
    if all(map(is_zero, m)):
        return HybridDerivatives(*forward_dynamics_derivatives(mech, q, qd, tau_passive, f_ext))
    nv, s = mech.nv, 1 - m
    qdd = hybrid_dynamics(mech, q, qd, qdd_active, tau_passive, active, f_ext).qdd
    B, A, M = inverse_dynamics_derivatives(mech, q, qd, qdd, f_ext)
    free = sound(mech, _both(s, M, s) + np.diag(m), s)
    felt = np.hstack([np.diag(s), -s[:, None] * B, -s[:, None] * A])
    Z = solve_from_tips(free, felt)  # (1)
    N, Y = _both(m, M, s), mirror_lower(Z[:, :nv]).reshape(nv, nv)
    held = sparse_product(N, np.hstack([Y, Z[:, nv:]]))
    NY, changed = held[:, :nv], Z[:, nv:] + m[:, None] * np.hstack([B, A]) + held[:, nv:]  # (2)
    own = mirror_lower(_both(m, M, m) - sparse_product(N, NY.T).T).reshape(nv, nv)
    return HybridDerivatives(changed[:, :nv], changed[:, nv:], Y + NY - NY.T + own)  # (3)


def _both(rows: np.ndarray, M: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """M with factors for its rows and columns."""
    return rows[:, None] * M * columns


@algorithm(joint_level=True, loops=True, independent_joints=True)
def hybrid_dynamics_jvp(
    mech: Mechanism,
    q: np.ndarray,
    qd: np.ndarray,
    qdd_active: np.ndarray,
    tau_passive: np.ndarray,
    dq: np.ndarray,
    dqd: np.ndarray,
    dgiven: np.ndarray,
    active: Any,
    f_ext: np.ndarray | None = None,
) -> np.ndarray:
    """δy, (nv,): how τ of active and q̈ of passive DoF change with dq, dqd and dgiven.  O(N).

    dq is along the joints' tangents; dgiven: changes of q̈ of active and τ of passive DoF.
    """
    qdd = hybrid_dynamics(mech, q, qd, qdd_active, tau_passive, active, f_ext).qdd
    felt = inverse_dynamics_jvp(mech, q, qd, qdd, dq, dqd, np.zeros(mech.nv), f_ext)
    given, mask = mech.rates(dgiven), mech.driven(active)
    return mech.join(respond(mech, q, given, mask, mech.rates(felt), np.zeros(6)))  # (4)
