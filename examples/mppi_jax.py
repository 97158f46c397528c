"""MPPI of an arm in JAX: the whole run, plans and robot, is one jitted `lax.scan`.

At each moment many plans are tried: accelerations of the plan so far with noise, by torques of the
inverse dynamics as far as motors can, rolled out by an inner `lax.scan` whose steps are batches of
kernels of `hinge.jax`.  The new plan is their mean, weighted by exp(−cost/temperature); its first
moment is what the arm does (Williams et al. 2017, information-theoretic MPC).
The tool is to follow a figure of eight.  Nothing leaves the device, CPU or GPU, before the end.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from drawing import animate, options, save, skeleton

import hinge

DT, PERIOD, DAMPING = 0.02, 4.0, 3.0
SLOW, HOME = 2e-3, 1e-2
REST = np.array([0.0, 0.5, 0.0, 1.0, 0.0, 0.5, 0.0])


class Plan(NamedTuple):
    """How far to look ahead, for how long noise is held, how many plans to try, how different."""

    steps: int = 12
    held: int = 4
    samples: int = 512
    noise: float = 4.0
    temperature: float = 0.01


def figure_of_eight(t: Any) -> Any:
    """Where the tool should be, (…, 3)."""
    phase = 2 * jnp.pi * t / PERIOD
    across, up = 0.35 * jnp.sin(phase), 0.2 * jnp.sin(2 * phase)
    return jnp.stack([0.55 + 0 * across, across, 0.75 + up], axis=-1)


def step(dyn: Any, q: Any, qd: Any, wanted: Any) -> tuple[Any, Any]:
    """The arm after DT; wanted: accelerations, as far as its motors can."""
    strength = jnp.asarray(dyn.robot.effort_limit, q.dtype)
    tau = jnp.clip(dyn.inverse_dynamics(q, qd, wanted - DAMPING * qd), -strength, strength)
    qd = qd + DT * dyn.forward_dynamics(q, qd, tau)
    return q + DT * qd, qd


def cost(dyn: Any, q: Any, qd: Any, goal: Any) -> Any:
    """Of a moment, (…,): the tool where it should be, joints slow and near where they began."""
    tool = dyn.frame_pose(q, "tool")[..., :3, 3]
    near = ((tool - goal) ** 2).sum(-1)
    return 10 * near + SLOW * (qd**2).sum(-1) + HOME * ((q - REST[: q.shape[-1]]) ** 2).sum(-1)


@partial(jax.jit, static_argnames=("dyn", "plan", "moments"))
def controlled(dyn: Any, plan: Plan, q: Any, key: Any, moments: int) -> Any:
    """So many moments of the arm under control: q (moments, nv), and how far off the tool was."""

    def tried(q: Any, qd: Any, tries: Any, t: Any) -> Any:
        """What plans (steps, samples, nv) cost from a state at time t."""
        goals = figure_of_eight(t + DT * jnp.arange(1, plan.steps + 1))

        def one(state: Any, now: Any) -> Any:
            wanted, goal = now
            state = step(dyn, *state, wanted)
            return state, cost(dyn, *state, goal)

        many = jnp.broadcast_to(q, tries.shape[1:]), jnp.broadcast_to(qd, tries.shape[1:])
        return jax.lax.scan(one, many, (tries, goals))[1].sum(0)

    def moment(carried: Any, i: Any) -> Any:
        q, qd, plan_now, key = carried
        key, fresh = jax.random.split(key)
        shape = (plan.steps // plan.held, plan.samples, q.shape[-1])
        noise = plan.noise * jax.random.normal(fresh, shape, q.dtype)
        noise = jnp.repeat(noise, plan.held, axis=0)
        tries = plan_now[:, None] + noise.at[:, 0].set(0.0)
        spent = tried(q, qd, tries, i * DT)
        # plans that get out of hand have no weight
        weights = jax.nn.softmax(-jnp.where(jnp.isfinite(spent), spent, jnp.inf) / plan.temperature)
        best = jnp.einsum("s,ksn->kn", weights, tries)
        q, qd = step(dyn, q, qd, best[0])
        off = dyn.frame_pose(q, "tool")[:3, 3] - figure_of_eight((i + 1) * DT)
        later = jnp.concatenate([best[1:], best[-1:]])
        return (q, qd, later, key), (q, jnp.linalg.norm(off))

    begin = q, jnp.zeros_like(q), jnp.zeros((plan.steps, q.shape[-1]), q.dtype), key
    return jax.lax.scan(moment, begin, jnp.arange(moments))[1]


def follow(robot: hinge.Robot, plan: Plan, moments: int) -> tuple[np.ndarray, np.ndarray, float]:
    """The motion q (moments, nv), how far off the tool was (moments,), and seconds it took."""
    dyn = hinge.jax.robot(robot)
    start = REST[: robot.nv]
    given = jnp.asarray(start, robot.dtype), jax.random.key(0)
    run = controlled.lower(dyn, plan, *given, moments).compile()
    begin = time.perf_counter()
    q, off = jax.block_until_ready(run(*given))
    return np.asarray(q, float), np.asarray(off, float), time.perf_counter() - begin


def main(arguments: Sequence[str] | None = None) -> None:
    """Run, say what came of it, draw."""
    asked = options(__doc__, arguments)
    plan, moments = (Plan(4, 2, 16), 10) if asked.quick else (Plan(), 400)
    robot = hinge.Robot(hinge.zoo.arm(7).mechanism, dtype=np.float32)
    q, off, seconds = follow(robot, plan, moments)
    simulated = moments * plan.steps * plan.samples
    print(
        f"{moments * DT:.1f} s of control in {seconds:.2f} s on {jax.devices()[0].device_kind}: "
        f"{simulated / seconds / 1e6:.2f} million steps of the arm a second"
    )
    settled = off[len(off) // 4 :]
    print(
        f"the tool is off by {100 * np.median(settled):.1f} cm, {100 * settled.max():.1f} at most"
    )
    draw(hinge.zoo.arm(7), q, off, asked)


def draw(robot: hinge.Robot, q: np.ndarray, off: np.ndarray, asked: Any) -> None:
    """Where the tool went and how far off it was; the motion as a film."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
    times = DT * np.arange(1, len(q) + 1)
    goal, tool = np.asarray(figure_of_eight(times)), robot.frame_pose(q, "tool")[:, :3, 3]
    left.plot(goal[:, 1], goal[:, 2], color="0.6", lw=3, label="where it should be")
    left.plot(tool[:, 1], tool[:, 2], lw=1, label="tool")
    left.set(xlabel="y  [m]", ylabel="z  [m]", aspect="equal")
    right.semilogy(times, 100 * off, lw=1)
    right.set(xlabel="time  [s]", ylabel="tool off by  [cm]")
    save(figure, asked.out / "mppi_jax.svg")
    chain = skeleton(robot, q[:: 1 if asked.quick else 5], "tool")
    animate(asked.out / "mppi_jax.gif", {"figure of eight": chain}, view=(15.0, -20.0))


if __name__ == "__main__":
    main()
