"""Control in total rates: brake, and bring a frame to a pose.  Paper D §8, corrected; math §10.

    rate feedback   ε = −c ν                        W = ½|ν|²               Ẇ = −νᵀ c ν         (1)
    pose feedback   ε = −c ν + ℓ Jᵀ w               W = ½|ν|² + U(q)        Ẇ = −νᵀ c ν         (2)

with gravity compensated in both.  w is the wrench (moment; force) of the potential U on the frame:
k_p (p̂ − p) and a moment towards the target's orientation, either of

    "axes"    U_o = ½ k_o Σ|ŷ − y|² = 2 k_o (1 − cos θ),   moment k_o Σ y × ŷ = 2 k_o sin θ n   (3)
    "angle"   U_o = k_o θ²,                                moment 2 k_o θ n                     (4)

y, ŷ the axes of the frame and of its target, θ and n the angle and axis of the turn between them.
(3) is the paper's; it is weak beyond a quarter turn and vanishes at a half turn, which is an
equilibrium.  (4) is the same for small errors and strongest at a half turn, where it jumps.
Joint forces are τ = m ε; for a gain c that is one number this is τ = −c M q̇ + Jᵀ w + g(q).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from ..algebra.rotation import axial, rotation_log
from ..errors import ArgumentError
from ..robot import Robot, check_robot
from ..runtime.check import check_choice, check_pose
from ..runtime.kernel import Kernel
from .law import numbers

__all__ = ["PoseFeedback", "RateFeedback"]


class _Law(ABC):
    """τ(t, q, q̇) with a function W(q, q̇) that decreases along every motion."""

    robot: Robot
    damping: np.ndarray

    def __call__(self, t: Any, q: Any, qd: Any) -> np.ndarray:
        """The joint forces, (…, nv), gravity compensated; t does not matter."""
        if np.asarray(q).dtype == object:
            return self._force(np.asarray(q), np.asarray(qd))
        return self._kernels["force"](q, qd)

    def lyapunov(self, q: ArrayLike, qd: ArrayLike) -> np.ndarray:
        """W, in J: (…)."""
        return self._kernels["energy"](q, qd)

    def lyapunov_rate(self, q: ArrayLike, qd: ArrayLike) -> np.ndarray:
        """Ẇ = −νᵀ c ν along the motion that the law makes, in W: (…)."""
        nu = self.robot.total_rates(q, qd)
        return -(self.damping * nu * nu).sum(axis=-1)

    def _force(self, q: Any, qd: Any) -> Any:
        """−m c mᵀ q̇ + g + ∂U: of one sample, on traced scalars."""
        alg = self.robot.alg
        brake = alg.joint_forces(q, -self.damping * alg.total_rates(q, qd))
        return brake + alg.gravity_forces(q) + self._pull(q)

    @abstractmethod
    def _pull(self, q: Any) -> Any:
        """−∂U/∂q, (nv,)."""

    @abstractmethod
    def _potential(self, q: Any) -> Any:
        """U."""

    def _energy(self, q: Any, qd: Any) -> Any:
        return self.robot.alg.kinetic_energy(q, qd) + self._potential(q)

    @cached_property
    def _kernels(self) -> dict[str, Kernel]:
        return self._compiled(force=self._force, energy=self._energy)

    def _compiled(self, **functions: Callable[..., Any]) -> dict[str, Kernel]:
        """Functions as kernels, whose messages name the law."""
        kernels = {name: self.robot.compile(fn) for name, fn in functions.items()}
        for name, kernel in kernels.items():
            kernel.name = f"{name} of {type(self).__name__} for {self.robot.name!r}"
        return kernels


class RateFeedback(_Law):
    """Brings the robot to a stop, wherever that is: ε = −c ν, so that energy decays as e^(−2ct).

    damping: c, 1/s, positive; one number, or one for each total rate.
    """

    def __init__(self, robot: Robot, damping: ArrayLike = 1.0) -> None:
        self.robot = check_robot("RateFeedback", robot)
        self.damping = _damping("RateFeedback", robot, damping)

    def _pull(self, q: Any) -> Any:
        return np.zeros(self.robot.nv)

    def _potential(self, q: Any) -> Any:
        return 0.0


class PoseFeedback(_Law):
    """Brings a frame to a pose, without inverse kinematics.

    target: X_WF, (4, 4).  damping: c, 1/s, as in `RateFeedback`.  stiffness: one number, or one for
    the orientation (N m per rad, twice over) and one for the position (N/m).  There is no stiffness
    per joint: W would not decrease any more.  orientation: "angle" or "axes", see the module.

    Motion ends where the error pulls on no joint: at the target, at a half turn with "axes", or in
    a singular pose, where `pull` is zero and `error` is not.  From there a nudge of q helps.
    """

    def __init__(
        self,
        robot: Robot,
        frame: str,
        target: ArrayLike,
        damping: ArrayLike = 3.0,
        stiffness: ArrayLike = 20.0,
        orientation: Literal["angle", "axes"] = "angle",
    ) -> None:
        name = "PoseFeedback"
        self.robot = check_robot(name, robot)
        self.frame = robot.mechanism.frame(frame).name
        self.target = check_pose(name, "target", target)
        self.damping = _damping(name, robot, damping)
        self.stiffness = _stiffness(name, stiffness)
        self.orientation = check_choice(name, "orientation", orientation, ("angle", "axes"))

    def error(self, q: ArrayLike) -> np.ndarray:
        """(rotation vector; displacement) from the frame to its target, world axes: (…, 6)."""
        return self._more["error"](q)

    def pull(self, q: ArrayLike) -> np.ndarray:
        """Jᵀ w, the joint forces that the error makes: (…, nv)."""
        return self._more["pull"](q)

    @cached_property
    def _more(self) -> dict[str, Kernel]:
        return self._compiled(error=self._error, pull=self._pull)

    def _left(self, q: Any) -> tuple[Any, Any]:
        """What is left to turn and to go: R̂ Rᵀ and p̂ − p."""
        X = self.robot.alg.frame_pose(q, self.frame)
        return self.target[:3, :3] @ X[:3, :3].T, self.target[:3, 3] - X[:3, 3]

    def _error(self, q: Any) -> Any:
        R, shift = self._left(q)
        return np.concatenate([rotation_log(R), shift])

    def _pull(self, q: Any) -> Any:
        R, shift = self._left(q)
        k_o, k_p = self.stiffness
        turn = 0.5 * axial(R) if self.orientation == "axes" else rotation_log(R)
        w = np.concatenate([2 * k_o * turn, k_p * shift])  # (3), (4)
        return self.robot.alg.jacobian(q, self.frame).T @ w

    def _potential(self, q: Any) -> Any:
        R, shift = self._left(q)
        k_o, k_p = self.stiffness
        if self.orientation == "axes":
            far = 3 - np.trace(R)  # (3)
        else:
            turn = rotation_log(R)
            far = turn @ turn  # (4)
        return k_o * far + 0.5 * k_p * (shift @ shift)


def _damping(where: str, robot: Robot, value: ArrayLike) -> np.ndarray:
    c = numbers(value)
    if c.shape not in ((), (robot.nv,)) or not (np.isfinite(c) & (c > 0)).all():
        raise ArgumentError(
            f"{where} for {robot.name!r}: damping is {value!r}; expected a positive number, or "
            f"nv = {robot.nv} of them"
        )
    return np.broadcast_to(c, (robot.nv,))


def _stiffness(where: str, value: ArrayLike) -> tuple[float, float]:
    k = numbers(value)
    if k.shape not in ((), (2,)) or not (np.isfinite(k) & (k >= 0)).all():
        raise ArgumentError(
            f"{where}: stiffness is {value!r}; expected a number, or two of them, for orientation "
            f"and position: with one for each joint the error need not decrease"
        )
    k_o, k_p = np.broadcast_to(k, (2,))
    return float(k_o), float(k_p)
