"""Forces and accelerations of a robot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from ..algorithms.constrained.derivatives import ConstrainedDerivatives
from ..algorithms.constrained.description import Constraint
from ..algorithms.constrained.forward import ConstrainedMotion
from ..algorithms.lagrangian import LagrangianDerivatives
from .front import Front
from .method import Numbers, compiled

__all__ = ["Dynamics"]


class Dynamics(Front):
    """What moves a robot."""

    @compiled()
    def inverse_dynamics(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        f_ext: ArrayLike | None = None,
        out: np.ndarray | None = None,
        **numbers: Unpack[Numbers],
    ) -> np.ndarray:
        """τ = M q̈ + C(q, q̇) + g(q) − Σ Jᵀ f_ext: (…, nv)."""
        ...

    @compiled()
    def forward_dynamics(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        tau: ArrayLike,
        f_ext: ArrayLike | None = None,
        out: np.ndarray | None = None,
        **numbers: Unpack[Numbers],
    ) -> np.ndarray:
        """q̈ = M⁻¹(τ − C(q, q̇) − g(q) + Σ Jᵀ f_ext): (…, nv)."""
        ...

    @compiled()
    def mass_matrix(
        self, q: ArrayLike, out: np.ndarray | None = None, **numbers: Unpack[Numbers]
    ) -> np.ndarray:
        """M(q): (…, nv, nv)."""
        ...

    @compiled()
    def mass_matrix_inverse(
        self, q: ArrayLike, out: np.ndarray | None = None, **numbers: Unpack[Numbers]
    ) -> np.ndarray:
        """M(q)⁻¹, without forming M: (…, nv, nv)."""
        ...

    @compiled()
    def bias_forces(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        f_ext: ArrayLike | None = None,
        out: np.ndarray | None = None,
        **numbers: Unpack[Numbers],
    ) -> np.ndarray:
        """C(q, q̇) + g(q) − Σ Jᵀ f_ext: (…, nv)."""
        ...

    @compiled()
    def gravity_forces(
        self, q: ArrayLike, out: np.ndarray | None = None, **numbers: Unpack[Numbers]
    ) -> np.ndarray:
        """g(q), the joint forces that hold the robot still: (…, nv)."""
        ...

    @compiled()
    def passive_forces(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        out: np.ndarray | None = None,
        **numbers: Unpack[Numbers],
    ) -> np.ndarray:
        """−stiffness (q ⊟ rest) − damping q̇ − friction sign(q̇) of the joints: (…, nv)."""
        ...

    @compiled(LagrangianDerivatives)
    def lagrangian_derivatives(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        f_ext: ArrayLike | None = None,
        out: Sequence[np.ndarray] | None = None,
        **numbers: Unpack[Numbers],
    ) -> LagrangianDerivatives:
        """∂L/∂q̇ = M q̇ and ∂L/∂q + Σ Jᵀ f_ext of L = ½ q̇ᵀM(q)q̇ − U(q): (…, nv) each."""
        ...

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
        """q̈ (…, nv) and constraint forces λ (…, rows): M q̈ − Kᵀλ = τ − bias, K q̈ = k.

        mask: (…, constraints), 0 for those that do not act, 1 for those that do.
        anchors: (…, contacts, 4, 4), where contacts with a stiffness are drawn to.
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

        Of the motion of `constrained_forward_dynamics`, with the same mask and anchors; ∂q is along
        the joints' tangents.  f_ext keeps its components in body axes, anchors stay where they are.
        Of redundant constraints ∂q̈ is unique, ∂λ one of those that go with it.
        """
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

    rnea = inverse_dynamics
    aba = forward_dynamics
    crba = mass_matrix
