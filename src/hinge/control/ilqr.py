"""Iterative LQR: the motion of least cost, by Riccati sweeps along it.

Along a motion x⁺ ≈ A x + B u, and costs are squares of residuals with slopes J, so that with the
cost to go ½ xᵀV x + vᵀx,

    Q_x = l_x + Aᵀv,   Q_u = l_u + Bᵀv,   Q_uu = l_uu + BᵀV B,     Q_ux = l_ux + BᵀV A          (1)
    u ← u + α k + K x,   k = −(Q_uu + μ)⁻¹ Q_u,   K = −(Q_uu + μ)⁻¹ Q_ux                         (2)
    v ← Q_x + Q_uxᵀk − μ Kᵀk,   V ← Q_xx + Q_uxᵀK − μ KᵀK                                        (3)

μ is a part of Q_uu's diagonal, larger where steps fail.  A force at its limit that the slope pushes
further out stays there: its rows of k and K are zero.
Inequalities c(q, q̇, τ) ≤ 0 are residuals √ρ max(0, c + λ/ρ), with λ ← max(0, λ + ρ c) from time to
time: an augmented Lagrangian.                                                                   (4)

An iteration is four kernels: the slopes of all knots as one batch, the sweep (1) to (3) as a loop,
the motions of all step lengths α side by side, and the end of each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..algebra.small import clip, mirror_lower, solve_spd, sqrt
from ..errors import ArgumentError, SingularError
from ..graph.functions import less, maximum
from ..robot import Robot, check_robot
from ..runtime.arguments import broadcast, single
from ..runtime.check import check_number, check_whole
from ..runtime.kernel import Kernel
from ..runtime.progress import progress
from ..runtime.rollout import Rollout
from .planning import Problem, Residuals, Slopes, Step, time_loop

__all__ = ["ILQR", "Plan"]

_LENGTHS = 0.5 ** np.arange(8)
_DAMPINGS = 1e-9, 1e9  # of the diagonal of Q_uu: least and most
_PENALTY, _HARDER = 10.0, 10.0


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """A motion: q (T + 1, nq), qd (T + 1, nv), tau (T, nv), and the gains (T, nv, 2 nv) beside it.

    costs: before the first iteration and after each.  violation: how far the inequalities are from
    met.  status: "converged", or "unfinished" when the iterations ran out or no step helped.
    """

    robot: Robot
    dt: float
    q: np.ndarray
    qd: np.ndarray
    tau: np.ndarray
    gains: np.ndarray
    costs: np.ndarray
    violation: float
    status: Literal["converged", "unfinished"]

    def __repr__(self) -> str:
        steps, tries, first = len(self.tau), len(self.costs) - 1, float(self.costs[0])
        left = f", inequalities off by {self.violation:.2g}" if self.violation > 0 else ""
        return (
            f"<Plan for {self.robot.name!r}: {steps} steps of {self.dt:g} s, cost {first:.4g} → "
            f"{self.cost:.4g} in {tries} iterations, {self.status}{left}>"
        )

    @property
    def cost(self) -> float:
        """Of the motion, penalties left out."""
        return float(self.costs[-1])

    def feedback(self, i: int, q: ArrayLike, qd: ArrayLike) -> np.ndarray:
        """The forces (nv,) of knot i, corrected by where the robot is."""
        off = self.robot.difference(self.q[i], q)
        return self.tau[i] + self.gains[i] @ np.concatenate([off, np.asarray(qd) - self.qd[i]])


class _Knots(NamedTuple):
    """What the sweep needs of every knot."""

    rate: Any
    push: Any
    place: Any
    carried: Any
    lx: Any
    lu: Any
    lxx: Any
    lux: Any
    luu: Any


class ILQR:
    """A planner for one robot and one kind of task, to be called again and again.

    running: residuals of (q, qd, tau), whose squares cost ½ dt |r|² a step; terminal: of (q, qd),
    ½ |r|² at the end; inequality: numbers of (q, qd, tau) that must not be positive.  All of one
    sample, traced once.  dt: of a step.  active: the driven joints, None for all; their effort
    limits are kept always.  step: (q, qd, tau, dt) ↦ (q, qd) in place of semi-implicit Euler.

    `planner(q, qd, tau)` starts from a guess of the forces (T, nv), or of another plan's.
    """

    def __init__(
        self,
        robot: Robot,
        running: Residuals,
        terminal: Residuals,
        dt: float,
        inequality: Residuals | None = None,
        active: Sequence[str] | ArrayLike | None = None,
        step: Step | None = None,
    ) -> None:
        where = f"ILQR for {check_robot('ILQR', robot).name!r}"
        self.robot, self.dt = robot, check_number(where, "dt", dt, above=0)
        self._problem = Problem(where, robot, running, terminal, active, step)
        bound = self._problem.vector("inequality", inequality, "tau") if inequality else None
        self._inequality: Callable[..., Any] = bound or (lambda *state: np.zeros(0))

    # what is traced

    def _penalties(self, q: Any, qd: Any, u: Any, lam: Any, rho: Any) -> Any:
        """Residuals of the inequalities (4)."""
        c = self._inequality(q, qd, self._problem.forces(u))
        return sqrt(rho) * maximum(c + lam / rho, np.zeros(len(lam))) if len(lam) else np.zeros(0)

    def _knot(self, q: Any, qd: Any, u: Any, lam: Any, rho: Any, dt: Any) -> _Knots:
        problem, nx = self._problem, 2 * self.robot.nv

        def residuals(q: Any, qd: Any, u: Any) -> Any:
            r = sqrt(dt) * problem.running(q, qd, problem.forces(u))
            return np.concatenate([r, self._penalties(q, qd, u, lam, rho)])

        r, J = problem.residual_slopes(residuals, q, qd, u)
        slope, curve = J.T @ r, J.T @ J
        parts = slope[:nx], slope[nx:], curve[:nx, :nx], curve[nx:, :nx], curve[nx:, nx:]
        return _Knots(*problem.slopes(q, qd, u, dt), *parts)

    def _sweep(self, V: Any, v: Any, gain: Any, *given: Any) -> tuple[Any, ...]:
        """One step back, (1) to (3); gain: what the cost falls by, to first order, so far."""
        *parts, u, damping, dt = given
        knot = _Knots(*parts)
        T, A, B = self._problem.linear(Slopes(*knot[:4]), dt)
        V, v = mirror_lower(T.T @ (V @ T)), T.T @ v
        VA, VB = V @ A, V @ B
        Qx, Qu = knot.lx + A.T @ v, knot.lu + B.T @ v
        Qxx, Qux = knot.lxx + A.T @ VA, knot.lux + B.T @ VA
        Quu = mirror_lower(knot.luu + B.T @ VB)  # (1)
        free = np.array(self._free(u, Qu))
        more = damping * free * np.diagonal(Quu)
        held = Quu * free * free[:, None] + np.diag(1 - free + more)
        step = -solve_spd(held, np.column_stack([free * Qu, free[:, None] * Qux]))  # (2)
        k, K = step[:, 0], step[:, 1:]
        v = Qx + Qux.T @ k - K.T @ (more * k)
        V = mirror_lower(Qxx + Qux.T @ K - K.T @ (more[:, None] * K))  # (3)
        return V, v, gain + Qu @ k, k, K

    def _free(self, u: Any, slope: Any) -> list[Any]:
        """0 for a force at its limit which the slope pushes out, else 1."""
        out = []
        for x, s, most in zip(u, slope, self._problem.most, strict=True):
            if most == np.inf:
                out.append(1.0)
            else:
                edge = most * (1 - 1e-9)
                above, below = less(edge, x) * less(s, 0.0), less(x, -edge) * less(0.0, s)
                out.append(1 - above - below)
        return out

    def _move(self, q: Any, qd: Any, cost: Any, *given: Any) -> tuple[Any, ...]:
        """One step of the new motion, and its cost with penalties and without."""
        u0, k, K, q0, qd0, lam, rho, length, dt = given
        x = np.concatenate([self.robot.alg.difference(q0, q), qd - qd0])
        wish, most = u0 + length * k + K @ x, self._problem.most
        u = np.array([clip(a, -b, b) if b < np.inf else a for a, b in zip(wish, most, strict=True)])
        r = self._penalties(q, qd, u, lam, rho)
        plain = self._problem.stage_cost(q, qd, u, dt)
        after = self._problem.step(q, qd, u, dt)
        return (*after, cost + np.array([plain + 0.5 * (r @ r), plain]), u)

    # kernels

    @cached_property
    def _sizes(self) -> dict[str, tuple[int, ...]]:
        nv, nu = self.robot.nv, len(self._problem.driven)
        shapes = {"q": (self.robot.nq,), "qd": (nv,), "u": (nu,)}
        nc = self.robot.compile(self._bounds, **shapes).program.outputs[0][0]
        return shapes | {"lam": (nc,), "x": (2 * nv,), "rho": (), "dt": ()}

    def _bounds(self, q: Any, qd: Any, u: Any) -> Any:
        return self._inequality(q, qd, self._problem.forces(u))

    def _kernel(self, fn: Callable[..., Any]) -> Kernel:
        names = fn.__code__.co_varnames[1 : fn.__code__.co_argcount]
        return self.robot.compile(fn, **{n: self._sizes[n] for n in names})

    @cached_property
    def _kernels(self) -> dict[str, Kernel]:
        problem = self._problem

        def end(q: Any, qd: Any) -> Any:
            r, J = problem.residual_slopes(problem.terminal, q, qd)
            return J.T @ r, J.T @ J

        ends = self.robot.compile(end)
        cost = self.robot.compile(problem.end_cost)
        return {
            "knots": self._kernel(self._knot),
            "bounds": self._kernel(self._bounds),
            "end": ends,
            "end_cost": cost,
        }

    @cached_property
    def _loops(self) -> tuple[Rollout, Rollout]:
        s, robot = self._sizes, self.robot
        x, u = s["x"], s["u"]
        knot = zip(_Knots._fields, self._kernels["knots"].program.outputs, strict=True)
        back = {"V": x * 2, "v": x, "gain": (), **dict(knot), "u": u, "damping": (), "dt": ()}
        go = {"q": s["q"], "qd": s["qd"], "cost": (2,), "u0": u, "k": u, "K": u + x}
        go |= {"q0": s["q"], "qd0": s["qd"], "lam": s["lam"], "rho": (), "length": (), "dt": ()}
        title, inputs = f"ILQR for {robot.name!r}", 1 + len(_Knots._fields)
        return (
            time_loop(robot, f"{title}: sweep", self._sweep, back, 3, inputs, (2, 3, 4)),
            time_loop(robot, f"{title}: motion", self._move, go, 3, 6, (0, 1, 2, 3)),
        )

    # the iteration

    def __call__(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        tau: ArrayLike,
        iterations: int = 100,
        tolerance: float = 1e-6,
    ) -> Plan:
        """The motion from (q, qd), one step for each row of the guess tau (T, nv).

        It ends when the cost falls by less than this part of itself, and the inequalities are met
        to that in their own units.
        """
        where = self._problem.where
        state = [self.robot._argument("q", q), self.robot._argument("qd", qd)]
        start = single(where, state)
        guess = broadcast(where, [self.robot._argument("tau", tau)])["tau"]
        if guess.ndim != 2 or not len(guess):
            raise ArgumentError(
                f"{where}: tau has shape {guess.shape}; expected (steps, {self.robot.nv})"
            )
        check_whole(where, "iterations", iterations)
        check_number(where, "tolerance", tolerance, above=0)
        run = _Iteration(self, (start["q"], start["qd"]), guess[:, self._problem.driven])
        for _ in progress(range(iterations), where):
            if run.improved(tolerance):
                return run.plan("converged")
        return run.plan("unfinished")


class _Iteration:
    """A motion that gets better."""

    def __init__(self, planner: ILQR, start: tuple[Any, Any], u: np.ndarray) -> None:
        self.planner, self.start = planner, start
        self.kernels, (self.sweep, self.move) = planner._kernels, planner._loops
        steps, sizes = len(u), planner._sizes
        self.lam, self.rho = np.zeros((steps, *sizes["lam"])), _PENALTY
        self.damping, nx = 1e-6, sizes["x"][0]
        self.K = np.zeros((steps, u.shape[1], nx))
        self.q, self.qd = (np.tile(x, (steps + 1, 1)) for x in start)
        self.u, self.cost, self.total = u, 0.0, 0.0
        if not self._take(self._tried(0 * u, self.K, np.zeros(1)), 0):
            raise SingularError(
                f"{planner._problem.where}: the guess of tau leads to numbers that are not finite; "
                f"take smaller ones, or a shorter dt"
            )
        self.costs = [self.cost]

    def improved(self, tolerance: float) -> bool:
        """One iteration; whether it was the last that is needed."""
        gain, k, K = self._swept()
        tried = self._tried(k, K, _LENGTHS)
        best = int(np.argmin(np.where(np.isfinite(tried[3]), tried[3], np.inf)))
        before, (low, high) = self.total, _DAMPINGS
        if tried[3][best] < before and self._take(tried, best):
            self.K = K
            trust = 5.0 if _LENGTHS[best] >= 0.5 else 1.0 if _LENGTHS[best] >= 0.25 else 0.1
        else:
            trust = 0.1
        self.damping = float(np.clip(self.damping / trust, low, high))
        self.costs.append(self.cost)
        fell = before - self.total
        level = fell <= tolerance * before and (fell > 0 or -gain <= tolerance * before)
        return level and self._met(tolerance)

    def _met(self, tolerance: float) -> bool:
        """Whether the inequalities are; if not they count more from now on (4)."""
        bounds = self._bounds()
        if bounds.max(initial=0.0) <= tolerance:
            return True
        self.lam = np.maximum(self.lam + self.rho * bounds, 0.0)
        self.rho *= _HARDER
        self._take(self._tried(0 * self.u, 0 * self.K, np.zeros(1)), 0)
        return False

    def _bounds(self) -> np.ndarray:
        return self.kernels["bounds"](self.q[:-1], self.qd[:-1], self.u)

    def _swept(self) -> tuple[float, np.ndarray, np.ndarray]:
        """What the cost would fall by, and how forces change."""
        at = self.q[:-1], self.qd[:-1], self.u
        knots = self.kernels["knots"](*at, self.lam, np.array(self.rho), self._dt)
        v, V = self.kernels["end"](self.q[-1], self.qd[-1])
        back = [x[::-1] for x in (*knots, self.u)]
        gain, k, K = self.sweep(V, v, np.array(0.0), *back, np.array(self.damping), self._dt)
        return float(gain[-1]), k[::-1], K[::-1]

    def _tried(self, k: Any, K: Any, lengths: np.ndarray) -> tuple[np.ndarray, ...]:
        """Motions q, q̇, forces, and costs with penalties and without, for every length."""
        along = self.u, k, K, self.q[:-1], self.qd[:-1], self.lam
        given = [x[:, None] for x in along]
        nothing = np.zeros(2)
        q, qd, costs, u = self.move(
            *self.start, nothing, *given, np.array(self.rho), lengths, self._dt
        )
        ends = self.kernels["end_cost"](q[-1], qd[-1])
        return q, qd, u, costs[-1, :, 0] + ends, costs[-1, :, 1] + ends

    def _take(self, tried: tuple[np.ndarray, ...], i: int) -> bool:
        """Go on from one of them, if it is sound."""
        q, qd, u, total, plain = (x[..., i, :] if x.ndim > 1 else x[i] for x in tried)
        if not (np.isfinite(total) and np.isfinite(q).all()):
            return False
        self.q, self.qd = (np.vstack([x, y]) for x, y in zip(self.start, (q, qd), strict=True))
        self.u, self.total, self.cost = u, float(total), float(plain)
        return True

    @property
    def _dt(self) -> np.ndarray:
        return np.array(self.planner.dt)

    def plan(self, status: Literal["converged", "unfinished"]) -> Plan:
        """What was found."""
        planner, spread = self.planner, self.planner._problem.forces
        gains = np.swapaxes(spread(np.swapaxes(self.K, 1, 2)), 1, 2)
        worst = float(self._bounds().max(initial=0.0))
        motion = self.q, self.qd, spread(self.u), gains
        return Plan(
            planner.robot, planner.dt, *motion, np.array(self.costs), max(worst, 0.0), status
        )
