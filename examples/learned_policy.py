"""A cart learns to swing its pole up: a policy trained by exact gradients through whole motions.

The policy is a small network from the state to the force on the cart.  Network, dynamics and cost
are one step, compiled as a rollout: all motions of a batch are one call, and so is the gradient of
what they cost with respect to every weight, a second time loop that runs backward (`hinge.torch`):

    J = Σ cost(q(k), q̇(k), u(k))        s̄(k) = ∂stepᵀ s̄(k+1),   w̄ = Σ ∂step/∂wᵀ s̄(k+1)

PyTorch sees an operator with a gradient, and does the rest.  A batch gives the gradient itself,
without the noise of methods that try forces out.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import torch
from drawing import animate, options, save, skeleton

import hinge

DT, FORCE, RAIL = 0.02, 15.0, 2.0


def bent(x: Any) -> Any:
    """From −1 to 1, as tanh is, of anything that has a square root."""
    return x / np.sqrt(1 + x * x)


def policy(q: Any, qd: Any, A: Any, a: Any, B: Any, b: Any, c: Any) -> Any:
    """The force on the cart, N: two layers of a network; the pole has no motor."""
    seen = np.array([q[0] / RAIL, np.sin(q[1]), np.cos(q[1]), qd[0] / 5, qd[1] / 5])
    hidden = bent(B @ bent(A @ seen + a) + b)
    return np.array([FORCE * bent(c @ hidden), 0.0])


def cost(q: Any, qd: Any, tau: Any) -> Any:
    """Of a moment: the pole up, the cart on the rail and near its middle, slow, without effort."""
    up = 0.5 * (1 - np.cos(q[1]))
    off = hinge.maximum(abs(q[0]) - RAIL, 0.0)
    return up + 0.05 * q[0] * q[0] + 5 * off * off + 0.005 * (qd @ qd) + 0.0005 * (tau @ tau)


def motions(robot: hinge.Robot, width: int) -> Any:
    """All steps of a motion under the policy with some weights, and what it has cost so far."""
    shapes = {"A": (width, 5), "a": (width,), "B": (width, width), "b": (width,), "c": (width,)}

    @robot.rollout(state=("q", "qd", "spent"), **shapes)
    def run(
        q: Any, qd: Any, spent: Any, A: Any, a: Any, B: Any, b: Any, c: Any
    ) -> tuple[Any, Any, Any]:
        tau = policy(q, qd, A, a, B, b, c)
        qd = qd + DT * robot.alg.forward_dynamics(q, qd, tau)
        q = q + DT * qd
        return q, qd, spent + cost(q, qd, tau)

    return hinge.torch.function(run)


def starts(count: int, rng: np.random.Generator, lean: float = np.pi) -> tuple[Any, Any, Any]:
    """Carts near the middle, poles that lean so far at most, slow: q and qd (count, 2), 0 spent."""
    q = np.stack([rng.uniform(-0.5, 0.5, count), rng.uniform(-lean, lean, count)], axis=-1)
    qd = 0.5 * rng.normal(size=(count, 2))
    return torch.from_numpy(q), torch.from_numpy(qd), torch.zeros(count, dtype=torch.double)


@dataclass
class Training:
    """What motions of each iteration cost (iterations, carts), and the weights at the end."""

    costs: np.ndarray
    weights: list[Any]


def train(
    run: Any, iterations: int, carts: int, steps: int, width: int, lean: float = np.pi
) -> Training:
    """Adam on the mean cost; gradients that are long, of motions about to tip over, are cut."""
    torch.manual_seed(0)
    sizes = ((width, 5), (width,), (width, width), (width,), (width,))
    weights = [torch.randn(s, dtype=torch.double) / s[-1] ** 0.5 for s in sizes]
    # at first it hardly does anything
    weights[-1] *= 0.1
    descent = torch.optim.Adam([w.requires_grad_() for w in weights], lr=0.02)
    slower = torch.optim.lr_scheduler.CosineAnnealingLR(descent, iterations)
    rng, costs = np.random.default_rng(0), []
    for _ in range(iterations):
        *_, spent = run(*starts(carts, rng, lean), *weights, steps=steps)
        each = spent[-1] / steps
        descent.zero_grad()
        each.mean().backward()
        torch.nn.utils.clip_grad_norm_(weights, 0.5)
        descent.step()
        slower.step()
        costs.append(each.detach().numpy())
    return Training(np.array(costs), [w.detach() for w in weights])


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, try it on new starts, say what came of it, draw."""
    asked = options(__doc__, arguments)
    iterations, carts, steps, width = (5, 8, 20, 4) if asked.quick else (400, 64, 150, 16)
    robot = hinge.zoo.cartpole()
    run = motions(robot, width)
    begin = time.perf_counter()
    trained = train(run, iterations, carts, steps, width)
    took = time.perf_counter() - begin
    count, longer = (20, 40) if asked.quick else (200, 300)
    q = run(*starts(count, np.random.default_rng(1)), *trained.weights, steps=longer)[0].numpy()
    up = np.cos(q[-1, :, 1]) > 0.95
    print(f"{up.mean():.0%} of {len(up)} new starts end with the pole up")
    print(
        f"a motion costs {trained.costs[0].mean():.3f} at first, {trained.costs[-1].mean():.3f} "
        f"after {iterations} gradients of {carts} motions of {steps} steps, {took:.1f} s"
    )
    draw(robot, trained, q, asked)


def draw(robot: hinge.Robot, trained: Training, q: np.ndarray, asked: Any) -> None:
    """The learning curve, how poles come up; three carts as a film."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
    low, middle, high = np.quantile(trained.costs, (0.1, 0.5, 0.9), axis=1)
    left.fill_between(np.arange(len(middle)), low, high, alpha=0.3, lw=0)
    left.plot(middle, lw=1, label="median, and where 80 % are")
    left.set(xlabel="iteration", ylabel="cost of a motion", yscale="log")
    times = DT * np.arange(len(q))
    right.plot(times, np.cos(q[:, :60, 1]), color="C0", lw=0.5, alpha=0.5)
    right.set(xlabel="time  [s]", ylabel="cosine of the pole's angle", title="new starts")
    save(figure, asked.out / "learned_policy.svg")
    hanging = np.argsort(np.cos(q[0, :, 1]))[:3]
    shown = {f"cart {k + 1}": skeleton(robot, q[::4, i], "tip") for k, i in enumerate(hanging)}
    animate(asked.out / "learned_policy.gif", shown, view=(0.0, -90.0))


if __name__ == "__main__":
    main()
