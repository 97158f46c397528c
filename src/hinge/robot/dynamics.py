"""Forces and accelerations of a robot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from .columns import by_columns, too_large
from .front import Front

if TYPE_CHECKING:
    from ..algorithms.constraints import ConstrainedMotion, LoopConstraint

__all__ = ["Dynamics"]


class Dynamics(Front):
    """What moves a robot."""

    def inverse_dynamics(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        f_ext: ArrayLike | None = None,
        out: np.ndarray | None = None,
    ) -> np.ndarray:
        """τ = M q̈ + C(q, q̇) + g(q) − Σ Jᵀ f_ext: (…, nv)."""
        return self._call("inverse_dynamics", q=q, qd=qd, qdd=qdd, f_ext=f_ext, out=out)

    def forward_dynamics(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        tau: ArrayLike,
        f_ext: ArrayLike | None = None,
        out: np.ndarray | None = None,
    ) -> np.ndarray:
        """q̈ = M⁻¹(τ − C(q, q̇) − g(q) + Σ Jᵀ f_ext): (…, nv)."""
        return self._call("forward_dynamics", q=q, qd=qd, tau=tau, f_ext=f_ext, out=out)

    def mass_matrix(self, q: ArrayLike, out: np.ndarray | None = None) -> np.ndarray:
        """M(q): (…, nv, nv)."""
        if too_large(self):
            return by_columns(self, "mass_matrix", q, out, [("generalized_momentum", "qd")])
        return self._call("mass_matrix", q=q, out=out)

    def mass_matrix_inverse(self, q: ArrayLike, out: np.ndarray | None = None) -> np.ndarray:
        """M(q)⁻¹, without forming M: (…, nv, nv)."""
        if too_large(self, across=True):
            steps = [("working_forces", "tau"), ("joint_rates", "nu")]
            return by_columns(self, "mass_matrix_inverse", q, out, steps)
        return self._call("mass_matrix_inverse", q=q, out=out)

    def bias_forces(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        f_ext: ArrayLike | None = None,
        out: np.ndarray | None = None,
    ) -> np.ndarray:
        """C(q, q̇) + g(q) − Σ Jᵀ f_ext: (…, nv)."""
        return self._call("bias_forces", q=q, qd=qd, f_ext=f_ext, out=out)

    def gravity_forces(self, q: ArrayLike, out: np.ndarray | None = None) -> np.ndarray:
        """g(q), the joint forces that hold the robot still: (…, nv)."""
        return self._call("gravity_forces", q=q, out=out)

    def passive_forces(self, q: ArrayLike, qd: ArrayLike) -> np.ndarray:
        """−stiffness (q ⊟ rest) − damping q̇ − friction sign(q̇) of the joints: (…, nv)."""
        return self._call("passive_forces", q=q, qd=qd)

    def constrained_forward_dynamics(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        tau: ArrayLike,
        constraints: Sequence[LoopConstraint],
        f_ext: ArrayLike | None = None,
    ) -> ConstrainedMotion:
        """q̈ (…, nv) and constraint forces λ (…, rows): M q̈ − Kᵀλ = τ − bias, K q̈ = k."""
        from ..algorithms.constraints import ConstrainedMotion, as_constraints

        name = "constrained_forward_dynamics"
        static = {"constraints": as_constraints(f"{name} of {self.name!r}", constraints)}
        return ConstrainedMotion(*self._call(name, static, q=q, qd=qd, tau=tau, f_ext=f_ext))

    rnea = inverse_dynamics
    aba = forward_dynamics
    crba = mass_matrix
