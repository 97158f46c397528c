"""Closed loops through points where they lose rank."""

from __future__ import annotations

import numpy as np

import hinge
from linkages import PLANE, REDUNDANT, angles, pendulum, row_of_bars

from .lines import Outcome, line

__all__ = ["dead_points"]

# rad, after up to 3 s
_OFF = 1e-6


@line("motions", figure="rad beside the pendulum")
def dead_points(rng: np.random.Generator) -> Outcome:
    """Rows of parallelograms of any masses, from any angle and speed, by steps of any length: on
    their branch through every dead point, as the pendulum that they are equal to."""
    n, axes = int(rng.integers(1, 4)), (PLANE, REDUNDANT)[rng.integers(2)]
    cranks, couplers = (list(10.0 ** rng.uniform(-0.7, 0.7, k)) for k in (n + 1, n))
    robot = row_of_bars(n, axes, cranks, couplers, rng.uniform(-3, 3))
    theta, speed = rng.uniform(-3, 3), rng.uniform(-6, 6)
    method, dt = ("rk4", "joint_midpoint")[rng.integers(2)], 10.0 ** rng.uniform(-4, -2.3)
    way = {"duration": min(3.0, 5000 * dt), "dt": dt, "method": method, "limits": False}
    one = pendulum(cranks, couplers)
    found = hinge.simulate(robot, angles(robot, theta), angles(robot, speed), **way)
    alone = hinge.simulate(one, [theta], [speed], **way)
    off = float(np.abs(found.q - [angles(robot, x) for x in alone.q[:, 0]]).max())
    assert off < _OFF, (n, axes, cranks, couplers, theta, speed, method, dt, off)
    return Outcome(1, off)
