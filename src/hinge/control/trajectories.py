"""Motions from one configuration to another, within what the joints can do.

    quintic        q(t) = q₀ ⊞ s d,   d = q₁ ⊟ q₀,   s = 10 r³ − 15 r⁴ + 6 r⁵,   r = t/T         (1)

begins and ends at rest.  Along a path q(s) the forces are linear in x = ṡ² and u = s̈,

    τ = a u + b x + c,   a = M q′,   b = M q″ + C(q, q′),   c = g(q)                            (2)

and so are the accelerations q′ u + q″ x, while |q̇| ≤ v bounds x.  On a grid of the path, ∆ apart,

    backward   β(i) = max x over (u, x) within all bounds, with 0 ≤ x + 2∆u ≤ β(i+1)             (3)
    forward    x(i+1) = x(i) + 2∆u(i), u(i) the largest that stays below β(i+1)                  (4)

is the quickest motion along the path (reachability analysis, Pham and Pham, IEEE T-RO 34, 2018).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from ..algebra.small import clip
from ..algorithms.configuration import limits
from ..errors import ArgumentError
from ..robot import Robot, check_robot
from ..runtime.arguments import broadcast
from ..runtime.check import check_number, check_whole
from .joint_space import JointMotion
from .law import numbers

__all__ = ["Quintic", "TimedPath", "quintic", "time_optimal"]

_SLACK = 1e-6  # of a coordinate, past its limits
_LOOKS = 101  # places of a quintic where its forces are looked at


@final
class Quintic:
    """A motion at rest at both ends (1): a function of t, of numbers or traced scalars."""

    def __init__(self, robot: Robot, start: np.ndarray, end: np.ndarray, duration: float) -> None:
        self.robot, self.start, self.end, self.duration = robot, start, end, duration

    @cached_property
    def way(self) -> np.ndarray:
        """d = q₁ ⊟ q₀, (nv,)."""
        return self.robot.difference(self.start, self.end)

    def __call__(self, t: Any) -> JointMotion:
        """q, q̇ and q̈ at a time, at rest before the start and after the end."""
        d, T = self.way, self.duration
        r = clip(t / T, 0.0, 1.0)
        s = r * r * r * (10 - r * (15 - 6 * r))
        rate = r * r * (1 - r) * (1 - r) * (30 / T)
        push = r * (1 - r) * (1 - 2 * r) * (60 / T**2)
        return JointMotion(self.robot.alg.integrate(self.start, s * d), rate * d, push * d)


def quintic(
    robot: Robot,
    start: ArrayLike,
    end: ArrayLike,
    duration: float | None = None,
) -> Quintic:
    """A smooth motion between two configurations (nq,) within the limits, at rest at both.

    duration: in seconds; None for the shortest that keeps the joints' limits of velocity and of
    effort, whose model has to have some.
    """
    where = f"quintic of {check_robot('quintic', robot).name!r}"
    pair = [robot._argument("q", x)._replace(name=n) for n, x in (("start", start), ("end", end))]
    q0, q1 = broadcast(where, pair).values()
    if q0.shape != (robot.nq,):
        raise ArgumentError(f"{where}: start and end make {q0.shape}; expected one ({robot.nq},)")
    ends = np.array([q0, q1])
    _check_places(where, robot, ends)
    if duration is None:
        return Quintic(robot, q0, q1, _shortest(where, Quintic(robot, q0, q1, 1.0)))
    return Quintic(robot, q0, q1, check_number(where, "duration", duration, above=0))


def _shortest(where: str, unit: Quintic) -> float:
    """The shortest duration, from the motion of one second: τ = g + (τ₁ − g)/T²."""
    robot, fastest = unit.robot, unit.robot.velocity_limit
    q, qd, qdd = map(np.array, zip(*map(unit, np.linspace(0, 1, _LOOKS)), strict=True))
    weight = robot.gravity_forces(q)
    needed = robot.inverse_dynamics(q, qd, qdd) - weight
    room = robot.effort_limit - np.abs(weight)
    if (room < 0).any():
        joint = int(np.argwhere(room < 0)[0, 1])
        raise ArgumentError(
            f"{where}: DoF {joint} cannot carry {np.abs(weight[:, joint]).max()} on its way; the "
            f"effort limit is {robot.effort_limit[joint]}: go another way"
        )
    with np.errstate(divide="ignore", invalid="ignore"):
        squares = np.where(needed == 0, 0.0, np.abs(needed) / room)
        speeds = np.where(qd == 0, 0.0, np.abs(qd) / fastest)
    duration = float(max(np.sqrt(squares.max(initial=0.0)), speeds.max(initial=0.0)))
    if not 0 < duration < np.inf:
        raise ArgumentError(
            f"{where}: no limit says how long it takes: it is nowhere to go, or the joints have "
            f"neither velocity nor effort limits; give a duration"
        )
    return duration


@final
class TimedPath:
    """A motion along a path: at times t (n,), q (n, nq), qd and qdd (n, nv), tau (n, nv).

    As a function of time it gives (q, qd, qdd) of a number, at rest before and after.
    """

    def __init__(self, robot: Robot, t: np.ndarray, motion: JointMotion) -> None:
        self.robot, self.t = robot, t
        self.q, self.qd, self.qdd = motion

    @property
    def duration(self) -> float:
        """Of the whole motion, in seconds."""
        return float(self.t[-1])

    @cached_property
    def tau(self) -> np.ndarray:
        """The joint forces that it takes, (n, nv)."""
        return self.robot.inverse_dynamics(self.q, self.qd, self.qdd)

    def __call__(self, t: float) -> JointMotion:
        """q, q̇ and q̈ at a time, accelerations held between the grid's."""
        i = int(np.clip(np.searchsorted(self.t, t, side="right") - 1, 0, len(self.t) - 2))
        h = float(np.clip(t, 0.0, self.t[-1])) - self.t[i]
        step = self.t[i + 1] - self.t[i]
        qdd = (self.qd[i + 1] - self.qd[i]) / step
        q = self.robot.alg.integrate(self.q[i], h * self.qd[i] + 0.5 * h * h * qdd)
        inside = 0.0 <= t <= self.t[-1]
        return JointMotion(q, inside * (self.qd[i] + h * qdd), inside * qdd)


