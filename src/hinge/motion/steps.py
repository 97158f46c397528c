"""A robot in motion, as integrators see it: traced into a kernel, or called step by step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from .. import algorithms
from ..algebra.small import is_masked
from ..algorithms.configuration import (
    arriving,
    departing,
    from_middle,
    precise_rate,
    to_middle,
)
from ..algorithms.constrained.description import Constraint
from ..errors import ArgumentError
from ..functions.reducing import Measured, updated
from ..graph.functions import where
from ..graph.interpret import interpret
from ..graph.program import Program, running, trace
from ..graph.relay import Call, trace_relay
from ..graph.scan import Scan
from ..model.mechanism import Mechanism
from ..model.parameters import PARAMETERS, with_parameters
from ..robot import Robot
from ..robot.answers import known_key
from ..robot.sweeps import Sweeps
from ..runtime.rollout import Rollout
from ..specialize.arrays import array_shape
from ..specialize.canonical import Reframed, canonical
from ..specialize.programs import is_long
from .ground import Ground
from .implicit import softened
from .integrators import Integrator, integrator
from .laws import source_line
from .rigid import Stepped
from .surroundings import NOTHING, Surroundings, moved_spots

__all__ = ["Called", "SweepCall", "Traced", "by_programs", "motion_kernel", "traced_force"]

Force = Callable[[Any, Any, Any], Any]
# a sweep on arrays; what it gives
SweepCall = Callable[..., tuple[Any, ...]]


class Traced:
    """The system on traced scalars, from the generic algorithms.

    call: stands for a sweep that takes and gives arrays; then sweeps are loops over bodies.
    """

    def __init__(
        self,
        mech: Mechanism,
        force: Force,
        f_ext: Any,
        constraints: Sequence[Constraint],
        numbers: dict[str, Any],
        around: Surroundings = NOTHING,
        pace: Any = None,
        call: SweepCall | None = None,
        sweeps: Sweeps | None = None,
    ) -> None:
        self.mech, self.force, self.constraints = mech, force, constraints
        self.around, self.pace, self.call, self.sweeps = around, pace, call, sweeps or Sweeps()
        # numbers that come with the samples are those of the frames given, and so are programs
        same = numbers or call
        self.form = Reframed.same(with_parameters(mech, **numbers)) if same else canonical(mech)
        self.given = None if f_ext is None else self.form.forces(f_ext)

    def total(self, t: Any, q: Any, qd: Any) -> Any:
        """The joint forces, those of springs, losses and stops among them."""
        own = algorithms.passive_forces(self.mech, q, qd)
        return self.force(t, q, qd) + own + self.around.stopped(self.mech, q, qd, self.pace)

    def f_ext(self, q: Any, qd: Any) -> Any:
        """The forces on the bodies, those of the ground among them."""
        return self.around.f_ext(self.mech, self.form, self.given, q, qd)

    def acceleration(self, t: Any, q: Any, qd: Any) -> Any:
        """As in `System`."""
        tau = self.total(t, q, qd)
        state = {"q": q, "qd": qd, "tau": tau, "f_ext": self.f_ext(q, qd)}
        if self.constraints:
            static = {"constraints": tuple(self.constraints)}
            return self.swept("constrained_forward_dynamics", static=static, **state)[0]
        return self.swept("forward_dynamics", **state)

    def continued(self, t: Any, q: Any, qd: Any, before: Any, span: Any) -> Any:
        """As in `System`."""
        if not self.constraints:
            return self.acceleration(t, q, qd)
        tau, static = self.total(t, q, qd), {"constraints": tuple(self.constraints)}
        state = {"q": q, "qd": qd, "tau": tau, "qdd_before": before, "span": span}
        f_ext = self.f_ext(q, qd)
        return self.swept("continued_dynamics", static=static, **state, f_ext=f_ext)

    def swept(
        self,
        name: str,
        mech: Mechanism | None = None,
        static: Mapping[str, Any] | None = None,
        **arrays: Any,
    ) -> Any:
        """What an algorithm gives, of this mechanism or another in the same frames."""
        own, told = mech or self.form.mechanism, dict(static or {})
        if self.call is None:
            return getattr(algorithms, name)(own, **arrays, **told)
        given = {n: x for n, x in arrays.items() if x is not None}
        parts = self.call(self.sweeps.of(own, name, tuple(given), told), *given.values())
        return parts[0] if len(parts) == 1 else parts

    def on_rigid_ground(
        self, ground: Ground, t: Any, h: Any, q: Any, qd: Any, forces: Any
    ) -> Stepped:
        """A whole step of semi-implicit Euler, the ground's forces solved for."""
        spots = moved_spots(ground.spots(self.mech), self.form)
        soft, own = softened(self.mech, self.form.mechanism, q, qd, h)
        stopped = self.around.stopped(self.mech, q, qd, self.pace)
        total = self.force(t, q, qd) + own + stopped
        return ground.rigid_law(spots).step(soft, q, qd, total, self.given, h, forces)

    def move(self, q: Any, scale: Any, u: Any) -> Any:
        """As in `System`."""
        return algorithms.integrate(self.mech, q, scale * u)

    def rate(self, scale: Any, u: Any, v: Any) -> Any:
        """As in `System`."""
        return algorithms.tangent_rate(self.mech, scale * u, v)

    def precise_rate(self, scale: Any, u: Any, v: Any) -> Any:
        """As in `System`."""
        return precise_rate(self.mech, scale * u, v)

    def total_rates(self, q: Any, qd: Any) -> Any:
        """As in `System`."""
        return self.swept("total_rates", q=q, qd=qd)

    def joint_rates(self, q: Any, nu: Any) -> Any:
        """As in `System`."""
        return self.swept("joint_rates", q=q, nu=nu)

    def coriolis(self, q: Any, nu: Any) -> Any:
        """As in `System`."""
        return self.swept("diagonal_coriolis", q=q, nu=nu)

    def working(self, t: Any, q: Any, qd: Any) -> Any:
        """As in `System`."""
        tau, f_ext = self.total(t, q, qd), self.f_ext(q, qd)
        external = self.swept("working_forces", q=q, tau=tau, f_ext=f_ext)
        return external + self.swept("working_gravity", q=q)

    def to_middle(self, q: Any, scale: Any, v: Any) -> Any:
        """As in `System`."""
        return to_middle(self.mech, q, scale * v)

    def from_middle(self, q: Any, scale: Any, v: Any) -> Any:
        """As in `System`."""
        return from_middle(self.mech, q, scale * v)

    def momenta(self, q: Any, qd: Any) -> Any:
        """As in `System`."""
        return self.swept("generalized_momentum", q=q, qd=qd)

    def rates(self, q: Any, p: Any) -> Any:
        """As in `System`."""
        weightless = replace(self.form.mechanism, gravity=(0.0, 0.0, 0.0))
        return self.swept("forward_dynamics", weightless, q=q, qd=np.zeros(self.mech.nv), tau=p)

    def passing(self, t: Any, h: Any, q: Any, v: Any, p: Any) -> tuple[Any, Any]:
        """As in `System`."""
        mu, f = self.swept("lagrangian_derivatives", q=q, qd=v, f_ext=self.f_ext(q, v))
        middle = h, v, mu, f + self.total(t, q, v)
        return departing(self.mech, *middle), arriving(self.mech, *middle, p)


