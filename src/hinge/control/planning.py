"""What planners share: a step in time, costs of residuals, forces of the driven joints.

    step            q̇⁺ = q̇ + h q̈(q, q̇, τ),   q⁺ = q ⊞ h q̇⁺                                       (1)
    cost            Σ ½ h |r(q, q̇, τ)|² + ½ |r_T(q, q̇)|²                                         (2)

r and r_T are vectors of residuals, so that the squares of their slopes serve as curvature.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ArgumentError
from ..functions.derivatives import jacobian
from ..graph.program import running, trace
from ..graph.scan import Scan
from ..robot import Robot
from ..runtime.rollout import Rollout

__all__ = ["Problem", "Slopes", "time_loop"]

Residuals = Callable[..., Any]
Step = Callable[[Any, Any, Any, Any], tuple[Any, Any]]


class Slopes(NamedTuple):
    """How the next state changes with x = (δq, δq̇) and u: only what is not known beforehand.

    rate, push: ∂q̇⁺/∂x (nv, 2 nv), ∂q̇⁺/∂u; of a step of one's own ∂x⁺/∂x (2 nv, 2 nv), ∂x⁺/∂u.
    place, carried: of joints whose tangents do not commute the entries of ∂q⁺/∂q, ∂q⁺/∂q̇⁺.
    """

    rate: Any
    push: Any
    place: Any
    carried: Any


class Problem:
    """A robot whose driven joints are to be moved at the least cost (2).

    running: r(q, qd, tau), terminal: r_T(q, qd), of one sample, that can be traced; a step other
    than (1) is a function (q, qd, tau, dt) ↦ (q, qd).
    """

    def __init__(
        self,
        where: str,
        robot: Robot,
        running: Residuals,
        terminal: Residuals,
        active: Sequence[str] | ArrayLike | None,
        step: Step | None,
    ) -> None:
        self.where, self.robot = where, robot
        self.own_step = None if step is None else self._traced_step(step)
        self.running = self.vector("running", running, "tau")
        self.terminal = self.vector("terminal", terminal)
        mask = np.ones(robot.nv) if active is None else robot.mechanism.driven(active)
        self.driven = np.flatnonzero(mask)
        self.most = robot.effort_limit[self.driven]

    def forces(self, u: Any) -> Any:
        """τ with u in the driven joints: (…, nv)."""
        return np.asarray(u) @ np.eye(self.robot.nv)[self.driven]

    def stage_cost(self, q: Any, qd: Any, u: Any, dt: Any) -> Any:
        """½ h |r|²."""
        r = self.running(q, qd, self.forces(u))
        return 0.5 * dt * (r @ r)

    def end_cost(self, q: Any, qd: Any) -> Any:
        """½ |r_T|²."""
        r = self.terminal(q, qd)
        return 0.5 * (r @ r)

    def step(self, q: Any, qd: Any, u: Any, dt: Any) -> tuple[Any, Any]:
        """The next state (1)."""
        alg, tau = self.robot.alg, self.forces(u)
        if self.own_step is not None:
            after = self.own_step(q, qd, tau, dt)
            return after[0], after[1]
        after = qd + dt * alg.forward_dynamics(q, qd, tau)
        return alg.integrate(q, dt * after), after

    def slopes(self, q: Any, qd: Any, u: Any, dt: Any) -> Slopes:
        """How the next state changes."""
        nv, alg = self.robot.nv, self.robot.alg
        if self.own_step is not None:
            return self._own_slopes(q, qd, u, dt)
        tau = self.forces(u)
        d = alg.forward_dynamics_derivatives(q, qd, tau)
        after = qd + dt * alg.forward_dynamics(q, qd, tau)
        there, still = alg.integrate(q, dt * after), np.zeros(nv)
        moved = jacobian(lambda a, b, q, v: _moved(alg, q, v, there, a, b, dt), (0, 1))
        by_place, by_rate = moved(still, still, q, after)
        rate = np.hstack([dt * d.dq, np.eye(nv) + dt * d.dqd])
        turning = self._turning
        return Slopes(rate, dt * d.dtau[:, self.driven], by_place[turning], by_rate[turning])

    def linear(self, slopes: Slopes, dt: Any) -> tuple[Any, Any, Any]:
        """x⁺ ≈ T (A x + B u) from what `slopes` gave: T (2 nv, 2 nv), A, B, mostly zeros and ones.

        A and B give (q, q̇⁺), T what q⁺ has of q̇⁺.
        """
        nv = self.robot.nv
        one = np.eye(nv)
        if self.own_step is not None:
            return np.eye(2 * nv), slopes.rate, slopes.push
        place, carried = one.astype(object), (dt * one).astype(object)
        place[self._turning], carried[self._turning] = slopes.place, slopes.carried
        nothing = np.zeros((nv, nv))
        A = np.vstack([np.hstack([place, nothing]), slopes.rate])
        B = np.vstack([np.zeros((nv, len(self.driven))), slopes.push])
        return np.block([[one, carried], [nothing, one]]), A, B

    @cached_property
    def _turning(self) -> np.ndarray:
        """Which of (nv, nv) couples DoF of a joint whose tangents do not commute."""
        mech = self.robot.mechanism
        out = np.zeros((mech.nv, mech.nv), bool)
        for body in mech.bodies[1:]:
            if not body.joint.commuting:
                at = mech.v_slice(body.joint_name)
                out[at, at] = True
        return out

    def _own_slopes(self, q: Any, qd: Any, u: Any, dt: Any) -> Slopes:
        """Of a step of one's own, through its operations."""
        nv, alg, there = self.robot.nv, self.robot.alg, self.step(q, qd, u, dt)

        def beside(x: Any, more: Any, q: Any, qd: Any, u: Any) -> Any:
            new = self.step(alg.integrate(q, x[:nv]), qd + x[nv:], u + more, dt)
            return np.concatenate([alg.difference(there[0], new[0]), new[1]])

        by = jacobian(beside, (0, 1))(np.zeros(2 * nv), np.zeros(len(self.driven)), q, qd, u)
        rate, push = by
        return Slopes(rate, push, np.zeros(0), np.zeros(0))

    def residual_slopes(self, fn: Residuals, q: Any, qd: Any, *more: Any) -> tuple[Any, Any]:
        """Residuals and their slopes along (δq, δq̇, the rest)."""
        nv, alg = self.robot.nv, self.robot.alg

        def beside(x: Any, q: Any, qd: Any, *more: Any) -> Any:
            rest = [a + x[2 * nv :] for a in more]
            return fn(alg.integrate(q, x[:nv]), qd + x[nv : 2 * nv], *rest)

        still = np.zeros(2 * nv + sum(len(a) for a in more))
        return fn(q, qd, *more), jacobian(beside)(still, q, qd, *more)

    def vector(self, name: str, fn: Residuals, *more: str) -> Residuals:
        """The function with an array of one dimension as its result, if it can be traced."""
        if not callable(fn):
            raise ArgumentError(
                f"{self.where}: {name} is {fn!r}; expected a function of (q, qd"
                f"{', tau' if more else ''}) that gives residuals"
            )

        def residuals(*state: Any) -> Any:
            return np.atleast_1d(np.asarray(fn(*state)))

        robot = self.robot
        sizes = [(robot.nq,), (robot.nv,), *[(robot.nv,)] * len(more)]
        program = trace(residuals, sizes, f"{name} of {self.where}")
        (shape,) = program.outputs
        if len(shape) != 1:
            raise ArgumentError(
                f"{self.where}: {name} gives an array of shape {shape}; expected a vector of "
                f"residuals, or one number"
            )
        traced = running(program)
        return lambda *state: traced(*state)[0]

    def _traced_step(self, step: Step) -> Callable[..., tuple[Any, ...]]:
        """A step of one's own, traced, if it gives states."""
        nq, nv = (self.robot.nq,), (self.robot.nv,)
        program = trace(step, [nq, nv, nv, ()], f"step of {self.where}")
        if program.outputs != (nq, nv):
            raise ArgumentError(
                f"{self.where}: step gives {', '.join(map(str, program.outputs))}; expected the "
                f"next (q, qd), {nq} and {nv}"
            )
        return running(program)


def _moved(alg: Any, q: Any, v: Any, there: Any, dq: Any, dv: Any, dt: Any) -> Any:
    """(q ⊞ dq) ⊞ h (v + dv), seen from where it was without them."""
    return alg.difference(there, alg.integrate(alg.integrate(q, dq), dt * (v + dv)))


def time_loop(
    robot: Robot,
    name: str,
    fn: Callable[..., tuple[Any, ...]],
    shapes: Mapping[str, tuple[int, ...]],
    states: int,
    inputs: int,
    recorded: Sequence[int],
) -> Rollout:
    """A step as a kernel with the time loop inside that writes down only some of its results."""
    step = trace(fn, list(shapes.values()), name)
    scan = Scan(step, states, inputs, recorded=tuple(recorded))
    return Rollout(scan, shapes, states, inputs, name, robot.dtype, robot._backend)
