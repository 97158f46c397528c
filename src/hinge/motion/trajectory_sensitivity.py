"""How a whole motion changes with its start, its forces and the numbers of the mechanism.

A rollout x(i+1) = step(x(i), τ(i), p) of x = (q, q̇), exactly as `simulate` does it.  Changes of q
are along the joints' tangents, q ⊞ δq, at every time:

    forward   δx(i+1) = ∂step/∂x δx(i) + ∂step/∂τ δτ(i) + ∂step/∂p δp                           (1)
    adjoint   λ(i) = c(i) + (∂step/∂x)ᵀ λ(i+1),   λ(steps) = c(steps)                           (2)
              ∂C/∂x(0) = λ(0),   ∂C/∂τ(i) = (∂step/∂τ)ᵀ λ(i+1),   ∂C/∂p = Σ (∂step/∂p)ᵀ λ(i+1)  (3)

for a cost C of the whole motion with ∂C/∂x(i) = c(i).  No matrix is formed: both are loops over
products with the derivative of one step, each in one kernel.  For large robots a step of several
stages is a loop over those, with the equations of motion once: x is then (q, q̇, memory), as
`integrators.py` has it.  Forward the stages are inside a step; backward each is a step of its own,
with its state at hand.  Of long mechanisms the equations of motion and products with their
derivatives are loops over bodies, to and from which a step hands arrays (`through_sweeps.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .. import algorithms
from ..errors import ArgumentError, SingularError
from ..functions.derivatives import jvp
from ..functions.through_sweeps import pulled_through, pushed_through
from ..graph.program import trace
from ..graph.relay import Call, trace_relay
from ..graph.scan import Scan
from ..model.mechanism import Mechanism
from ..model.parameters import PARAMETERS, parameters
from ..robot import Robot, check_robot
from ..robot.answers import known_key
from ..robot.sweeps import Sweeps
from ..runtime.arguments import broadcast
from ..runtime.check import check_choice, check_number
from ..runtime.rollout import Rollout
from ..specialize.arrays import array_shape
from ..specialize.programs import MOST_UNROLLED, is_long
from .integrators import METHODS
from .simulate import simulate
from .steps import SweepCall, Traced, by_programs

__all__ = ["MotionChange", "MotionGradient", "TrajectorySensitivity", "trajectory_sensitivity"]

_STEPS = ("rk4", "semi_implicit_euler")

# DoF up to which all stages of a step are one piece of code.  ANYmal, 18 DoF, in pieces: first call
# 2.0 → 0.6 s of CPU time forward and 1.9 → 0.9 s backward, later ones 1.0 → 1.4 and 1.1 → 1.9 µs
# a step and sample; of Talos, 38 DoF, the whole took tens of seconds, in pieces 2.
MOST_WHOLE = 16

# Bodies up to which a step of one stage is straight-line code: backward, loops need q̈ first.  Of
# snakes, semi-implicit, µs a step and sample of a batch, straight and in loops: 44 links forward
# 1.2 and 1.6, backward 1.6 and 2.6, 80 links 3.0 and 3.3, 4.4 and 4.9; first calls of 80 links 1.9
# and 1.0 s, of 200 links 3.5 and 1.6.  Of several stages loops are ahead at 44 links: rk4 7.0 and
# 5.7, 11.3 and 8.4.
MOST_STRAIGHT = 80


class MotionChange(NamedTuple):
    """δq and δq̇ at every time, (steps + 1, …, nv)."""

    dq: np.ndarray
    dqd: np.ndarray


class MotionGradient(NamedTuple):
    """The gradient of a cost of the motion.

    q, qd: of the start, (…, nv); taus: (steps, …, nv); numbers: by name, as in
    `hinge.model.parameters`.
    """

    q: np.ndarray
    qd: np.ndarray
    taus: np.ndarray
    numbers: dict[str, np.ndarray]


@dataclass(frozen=True, eq=False, repr=False)
class TrajectorySensitivity:
    """A motion q (steps + 1, …, nq), q̇ (steps + 1, …, nv) under taus (steps, …, nv) that knows how
    it changes; numbers: those of the mechanism that may change, by name.
    """

    robot: Robot
    q: np.ndarray
    qd: np.ndarray
    taus: np.ndarray
    dt: float
    method: str
    f_ext: ArrayLike | None = None
    numbers: Mapping[str, np.ndarray] = field(default_factory=dict)

    def __repr__(self) -> str:
        batch = f", batch {self.q.shape[1:-1]}" if self.q.ndim > 2 else ""
        steps = f"{len(self.taus)} steps of {self.dt:g} s"
        return f"<TrajectorySensitivity of {self.robot.name!r}: {steps}, {self.method}{batch}>"

    def forward(
        self,
        dq: ArrayLike | None = None,
        dqd: ArrayLike | None = None,
        dtaus: ArrayLike | None = None,
        **dnumbers: ArrayLike,
    ) -> MotionChange:
        """How the motion changes if its start, forces and numbers change by this; None is zero."""
        for name in (n for n in dnumbers if n not in self.numbers):
            raise ArgumentError(
                f"{self._where}: {name} is not among the numbers that may change, "
                f"{tuple(self.numbers)}; name it in numbers="
            )
        still = np.zeros(self.robot.nv)
        start = [still if x is None else x for x in (dq, dqd)]
        forces = np.zeros((len(self.taus), self.robot.nv)) if dtaus is None else dtaus
        changes = [dnumbers.get(n, np.zeros_like(x)) for n, x in self.numbers.items()]
        state = self.q[0], self.qd[0], *self._memory
        given = (*state, *start, *self._memory, self.taus, forces, *self._fixed, *changes)
        dqs, dqds = self._push(*given)
        later = zip(start, (dqs, dqds), strict=True)
        first = [(np.broadcast_to(np.asarray(x, y.dtype), y.shape[1:]), y) for x, y in later]
        return self._finite(MotionChange(*(np.concatenate([x[None], y]) for x, y in first)))

    def adjoint(self, dq: ArrayLike, dqd: ArrayLike) -> MotionGradient:
        """The gradient of a cost whose derivatives with respect to q(i), q̇(i) are dq[i], dqd[i].

        dq, dqd: (steps + 1, …, nv), along the joints' tangents; zero where the cost does not look.
        """
        costs = [self._cost(n, x) for n, x in (("dq", dq), ("dqd", dqd))]
        none = [np.zeros_like(x) for x in self.numbers.values()]
        steps, stages = len(self.taus), len(self._loop)
        ahead = [np.zeros((steps * stages, *x.shape[1:]), x.dtype) for x in costs]
        for spread, cost in zip(ahead, costs, strict=True):
            spread[stages - 1 :: stages] = cost[-2::-1]
        start = [*(x[-1] for x in costs), *self._memory, *none]
        q, qd, *numbers, taus = self._pull(*start, *self._behind, *ahead, *self._fixed)
        total = dict(zip(self.numbers, (x[-1] for x in numbers), strict=True))
        each = taus[::-1].reshape(steps, stages, *taus.shape[1:]).sum(axis=1)
        return self._finite(MotionGradient(q[-1], qd[-1], each, total))

    @cached_property
    def _behind(self) -> list[np.ndarray]:
        """The row of each stage if there are any, x before it, the forces and q after it: the last
        stage first.
        """
        rows, taus = self._rows, np.repeat(self.taus, len(self._loop), axis=0)
        before, after = [self.q[:-1], self.qd[:-1]], self.q[1:]
        if rows:
            start = self.q[0], self.qd[0], *self._memory
            later = self._walk(*start, *rows, taus, *self._fixed)
            pairs = zip(start, later, strict=True)
            before = [np.concatenate([np.broadcast_to(x, y[:1].shape), y[:-1]]) for x, y in pairs]
            after = later[0]
        return [np.ascontiguousarray(x[::-1]) for x in (*rows, *before, taus, after)]

    # kernels

    @property
    def _where(self) -> str:
        return f"trajectory_sensitivity of {self.robot.name!r}"

    @property
    def _fixed(self) -> list[Any]:
        """What stays during the motion: dt, external forces, numbers."""
        return [self.dt, *([] if self.f_ext is None else [self.f_ext]), *self.numbers.values()]

    @cached_property
    def _fixed_shapes(self) -> dict[str, tuple[int, ...]]:
        names = [*([] if self.f_ext is None else ["f_ext"]), *self.numbers]
        return {"dt": (), **{n: array_shape(self.robot.mechanism, n) for n in names}}

    def _finite(self, found: Any) -> Any:
        """What was found, if all of it is finite or it belongs to a batch."""
        arrays = [x for x in found if isinstance(x, np.ndarray)]
        if arrays[-1].ndim == 2 and not all(np.isfinite(x).all() for x in arrays):
            raise SingularError(
                f"{self._where}: the result is not finite: a change that was given is not, or it "
                f"grows beyond all numbers along the motion; take a shorter one"
            )
        return found

    def _cost(self, name: str, value: ArrayLike) -> np.ndarray:
        x = broadcast(self._where, [self.robot._argument(name, value)])[name]
        wanted = self.qd.shape
        if x.shape != wanted:
            raise ArgumentError(
                f"{self._where}: {name} has shape {x.shape}; expected {wanted}, a derivative of "
                f"the cost at every time, the start among them"
            )
        return x

    @property
    def _loop(self) -> tuple[tuple[float, ...], ...]:
        """The stages that are looped over, ((),) if a step is one piece of code."""
        return METHODS[self.method].stages if self.robot.nv > MOST_WHOLE else ((),)

    @property
    def _rows(self) -> list[np.ndarray]:
        """The numbers of every stage of the motion, if they are looped over."""
        return [np.tile(self._loop, (len(self.taus), 1))] if self._loop != ((),) else []

    @property
    def _memory(self) -> list[np.ndarray]:
        return [np.zeros(self.robot.nv)] * (METHODS[self.method].memory if self._rows else 0)

    def _advance(
        self,
        call: SweepCall | None,
        x: Sequence[Any],
        tau: Any,
        fixed: Mapping[str, Any],
        stage: Any,
    ) -> tuple[Any, ...]:
        """A stage from x = (q, q̇, memory); all of them, without memory, if there is no loop."""
        way, mech, (q, qd, *memory) = METHODS[self.method], self.robot.mechanism, x
        numbers = {n: fixed[n] for n in self.numbers}
        known = fixed.get("f_ext"), (), numbers
        system = Traced(mech, lambda t, q, qd: tau, *known, call=call, sweeps=self._sweeps)
        kept = tuple(memory) or (np.zeros(mech.nv),) * way.memory
        for row in (stage,) if len(stage) else way.stages:
            q, qd, kept = way.advance(system, 0.0, fixed["dt"], q, qd, kept, row)
        return q, qd, *(kept if memory else ())

    def _leading(
        self, x: Sequence[Any], tau: Any, fixed: Mapping[str, Any], stage: Any
    ) -> tuple[Callable[..., tuple[Any, ...]], tuple[Any, ...]]:
        """Where a stage from q ⊞ δ leads: a function of what stands for sweeps, and of δ, q̇,
        memory, τ and numbers; and what these are.
        """
        mech, (q, qd, *memory) = self.robot.mechanism, x

        def leads(call: SweepCall | None, delta: Any, *moved: Any) -> tuple[Any, ...]:
            speed, numbers = moved[: 1 + len(memory)], moved[2 + len(memory) :]
            now = {**fixed, **dict(zip(self.numbers, numbers, strict=True))}
            start = algorithms.integrate(mech, q, delta), *speed
            return self._advance(call, start, moved[1 + len(memory)], now, stage)

        own = [fixed[n] for n in self.numbers]
        return leads, (np.zeros(mech.nv), qd, *memory, tau, *own)

    def _seen_from(self, q1: Any, leads: Callable[..., Any]) -> Callable[..., tuple[Any, ...]]:
        """The same, q as its distance from q1 along the joints."""

        def apart(*given: Any) -> tuple[Any, ...]:
            there, *more = leads(*given)
            return algorithms.difference(self.robot.mechanism, q1, there), *more

        return apart

    @cached_property
    def _sweeps(self) -> Sweeps:
        """Of a long mechanism, the loops that all kernels share."""
        return Sweeps()

    @cached_property
    def _state(self) -> dict[str, tuple[int, ...]]:
        """The shapes of q, q̇ and memory."""
        nv = (self.robot.nv,)
        memory = {f"m{i}": nv for i in range(len(self._memory))}
        return {"q": (self.robot.nq,), "qd": nv, **memory}

    @property
    def _stage(self) -> dict[str, tuple[int, ...]]:
        """The shape of the row of a stage, if there are any."""
        return {"stage": (len(self._loop[0]),)} if self._rows else {}

    @property
    def _changes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of their changes, along the joints' tangents."""
        return {f"d{n}": (self.robot.nv,) for n in self._state}

    @cached_property
    def _push(self) -> Rollout:
        n, names = len(self._state), list(self._fixed_shapes)

        def step(call: Call | None, *given: Any) -> Any:
            x, dx, (tau, dtau, *rest) = given[:n], given[n : 2 * n], given[2 * n :]
            fixed, changes = dict(zip(names, rest, strict=False)), rest[len(names) :]
            stage = changes[-1] if self._stage else ()
            leads, primals = self._leading(x, tau, fixed, stage)
            moves = (*dx, dtau, *changes[: len(self.numbers)])
            (q1, *more), (dq1, *dmore) = pushed_through(leads, call, primals, moves)
            apart = jvp(partial(algorithms.difference, self.robot.mechanism, q1))
            return q1, *more, apart((q1,), (dq1,)), *dmore  # (1)

        nv = (self.robot.nv,)
        shapes = {**self._state, **self._changes, "taus": nv, "dtaus": nv, **self._fixed_shapes}
        shapes |= {f"d{n}": self._fixed_shapes[n] for n in self.numbers}
        return self._rollout("forward", step, 2 * n, 2, shapes, (n, n + 1), self._loop)

    @cached_property
    def _walk(self) -> Rollout:
        n = len(self._state)

        def step(call: Call | None, *given: Any) -> Any:
            x, (stage, tau, *rest) = given[:n], given[n:]
            fixed = dict(zip(self._fixed_shapes, rest, strict=True))
            return self._advance(call and by_programs(call), x, tau, fixed, stage)

        shapes = {**self._state, **self._stage, "taus": (self.robot.nv,)}
        return self._rollout("stages of", step, n, 2, {**shapes, **self._fixed_shapes}, range(n))

    @cached_property
    def _pull(self) -> Rollout:
        n, count = len(self._state), len(self.numbers)

        def step(call: Call | None, *given: Any) -> Any:
            g, sums, rest = given[:n], given[n : n + count], given[n + count :]
            stage, *rest = rest if self._stage else ((), *rest)
            x, (tau, q1, cq, cqd, *fixed) = rest[:n], rest[n:]
            known = dict(zip(self._fixed_shapes, fixed, strict=True))
            leads, primals = self._leading(x, tau, known, stage)
            dq, dqd, *back = pulled_through(self._seen_from(q1, leads), call, primals, g)
            memory, dtau, own = back[: n - 2], back[n - 2], back[n - 1 :]
            more = [s + b for s, b in zip(sums, own, strict=True)]
            return dq + cq, dqd + cqd, *memory, *more, dtau  # (2), (3)

        nq, nv = (self.robot.nq,), (self.robot.nv,)
        states = {f"g{n}": x for n, x in self._changes.items()}
        states |= {f"g{n}": self._fixed_shapes[n] for n in self.numbers}
        inputs = {**self._stage, **self._state, "taus": nv, "q1": nq, "dq": nv, "dqd": nv}
        shapes = {**states, **inputs, **self._fixed_shapes}
        recorded = (0, 1, *range(n, n + count + 1))
        return self._rollout("adjoint", step, len(states), len(inputs), shapes, recorded)

    def _rollout(
        self,
        kind: str,
        step: Callable[..., Any],
        states: int,
        inputs: int,
        shapes: dict[str, Any],
        recorded: Iterable[int],
        stages: tuple[tuple[float, ...], ...] = ((),),
    ) -> Rollout:
        """The kernel, made once for a robot, a method and what may change."""
        robot, title = self.robot, f"{kind} sensitivity of {self.robot.name!r}"
        way = METHODS[self.method]
        row = [(len(stages[0]),)] if stages != ((),) else []
        # loops have the numbers of the mechanism in them
        loops = _is_for_loops(robot.mechanism, self.method) and not self.numbers

        def scan() -> Scan:
            given, whole = [*shapes.values(), *row], partial(step, None)
            traced = trace_relay(step, given, title) if loops else trace(whole, given, title)
            return Scan(traced, states, inputs, stages, tuple(recorded))

        def make() -> Rollout:
            key = known_key(robot.mechanism, title, self.method, way, shapes, loops)
            return Rollout(scan, shapes, states, inputs, title, robot.dtype, robot._backend, key)

        return robot._keep((title, way, tuple(shapes)), make)


