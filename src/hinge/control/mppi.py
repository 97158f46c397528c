"""Model-predictive path integral control: forces from many rollouts, by their costs.

    u(j) = u + ε(j),  ε ~ N(0, σ²), each like the one before it,  cut off at the limits          (1)
    w(j) ∝ exp(−(S(j) − min S)/λ),   u ← Σ w(j) u(j)                                             (2)

S is the cost of `planning.py` (Williams et al., J. Guidance 40, 2017, without their price for
leaving forces of zero: residuals of the forces say what effort costs).  Nothing is differentiated:
the step may have contacts, stops and switches.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ArgumentError, SingularError
from ..robot import Robot, check_robot
from ..runtime.arguments import single
from ..runtime.check import check_number, check_whole
from ..runtime.kernel import Kernel
from ..runtime.rollout import Rollout
from .law import check_gain
from .planning import Problem, Residuals, Step, time_loop

__all__ = ["MPPI", "Sampled"]


class Sampled(NamedTuple):
    """What an update found: costs (samples,) of the rollouts, and how many of them counted."""

    costs: np.ndarray
    effective: float


class MPPI:
    """A controller that looks a while ahead in every step.

    `tau = controller(q, qd)` is the force (nv,) for now; the plan, (steps, nv) in `controller.tau`,
    then moves on by a step.

    running, terminal, active, step: as in `ILQR`, but nothing is differentiated.  steps, dt: how
    far it looks ahead.  samples: how many rollouts.  noise: σ, of the driven forces, one number or
    one for each, 0 for none; correlation: of that of a step with the next one's, from 0 to 1.
    temperature: λ, of the cost: low ones trust the best rollout alone.
    """

    def __init__(
        self,
        robot: Robot,
        running: Residuals,
        terminal: Residuals,
        steps: int,
        dt: float,
        samples: int = 1024,
        noise: ArrayLike = 1.0,
        temperature: float = 1.0,
        correlation: float = 0.8,
        active: Sequence[str] | ArrayLike | None = None,
        step: Step | None = None,
        seed: int = 0,
    ) -> None:
        where = f"MPPI for {check_robot('MPPI', robot).name!r}"
        self.robot, self.dt = robot, check_number(where, "dt", dt, above=0)
        self.steps = check_whole(where, "steps", steps)
        self.samples = check_whole(where, "samples", samples, above=1)
        self.temperature = check_number(where, "temperature", temperature, above=0)
        self.correlation = _correlation(where, correlation)
        self._problem = Problem(where, robot, running, terminal, active, step)
        self.noise = check_gain(where, "noise", noise, len(self._problem.driven))
        self._rng = np.random.default_rng(seed)
        self._u = np.zeros((self.steps, len(self._problem.driven)))

    @property
    def tau(self) -> np.ndarray:
        """The plan: (steps, nv)."""
        return self._problem.forces(self._u)

    def __call__(self, q: ArrayLike, qd: ArrayLike) -> np.ndarray:
        """The force for now, (nv,); the plan moves on, its last row twice."""
        self.update(q, qd)
        now = self._u[0]
        self._u = np.concatenate([self._u[1:], self._u[-1:]])
        return self._problem.forces(now)

    def update(self, q: ArrayLike, qd: ArrayLike) -> Sampled:
        """Make the plan better, seen from (q, qd)."""
        where = self._problem.where
        state = [self.robot._argument("q", q), self.robot._argument("qd", qd)]
        start = single(where, state).values()
        u = self._tried()
        nothing, dt = np.array(0.0), np.array(self.dt)
        *ends, cost = self._rollout(*start, nothing, u, dt, every=self.steps)
        costs = cost[0] + self._end_cost(*(x[0] for x in ends))
        return self._weighed(u, np.where(np.isfinite(costs), costs, np.inf))

    def _tried(self) -> np.ndarray:
        """Forces of all rollouts (1), (steps, samples, nu): pairs on both sides of the mean."""
        half, b = -(-self.samples // 2), self.correlation
        fresh = (half, self._u.shape[1])
        u = np.empty((self.steps, 2 * half, fresh[1]))
        noise = self._rng.standard_normal(fresh, dtype=np.float32) * self.noise
        for now, mean in zip(u, self._u, strict=True):
            np.add(mean, noise, out=now[:half])
            np.subtract(mean, noise, out=now[half:])
            new = self._rng.standard_normal(fresh, dtype=np.float32) * self.noise
            noise = b * noise + np.sqrt(1 - b * b) * new
        most = self._problem.most
        if np.isfinite(most).any():
            np.clip(u, -most, most, out=u)
        return u

    def _weighed(self, u: np.ndarray, costs: np.ndarray) -> Sampled:
        """(2)."""
        if np.isinf(costs).all():
            raise SingularError(
                f"{self._problem.where}: no rollout stays finite; take less noise, a shorter dt, "
                f"or another state"
            )
        w = np.exp(-(costs - costs.min()) / self.temperature)
        w /= w.sum()
        self._u = np.einsum("tsu,s->tu", u, w)
        return Sampled(costs, float(1 / (w @ w)))

    def _move(self, q: Any, qd: Any, cost: Any, u: Any, dt: Any) -> tuple[Any, ...]:
        """One step of a rollout."""
        now = self._problem.stage_cost(q, qd, u, dt)
        return (*self._problem.step(q, qd, u, dt), cost + now)

    @cached_property
    def _rollout(self) -> Rollout:
        nv, nu = (self.robot.nv,), self._u.shape[1:]
        shapes = {"q": (self.robot.nq,), "qd": nv, "cost": (), "u": nu, "dt": ()}
        return time_loop(self.robot, self._problem.where, self._move, shapes, 3, 1, (0, 1, 2))

    @cached_property
    def _end_cost(self) -> Kernel:
        return self.robot.compile(self._problem.end_cost)


def _correlation(where: str, value: Any) -> float:
    if not isinstance(value, (int, float, np.number)) or not 0 <= value < 1:
        raise ArgumentError(
            f"{where}: correlation is {value!r}; expected a number from 0 to below 1"
        )
    return float(value)
