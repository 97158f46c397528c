"""Actuators: what a robot's file says of its motors and servos."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..errors import ArgumentError
from .mechanism import Mechanism

__all__ = ["Actuator", "acting_on", "check_actuators", "effort_limits"]

_INF = float("inf")
_FOLLOWING = ("", "filter")  # dynamics that never leave the range of the control


@dataclass(frozen=True)
class Actuator:
    """A motor or servo of a file: u, what it is commanded, becomes forces on its joints.

        f = (c₀ + c₁ l + c₂ l̇) u + b₀ + b₁ l + b₂ l̇,   l = Σ gear · q,   τ = gear · f

    with u and f cut off at their ranges, c the gain and b the bias.

    type: "motor", "position", "velocity", "damper", "intvelocity", "muscle", "adhesion", "general",
    and of a URDF the interface by which it is commanded, such as "effort".
    joints, gears: the joints that it drives and the gear of each; a ball or free joint has no gear,
    and an actuator of sites, bodies or spatial tendons, named by `target`, has neither.
    dynamics: what lies between its control and u, such as "filter" or "integrator"; "" for nothing.
    """

    name: str
    type: str
    joints: tuple[str, ...] = ()
    gears: tuple[float, ...] = ()
    control_range: tuple[float, float] = (-_INF, _INF)
    force_range: tuple[float, float] = (-_INF, _INF)
    gain: tuple[float, float, float] = (1.0, 0.0, 0.0)
    bias: tuple[float, float, float] = (0.0, 0.0, 0.0)
    target: str = ""
    dynamics: str = ""

    @property
    def strength(self) -> float:
        """The largest |f|; ∞ if nothing bounds it."""
        strength = max(map(abs, self.force_range))
        if any((*self.gain[1:], *self.bias)) or self.dynamics not in _FOLLOWING:
            return strength
        most = max(map(abs, self.control_range))
        return min(strength, abs(self.gain[0]) * most if self.gain[0] else 0.0)


def effort_limits(actuators: Iterable[Actuator]) -> dict[str, float]:
    """The largest force on each joint of one DoF that actuators drive, by its name."""
    limits: dict[str, float] = {}
    for a in actuators:
        for joint, gear in zip(a.joints, a.gears, strict=False):
            share = abs(gear) * a.strength if gear else 0.0
            limits[joint] = limits.get(joint, 0.0) + share
    return limits


def acting_on(mech: Mechanism, actuators: Iterable[Actuator]) -> tuple[Actuator, ...]:
    """Those whose joints a mechanism has."""
    there = set(mech.joint_names)
    return tuple(a for a in actuators if there.issuperset(a.joints))


def check_actuators(where: str, mech: Mechanism, actuators: Any) -> tuple[Actuator, ...]:
    """The actuators, if they are some, of joints that are there."""
    try:
        found = tuple(actuators)
    except TypeError:
        found = (actuators,)
    for a in found:
        if not isinstance(a, Actuator):
            raise ArgumentError(f"{where}: actuators has {a!r}; give objects of hinge.Actuator")
        for joint in a.joints:
            mech.joint_index(joint)
    return found
