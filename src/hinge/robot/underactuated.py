"""Robots of which some joints are driven and the others are not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, Unpack

import numpy as np
from numpy.typing import ArrayLike

from ..algorithms.underactuated.generalized_jacobians import SchurBlocks
from ..algorithms.underactuated.hybrid_derivatives import HybridDerivatives
from ..algorithms.underactuated.hybrid_dynamics import HybridDynamics
from .front import Front
from .method import Numbers, compiled

if TYPE_CHECKING:
    from ..algorithms.kinematics import Reference

__all__ = ["Underactuated"]


class Underactuated(Front):
    """What a robot does when not all of its joints obey.

    `active` says which degrees of freedom are driven: names of joints, or a mask (nv,); either gets
    a kernel of its own, in which the split is folded.  Where the result has a shape that does not
    depend on it, `active` may also be a mask per sample, (…, nv) with a leading shape: one kernel
    then serves every split.
    """

    @compiled(HybridDynamics, split_per_sample=True)
    def hybrid_dynamics(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd_active: ArrayLike,
        tau_passive: ArrayLike,
        active: Any,
        f_ext: ArrayLike | None = None,
        out: Sequence[np.ndarray] | None = None,
        method: Literal["sweep", "scan"] = "sweep",
        **numbers: Unpack[Numbers],
    ) -> HybridDynamics:
        """Forces of the active DoF and accelerations of the passive ones: .tau, .qdd (…, nv).

        qdd_active, tau_passive: (…, nv); entries of the other kind of DoF are not used.
        method: as in `forward_dynamics`.
        """
        ...

    @compiled(HybridDerivatives, split_per_sample=True)
    def hybrid_dynamics_derivatives(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd_active: ArrayLike,
        tau_passive: ArrayLike,
        active: Any,
        f_ext: ArrayLike | None = None,
        out: Sequence[np.ndarray] | None = None,
        **numbers: Unpack[Numbers],
    ) -> HybridDerivatives:
        """.dq, .dqd, .dgiven (…, nv, nv): rows τ of active, q̈ of passive DoF; ∂q along tangents."""
        ...

    @compiled(split_per_sample=True)
    def hybrid_dynamics_jvp(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd_active: ArrayLike,
        tau_passive: ArrayLike,
        dq: ArrayLike,
        dqd: ArrayLike,
        dgiven: ArrayLike,
        active: Any,
        f_ext: ArrayLike | None = None,
        out: np.ndarray | None = None,
        **numbers: Unpack[Numbers],
    ) -> np.ndarray:
        """How τ of active, q̈ of passive DoF change with q, q̇ and what is given: (…, nv)."""
        ...

    @compiled()
    def generalized_jacobian(
        self,
        q: ArrayLike,
        frame: str,
        active: Any,
        reference: Reference = "aligned",
        out: np.ndarray | None = None,
        **numbers: Unpack[Numbers],
    ) -> np.ndarray:
        """J_G: active accelerations to that of a frame, the passive DoF yielding: (…, 6, na)."""
        ...

    @compiled()
    def disturbance_jacobian(
        self, q: ArrayLike, active: Any, out: np.ndarray | None = None, **numbers: Unpack[Numbers]
    ) -> np.ndarray:
        """J_D = −M_pp⁻¹ M_pa: active accelerations to those of the passive DoF: (…, np, na)."""
        ...

    @compiled()
    def active_inertia(
        self, q: ArrayLike, active: Any, out: np.ndarray | None = None, **numbers: Unpack[Numbers]
    ) -> np.ndarray:
        """S_aa = M_aa − M_ap M_pp⁻¹ M_pa: (…, na, na)."""
        ...

    @compiled(SchurBlocks)
    def schur_blocks(
        self,
        q: ArrayLike,
        active: Any,
        out: Sequence[np.ndarray] | None = None,
        **numbers: Unpack[Numbers],
    ) -> SchurBlocks:
        """S_aa, M_ap M_pp⁻¹ and M_pp⁻¹: .aa, .ap, .pp."""
        ...

    @compiled(split_per_sample=True)
    def complete_motion(
        self,
        q: ArrayLike,
        qd_active: ArrayLike,
        active: Any,
        momentum_passive: ArrayLike | None = None,
        out: np.ndarray | None = None,
        **numbers: Unpack[Numbers],
    ) -> np.ndarray:
        """q̇ with J_D q̇_a + M_pp⁻¹ h for the passive DoF, h zero by default: (…, nv)."""
        ...

    @compiled(split_per_sample=True)
    def generalized_motion(
        self,
        q: ArrayLike,
        qd_active: ArrayLike,
        frame: str,
        active: Any,
        momentum_passive: ArrayLike | None = None,
        reference: Reference = "aligned",
        out: np.ndarray | None = None,
        **numbers: Unpack[Numbers],
    ) -> np.ndarray:
        """J_G q̇_a + J_p M_pp⁻¹ h: the velocity of a frame, the passive DoF yielding: (…, 6)."""
        ...

    @compiled()
    def disturbance_bias(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        tau_passive: ArrayLike,
        active: Any,
        f_ext: ArrayLike | None = None,
        out: np.ndarray | None = None,
        **numbers: Unpack[Numbers],
    ) -> np.ndarray:
        """The passive accelerations at q̈_a = 0: q̈_p = J_D q̈_a + bias: (…, np)."""
        ...

    @compiled(split_per_sample=True)
    def generalized_bias(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        tau_passive: ArrayLike,
        frame: str,
        active: Any,
        reference: Reference = "aligned",
        f_ext: ArrayLike | None = None,
        out: np.ndarray | None = None,
        **numbers: Unpack[Numbers],
    ) -> np.ndarray:
        """The acceleration of a frame at q̈_a = 0: V̇ = J_G q̈_a + bias: (…, 6)."""
        ...