class Called:
    """The system on arrays of numbers, by the kernels of a robot."""

    def __init__(
        self,
        robot: Robot,
        force: Force,
        f_ext: Any,
        constraints: Sequence[Constraint],
        around: Surroundings = NOTHING,
        pace: Any = None,
    ) -> None:
        self.robot, self.force, self.given, self.constraints = robot, force, f_ext, constraints
        self.around, self.pace = around, pace

    def total(self, t: Any, q: Any, qd: Any) -> Any:
        """The joint forces, those of springs, losses and stops among them."""
        own = self.robot.passive_forces(q, qd)
        stops = self.around.stops_called(self.robot, q, qd, self.pace)
        return self.force(t, q, qd) + own + stops

    def f_ext(self, q: Any, qd: Any) -> Any:
        """The forces on the bodies, those of the ground among them."""
        return self.around.f_ext_called(self.robot, self.given, q, qd)

    def acceleration(self, t: Any, q: Any, qd: Any) -> Any:
        """As in `System`."""
        total = self.total(t, q, qd)
        if self.constraints:
            state = {"q": q, "qd": qd, "tau": total, "f_ext": self.f_ext(q, qd)}
            return self._constrained("constrained_forward_dynamics", **state)[0]
        return self.robot.forward_dynamics(q, qd, total, self.f_ext(q, qd))

    def continued(self, t: Any, q: Any, qd: Any, before: Any, span: Any) -> Any:
        """As in `System`."""
        if not self.constraints:
            return self.acceleration(t, q, qd)
        tau, f_ext = self.total(t, q, qd), self.f_ext(q, qd)
        state = {"q": q, "qd": qd, "tau": tau, "qdd_before": before, "span": np.asarray(span)}
        return self._constrained("continued_dynamics", **state, f_ext=f_ext)

    def move(self, q: Any, scale: Any, u: Any) -> Any:
        """As in `System`."""
        return self.robot.integrate(q, scale * u) if scale else q

    def rate(self, scale: Any, u: Any, v: Any) -> Any:
        """As in `System`."""
        return self.robot.tangent_rate(scale * u, v) if scale else v

    def precise_rate(self, scale: Any, u: Any, v: Any) -> Any:
        """As in `System`."""
        return self._kernel(lambda u, v: precise_rate(self.robot.mechanism, u, v))(scale * u, v)

    def total_rates(self, q: Any, qd: Any) -> Any:
        """As in `System`."""
        return self.robot.total_rates(q, qd)

    def joint_rates(self, q: Any, nu: Any) -> Any:
        """As in `System`."""
        return self.robot.joint_rates(q, nu)

    def coriolis(self, q: Any, nu: Any) -> Any:
        """As in `System`."""
        return self.robot.diagonal_coriolis(q, nu)

    def working(self, t: Any, q: Any, qd: Any) -> Any:
        """As in `System`."""
        working = self.robot.working_forces(q, self.total(t, q, qd), self.f_ext(q, qd))
        return working + self.robot.working_gravity(q)

    def to_middle(self, q: Any, scale: Any, v: Any) -> Any:
        """As in `System`."""
        return self._kernel(lambda q, u: to_middle(self.robot.mechanism, q, u))(q, scale * v)

    def from_middle(self, q: Any, scale: Any, v: Any) -> Any:
        """As in `System`."""
        kernel = self._kernel(lambda q, u: from_middle(self.robot.mechanism, q, u))
        return kernel(q, scale * v) if scale else q

    def momenta(self, q: Any, qd: Any) -> Any:
        """As in `System`."""
        return self.robot.generalized_momentum(q, qd)

    def rates(self, q: Any, p: Any) -> Any:
        """As in `System`."""
        weightless = {**self.robot._numbers, "gravity": np.zeros(3)}
        return self.robot._with_numbers(weightless).forward_dynamics(q, np.zeros_like(p), p)

    def passing(self, t: Any, h: Any, q: Any, v: Any, p: Any) -> tuple[Any, Any]:
        """As in `System`."""
        mech = self.robot.mechanism
        mu, f = self.robot.lagrangian_derivatives(q, v, self.f_ext(q, v))
        middle = h, v, mu, f + self.total(t, q, v)
        start = self._kernel(lambda h, v, qd, tau: departing(mech, h, v, qd, tau))
        end = self._kernel(lambda h, v, qd, tau, u: arriving(mech, h, v, qd, tau, u))
        return start(*middle), end(*middle, p)

    def _constrained(self, name: str, **arrays: Any) -> Any:
        """What an algorithm gives; that loops are open was said at the start."""
        return self.robot._ask(name, {"constraints": self.constraints}, **arrays)

    def _kernel(self, fn: Callable[..., Any]) -> Any:
        """A function of the joints as a kernel, made once."""
        return self.robot._keep(("motion", fn.__code__), lambda: self.robot.compile(fn))


