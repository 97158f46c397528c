"""How heavy may the pole be?  A hundred million steps of carts that balance poles, on all cores.

A cart holds its pole up by a law that was made for a light pole, with gains that are all scaled by
one number.  For every mass of the pole and every such number, carts start with their poles leaning
further and further; counted are those that are caught.  Mass, gain and start are arguments of one
rollout, compiled once and sent to the workers (`hinge.cluster`); what comes back is the share of
the starts, not their motions:

    100 663 296 steps = 64 masses × 64 gains × 24 starts × 1024 steps
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from drawing import animate, options, save, skeleton

import hinge
from hinge.model.parameters import parameters, with_parameters

DT, FORCE = 0.01, 20.0
# of x, the angle, and their rates
GAINS = np.array([3.0, 60.0, 6.0, 15.0])


def balanced(robot: hinge.Robot) -> hinge.Rollout:
    """Carts over time, by the mass of the pole and the scale of the gains."""
    nominal = parameters(robot.mechanism)["inertia"]

    @robot.rollout(state=("q", "qd"), mass=(), gain=())
    def run(q: Any, qd: Any, mass: Any, gain: Any) -> tuple[Any, Any]:
        inertia = np.stack([nominal[0] + 0 * mass, nominal[1] / nominal[1, 0] * mass])
        mech = with_parameters(robot.mechanism, inertia=inertia)
        asked = gain * (GAINS[:2] @ q + GAINS[2:] @ qd)
        push = hinge.maximum(hinge.minimum(asked, FORCE), -FORCE)
        qd = qd + DT * hinge.algorithms.forward_dynamics(mech, q, qd, np.array([push, 0.0]))
        return q + DT * qd, qd

    return run


def leaning(count: int) -> np.ndarray:
    """Starts: the cart in the middle, the pole more and more to one side."""
    lean = np.linspace(0.0, 0.8, count + 1)[1:]
    return np.stack([0 * lean, lean], axis=-1)


def study(robot: hinge.Robot, masses: Any, gains: Any, starts: int, steps: int) -> Any:
    """What Dask computes: the share of starts that is caught, for all masses and gains."""
    run, q = balanced(robot), leaning(starts)

    def caught(mass: np.ndarray, gain: np.ndarray) -> np.ndarray:
        lead = len(mass), starts
        given = np.broadcast_to(q, (*lead, 2)), np.zeros((*lead, 2)), mass[:, None], gain[:, None]
        end = run(*given, steps=steps, every=steps)[0][-1]
        return (np.abs(end[..., 1]) < 0.2).mean(axis=-1)

    points = hinge.cluster.grid(mass=masses, gain=gains)
    reduce = {"caught": hinge.cluster.collected(), "mean": hinge.cluster.mean()}
    reduce |= {"best": hinge.cluster.highest()}
    return hinge.cluster.study(caught, points, reduce, size=max(2, len(points) // 64))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run it on local processes, say what was found and how long it took, draw."""
    from distributed import Client, LocalCluster

    asked = options(__doc__, arguments)
    many, starts, steps = (6, 4, 300) if asked.quick else (64, 24, 1024)
    workers = 2 if asked.quick else os.cpu_count() or 1
    robot, masses = hinge.zoo.cartpole(), np.geomspace(0.05, 20.0, many)
    gains = np.linspace(0.1, 3.0, many)
    task = study(robot, masses, gains, starts, steps)
    local = LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0")
    with local, Client(local) as client:
        begin = time.perf_counter()
        found = client.compute(task).result()
        took = time.perf_counter() - begin
    total = many * many * starts * steps
    print(f"{total} steps on {workers} processes: {took:.2f} s, {total / took / 1e6:.1f} M steps/s")
    best = found["best"]
    print(
        f"{found['mean']:.0%} of the starts are caught; most, {best.value:.0%}, with a pole of "
        f"{best.point['mass']:.2f} kg and gains times {best.point['gain']:.2f}"
    )
    draw(robot, masses, gains, found["caught"].reshape(many, many), steps, asked)


def draw(
    robot: hinge.Robot, masses: Any, gains: Any, caught: np.ndarray, steps: int, asked: Any
) -> None:
    """The share of starts over masses and gains; three carts as a film."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
    image = left.pcolormesh(masses, gains, caught.T, shading="nearest", rasterized=True)
    left.set(xscale="log", xlabel="mass of the pole  [kg]", ylabel="gains, times")
    figure.colorbar(image, label="share of starts that are caught")
    for i in np.linspace(len(gains) // 8, len(gains) - 1, 4).astype(int):
        right.plot(masses, caught[:, i], lw=1, label=f"gains times {gains[i]:.1f}")
    right.set(xscale="log", xlabel="mass of the pole  [kg]", ylabel="share", ylim=(-0.02, 1.02))
    save(figure, asked.out / "study.svg")
    shown = np.array([0.1, 2.0, 10.0])
    q, qd = np.broadcast_to([0.0, 0.3], (3, 2)), np.zeros((3, 2))
    motion = balanced(robot)(q, qd, shown, 1.0, steps=min(steps, 120), every=3)[0]
    chains = {f"{m:g} kg": skeleton(robot, motion[:, k], "tip") for k, m in enumerate(shown)}
    animate(asked.out / "study.gif", chains, view=(0.0, -90.0))


if __name__ == "__main__":
    main()
