"""Masses of an arm, learnt from how it moves: gradient descent through simulated motions.

The arm that moves has other masses than its model.  Its motors do something known for half a
second, from many starts, and where the joints are is seen through noise.  The model makes the same
motions, step by step, as tensors; how far it ends up from what was seen is differentiated by
PyTorch through all steps, with the derivatives of `hinge.torch`, down to the masses:

    loss = Σ |q(k) − seen(k)|²        m = m₀ exp(θ)        θ ← L-BFGS

No accelerations and no torques are measured, and nothing is linear in what is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import torch
from drawing import animate, options, save, skeleton

import hinge

DT, STEPS, NOISE = 0.01, 50, 1e-3


@dataclass
class Motions:
    """Starts (n, nv), torques (steps, n, nv), and what was seen of the joints (steps, n, nv)."""

    q: np.ndarray
    qd: np.ndarray
    tau: np.ndarray
    seen: np.ndarray


def other_masses(robot: hinge.Robot, seed: int = 1) -> hinge.Robot:
    """The robot that moves: each body heavier or lighter, by up to a half."""
    mechanism, rng = robot.mechanism, np.random.default_rng(seed)
    for body in mechanism.bodies[1:]:
        own: Any = body.inertia
        by = np.exp(rng.uniform(-0.5, 0.5))
        heavier = hinge.Inertia(by * own.mass, own.com, by * own.about_com)
        mechanism = hinge.edit.with_inertia(mechanism, body.name, heavier)
    return hinge.Robot(mechanism)


def measured(truth: hinge.Robot, model: hinge.Robot, count: int, seed: int = 0) -> Motions:
    """Motions of the true arm; its motors hold the model up, and do something random besides."""
    rng = np.random.default_rng(seed)
    q, qd = rng.uniform(-1, 1, (count, truth.nv)), rng.normal(size=(count, truth.nv))
    weight = np.sqrt(np.diagonal(model.mass_matrix(q), axis1=-2, axis2=-1))
    push = 5 * weight * rng.normal(size=(1, count, truth.nv))
    tau = model.gravity_forces(q) + push * np.ones((STEPS, 1, 1))
    seen = np.stack(_rolled(truth.forward_dynamics, q, qd, tau))
    return Motions(q, qd, tau, seen + NOISE * rng.normal(size=seen.shape))


def _rolled(forward_dynamics: Any, q: Any, qd: Any, tau: Any) -> list[Any]:
    """Where the joints are after each step, of arrays or tensors."""
    path = []
    for now in tau:
        qd = qd + DT * forward_dynamics(q, qd, now)
        q = q + DT * qd
        path.append(q)
    return path


@dataclass
class Learnt:
    """Masses (evaluations, bodies), mean squares of errors, and the robot at the end."""

    masses: np.ndarray
    losses: np.ndarray
    robot: hinge.Robot


def learn(model: hinge.Robot, motions: Motions, evaluations: int) -> Learnt:
    """Descend from the masses of the model."""
    dyn = hinge.torch.robot(model, learn="mass")
    start = [torch.from_numpy(x) for x in (motions.q, motions.qd, motions.tau)]
    seen = torch.from_numpy(motions.seen)
    descent = torch.optim.LBFGS(
        dyn.parameters(),
        max_iter=evaluations,
        max_eval=evaluations,
        tolerance_change=1e-14,
        line_search_fn="strong_wolfe",
    )
    masses, losses = [], []

    def loss() -> Any:
        descent.zero_grad()
        path = torch.stack(_rolled(dyn.forward_dynamics, *start))
        off = ((path - seen) ** 2).mean()
        off.backward()
        masses.append(dyn.numbers()["inertia"][:, 0].detach().numpy().copy())
        losses.append(off.item())
        return off

    descent.step(loss)
    return Learnt(np.array(masses), np.array(losses), dyn.learnt_robot())


def masses_of(robot: hinge.Robot) -> np.ndarray:
    """kg, of each body."""
    bodies: Any = robot.mechanism.bodies[1:]
    return np.array([body.inertia.mass for body in bodies])


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, learn, say what came of it, draw."""
    asked = options(__doc__, arguments)
    joints, count, evaluations = (2, 8, 15) if asked.quick else (5, 32, 60)
    model = hinge.zoo.arm(joints)
    truth = other_masses(model)
    found = learn(model, measured(truth, model, count), evaluations)
    true, last = masses_of(truth), masses_of(found.robot)
    off = [np.abs(m / true - 1).max() for m in (masses_of(model), last)]
    print(
        f"masses are off by {100 * off[0]:.0f} % at first, by {100 * off[1]:.2f} % after "
        f"{len(found.losses)} simulations of {count} motions and their gradients"
    )
    print(f"joints by {np.sqrt(found.losses[0]):.4f} rad, then {np.sqrt(found.losses[-1]):.4f}")
    draw(model, truth, found, asked)


def draw(model: hinge.Robot, truth: hinge.Robot, found: Learnt, asked: Any) -> None:
    """How masses and errors go down; a motion that was not learnt from, of all three."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
    for i, name in enumerate(model.body_names):
        (line,) = left.plot(found.masses[:, i], lw=1, label=name)
        left.axhline(masses_of(truth)[i], color=line.get_color(), ls=":", lw=1)
    left.set(xlabel="evaluation", ylabel="mass  [kg], dotted: the truth")
    right.semilogy(np.sqrt(found.losses), lw=1, label="error of q  [rad]")
    right.axhline(NOISE, color="0.5", ls=":", lw=1, label="noise")
    right.set(xlabel="evaluation")
    save(figure, asked.out / "learned_masses.svg")
    other = measured(truth, model, 1, seed=7)
    shown = {}
    for title, robot in (("model", model), ("learnt", found.robot), ("truth", truth)):
        path = np.stack(_rolled(robot.forward_dynamics, other.q, other.qd, other.tau))
        shown[title] = skeleton(robot, path[:: 5 if asked.quick else 2, 0], "tool")
    animate(asked.out / "learned_masses.gif", shown)


if __name__ == "__main__":
    main()
