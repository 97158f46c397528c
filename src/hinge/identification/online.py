"""Identification as data come: every update costs the same, however many there were."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from ..algorithms.regressors import LinearParameters
from ..errors import ArgumentError
from ..robot import Robot
from ..runtime.arguments import broadcast
from ..runtime.check import check_number
from .fit import Task
from .information import Information

__all__ = ["RecursiveIdentification"]


class RecursiveIdentification:
    """Recursive least squares: what was seen so far is kept as a triangle of constant size.

    Bodies that can exist are found from it whenever they are asked for.

    joint_terms, known, spread: as in `identify`.
    noise: σ of the torques, a number or one per DoF; None: the same for all, found from residuals.
    forgetting: what a sample counts for after one more, 1 for ever; 0.999 forgets in 1000 samples.
    """

    def __init__(
        self,
        robot: Robot,
        joint_terms: str | Sequence[str] = (),
        known: str | Sequence[str] = (),
        noise: ArrayLike | None = None,
        forgetting: float = 1.0,
        spread: float = 1.0,
    ) -> None:
        self._task = Task(robot, joint_terms, known, spread)
        self._forgetting = check_number(self._task.where, "forgetting", forgetting, 0.0)
        if forgetting > 1:
            raise ArgumentError(
                f"{self._task.where}: forgetting is {forgetting}; expected at most 1"
            )
        self._known_noise = noise is not None
        self._noise = np.asarray(1.0 if noise is None else noise, dtype=float)
        if self._noise.shape not in ((), (robot.nv,)) or not (self._noise > 0).all():
            raise ArgumentError(
                f"{self._task.where}: noise is {noise!r}; give a number above 0, or one for each "
                f"of the nv = {robot.nv} DoF"
            )
        self._information = Information(len(self._task.names))
        self._found: LinearParameters | None = None
        self._theta: np.ndarray | None = None
        self.samples = 0

    def update(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, tau: ArrayLike) -> None:
        """One sample, or several of any leading shape, oldest first: q (…, nq), others (…, nv)."""
        task, given = self._task, {"q": q, "qd": qd, "qdd": qdd, "tau": tau}
        where = f"update of {task.robot.name!r}"
        x = broadcast(where, [task.robot._argument(n, value) for n, value in given.items()])
        bad = [n for n in x if not np.isfinite(np.asarray(x[n], float)).all()]
        if bad:
            raise ArgumentError(
                f"{where}: {' and '.join(bad)} has numbers that are not finite; leave such samples "
                f"out"
            )
        torque = task.unexplained(x["q"], x["qd"], x["qdd"], x["tau"]).reshape(-1, task.robot.nv)
        Y = task.robot.torque_regressor(x["q"], x["qd"], x["qdd"], task.terms)
        n = len(torque)
        ages = np.sqrt(self._forgetting ** np.arange(n - 1, -1, -1))
        scale = ages[:, None] / self._noise
        rows = np.asarray(Y, float).reshape(n, task.robot.nv, -1) * scale[..., None]
        self._information.add(rows, torque * scale, self._forgetting**n)
        self.samples, self._found = self.samples + n, None

    @property
    def parameters(self) -> LinearParameters:
        """π of bodies that can exist, from all samples so far."""
        if self._found is None:
            values, self._theta = self._task.solution(self._scaled, self._theta)
            self._found = LinearParameters(self._task.names, values)
        return self._found

    @property
    def robot(self) -> Robot:
        """The robot with these numbers."""
        return self._task.robot_of(self.parameters.values)

    @property
    def base_values(self) -> np.ndarray:
        """The base parameters."""
        return self._task.base.matrix @ self.parameters.values

    @property
    def base_std(self) -> np.ndarray:
        """Their standard deviations; infinite where no sample shows them."""
        return np.sqrt(np.diag(self._task.covariance(self._scaled)))

    @property
    def remarks(self) -> tuple[str, ...]:
        """What could not be seen so far, in words."""
        return self._task.remarks(self.parameters.values, self.base_std)

    @property
    def _scaled(self) -> Information:
        """What data say, in units of noise."""
        known = self._information
        if self._known_noise or known.rows <= self._task.base.rank:
            return known
        A, b = known.A, known.b
        left = b - A @ np.linalg.lstsq(A, b, rcond=1e-10)[0]
        most = known.rows - self._task.base.rank
        if self._forgetting < 1:
            most = min(most, self._task.robot.nv / (1 - self._forgetting))
        sigma = max(float(np.linalg.norm(left)) / np.sqrt(most), 1e-9 * float(np.linalg.norm(b)))
        out = Information(len(self._task.names))
        out.triangle, out.rows = known.triangle / max(sigma, 1e-300), known.rows
        return out
