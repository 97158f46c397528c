"""Control of a frame: follow a pose with its own inertia, or yield like springs.

e is what is left to turn and to go, V the frame's velocity, J its Jacobian, in world axes at it.

    operational space   τ = Jᵀ Λ (V̇ − J̇ q̇) + C(q, q̇) + g(q) + Nᵀ τ₀                             (1)
                        V̇ = V̇̂ + k_d (V̂ − V) + k_p e,   Λ⁻¹ = J M⁻¹ Jᵀ,   N = 1 − M⁻¹ Jᵀ Λ J     (2)
    impedance           τ = Jᵀ (K e − D V) + g(q) + Nᵀ τ₀                                       (3)

τ₀ holds a posture by springs and dampers; through Nᵀ it does not accelerate the frame.  Where the
frame cannot move in every direction Λ⁻¹ is singular, and a small part of its size is added.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..algebra.rotation import rotation_log
from ..algebra.small import solve_spd
from ..algebra.spatial import Transform
from ..robot import Robot, check_robot
from ..runtime.arguments import single
from ..runtime.check import check_pose
from .law import BRAKE, PULL, Feedback, check_gain
from .space import Target

__all__ = ["Impedance", "OperationalSpace"]

# of the mean of Λ⁻¹'s diagonal, for turning and for moving: what is added, and in roundings
_DAMPING, _ROUNDINGS = 1e-8, 64
# 1/s² and 1/s, of the pull to a posture by default: slower than that of the frame
_POSTURE = PULL / 4, BRAKE / 2


class _OfFrame(Feedback):
    """A law that brings a frame to a target, and the joints towards a posture beside it."""

    def __init__(
        self,
        robot: Robot,
        frame: str,
        target: Callable[[Any], Target] | Transform | ArrayLike,
        stiffness: ArrayLike | None,
        damping: ArrayLike | None,
        posture: ArrayLike | None,
        posture_gains: tuple[float, float] | None,
    ) -> None:
        name = type(self).__name__
        where = f"{name} for {check_robot(name, robot).name!r}"
        self.robot, self.frame = robot, robot.mechanism.frame(frame).name
        self.target = target if callable(target) else _still(where, target)
        gains = {"stiffness": stiffness, "damping": damping}
        self.stiffness, self.damping = (
            None if x is None else _per_axis(where, n, x) for n, x in gains.items()
        )
        rest = robot.neutral() if posture is None else posture
        self.posture = single(where, [robot._argument("q", rest)])["q"]
        self.posture_gains = (
            None if posture_gains is None else check_gain(where, "posture_gains", posture_gains, 2)
        )

    def error(self, q: Any, pose: Any) -> np.ndarray:
        """What is left to turn and to go, (6,): a rotation vector and a displacement."""
        X = self.robot.alg.frame_pose(q, self.frame)
        turn = rotation_log(pose[:3, :3] @ X[:3, :3].T)
        return np.concatenate([turn, pose[:3, 3] - X[:3, 3]])

    def _beside(self, q: Any, qd: Any, J: Any, mobility: Any) -> np.ndarray:
        """Nᵀ τ₀ of (2)."""
        alg, still = self.robot.alg, np.zeros(self.robot.nv)
        e, weight = alg.difference(q, self.posture), alg.gravity_forces(q)
        if self.posture_gains is None:
            free = _POSTURE[0] * e - _POSTURE[1] * qd
            hold = alg.inverse_dynamics(q, still, free) - weight
        else:
            hold = self.posture_gains[0] * e - self.posture_gains[1] * qd
            free = alg.forward_dynamics(q, still, hold + weight)
        return hold - J.T @ solve_spd(mobility, J @ free)

    def _mobility(self, q: Any) -> np.ndarray:
        """Λ⁻¹, kept off the singular."""
        inverse = self.robot.alg.operational_space_inertia_inverse(q, self.frame)
        sizes = [np.trace(inverse[:3, :3]) / 3] * 3 + [np.trace(inverse[3:, 3:]) / 3] * 3
        most = max(_DAMPING, _ROUNDINGS * float(np.finfo(self.robot.dtype).eps))
        return inverse + most * np.diag(sizes)


class OperationalSpace(_OfFrame):
    """A frame follows a target as if it were a mass of its own (1).

    target: a pose (4, 4), or a function of t that gives a `space.Target`.  stiffness k_p (1/s²),
    damping k_d (1/s): one number, two (turning, moving), or six.  posture: (nq,) that the joints
    are drawn to as far as the frame does not mind, neutral by default, by posture_gains: stiffness
    (N m/rad) and damping (N m s/rad); by default the mass matrix times 25/s² and 10/s.
    """

    def __init__(
        self,
        robot: Robot,
        frame: str,
        target: Callable[[Any], Target] | Transform | ArrayLike,
        stiffness: ArrayLike = PULL,
        damping: ArrayLike = BRAKE,
        posture: ArrayLike | None = None,
        posture_gains: tuple[float, float] | None = None,
    ) -> None:
        super().__init__(robot, frame, target, stiffness, damping, posture, posture_gains)

    def _force(self, t: Any, q: Any, qd: Any) -> np.ndarray:
        alg, (pose, velocity, push) = self.robot.alg, self.target(t)
        V = alg.frame_velocity(q, qd, self.frame)
        wanted = push + self.stiffness * self.error(q, pose) + self.damping * (velocity - V)
        J, mobility = alg.jacobian(q, self.frame), self._mobility(q)
        beyond = wanted - alg.velocity_product_acceleration(q, qd, self.frame)
        task = J.T @ solve_spd(mobility, beyond) + alg.bias_forces(q, qd)  # (1)
        return task + self._beside(q, qd, J, mobility)


class Impedance(_OfFrame):
    """A frame yields as if held by springs and dampers, whatever pushes it (3).

    target, posture, posture_gains: as in `OperationalSpace`.  stiffness K (N m/rad, N/m), damping
    D (N m s/rad, N s/m): one number, two (turning, moving), or six, in world axes; by default the
    frame's own inertia Λ(q) times 100/s² and 20/s, so that it is critically damped on any robot.
    """

    def __init__(
        self,
        robot: Robot,
        frame: str,
        target: Callable[[Any], Target] | Transform | ArrayLike,
        stiffness: ArrayLike | None = None,
        damping: ArrayLike | None = None,
        posture: ArrayLike | None = None,
        posture_gains: tuple[float, float] | None = None,
    ) -> None:
        super().__init__(robot, frame, target, stiffness, damping, posture, posture_gains)

    def _force(self, t: Any, q: Any, qd: Any) -> np.ndarray:
        alg, (pose, velocity, _) = self.robot.alg, self.target(t)
        J, V = alg.jacobian(q, self.frame), alg.frame_velocity(q, qd, self.frame)
        e, left, mobility = self.error(q, pose), velocity - V, self._mobility(q)
        push, rate = np.zeros(6), np.zeros(6)
        if self.stiffness is None:
            rate = rate + PULL * e
        else:
            push = push + self.stiffness * e
        if self.damping is None:
            rate = rate + BRAKE * left
        else:
            push = push + self.damping * left
        if self.stiffness is None or self.damping is None:
            push = push + solve_spd(mobility, rate)
        task = J.T @ push + alg.gravity_forces(q)  # (3)
        return task + self._beside(q, qd, J, mobility)


def _per_axis(where: str, name: str, value: ArrayLike) -> np.ndarray:
    """Six gains from one, two or six."""
    pair = np.shape(value) == (2,)
    return np.repeat(check_gain(where, name, value, 2 if pair else 6), 3 if pair else 1)


def _still(where: str, target: Any) -> Callable[[Any], Target]:
    pose = target.matrix if isinstance(target, Transform) else target
    fixed = Target(check_pose(where, "target", pose))
    return lambda t: fixed
