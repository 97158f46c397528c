"""Inverse kinematics: a configuration that brings a frame to a pose.  Paper F fig. 6; math §3.

The error of frame F against its target, in F's own axes, is

    e = (log(R_tᵀ R_F);  R_Fᵀ (p_F − p_t)),   so that ∇ ½|e|² = Jᵀ e with J the body Jacobian   (1)

(the logarithm, not the sine of the angle: a half turn is the largest error, not none).  A step is

    Δq = −Jᵀ(J Jᵀ + μ² 1)⁻¹ e                                                                   (2)

over the joints that no limit blocks, with μ raised until the error falls and lowered when it does.
Lengths count relative to those on the way to the frame, so that units do not matter.  Where the
steps end, the status says why.  This iterates on floats: it is not for traced scalars.
"""

from __future__ import annotations

from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from ..algebra.rotation import quaternion_from_matrix, quaternion_log
from ..model.mechanism import Mechanism
from .configuration import difference, integrate, random_configuration
from .declare import algorithm
from .kinematics import frame_pose, jacobian

__all__ = ["InverseKinematics", "Task", "inverse_kinematics"]

Task = Literal["pose", "position", "orientation"]
Status = Literal["reached", "unreachable", "singular", "unfinished"]
# a slope below this, relative to |J| |e|, is level ground
_FLAT = 1e-7
# keeps J Jᵀ + μ² solvable where J has lost rank; far too small to slow a regular step
_LEAST_DAMPING = 1e-6
_ROWS = {"pose": slice(0, 6), "position": slice(3, 6), "orientation": slice(0, 3)}


class InverseKinematics(NamedTuple):
    """The answer of inverse kinematics, and how good it is.

    status: "reached", the error is within the tolerance; "unreachable", every start ended in a
    minimum of the error that is not zero: out of reach, or held off by limits; "singular", the best
    start stopped where the Jacobian sees no way on although the error is not a minimum: start
    elsewhere, or allow restarts; "unfinished", the iterations ran out.
    error: (6,) in the frame's axes, rad and m, rows outside the task zero.
    """

    q: np.ndarray
    status: Status
    error: np.ndarray
    iterations: int
    restarts: int

    @property
    def reached(self) -> bool:
        """Whether the target was reached."""
        return self.status == "reached"


