"""Spatial operators of a robot, and what frames feel when pushed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from ..errors import SingularError
from ..model.mechanism import Mechanism
from ..model.parameters import parameters
from ..runtime.arguments import broadcast, named
from ..runtime.kernel import Kernel
from .answers import known_key
from .front import Front
from .method import Numbers, compiled
from .settings import frame_names, split_of

if TYPE_CHECKING:
    from ..algorithms.kinematics import Reference
    from ..operators import Operators

__all__ = ["Operational"]

_INFINITE = float("inf")
# rounding of Λ⁻¹ in eps, times its rows; random singular samples show a thirtieth of it at most
_ROUNDING = 16


class Operational(Front):
    """Operators to multiply, and operational-space inertias."""

    def operators(
        self,
        q: ArrayLike,
        active: Sequence[str] | ArrayLike | None = None,
        **numbers: Unpack[Numbers],
    ) -> Operators:
        """H, φ, ψ, M, P, D, G, K, τ̄, ℰ_φ, ℰ_ψ, Ω, Υ, B, I at configurations q (…, nq).

        `o = robot.operators(q)`, then `o.H @ o.phi @ o.M @ o.phi.T @ o.H.T` is the mass matrix as
        an operator.  active: names of joints, or a flag per DoF: splits H into H_a and H_p.
        An expression is compiled when it first meets a vector, for every q.  q (nq,) may hold
        traced scalars, so that expressions become part of other kernels: `robot.compile`.
        """
        if numbers:
            self._refuse(f"operators of {self.name!r}", numbers)
        split = active if active is None else _looked_up(self.mechanism, active)
        at, shape, dtype, quaternions = self._kept.get(("operators", split)) or self._symbols(split)
        if type(q) is np.ndarray and q.shape == shape and q.dtype == dtype:
            whole = not quaternions or all(q[a].any() for a in quaternions)
            if whole and q.dot(q) < _INFINITE:
                return at(q.copy())
        if isinstance(q, np.ndarray) and q.dtype.hasobject and q.shape == shape:
            return at(np.asarray(q))
        if self.device != "cpu" and _on_card(q):
            return at(q)
        where, given = f"operators of {self.name!r}", [self._argument("q", q)]
        return at(broadcast(where, given)["q"].astype(dtype))

    def _symbols(self, split: Any) -> tuple[Callable[..., Operators], Any, Any, list[slice]]:
        """q ↦ operators of a split, made once; shape and dtype of q, where it has quaternions."""
        from ..operators import Operators
        from ..operators.symbols import Symbols

        mech = self.mechanism
        turning = [b.joint_name for b in mech.bodies[1:] if b.joint.nq > b.joint.nv]
        ends = [mech.q_slice(name).stop for name in turning]
        traced = any(x.dtype == object for x in parameters(mech).values())
        make = None if traced else partial(self._expression, split)
        at = partial(Operators.of, Symbols(mech, split, make, self.dtype))
        made = at, (self.nq,), self.dtype, [slice(e - 4, e) for e in ends]
        return self._keep(("operators", split), lambda: made)

    def _expression(
        self,
        split: Any,
        key: str,
        title: str,
        function: Callable[..., Any],
        shapes: dict[str, tuple[int, ...]],
    ) -> Callable[..., Any]:
        """An expression of operators as a kernel."""
        from ..graph.program import trace

        make = partial(trace, function, list(shapes.values()), title)
        own = known_key(self.mechanism, "operators", split, key, shapes)
        kernel = Kernel(make, title, list(shapes), self.dtype, self._backend, own, strict=True)
        where = f"{title} of {self.name!r}"
        passive = {} if split is None else {"active": split}

        def checked(*arrays: Any) -> Any:
            given = dict(zip(shapes, arrays, strict=True))
            try:
                return kernel.evaluate(where, named(where, arrays, shapes))
            except SingularError:
                raise SingularError(self._why_singular(where, {**given, **passive})) from None

        return kernel.fast(checked)

    def operational_space_inertia(
        self,
        q: ArrayLike,
        frames: str | Sequence[str],
        reference: Reference = "aligned",
        **numbers: Unpack[Numbers],
    ) -> np.ndarray:
        """Λ = (J M⁻¹ Jᵀ)⁻¹ of one frame or several together: (…, 6 f, 6 f).

        There is none where the frames cannot move in every direction: with nv < 6 f, for frames on
        one body, at a singular configuration.  One sample then raises, in a batch it is NaN.
        """
        name = "operational_space_inertia"
        where = f"{name} of {self.name!r}"
        static = {"frames": frame_names(where, frames), "reference": reference}
        rows = 6 * len(static["frames"])
        rounding = _ROUNDING * rows * float(np.finfo(self.dtype).eps)
        try:
            both = self._ask(f"{name}_margin", {**static, "rounding": rounding}, q=q, **numbers)
        except SingularError:
            inverse = self._ask(f"{name}_inverse", static, q=q, **numbers)
            raise SingularError(self._stuck(static["frames"], inverse, rounding)) from None
        return both[0]

    @compiled()
    def operational_space_inertia_inverse(
        self,
        q: ArrayLike,
        frames: str | Sequence[str],
        reference: Reference = "aligned",
        out: np.ndarray | None = None,
        **numbers: Unpack[Numbers],
    ) -> np.ndarray:
        """Λ⁻¹ = J M⁻¹ Jᵀ of one frame or several together, without M or J: (…, 6 f, 6 f)."""
        ...

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


def _on_card(q: Any) -> bool:
    from ..runtime.array_kinds import on_card

    return on_card(q)


def _looked_up(mech: Mechanism, active: Any) -> tuple[Any, ...]:
    """Names of joints, or flags, as something that can be looked up."""
    if isinstance(active, str):
        return (active,)
    try:
        split = tuple(active.tolist() if isinstance(active, np.ndarray) else active)
        hash(split)
    except TypeError:
        split = split_of(mech, active)
    return split


def _rank(inverse: np.ndarray, rounding: float) -> int:
    """Directions of a singular Λ⁻¹ that are more than rounding, each row in a unit of its own."""
    rows = np.diagonal(inverse)
    kinds = rows.reshape(-1, 2, 3)
    moves = (kinds > rounding**2 * kinds.sum(axis=(0, 2), keepdims=True)).ravel()
    scale = np.where(moves, 1 / np.sqrt(np.where(moves, rows, 1.0)), 0.0)
    found = np.linalg.eigvalsh(scale[:, None] * inverse * scale)
    return min(int((found > rounding).sum()), len(inverse) - 1)
