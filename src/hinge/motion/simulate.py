"""A simulator: steps on the joint manifolds, as long as they are told or as long as they may be.

Where everything that acts can be traced, all steps run in one kernel; otherwise step by step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from inspect import signature
from math import ceil, prod
from typing import Any, Literal, Unpack

import numpy as np
from numpy.typing import ArrayLike

from ..algorithms.constrained.description import Constraint, as_constraints
from ..algorithms.singular import loose_joint, why_singular
from ..errors import ArgumentError, SingularError, TraceError, TraceWarning, warn
from ..functions.reducing import kept_form, measured
from ..functions.reductions import Reduction
from ..graph.program import Program
from ..model.parameters import PARAMETERS
from ..robot import Robot, check_robot
from ..robot.gaps import warn_of_open_loops
from ..robot.method import Numbers, unknown_argument
from ..robot.through_host import through_host
from ..runtime.check import check_choice, check_number
from ..runtime.kernel import Kernel
from ..runtime.progress import progress
from ..runtime.rollout import Rollout
from ..specialize.routing import MOST_UNROLLED
from .adaptive import (
    Tolerance,
    Travelled,
    Trip,
    called_step,
    check_tolerance,
    kernel_step,
    rows,
)
from .dense import EventFunction, Stretches, crossings, end_of, event_functions
from .given import refuse_a_series, series_of, step_count, together
from .ground import Ground
from .integrators import METHODS, Integrator, integrator
from .laws import Law, check_law, law_value
from .steps import Called, motion_kernel, traced_force
from .stops import pace_of
from .surroundings import (
    Surroundings,
    refuse_points_that_nothing_presses,
    surroundings_of,
    warn_of_cut_off_forces,
)
from .trajectory import Trajectory
from .watch import rank_at, warn_of_lost_loops

__all__ = ["simulate"]

Method = Literal[
    "rk4",
    "semi_implicit_euler",
    "implicit_midpoint",
    "joint_midpoint",
    "variational",
    "adaptive",
]
Event = Callable[[float, np.ndarray, np.ndarray], Any]
Force = ArrayLike | Callable[[float, np.ndarray, np.ndarray], ArrayLike]


@through_host
def simulate(
    robot: Robot,
    q: ArrayLike,
    qd: ArrayLike | None = None,
    tau: Force | None = None,
    duration: float | None = None,
    dt: float = 1e-3,
    method: Method | None = None,
    f_ext: ArrayLike | None = None,
    constraints: Sequence[Constraint] | None = None,
    taus: ArrayLike | None = None,
    every: int | None = None,
    compiled: bool | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    max_steps: int | None = None,
    events: Event | Sequence[Event] = (),
    ground: Ground | None = None,
    limits: bool = True,
    assemble: bool = False,
    keep: Mapping[str, Reduction] | None = None,
    **numbers: Unpack[Numbers],
) -> Trajectory:
    """Move the robot from (q, qd) under joint forces for a duration, in steps of dt.

    duration: in seconds; None for as many steps as there are taus, or without them for 1 s.  If it
    is no whole number of steps the last is shorter, and the motion ends where it should.
    tau: (…, nv), constant, or a function of (t, q, qd) of one sample that gives (nv,).
    taus: (steps, …, nv), one for each step and held during it; tau and taus add up.
    Springs, damping and Coulomb friction of the joints act besides.  f_ext acts throughout;
    constraints close loops, None for those of the robot; ground: a `hinge.Ground` under some points
    of the robot, the forces on which are in `.forces`.
    limits: stops push back at the limits of joints, and tau and taus together are cut off at their
    effort limits, which a `ModelWarning` then says; False leaves out both.
    assemble: start from the nearest state that keeps the constraints (`robot.assemble`); one that
    does not close raises, in a batch it is NaN.
    method: "rk4", the default, of fourth order on every joint; "variational", of second order,
    which keeps momentum to rounding and the energy of conservative motions bounded;
    "implicit_midpoint", of second order in total rates, whose kinetic energy changes by the work of
    the forces and by nothing else, to rounding; "joint_midpoint", the same in joint rates;
    "semi_implicit_euler", of first order, the cheapest: its energy drifts wherever M depends on q;
    the default, and the only one, on rigid ground;
    "adaptive", of fifth order, whose steps are as long as rtol (1e-6) and atol (1e-9) allow: dt is
    the time between the states that are given back, max_steps how many steps it may try (200 000;
    20 000 where tau is called).
    every: of how many steps one is kept; None for all, with keep for the last alone.
    keep: reductions by name, such as {"peak": hinge.Max(lambda qd: qd @ qd)}, of functions of t, q
    and qd of one sample after each step, to be read in `.kept`.
    events: functions of (t, q, qd) of one sample whose zeros are found, to be read in `.events`;
    with an attribute `direction` only those where it grows (1) or falls (−1), and with `terminal`
    the motion ends there.
    compiled: None runs all steps in one kernel if tau can be traced, and else calls it, for the
    whole batch at once, in every step; True insists on the one, False on the other.
    numbers: gravity, inertia, placement of the mechanism, other than its own, with any leading
    shape; see `hinge.model.parameters`.
    """
    check_robot("simulate", robot)
    for name in (n for n in numbers if n not in PARAMETERS):
        known = [*list(signature(simulate).parameters)[1:-1], *PARAMETERS]
        raise ArgumentError(f"simulate {robot.name!r}: {unknown_argument(name, known)}")
    robot = robot._with_numbers(numbers) if numbers else robot
    acting = {"f_ext": f_ext, **numbers}
    where = f"simulate {robot.name!r}"
    held = robot.constraints if constraints is None else as_constraints(where, constraints)
    around = surroundings_of(where, robot, ground, limits)
    method = method or ("semi_implicit_euler" if around.rigid else "rk4")
    run = _Run(robot, q, qd, tau, taus, acting, held, around, duration, dt, method, every, keep)
    run.refuse_on_rigid_ground()
    tolerance = check_tolerance(run.where, robot, method, rtol, atol, max_steps)
    wanted = event_functions(run.where, robot, events, run.lead != ())
    run.refuse_every(wanted)
    run.close(check_choice(where, "assemble", assemble, (True, False)))
    why = run.obstacle() if compiled is not False else "compiled is False" if run.kept else ""
    if why and (compiled or run.kept):
        told = ", and keep needs that" if run.kept else ""
        raise TraceError(f"{run.where}: it cannot be compiled as one kernel{told}: {why}")
    run.slow = "" if compiled is False else why
    motion = run.trajectory(compiled is not False and not why, tolerance, wanted)
    run.watch(motion)
    return motion


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
        constraints: tuple[Constraint, ...],
        around: Surroundings,
        duration: float | None,
        dt: float,
        method: str,
        every: int | None,
        keep: Mapping[str, Reduction] | None,
    ) -> None:
        where = self.where = f"simulate {robot.name!r}"
        self.robot, self.constraints, self.around = robot, constraints, around
        self.method = check_choice(where, "method", method, tuple(METHODS))
        if constraints and method in ("implicit_midpoint", "variational"):
            raise ArgumentError(
                f"{where}: method {method!r} knows no loop constraints; take 'joint_midpoint'"
            )
        self.dt = check_number(where, "dt", dt, above=0)
        series = series_of(where, robot, taus)
        self.steps, self.last = step_count(where, robot, self.dt, duration, series)
        shapes = {"t": (), "q": (robot.nq,), "qd": (robot.nv,)}
        self.kept = {} if keep is None else measured(where, keep, shapes, ())
        self.reduced: list[np.ndarray] = []
        if every is None:
            every = self.steps if self.kept else 1
        self.every = int(check_number(where, "every", every, above=0))
        if self.every != every or self.every > self.steps:
            raise ArgumentError(
                f"{where}: every is {every}; expected a whole number, of the {self.steps} steps"
            )
        start = {"q": q, "qd": np.zeros(robot.nv) if qd is None else qd}
        start |= {} if tau is None or callable(tau) else {"tau": tau}
        start |= {n: x for n, x in acting.items() if x is not None}
        refuse_a_series(where, robot, start, duration, self.steps)
        self.given = together(where, robot, start, series)
        self.lead = self.given["q"].shape[:-1]
        self.function = check_law(where, tau) if callable(tau) else None
        self.program: Program | None = None
        self.law: Kernel | None = None
        self.pace = pace_of(method, self.dt)
        self.touched: list[np.ndarray] = []
        # why steps are taken from Python although nobody asked for that, until it is said
        self.slow = ""

    def close(self, assemble: bool) -> None:
        """Start from closed loops, or say that they are open."""
        robot, given, loops = self.robot, self.given, self.constraints
        if not assemble:
            if "placement" not in given:
                warn_of_open_loops(robot.mechanism, self.where, loops, given["q"])
            return
        numbers: Any = {n: given[n] for n in PARAMETERS if n in given}
        found = robot._with_numbers({}).assemble(given["q"], loops, given["qd"], **numbers)
        if self.lead == () and not found.closed:
            raise SingularError(
                f"{self.where}: the loops cannot be closed from here: {found}; start elsewhere, or "
                f"look at what robot.assemble gives"
            )
        fine = np.asarray(found.closed)[..., None]
        given |= {"q": np.where(fine, found.q, np.nan), "qd": np.where(fine, found.qd, np.nan)}

    def watch(self, motion: Trajectory) -> None:
        """Say if loops or the energy were lost on the way."""
        given, acting = self.given, {"tau", "taus", "f_ext", *PARAMETERS}
        joints = [b.joint for b in self.robot.mechanism.bodies]
        free = self.function is None and not acting & {*given}
        free = free and self.around.ground is None and not self.around.stops
        free = free and not any(np.any(j.damping) or np.any(j.friction) for j in joints)
        if self.constraints and "placement" not in given:
            loops = self.constraints
            warn_of_lost_loops(self.robot, self.where, loops, motion.q, motion.qd, free)

    def refuse_every(self, wanted: Sequence[EventFunction]) -> None:
        """Where every step is looked at, or none is there to be counted."""
        if self.kept and (wanted or self.method == "adaptive"):
            raise ArgumentError(
                f"{self.where}: keep goes with steps of dt in one kernel; events and method "
                f"'adaptive' do not: leave one of them out"
            )
        if self.every > 1 and (wanted or self.method == "adaptive"):
            raise ArgumentError(
                f"{self.where}: every is {self.every}; events and method 'adaptive' look at every "
                f"step: leave it out, and take every so many of what is given back"
            )
        if self.method == "adaptive" and "taus" in self.given:
            raise ArgumentError(
                f"{self.where}: taus are held for steps of dt, and method 'adaptive' chooses its "
                f"own; give a law tau of (t, q, qd)"
            )

    def refuse_on_rigid_ground(self) -> None:
        """What rigid ground does not go with."""
        if not self.around.rigid:
            return
        if self.method != "semi_implicit_euler":
            raise ArgumentError(
                f"{self.where}: method is {self.method!r}, and rigid ground is solved for in steps "
                f"of 'semi_implicit_euler'; leave it out, or take a ground with law='compliant'"
            )
        start = self.where, self.robot, self.around.ground, self.given["q"]
        refuse_points_that_nothing_presses(*start)
        if self.constraints:
            raise ArgumentError(
                f"{self.where}: constraints and rigid ground are not solved for together; take a "
                f"ground with law='compliant'"
            )
        if len(self.robot.body_names) > MOST_UNROLLED:
            raise ArgumentError(
                f"{self.where}: the robot has {len(self.robot.body_names)} bodies, and rigid "
                f"ground takes {MOST_UNROLLED}; take a ground with law='compliant'"
            )

    @property
    def way(self) -> Integrator:
        """The method, as it is with constraints or without."""
        return integrator(self.method, bool(self.constraints))

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

    def trajectory(
        self, one_kernel: bool, tolerance: Tolerance | None, wanted: Sequence[EventFunction]
    ) -> Trajectory:
        """The motion, cut where a terminal event happens."""
        robot, counts, pieces = self.robot, [], None
        if self.function is None:
            self._say_that_it_is_slow()
        if tolerance is None:
            qs, qds = self.in_one_kernel() if one_kernel else self.stepped()
            pieces = self._stretches(qs, qds) if wanted else None
        else:
            trip = self._travel(one_kernel, tolerance, [e for e in wanted if e.terminal])
            pieces, counts = trip.pieces, [x.reshape(self.lead) for x in trip[1:]]
            qs, qds = rows(robot, pieces, self.times, self.lead)
            qs[0], qds[0] = self.given["q"], self.given["qd"]
        found = () if pieces is None else tuple(crossings(robot, pieces, e) for e in wanted)
        if end := end_of(found, wanted):
            t, q, qd = end
            found = tuple(c.until(t) for c in found)
            self.steps = max(1, ceil(t / self.dt))
            self.last = t - (self.steps - 1) * self.dt
            qs, qds = (np.concatenate([x[: self.steps], y[None]]) for x, y in ((qs, q), (qds, qd)))
        taken, rejected = counts or (None, None)
        forces, residual = self._on_ground(qs, qds)
        seen = robot, self.times, qs, qds, self.forces(qs, qds), found, taken, rejected
        return Trajectory(*seen, self.around.ground, forces, residual, self._finished())

    def _finished(self) -> Any:
        """What was kept, if anything."""
        if not self.kept:
            return None
        pairs = zip(self.kept.values(), self.reduced, strict=True)
        results = [m.finish(total, self.steps) for m, total in pairs]
        return kept_form(tuple(self.kept))(*results)

    def _on_ground(self, qs: np.ndarray, qds: np.ndarray) -> tuple[Any, Any]:
        """The forces on the points of the ground at all times and, if they were solved for, how
        well.
        """
        if self.around.ground is None:
            return None, None
        if self.around.rigid:
            return self.touched[0][: len(qs)], self.touched[1][: len(qs)]
        return self.around.ground.called(self.robot, qs, qds).forces, None

    # in one kernel

    def obstacle(self) -> str:
        """Why this run cannot be one kernel, or nothing."""
        n, mech = len(self.robot.body_names), self.robot.mechanism
        unlike = [n for n in PARAMETERS if n in self.given] or list(self.constraints)
        if n > MOST_UNROLLED and (unlike or mech.has_followers):
            what = "constraints, joints that mimic others or numbers of the mechanism given besides"
            return f"the robot has {n} bodies: more than {MOST_UNROLLED} with {what} are no loop"
        if self.function is not None:
            found = traced_force(self.robot, self.function, batch=self.lead != ())
            if isinstance(found, str):
                return f"tau cannot be traced. {found}"
            self.program, self.law = found, Kernel(found, "tau", dtype=self.robot.dtype)
        return ""

    def in_one_kernel(self) -> tuple[np.ndarray, np.ndarray]:
        """q and q̇ at all times, by machine code."""
        robot, given = self.robot, self.given
        names = [n for n in ("taus", "tau", "f_ext", *PARAMETERS) if n in given]
        ways = robot, self.method, names, self.program, self.constraints
        kernel = motion_kernel(*ways, self.around, self.kept)
        arrays = {**given, **self._constants, "t": self.dt * np.arange(self.steps)}
        arrays |= {f"{n} so far": m.start(robot.dtype) for n, m in self.kept.items()}
        arrays |= {f"memory{i}": x for i, x in enumerate(self.memory())}
        results = self._rows(len(self.times))
        ends = self._fill(kernel, [x[1:] for x in results], arrays)
        self._reduce(kernel, ends)
        self._refuse_forces_that_are_not_finite(*results[:2])
        self._refuse_what_is_not_finite(*results[:2])
        return self._with_start(results)

    @property
    def _constants(self) -> dict[str, np.ndarray]:
        """What a kernel takes besides what was given."""
        points = len(self.around.ground.points) if self.around.ground else 0
        still = np.zeros((*self.lead, points, 3))
        return {"dt": np.array(self.dt), "pace": np.array(self.pace), "forces": still}

    def _rows(self, count: int) -> list[np.ndarray]:
        """Room for q, q̇ and, on rigid ground, forces and residuals; the first is the start."""
        dtype, rows = self.robot.dtype, (count, *self.lead)
        results = [np.empty((*rows, n), dtype) for n in (self.robot.nq, self.robot.nv)]
        for x, name in zip(results, ("q", "qd"), strict=True):
            x[0] = self.given[name]
        if self.around.rigid:
            still = self._constants["forces"]
            results += [np.empty((count, *still.shape), dtype), np.empty(rows, dtype)]
        return results

    def _with_start(self, results: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """q and q̇; forces at the start are those of the first step that was kept."""
        self.touched = results[2:]
        for x in self.touched:
            x[0] = x[1]
        return results[0], results[1]

    def _fill(
        self, kernel: Rollout, results: Sequence[np.ndarray], arrays: dict[str, np.ndarray]
    ) -> list[np.ndarray]:
        """All steps, the last by itself if it is shorter and what it gives is kept; the states
        after it.
        """
        dtype, even = self.robot.dtype, self.last == self.dt
        given = {n: np.asarray(arrays[n], dtype) for n in kernel.shapes}
        steps = self.steps if even else self.steps - 1
        rows = [x[: steps // self.every] for x in results]
        ends = kernel.fill(rows, list(given.values()), self.lead, steps, self.every)
        due = self.steps % self.every == 0
        if not even and (due or self.kept):
            given |= {n: given[n][-1:] for n in ("t", "taus") if n in given}
            given |= {"dt": np.array(self.last, dtype), **dict(zip(given, ends, strict=False))}
            rows = [x[len(x) - due :] for x in results]
            ends = kernel.fill(rows, list(given.values()), self.lead, 1, 1 if due else 2)
        return ends

    def _reduce(self, kernel: Rollout, ends: Sequence[np.ndarray]) -> None:
        """What reductions came to; NaN for a sample whose state is not finite."""
        if not self.kept:
            return
        states = dict(zip(kernel.shapes, ends, strict=False))
        fine = np.isfinite(states["q"]).all(axis=-1) & np.isfinite(states["qd"]).all(axis=-1)
        self.reduced = [states[f"{n} so far"] for n in self.kept]
        for total in self.reduced:
            total[~fine] = np.nan

    def _refuse_forces_that_are_not_finite(self, q: np.ndarray, qd: np.ndarray) -> None:
        """Of a law in a single run: what it makes of the last state that was finite."""
        finite = np.isfinite(qd).all(axis=-1)
        if self.lead == () and self.law is not None and not finite.all():
            row = int(np.argmin(finite)) - 1
            for t in self.times[row : row + 2]:
                force = self.law(t, q[row], qd[row])
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
                f"{rank_at(self.robot, self.constraints, q[row - 1])}"
            )

    # step by step

    def stepped(self) -> tuple[np.ndarray, np.ndarray]:
        """q and q̇ at all times, by calls from Python."""
        if self.around.rigid:
            return self._stepped_on_rigid_ground()
        way, q, qd = self.way, self.given["q"], self.given["qd"]
        kept = [(q.copy(), qd.copy())]
        memory = self.memory()
        for i in progress(range(self.steps), self.where):
            force = partial(self.force, i)
            system = self._system(force)
            for stage in way.stages:
                now = i * self.dt, self._length(i), q, qd, memory, stage
                q, qd, memory = way.advance(system, *now)
            if (i + 1) % self.every == 0:
                # a method may write into the state that it gets
                kept.append((q.copy(), qd.copy()))
        qs, qds = (np.array(column, self.robot.dtype) for column in zip(*kept, strict=True))
        return qs, qds

    def _system(self, force: Any) -> Called:
        """The robot under a force, and under all that acts besides."""
        acting = self.given.get("f_ext"), self.constraints, self.around, self.pace
        return Called(self.robot, force, *acting)

    def _stepped_on_rigid_ground(self) -> tuple[np.ndarray, np.ndarray]:
        """The same where a step is a kernel, and only the joint forces come from Python."""
        names = [n for n in ("f_ext", *PARAMETERS) if n in self.given]
        kernel = motion_kernel(self.robot, self.method, ["tau", *names], None, (), self.around)
        results, room = self._rows(len(self.times)), self._rows(2)
        arrays = {**self._constants, **self.given}
        for i in progress(range(self.steps), self.where):
            tau = self.force(i, i * self.dt, arrays["q"], arrays["qd"])
            arrays |= {"tau": tau, "t": np.array([i * self.dt]), "dt": np.array(self._length(i))}
            given = [np.asarray(arrays[n], self.robot.dtype) for n in kernel.shapes]
            ends = kernel.fill([x[1:] for x in room], given, self.lead, 1, 1)
            arrays |= dict(zip(kernel.shapes, ends, strict=False))
            if (i + 1) % self.every == 0:
                for x, now in zip(results, room, strict=True):
                    x[(i + 1) // self.every] = now[1]
        return self._with_start(results)

    def memory(self) -> tuple[np.ndarray, ...]:
        """What the method starts with."""
        way, q, qd = self.way, self.given["q"], self.given["qd"]
        if way.begin is None:
            return (np.zeros(self.lead + (self.robot.nv,)),) * way.memory
        return way.begin(self._system(partial(self.force, 0)), q, qd)

    def force(self, i: int, t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """τ + τ(t, q, q̇) + τ_i within the effort limits: (…, nv)."""
        total = self.given["tau"] if "tau" in self.given else np.zeros(qd.shape)
        if "taus" in self.given:
            total = total + self.given["taus"][i]
        if self.function is not None:
            total = total + self.called(self.function, t, q, qd)
        return self.around.driven_called(total)

    def called(self, law: Law, t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """What the function gives, checked."""
        if self.law is not None:
            return self.law(t, q, qd)
        value = law_value(self.where, self.robot, law, t, q, qd)
        # not of a law that is wrong
        self._say_that_it_is_slow()
        return value

    def _say_that_it_is_slow(self) -> None:
        if self.slow:
            warn(
                f"{self.where}: every step is taken from Python, hundreds of times slower than in "
                f"a kernel: {self.slow}; compiled=False takes it so without this warning",
                TraceWarning,
            )
        self.slow = ""

    # with steps of any length

    def _travel(
        self, one_kernel: bool, tolerance: Tolerance, ends: Sequence[EventFunction]
    ) -> Travelled:
        """The motion in steps that the tolerance allows, to where a terminal event happens."""
        robot, given, count = self.robot, self.given, prod(self.lead)
        flat = (np.reshape(x, (count, -1)) for x in (given["q"], given["qd"], *self.memory()))
        q, qd, *memory = (x.astype(robot.dtype) for x in flat)
        names = [n for n in ("tau", "f_ext", *PARAMETERS) if n in given]
        if one_kernel:
            ways = robot, self.method, names, self.program, self.constraints
            acting = {n: given[n].reshape(count, *given[n].shape[len(self.lead) :]) for n in names}
            acting["pace"] = np.array(self.pace)
            step = kernel_step(motion_kernel(*ways, self.around), robot, acting)
        else:
            system = self._system(partial(self.force, 0))
            step = called_step(system, self.way, self.lead)

        def enough(part: Stretches) -> bool:
            return len(part.t) > 0 and any(len(crossings(robot, part, e).t) for e in ends)

        # numbers of the mechanism have the leading shape that is flat here
        plain, state = robot._with_numbers({}), (q, qd, memory)
        trip = Trip(self.where, plain, step, state, self.times[-1], tolerance)
        return trip.until(enough, together=not one_kernel)

    # afterwards

    def _stretches(self, qs: np.ndarray, qds: np.ndarray) -> Stretches:
        """The motion from step to step, with the accelerations at both ends of each."""
        base, count = self._own_forces(qs, qds), prod(self.lead)
        held = self._held(np.arange(self.steps), qds) if "taus" in self.given else 0.0
        parts = []
        for side in (slice(-1), slice(1, None)):
            q, qd, tau = qs[side], qds[side], self.around.driven_called(base[side] + held)
            system = self._system(lambda t, q, qd, tau=tau: tau)
            parts += [q, qd, system.acceleration(0.0, q, qd)]
        t, h = self.times[:-1], np.diff(self.times)
        every = np.tile(np.arange(count), len(t)), np.repeat(t, count), np.repeat(h, count)
        return Stretches(*every, *(x.reshape(len(t) * count, x.shape[-1]) for x in parts))

    def forces(self, qs: np.ndarray, qds: np.ndarray) -> np.ndarray:
        """The joint forces at all times, those of the last step also at its end."""
        total = self._own_forces(qs, qds)
        if "taus" in self.given:
            steps = np.arange(0, self.steps + 1, self.every)
            total += self._held(np.minimum(steps, self.steps - 1), qds)
        if self.around.efforts is None or not (
            self.given.keys() & {"tau", "taus"} or self.function
        ):
            return total
        warn_of_cut_off_forces(self.where, self.robot, total)
        return self.around.driven_called(total)

    def _own_forces(self, qs: np.ndarray, qds: np.ndarray) -> np.ndarray:
        """Those that are not given for each step."""
        total = np.zeros_like(qds)
        if "tau" in self.given:
            total += self.given["tau"]
        if self.law is not None:
            t = self.times.reshape(-1, *(1,) * len(self.lead))
            total += self.law(t, qs, qds)
        elif self.function is not None:
            rows = zip(self.times, qs, qds, strict=True)
            total += [self.called(self.function, *now) for now in rows]
        return total

    def _held(self, steps: np.ndarray, qds: np.ndarray) -> np.ndarray:
        """Those that are given for each step."""
        taus = self.given["taus"]
        return taus[steps].reshape(len(steps), *(1,) * (qds.ndim - taus.ndim), *taus.shape[1:])