class _Problem:
    def __init__(
        self, mech: Mechanism, frame: str, target: np.ndarray, rows: slice, tolerance: float
    ) -> None:
        self.mech, self.frame, self.target = mech, frame, target
        self.rows, self.tolerance = rows, tolerance

    @cached_property
    def units(self) -> np.ndarray:
        """What counts as 1 in each row: a radian, and the lengths on the way to the frame."""
        frame = self.mech.frame(self.frame)
        way = [self.mech.bodies[j] for _, j in self.mech.climb(frame.body)]
        lengths = [X.translation for b in way for X in (b.placement, b.offset)]
        reach = sum(float(np.linalg.norm(p)) for p in (*lengths, frame.placement.translation))
        return np.repeat([1.0, reach or 1.0], 3)[self.rows]

    def error(self, q: np.ndarray) -> np.ndarray:
        """e of (1), the rows of the task, in these units."""
        X = frame_pose(self.mech, q, self.frame)
        turn = quaternion_log(quaternion_from_matrix(self.target[:3, :3].T @ X[:3, :3]))
        e = np.concatenate([turn, X[:3, :3].T @ (X[:3, 3] - self.target[:3, 3])])
        return e[self.rows] / self.units

    def reached(self, e: np.ndarray) -> bool:
        """Whether an error is within the tolerance, in rad and m."""
        return bool(np.linalg.norm(e * self.units) <= self.tolerance)

    def jacobian(self, q: np.ndarray) -> np.ndarray:
        """J of (1), the rows of the task, in these units."""
        return jacobian(self.mech, q, self.frame, "body")[self.rows] / self.units[:, None]

    def gradient(self, q: np.ndarray) -> np.ndarray:
        """∇ ½|e|² of (1)."""
        return self.jacobian(q).T @ self.error(q)

    @cached_property
    def limits(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper limits of q; a quaternion has none."""
        low, high = np.full(self.mech.nq, -np.inf), np.full(self.mech.nq, np.inf)
        for b in self.mech.bodies[1:]:
            if b.joint.mimic is None and b.joint.nq == b.joint.nv:
                share = self.mech.q_slice(b.joint_name)
                low[share], high[share] = b.joint.lower, b.joint.upper
        return low, high

    def clipped(self, q: np.ndarray) -> np.ndarray:
        """q within its limits."""
        return np.clip(q, *self.limits)

    def free(self, q: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """Which DoF can move downhill: not those that a limit stops."""
        moved = self.clipped(integrate(self.mech, q, -1e-9 * np.sign(gradient)))
        return (difference(self.mech, q, moved) != 0) | (gradient == 0)


@algorithm()
def inverse_kinematics(
    mech: Mechanism,
    q0: np.ndarray,
    frame: str,
    target: np.ndarray,
    task: Task = "pose",
    tolerance: float = 1e-9,
    max_iterations: int = 200,
    restarts: int = 20,
    rng: np.random.Generator | None = None,
) -> InverseKinematics:
    """The configuration near q0, within the joint limits, with the frame at the target (4, 4).

    Restarts from random configurations while the target is not reached, and keeps the best.
    """
    problem = _Problem(mech, frame, target, _ROWS[task], tolerance)
    rng = np.random.default_rng(0) if rng is None else rng
    best = _descend(problem, problem.clipped(q0), max_iterations)
    iterations, used = best.iterations, 0
    while used < restarts and not best.reached:
        used += 1
        trial = _descend(problem, random_configuration(mech, rng), max_iterations)
        iterations += trial.iterations
        best = min(best, trial, key=lambda end: end.size)
    error = np.zeros(6)
    error[problem.rows] = problem.error(best.q) * problem.units
    return InverseKinematics(best.q, _status(problem, best), error, iterations, used)


class _End(NamedTuple):
    q: np.ndarray
    size: float
    iterations: int
    settled: bool
    reached: bool = False


def _descend(problem: _Problem, q: np.ndarray, max_iterations: int) -> _End:
    """Damped steps (2) from q until the error vanishes, or no way leads down."""
    mu, e = 1e-3, problem.error(q)
    for iteration in range(max_iterations):
        size = float(np.linalg.norm(e))
        J = problem.jacobian(q)
        gradient = J.T @ e
        free = problem.free(q, gradient)
        J = J[:, free]
        slope = np.linalg.norm(gradient[free])
        done = problem.reached(e)
        if done or slope <= _FLAT * np.linalg.norm(J) * size:
            return _End(q, size, iteration, True, done)
        while mu < 1e8:
            dq = np.zeros(problem.mech.nv)
            dq[free] = -J.T @ np.linalg.solve(J @ J.T + mu**2 * np.eye(len(e)), e)
            trial = problem.clipped(integrate(problem.mech, q, dq))
            e_trial = problem.error(trial)
            if np.linalg.norm(e_trial) < size:
                q, e, mu = trial, e_trial, max(mu / 5, _LEAST_DAMPING)
                break
            mu *= 4
        else:
            return _End(q, size, iteration, True)
    return _End(q, float(np.linalg.norm(e)), max_iterations, False, problem.reached(e))


def _status(problem: _Problem, end: _End) -> Status:
    if end.reached:
        return "reached"
    if not end.settled:
        return "unfinished"
    free = problem.free(end.q, problem.gradient(end.q))
    curvature = _hessian(problem, end.q)[np.ix_(free, free)]
    bends = np.linalg.eigvalsh(curvature) if free.any() else np.zeros(1)
    return "singular" if bends[0] < -1e-4 * np.abs(bends).max() else "unreachable"


def _hessian(problem: _Problem, q: np.ndarray) -> np.ndarray:
    """The second derivatives of ½|e|², by central differences of its gradient."""
    columns, h = [], 1e-5
    for direction in np.eye(problem.mech.nv):
        ahead = problem.gradient(integrate(problem.mech, q, h * direction))
        behind = problem.gradient(integrate(problem.mech, q, -h * direction))
        columns.append((ahead - behind) / (2 * h))
    B = np.array(columns)
    return 0.5 * (B + B.T)
