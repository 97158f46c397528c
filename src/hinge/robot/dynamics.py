"""Forces and accelerations of a robot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Unpack

import numpy as np
from numpy.typing import ArrayLike

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
        method: Literal["sweep", "scan"] = "sweep",
        **numbers: Unpack[Numbers],
    ) -> np.ndarray:
        """q̈ = M⁻¹(τ − C(q, q̇) − g(q) + Σ Jᵀ f_ext): (…, nv).

        method: "scan" for one state of many bodies on many lanes, in O(log N) steps one after the
        other: slower than the sweep on a CPU, and meant for a GPU (docs/theory/log_depth.md).
        """
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

    rnea = inverse_dynamics
    aba = forward_dynamics
    crba = mass_matrix