def by_programs(call: Call) -> SweepCall:
    """Sweeps as calls of their programs."""
    return lambda sweep, *given: call(sweep.program, *given)


def traced_force(robot: Robot, force: Force, batch: bool) -> Program | str:
    """The force as a program of (t, q, qd) of one sample, or why it is none, and in which line.

    Whatever the function objects to in traced scalars, numbers may be fine: its own words are kept.
    """
    nq, nv = robot.nq, robot.nv
    shapes = [(), (nq,), (nv,)]
    try:
        program, again = (trace(_listed(force), shapes, "tau") for _ in range(2))
    except Exception as problem:
        return f"{type(problem).__name__}: {problem}{_at(source_line(force, problem))}"
    if program.digest != again.digest:
        why = "called twice with the same arguments it does not give the same: it has a memory"
    elif program.outputs != ((nv,),):
        why = f"of one sample it has shape {program.outputs[0]}; expected ({nv},)"
    elif batch and not _same_in_batch(force, program, nq, nv):
        why = "what it gives for a sample of a batch depends on the others"
    else:
        return program
    return f"{why}{_at(source_line(force))}"


def _at(line: str) -> str:
    return f" ({line})" if line else ""


def _listed(force: Force) -> Force:
    """The function with an array as its result."""

    def fn(t: Any, q: Any, qd: Any) -> Any:
        result = force(t, q, qd)
        if is_masked(result):
            raise ArgumentError("it gave a masked array")
        return np.array(list(result)) if isinstance(result, tuple) else np.asarray(result)

    return fn


