"""The law of a robot's actuators: what its motors and servos do with what they are commanded.

With l = Σ gear · q and l̇ what an actuator sees of the motion, u its control within its range

    f = (c₀ + c₁ l + c₂ l̇) u + b₀ + b₁ l + b₂ l̇, within its range,   τ = Σ gear · f            (1)

so a motor has f = c₀ u and a position servo f = k (u − l) − d l̇.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..algebra.small import clip
from ..errors import ArgumentError
from ..model.actuator import Actuator
from ..robot import Robot, check_robot
from .law import Feedback, numbers

__all__ = ["ActuatorForces"]


class ActuatorForces(Feedback):
    """The forces of `robot.actuators` for what they are commanded (1).

    controls: a number for each, in their order (a motor's force before its gear, a servo's goal),
    or a function of (t, q, qd) that gives them.  Forces stay within the joints' effort limits, too.
    """

    def __init__(self, robot: Robot, controls: ArrayLike | Callable[[Any, Any, Any], Any]) -> None:
        where = f"ActuatorForces for {check_robot('ActuatorForces', robot).name!r}"
        if not robot.actuators:
            raise ArgumentError(f"{where}: its file has no actuators; give some to hinge.Robot")
        unclear = [f"{a.name!r} ({_reason(a)})" for a in robot.actuators if _reason(a)]
        if unclear:
            raise ArgumentError(
                f"{where}: no law is known of {', '.join(unclear[:8])}; leave them out: "
                f"hinge.Robot(robot.mechanism, actuators=…)"
            )
        self.robot = robot
        count = len(robot.actuators)
        given = np.zeros(count) if callable(controls) else numbers(controls)
        if given.shape != (count,) or not np.isfinite(given).all():
            names = ", ".join(a.name for a in robot.actuators[:8])
            raise ArgumentError(
                f"{where}: controls is {controls!r}; expected {count} numbers, one for each of "
                f"{names}{', …' if count > 8 else ''}, or a function of (t, q, qd) that gives them"
            )
        self.controls = controls if callable(controls) else lambda t, q, qd: given

    def _force(self, t: Any, q: Any, qd: Any) -> np.ndarray:
        mech, us = self.robot.mechanism, np.asarray(self.controls(t, q, qd))
        if us.shape != (len(self.robot.actuators),):
            raise ArgumentError(
                f"ActuatorForces for {self.robot.name!r}: the function gave controls of shape "
                f"{us.shape}; expected ({len(self.robot.actuators)},)"
            )
        at, rates = mech.coordinates(q), mech.rates(qd)
        tau: list[Any] = [0.0 * x for x in rates]
        for a, u in zip(self.robot.actuators, us, strict=True):
            bodies = [mech.joint_index(name) for name in a.joints]
            moved = list(zip(bodies, a.gears, strict=True))
            length = sum(gear * at[k][0] for k, gear in moved)
            rate = sum(gear * rates[k][0] for k, gear in moved)
            f = _force(a, u, length, rate)
            for k, gear in moved:
                tau[k] = tau[k] + gear * f
        return mech.join(tau)


def _force(a: Actuator, u: Any, length: Any, rate: Any) -> Any:
    (c0, c1, c2), (b0, b1, b2) = a.gain, a.bias
    gain = c0 + c1 * length + c2 * rate
    return _within(gain * _within(u, a.control_range) + b0 + b1 * length + b2 * rate, a.force_range)


def _within(x: Any, ends: tuple[float, float]) -> Any:
    return clip(x, *ends) if np.isfinite(ends).any() else x


def _reason(a: Actuator) -> str:
    """Why an actuator has no law of this form; empty if it has."""
    if a.dynamics:
        return f"{a.type} with {a.dynamics}"
    if len(a.gears) == len(a.joints) > 0:
        return ""
    return f"on {a.target or ', '.join(a.joints)}, no joint of one DoF"
