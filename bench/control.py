"""Planning and control: an iteration of iLQR beside Crocoddyl's, an update of MPPI.

`python -m bench.control` prints both; Crocoddyl takes part where it is installed
(`pip install crocoddyl`).  The same Panda, 100 knots of 10 ms, the same residuals and the same
step, without gravity (which Crocoddyl 3.2.1 beside Pinocchio 4.1 leaves out); costs of the first
guess are compared before anything is timed.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import hinge
from hinge import control

from .measure import WrongResultError
from .others import installed
from .robots import make

KNOTS, DT = 100, 0.01
START = np.array([0.0, 0.3, 0.0, -1.5, 0.0, 1.8, 0.0])
GOAL = np.array([1.0, 0.8, -0.5, -2.0, 0.5, 2.3, 0.7])
# weights of places, rates and forces, and of places and rates at the end
PLACES, RATES, FORCES, END, END_RATES = 0.1, 0.05, 0.01, 30.0, 3.0
TURNS = 30


def running(q: Any, qd: Any, tau: Any) -> Any:
    """The residuals of a knot."""
    return np.concatenate([PLACES * (q - GOAL), RATES * qd, FORCES * tau])


def terminal(q: Any, qd: Any) -> Any:
    """The residuals of the end."""
    return np.concatenate([END * (q - GOAL), END_RATES * qd])


def crocoddyl_solver(urdf: str, tau: np.ndarray) -> tuple[Any, float]:
    """Crocoddyl's solver of the same problem, and the cost of the guess."""
    import crocoddyl
    import pinocchio

    model = pinocchio.buildModelFromXML(urdf)
    model.gravity.linear = np.zeros(3)
    state = crocoddyl.StateMultibody(model)
    actuation = crocoddyl.ActuationModelFull(state)
    goal = np.concatenate([GOAL, np.zeros(model.nv)])

    def part(places: float, rates: float) -> Any:
        weights = np.repeat(np.square([places, rates]), model.nv)
        residual = crocoddyl.ResidualModelState(state, goal, model.nv)
        activation = crocoddyl.ActivationModelWeightedQuad(weights)
        return crocoddyl.CostModelResidual(state, activation, residual)

    effort = crocoddyl.CostModelResidual(state, crocoddyl.ResidualModelControl(state, model.nv))
    costs = [crocoddyl.CostModelSum(state, model.nv) for _ in range(2)]
    costs[0].addCost("state", part(PLACES, RATES), 1.0)
    costs[0].addCost("effort", effort, FORCES**2)
    costs[1].addCost("state", part(END, END_RATES), 1.0)
    free = crocoddyl.DifferentialActionModelFreeFwdDynamics
    knot, last = (free(state, actuation, c) for c in costs)
    knot, last = (crocoddyl.IntegratedActionModelEuler(m, h) for m, h in ((knot, DT), (last, 0.0)))
    x = np.concatenate([START, np.zeros(model.nv)])
    problem = crocoddyl.ShootingProblem(x, [knot] * KNOTS, last)
    problem.nthreads = 1
    solver = crocoddyl.SolverDDP(problem)
    return solver, problem.calc(problem.rollout(list(tau)), list(tau))


def _timed(*runs: Callable[[], Any]) -> list[float]:
    """The median seconds of each, taking turns."""
    times: list[list[float]] = [[] for _ in runs]
    for _ in range(TURNS):
        for run, own in zip(runs, times, strict=True):
            start = perf_counter()
            run()
            own.append(perf_counter() - start)
    return [float(np.median(own)) for own in times]


def ilqr_rows() -> list[tuple[str, ...]]:
    """Milliseconds of one iteration, of ours and Crocoddyl's."""
    case = make("panda")
    robot = hinge.Robot(hinge.edit.with_gravity(case.mechanism, (0, 0, 0)), threads=1)
    planner, still = control.ILQR(robot, running, terminal, DT), np.zeros(robot.nv)
    tau = np.random.default_rng(0).normal(size=(KNOTS, robot.nv))
    cost = planner(START, still, tau, 1).costs[0]
    # the guess is rolled out once in each run, which is no part of an iteration
    runs = [lambda n=n: planner(START, still, tau, n, 1e-300) for n in (1, 6)]
    names = ["hinge"]
    if installed("crocoddyl"):
        solver, theirs = crocoddyl_solver(str(case.urdf), tau)
        if abs(theirs - cost) > 1e-9 * cost:
            raise WrongResultError(f"the guess costs {cost}, with Crocoddyl {theirs}")
        states = solver.problem.rollout(list(tau))
        solve = lambda n: solver.solve(list(states), list(tau), n, True, 1e-9)  # noqa: E731
        runs += [lambda n=n: solve(n) for n in (1, 6)]
        names.append("Crocoddyl")
    seconds = np.array(_timed(*runs)).reshape(-1, 2)
    each = (seconds[:, 1] - seconds[:, 0]) / 5
    rows = [(f"iLQR iteration, {n}", f"{1e3 * s:.2f} ms") for n, s in zip(names, each, strict=True)]
    return rows + [("Crocoddyl over hinge", f"{s / each[0]:.1f} ×") for s in each[1:]]


def mppi_rows() -> list[tuple[str, ...]]:
    """Milliseconds of one update of a UR5's plan, 4096 rollouts of 40 steps."""
    robot = hinge.Robot(make("ur5").mechanism, threads=1)
    goal = np.array([0.5, -0.5, 1.5, 0.5, 0.5, 0.0])

    def cost(q: Any, qd: Any, *tau: Any) -> Any:
        return np.concatenate([5 * (q - goal), 0.5 * qd])

    controller = control.MPPI(robot, cost, cost, steps=40, dt=0.02, samples=4096, noise=1.0)
    (seconds,) = _timed(lambda: controller.update(goal - 0.5, np.zeros(6)))
    return [("MPPI update, 4096 × 40 steps of a UR5", f"{1e3 * seconds:.1f} ms")]


def main() -> None:
    """Measure and print."""
    table = Table("one core", "")
    for row in (*ilqr_rows(), *mppi_rows()):
        table.add_row(*row)
    Console().print(table)


if __name__ == "__main__":
    main()
