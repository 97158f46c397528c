"""Control of joints: hold a configuration, follow a motion.

e = q̂ ⊟ q is what is left to go along the joints' tangents, q̂ and its rates the reference.

    gravity compensation    τ = g(q) + K_p e − K_d q̇                                            (1)
    computed torque         τ = M q̈ + C(q, q̇) + g(q) with q̈ = q̈̂ + k_d (q̇̂ − q̇) + k_p e         (2)

(1) pulls as springs do; gains in N m/rad that suit one arm shake another to pieces, whose wrist has
a thousandth of the inertia.  So by default they are the mass matrix times those of a unit mass,
K_p = ω² M(q), K_d = 2ω M(q) with ω = 10/s: critically damped, whatever the robot.  In (2) k_p and
k_d are those of a unit mass, too, and all joints have the same error dynamics.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ArgumentError
from ..robot import Robot, check_robot
from ..runtime.arguments import single
from .law import BRAKE, PULL, Feedback, check_gain

__all__ = ["ComputedTorque", "GravityCompensation", "JointMotion"]


class JointMotion(NamedTuple):
    """Where the joints are to be: q (…, nq), qd and qdd (…, nv)."""

    q: Any
    qd: Any
    qdd: Any


class GravityCompensation(Feedback):
    """Carries the robot's weight, and pulls it to a configuration if there is one (1).

    goal: (nq,), None to float.  stiffness K_p (N m/rad or N/m) and damping K_d (N m s/rad or
    N s/m): one number, or one for each DoF.  By default 100/s² and 20/s times the mass matrix, of
    which the robot has its goal in half a second; without a goal nothing is damped unless asked.
    """

    def __init__(
        self,
        robot: Robot,
        goal: ArrayLike | None = None,
        stiffness: ArrayLike | None = None,
        damping: ArrayLike | None = None,
    ) -> None:
        where = f"GravityCompensation for {check_robot('GravityCompensation', robot).name!r}"
        self.robot = robot
        self.goal = None if goal is None else single(where, [robot._argument("q", goal)])["q"]
        gains = {"stiffness": stiffness, "damping": damping}
        self.stiffness, self.damping = (
            None if x is None else check_gain(where, n, x, robot.nv) for n, x in gains.items()
        )

    def _force(self, t: Any, q: Any, qd: Any) -> np.ndarray:
        alg, still = self.robot.alg, np.zeros(self.robot.nv)
        # (1): joint forces, and accelerations that M turns into some
        force, rate = still, still
        if self.goal is not None:
            e = alg.difference(q, self.goal)
            force = still if self.stiffness is None else self.stiffness * e
            rate = PULL * e if self.stiffness is None else still
            rate = rate - BRAKE * qd if self.damping is None else rate
        if self.damping is not None:
            force = force - self.damping * qd
        return alg.inverse_dynamics(q, still, rate) + force


class ComputedTorque(Feedback):
    """Follows a motion of the joints, every error dying out as e^(−ωt) for k_p = ω², k_d = 2ω (2).

    reference: a function of t that gives (q, qd, qdd), such as those of `hinge.control.quintic`, or
    a configuration (nq,).  stiffness k_p (1/s²), damping k_d (1/s): one number, or one per DoF.
    """

    def __init__(
        self,
        robot: Robot,
        reference: Callable[[Any], Any] | ArrayLike,
        stiffness: ArrayLike = PULL,
        damping: ArrayLike = BRAKE,
    ) -> None:
        where = f"ComputedTorque for {check_robot('ComputedTorque', robot).name!r}"
        self.robot = robot
        self.reference = reference if callable(reference) else _still(where, robot, reference)
        self.stiffness = check_gain(where, "stiffness", stiffness, robot.nv)
        self.damping = check_gain(where, "damping", damping, robot.nv)

    def _force(self, t: Any, q: Any, qd: Any) -> np.ndarray:
        alg, goal = self.robot.alg, self.wanted(t)
        pull = self.stiffness * alg.difference(q, goal.q) + self.damping * (goal.qd - qd)
        return alg.inverse_dynamics(q, qd, goal.qdd + pull)  # (2)

    def wanted(self, t: Any) -> JointMotion:
        """The reference at a time."""
        robot, motion = self.robot, tuple(map(np.asarray, self.reference(t)))
        sizes = (robot.nq,), (robot.nv,), (robot.nv,)
        if tuple(x.shape for x in motion) != sizes:
            raise ArgumentError(
                f"ComputedTorque for {robot.name!r}: the reference gave arrays of shape "
                f"{', '.join(str(x.shape) for x in motion)}; expected q, qd, qdd of shape "
                f"{', '.join(map(str, sizes))}"
            )
        return JointMotion(*motion)


def _still(where: str, robot: Robot, goal: Any) -> Callable[[Any], JointMotion]:
    q = single(where, [robot._argument("q", goal)])["q"]
    return lambda t: JointMotion(q, np.zeros(robot.nv), np.zeros(robot.nv))
