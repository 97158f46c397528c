"""What driven joints do to the rest of a mechanism.  Paper U §5, §6, §7; math §7.

With passive DoF p and active DoF a, at given forces τ_p and external forces,

    q̈_p = J_D q̈_a + bias_p          J_D = −M_pp⁻¹ M_pa = −S_apᵀ     the disturbance Jacobian    (1)
    V̇_frame = J_G q̈_a + bias        J_G = J_a + J_p J_D             the generalized Jacobian    (2)
    τ_a = S_aa q̈_a + S_ap τ_p + …   S_aa = M_aa − M_ap M_pp⁻¹ M_pa, S_ap = M_ap M_pp⁻¹          (3)

and where the momentum h = M_pa q̇_a + M_pp q̇_p of the passive DoF is known, as it is of a base that
floats, the same holds for velocities:

    q̇_p = J_D q̇_a + M_pp⁻¹ h,       V_frame = J_G q̇_a + J_p M_pp⁻¹ h                            (4)

Every column is one run of `hybrid_response`, and no mass matrix is formed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...algebra.small import mirror_lower
from ...errors import ArgumentError
from ...model.mechanism import Mechanism
from ...model.protocol import Tree
from ..declare import algorithm
from ..kinematics import Reference, frame_acceleration, frame_velocity, jacobian
from .hybrid_dynamics import hybrid_dynamics, hybrid_response, respond

__all__ = [
    "SchurBlocks",
    "active_inertia",
    "complete_motion",
    "disturbance_bias",
    "disturbance_jacobian",
    "generalized_bias",
    "generalized_jacobian",
    "generalized_motion",
    "schur_blocks",
]


class SchurBlocks(NamedTuple):
    """aa: M_aa − M_ap M_pp⁻¹ M_pa (na, na); ap: M_ap M_pp⁻¹ (na, np); pp: M_pp⁻¹ (np, np)."""

    aa: Any
    ap: Any
    pp: Any


@algorithm(joint_level=True)
def disturbance_jacobian(mech: Mechanism, q: np.ndarray, active: Any) -> np.ndarray:
    """J_D (np, na): q̈_p = J_D q̈_a + bias_p (1).  O(N·na)."""
    a, p = _parts(mech, active)
    return hybrid_response(mech, q, np.eye(mech.nv)[:, a], active)[p]


@algorithm()
def generalized_jacobian(
    mech: Mechanism, q: np.ndarray, frame: str, active: Any, reference: Reference = "aligned"
) -> np.ndarray:
    """J_G (6, na): the frame is accelerated by J_G q̈_a + bias, passive DoF yielding (2).  O(N·na).

    reference: as in `jacobian`.
    """
    a, p = _parts(mech, active)
    J = jacobian(mech, q, frame, reference)
    return J[:, a] + J[:, p] @ disturbance_jacobian(mech, q, active)


@algorithm(joint_level=True)
def active_inertia(mech: Mechanism, q: np.ndarray, active: Any) -> np.ndarray:
    """S_aa (na, na): the inertia that the active DoF feel, the passive ones yielding (3).  O(N·na).

    Symmetric, positive definite, and never more than M_aa.
    """
    a, _ = _parts(mech, active)
    return mirror_lower(hybrid_response(mech, q, np.eye(mech.nv)[:, a], active)[a])


@algorithm(joint_level=True, composed=True)
def schur_blocks(mech: Mechanism, q: np.ndarray, active: Any) -> SchurBlocks:
    """S_aa, S_ap and S_pp (3).  O(N·nv)."""
    a, p = _parts(mech, active)
    S = hybrid_response(mech, q, np.eye(mech.nv), active)
    return SchurBlocks(
        mirror_lower(S[np.ix_(a, a)]), -S[np.ix_(p, a)].T, mirror_lower(S[np.ix_(p, p)])
    )


@algorithm(joint_level=True, loops=True, independent_joints=True)
def complete_motion(
    mech: Tree,
    q: np.ndarray,
    qd_active: np.ndarray,
    active: Any,
    momentum_passive: np.ndarray | None = None,
) -> np.ndarray:
    """q̇ (nv,) with the given rates of active DoF and J_D q̇_a + M_pp⁻¹ h of passive ones (4).  O(N).

    qd_active, momentum_passive: (nv,), entries of the other kind of DoF are not used; h is zero by
    default, and J_D q̇_a is then the product of J_D with a vector.
    """
    mask, nothing = mech.driven(active), mech.each(lambda k: 0.0)
    h_ = mech.rates(np.zeros(mech.nv) if momentum_passive is None else momentum_passive)
    m, rates = mech.rates(mask), mech.rates(qd_active)
    given = mech.each(lambda k: m[k] * rates[k] + (1 - m[k]) * h_[k])
    found = respond(mech, q, given, mask, nothing, np.zeros(6))
    (qd,) = mech.slots(1)
    for _, k in mech.outward():
        qd[k] = m[k] * rates[k] + (1 - m[k]) * found[k]  # (4)
    return mech.join(qd)


@algorithm(composed=True)
def generalized_motion(
    mech: Mechanism,
    q: np.ndarray,
    qd_active: np.ndarray,
    frame: str,
    active: Any,
    momentum_passive: np.ndarray | None = None,
    reference: Reference = "aligned",
) -> np.ndarray:
    """J_G q̇_a + J_p M_pp⁻¹ h: the velocity of a frame while passive DoF yield, (6,) (4).  O(N)."""
    qd = complete_motion(mech, q, qd_active, active, momentum_passive)
    return frame_velocity(mech, q, qd, frame, reference)


@algorithm(joint_level=True, composed=True)
def disturbance_bias(
    mech: Mechanism,
    q: np.ndarray,
    qd: np.ndarray,
    tau_passive: np.ndarray,
    active: Any,
    f_ext: np.ndarray | None = None,
) -> np.ndarray:
    """bias_p of q̈_p = J_D q̈_a + bias_p: (np,) (1).  O(N)."""
    _, p = _parts(mech, active)
    return hybrid_dynamics(mech, q, qd, np.zeros(mech.nv), tau_passive, active, f_ext).qdd[p]


@algorithm(composed=True)
def generalized_bias(
    mech: Mechanism,
    q: np.ndarray,
    qd: np.ndarray,
    tau_passive: np.ndarray,
    frame: str,
    active: Any,
    reference: Reference = "aligned",
    f_ext: np.ndarray | None = None,
) -> np.ndarray:
    """bias of V̇_frame = J_G q̈_a + bias, as `frame_acceleration` counts it: (6,) (2).  O(N)."""
    still = hybrid_dynamics(mech, q, qd, np.zeros(mech.nv), tau_passive, active, f_ext)
    return frame_acceleration(mech, q, qd, still.qdd, frame, reference)


def _parts(mech: Mechanism, active: Any) -> tuple[np.ndarray, np.ndarray]:
    """The active and the passive DoF, by number."""
    mask = mech.driven(active)
    if mask.dtype == object:
        raise ArgumentError(
            f"{mech.name!r}: which DoF are active decides the shape of the result and cannot be "
            f"traced; give names of joints, or a mask of numbers"
        )
    return np.flatnonzero(mask == 1), np.flatnonzero(mask == 0)
