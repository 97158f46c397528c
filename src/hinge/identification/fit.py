"""`identify`: the masses and joints of a robot that explain its measured motion.

    τ = Y(q, q̇, q̈) π + noise                                                                   (1)

is solved for bodies that can exist (`solve.py`), each joint in units of its noise and each sample
weighed after Huber: by 1, or by what keeps its residual from counting more than linearly.  Noise
and weights are those of the last solution, a few times over.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ..algorithms.regressors import JOINT_TERMS, LinearParameters, joint_terms_of
from ..errors import ArgumentError, warn_of_model
from ..model.mechanism import Mechanism, did_you_mean
from ..robot import Robot, check_robot
from ..runtime.check import check_number
from ..runtime.progress import progress
from ..runtime.threads import one_blas_thread
from .base import BaseParameters, base_parameters
from .bodies import Bodies, inertia_from
from .information import Information
from .signals import Motion, as_motion, joint_of
from .solve import Problem, solve

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Identification", "Task", "identify"]

# Huber's bound, in units of noise: for Gaussian noise 5 % of the precision are given for robustness
_HUBER = 1.345
# from the median of |x| to σ of Gaussian x
_SIGMA = 1.4826
_ROUNDS = 6
# rows of the regressor at a time, in numbers
_CHUNK = 1 << 22
# base parameters that are no better known than this part of what such bodies have are not seen
_UNKNOWN = 0.3
# what data show less than this, beside the strongest, they do not show
_SHOWN = 1e-8
# torques that correlate with those of the file by more than this, and are so many times as large,
# or as small, are taken to be in another unit
_ALIKE, _OTHER_UNIT = 0.5, 100.0
# how firmly single numbers of bodies are held, relative to all that data say of them
_HELD = 1e4


@dataclass(frozen=True)
class Identification:
    """A robot that explains measured motion, and how well it is known.

    robot: with the identified numbers; parameters: π, its names and values; base: the combinations
    that motion can show, with base_values and their covariance; noise: of the torques, one σ per
    DoF; residuals: τ − Y π of the samples that were used; motion: those samples, their torques less
    those of known numbers of joints; remarks: what could not be seen, and what else should be
    known, in words.
    """

    robot: Robot
    parameters: LinearParameters
    base: BaseParameters
    base_values: np.ndarray
    covariance: np.ndarray
    noise: np.ndarray
    residuals: np.ndarray
    motion: Motion
    remarks: tuple[str, ...]

    @property
    def base_std(self) -> np.ndarray:
        """The standard deviation of each base parameter; infinite where data do not show it."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def misfit(self) -> float:
        """The residual over the torque, root mean square, each joint beside its own."""
        return _misfit(self.motion, self.residuals)

    def __str__(self) -> str:
        seen = np.isfinite(self.base_std).sum()
        head = (
            f"{self.robot.name!r}: {seen} of {self.base.rank} base parameters from "
            f"{len(self.residuals)} samples; {100 * self.misfit:.2g} % of the torque left over"
        )
        rows = zip(self.base.sentences, self.base_values, self.base_std, strict=True)
        lines = [f"  {value:>11.4g} ± {std:<8.2g} {words}" for words, value, std in rows]
        return "\n".join([head, *lines, *self.remarks])

    def plot(self, path: str | Path | None = None) -> Figure:
        """Measured and explained torques of each joint; written to the path if one is given."""
        from .plotting import plot_identification

        return plot_identification(self, path)


