"""Total rates, working forces and the mass factor of a robot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from ..algorithms.diagonalized.diagonal_dynamics import ArticulatedRates
from ..algorithms.diagonalized.rates_and_forces import Innovations
from .front import Front
from .method import Numbers, compiled

__all__ = ["Diagonalized"]


class Diagonalized(Front):
    """Dynamics in which the mass matrix is the identity: ν = mᵀ q̇, ε = m⁻¹ τ, M = m mᵀ.

    `normalized=False` leaves the roots of the joint inertias out: ξ, κ, C_ξ, ξ̇.
    """

    @compiled()
    def total_rates(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        normalized: bool = True,
        out: np.ndarray | None = None,
        **numbers: Unpack[Numbers],
    ) -> np.ndarray:
        """ν = mᵀ q̇, half its square the kinetic energy: (…, nv)."""
        ...

    @compiled()
    def joint_rates(
        self,
        q: ArrayLike,
        nu: ArrayLike,
        normalized: bool = True,
        out: np.ndarray | None = None,
        **numbers: Unpack[Numbers],
    ) -> np.ndarray:
        """q̇ = m⁻ᵀ ν: (…, nv)."""
        ...

    @compiled()
    def working_forces(
        self,
        q: ArrayLike,
        tau: ArrayLike,
        f_ext: ArrayLike | None = None,
        normalized: bool = True,
        out: np.ndarray | None = None,
        **numbers: Unpack[Numbers],
    ) -> np.ndarray:
        """ε = m⁻¹ (τ + Σ Jᵀ f_ext): (…, nv)."""
        ...

    @compiled()
    def joint_forces(
        self,
        q: ArrayLike,
        eps: ArrayLike,
        normalized: bool = True,
        out: np.ndarray | None = None,
        **numbers: Unpack[Numbers],
    ) -> np.ndarray:
        """τ = m ε: (…, nv)."""
        ...

    @compiled()
    def working_gravity(
        self,
        q: ArrayLike,
        normalized: bool = True,
        out: np.ndarray | None = None,
        **numbers: Unpack[Numbers],
    ) -> np.ndarray:
        """ε_g = −m⁻¹ g(q), what gravity does to ν: (…, nv)."""
        ...

    @compiled(Innovations)
    def innovations(
        self,
        q: ArrayLike,
        tau: ArrayLike,
        out: Sequence[np.ndarray] | None = None,
        **numbers: Unpack[Numbers],
    ) -> Innovations:
        """Joint forces as a filter takes them apart: predicted, innovation, covariance, whitened.

        predicted, innovation κ, whitened ε: (…, nv); covariance D: (…, nv, nv), block diagonal.
        """
        ...

    @compiled()
    def diagonal_coriolis(
        self,
        q: ArrayLike,
        nu: ArrayLike,
        normalized: bool = True,
        out: np.ndarray | None = None,
        **numbers: Unpack[Numbers],
    ) -> np.ndarray:
        """C(q, ν) of ν̇ + C = ε + ε_g, orthogonal to ν: (…, nv)."""
        ...

    @compiled()
    def diagonal_coriolis_matrix(
        self, q: ArrayLike, nu: ArrayLike, out: np.ndarray | None = None, **numbers: Unpack[Numbers]
    ) -> np.ndarray:
        """The skew A(q, ν) with C = A ν: (…, nv, nv)."""
        ...

    @compiled()
    def diagonal_dynamics(
        self,
        q: ArrayLike,
        nu: ArrayLike,
        tau: ArrayLike,
        f_ext: ArrayLike | None = None,
        normalized: bool = True,
        out: np.ndarray | None = None,
        **numbers: Unpack[Numbers],
    ) -> np.ndarray:
        """ν̇ = ε + ε_g − C(q, ν), external forces included in ε: (…, nv)."""
        ...

    # factors and rates

    @compiled()
    def mass_factor(
        self, q: ArrayLike, out: np.ndarray | None = None, **numbers: Unpack[Numbers]
    ) -> np.ndarray:
        """m(q), upper triangular, M = m mᵀ: (…, nv, nv)."""
        ...

    @compiled()
    def mass_factor_inverse(
        self, q: ArrayLike, out: np.ndarray | None = None, **numbers: Unpack[Numbers]
    ) -> np.ndarray:
        """ℓ(q) = m⁻¹, upper triangular, M⁻¹ = ℓᵀ ℓ: (…, nv, nv)."""
        ...

    @compiled()
    def mass_factor_rate(
        self, q: ArrayLike, qd: ArrayLike, out: np.ndarray | None = None, **numbers: Unpack[Numbers]
    ) -> np.ndarray:
        """ṁ(q, q̇): (…, nv, nv)."""
        ...

    @compiled(ArticulatedRates)
    def articulated_rates(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        out: Sequence[np.ndarray] | None = None,
        **numbers: Unpack[Numbers],
    ) -> ArticulatedRates:
        """P, Ṗ (…, n_bodies, 6, 6) in body axes, and D, Ḋ (…, nv, nv), block diagonal."""
        ...

    @compiled()
    def mass_matrix_rate(
        self, q: ArrayLike, qd: ArrayLike, out: np.ndarray | None = None, **numbers: Unpack[Numbers]
    ) -> np.ndarray:
        """Ṁ(q, q̇): (…, nv, nv)."""
        ...

    @compiled()
    def coriolis_matrix(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        form: str = "body",
        out: np.ndarray | None = None,
        **numbers: Unpack[Numbers],
    ) -> np.ndarray:
        """C(q, q̇) with C q̇ = bias − gravity and C + Cᵀ = Ṁ: (…, nv, nv).

        form: "christoffel" for the matrix of Christoffel's symbols, which Pinocchio and Corke's
        toolbox print; "body" for one that takes fewer operations.
        """
        ...
