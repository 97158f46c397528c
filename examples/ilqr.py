"""Swinging up an acrobot and moving an arm by iLQR.

Every iteration takes one batch of linear models along the motion (`robot.linearize`, all times at
once), a backward sweep of Riccati, and one rollout in which all step lengths of the line search run
side by side.  The gradient that it descends is checked at the start against the adjoint of the
motion, `hinge.trajectory_sensitivity`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from drawing import animate, options, save, skeleton

import hinge

LENGTHS = 0.6 ** np.arange(12)


@dataclass
class Task:
    """Reach the goal at rest: Σ ½ effort |u|² dt + ½ (x − goal)ᵀ Q (x − goal) at the end."""

    robot: hinge.Robot
    start: np.ndarray
    goal: np.ndarray
    driven: Sequence[int]
    steps: int
    dt: float
    effort: float
    Q: np.ndarray

    def cost(self, x: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Of motions x (steps + 1, …, 2 nv) under forces u (steps, …, driven)."""
        e = x[-1] - self.goal
        running = 0.5 * self.effort * self.dt * np.sum(u * u, axis=(0, -1))
        return running + 0.5 * np.einsum("...i,ij,...j->...", e, self.Q, e)

    def forces(self, u: np.ndarray) -> np.ndarray:
        """Joint forces with u in the driven joints."""
        tau = np.zeros((*u.shape[:-1], self.robot.nv))
        tau[..., self.driven] = u
        return tau


def stepper(robot: hinge.Robot) -> Any:
    """Steps under τ + length · push + K (x − x₀), for every length of a line search."""
    nv = robot.nv
    names = ("tau", "push", "K", "x0")
    shapes = {"tau": (nv,), "push": (nv,), "K": (nv, 2 * nv), "x0": (2 * nv,)}

    @robot.rollout(inputs=names, **shapes)
    def run(q: Any, qd: Any, tau: Any, push: Any, K: Any, x0: Any, length: Any, dt: Any) -> Any:
        u = tau + length * push + K @ (np.concatenate([q, qd]) - x0)
        qd = qd + dt * robot.alg.forward_dynamics(q, qd, u)
        return robot.alg.integrate(q, dt * qd), qd, u

    return run


