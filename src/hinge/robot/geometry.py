"""The geometry of a robot's mass metric."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Unpack

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ArgumentError, SingularError
from ..runtime.arguments import broadcast, refuse_infinite
from ..runtime.check import check_number
from .front import Front
from .method import Numbers, compiled
from .through_host import through_host

if TYPE_CHECKING:
    from ..algorithms.diagonalized.mass_metric import Flatness

__all__ = ["Geometry"]

_SAMPLES = 4


class Geometry(Front):
    """How the mass matrix changes with the configuration, and what that means."""

    @compiled()
    def mass_matrix_sensitivity(
        self, q: ArrayLike, out: np.ndarray | None = None, **numbers: Unpack[Numbers]
    ) -> np.ndarray:
        """∂M/∂q, the direction last, along joint tangents: (…, nv, nv, nv)."""
        ...

    @through_host
    def mass_matrix_second_sensitivity(
        self, q: ArrayLike, **numbers: Unpack[Numbers]
    ) -> np.ndarray:
        """∂²M/∂q∂q, the directions last: (…, nv, nv, nv, nv); by plain sweeps, like `curvature`."""
        return self._each("mass_matrix_second_sensitivity", q, numbers)

    @compiled()
    def christoffel(
        self,
        q: ArrayLike,
        kind: Literal[1, 2] = 1,
        out: np.ndarray | None = None,
        **numbers: Unpack[Numbers],
    ) -> np.ndarray:
        """[ij,k] as [i, j, k], or of kind 2 {l;ij} as [l, i, j]: (…, nv, nv, nv)."""
        ...

    @through_host
    def curvature(self, q: ArrayLike, **numbers: Unpack[Numbers]) -> np.ndarray:
        """The Riemann tensor R_hijk of the mass metric: (…, nv, nv, nv, nv).

        Its nv⁴ entries make a kernel that takes long to compile: each sample is run by the plain
        sweeps.  For many samples of one robot, `robot.kernel("curvature", "q")` is that kernel.
        """
        return self._each("curvature", q, numbers)

    @compiled()
    def mass_factor_curl(
        self, q: ArrayLike, out: np.ndarray | None = None, **numbers: Unpack[Numbers]
    ) -> np.ndarray:
        """∂_i m_jk − ∂_j m_ik as [i, j, k]: zero where total rates are integrable."""
        ...

    def _each(self, name: str, q: ArrayLike, numbers: Numbers) -> np.ndarray:
        """The generic algorithm on one sample after the other."""
        where = f"{name} of {self.name!r}"
        self._refuse(where, numbers)
        samples = broadcast(where, [self._argument("q", q)])["q"]
        lead = samples.shape[:-1]
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            found = [self._sample(name, samples[i], alone=lead == ()) for i in np.ndindex(lead)]
        result = np.array(found, self.dtype).reshape(lead + (self.nv,) * 4)
        refuse_infinite(where, lead, [result])
        return result

    def _sample(self, name: str, q: np.ndarray, alone: bool) -> np.ndarray:
        """The generic algorithm at one sample; NaN where there is no answer, unless it is alone."""
        try:
            return getattr(self.alg, name)(q)
        except SingularError:
            if alone:
                raise
            return np.full((self.nv,) * 4, np.nan)

    @through_host
    def is_flat(
        self,
        q: ArrayLike | None = None,
        tolerance: float = 1e-9,
        rng: np.random.Generator | int | None = 0,
        **numbers: Unpack[Numbers],
    ) -> Flatness:
        """Whether coordinates exist in which the mass matrix is the identity; print it to be told.

        q: (…, nq), where to look; a few random configurations if there is none.
        """
        where = f"is_flat of {self.name!r}"
        self._refuse(where, numbers)
        if q is None:
            rng = np.random.default_rng(rng)
            q = np.array([self.random_configuration(rng) for _ in range(_SAMPLES)])
        samples = broadcast(where, [self._argument("q", q)])["q"]
        finite = np.isfinite(samples).all(axis=-1)
        if not finite.size or not finite.all():
            raise ArgumentError(
                f"{where}: q has {finite.size} configurations, of which {finite.sum()} are finite; "
                f"one verdict on all of them needs at least one, and all finite"
            )
        limit = check_number(where, "tolerance", tolerance, above=0)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            found = self.alg.is_flat(samples, limit)
        refuse_infinite(where, (), [np.array([found.curvature, found.curl])])
        return found
