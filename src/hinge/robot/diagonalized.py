"""Total rates, working forces and the mass factor of a robot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ..runtime.check import check_choice
from .front import Front

if TYPE_CHECKING:
    from ..algorithms.diagonalized.dynamics import ArticulatedRates
    from ..algorithms.diagonalized.rates import Innovations

__all__ = ["Diagonalized"]


class Diagonalized(Front):
    """Dynamics in which the mass matrix is the identity: ν = mᵀ q̇, ε = m⁻¹ τ, M = m mᵀ.

    `normalized=False` leaves the roots of the joint inertias out: ξ, κ, C_ξ, ξ̇.
    """

    def total_rates(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        normalized: bool = True,
        out: np.ndarray | None = None,
    ) -> np.ndarray:
        """ν = mᵀ q̇, half its square the kinetic energy: (…, nv)."""
        return self._call("total_rates", _static(normalized), q=q, qd=qd, out=out)

    def joint_rates(
        self,
        q: ArrayLike,
        nu: ArrayLike,
        normalized: bool = True,
        out: np.ndarray | None = None,
    ) -> np.ndarray:
        """q̇ = m⁻ᵀ ν: (…, nv)."""
        return self._call("joint_rates", _static(normalized), q=q, nu=nu, out=out)

    def working_forces(
        self,
        q: ArrayLike,
        tau: ArrayLike,
        f_ext: ArrayLike | None = None,
        normalized: bool = True,
        out: np.ndarray | None = None,
    ) -> np.ndarray:
        """ε = m⁻¹ (τ + Σ Jᵀ f_ext): (…, nv)."""
        return self._call("working_forces", _static(normalized), q=q, tau=tau, f_ext=f_ext, out=out)

    def joint_forces(
        self,
        q: ArrayLike,
        eps: ArrayLike,
        normalized: bool = True,
        out: np.ndarray | None = None,
    ) -> np.ndarray:
        """τ = m ε: (…, nv)."""
        return self._call("joint_forces", _static(normalized), q=q, eps=eps, out=out)

    def working_gravity(
        self, q: ArrayLike, normalized: bool = True, out: np.ndarray | None = None
    ) -> np.ndarray:
        """ε_g = −m⁻¹ g(q), what gravity does to ν: (…, nv)."""
        return self._call("working_gravity", _static(normalized), q=q, out=out)

    def innovations(self, q: ArrayLike, tau: ArrayLike) -> Innovations:
        """Joint forces as a filter takes them apart: predicted, innovation, covariance, whitened.

        predicted, innovation κ, whitened ε: (…, nv); covariance D: (…, nv, nv), block diagonal.
        """
        from ..algorithms.diagonalized.rates import Innovations

        return self._call("innovations", wrap=Innovations, q=q, tau=tau)

    def diagonal_coriolis(
        self,
        q: ArrayLike,
        nu: ArrayLike,
        normalized: bool = True,
        out: np.ndarray | None = None,
    ) -> np.ndarray:
        """C(q, ν) of ν̇ + C = ε + ε_g, orthogonal to ν: (…, nv)."""
        return self._call("diagonal_coriolis", _static(normalized), q=q, nu=nu, out=out)

    def diagonal_coriolis_matrix(
        self, q: ArrayLike, nu: ArrayLike, out: np.ndarray | None = None
    ) -> np.ndarray:
        """The skew A(q, ν) with C = A ν: (…, nv, nv)."""
        return self._call("diagonal_coriolis_matrix", q=q, nu=nu, out=out)

    def diagonal_dynamics(
        self,
        q: ArrayLike,
        nu: ArrayLike,
        tau: ArrayLike,
        f_ext: ArrayLike | None = None,
        normalized: bool = True,
        out: np.ndarray | None = None,
    ) -> np.ndarray:
        """ν̇ = ε + ε_g − C(q, ν), external forces included in ε: (…, nv)."""
        static = _static(normalized)
        return self._call("diagonal_dynamics", static, q=q, nu=nu, tau=tau, f_ext=f_ext, out=out)

    # factors and rates

    def mass_factor(self, q: ArrayLike, out: np.ndarray | None = None) -> np.ndarray:
        """m(q), upper triangular, M = m mᵀ: (…, nv, nv)."""
        return self._call("mass_factor", q=q, out=out)

    def mass_factor_inverse(self, q: ArrayLike, out: np.ndarray | None = None) -> np.ndarray:
        """ℓ(q) = m⁻¹, upper triangular, M⁻¹ = ℓᵀ ℓ: (…, nv, nv)."""
        return self._call("mass_factor_inverse", q=q, out=out)

    def mass_factor_rate(
        self, q: ArrayLike, qd: ArrayLike, out: np.ndarray | None = None
    ) -> np.ndarray:
        """ṁ(q, q̇): (…, nv, nv)."""
        return self._call("mass_factor_rate", q=q, qd=qd, out=out)

    def articulated_rates(self, q: ArrayLike, qd: ArrayLike) -> ArticulatedRates:
        """P, Ṗ (…, n_bodies, 6, 6) in body axes, and D, Ḋ (…, nv, nv), block diagonal."""
        from ..algorithms.diagonalized.dynamics import ArticulatedRates

        return self._call("articulated_rates", wrap=ArticulatedRates, q=q, qd=qd)

    def mass_matrix_rate(
        self, q: ArrayLike, qd: ArrayLike, out: np.ndarray | None = None
    ) -> np.ndarray:
        """Ṁ(q, q̇): (…, nv, nv)."""
        return self._call("mass_matrix_rate", q=q, qd=qd, out=out)

    def coriolis_matrix(
        self, q: ArrayLike, qd: ArrayLike, out: np.ndarray | None = None
    ) -> np.ndarray:
        """C(q, q̇) with C q̇ = bias − gravity and C + Cᵀ = Ṁ: (…, nv, nv)."""
        return self._call("coriolis_matrix", q=q, qd=qd, out=out)


def _static(normalized: bool) -> dict[str, Any] | None:
    """What the kernel is built for; nothing, in the ordinary case."""
    chosen = check_choice("total rates", "normalized", normalized, (True, False))
    return None if chosen else {"normalized": False}