def slopes(task: Task, x: np.ndarray, tau: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """∂x(i+1)/∂x(i) and ∂x(i+1)/∂u(i) of every step of semi-implicit Euler, from one batch."""
    nv, h = task.robot.nv, task.dt
    A, B = task.robot.linearize(x[:-1, :nv], x[:-1, nv:], tau)
    one = np.eye(nv)
    rate = np.concatenate([h * A[:, nv:, :nv], one + h * A[:, nv:, nv:]], axis=-1)
    place = np.concatenate(
        [np.broadcast_to(one, rate.shape[:-1] + (nv,)), 0 * rate[..., nv:]], axis=-1
    )
    push = h * B[:, nv:, task.driven]
    return np.concatenate([place + h * rate, rate], axis=1), np.concatenate(
        [h * push, push], axis=1
    )


def backward(
    task: Task, x: np.ndarray, u: np.ndarray, damping: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """How to change the forces: push (steps, driven), K (steps, driven, 2 nv), and the gradient."""
    A, B = slopes(task, x, task.forces(u))
    weight = task.effort * task.dt * np.eye(len(task.driven))
    v, V = task.Q @ (x[-1] - task.goal), task.Q
    g = v
    push, K, gradient = [], [], []
    for a, b, now in zip(A[::-1], B[::-1], u[::-1], strict=True):
        gradient.append(task.effort * task.dt * now + b.T @ g)
        g = a.T @ g
        slope = task.effort * task.dt * now + b.T @ v
        cross = b.T @ V @ a
        curve = weight + b.T @ V @ b + damping * np.eye(len(weight))
        k, gain = -np.linalg.solve(curve, slope), -np.linalg.solve(curve, cross)
        v = a.T @ v + cross.T @ k + gain.T @ (slope + (curve - damping * np.eye(len(weight))) @ k)
        V = a.T @ V @ a + cross.T @ gain + gain.T @ cross
        V = V + gain.T @ (curve - damping * np.eye(len(weight))) @ gain
        push.append(k)
        K.append(gain)
    return tuple(np.array(part[::-1]) for part in (push, K, gradient))  # type: ignore[return-value]


def rolled(
    task: Task,
    run: Any,
    u: np.ndarray,
    push: np.ndarray,
    K: np.ndarray,
    x: np.ndarray,
    lengths: Any,
) -> tuple[np.ndarray, np.ndarray]:
    """Motions (steps + 1, lengths, 2 nv) and forces near the motion x under u."""
    nv = task.robot.nv
    wide = np.zeros((task.steps, nv, 2 * nv))
    wide[:, task.driven] = K
    series = (task.forces(u), task.forces(push), wide, x[:-1])
    q, qd, tau = run(
        task.start[:nv], task.start[nv:], *(y[:, None] for y in series), lengths, task.dt
    )
    new = np.concatenate([q, qd], axis=-1)
    first = np.broadcast_to(task.start, new[:1].shape)
    return np.concatenate([first, new]), tau[..., task.driven]


def solve(task: Task, u: np.ndarray, iterations: int) -> tuple[np.ndarray, np.ndarray, list[float]]:
    """The motion, its forces, and the cost after every iteration."""
    run, size = stepper(task.robot), 2 * task.robot.nv
    flat, still = np.zeros((task.steps, len(task.driven), size)), np.zeros((task.steps + 1, size))
    x = rolled(task, run, u, 0 * u, flat, still, np.zeros(1))[0][:, 0]
    costs, damping = [float(task.cost(x, u))], 1e-3
    for _ in range(iterations):
        push, K, _ = backward(task, x, u, damping)
        motions, forces = rolled(task, run, u, push, K, x, LENGTHS)
        sound = np.isfinite(motions).all(axis=(0, 2)) & (np.abs(motions) < 1e6).all(axis=(0, 2))
        found = np.full(len(LENGTHS), np.inf)
        found[sound] = task.cost(motions[:, sound], forces[:, sound])
        best = int(np.argmin(found))
        if found[best] < costs[-1]:
            x, u, damping = motions[:, best], forces[:, best], damping / 3
        else:
            damping = 10 * damping + 1e-6
        costs.append(min(costs[-1], float(found[best])))
    return x, u, costs


def check(task: Task, u: np.ndarray) -> float:
    """The gradient of the sweep against the adjoint of the motion: the largest difference."""
    robot, nv = task.robot, task.robot.nv
    s = hinge.trajectory_sensitivity(
        robot, task.start[:nv], task.start[nv:], task.forces(u), task.dt, "semi_implicit_euler"
    )
    x = np.concatenate([s.q, s.qd], axis=-1)
    ends = np.zeros_like(x)
    ends[-1] = task.Q @ (x[-1] - task.goal)
    adjoint = s.adjoint(ends[:, :nv], ends[:, nv:]).taus[:, task.driven] + task.effort * task.dt * u
    gradient = backward(task, x, u, 0.0)[2]
    return float(np.abs(adjoint - gradient).max() / np.abs(adjoint).max())


def main(arguments: Sequence[str] | None = None) -> None:
    """Run, say what came of it, draw."""
    asked = options(__doc__, arguments)
    acrobot, arm = hinge.zoo.acrobot(), hinge.zoo.arm(7)
    first = np.array([0.0, 0.6, 0.0, 0.9, 0.0, 0.6, 0.0])
    last = np.array([1.0, 0.9, -0.5, 0.8, 0.5, 0.9, 0.3])
    up, rest, still = np.array([np.pi, 0.0]), np.zeros(2), np.zeros(7)
    swing, reach = np.diag([100.0, 100.0, 20.0, 20.0]), 100 * np.eye(14)
    tasks = {
        "acrobot": Task(acrobot, np.r_[rest, rest], np.r_[up, rest], [1], 300, 0.015, 0.02, swing),
        "arm": Task(arm, np.r_[first, still], np.r_[last, still], range(7), 150, 0.01, 1e-3, reach),
    }
    guesses = {
        "acrobot": 0.5 * np.sin(2.5 * 0.015 * np.arange(300))[:, None],
        "arm": np.tile(arm.gravity_forces(first), (150, 1)),
    }
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
    chains = {}
    for name, task in tasks.items():
        t = task.dt * np.arange(task.steps + 1)
        u = guesses[name]
        print(f"{name}: gradient and adjoint differ by {check(task, u):.0e}")
        iterations = (
            (10 if asked.quick else 200) if name == "acrobot" else (5 if asked.quick else 40)
        )
        x, u, costs = solve(task, u, iterations)
        nv = task.robot.nv
        off = np.abs(x[-1] - task.goal).max()
        print(f"{name}: cost {costs[0]:.4g} → {costs[-1]:.4g}, {off:.1e} off its goal, ", end="")
        print(f"forces up to {np.abs(u).max():.1f} Nm")
        left.semilogy(costs, label=name)
        if name == "acrobot":
            right.plot(t, x[:, :nv], label=["shoulder  [rad]", "elbow  [rad]"])
            right.plot(t[:-1], u / 10, lw=1, label="torque  [10 Nm]")
        shown = np.linspace(0, task.steps, 4 if asked.quick else 40).astype(int)
        chains[name] = skeleton(task.robot, x[shown, :nv], "tip" if name == "acrobot" else "tool")
    left.set(xlabel="iteration", ylabel="cost")
    right.set(xlabel="time  [s]", title="acrobot")
    left.legend()
    right.legend()
    save(figure, asked.out / "ilqr.svg")
    animate(asked.out / "ilqr.gif", chains)


if __name__ == "__main__":
    main()
