"""hinge.torch on one core: calls, batches with their gradients, rollouts.

python -m bench.torch            (needs torch; OMP_NUM_THREADS=1 taskset -c 0 for one core)
"""

from __future__ import annotations

import timeit
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

import hinge

from .robots import make

__all__ = ["main"]

BATCH, STEPS, ROLLOUTS = 4096, 1000, 256


def best(calls: dict[str, Callable[[], Any]], rounds: int = 30) -> dict[str, float]:
    """The least microseconds of each, in turns."""
    timers = {n: timeit.Timer(call) for n, call in calls.items()}
    number = {n: max(1, int(0.004 / max(t.timeit(3) / 3, 1e-9))) for n, t in timers.items()}
    found = dict.fromkeys(calls, float("inf"))
    for _ in range(rounds):
        for n, timer in timers.items():
            found[n] = min(found[n], timer.timeit(number[n]) / number[n])
    return {n: 1e6 * t for n, t in found.items()}


def one_call(torch: Any, robot: hinge.Robot) -> None:
    """One sample: without and with a gradient to come, beside the robot's own method."""
    dyn, q = hinge.torch.robot(robot), torch.tensor(robot.random_configuration(0))
    qd, tau = torch.ones((2, robot.nv), dtype=q.dtype)
    moving, arrays = q.clone().requires_grad_(), [x.numpy() for x in (q, qd, tau)]
    dyn.forward_dynamics(moving, qd, tau).sum().backward()
    times = best(
        {
            "robot": lambda: robot.forward_dynamics(*arrays),
            "torch": lambda: dyn.forward_dynamics(q, qd, tau),
            "torch, tracked": lambda: dyn.forward_dynamics(moving, qd, tau),
        }
    )
    print(f"one call of forward dynamics of {robot.name}, µs")
    print("".join(f"    {n:<20}{t:8.1f}\n" for n, t in times.items()))


def batches(torch: Any, robot: hinge.Robot) -> None:
    """A batch forward, and forward and backward, beside the kernel and a copy of its arrays."""
    dyn, rng = hinge.torch.robot(robot), np.random.default_rng(0)
    q = torch.tensor(robot.random_configuration(rng, BATCH))
    qd, tau = torch.tensor(rng.normal(size=(2, BATCH, robot.nv)))
    moving = [x.clone().requires_grad_() for x in (q, qd, tau)]
    arrays = [x.numpy() for x in (q, qd, tau)]
    out = np.empty((BATCH, robot.nv))

    def both() -> Any:
        return torch.autograd.grad(dyn.forward_dynamics(*moving).sum(), moving)

    both()
    times = best(
        {
            "kernel": lambda: robot.forward_dynamics(*arrays, out=out),
            "copies": lambda: [x.clone() for x in (q, qd, tau)],
            "torch": lambda: dyn.forward_dynamics(q, qd, tau),
            "torch and gradient": both,
        }
    )
    print(f"{BATCH} states of {robot.name}, forward dynamics, µs")
    for n, t in times.items():
        print(f"    {n:<20}{t:8.1f}{t / times['kernel']:8.2f} × the kernel")
    print()


def rollouts(torch: Any, robot: hinge.Robot) -> None:
    """The gradient of a whole rollout with respect to all forces, beside the rollout."""

    def step(q: Any, qd: Any, tau: Any, h: Any) -> Any:
        qd = qd + h * robot.alg.forward_dynamics(q, qd, tau)
        return robot.alg.integrate(q, h * qd), qd

    roll = hinge.torch.function(robot.rollout(step, inputs=("tau",)))
    q = torch.tensor(robot.random_configuration(0, ROLLOUTS))
    qd, h = torch.zeros((ROLLOUTS, robot.nv), dtype=q.dtype), torch.tensor(1e-3, dtype=q.dtype)
    taus = torch.zeros((STEPS, ROLLOUTS, robot.nv), dtype=q.dtype, requires_grad=True)

    def gradient() -> Any:
        return torch.autograd.grad(roll(q, qd, taus, h)[0][-1].sum(), taus)

    still = taus.detach()
    times = best({"rollout": lambda: roll(q, qd, still, h), "and gradient": gradient}, rounds=5)
    print(f"{ROLLOUTS} rollouts of {robot.name}, {STEPS} steps, million steps a second")
    print("".join(f"    {n:<20}{ROLLOUTS * STEPS / t:8.1f}\n" for n, t in times.items()))


def main() -> None:
    """Everything, printed."""
    torch = import_module("torch")
    torch.set_num_threads(1)
    panda = hinge.Robot(make("panda").mechanism, threads=1)
    one_call(torch, panda)
    batches(torch, panda)
    rollouts(torch, panda)


if __name__ == "__main__":
    main()
