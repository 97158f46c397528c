"""A simulator: fixed steps on the joint manifolds, and the trajectory it leaves.

Where everything that acts can be traced, all steps run in one kernel; otherwise step by step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from inspect import signature
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

import numpy as np
from numpy.typing import ArrayLike

from ..algorithms.constraints import LoopConstraint, as_constraints
from ..algorithms.singular import loose_joint, why_singular
from ..errors import ArgumentError, SingularError, TraceError
from ..graph.program import Program
from ..graph.scalar import Node
from ..model.parameters import PARAMETERS
from ..robot import Robot, check_robot
from ..robot.method import Numbers
from ..runtime.arguments import Argument, broadcast
from ..runtime.check import check_choice, check_number
from ..runtime.kernel import Kernel
from ..runtime.progress import progress
from ..runtime.rollout import Rollout
from ..specialize.routing import MOST_UNROLLED
from .integrators import METHODS
from .steps import Called, motion_kernel, traced_force

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Trajectory", "simulate"]

# of how many steps the rounding of a duration may make one more
_SAME = 1e-9

Method = Literal["rk4", "semi_implicit_euler", "implicit_midpoint", "joint_midpoint", "variational"]
Force = ArrayLike | Callable[[float, np.ndarray, np.ndarray], ArrayLike]


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
        """Of gravity and of the springs of joints: (T, …), J."""
        return self.robot.potential_energy(self.q) + self.robot.spring_energy(self.q)

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
    duration: float | None = None,
    dt: float = 1e-3,
    method: Method = "rk4",
    f_ext: ArrayLike | None = None,
    constraints: Sequence[LoopConstraint] = (),
    taus: ArrayLike | None = None,
    every: int = 1,
    compiled: bool | None = None,
    **numbers: Unpack[Numbers],
) -> Trajectory:
    """Move the robot from (q, qd) under joint forces for a duration, in steps of dt.

    duration: in seconds; None for as many steps as there are taus, or without them for 1 s.  If it
    is no whole number of steps the last is shorter, and the motion ends where it should.
    tau: (…, nv), or a function of (t, q, qd) of one sample that gives (nv,).
    taus: (steps, …, nv), one for each step and held during it; tau and taus add up.
    Springs, damping and Coulomb friction of the joints act besides; joint limits do not.  f_ext
    acts throughout; constraints close loops.
    method: "rk4", of fourth order on every joint; "variational", of second order, which keeps
    momentum to rounding and the energy of conservative motions bounded for as long as one likes;
    "implicit_midpoint", of second order in total rates, whose kinetic energy changes by the work of
    the forces and by nothing else, to rounding; "joint_midpoint", the same in joint rates;
    "semi_implicit_euler", of first order, the cheapest: its energy drifts wherever M depends on q.
    every: of how many steps one is kept.
    compiled: None runs all steps in one kernel if tau can be traced, and else calls it, for the
    whole batch at once, in every step; True insists on the one, False on the other.
    numbers: gravity, inertia, placement of the mechanism, other than its own, with any leading
    shape; see `hinge.model.parameters`.
    """
    check_robot("simulate", robot)
    for name in numbers:
        check_choice(f"simulate {robot.name!r}", "an argument", name, PARAMETERS)
    robot = robot._with_numbers(numbers) if numbers else robot
    acting = {"f_ext": f_ext, **numbers}
    held = as_constraints(f"simulate {robot.name!r}", constraints)
    run = _Run(robot, q, qd, tau, taus, acting, held, duration, dt, method, every)
    why = "" if compiled is False else run.obstacle()
    if compiled and why:
        raise TraceError(f"{run.where}: it cannot be compiled as one kernel: {why}")
    qs, qds = run.stepped() if compiled is False or why else run.in_one_kernel()
    return Trajectory(robot, run.times, qs, qds, run.forces(qs, qds))


class _Run:
    """The arguments of a simulation, checked, and the two ways to run it."""

    def __init__(
        self,
        robot: Robot,
        q: ArrayLike,
        qd: ArrayLike | None,
        tau: Force | None,
        taus: ArrayLike | None,
        acting: dict[str, ArrayLike | None],
        constraints: tuple[LoopConstraint, ...],
        duration: float | None,
        dt: float,
        method: str,
        every: int,
    ) -> None:
        where = self.where = f"simulate {robot.name!r}"
        self.robot, self.constraints = robot, constraints
        self.method = check_choice(where, "method", method, tuple(METHODS))
        if constraints and method in ("implicit_midpoint", "variational"):
            raise ArgumentError(
                f"{where}: method {method!r} knows no loop constraints; take 'joint_midpoint'"
            )
        self.dt = check_number(where, "dt", dt, above=0)
        series = self._series(taus)
        self.steps, self.last = self._count(duration, series)
        self.every = int(check_number(where, "every", every, above=0))
        if self.every != every or self.every > self.steps:
            raise ArgumentError(
                f"{where}: every is {every}; expected a whole number, of the {self.steps} steps"
            )
        start = {"q": q, "qd": np.zeros(robot.nv) if qd is None else qd}
        start |= {} if tau is None or callable(tau) else {"tau": tau}
        start |= {n: x for n, x in acting.items() if x is not None}
        self.given = self._together([robot._argument(n, x) for n, x in start.items()], series)
        self.lead = self.given["q"].shape[:-1]
        self.function = _check_law(where, tau) if callable(tau) else None
        self.program: Program | None = None

    def _series(self, taus: ArrayLike | None) -> np.ndarray | None:
        """The forces of each step, if there are any."""
        if taus is None:
            return None
        whole = self.robot._argument("tau", taus)._replace(name="taus")
        series = broadcast(self.where, [whole])["taus"]
        if series.ndim < 2 or not len(series):
            raise ArgumentError(
                f"{self.where}: taus has shape {series.shape}; expected (steps, …, "
                f"{self.robot.nv}), joint forces for each step"
            )
        return series

    def _count(self, duration: float | None, series: np.ndarray | None) -> tuple[int, float]:
        """How many steps there are, and how long the last is: the motion ends at the duration."""
        if duration is None and series is not None:
            return len(series), self.dt
        length = check_number(
            self.where, "duration", 1.0 if duration is None else duration, above=0
        )
        steps, whole = ceil(length / self.dt), round(length / self.dt)
        # as many as there are but for rounding: 0.3 s are three steps of 0.1 s
        even = abs(length / self.dt - whole) <= _SAME * whole
        steps, last = (whole, self.dt) if even else (steps, length - (steps - 1) * self.dt)
        if series is not None and len(series) != steps:
            raise ArgumentError(
                f"{self.where}: taus has shape {series.shape}; expected ({steps}, …, "
                f"{self.robot.nv}), joint forces for each step of dt = {self.dt} in duration = "
                f"{length}; leave out duration for as many steps as there are taus"
            )
        return steps, last

    def _together(
        self, arguments: list[Argument], series: np.ndarray | None
    ) -> dict[str, np.ndarray]:
        """The arguments, broadcast; the forces of each step along with those of the first."""
        if series is None:
            return broadcast(self.where, arguments)
        first = self.robot._argument("tau", series[0])._replace(name="taus")
        found = broadcast(self.where, [*arguments, first])
        bad = np.argwhere(~np.isfinite(series))
        if found["q"].ndim == 1 and len(bad):
            step, entry = bad[0]
            raise ArgumentError(
                f"{self.where}: taus[{step}, {entry}] is {series[step, entry]}; expected finite "
                f"numbers"
            )
        return {**found, "taus": series}

    @property
    def times(self) -> np.ndarray:
        """When the states that are kept are met."""
        ends = self.dt * np.arange(self.steps + 1)
        if self.last != self.dt:
            ends[-1] = ends[-2] + self.last
        return ends[:: self.every]

    def _length(self, i: int) -> float:
        """The length of step i."""
        return self.dt if i < self.steps - 1 else self.last

    # in one kernel

    def obstacle(self) -> str:
        """Why this run cannot be one kernel, or nothing."""
        n = len(self.robot.body_names)
        if n > MOST_UNROLLED:
            return f"the robot has {n} bodies, and a kernel with a time loop takes {MOST_UNROLLED}"
        if self.function is not None:
            found = traced_force(self.robot, self.function, batch=self.lead != ())
            if isinstance(found, str):
                return f"tau cannot be traced. {found}"
            self.program = found
        return ""

    def in_one_kernel(self) -> tuple[np.ndarray, np.ndarray]:
        """q and q̇ at all times, by machine code."""
        robot, given = self.robot, self.given
        names = [n for n in ("taus", "tau", "f_ext", *PARAMETERS) if n in given]
        ways = robot, self.method, names, self.function, self.program, self.constraints
        kernel = motion_kernel(*ways)
        arrays = {**given, "t": self.dt * np.arange(self.steps), "dt": np.array(self.dt)}
        arrays |= {f"memory{i}": x for i, x in enumerate(self.memory())}
        rows = (len(self.times), *self.lead)
        results = [np.empty((*rows, n), robot.dtype) for n in (robot.nq, robot.nv)]
        for x, name in zip(results, ("q", "qd"), strict=True):
            x[0] = given[name]
        self._fill(kernel, [x[1:] for x in results], arrays)
        self._refuse_forces_that_are_not_finite(*results)
        self._refuse_what_is_not_finite(*results)
        return results[0], results[1]

    def _fill(
        self, kernel: Rollout, results: Sequence[np.ndarray], arrays: dict[str, np.ndarray]
    ) -> None:
        """All steps; the last by itself if it is shorter and what it gives is kept."""
        dtype, even = self.robot.dtype, self.last == self.dt
        given = {n: np.asarray(arrays[n], dtype) for n in kernel.shapes}
        steps = self.steps if even else self.steps - 1
        rows = [x[: steps // self.every] for x in results]
        ends = kernel.fill(rows, list(given.values()), self.lead, steps, self.every)
        if not even and self.steps % self.every == 0:
            given |= {n: given[n][-1:] for n in ("t", "taus") if n in given}
            given |= {"dt": np.array(self.last, dtype), **dict(zip(given, ends, strict=False))}
            kernel.fill([x[-1:] for x in results], list(given.values()), self.lead, 1, 1)

    def _refuse_forces_that_are_not_finite(self, q: np.ndarray, qd: np.ndarray) -> None:
        """Of a law in a single run: what it makes of the last state that was finite."""
        finite = np.isfinite(qd).all(axis=-1)
        if self.lead == () and self.program is not None and not finite.all():
            row = int(np.argmin(finite)) - 1
            for t in self.times[row : row + 2]:
                force = self._law(t, q[row], qd[row])
                for i in np.flatnonzero(~np.isfinite(force)):
                    raise ArgumentError(
                        f"{self.where}: tau[{i}] is {force[i]} at t = {t:g}; expected finite "
                        f"numbers"
                    )

    def _refuse_what_is_not_finite(self, q: np.ndarray, qd: np.ndarray) -> None:
        """In a single run; in a batch, such a sample is NaN from there on."""
        if self.lead == () and not np.isfinite(qd).all():
            row = int(np.argmax(~np.isfinite(qd).all(axis=-1)))
            M = self.robot.mass_matrix(q[row - 1])
            if joint := loose_joint(self.robot.mechanism, M):
                raise SingularError(why_singular(f"{self.where}, t = {self.times[row]:g}", joint))
            raise SingularError(
                f"{self.where}: the motion is not finite at t = {self.times[row]:g}: the step dt = "
                f"{self.dt:g} is too long for it; take shorter steps"
            )

    # step by step

    def stepped(self) -> tuple[np.ndarray, np.ndarray]:
        """q and q̇ at all times, by calls from Python."""
        way = METHODS[self.method]
        q, qd = self.given["q"], self.given["qd"]
        kept = [(q, qd)]
        memory = self.memory()
        for i in progress(range(self.steps), self.where):
            force = partial(self.force, i)
            system = Called(self.robot, force, self.given.get("f_ext"), self.constraints)
            for stage in way.stages:
                now = i * self.dt, self._length(i), q, qd, memory, stage
                q, qd, memory = way.advance(system, *now)
            if (i + 1) % self.every == 0:
                kept.append((q, qd))
        qs, qds = (np.array(column, self.robot.dtype) for column in zip(*kept, strict=True))
        return qs, qds

    def memory(self) -> tuple[np.ndarray, ...]:
        """What the method starts with."""
        way, q, qd = METHODS[self.method], self.given["q"], self.given["qd"]
        if way.begin is None:
            return (np.zeros(self.lead + (self.robot.nv,)),) * way.memory
        system = Called(self.robot, partial(self.force, 0), None, ())
        return way.begin(system, q, qd)

    def force(self, i: int, t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """τ + τ(t, q, q̇) + τ_i: (…, nv)."""
        total = self.given["tau"] if "tau" in self.given else np.zeros(qd.shape)
        if "taus" in self.given:
            total = total + self.given["taus"][i]
        return total if self.function is None else total + self.called(t, q, qd)

    def called(self, t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """What the function gives, checked."""
        value = self.function(t, q, qd) if self.function is not None else 0.0
        if value is None:
            raise ArgumentError(f"{self.where}: tau gave None; does the function end in return?")
        if any(isinstance(x, Node) for x in _flat(value)):
            raise ArgumentError(
                f"{self.where}: tau has kept symbols from the attempt to trace it; a law with a "
                f"memory of its own needs compiled=False"
            )
        pair = [self.robot._argument("tau", value), self.robot._argument("qd", qd)]
        total = broadcast(self.where, pair)["tau"]
        if total.shape != qd.shape:
            raise ArgumentError(
                f"{self.where}: tau has leading shape {total.shape[:-1]}; the motion has "
                f"{qd.shape[:-1]}"
            )
        return total

    # afterwards

    def forces(self, qs: np.ndarray, qds: np.ndarray) -> np.ndarray:
        """The joint forces at all times, those of the last step also at its end."""
        total = np.zeros_like(qds)
        if "tau" in self.given:
            total += self.given["tau"]
        if "taus" in self.given:
            taus = self.given["taus"]
            last = np.minimum(np.arange(0, self.steps + 1, self.every), self.steps - 1)
            total += taus[last].reshape(len(last), *(1,) * (qds.ndim - taus.ndim), *taus.shape[1:])
        if self.program is not None:
            t = self.times.reshape(-1, *(1,) * len(self.lead))
            total += self._law(t, qs, qds)
        elif self.function is not None:
            total += [self.called(*now) for now in zip(self.times, qs, qds, strict=True)]
        return total

    @cached_property
    def _law(self) -> Kernel:
        """The traced law as a kernel of its own."""
        return Kernel(self.program, "tau", dtype=self.robot.dtype)


def _check_law(where: str, law: Callable[..., Any]) -> Callable[..., Any]:
    """The law, if it can be called with (t, q, qd), as far as one can tell."""
    try:
        form = signature(law)
    except (TypeError, ValueError):
        return law
    try:
        form.bind(0.0, None, None)
    except TypeError:
        raise ArgumentError(
            f"{where}: tau is a function of {form}; expected one of (t, q, qd) of one sample"
        ) from None
    return law


def _flat(value: Any) -> Iterator[Any]:
    """The entries of nested lists and arrays, ragged ones too."""
    if isinstance(value, np.ndarray):
        yield from value.flat
    elif isinstance(value, (list, tuple)):
        for x in value:
            yield from _flat(x)
    else:
        yield value
