"""Derivatives of one sample put together from kernels and products of matrices.

The code of three kernels stays in the caches, that of all in one would not: see
`specialize/routing.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..runtime.kernel import Kernel

__all__ = ["Parts", "parts_of"]


class Parts:
    """What computes one sample; first: the kernel that is called first, with the same arrays.

    waits: whether the one kernel for batches is worth waiting for only where there are any.
    """

    waits = False

    def __init__(
        self, robot: Any, arrays: tuple[str, ...], static: Mapping[str, Any], name: str
    ) -> None:
        self.robot, self.static = robot, static
        takes = [a for a in arrays if a != "points"]
        own = {n: x for n, x in static.items() if n == "constraints"}
        self.first: Kernel = robot.kernel(name, *takes, **own)

    def begin(self, x: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        """What the first kernel gives, and the numbers of the mechanism."""
        found = self.first.call(*(value for n, value in x.items() if n != "points"))
        return found, {n: x[n] for n in self.robot.parameters if n in x}


class _Forward(Parts):
    def __call__(self, x: Mapping[str, Any]) -> tuple[np.ndarray, ...]:
        """−M⁻¹ B_D, −M⁻¹ A_D, M⁻¹."""
        qdd, numbers = self.begin(x)
        loads = {n: x[n] for n in ("f_ext", "points") if n in x}
        robot = self.robot
        d = robot.inverse_dynamics_derivatives(
            x["q"], x["qd"], qdd, **loads, **self.static, **numbers
        )
        M_inv = robot.mass_matrix_inverse(x["q"], **numbers)
        return -M_inv @ d.dq, -M_inv @ d.dqd, M_inv


class _Constrained(Parts):
    waits = True

    def __call__(self, x: Mapping[str, Any]) -> tuple[np.ndarray, ...]:
        """∂q̈ = −P ∂ID − R* ∂(K q̈ − k),   ∂λ = R ∂ID − A⁻¹ ∂(K q̈ − k).

        R = A⁻¹ K M⁻¹, P = M⁻¹ − R* K M⁻¹.
        """
        (qdd, loads, K, dq, dqd, turn, push, A_inv), numbers = self.begin(x)
        robot = self.robot
        d = robot.inverse_dynamics_derivatives(x["q"], x["qd"], qdd, loads, **numbers)
        M_inv = robot.mass_matrix_inverse(x["q"], **numbers)
        n, rows = K.shape[-1], K.shape[-2]
        KM = K @ M_inv
        R = A_inv @ KM
        back = R.swapaxes(-1, -2)
        P = M_inv - back @ KM
        lead = K.shape[:-2]
        inverse, changed = np.empty((*lead, n + rows, n + rows)), np.empty((*lead, n + rows, 2 * n))
        inverse[..., :n, :n], inverse[..., :n, n:] = P, back
        np.negative(R, out=inverse[..., n:, :n])
        inverse[..., n:, n:] = A_inv
        np.subtract(push, d.dq, out=changed[..., :n, :n])
        np.negative(d.dqd, out=changed[..., :n, n:])
        np.negative(dq, out=changed[..., n:, :n])
        np.negative(dqd, out=changed[..., n:, n:])
        moved = inverse @ changed
        top, low = moved[..., :n, :], moved[..., n:, :]
        return top[..., :n], top[..., n:], P, low[..., :n] + turn, low[..., n:], -R


# by the name of the algorithm: what is called first, and the rest
_WAYS: dict[str, tuple[type[Any], str]] = {
    "forward_dynamics_derivatives": (_Forward, "forward_dynamics"),
    "constrained_forward_dynamics_derivatives": (_Constrained, "constrained_changes"),
}


def parts_of(robot: Any, name: str, arrays: tuple[str, ...], static: Mapping[str, Any]) -> Any:
    """What computes one sample of the named algorithm."""
    kind, first = _WAYS[name]
    return kind(robot, arrays, static, first)
