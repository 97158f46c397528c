"""Robots that are held: closed loops, grasps, feet on the ground."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from ..algorithms.constrained.derivatives import ConstrainedDerivatives
from ..algorithms.constrained.forward import ConstrainedHybridMotion, ConstrainedMotion
from ..algorithms.constrained.impulse import Impact
from ..algorithms.constrained.impulse_derivatives import ImpactDerivatives
from ..algorithms.constrained.inverse import ConstrainedForces
from .front import Front
from .method import Numbers, compiled

if TYPE_CHECKING:
    from ..algorithms.constrained.description import Constraint

__all__ = ["Constrained"]


class Constrained(Front):
    """What holds a robot, and how it moves when held.

    `constraints`: one or several of `hinge.LoopConstraint` and `hinge.Contact`; their rows are one
    after the other.  mask: (…, constraints), 1 for those that act and 0 for the others.  anchors:
    (…, contacts, 4, 4), where contacts with a stiffness are drawn to.
    """

    @compiled(ConstrainedMotion)
    def constrained_forward_dynamics(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        tau: ArrayLike,
        constraints: Constraint | Sequence[Constraint],
        f_ext: ArrayLike | None = None,
        mask: ArrayLike | None = None,
        anchors: ArrayLike | None = None,
        out: Sequence[np.ndarray] | None = None,
        **numbers: Unpack[Numbers],
    ) -> ConstrainedMotion:
        """q̈ (…, nv) and constraint forces λ (…, rows): M q̈ − Kᵀλ = τ − bias, K q̈ = k."""
        ...

    @compiled(ConstrainedHybridMotion)
    def constrained_hybrid_dynamics(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd_active: ArrayLike,
        tau_passive: ArrayLike,
        constraints: Constraint | Sequence[Constraint],
        active: Any,
        f_ext: ArrayLike | None = None,
        mask: ArrayLike | None = None,
        anchors: ArrayLike | None = None,
        out: Sequence[np.ndarray] | None = None,
        **numbers: Unpack[Numbers],
    ) -> ConstrainedHybridMotion:
        """τ of active DoF, q̈ of passive ones, both (…, nv) with what is given, and λ (…, rows).

        active: names of the joints whose accelerations are given, or a mask (nv,).
        """
        ...

    @compiled(ConstrainedForces)
    def constrained_inverse_dynamics(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        constraints: Constraint | Sequence[Constraint],
        active: Any,
        f_ext: ArrayLike | None = None,
        mask: ArrayLike | None = None,
        tau_weights: ArrayLike | None = None,
        force_weights: ArrayLike | None = None,
        out: Sequence[np.ndarray] | None = None,
        **numbers: Unpack[Numbers],
    ) -> ConstrainedForces:
        """τ (…, nv) of the driven joints and λ (…, rows) that a motion needs: least by weights.

        active: names of the joints that are driven, or a mask (nv,).
        """
        ...

    @compiled(ConstrainedDerivatives)
    def constrained_forward_dynamics_derivatives(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        tau: ArrayLike,
        constraints: Constraint | Sequence[Constraint],
        f_ext: ArrayLike | None = None,
        mask: ArrayLike | None = None,
        anchors: ArrayLike | None = None,
        out: Sequence[np.ndarray] | None = None,
        **numbers: Unpack[Numbers],
    ) -> ConstrainedDerivatives:
        """∂q̈ as `.dq .dqd .dtau`, (…, nv, nv) each, ∂λ as `.forces_dq` …, (…, rows, nv) each.

        Of the motion of `constrained_forward_dynamics`; ∂q is along the joints' tangents.  f_ext
        keeps its components in body axes, anchors stay where they are.  Of redundant constraints ∂q̈
        is unique, ∂λ one of those that go with it.
        """
        ...

    @compiled(Impact)
    def impulse_dynamics(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        constraints: Constraint | Sequence[Constraint],
        restitution: ArrayLike | None = None,
        mask: ArrayLike | None = None,
        out: Sequence[np.ndarray] | None = None,
        **numbers: Unpack[Numbers],
    ) -> Impact:
        """q̇⁺ (…, nv) and impulses Λ (…, rows) of an impact: K q̇⁺ = −e K q̇.

        restitution: e (…, constraints), 0 by default.
        """
        ...

    @compiled(ImpactDerivatives)
    def impulse_dynamics_derivatives(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        constraints: Constraint | Sequence[Constraint],
        restitution: ArrayLike | None = None,
        mask: ArrayLike | None = None,
        out: Sequence[np.ndarray] | None = None,
        **numbers: Unpack[Numbers],
    ) -> ImpactDerivatives:
        """∂q̇⁺ as `.dq .dqd`, (…, nv, nv) each, ∂Λ as `.impulses_dq .impulses_dqd`, (…, rows, nv).

        Of the impact of `impulse_dynamics`; ∂q is along the joints' tangents.
        """
        ...

    @compiled()
    def friction_residuals(
        self,
        forces: ArrayLike,
        constraints: Constraint | Sequence[Constraint],
        out: np.ndarray | None = None,
        **numbers: Unpack[Numbers],
    ) -> np.ndarray:
        """What is left to the edges of the friction cones of λ (…, rows): 0 or more inside."""
        ...

    @compiled()
    def anchors(
        self,
        q: ArrayLike,
        constraints: Constraint | Sequence[Constraint],
        out: np.ndarray | None = None,
        **numbers: Unpack[Numbers],
    ) -> np.ndarray:
        """The poses of the frames of all contacts among the constraints: (…, contacts, 4, 4)."""
        ...
