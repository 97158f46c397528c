"""An arm of seven joints on a satellite reaches for a node of a truss.

Three times the same path of the tool: with the base free, with the base free and the arm sparing it
(reaction mode), and with thrusters holding the base.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from drawing import animate, options, save, skeleton

import hinge
from hinge.control import space

ROBOT = hinge.zoo.space_arm(7)
ARM = ROBOT.joint_names[1:]
START = ROBOT.integrate(ROBOT.neutral(), np.r_[np.zeros(6), 0.3, 1.0, -0.1, 1.2, 0.0, 0.6, 0.3])
HOME = ROBOT.frame_pose(START, "tool")
WAY = np.array([-0.23, -0.11, 0.16])
SECONDS, STIFFNESS, DAMPING = 6.0, 16.0, 8.0


def target(t: Any) -> space.Target:
    """Straight to the node, at rest at both ends: s = 10 x³ − 15 x⁴ + 6 x⁵."""
    x = hinge.minimum(t / SECONDS, 1.0)
    s = x * x * x * (10 - x * (15 - 6 * x))
    speed = 30 * x * x * (1 - x) * (1 - x) / SECONDS
    rise = 60 * x * (1 - x) * (1 - 2 * x) / SECONDS**2
    pose = np.vstack([np.column_stack([HOME[:3, :3], HOME[:3, 3] + s * WAY]), [0, 0, 0, 1]])
    still = np.zeros(3)
    return space.Target(
        pose, np.concatenate([still, speed * WAY]), np.concatenate([still, rise * WAY])
    )


def wanted(t: Any, q: Any, qd: Any) -> Any:
    """The acceleration that brings the tool to its path and along it."""
    goal = target(t)
    error = space.pose_error(ROBOT.alg.frame_pose(q, "tool"), goal.pose)
    slow = goal.velocity - ROBOT.alg.frame_velocity(q, qd, "tool")
    return goal.acceleration + STIFFNESS * error + DAMPING * slow


def base_free(t: Any, q: Any, qd: Any) -> Any:
    """The shortest joint accelerations that move the tool, whatever the base does."""
    calm = -qd[6:]
    return space.follow(ROBOT, q, qd, "tool", target(t), ARM, STIFFNESS, DAMPING, wish=calm).tau


def base_spared(t: Any, q: Any, qd: Any) -> Any:
    """Of all that move the tool, those that turn and move the base the least."""
    calm, back = -qd[6:], -qd[:6]
    return space.reaction_control(ROBOT, q, qd, "tool", wanted(t, q, qd), ARM, back, calm).tau


def base_held(t: Any, q: Any, qd: Any) -> Any:
    """Thrusters keep the base where it is: all joints driven."""
    J = ROBOT.alg.jacobian(q, "tool")
    bias = ROBOT.alg.velocity_product_acceleration(q, qd, "tool")
    tasks = [(np.eye(13)[:6], -4.0 * qd[:6]), (J, wanted(t, q, qd) - bias)]
    qdd = space.prioritized(tasks, -qd)
    return ROBOT.alg.inverse_dynamics(q, qd, qdd)


def truss(axes: Any) -> None:
    """A bay of a truss around the node that is reached for."""
    node = HOME[:3, 3] + WAY
    corners = node + 0.25 * np.array([[0, 0, 0], [1, 0, 1], [1, 1, 0], [0, 1, 1]])
    for i in range(4):
        for j in range(i):
            axes.plot(*corners[[i, j]].T, color="0.6", lw=1)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run, say what came of it, draw."""
    asked = options(__doc__, arguments)
    laws = {"base free": base_free, "base spared": base_spared, "base held": base_held}
    laws = {"base free": base_free} if asked.quick else laws
    dt, span = (0.1, SECONDS) if asked.quick else (0.01, SECONDS + 1.0)
    runs = {n: hinge.simulate(ROBOT, START, None, law, span, dt) for n, law in laws.items()}
    figure, axes = plt.subplots(1, 3, figsize=(9, 2.8), layout="constrained")
    for name, run in runs.items():
        t, q, qd, tau = run.t, run.q, run.qd, run.tau
        tool = ROBOT.frame_pose(q, "tool")[:, :3, 3]
        miss = np.linalg.norm(tool[-1] - HOME[:3, 3] - WAY)
        turn = np.degrees(2 * np.arccos(np.clip(np.abs(q[:, 3]), 0, 1)))
        thrust = np.abs(tau[:, 3:6]).max()
        drift = np.abs(ROBOT.momentum(q, qd)).max()
        moved = 1e3 * np.linalg.norm(q[-1, :3])
        print(f"{name}: misses the node by {1e3 * miss:.2f} mm, the base turns {turn.max():.2f}°")
        print(f"  and moves {moved:.1f} mm; thrust {thrust:.2f} N, momentum {drift:.1e} at most")
        axes[0].plot(t, turn, label=name)
        axes[1].plot(t, 1e3 * np.linalg.norm(q[:, :3], axis=1), label=name)
        axes[2].plot(t, np.linalg.norm(tau[:, 3:6], axis=1), label=name)
    labels = ("base turned  [°]", "base moved  [mm]", "thrust  [N]")
    for ax, label in zip(axes, labels, strict=True):
        ax.set(xlabel="time  [s]", ylabel=label)
    save(figure, asked.out / "free_flying_reach.svg")
    picked = np.linspace(0, len(t) - 1, 4 if asked.quick else 24).astype(int)
    chains = {n: skeleton(ROBOT, run.q[picked], "tool") for n, run in runs.items()}
    animate(asked.out / "free_flying_reach.gif", chains, truss)


if __name__ == "__main__":
    main()
