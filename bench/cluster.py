"""What a study on local processes takes, against one process: `python -m bench.cluster`.

An arm of seven joints is held by springs of many stiffnesses, with tools of many masses.  The same
study runs in one process and on worker processes, in turns, each several times; printed are steps a
second, and how efficient the workers are:

    by the clock     t₁ / (workers · tₙ)
    by their cores   CPU time of one process / CPU time of all workers, tasks and messages together

The second is what is left where other programs keep the cores busy.  Needs the extra `cluster`.
"""

from __future__ import annotations

import argparse
import os
import time
from typing import Any

import numpy as np

import hinge
from hinge.model.parameters import parameters, with_parameters

__all__ = ["main"]

DT = 1e-3


def held(robot: hinge.Robot) -> hinge.Rollout:
    """The arm over time, by the mass at its end and the stiffness of its springs."""
    nominal = parameters(robot.mechanism)["inertia"]

    @robot.rollout(state=("q", "qd"), mass=(), gain=())
    def run(q: Any, qd: Any, mass: Any, gain: Any) -> tuple[Any, Any]:
        last = nominal[-1] / nominal[-1, 0] * mass
        mech = with_parameters(robot.mechanism, inertia=np.stack([*nominal[:-1], last]))
        tau = -gain * q - 0.1 * gain * qd
        qd = qd + DT * hinge.algorithms.forward_dynamics(mech, q, qd, tau)
        return q + DT * qd, qd

    return run


def study(many: int, steps: int) -> Any:
    """How far the arm sags, for all masses and stiffnesses."""
    robot = hinge.zoo.arm(7)
    axes = np.linspace(0.5, 3.0, many), np.linspace(50.0, 200.0, many)
    points = hinge.cluster.grid(mass=axes[0], gain=axes[1])
    sag = lambda q, qd: np.abs(q[-1]).max(axis=-1)  # noqa: E731
    reduce = {"mean": hinge.cluster.mean(sag), "worst": hinge.cluster.most(sag)}
    start = {"q": np.zeros(7), "qd": np.zeros(7), "steps": steps, "every": steps}
    return hinge.cluster.study(held(robot), points, reduce, size=len(points) // 16, **start)


def main() -> None:
    """Measure and print."""
    from distributed import Client, LocalCluster

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--many", type=int, default=316, help="masses, and stiffnesses")
    parser.add_argument("--steps", type=int, default=1000)
    asked = parser.parse_args()
    here, there = [], []
    with (
        LocalCluster(asked.workers, threads_per_worker=1, dashboard_address=":0") as local,
        Client(local) as client,
    ):
        for _ in range(asked.rounds):
            task = study(asked.many, asked.steps)
            before = time.perf_counter(), time.process_time()
            one = task.compute(scheduler="synchronous")
            here.append((time.perf_counter() - before[0], time.process_time() - before[1]))
            spent, begin = sum(client.run(time.process_time).values()), time.perf_counter()
            found = client.compute(task).result()
            took = time.perf_counter() - begin
            there.append((took, sum(client.run(time.process_time).values()) - spent))
            if dict(found) != dict(one):
                print("the results differ")
    report(asked.many**2 * asked.steps, asked.workers, np.min(here, axis=0), np.min(there, axis=0))


def report(total: int, workers: int, here: np.ndarray, there: np.ndarray) -> None:
    """What was measured, and what more would take at that rate."""
    rate = total / here[1]
    print(f"{total} steps of an arm of seven joints, the best of the rounds")
    print(f"    one process          {here[0]:8.2f} s, {here[1]:.2f} s of its core")
    print(f"    {workers:3} workers          {there[0]:8.2f} s, {there[1]:.2f} s of their cores")
    print(f"    efficiency           {here[0] / workers / there[0]:8.2f} by the clock")
    print(f"                         {here[1] / there[1]:8.2f} by their cores")
    print(f"    a core                 {rate / 1e6:6.2f} M steps a second")
    print(f"    10¹² steps             {1e12 / rate / 3600:6.0f} hours of a core")


if __name__ == "__main__":
    main()
