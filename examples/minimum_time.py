"""The quickest motion of an arm from rest to rest, within its limits: an NLP for IPOPT.

An acceleration holds for a step h, so that velocities and positions follow exactly,

    q̇(k+1) = q̇(k) + h q̈(k)        q(k+1) = q(k) + h q̇(k) + ½ h² q̈(k)

and in the middle of each step the torque of the inverse dynamics keeps its limits, at the ends of
it the speed and the position.  What is asked for is the shortest T = Σ h.  Joints that have time to
spare are told what to do with it by a small cost on how torques change, as parts of their limits.
The inverse dynamics comes in two ways: compiled, all steps in one call, with the derivatives of
`hinge.casadi`; or as an expression of `casadi.SX`, which the plain algorithm gives.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import casadi
import matplotlib.pyplot as plt
import numpy as np
from drawing import animate, options, save, skeleton

import hinge

# N m, of the joints of a common arm
STRENGTH = np.array([87.0, 87.0, 87.0, 87.0, 12.0, 12.0, 12.0])
# what a step of all of a torque costs, in seconds
CALM = 1e-3
IPOPT = {"ipopt.print_level": 0, "print_time": False, "ipopt.sb": "yes", "ipopt.tol": 1e-6}


@dataclass
class Motion:
    """What the solver found: states (n + 1, nv) at times t, torques (n, nv); what that took."""

    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    tau: np.ndarray
    iterations: int
    seconds: float
    compiling: float


def compiled_torques(robot: hinge.Robot, steps: int) -> Any:
    """The inverse dynamics of all steps, as columns: one call of the kernel."""
    kernel = robot.kernel("inverse_dynamics", "q", "qd", "qdd")
    return hinge.casadi.function(kernel, samples=steps)


def symbolic_torques(robot: hinge.Robot, steps: int) -> Any:
    """The same by the plain algorithm on symbols of CasADi."""
    x = [casadi.SX.sym(name, robot.nv) for name in ("q", "qd", "qdd")]
    tau = robot.alg.inverse_dynamics(*(np.array(casadi.vertsplit(a)) for a in x))
    return casadi.Function("inverse_dynamics", x, [casadi.vertcat(*tau)]).map(steps)


def quickest(
    robot: hinge.Robot,
    start: np.ndarray,
    goal: np.ndarray,
    strength: np.ndarray,
    steps: int,
    torques: Callable[[hinge.Robot, int], Any] = compiled_torques,
) -> Motion:
    """The motion from rest at the start to rest at the goal that takes the least time.

    strength: how large torques may be, (nv,).
    """
    began = time.perf_counter()
    nv = robot.nv
    q, qd, qdd = (
        casadi.MX.sym(name, nv, n)
        for name, n in (("q", steps + 1), ("qd", steps + 1), ("qdd", steps))
    )
    T = casadi.MX.sym("T")
    h, now, then = T / steps, slice(0, -1), slice(1, None)
    gaps = (
        qd[:, then] - qd[:, now] - h * qdd,
        q[:, then] - q[:, now] - h / 2 * (qd[:, now] + qd[:, then]),
    )
    middle = q[:, now] + h / 2 * qd[:, now] + h * h / 8 * qdd, qd[:, now] + h / 2 * qdd
    tau = torques(robot, steps)(*middle, qdd)
    changes = casadi.diff(tau, 1, 1) / casadi.DM(strength)
    nlp = {
        "x": casadi.veccat(q, qd, qdd, T),
        "f": T + CALM * casadi.sumsqr(changes),
        "g": casadi.veccat(*gaps, tau),
    }
    solver = casadi.nlpsol("quickest", "ipopt", nlp, IPOPT)
    ready = time.perf_counter()
    found = solver(**bounds(robot, start, goal, strength, steps))
    took, done = time.perf_counter() - ready, solver.stats()
    if not done["success"]:
        raise RuntimeError(f"IPOPT stopped: {done['return_status']}")
    x, g = found["x"].full().ravel(), found["g"].full().ravel()
    t, ends = np.linspace(0, x[-1], steps + 1), nv * (steps + 1)
    states = x[: 2 * ends].reshape(2, steps + 1, nv)
    forces = g[2 * nv * steps :].reshape(steps, nv)
    return Motion(t, *states, forces, done["iter_count"], took, ready - began)


def bounds(
    robot: hinge.Robot, start: np.ndarray, goal: np.ndarray, strength: np.ndarray, steps: int
) -> dict[str, Any]:
    """Where the solver starts, and between what it stays."""
    s = np.linspace(0, 1, steps + 1)
    path = start[:, None] + (goal - start)[:, None] * s * s * (3 - 2 * s)
    low, high, fast = (
        np.tile(x[:, None], steps + 1) for x in (robot.lower, robot.upper, robot.velocity_limit)
    )
    for limit in (low, high):
        limit[:, 0], limit[:, -1] = start, goal
    fast[:, [0, -1]] = 0
    still, free = np.zeros((robot.nv, steps)), np.full((robot.nv, steps), np.inf)
    none, strong = np.zeros(2 * robot.nv * steps), np.tile(strength[:, None], steps)
    return {
        "x0": casadi.veccat(path, 0 * path, still, 2.0),
        "lbx": casadi.veccat(low, -fast, -free, 0.05),
        "ubx": casadi.veccat(high, fast, free, 20.0),
        "lbg": casadi.veccat(none, -strong),
        "ubg": casadi.veccat(none, strong),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Solve it in both ways, say what came of it, draw."""
    asked = options(__doc__, arguments)
    robot, steps = (hinge.zoo.arm(3), 12) if asked.quick else (hinge.zoo.arm(7), 60)
    start, goal = np.full(robot.nv, -0.8), np.full(robot.nv, 0.9)
    strength = STRENGTH[: robot.nv]
    motions = {}
    for words, torques in (("compiled", compiled_torques), ("as SX", symbolic_torques)):
        motion = motions[words] = quickest(robot, start, goal, strength, steps, torques)
        print(
            f"{words}: T = {motion.t[-1]:.6f} s, {motion.iterations} iterations in "
            f"{motion.seconds:.2f} s, after {motion.compiling:.2f} s of preparation"
        )
    motion = motions["compiled"]
    draw(robot, motion, strength, asked.out)


def draw(robot: hinge.Robot, motion: Motion, strength: np.ndarray, out: Any) -> None:
    """Torques and speeds beside their limits; the motion as a film."""
    figure, axes = plt.subplots(1, 2, figsize=(8, 3), layout="constrained", sharex=True)
    # a torque holds for a step
    shares = np.repeat(motion.tau / strength, 2, axis=0), motion.qd / robot.velocity_limit
    times = np.repeat(motion.t, 2)[1:-1], motion.t
    for plot, t, share, what in zip(axes, times, shares, ("torque", "speed"), strict=True):
        for i, name in enumerate(robot.joint_names):
            plot.plot(t, share[:, i], lw=1, label=name)
        plot.axhspan(-1, 1, color="0.93", zorder=0)
        plot.set(xlabel="time  [s]", ylabel=f"{what}, as a part of its limit")
    save(figure, out / "minimum_time.svg")
    chain = skeleton(robot, motion.q, "tool")
    animate(out / "minimum_time.gif", {f"{motion.t[-1]:.2f} s, slowed down": chain})


if __name__ == "__main__":
    main()
