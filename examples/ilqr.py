"""Swinging up an acrobot and moving an arm by iLQR.

`hinge.control.ILQR` takes residuals whose squares are the cost; every iteration is one batch of
slopes along the motion, a sweep of Riccati back through it, and one rollout in which all step
lengths of the line search run side by side.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from drawing import animate, options, save, skeleton

import hinge


def planner(
    robot: hinge.Robot, goal: Any, weights: Any, effort: float, dt: float, **more: Any
) -> Any:
    """Reach the goal at rest: Σ ½ effort |τ|² dt + ½ Σ weights (x − goal)² at the end."""
    return hinge.control.ILQR(
        robot,
        lambda q, qd, tau: np.sqrt(effort) * tau,
        lambda q, qd: np.sqrt(weights) * (np.concatenate([q, qd]) - goal),
        dt,
        **more,
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Run, say what came of it, draw."""
    asked = options(__doc__, arguments)
    acrobot, arm = hinge.zoo.acrobot(), hinge.zoo.arm(7)
    first = np.array([0.0, 0.6, 0.0, 0.9, 0.0, 0.6, 0.0])
    last = np.array([1.0, 0.9, -0.5, 0.8, 0.5, 0.9, 0.3])
    swing = 0.5 * np.sin(2.5 * 0.015 * np.arange(300))
    up, weights = np.array([np.pi, 0.0, 0.0, 0.0]), np.array([100.0, 100.0, 20.0, 20.0])
    tasks = {
        "acrobot": (
            planner(acrobot, up, weights, 0.02, 0.015, active=[False, True]),
            (np.zeros(2), np.zeros(2), np.stack([0 * swing, swing], axis=-1)),
            20 if asked.quick else 200,
        ),
        "arm": (
            planner(arm, np.r_[last, np.zeros(7)], np.full(14, 100.0), 1e-3, 0.01),
            (first, np.zeros(7), np.tile(arm.gravity_forces(first), (150, 1))),
            5 if asked.quick else 40,
        ),
    }
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
    chains = {}
    for name, (plan_for, start, iterations) in tasks.items():
        plan = plan_for(*start, iterations=iterations)
        goal = up[:2] if name == "acrobot" else last
        off = np.abs(plan.q[-1] - goal).max()
        costs = plan.costs
        print(
            f"{name}: cost {costs[0]:.4g} → {costs[-1]:.4g} in {len(costs) - 1} iterations,",
            end=" ",
        )
        print(f"{off:.1e} rad off its goal, forces up to {np.abs(plan.tau).max():.1f} Nm")
        left.semilogy(costs, label=name)
        if name == "acrobot":
            t = plan.dt * np.arange(len(plan.q))
            right.plot(t, plan.q, label=["shoulder  [rad]", "elbow  [rad]"])
            right.plot(t[:-1], plan.tau[:, 1] / 10, lw=1, label="torque  [10 Nm]")
        shown = np.linspace(0, len(plan.q) - 1, 4 if asked.quick else 40).astype(int)
        tip = "tip" if name == "acrobot" else "tool"
        chains[name] = skeleton(plan.robot, plan.q[shown], tip)
    left.set(xlabel="iteration", ylabel="cost")
    right.set(xlabel="time  [s]", title="acrobot")
    left.legend()
    right.legend()
    save(figure, asked.out / "ilqr.svg")
    animate(asked.out / "ilqr.gif", chains)


if __name__ == "__main__":
    main()
