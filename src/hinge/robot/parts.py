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
        (qdd, loads, K, dq, dqd, turn, pushed, push, A_inv), numbers = self.begin(x)
        q, qd, robot, (rows, n) = x["q"], x["qd"], self.robot, K.shape
        dtype = K.dtype
        changed = np.empty((2, n + rows, n), dtype)
        inverse = np.empty((n + rows, n + rows), dtype)
        out = changed[0, :n], changed[1, :n], np.empty((n, n), dtype)
        robot.inverse_dynamics_derivatives(q, qd, qdd, loads, out=out, **numbers)
        if len(push):
            changed[0, :n] -= pushed.T @ push
        changed[0, n:], changed[1, n:] = dq, dqd
        M_inv = robot.mass_matrix_inverse(q, **numbers)
        KM = K @ M_inv
        R = A_inv @ KM
        P = M_inv - R.T @ KM
        np.negative(P, out=inverse[:n, :n])
        np.negative(R.T, out=inverse[:n, n:])
        np.negative(A_inv, out=inverse[n:, n:])
        inverse[n:, :n] = R
        moved = inverse @ changed
        moved[0, n:] += turn
        return moved[0, :n], moved[1, :n], P, moved[0, n:], moved[1, n:], -R


# by the name of the algorithm: what is called first, and the rest
_WAYS: dict[str, tuple[type[Any], str]] = {
    "forward_dynamics_derivatives": (_Forward, "forward_dynamics"),
    "constrained_forward_dynamics_derivatives": (_Constrained, "constrained_changes"),
}


def parts_of(robot: Any, name: str, arrays: tuple[str, ...], static: Mapping[str, Any]) -> Any:
    """What computes one sample of the named algorithm."""
    kind, first = _WAYS[name]
    return kind(robot, arrays, static, first)
