"""How a whole motion changes with its start, its forces and the numbers of the mechanism.

A rollout x(i+1) = step(x(i), τ(i), p) of x = (q, q̇), exactly as `simulate` does it.  Changes of q
are along the joints' tangents, q ⊞ δq, at every time:

    forward   δx(i+1) = ∂step/∂x δx(i) + ∂step/∂τ δτ(i) + ∂step/∂p δp                           (1)
    adjoint   λ(i) = c(i) + (∂step/∂x)ᵀ λ(i+1),   λ(steps) = c(steps)                           (2)
              ∂C/∂x(0) = λ(0),   ∂C/∂τ(i) = (∂step/∂τ)ᵀ λ(i+1),   ∂C/∂p = Σ (∂step/∂p)ᵀ λ(i+1)  (3)

for a cost C of the whole motion with ∂C/∂x(i) = c(i).  No matrix is formed: both are loops over
products with the derivative of one step, each in one kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .. import algorithms
from ..errors import ArgumentError, SingularError
from ..functions.derivatives import jvp, vjp
from ..graph.program import trace
from ..graph.scan import Scan
from ..model.parameters import PARAMETERS, parameters
from ..robot import Robot, check_robot
from ..runtime.arguments import broadcast
from ..runtime.check import check_choice, check_number
from ..runtime.rollout import Rollout
from ..specialize.arrays import array_shape
from .integrators import METHODS
from .simulate import simulate
from .steps import Traced

__all__ = ["MotionChange", "MotionGradient", "TrajectorySensitivity", "trajectory_sensitivity"]

_STEPS = ("rk4", "semi_implicit_euler")


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


@dataclass(frozen=True, eq=False)
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
        given = (self.q[0], self.qd[0], *start, self.taus, forces, *self._fixed, *changes)
        *_, dqs, dqds = self._push(*given)
        later = zip(start, (dqs, dqds), strict=True)
        first = [(np.broadcast_to(np.asarray(x, y.dtype), y.shape[1:]), y) for x, y in later]
        return self._finite(MotionChange(*(np.concatenate([x[None], y]) for x, y in first)))

    def adjoint(self, dq: ArrayLike, dqd: ArrayLike) -> MotionGradient:
        """The gradient of a cost whose derivatives with respect to q(i), q̇(i) are dq[i], dqd[i].

        dq, dqd: (steps + 1, …, nv), along the joints' tangents; zero where the cost does not look.
        """
        costs = [self._cost(n, x) for n, x in (("dq", dq), ("dqd", dqd))]
        none = [np.zeros_like(x) for x in self.numbers.values()]
        behind = [x[::-1] for x in (self.q[:-1], self.qd[:-1], self.taus, self.q[1:])]
        ahead = [x[-2::-1] for x in costs]
        last = [x[-1] for x in costs]
        q, qd, *numbers, taus = self._pull(*last, *none, *behind, *ahead, *self._fixed)
        total = dict(zip(self.numbers, (x[-1] for x in numbers), strict=True))
        return self._finite(MotionGradient(q[-1], qd[-1], taus[::-1], total))

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

    def _advance(self, q: Any, qd: Any, tau: Any, fixed: Mapping[str, Any]) -> tuple[Any, Any]:
        """One step, all its stages."""
        way, mech = METHODS[self.method], self.robot.mechanism
        numbers = {n: fixed[n] for n in self.numbers}
        system = Traced(mech, lambda t, q, qd: tau, fixed.get("f_ext"), (), numbers)
        memory = (np.zeros(mech.nv),) * way.memory
        for stage in way.stages:
            q, qd, memory = way.advance(system, 0.0, fixed["dt"], q, qd, memory, stage)
        return q, qd

    def _apart(self, delta: Any, qd: Any, tau: Any, *rest: Any) -> tuple[Any, Any]:
        """Where a step from q ⊞ delta leads, seen from q1; rest: numbers, q, q1, dt, f_ext."""
        mech, n = self.robot.mechanism, len(self.numbers)
        q, q1, *others = rest[n:]
        names = [name for name in self._fixed_shapes if name not in self.numbers]
        fixed = {
            **dict(zip(self.numbers, rest, strict=False)),
            **dict(zip(names, others, strict=True)),
        }
        there, speed = self._advance(algorithms.integrate(mech, q, delta), qd, tau, fixed)
        return algorithms.difference(mech, q1, there), speed

    def _primals(
        self, q: Any, qd: Any, tau: Any, q1: Any, fixed: dict[str, Any]
    ) -> tuple[Any, ...]:
        moving = [fixed[n] for n in self.numbers]
        others = [x for n, x in fixed.items() if n not in self.numbers]
        return np.zeros(self.robot.nv), qd, tau, *moving, q, q1, *others

    @cached_property
    def _push(self) -> Rollout:
        names = list(self._fixed_shapes)

        def step(q: Any, qd: Any, dq: Any, dqd: Any, tau: Any, dtau: Any, *rest: Any) -> Any:
            fixed = dict(zip(names, rest, strict=False))
            q1, qd1 = self._advance(q, qd, tau, fixed)
            primals = self._primals(q, qd, tau, q1, fixed)
            moving = (dq, dqd, dtau, *rest[len(names) :])
            still = (None,) * (len(primals) - len(moving))
            return q1, qd1, *jvp(self._apart)(primals, (*moving, *still))  # (1)

        nq, nv = (self.robot.nq,), (self.robot.nv,)
        shapes = {"q": nq, "qd": nv, "dq": nv, "dqd": nv, "taus": nv, "dtaus": nv}
        changes = {f"d{n}": self._fixed_shapes[n] for n in self.numbers}
        return self._rollout("forward", step, 4, 2, {**shapes, **self._fixed_shapes, **changes})

    @cached_property
    def _pull(self) -> Rollout:
        count = len(self.numbers)

        def step(gq: Any, gqd: Any, *rest: Any) -> Any:
            sums, (q, qd, tau, q1, cq, cqd) = rest[:count], rest[count : count + 6]
            fixed = dict(zip(self._fixed_shapes, rest[count + 6 :], strict=True))
            primals = self._primals(q, qd, tau, q1, fixed)
            back = vjp(self._apart)(primals, (gq, gqd))
            more = [s + b for s, b in zip(sums, back[3 : 3 + count], strict=True)]
            return back[0] + cq, back[1] + cqd, *more, back[2]  # (2), (3)

        nq, nv = (self.robot.nq,), (self.robot.nv,)
        sums = {f"g{n}": self._fixed_shapes[n] for n in self.numbers}
        states = {"gq": nv, "gqd": nv, **sums}
        inputs = {"q": nq, "qd": nv, "taus": nv, "q1": nq, "dq": nv, "dqd": nv}
        shapes = {**states, **inputs, **self._fixed_shapes}
        return self._rollout("adjoint", step, len(states), len(inputs), shapes)

    def _rollout(
        self, kind: str, step: Callable[..., Any], states: int, inputs: int, shapes: dict[str, Any]
    ) -> Rollout:
        """The kernel, made once for a robot, a method and what may change."""
        robot, title = self.robot, f"{kind} sensitivity of {self.robot.name!r}"

        def make() -> Rollout:
            program = trace(step, list(shapes.values()), title)
            scan = Scan(program, states, inputs, recorded=tuple(range(len(program.outputs))))
            return Rollout(scan, shapes, states, inputs, title, robot.dtype, robot._backend)

        return robot._keep((title, self.method, tuple(shapes)), make)


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
