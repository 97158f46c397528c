"""Motions that show parameters: Fourier series whose information matrix is large.

    q(t) = q₀ + Σ aᵢ sin(i ω t) + bᵢ cos(i ω t),   ω = 2π / duration                            (1)

starts and ends at rest (Σ i aᵢ = 0, Σ i² bᵢ = 0) and is periodic.  Coefficients c are scaled, joint
by joint, so that a smooth maximum of position, rate and acceleration over their limits is one,

    q − q₀ = x / μ(x),   μ = ‖(x/room, ẋ/rate, ẍ/acceleration)‖_p,  p = 24,                      (2)

which is never less than the maximum: every motion on the way is within limits.  What grows is

    log det Σ_t Y*(t) W Y(t)                                                                    (3)

of the base parameters, along its gradient: that of Σ G Y with G = 2 W Y (Σ Y* W Y)⁻¹ is one kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ..algorithms.regressors import joint_terms_of
from ..errors import ArgumentError, warn_of_model
from ..functions.derivatives import grad
from ..robot import Robot, check_robot
from ..runtime.check import check_number, check_whole
from ..runtime.progress import progress
from ..runtime.threads import one_blas_thread
from .base import base_parameters
from .information import triangle
from .signals import joint_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["ExcitingTrajectory", "exciting_trajectory"]

_P = 24
# samples per period of the fastest harmonic, while it is sought and when it is looked at
_SOUGHT, _LOOKED_AT = 16, 128
# of the limits that are used
_MARGIN = 0.95
_STEPS, _MEMORY = 80, 12
# what joints without limits may do: rad or m from the middle, and per second
_ROOM, _RATE = 1.5, 2.0


@dataclass(frozen=True, repr=False)
class ExcitingTrajectory:
    """A periodic motion, at rest at its start.

    t: (n,); q, qd, qdd: (n, nv), those of one period; condition: of the regressor of the base
    parameters, columns of equal length, and log_det: of its information matrix.
    """

    robot: Robot
    duration: float
    center: np.ndarray
    coefficients: np.ndarray
    condition: float
    log_det: float
    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray

    def __repr__(self) -> str:
        of, every = self.robot.name, f"a period of {self.duration:g} s"
        return f"<ExcitingTrajectory of {of!r}: {every}, condition {self.condition:.4g}>"

    def at(self, t: ArrayLike) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """q, qd and qdd at times t (…), period after period: (…, nv) each."""
        times = np.asarray(t, dtype=float)
        waves = _waves(times.ravel(), self.duration, self.coefficients.shape[0] // 2)
        x = (w @ self.coefficients for w in waves)
        q, qd, qdd = (a.reshape(*times.shape, self.robot.nv) for a in x)
        return self.center + q, qd, qdd

    def plot(self, path: str | Path | None = None) -> Figure:
        """Positions and rates over time; written to the path if one is given."""
        from .plotting import plot_excitation

        return plot_excitation(self, path)


@one_blas_thread()
def exciting_trajectory(
    robot: Robot,
    duration: float = 10.0,
    harmonics: int = 5,
    joint_terms: str | Sequence[str] = (),
    center: ArrayLike | None = None,
    velocity: ArrayLike | None = None,
    acceleration: ArrayLike | None = None,
    starts: int = 2,
    seed: int = 0,
) -> ExcitingTrajectory:
    """A motion from which the base parameters of a robot can be identified, within its limits.

    duration: s, of a period; harmonics: of the series; joint_terms: to be shown too.
    center: (nv,), about which it moves; default: the middle of the limits.
    velocity, acceleration: the most of each, a number or (nv,); default: the robot's limits of
    velocity (2 rad/s where it has none), and no limit of acceleration.
    starts: random series to improve, the best of which is taken; seed: of their generator.
    Obstacles, and the robot's own body, are not looked for: look at the motion before it runs.
    """
    where = f"exciting_trajectory of {check_robot('exciting_trajectory', robot).name!r}"
    search = _Search(where, robot, joint_terms, check_number(where, "duration", duration, 0.0))
    count = check_whole(where, "harmonics", harmonics, 2)
    tries = check_whole(where, "starts", starts)
    search.sample(count, _limits(where, robot, center, velocity, acceleration))
    rng, slow = np.random.default_rng(seed), np.tile(1 / np.arange(1, count + 1), 2)[:, None]
    first = (rng.normal(size=slow.shape[:1] + (robot.nv,)) * slow for _ in range(tries))
    found = [_improved(search, z.ravel(), f"a motion for {robot.name!r}") for z in first]
    best = min(found, key=lambda each: each[0])
    return search.trajectory(best[1])


def _limits(
    where: str, robot: Robot, center: Any, velocity: Any, acceleration: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Where the middle is, and how far from it, how fast and how quickly each joint may go."""
    if robot.nq != robot.nv:
        raise ArgumentError(f"{where}: it has joints with quaternions; weld them (hinge.edit.weld)")
    lower, upper, rate = robot.lower, robot.upper, robot.velocity_limit
    # with one limit or none, the room of a joint without limits
    low = np.where(np.isfinite(lower), lower, np.minimum(upper, _ROOM) - 2 * _ROOM)
    high = np.where(np.isfinite(upper), upper, low + 2 * _ROOM)
    at = _per_joint(where, "center", 0.5 * (low + high) if center is None else center, robot.nv)
    far = np.where(np.isfinite(upper - lower), np.inf, _ROOM)
    room = np.minimum(np.minimum(upper - at, at - lower), far)
    if (room <= 0).any():
        raise ArgumentError(f"{where}: center {at.tolist()} is not within the limits of the joints")
    usual = np.where(np.isfinite(rate), rate, _RATE)
    fast = _per_joint(where, "velocity", usual if velocity is None else velocity, robot.nv)
    quick = np.inf if acceleration is None else acceleration
    quick = _per_joint(where, "acceleration", quick, robot.nv)
    if not ((fast > 0) & (quick > 0)).all():
        raise ArgumentError(
            f"{where}: velocity and acceleration have to be above 0 for every joint"
        )
    return at, _MARGIN * np.array([room, fast, quick])


