"""A plain simulator: fixed steps on the joint manifolds, and the trajectory it leaves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from .algorithms.constraints import LoopConstraint
from .errors import ArgumentError
from .robot import Robot
from .runtime.call import broadcast
from .runtime.check import check_choice, check_number
from .runtime.progress import progress

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Trajectory", "simulate"]

Method = Literal["rk4", "semi_implicit_euler"]
Force = ArrayLike | Callable[[float, np.ndarray, np.ndarray], ArrayLike]
Acceleration = Callable[[float, np.ndarray, np.ndarray], np.ndarray]

# below this speed (rad/s or m/s) Coulomb friction fades to zero instead of jumping
_STICTION_SPEED = 1e-2


@dataclass(frozen=True, eq=False)
class Trajectory:
    """What a simulation saw at each time: t (T,), q (T, …, nq), qd and tau (T, …, nv)."""

    robot: Robot
    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    tau: np.ndarray

    @cached_property
    def kinetic_energy(self) -> np.ndarray:
        """(T, …), J."""
        return self.robot.kinetic_energy(self.q, self.qd)

    @cached_property
    def potential_energy(self) -> np.ndarray:
        """(T, …), J."""
        return self.robot.potential_energy(self.q)

    @property
    def energy(self) -> np.ndarray:
        """Kinetic plus potential: (T, …), J."""
        return self.kinetic_energy + self.potential_energy

    def frame_positions(self, frame: str) -> np.ndarray:
        """Where a frame's origin went: (T, …, 3), world."""
        return self.robot.frame_pose(self.q, frame)[..., :3, 3]

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw the motion and its energy; write it to the path (SVG, PNG, PDF) if one is given."""
        if self.q.ndim != 2:
            raise ArgumentError(
                f"plot draws one trajectory; this one is a batch of shape {self.q.shape[1:-1]}"
            )
        from .plotting import plot_trajectory

        return plot_trajectory(self, path)


def simulate(
    robot: Robot,
    q: ArrayLike,
    qd: ArrayLike | None = None,
    tau: Force | None = None,
    duration: float = 1.0,
    dt: float = 1e-3,
    method: Method = "rk4",
    f_ext: ArrayLike | None = None,
    constraints: Sequence[LoopConstraint] = (),
) -> Trajectory:
    """Move the robot from (q, qd) under joint forces tau for a duration, in steps of dt.

    tau: (…, nv) or a function of (t, q, qd).  Joint damping and Coulomb friction of the mechanism
    act besides tau; joint limits do not.  f_ext acts throughout; constraints close loops.
    method: "rk4", of fourth order on every joint, or "semi_implicit_euler", of first order, which
    keeps the energy of conservative motions bounded.
    """
    where = f"simulate {robot.name!r}"
    duration = check_number(where, "duration", duration, above=0)
    steps = round(duration / check_number(where, "dt", dt, above=0))
    if steps < 1:
        raise ArgumentError(f"{where}: duration {duration} is less than one step dt = {dt}")
    step = _METHODS[check_choice(where, "method", method, tuple(_METHODS))]
    start = {"q": q, "qd": np.zeros(robot.nv) if qd is None else qd}
    start |= {} if tau is None or callable(tau) else {"tau": tau}
    start |= {} if f_ext is None else {"f_ext": f_ext}
    state = broadcast(where, [robot.argument(name, x) for name, x in start.items()])
    force, losses = _force(where, robot, tau), joint_losses(robot)

    def acceleration(t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        total = force(t, q, qd) + losses(qd)
        if constraints:
            return robot.constrained_forward_dynamics(q, qd, total, constraints, f_ext).qdd
        return robot.forward_dynamics(q, qd, total, f_ext)

    t = dt * np.arange(steps + 1)
    states = [(state["q"], state["qd"])]
    for now in progress(t[:-1], where):
        states.append(step(robot, acceleration, now, *states[-1], dt))
    qs, qds = (np.array(column) for column in zip(*states, strict=True))
    taus = np.array([force(ti, qi, qdi) for ti, qi, qdi in zip(t, qs, qds, strict=True)])
    return Trajectory(robot, t, qs, qds, taus)


def joint_losses(robot: Robot) -> Callable[[np.ndarray], np.ndarray]:
    """q̇ ↦ −damping q̇ − friction sign(q̇) of every joint, the sign smoothed at low speed."""
    mech = robot.mechanism
    ratio = mech.rates(np.ones(robot.nv))
    parts = list(zip(mech.bodies, ratio, strict=True))
    damping = mech.join([np.array(b.joint.damping) * r for b, r in parts])
    friction = mech.join([np.array(b.joint.friction) * np.sign(r) for b, r in parts])
    return lambda qd: -damping * qd - friction * np.tanh(qd / _STICTION_SPEED)


def _force(where: str, robot: Robot, tau: Force | None) -> Acceleration:
    def force(t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        value = np.zeros(robot.nv) if tau is None else tau(t, q, qd) if callable(tau) else tau
        total = broadcast(where, [robot.argument("tau", value), robot.argument("qd", qd)])["tau"]
        if total.shape != qd.shape:
            raise ArgumentError(
                f"{where}: tau has leading shape {total.shape[:-1]}; the motion has {qd.shape[:-1]}"
            )
        return total

    return force


def _semi_implicit_euler(
    robot: Robot, f: Acceleration, t: float, q: np.ndarray, qd: np.ndarray, h: float
) -> tuple[np.ndarray, np.ndarray]:
    qd = qd + h * f(t, q, qd)
    return robot.integrate(q, h * qd), qd


def _rk4(
    robot: Robot, f: Acceleration, t: float, q: np.ndarray, qd: np.ndarray, h: float
) -> tuple[np.ndarray, np.ndarray]:
    """Munthe-Kaas: the classical tableau on u with q(t) = q ⊞ u(t), u̇ = tangent_rate(u, q̇)."""
    u_rate, acc = [qd], [f(t, q, qd)]
    for c in (0.5, 0.5, 1.0):
        u, v = c * h * u_rate[-1], qd + c * h * acc[-1]
        u_rate.append(robot.tangent_rate(u, v))
        acc.append(f(t + c * h, robot.integrate(q, u), v))
    return robot.integrate(q, h * _simpson(*u_rate)), qd + h * _simpson(*acc)


def _simpson(k1: Any, k2: Any, k3: Any, k4: Any) -> Any:
    return (k1 + 2 * k2 + 2 * k3 + k4) / 6


_METHODS: dict[str, Any] = {"rk4": _rk4, "semi_implicit_euler": _semi_implicit_euler}