def _is_for_loops(mech: Mechanism, method: str) -> bool:
    """Whether a step had better call sweeps that are loops over bodies."""
    few = MOST_STRAIGHT if len(METHODS[method].stages) == 1 else MOST_UNROLLED
    return is_long(mech) and mech.n_bodies > few


def trajectory_sensitivity(
    robot: Robot,
    q: ArrayLike,
    qd: ArrayLike,
    taus: ArrayLike,
    dt: float = 1e-3,
    method: Literal["rk4", "semi_implicit_euler"] = "rk4",
    f_ext: ArrayLike | None = None,
    numbers: Sequence[str] = (),
) -> TrajectorySensitivity:
    """A motion from (q, qd) under joint forces taus (steps, …, nv), and how it would change.

    `.q`, `.qd` are the motion as `simulate` gives it; `.forward` is its change with the start, the
    forces and those numbers of the mechanism (gravity, inertia, placement) that are named;
    `.adjoint` the gradient of a cost with respect to all of them.  Joint limits do not act.
    """
    where = f"trajectory_sensitivity of {check_robot('trajectory_sensitivity', robot).name!r}"
    method = check_choice(where, "method", method, _STEPS)
    numbers = (numbers,) if isinstance(numbers, str) else numbers
    for name in numbers:
        check_choice(where, "numbers", name, PARAMETERS)
    step = check_number(where, "dt", dt, above=0)
    forces = broadcast(where, [robot._argument("tau", taus)._replace(name="taus")])["taus"]
    motion = simulate(robot, q, qd, None, None, step, method, f_ext, taus=forces, limits=False)
    own = {n: x for n, x in parameters(robot.mechanism).items() if n in numbers}
    return TrajectorySensitivity(robot, motion.q, motion.qd, forces, step, method, f_ext, own)