def _per_joint(where: str, name: str, value: Any, nv: int) -> np.ndarray:
    try:
        return np.broadcast_to(np.asarray(value, dtype=float), (nv,)).copy()
    except (TypeError, ValueError):
        raise ArgumentError(
            f"{where}: {name} is {value!r}; give a number, or one for each of the nv = {nv} joints"
        ) from None


def _waves(t: np.ndarray, duration: float, harmonics: int) -> np.ndarray:
    """sin and cos of all harmonics, their first and second derivatives: (3, n, 2 harmonics)."""
    w = 2 * np.pi * np.arange(1, harmonics + 1) / duration
    s, c = np.sin(w * t[:, None]), np.cos(w * t[:, None])
    pairs = (s, c), (w * c, -w * s), (-w * w * s, -w * w * c)
    return np.array([np.concatenate(pair, axis=1) for pair in pairs])


class _Search:
    """The information of a motion as a function of its coefficients, with its gradient."""

    def __init__(self, where: str, robot: Robot, terms: Any, duration: float) -> None:
        self.where, self.robot, self.duration = where, robot, duration
        self.terms = joint_terms_of(where, terms)
        self.base = base_parameters(robot, self.terms)
        columns, shape = list(self.base.independent), (robot.nv, self.base.rank)

        def shown(q: Any, qd: Any, qdd: Any, G: Any) -> Any:
            return (G * robot.alg.torque_regressor(q, qd, qdd, self.terms)[:, columns]).sum()

        slopes = grad(shown, (0, 1, 2))
        self.slopes = robot.compile(lambda q, qd, qdd, G: slopes(q, qd, qdd, G), G=shape)

    def sample(self, harmonics: int, limits: tuple[np.ndarray, np.ndarray]) -> None:
        """How it is sampled, and within which limits it stays."""
        self.center, self.most = limits
        n = _SOUGHT * harmonics
        self.waves = _waves(np.arange(n) * self.duration / n, self.duration, harmonics)
        i = np.arange(1.0, harmonics + 1)
        # what is at rest at the start: no part along (i, 0) and (0, i²)
        still = np.zeros((2 * harmonics, 2))
        still[:harmonics, 0], still[harmonics:, 1] = i, i * i
        still /= np.linalg.norm(still, axis=0)
        self.resting = np.eye(2 * harmonics) - still @ still.T
        self.weights = np.ones(self.robot.nv)
        q, qd, qdd = self.motion(self.scaled(np.ones((2 * harmonics, self.robot.nv)))[0])
        size = np.sqrt((self.robot.inverse_dynamics(q, qd, qdd) ** 2).mean(axis=0))
        self.weights = 1 / np.maximum(size, 1e-3 * size.max(initial=1e-9))

    def motion(self, c: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """q, qd, qdd of coefficients."""
        x, rate, acceleration = self.waves @ c
        return self.center + x, rate, acceleration

    def scaled(self, z: np.ndarray) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
        """Coefficients within the limits (2), and how a gradient by them becomes one by z."""
        c = self.resting @ z
        share = (self.waves @ c) / self.most[:, None, :]
        # of large shares: powers of shares beside the largest
        top = np.abs(share).max(axis=(0, 1))
        mu = top * (np.abs(share / top) ** _P).sum(axis=(0, 1)) ** (1 / _P)
        out = c / mu

        def back(g: np.ndarray) -> np.ndarray:
            push = np.sign(share) * (np.abs(share) / mu) ** (_P - 1) / self.most[:, None, :]
            slope = np.einsum("dtk,dtj->kj", self.waves, push)
            return self.resting @ ((g - (g * out).sum(axis=0) * slope) / mu)

        return out, back

    def __call__(self, z: np.ndarray) -> tuple[float, np.ndarray]:
        """−log det of the information matrix (3), and its gradient."""
        c, back = self.scaled(z.reshape(-1, self.robot.nv))
        q, qd, qdd = self.motion(c)
        Y = self.robot.torque_regressor(q, qd, qdd, self.terms)[..., list(self.base.independent)]
        rows = (Y * self.weights[:, None]).reshape(-1, self.base.rank)
        size = np.maximum(np.linalg.norm(rows, axis=0), 1e-300)
        R = triangle(rows / size)
        diagonal = np.abs(np.diag(R))
        if diagonal.min(initial=1.0) < 1e-12:
            return np.inf, np.zeros_like(z)
        value = -2 * float(np.log(diagonal).sum() + np.log(size).sum())
        inverse = np.linalg.inv(R) / size[:, None]
        G = -2 * ((Y * (self.weights**2)[:, None]) @ (inverse @ inverse.T))
        slopes = np.array(self.slopes(q, qd, qdd, G))
        return value, back(np.einsum("dtk,dtj->kj", self.waves, slopes)).ravel()

    def trajectory(self, z: np.ndarray) -> ExcitingTrajectory:
        """The motion, within limits wherever one looks."""
        c, _ = self.scaled(z.reshape(-1, self.robot.nv))
        harmonics = len(c) // 2
        t = np.linspace(0.0, self.duration, _LOOKED_AT * harmonics + 1)
        share = np.abs(_waves(t, self.duration, harmonics) @ c).max(axis=1) / self.most
        c = c / np.maximum(share.max(axis=0), 1.0)
        x, qd, qdd = _waves(t, self.duration, harmonics) @ c
        q = self.center + x
        Y = self.robot.torque_regressor(q, qd, qdd, self.terms)[..., list(self.base.independent)]
        rows = (Y * self.weights[:, None]).reshape(-1, self.base.rank)
        sizes = np.linalg.svd(rows / np.linalg.norm(rows, axis=0), compute_uv=False)
        self._check_effort(q, qd, qdd)
        log_det = -self(z)[0]
        condition = float(sizes[0] / sizes[-1])
        return ExcitingTrajectory(
            self.robot, self.duration, self.center, c, condition, log_det, t, q, qd, qdd
        )

    def _check_effort(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> None:
        """Warn of torques, of the robot as it is, that its motors do not give."""
        tau = np.abs(self.robot.inverse_dynamics(q, qd, qdd)).max(axis=0)
        over = tau - self.robot.effort_limit
        if (over > 0).any():
            i = int(np.argmax(over))
            warn_of_model(
                f"{self.where}: joint {joint_of(self.robot, i)!r} needs {tau[i]:.3g} of "
                f"{self.robot.effort_limit[i]:.3g} N m (N); choose a longer duration, or a smaller "
                f"velocity"
            )


def _improved(
    function: Callable[[np.ndarray], tuple[float, np.ndarray]], x: np.ndarray, label: str
) -> tuple[float, np.ndarray]:
    """A lower value and where it is, by quasi-Newton steps of limited memory."""
    value, g = function(x)
    steps: list[tuple[np.ndarray, np.ndarray]] = []
    for _ in progress(range(_STEPS), label):
        d = -_two_loops(g, steps)
        if g @ d >= 0:
            steps, d = [], -g
        length = 1.0 if steps else 0.1 * float(np.linalg.norm(x) / max(np.linalg.norm(g), 1e-300))
        new, slope = function(x + length * d)
        while not new <= value + 1e-4 * length * (g @ d) and length > 1e-12:
            length /= 3
            new, slope = function(x + length * d)
        if not new < value - 1e-6 * abs(value) * (length > 1e-12):
            break
        steps = [*steps, (length * d, slope - g)][-_MEMORY:]
        steps = [(s, y) for s, y in steps if s @ y > 1e-12 * np.linalg.norm(s) * np.linalg.norm(y)]
        x, value, g = x + length * d, new, slope
    return value, x


def _two_loops(g: np.ndarray, steps: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """The inverse Hessian of the last steps times g."""
    parts, out = [], g.copy()
    for s, y in reversed(steps):
        a = (s @ out) / (s @ y)
        out -= a * y
        parts.append(a)
    if steps:
        s, y = steps[-1]
        out *= (s @ y) / (y @ y)
    for (s, y), a in zip(steps, reversed(parts), strict=True):
        out += (a - (y @ out) / (s @ y)) * s
    return out
