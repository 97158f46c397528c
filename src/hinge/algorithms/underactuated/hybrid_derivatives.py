"""Linearised hybrid dynamics.  Paper U with paper L; math §3, §7.

What is found, y = (τ_a; q̈_p), is a function of what is given, x = (q̈_a; τ_p), and of q and q̇; both
are kept as vectors over the DoF, an entry each.  With ∂τ = B_D ∂q + A_D ∂q̇ + M ∂q̈ at the motion
that was found (`linearized/inverse_derivatives.py`), s = 1 for passive and m = 1 for active DoF,
and S the operator of `hybrid_response`,

    ∂y/∂x = S,     ∂y/∂q = m B_D − S s B_D,     ∂y/∂q̇ = m A_D − S s A_D

In one direction, δτ = B_D δq + A_D δq̇ is felt at the joints: δy = m δτ + S (δx − s δτ)         (1)
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...model.mechanism import Mechanism
from ..declare import algorithm
from ..linearized.inverse_derivatives import inverse_dynamics_derivatives, inverse_dynamics_jvp
from .hybrid_dynamics import hybrid_dynamics, hybrid_response, respond

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
    """Derivatives of hybrid dynamics, ∂q along the joints' tangents.  O(N · nv).

    f_ext is fixed in body axes.
    """
    nv, m = mech.nv, mech.driven(active)[:, None]
    qdd = hybrid_dynamics(mech, q, qd, qdd_active, tau_passive, active, f_ext).qdd
    B, A, _ = inverse_dynamics_derivatives(mech, q, qd, qdd, f_ext)
    pushed = [(m - 1) * B, (m - 1) * A, np.eye(nv)]
    answer = hybrid_response(mech, q, np.concatenate(pushed, axis=1), active)
    dq, dqd, dgiven = answer[:, :nv], answer[:, nv : 2 * nv], answer[:, 2 * nv :]
    return HybridDerivatives(m * B + dq, m * A + dqd, dgiven)


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
    return mech.join(respond(mech, q, given, mask, mech.rates(felt), np.zeros(6)))  # (1)
