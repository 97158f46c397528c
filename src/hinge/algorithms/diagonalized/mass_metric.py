"""The geometry of the mass metric: Christoffel symbols, curvature, flatness.  Paper D §2; math §9.

    [ij,k]   = ½ (∂_i M_jk + ∂_j M_ik − ∂_k M_ij),    {l;ij} = Σ_k (M⁻¹)_lk [ij,k]              (1)
    R_hijk   = ½ (∂_i∂_j M_hk + ∂_h∂_k M_ij − ∂_i∂_k M_hj − ∂_h∂_j M_ik)
               + Σ_l ({l;ij} [hk,l] − {l;ik} [hj,l])                                            (2)

These are formulas of a chart: every rate must be the rate of a coordinate.  Joints whose rates are
not (spherical, planar, free) are refused; build them from hinges and sliders instead.

Lemma 2.2 of the paper: coordinates in which the mass matrix is the identity exist around a
configuration if and only if R = 0 there.  They belong to *some* factor M = m mᵀ, not to the one
from the Riccati sweep: a flat mechanism may have C ≠ 0 in total rates, as the cart and pole has.
The total rates ν = mᵀ q̇ themselves are rates of coordinates if and only if the columns of m are
gradients, ∂_i m_jk = ∂_j m_ik; then C = 0 and R = 0.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...algebra.small import inverse_spd
from ...errors import ModelError
from ...model.mechanism import Mechanism
from ..declare import algorithm
from ..mass_matrix import mass_matrix
from .diagonal_dynamics import mass_factor_rate
from .mass_factor import mass_factor
from .mass_matrix_rates import mass_matrix_second_sensitivity, mass_matrix_sensitivity

__all__ = ["Flatness", "christoffel", "curvature", "is_flat", "mass_factor_curl"]


class Flatness(NamedTuple):
    """Whether the mass metric is flat at the configurations tried, and what follows.

    curvature: the largest |R_hijk|, relative to its terms and to M; curl: the largest
    |∂_i m_jk − ∂_j m_ik|, relative to its terms and to m.  Zero means: up to the tolerance.
    """

    name: str
    curvature: float
    curl: float
    configurations: int
    tolerance: float

    @property
    def flat(self) -> bool:
        """The Riemann tensor vanishes: some coordinates make the mass matrix the identity."""
        return self.curvature <= self.tolerance

    @property
    def integrable(self) -> bool:
        """Total rates are themselves the rates of such coordinates, and C(q, ν) = 0."""
        return self.curl <= self.tolerance

    def __bool__(self) -> bool:
        return self.flat

    def __str__(self) -> str:
        count = self.configurations
        where = "1 configuration" if count == 1 else f"{count} configurations"
        size = f"relative curvature {self.curvature:.1e}, curl of m {self.curl:.1e}, at {where}"
        return f"{self.name!r}: {self._verdict}  ({size})"

    @property
    def _verdict(self) -> str:
        if not self.flat:
            return (
                "curved: no coordinates make the mass matrix the identity (Lemma 2.2), not even "
                "locally; total rates exist all the same, but they are not rates of coordinates."
            )
        if self.integrable:
            return (
                "flat, and total rates are the rates of coordinates in which the mass matrix is "
                "the identity: C(q, ν) = 0."
            )
        return (
            "flat: locally some coordinates make the mass matrix the identity (Lemma 2.2), but the "
            "total rates are not their rates, another factor of M has to be found; C(q, ν) ≠ 0."
        )


@algorithm(joint_level=True)
def christoffel(mech: Mechanism, q: np.ndarray, kind: int = 1) -> np.ndarray:
    """Christoffel symbols of the mass metric, (nv, nv, nv).

    kind 1: [i, j, k] = [ij,k], with Σ [ij,k] q̇_i q̇_j the Coriolis force on k;
    kind 2: [l, i, j] = {l;ij}, with q̈_l = −Σ {l;ij} q̇_i q̇_j where no force acts.
    """
    _require_chart(mech, "Christoffel symbols")
    first = _first_kind(mass_matrix_sensitivity(mech, q))
    if kind == 1:
        return first
    return _second_kind(mech, q, first)


@algorithm(joint_level=True)
def curvature(mech: Mechanism, q: np.ndarray) -> np.ndarray:
    """The Riemann tensor of the mass metric, (nv, nv, nv, nv): [h, i, j, k] = R_hijk."""
    bent, straight = _curvature_terms(mech, q)
    return bent + straight


@algorithm(joint_level=True)
def mass_factor_curl(mech: Mechanism, q: np.ndarray) -> np.ndarray:
    """∂_i m_jk − ∂_j m_ik, (nv, nv, nv) as [i, j, k]: zero where total rates are integrable."""
    _require_chart(mech, "the curl of the mass factor")
    slopes = _factor_slopes(mech, q)
    return slopes - slopes.transpose(1, 0, 2)


@algorithm()
def is_flat(mech: Mechanism, q: np.ndarray, tolerance: float = 1e-9) -> Flatness:
    """Whether the mass metric is flat at the configurations q, (…, nq), of floats.

    The metric is analytic in q: flat at a few random configurations is flat everywhere.
    """
    samples = [np.asarray(q)[i] for i in np.ndindex(np.shape(q)[:-1])]
    bent, curl = [0.0], [0.0]
    for sample in samples:
        terms, slopes = _curvature_terms(mech, sample), _factor_slopes(mech, sample)
        bent.append(_relative(terms[0] + terms[1], *terms, mass_matrix(mech, sample)))
        twist = slopes - slopes.transpose(1, 0, 2)
        curl.append(_relative(twist, slopes, mass_factor(mech, sample)))
    return Flatness(mech.name, float(np.max(bent)), float(np.max(curl)), len(samples), tolerance)


def _require_chart(mech: Mechanism, what: str) -> None:
    """Raise if the rates of some joint are not the rates of its coordinates."""
    for body in mech.bodies[1:]:
        if not body.joint.commuting:
            raise ModelError(
                f"{what} of {mech.name!r}: joint {body.joint_name!r} is "
                f"{type(body.joint).__name__}, whose rates are not the rates of coordinates; "
                f"build it from hinges and sliders, each with a coordinate of its own"
            )


def _curvature_terms(mech: Mechanism, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both lines of (2)."""
    _require_chart(mech, "curvature")
    second = mass_matrix_second_sensitivity(mech, q)
    first = _first_kind(mass_matrix_sensitivity(mech, q))
    raised = _second_kind(mech, q, first)
    # second[h, k, i, j] = ∂_i ∂_j M_hk
    half = second.transpose(0, 2, 3, 1) - second.transpose(0, 2, 1, 3)
    bent = 0.5 * (half - half.transpose(1, 0, 2, 3))
    square = np.einsum("lij,hkl->hijk", raised, first)
    return bent, square - square.transpose(0, 1, 3, 2)


def _factor_slopes(mech: Mechanism, q: np.ndarray) -> np.ndarray:
    """[i, j, k] = ∂_i m_jk."""
    nv = mech.nv
    return np.array([mass_factor_rate(mech, q, e) for e in np.eye(nv)]).reshape(nv, nv, nv)


def _first_kind(slopes: np.ndarray) -> np.ndarray:
    """[ij,k] of (1) from slopes[a, b, i] = ∂_i M_ab."""
    own = slopes.transpose(2, 0, 1)  # [i, j, k] = ∂_i M_jk
    return 0.5 * (own + own.transpose(1, 0, 2) - slopes)


def _second_kind(mech: Mechanism, q: np.ndarray, first: np.ndarray) -> np.ndarray:
    """{l;ij} of (1)."""
    return np.einsum("lk,ijk->lij", inverse_spd(mass_matrix(mech, q)), first)


def _relative(value: Any, *terms: Any) -> float:
    scale = float(np.max([np.abs(t).max(initial=0.0) for t in terms]))
    return float(np.abs(value).max(initial=0.0)) / scale if scale else 0.0
