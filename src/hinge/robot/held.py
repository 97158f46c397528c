"""Derivatives of long mechanisms that are held, from those of the same motion with nothing held.

With the forces of the constraints among the loads, a held motion is that of a free mechanism, whose
derivatives X, over q, q̇ and τ, are loops over bodies with loops over ancestors inside, or come by
columns.  What holds it adds products with as many columns as there are rows, Y = M⁻¹ K*; of the
changes of K q̈ − k, which are loops too,

    β = ∂(K q̈ − k) + K X,   ∂λ = −A⁻¹ β,   ∂q̈ = X + Y ∂λ                                        (1)

as in `algorithms/constrained/derivatives.py`.  An impact is such a motion: that of a mechanism at
rest and without weight, accelerated by q̇⁺ − q̇ under the impulses, of which (1) holds over q, and

    ∂Λ/∂q̇ = −A⁻¹ (1 + e) K,   ∂q̇⁺/∂q̇ = 1 + Y ∂Λ/∂q̇                                              (2)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, final

import numpy as np

from ..algorithms.declare import ALGORITHMS
from ..errors import SingularError
from ..model.parameters import PARAMETERS
from ..runtime.arguments import Argument, broadcast
from ..runtime.entry import Entry
from .results import as_results

if TYPE_CHECKING:
    from .front import Front

__all__ = ["ByHeld"]


@final
class ByHeld:
    """Derivatives of forward dynamics or of an impact, of a long mechanism under constraints."""

    def __init__(
        self,
        robot: Front,
        name: str,
        arrays: tuple[str, ...],
        static: Mapping[str, Any],
        form: type,
    ) -> None:
        self.robot, self.name = robot, ALGORITHMS[name].name
        self.arrays, self.static, self.form = arrays, static, form

    def __call__(self, where: str, given: Sequence[Argument], out: Any) -> Any:
        values = broadcast(where, given)
        try:
            parts = self._put(values)
        except SingularError:
            # a batch of one raises nothing: what is wrong is said of this call, not of a piece
            parts = [x[0] for x in self._put({n: x[None] for n, x in values.items()})]
        bad = ~np.isfinite(parts[0]).all(axis=(-2, -1))
        for x in parts:
            x[bad] = np.nan
        return self.form(*as_results(self.robot, where, parts, out))

    def _put(self, values: Mapping[str, Any]) -> list[np.ndarray]:
        """The matrices, put together."""
        put = _impact if self.name == "impulse_dynamics_derivatives" else _motion
        return put(self.robot, values, self.static)

    def entry(self, otherwise: Any) -> Entry | None:
        """They are put together in Python."""
        return None


def _motion(robot: Front, x: Mapping[str, Any], static: Mapping[str, Any]) -> list[np.ndarray]:
    """∂q̈ and ∂λ over q, q̇ and τ."""
    numbers = {n: a for n, a in x.items() if n in PARAMETERS}
    held = robot._ask("constrained_changes", static, **x)
    _, loads, K, dq, dqd, turn, pushed, push, A_inv = held
    state = {n: x[n] for n in ("q", "qd", "tau")}
    free = robot._ask("forward_dynamics_derivatives", {}, **state, f_ext=loads, **numbers)
    moved = _with_pushes(free, pushed, push)
    Y = moved[2] @ _turned(K)
    felt = dq + K @ moved[0], dqd + K @ moved[1], _turned(Y)
    forces = [-(A_inv @ beta) for beta in felt]  # (1)
    for X, change in zip(moved, forces, strict=True):
        X += Y @ change
    forces[0] += turn
    return [*moved[:2], 0.5 * (moved[2] + _turned(moved[2])), *forces]


def _impact(robot: Front, x: Mapping[str, Any], static: Mapping[str, Any]) -> list[np.ndarray]:
    """∂q̇⁺ and ∂Λ over q and q̇."""
    numbers = {n: a for n, a in x.items() if n in PARAMETERS and n != "gravity"}
    hit = robot._ask("impulse_changes", static, **x)
    loads, K, felt, before, turn, pushed, push, A_inv = hit
    again = K
    if "restitution" in x:
        rows = [len(c.axes) for c in static["constraints"]]
        back = np.repeat(x["restitution"], rows, axis=-1)[..., None]
        felt, again = felt + back * before, again + back * K
    still = np.zeros_like(x["qd"])
    state = {"q": x["q"], "qd": still, "tau": still, "f_ext": loads}
    weightless = robot._keep("weightless", lambda: _weightless(robot))
    free = weightless._ask("forward_dynamics_derivatives", {}, **state, **numbers)
    X, _, M_inv = _with_pushes(free, pushed, push)
    Y, forces = M_inv @ _turned(K), [-(A_inv @ (felt + K @ X)), -(A_inv @ again)]  # (1), (2)
    moved = [X + Y @ forces[0], np.eye(robot.nv, dtype=robot.dtype) + Y @ forces[1]]
    forces[0] += turn
    return [*moved, *forces]


def _with_pushes(
    free: Sequence[np.ndarray], pushed: np.ndarray, push: np.ndarray
) -> tuple[np.ndarray, ...]:
    """X over q, over q̇, and M⁻¹; to the first what forces add that turn against the bodies."""
    dq, dqd, M_inv = free
    if push.shape[-2]:
        dq = dq + (M_inv @ _turned(pushed)) @ push
    return dq, dqd, M_inv


def _weightless(robot: Front) -> Front:
    """The robot where nothing falls."""
    other = object.__new__(type(robot))
    mech = replace(robot.mechanism, gravity=(0.0, 0.0, 0.0))
    other.__setstate__({**robot.__getstate__(), "_mechanism": mech})
    return other


def _turned(x: np.ndarray) -> np.ndarray:
    return x.swapaxes(-1, -2)