def _same_in_batch(force: Force, program: Program, nq: int, nv: int) -> bool:
    """Whether the function, where it takes batches, does to each sample what it does to one."""
    n = next(i for i in range(2, 5) if i not in (nq, nv))
    try:
        many = trace(_listed(force), [(), (n, nq), (n, nv)], "tau")
    except Exception:
        return True
    if many.outputs != ((n, nv),):
        return many.outputs == ((nv,),)
    rng = np.random.default_rng(0)
    t, q, qd = rng.normal(), rng.normal(size=(n, nq)), rng.normal(size=(n, nv))
    (together,) = interpret(many, [np.array(t), q, qd])
    (alone,) = interpret(program, [np.full(n, t), q, qd])
    return np.allclose(together, alone, rtol=1e-6, atol=1e-9, equal_nan=True)


def motion_kernel(
    robot: Robot,
    method: str,
    given: Sequence[str],
    program: Program | None,
    constraints: Sequence[Constraint],
    around: Surroundings = NOTHING,
    kept: Mapping[str, Measured] | None = None,
) -> Rollout:
    """Steps of a method as one kernel, of states q, qd, the integrator's memory, on rigid ground
    the forces on its points, and reductions.

    given: which of taus (an input of each step, like t), tau, f_ext and numbers of the mechanism
    (parameters, like dt) are arguments.  program: a law of (t, q, qd) that adds to the first two.
    kept: reductions of functions of (t, q, qd), by name.
    """
    mech, way, kept = robot.mechanism, integrator(method, bool(constraints)), kept or {}
    shapes = {"q": (mech.nq,), "qd": (mech.nv,)}
    shapes |= {f"memory{i}": (mech.nv,) for i in range(way.memory)}
    shapes |= {"forces": (len(around.ground.points), 3)} if around.ground and around.rigid else {}
    own = len(shapes)
    shapes |= {f"{n} so far": m.start(robot.dtype).shape for n, m in kept.items()}
    states = len(shapes)
    inputs = ("t", "taus") if "taus" in given else ("t",)
    rest = [n for n in given if n != "taus"]
    shapes |= {n: array_shape(mech, "tau") if n == "taus" else () for n in inputs}
    shapes |= {"dt": (), **({"pace": ()} if around.stops else {})}
    shapes |= {n: array_shape(mech, n) for n in rest}
    law = program.digest if program else ""
    asked = (method, way, tuple(given), tuple(constraints), law, around)
    asked += tuple((n, m.digest) for n, m in kept.items())
    recorded = (0, 1, own - 1, states) if around.rigid else (0, 1)
    stages = _marked(way.stages) if kept else way.stages

    def make() -> Scan:
        step = partial(_step, mech, way, list(shapes), program, constraints, around, kept)
        stage = [(len(stages[0]),)] if stages != ((),) else []
        given, name = [*shapes.values(), *stage], f"{method} step"
        long = is_long(mech)
        traced = trace_relay(step, given, name) if long else trace(partial(step, None), given, name)
        return Scan(traced, states, len(inputs), stages, recorded)

    def new() -> Rollout:
        key = known_key(mech, "simulate", asked)
        title = f"simulate {robot.name!r}"
        settings = {"dtype": robot.dtype, "backend": robot._backend, "key": key, "strict": True}
        return Rollout(make, shapes, states, len(inputs), title, **settings)

    return robot._keep_recent(("simulate", *asked), new)


