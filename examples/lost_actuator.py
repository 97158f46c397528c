"""An arm on its way loses an actuator: which one, and does it matter?

A batch of eight: in one sample all motors keep working, in the others one of the seven fails in
mid-motion and its joint swings with a little friction.  Which joints are driven is an input of the
kernel, sample by sample and step by step; the forces of the others allow for the loss at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from drawing import animate, options, save, skeleton

import hinge

ROBOT = hinge.zoo.arm(7)
FIRST = np.array([0.0, 0.6, 0.0, 0.9, 0.0, 0.6, 0.0])
LAST = np.array([1.2, 0.9, -0.6, 0.4, 0.8, 1.1, 0.5])
SECONDS, FAILS, FRICTION = 3.0, 1.2, 0.4


def course(t: Any) -> tuple[Any, Any, Any]:
    """Angles, rates and accelerations from the first pose to the last."""
    x = hinge.minimum(t / SECONDS, 1.0)
    s = x * x * x * (10 - x * (15 - 6 * x))
    speed = 30 * x * x * (1 - x) * (1 - x) / SECONDS
    rise = 60 * x * (1 - x) * (1 - 2 * x) / SECONDS**2
    way = LAST - FIRST
    return FIRST + s * way, speed * way, rise * way


@ROBOT.rollout(state=("q", "qd", "t"), inputs=("active",))
def run(q: Any, qd: Any, t: Any, active: Any, dt: Any) -> Any:
    """One step: driven joints keep to their course, the others swing."""
    angle, rate, push = course(t)
    drive = push + 100.0 * (angle - q) + 20.0 * (rate - qd)
    found = ROBOT.alg.hybrid_dynamics(q, qd, drive, -FRICTION * qd, active)
    qd = qd + dt * found.qdd
    return ROBOT.alg.integrate(q, dt * qd), qd, t + dt, found.tau


def main(arguments: Sequence[str] | None = None) -> None:
    """Run, say what came of it, draw."""
    asked = options(__doc__, arguments)
    dt = 0.01 if asked.quick else 0.002
    steps = round((SECONDS + 1.0) / dt)
    works = np.ones((steps, 8, 7))
    works[round(FAILS / dt) :, np.arange(7), np.arange(7)] = 0.0
    q, _, t, tau = run(np.tile(FIRST, (8, 1)), np.zeros(7), 0.0, works, dt)
    t = t[:, 0]
    goal = ROBOT.frame_pose(LAST, "tool")[:3, 3]
    tool = ROBOT.frame_pose(q, "tool")[..., :3, 3]
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
    for i, name in enumerate((*ROBOT.joint_names, "none")):
        off = np.linalg.norm(tool[:, i] - goal, axis=1)
        kept = np.delete(np.arange(7), i) if i < 7 else np.arange(7)
        worst = np.abs(q[-1, i, kept] - LAST[kept]).max()
        print(f"{name:7s} lost: the tool ends {100 * off[-1]:5.1f} cm off,", end=" ")
        print(f"joints that work {worst:.1e} rad; torques {np.abs(tau[:, i]).max():.0f} Nm at most")
        left.plot(t, off, label=name)
        right.plot(t, np.abs(tau[:, i]).max(axis=1), label=name)
    left.set(xlabel="time  [s]", ylabel="tool from its goal  [m]")
    right.set(xlabel="time  [s]", ylabel="largest torque  [Nm]")
    save(figure, asked.out / "lost_actuator.svg")
    picked = np.linspace(0, steps - 1, 4 if asked.quick else 36).astype(int)
    chains = {"all motors work": q[picked, 7], "joint4 lost at 1.2 s": q[picked, 3]}
    chains = {title: skeleton(ROBOT, x, "tool") for title, x in chains.items()}
    animate(asked.out / "lost_actuator.gif", chains, zoom=1.2)


if __name__ == "__main__":
    main()