def time_optimal(
    robot: Robot,
    path: ArrayLike,
    acceleration: ArrayLike | None = None,
    points: int = 200,
) -> TimedPath:
    """The quickest motion through configurations (n, nq), at rest at both ends.

    Between them it follows cubic splines, which must not leave the joints' limits of position: that
    is refused.  It keeps the joints' limits of velocity and effort (2),
    and of acceleration, (nv,) or one number, where that is given.  points: of the grid.
    """
    where = f"time_optimal of {check_robot('time_optimal', robot).name!r}"
    q = broadcast(where, [robot._argument("q", path)])["q"]
    if q.ndim != 2 or len(q) < 2 or (np.abs(np.diff(q, axis=0)).max(axis=1) == 0).any():
        raise ArgumentError(
            f"{where}: path has shape {q.shape}; expected two or more different configurations, "
            f"(n, {robot.nq})"
        )
    if robot.nq != robot.nv and len(q) > 2:
        raise ArgumentError(
            f"{where}: the robot has joints with quaternions, for which only two configurations "
            f"make a path; got {len(q)}"
        )
    most = _accelerations(where, robot, acceleration)
    count = check_whole(where, "points", points, above=2)
    s = np.linspace(0, 1, count)
    place, slope, curve = _on_path(robot, q)(s)
    _check_places(where, robot, place)
    bounds = _Bounds(where, robot, place, slope, curve, most)
    x = _speeds(where, bounds, 1 / (count - 1))
    u = np.append(np.diff(x) * (count - 1) / 2, 0.0)
    t = np.append(0.0, np.cumsum(2 / (count - 1) / (np.sqrt(x[1:]) + np.sqrt(x[:-1]))))
    rate, push = np.sqrt(x)[:, None], u[:, None]
    return TimedPath(robot, t, JointMotion(place, rate * slope, push * slope + x[:, None] * curve))


def _check_places(where: str, robot: Robot, q: np.ndarray) -> None:
    """Refuse places (n, nq) of a way that are beyond the limits of joints."""
    bounds = limits(robot.mechanism)
    some = bounds.bounded
    x, low, high = q[:, bounds.place[some]], bounds.lower[some], bounds.upper[some]
    past = np.maximum(low - x, x - high) - _SLACK * (1 + np.abs(x))
    if past.size and past.max() > 0:
        i, j = np.unravel_index(int(past.argmax()), past.shape)
        raise ArgumentError(
            f"{where}: DoF {some[j]} would be at {x[i, j]:.6g} at {i / (len(q) - 1):.0%} of the "
            f"way; its limits are {low[j]:.6g} and {high[j]:.6g}: go another way, or take the "
            f"limits off the model"
        )


