"""Spatial operators of a robot, and what frames feel when pushed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ..runtime.call import single
from .front import Front

if TYPE_CHECKING:
    from ..algorithms.kinematics import Reference
    from ..operators import Operators

__all__ = ["Operational"]


class Operational(Front):
    """Operators to multiply, and operational-space inertias."""

    def operators(self, q: ArrayLike, active: Sequence[str] | ArrayLike | None = None) -> Operators:
        """H, φ, ψ, M, P, D, G, K, τ̄, ℰ_φ, ℰ_ψ, Ω, Υ, B, I at a configuration q (nq,).

        `o = robot.operators(q)`, then `o.H @ o.phi @ o.M @ o.phi.T @ o.H.T` is the mass matrix as
        an operator.  active: names of joints, or a flag per DoF: splits H into H_a and H_p.
        q may hold traced scalars, so that expressions compile: `robot.compile`.
        """
        from ..operators import Operators

        values: Any = np.asarray(q)
        if values.dtype != object:
            values = single(f"operators of {self.name!r}", [self.argument("q", q)])["q"]
        return Operators(self.mechanism, values, None if active is None else self._flags(active))

    def _flags(self, active: Any) -> np.ndarray:
        if any(isinstance(name, str) for name in active):
            flags = np.zeros(self.nv, dtype=bool)
            for name in active:
                flags[self.v_slice(name)] = True
            return flags
        return np.asarray(active)

    def operational_space_inertia(
        self, q: ArrayLike, frames: str | Sequence[str], reference: Reference = "aligned"
    ) -> np.ndarray:
        """Λ = (J M⁻¹ Jᵀ)⁻¹ of one frame or several together: (…, 6 f, 6 f)."""
        static = {"frames": _tuple(frames), "reference": reference}
        return self._call("operational_space_inertia", static, q=q)

    def operational_space_inertia_inverse(
        self, q: ArrayLike, frames: str | Sequence[str], reference: Reference = "aligned"
    ) -> np.ndarray:
        """Λ⁻¹ = J M⁻¹ Jᵀ of one frame or several together, without M or J: (…, 6 f, 6 f)."""
        static = {"frames": _tuple(frames), "reference": reference}
        return self._call("operational_space_inertia_inverse", static, q=q)


def _tuple(frames: str | Sequence[str]) -> tuple[str, ...]:
    return (frames,) if isinstance(frames, str) else tuple(frames)