def _marked(stages: tuple[tuple[float, ...], ...]) -> tuple[tuple[float, ...], ...]:
    """The numbers of each stage, and whether it is the last, if there are several."""
    if stages == ((),):
        return stages
    return tuple((*row, float(i == len(stages) - 1)) for i, row in enumerate(stages))


def _step(
    mech: Mechanism,
    way: Integrator,
    names: list[str],
    program: Program | None,
    constraints: Sequence[Constraint],
    around: Surroundings,
    kept: Mapping[str, Measured],
    call: Call | None,
    *arrays: Any,
) -> tuple[Any, ...]:
    """One stage of a step, of arrays in the order of the names, then of the stage's numbers."""
    a = dict(zip(names, arrays, strict=False))
    stage: Any = arrays[len(names)] if len(arrays) > len(names) else ()
    stage, last = (stage[:-1], stage[-1]) if kept and len(stage) else (stage, 1.0)
    state, rest = _moved(mech, way, a, stage, program, constraints, around, call)
    if not kept:
        return *state, *rest
    totals = [a[f"{n} so far"] for n in kept]
    now = {"t": a["t"] + a["dt"], "q": state[0], "qd": state[1]}
    new = zip(updated(kept, totals, now, ()), totals, strict=True)
    return *state, *(where(last, x, old) for x, old in new), *rest


def _moved(
    mech: Mechanism,
    way: Integrator,
    a: Mapping[str, Any],
    stage: Any,
    program: Program | None,
    constraints: Sequence[Constraint],
    around: Surroundings,
    call: Call | None,
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The states after a stage of a step, and what it gives besides."""
    memory = tuple(a[f"memory{i}"] for i in range(way.memory))
    held = sum(a[n] for n in ("tau", "taus") if n in a) + np.zeros(mech.nv)
    law = None if program is None else running(program)

    def total(t: Any, q: Any, qd: Any) -> Any:
        return around.driven(held if law is None else held + law(t, q, qd)[0])

    numbers = {n: a[n] for n in PARAMETERS if n in a}
    acting = a.get("f_ext"), constraints, numbers, around, a.get("pace")
    system = Traced(mech, total, *acting, None if call is None else by_programs(call))
    if around.ground and around.rigid:
        now = a["t"], a["dt"], a["q"], a["qd"], a["forces"]
        q, qd, forces, residual = system.on_rigid_ground(around.ground, *now)
        return (q, qd, forces), (residual,)
    q, qd, memory = way.advance(system, a["t"], a["dt"], a["q"], a["qd"], memory, stage)
    return (q, qd, *memory), ()