class _Bounds:
    """At every place of the path lines ρ · (u, x) ≤ 1 or so, and the largest x of all speeds."""

    def __init__(
        self, where: str, robot: Robot, q: Any, slope: Any, curve: Any, most: np.ndarray
    ) -> None:
        still, limits = np.zeros_like(slope), robot.effort_limit
        weight = robot.gravity_forces(q)
        a = robot.inverse_dynamics(q, still, slope) - weight
        b = robot.inverse_dynamics(q, slope, curve) - weight  # (2)
        pairs = [(a, b, limits - weight), (-a, -b, limits + weight)]
        pairs += [(slope, curve, most + still), (-slope, -curve, most + still)]
        rows = zip(*pairs, strict=True)
        self.u, self.x, self.most = (np.concatenate(parts, axis=1) for parts in rows)
        if (self.most < 0).any():
            i, j = np.argwhere(self.most < 0)[0]
            raise ArgumentError(
                f"{where}: DoF {j % robot.nv} cannot carry the weight at {i / (len(q) - 1):.0%} of "
                f"the way: its effort limit is {limits[j % robot.nv]}"
            )
        with np.errstate(divide="ignore"):
            speeds = (robot.velocity_limit / np.abs(slope)) ** 2
        self.fastest = speeds.min(axis=1)

    def at(self, i: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The lines at a place, those without a bound left out."""
        real = np.isfinite(self.most[i]) & ((self.u[i] != 0) | (self.x[i] != 0))
        return self.u[i][real], self.x[i][real], self.most[i][real]


def _speeds(where: str, bounds: _Bounds, gap: float) -> np.ndarray:
    """x at every place, by (3) and (4)."""
    n = len(bounds.fastest)
    beta = np.zeros(n)
    for i in range(n - 2, -1, -1):
        a, b, c = bounds.at(i)
        rows = np.array([[*a, 2 * gap, -2 * gap, 0, 0], [*b, 1, -1, 1, -1]]).T
        beta[i] = _highest(rows, np.array([*c, beta[i + 1], 0.0, bounds.fastest[i], 0.0]))
    if not np.isfinite(beta).all():
        raise ArgumentError(
            f"{where}: nothing bounds how fast it is; give an acceleration, or a robot with "
            f"velocity or effort limits"
        )
    x = np.zeros(n)
    for i in range(n - 1):
        a, b, c = bounds.at(i)
        room = ((c - b * x[i])[a > 0] / a[a > 0]).min(initial=np.inf)
        x[i + 1] = max(min(x[i] + 2 * gap * room, beta[i + 1]), 0.0)
    return x


def _highest(rows: np.ndarray, most: np.ndarray) -> float:
    """The largest x of (u, x) with rows · (u, x) ≤ most: at a corner of two lines."""
    real = np.isfinite(most)
    rows, most = rows[real], most[real]
    i, j = np.triu_indices(len(rows), 1)
    det = rows[i, 0] * rows[j, 1] - rows[i, 1] * rows[j, 0]
    met = np.abs(det) > 1e-14 * np.abs(rows[i]).max(axis=1) * np.abs(rows[j]).max(axis=1)
    i, j, det = i[met], j[met], det[met]
    u = (most[i] * rows[j, 1] - most[j] * rows[i, 1]) / det
    x = (rows[i, 0] * most[j] - rows[j, 0] * most[i]) / det
    sizes = np.abs(rows[:, :1] * u) + np.abs(rows[:, 1:] * x) + np.abs(most[:, None])
    inside = (rows[:, :1] * u + rows[:, 1:] * x <= most[:, None] + 1e-9 * sizes).all(axis=0)
    return float(x[inside].max(initial=0.0)) if _closed(rows) else np.inf


def _closed(rows: np.ndarray) -> bool:
    """Whether x cannot grow along any line u = t x within all rows."""
    u, x = rows.T
    low = (-x[u < 0] / u[u < 0]).max(initial=-np.inf)
    high = (-x[u > 0] / u[u > 0]).min(initial=np.inf)
    return bool(low > high + 1e-12 * abs(high) or (x[u == 0] > 0).any())


def _on_path(robot: Robot, q: np.ndarray) -> Callable[[np.ndarray], tuple[np.ndarray, ...]]:
    """q, q′, q″ of s from 0 to 1, the configurations by the distances between them."""
    if len(q) == 2:
        d = robot.difference(q[0], q[1])
        return lambda s: (
            robot.integrate(q[0], s[:, None] * d),
            np.tile(d, (len(s), 1)),
            np.zeros((len(s), robot.nv)),
        )
    far = np.cumsum(np.linalg.norm(np.diff(q, axis=0), axis=1))
    return _spline(np.append(0.0, far) / far[-1], q)


def _spline(s: np.ndarray, q: np.ndarray) -> Callable[[np.ndarray], tuple[np.ndarray, ...]]:
    """The natural cubic spline through q at s: its value, slope and curvature."""
    h, n = np.diff(s), len(s)
    system, right = np.eye(n), np.zeros_like(q)
    for i in range(1, n - 1):
        system[i, i - 1 : i + 2] = h[i - 1], 2 * (h[i - 1] + h[i]), h[i]
        right[i] = 6 * ((q[i + 1] - q[i]) / h[i] - (q[i] - q[i - 1]) / h[i - 1])
    bend = np.linalg.solve(system, right)

    def at(places: np.ndarray) -> tuple[np.ndarray, ...]:
        i = np.clip(np.searchsorted(s, places, side="right") - 1, 0, n - 2)
        w, r = h[i][:, None], (places - s[i])[:, None]
        third = (bend[i + 1] - bend[i]) / w
        slope = (q[i + 1] - q[i]) / w - w / 6 * (2 * bend[i] + bend[i + 1])
        return (
            q[i] + r * (slope + r * (bend[i] / 2 + r * third / 6)),
            slope + r * (bend[i] + r * third / 2),
            bend[i] + r * third,
        )

    return at


def _accelerations(where: str, robot: Robot, value: Any) -> np.ndarray:
    most = np.array(np.inf) if value is None else numbers(value)
    if most.shape not in ((), (robot.nv,)) or not (most > 0).all():
        raise ArgumentError(
            f"{where}: acceleration is {value!r}; expected a positive number, or nv = {robot.nv}"
        )
    return np.broadcast_to(most, (robot.nv,))
