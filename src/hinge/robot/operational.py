"""Spatial operators of a robot, and what frames feel when pushed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ArgumentError, SingularError
from ..runtime.arguments import single
from .front import Front

if TYPE_CHECKING:
    from ..algorithms.kinematics import Reference
    from ..operators import Operators

__all__ = ["Operational"]

# rounding of Λ⁻¹ in eps, times its rows; random singular samples show a thirtieth of it at most
_ROUNDING = 16


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
        if values.dtype != object or values.shape != (self.nq,):
            values = single(f"operators of {self.name!r}", [self._argument("q", q)])["q"]
        return Operators(self.mechanism, values, active)

    def operational_space_inertia(
        self, q: ArrayLike, frames: str | Sequence[str], reference: Reference = "aligned"
    ) -> np.ndarray:
        """Λ = (J M⁻¹ Jᵀ)⁻¹ of one frame or several together: (…, 6 f, 6 f).

        There is none where the frames cannot move in every direction: with nv < 6 f, for frames on
        one body, at a singular configuration.  One sample then raises, in a batch it is NaN.
        """
        name = "operational_space_inertia"
        static = {"frames": self._frames(name, frames), "reference": reference}
        rows = 6 * len(static["frames"])
        rounding = _ROUNDING * rows * float(np.finfo(self.dtype).eps)
        try:
            both = self._ask(f"{name}_margin", {**static, "rounding": rounding}, q=q)
        except SingularError:
            inverse = self._ask(f"{name}_inverse", static, q=q)
            raise SingularError(self._stuck(static["frames"], inverse, rounding)) from None
        return both[0]

    def operational_space_inertia_inverse(
        self, q: ArrayLike, frames: str | Sequence[str], reference: Reference = "aligned"
    ) -> np.ndarray:
        """Λ⁻¹ = J M⁻¹ Jᵀ of one frame or several together, without M or J: (…, 6 f, 6 f)."""
        name = "operational_space_inertia_inverse"
        static = {"frames": self._frames(name, frames), "reference": reference}
        return self._ask(name, static, q=q)

    def _frames(self, name: str, frames: str | Sequence[str]) -> tuple[str, ...]:
        if isinstance(frames, str):
            return (frames,)
        names = tuple(frames) if isinstance(frames, Iterable) else ()
        if not names:
            raise ArgumentError(f"{name} of {self.name!r}: frames is {frames!r}; expected names")
        return names

    def _stuck(self, frames: tuple[str, ...], inverse: np.ndarray, rounding: float) -> str:
        """Why there is no Λ."""
        rows, several = len(inverse), "frames" if len(frames) > 1 else "frame"
        return (
            f"operational_space_inertia of {self.name!r}: {several} "
            f"{', '.join(map(repr, frames))} cannot move in every direction here: J M⁻¹ Jᵀ is "
            f"{rows} × {rows} and has rank {_rank(inverse, rounding)}, the robot nv = {self.nv}; "
            f"use operational_space_inertia_inverse, which always exists, and invert the rows that "
            f"the task needs, or take fewer frames, or another configuration"
        )


def _rank(inverse: np.ndarray, rounding: float) -> int:
    """Directions of a singular Λ⁻¹ that are more than rounding, each row in a unit of its own."""
    rows = np.diagonal(inverse)
    kinds = rows.reshape(-1, 2, 3)
    moves = (kinds > rounding**2 * kinds.sum(axis=(0, 2), keepdims=True)).ravel()
    scale = np.where(moves, 1 / np.sqrt(np.where(moves, rows, 1.0)), 0.0)
    found = np.linalg.eigvalsh(scale[:, None] * inverse * scale)
    return min(int((found > rounding).sum()), len(inverse) - 1)
