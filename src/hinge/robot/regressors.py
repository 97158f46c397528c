"""What of a robot is linear in its masses, and in numbers of its joints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from ..algorithms.regressors import EnergyRegressors, LinearParameters, linear_parameters
from .front import Front
from .method import Numbers, compiled

__all__ = ["Regressors"]


class Regressors(Front):
    """Regressors, and the parameters π that they multiply."""

    def linear_parameters(self, joint_terms: str | Sequence[str] = ()) -> LinearParameters:
        """π: names and values of the columns of regressors, ten of each body, then of joints.

        A body has m, m c (3) and J about its origin: xx, yx, yy, zx, zy, zz.
        joint_terms: of "armature", "damping", "friction", "stiffness"; one number per DoF each.
        """
        return linear_parameters(self.mechanism, joint_terms)

    @compiled()
    def torque_regressor(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        joint_terms: str | Sequence[str] = (),
        out: np.ndarray | None = None,
        **numbers: Unpack[Numbers],
    ) -> np.ndarray:
        """Y with τ = Y π, π as in `linear_parameters`: (…, nv, parameters).  O(N · depth).

        τ is that of `inverse_dynamics`; with joint_terms, less the `passive_forces` of those terms.
        """
        ...

    @compiled(EnergyRegressors)
    def energy_regressor(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        out: Sequence[np.ndarray] | None = None,
        **numbers: Unpack[Numbers],
    ) -> EnergyRegressors:
        """Kinetic and potential energy as products with π: (…, 10 n_bodies) each.  O(N)."""
        ...

    @compiled()
    def momentum_regressor(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        out: np.ndarray | None = None,
        **numbers: Unpack[Numbers],
    ) -> np.ndarray:
        """`momentum(q, qd, about="world")` as a product with π: (…, 6, 10 n_bodies).  O(N)."""
        ...