class Task:
    """A robot whose numbers are to be found: what is free, what is known, and from where."""

    def __init__(
        self,
        robot: Robot,
        joint_terms: str | Sequence[str],
        known: str | Sequence[str],
        spread: float,
    ) -> None:
        self.where = f"identify {check_robot('identify', robot).name!r}"
        self.robot, self.terms = robot, joint_terms_of(self.where, joint_terms)
        self.spread = check_number(self.where, "spread", spread, 0.0)
        self.names, self.file = robot.linear_parameters(self.terms)
        self.base = base_parameters(robot, self.terms)
        self.bodies = Bodies(self.file[: 10 * len(robot.body_names)].reshape(-1, 10))
        self.free, self.pinned = self._known((known,) if isinstance(known, str) else tuple(known))
        self.others = tuple(term for term in JOINT_TERMS if term not in self.terms)
        self.held = robot.linear_parameters(self.others).values[self.bodies.start.size :]

    def _known(self, names: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
        """Which numbers are free, and which of those are held each by itself."""
        free, pinned = np.ones((2, len(self.names)), dtype=bool)
        pinned[:] = False
        owners = np.array([name.rpartition(".")[0] for name in self.names])
        for name in names:
            own = owners == name
            if name in self.names:
                at = self.names.index(name)
                (pinned if at < self.bodies.start.size else free)[at] = at < self.bodies.start.size
            elif own.any():
                free[own] = False
            else:
                hint = did_you_mean(name, [*dict.fromkeys(owners), *self.names])
                raise ArgumentError(f"{self.where}: nothing is called {name!r}; {hint}")
        return free, pinned

    def unexplained(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray, tau: Any) -> np.ndarray:
        """Torques less those of numbers of joints that the robot has and that are not sought."""
        if not self.held.any():
            return np.asarray(tau, dtype=float)
        terms = {"joint_terms": self.others}
        Y = self.robot._ask("torque_regressor_joints", terms, q=q, qd=qd, qdd=qdd)
        return tau - Y @ self.held

    @one_blas_thread()
    def solution(
        self, known: Information, guess: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """π of bodies that can exist, from what data say, and θ of the bodies with the numbers of
        joints; guess: such as came from other data.
        """
        A, b = known.A, known.b
        size = np.linalg.norm(A, axis=0)
        n = self.bodies.start.size
        typical = np.linalg.norm(b) / np.where(size > 0, size, np.inf)
        scales = np.where(self.file[n:] > 0, self.file[n:], np.maximum(typical[n:], 1e-9))
        held = np.eye(len(size))[self.pinned] * (_HELD * np.maximum(size, 1.0))[self.pinned, None]
        problem = Problem(self.bodies, self.file[n:], scales, self.free, self.spread)
        A, b = np.concatenate([A, held]), np.concatenate([b, held @ self.file])
        unit = np.concatenate([np.ones(n), scales])
        theta = solve(problem, A, b, None if guess is None else guess / unit)
        values = problem.values(theta)
        values[:n] = np.where(np.repeat(self._held_bodies, 10), self.file[:n], values[:n])
        return values, theta * unit

    @property
    def _held_bodies(self) -> np.ndarray:
        """Which bodies are as in the file, all ten numbers."""
        return np.array(
            [not own.any() for own in self.free[: self.bodies.start.size].reshape(-1, 10)]
        )

    def covariance(self, known: Information) -> np.ndarray:
        """Of the base parameters; infinite for those that data do not show."""
        A = known.A[:, list(self.base.independent)]
        size = np.where((norm := np.linalg.norm(A, axis=0)) > 0, norm, 1.0)
        _, s, V = np.linalg.svd(A / size)
        s = np.pad(s, (0, len(V) - len(s)))
        shown = s > _SHOWN * s.max(initial=0.0)
        root = V[shown].T / s[shown]
        lost = (V[~shown] ** 2).sum(axis=0) > _SHOWN
        lost |= norm == 0
        out = (root @ root.T) / np.outer(size, size)
        out[lost], out[:, lost] = np.nan, np.nan
        out[lost, lost] = np.inf
        return out

    def _base_sizes(self, values: np.ndarray) -> np.ndarray:
        """What such bodies have of each combination; infinite for those of joints alone."""
        bodies = values[: self.bodies.start.size].reshape(-1, 10)
        second = 0.5 * bodies[:, [4, 6, 9]].sum(axis=1, keepdims=True)
        first = np.sqrt(bodies[:, :1] * second)
        own = np.hstack([bodies[:, :1], first.repeat(3, axis=1), second.repeat(6, axis=1)]).ravel()
        sizes = np.sqrt(self.base.matrix[:, : own.size] ** 2 @ own**2)
        return np.where(sizes > 0, sizes, np.inf)

    def robot_of(self, values: np.ndarray) -> Robot:
        """The robot with these numbers."""
        mech, robot = _with_values(self.robot.mechanism, self.terms, values), self.robot
        return Robot(mech, robot.dtype, robot.threads, robot.parameters)

    def remarks(self, values: np.ndarray, std: np.ndarray) -> tuple[str, ...]:
        """What could not be seen, and what else should be known."""
        said = []
        doubtful = ~(std < _UNKNOWN * self._base_sizes(values))
        if doubtful.any():
            words = [s for s, d in zip(self.base.sentences, doubtful, strict=True) if d]
            said.append(f"not seen in this motion, and near the file: {'; '.join(words)}")
        if self.base.unseen:
            said.append(f"seen in no motion, and near the file: {', '.join(self.base.unseen)}")
        n = self.bodies.start.size
        odd = np.abs(self.bodies.start.ravel() - self.file[:n]).reshape(-1, 10).max(axis=1)
        moved = odd > 1e-6 * (1e-6 + np.abs(self.file[:n]).reshape(-1, 10).max(axis=1))
        if (moved & ~self._held_bodies).any():
            names = np.array(self.robot.body_names)[moved & ~self._held_bodies]
            said.append(
                f"no body has the numbers of the file for {', '.join(names)}: near ones are"
            )
        return tuple(said)


@one_blas_thread()
def identify(
    robot: Robot,
    q: ArrayLike,
    qd: ArrayLike | None = None,
    tau: ArrayLike | None = None,
    qdd: ArrayLike | None = None,
    t: ArrayLike | None = None,
    joint_terms: str | Sequence[str] = (),
    known: str | Sequence[str] = (),
    f_ext: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    cutoff: float | None = None,
    robust: bool = True,
    spread: float = 1.0,
    max_misfit: float = 0.5,
    check_units: bool = True,
) -> Identification:
    """A robot whose masses, and numbers of joints, explain measured torques.

    q: (n, nq), measured; tau: (n, nv), of the motors; qd, qdd: (n, nv), or None: from q at times t,
    (n,), low-passed at `cutoff` Hz (default: well above what moves), as is tau.
    joint_terms: of "armature", "damping", "friction", "stiffness", to be found too; the others are
    as in the robot.
    known: names of bodies, joints or parameters that are as in the robot, and stay so.
    f_ext: (n, n_bodies, 6), forces on the bodies that were measured too; only without filtering.
    weights: (n,) or (n, nv), what each sample counts beside others, 0 for not at all.
    robust: samples far off count less (Huber), and each joint by its own noise.
    spread: how far off the robot's numbers may be, as a factor e^spread: what motion does not show
    stays near them.  max_misfit: with more of the torque unexplained than this, it raises.
    check_units: whether angles that look like degrees, rates that are not those of q, or torques
    that are those of the robot in another unit do so.
    """
    task = Task(robot, joint_terms, known, spread)
    check_number(task.where, "max_misfit", max_misfit, 0.0)
    if tau is None:
        raise ArgumentError(f"{task.where}: tau is missing; give the torques that were measured")
    motion = as_motion(robot, q, qd, tau, qdd, t, weights, cutoff, check_units)
    if f_ext is not None:
        motion = _without_loads(task, motion, f_ext)
    rest = task.unexplained(motion.q, motion.qd, motion.qdd, motion.tau)
    motion = replace(motion, tau=rest)
    _check_motion(task, motion)
    if check_units:
        _check_scale(task, motion)
    values, noise, residuals, information = _fitted(task, motion, robust)
    if not (misfit := _misfit(motion, residuals)) <= max_misfit:
        raise ArgumentError(
            f"{task.where}: {100 * misfit:.0f} % of the torque is left unexplained, most at joint "
            f"{_worst(robot, motion, residuals)!r}: the robot does not fit; look at signs, "
            f"order and units of columns, at joint_terms such as friction, or allow more by "
            f"max_misfit"
        )
    covariance = task.covariance(information)
    remarks = task.remarks(values, np.sqrt(np.diag(covariance)))
    if not np.isfinite(np.diag(covariance)).all():
        warn_of_model(f"{task.where}: too little motion: {remarks[0]}")
    found = LinearParameters(task.names, values)
    base_values = task.base.matrix @ values
    return Identification(
        task.robot_of(values), found, task.base, base_values, covariance, noise, residuals, motion,
        remarks,
    )  # fmt: skip


def _check_motion(task: Task, motion: Motion) -> None:
    """Whether there is anything to be learned."""
    equations, unknowns = motion.tau.size, task.base.rank
    if equations < unknowns:
        raise ArgumentError(
            f"{task.where}: {len(motion.tau)} samples give {equations} equations for {unknowns} "
            f"base parameters; give more samples"
        )
    if not np.ptp(motion.q, axis=0).any():
        raise ArgumentError(
            f"{task.where}: q is the same in all samples: nothing can be learned from a robot that "
            f"stands still; hinge.exciting_trajectory makes a motion that shows everything"
        )


def _check_scale(task: Task, motion: Motion) -> None:
    """Refuse torques that look like those of the file in another unit."""
    expected = task.robot.inverse_dynamics(motion.q, motion.qd, motion.qdd)
    both, own, theirs = (
        float((a * b).sum())
        for a, b in ((motion.tau, expected), (expected, expected), (motion.tau, motion.tau))
    )
    alike = both**2 > _ALIKE**2 * own * theirs
    if alike and not 1 / _OTHER_UNIT < abs(both) / own < _OTHER_UNIT:
        raise ArgumentError(
            f"{task.where}: tau is {both / own:.4g} times what the file's masses need in this "
            f"motion, and alike in form: is it in another unit? Give N m and N, or "
            f"check_units=False if it is"
        )


def _without_loads(task: Task, motion: Motion, f_ext: ArrayLike) -> Motion:
    """The torques less what holds the forces on the bodies."""
    if motion.cutoff is not None:
        raise ArgumentError(
            f"{task.where}: f_ext is not filtered; give q, qd, qdd and tau filtered alike, and no t"
        )
    state = motion.q, motion.qd, motion.qdd
    loads = task.robot.inverse_dynamics(*state) - task.robot.inverse_dynamics(*state, f_ext)
    return replace(motion, tau=motion.tau + loads)


def _fitted(
    task: Task, motion: Motion, robust: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray, Information]:
    """π, noise and residuals, and what the data said."""
    noise = np.maximum(np.std(motion.tau, axis=0), 1e-12 * np.abs(motion.tau).max())
    given, theta = np.sqrt(motion.weights), None
    weights = given
    values, residuals = task.file, motion.tau
    for _ in progress(range(_ROUNDS), task.where):
        information = gathered(task, motion, weights / noise)
        values, theta = task.solution(information, theta)
        residuals = _residuals(task, motion, values)
        before, noise = noise, _noise(given * residuals, robust, motion.weights > 0, task)
        if robust:
            size = given * np.abs(residuals) / noise
            weights = given * np.sqrt(np.minimum(1.0, _HUBER / np.maximum(size, 1e-300)))
        if np.allclose(before, noise, rtol=1e-3):
            break
    # neighbours that were filtered together are not independent
    return values, noise, residuals, gathered(task, motion, weights * motion.share**0.5 / noise)


def _noise(residuals: np.ndarray, robust: bool, counted: np.ndarray, task: Task) -> np.ndarray:
    """σ of each joint, from residuals that count; of outliers the median takes no notice."""
    samples = np.maximum(counted.sum(axis=0), 1)
    size = np.sqrt((residuals**2).sum(axis=0) / samples)
    if robust:
        pairs = zip(np.abs(residuals).T, counted.T, strict=True)
        middle = _SIGMA * np.array([np.median(x[c]) if c.any() else 0.0 for x, c in pairs])
        size = np.where(middle > 0, middle, size)
    spent = task.base.rank / max(residuals.shape[1], 1)
    least = 1e-9 * max(float(np.abs(residuals).max(initial=0.0)), 1e-9)
    return np.maximum(size * np.sqrt(samples / np.maximum(samples - spent, 1.0)), least)


def gathered(task: Task, motion: Motion, weights: np.ndarray) -> Information:
    """What all samples say, weighed."""
    known = Information(len(task.names))
    for part, Y in _regressors(task, motion):
        scale = weights[part]
        known.add(Y * scale[..., None], motion.tau[part] * scale)
    return known


def _residuals(task: Task, motion: Motion, values: np.ndarray) -> np.ndarray:
    parts = [motion.tau[part] - Y @ values for part, Y in _regressors(task, motion)]
    return np.concatenate(parts)


def _regressors(task: Task, motion: Motion) -> Iterator[tuple[slice, np.ndarray]]:
    """Some samples at a time, and their regressors."""
    at_once = max(1, _CHUNK // max(1, task.robot.nv * len(task.names)))
    for start in range(0, len(motion.q), at_once):
        part = slice(start, start + at_once)
        state = motion.q[part], motion.qd[part], motion.qdd[part]
        yield part, task.robot.torque_regressor(*state, task.terms)


def _misfit(motion: Motion, residuals: np.ndarray) -> float:
    return float(np.sqrt(np.mean(_shares(motion, residuals) ** 2)))


def _shares(motion: Motion, residuals: np.ndarray) -> np.ndarray:
    """The residual of each joint beside its torque, or beside a thousandth of the largest."""
    size, rest = (np.sqrt((motion.weights * x**2).sum(axis=0)) for x in (motion.tau, residuals))
    return rest / np.maximum(size, 1e-3 * size.max(initial=1e-300))


def _worst(robot: Robot, motion: Motion, residuals: np.ndarray) -> str:
    return joint_of(robot, int(np.argmax(_shares(motion, residuals))))


def _with_values(mech: Mechanism, terms: tuple[str, ...], values: np.ndarray) -> Mechanism:
    """The mechanism with these numbers of bodies and joints."""
    bodies, at = list(mech.bodies), 10 * mech.n_bodies
    for k in range(1, len(bodies)):
        bodies[k] = replace(bodies[k], inertia=inertia_from(values[10 * k - 10 : 10 * k]))
    for term in terms:
        for k in range(1, len(bodies)):
            nv = bodies[k].joint.nv
            own = tuple(float(x) for x in values[at : at + nv])
            bodies[k] = replace(bodies[k], joint=replace(bodies[k].joint, **{term: own}))
            at += nv
    return replace(mech, bodies=tuple(bodies))
