"""Balancing by LQR: an acrobot on its head and an arm in a pose, from many starts at once.

`hinge.control.lqr` takes the linear model about the goal, discrete and exact for held forces, and
solves its Riccati equation.  Then the nonlinear robot runs with the gains, all starts in one
kernel: which of them does linear control catch?
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from drawing import animate, options, save, skeleton

import hinge

DT, SUBSTEPS = 0.01, 5


def closed_loop(robot: hinge.Robot) -> Any:
    """Steps of the robot under τ = τ₀ − K (x − x₀), each force held for a step."""
    nv = robot.nv
    shapes = {"K": (nv, 2 * nv), "goal": (nv,), "hold": (nv,)}

    @robot.rollout(**shapes)
    def run(q: Any, qd: Any, K: Any, goal: Any, hold: Any, dt: Any) -> Any:
        tau = hold - K @ np.concatenate([q - goal, qd])
        for _ in range(SUBSTEPS):
            qd = qd + dt / SUBSTEPS * robot.alg.forward_dynamics(q, qd, tau)
            q = robot.alg.integrate(q, dt / SUBSTEPS * qd)
        return q, qd, tau

    return run


def balance(robot: hinge.Robot, goal: np.ndarray, driven: Sequence[int]) -> np.ndarray:
    """K over all joints; rows of those that are not driven are zero.

    Errors and rates are weighed by the mass matrix and forces by its inverse: by energies.
    """
    M = robot.mass_matrix(goal)
    Q, R = np.kron(np.diag([1e4, 1e2]), M), np.linalg.inv(M[np.ix_(driven, driven)])
    mask = np.isin(np.arange(robot.nv), driven)
    law = hinge.control.lqr(robot, goal, Q, R, dt=DT, active=mask)
    A, B = robot.linearize(goal, np.zeros(robot.nv), law.tau, dt=DT)
    fast = np.abs(np.linalg.eigvals(A - B @ law.gains)).max()
    slow = np.abs(np.linalg.eigvals(A)).max()
    print(f"{robot.name}: largest eigenvalue {slow:.4f} without control, {fast:.4f} with it")
    return law.gains


def main(arguments: Sequence[str] | None = None) -> None:
    """Run, say what came of it, draw."""
    asked = options(__doc__, arguments)
    count, steps = (9, 400) if asked.quick else (41, 1000)
    acrobot, arm = hinge.zoo.acrobot(), hinge.zoo.arm(7)
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")

    # every start of a grid of angles, at rest
    up = np.array([np.pi, 0.0])
    K = balance(acrobot, up, [1])
    tilt = np.linspace(-0.15, 0.15, count)
    starts = up + np.stack(np.meshgrid(tilt, 2 * tilt, indexing="ij"), axis=-1)
    run = closed_loop(acrobot)
    q, qd, _ = run(starts, np.zeros(2), K, up, np.zeros(2), DT, steps=steps)
    caught = np.abs(np.concatenate([q[-1] - up, qd[-1]], axis=-1)).max(axis=-1) < 0.01
    edges = (tilt[0], tilt[-1], 2 * tilt[0], 2 * tilt[-1])
    left.imshow(
        caught.T, cmap="Blues", vmin=0, vmax=1.5, origin="lower", extent=edges, aspect="auto"
    )
    left.set(xlabel="shoulder off upright  [rad]", ylabel="elbow  [rad]")
    left.set_title("acrobot: starts that are caught")
    print(f"acrobot: {caught.sum()} of {caught.size} starts are caught")

    goal = np.array([0.3, 0.7, -0.2, 1.1, 0.4, 0.6, 0.0])
    K = balance(arm, goal, range(7))
    rng = np.random.default_rng(0)
    away = goal + rng.uniform(-0.5, 0.5, size=(8, 7))
    moves, _, tau = closed_loop(arm)(
        away, np.zeros(7), K, goal, arm.gravity_forces(goal), DT, steps=300
    )
    off = np.linalg.norm(moves - goal, axis=-1)
    right.semilogy(DT * np.arange(1, 301), off)
    right.set(xlabel="time  [s]", ylabel="joints off their pose  [rad]", title="arm: eight starts")
    print(f"arm: {off[0].max():.2f} rad off at first, {off[-1].max():.1e} after 3 s,", end=" ")
    print(f"torques {np.abs(tau).max():.0f} Nm at most")
    save(figure, asked.out / "lqr.svg")
    shown = np.linspace(0, min(steps, 300) - 1, 4 if asked.quick else 30).astype(int)
    i, j = max(np.argwhere(caught).tolist(), key=lambda at: abs(tilt[at[0]]))
    chains = {"acrobot": skeleton(acrobot, q[shown][:, i, j], "tip")}
    chains["arm"] = skeleton(arm, moves[shown, 0], "tool")
    animate(asked.out / "lqr.gif", chains)


if __name__ == "__main__":
    main()
