"""Names, configurations, kernels and checked calls: what the chapters of a robot stand on."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike

from .. import algorithms
from ..algebra.rotation import safe_to_square
from ..algorithms import Algorithms
from ..algorithms.constrained.description import Constraint, as_constraints
from ..algorithms.declare import ALGORITHMS
from ..algorithms.singular import loose_joint, why_singular
from ..errors import ArgumentError, ImmutableError, SingularError
from ..functions.compile import compile_for
from ..model.actuator import Actuator, acting_on, check_actuators
from ..model.mechanism import Mechanism, did_you_mean
from ..model.parameters import PARAMETERS, with_parameters
from ..runtime.arguments import Argument, broadcast
from ..runtime.backend import Backend
from ..runtime.check import check_choice, check_dtype, check_shape
from ..runtime.devices import backend_of, check_device
from ..runtime.kernel import Kernel
from ..runtime.recent import Recent
from ..specialize.arrays import array_shape, meaning
from ..specialize.programs import explain, needed
from .answers import Answer, ByColumns, ByKernel, answer_of, robot_kernel
from .joint_data import JointData
from .method import Numbers, compiled, unknown_argument
from .settings import settled
from .synonyms import meant_by
from .through_host import through_host

if TYPE_CHECKING:
    from ..functions.reductions import Reduction

__all__ = ["Front"]

_ENDLESS = (
    " (robot.lower and robot.upper are infinite where a joint has no limit: take the entries of "
    "those that have one, robot.q_slice)"
)
P = ParamSpec("P")
R = TypeVar("R")


class Front(JointData):
    """What every robot has: its names, its configurations, and how calls reach kernels."""

    def __init__(
        self,
        mechanism: Mechanism,
        dtype: Any = np.float64,
        threads: int | None = None,
        parameters: Sequence[str] = (),
        constraints: Sequence[Constraint] = (),
        device: str = "cpu",
        actuators: Sequence[Actuator] = (),
    ) -> None:
        """dtype: of the arithmetic, float64 or float32; threads: for batches, None: all cores.

        parameters: numbers of the mechanism that calls may give as keywords, of "gravity" (…, 3),
        "inertia" (…, n_bodies, 10), "placement" (…, n_bodies, 12); see `hinge.model.parameters`.
        constraints: that close its loops, in `assemble` and `simulate` unless others are given.
        device: where it computes, "cpu" or an NVIDIA card: "cuda", "cuda:1"; see docs/gpu.md.
        actuators: what drives its joints.
        """
        if not isinstance(mechanism, Mechanism):
            raise ArgumentError(
                f"Robot needs a Mechanism, got {type(mechanism).__name__}; "
                f"build one with MechanismBuilder, or use hinge.load for a file"
            )
        where = f"Robot of {mechanism.name!r}"
        if threads is not None and (not isinstance(threads, (int, np.integer)) or threads < 1):
            raise ArgumentError(
                f"{where}: threads is {threads!r}; expected a whole number above 0, or None for "
                f"all cores"
            )
        names = (parameters,) if isinstance(parameters, str) else tuple(parameters)
        for name in names:
            check_choice(where, "a parameter", name, PARAMETERS)
        self._mechanism, self._dtype = mechanism, check_dtype(where, dtype)
        self._threads, self._constraints = threads, as_constraints(where, constraints)
        self._parameters, self._numbers = names, {}
        self._device = check_device(where, device)
        self._actuators = check_actuators(where, mechanism, actuators)
        self._check_constraints()
        self._start()

    def _check_constraints(self) -> None:
        """Refuse those of frames that are not there."""
        for frame in (name for c in self._constraints for name in (c.left, c.right)):
            self._mechanism.frame(frame)

    def _start(self) -> None:
        """Nothing made and nothing learned yet."""
        self._alg = Algorithms(self._mechanism)
        self._backend: Backend = backend_of(self._device, self._threads)
        self._kept: dict[Any, Any] = {}
        self._recent = Recent()
        self._doors: dict[Any, Any] = {}

    def __getstate__(self) -> dict[str, Any]:
        made = {"_alg", "_backend", "_kept", "_recent", "_doors"}
        doors = {n for n in self.__dict__ if not n.startswith("_") and n in dir(type(self))}
        return {n: x for n, x in self.__dict__.items() if n not in made | doors}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._start()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            # Python's own suggestion would be the method whose letters are nearest
            meant = "" if name.startswith("_") else meant_by(name)
            message = f"{type(self).__name__!r} object has no attribute {name!r}{meant}"
            raise AttributeError(message, name=name, obj=None if meant else self)

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_"):
            is_ours = type(self).__module__.startswith("hinge.")
            mechanism = self.__dict__.get("_mechanism")
            if is_ours or hasattr(type(self), name) or hasattr(mechanism, name):
                which = "" if mechanism is None else f" {mechanism.name!r}"
                raise ImmutableError(
                    f"robot{which}: {name} cannot be set: kernels are compiled for it as it is; "
                    f"make another one (hinge.edit.with_joint and its like give robots with other "
                    f"numbers, hinge.Robot takes dtype, threads and parameters), or a subclass "
                    f"with attributes of its own"
                )
        object.__setattr__(self, name, value)

    # what it is

    @property
    def mechanism(self) -> Mechanism:
        """Its bodies, joints and frames."""
        return self._mechanism

    @property
    def dtype(self) -> np.dtype:
        """The kind of numbers that it computes with."""
        return self._dtype

    @property
    def threads(self) -> int | None:
        """How many threads share a batch, None for all cores."""
        return self._threads

    @property
    def device(self) -> str:
        """Where it computes: "cpu", or a card, such as "cuda:0"."""
        return self._device

    def to(self, device: str) -> Self:
        """The same robot on another device: "cpu", or an NVIDIA card: "cuda", "cuda:1"."""
        other = object.__new__(type(self))
        place = check_device(f"{self.name!r}.to", device)
        other.__setstate__({**self.__getstate__(), "_device": place})
        return other

    @property
    def parameters(self) -> tuple[str, ...]:
        """The numbers of the mechanism that calls may give as keywords."""
        return self._parameters

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """What closes its loops, where no other constraints are given."""
        return self._constraints

    @property
    def actuators(self) -> tuple[Actuator, ...]:
        """The motors and servos that its file has; `control.ActuatorForces` is their law."""
        return self._actuators

    @property
    def alg(self) -> Algorithms:
        """The plain algorithms with the mechanism bound: they run on any scalar."""
        return self._alg

    @property
    def name(self) -> str:
        """The name of the mechanism."""
        return self.mechanism.name

    @property
    def nq(self) -> int:
        """The number of coordinates."""
        return self.mechanism.nq

    @property
    def nv(self) -> int:
        """The number of degrees of freedom."""
        return self.mechanism.nv

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Joints that move, in the order of their bodies."""
        return self.mechanism.joint_names

    @property
    def body_names(self) -> tuple[str, ...]:
        """Moving bodies: the rows of `f_ext` and of `poses`."""
        return self.mechanism.body_names

    @property
    def frame_names(self) -> tuple[str, ...]:
        """Every body, merged link and added frame."""
        return self.mechanism.frame_names

    @property
    def total_mass(self) -> float:
        """The mass of all moving bodies, kg."""
        return float(algorithms.total_mass(self.mechanism))

    def q_slice(self, joint: str) -> slice:
        """Where a joint's coordinates are in q."""
        return self.mechanism.q_slice(joint)

    def v_slice(self, joint: str) -> slice:
        """Where a joint's rates are in qd, qdd and tau."""
        return self.mechanism.v_slice(joint)

    def conventions(self) -> None:
        """Print what every number means for this robot."""
        from .report import conventions

        print(conventions(self.mechanism))

    def __repr__(self) -> str:
        return f"<Robot {self.name!r}: {self.n_bodies} bodies, nq = {self.nq}, nv = {self.nv}>"

    def __str__(self) -> str:
        from .report import described

        return described(self.mechanism)

    # configurations

    def neutral(self) -> np.ndarray:
        """The configuration in which every body's frame is at its placement: (nq,)."""
        return algorithms.neutral(self.mechanism)

    def random_configuration(
        self, rng: np.random.Generator | int | None = None, shape: int | tuple[int, ...] = ()
    ) -> np.ndarray:
        """Random configurations within the joint limits: (*shape, nq); rng: a generator or a seed.

        ±π for an angle and ±1 m for a length that has no limit; orientations are uniform.
        """
        lead = check_shape(f"random_configuration of {self.name!r}", "shape", shape)
        rng = np.random.default_rng(rng)
        return algorithms.random_configuration(self.mechanism, rng, lead)

    def random_velocity(
        self, rng: np.random.Generator | int | None = None, shape: int | tuple[int, ...] = ()
    ) -> np.ndarray:
        """Random velocities within the limits: (*shape, nv); rng: a generator or a seed.

        ±1 rad/s or m/s where a joint has no limit.
        """
        lead = check_shape(f"random_velocity of {self.name!r}", "shape", shape)
        rng = np.random.default_rng(rng)
        return algorithms.random_velocity(self.mechanism, rng, lead)

    @compiled()
    def integrate(
        self, q: ArrayLike, dv: ArrayLike, out: np.ndarray | None = None, **numbers: Unpack[Numbers]
    ) -> np.ndarray:
        """q ⊞ dv: q after moving with velocity dv for a unit of time, (…, nq); for a step of dt
        give dv = dt · q̇.
        """
        ...

    @compiled()
    def difference(
        self,
        q0: ArrayLike,
        q1: ArrayLike,
        out: np.ndarray | None = None,
        **numbers: Unpack[Numbers],
    ) -> np.ndarray:
        """q1 ⊟ q0: the velocity that leads from q0 to q1 in a unit of time, (…, nv)."""
        ...

    @compiled()
    def interpolate(
        self,
        q0: ArrayLike,
        q1: ArrayLike,
        s: ArrayLike,
        out: np.ndarray | None = None,
        **numbers: Unpack[Numbers],
    ) -> np.ndarray:
        """q0 ⊞ s (q1 ⊟ q0): a part s (…) of the shortest way from q0 (0) to q1 (1), (…, nq).

        `robot.interpolate(q0, q1, np.linspace(0, 1, 50))` is a path of fifty configurations.
        """
        ...

    @compiled()
    def normalize(
        self, q: ArrayLike, out: np.ndarray | None = None, **numbers: Unpack[Numbers]
    ) -> np.ndarray:
        """The same configuration with quaternions of unit length: (…, nq)."""
        ...

    @compiled()
    def tangent_rate(
        self, u: ArrayLike, v: ArrayLike, out: np.ndarray | None = None, **numbers: Unpack[Numbers]
    ) -> np.ndarray:
        """The rate of u at which q ⊞ u moves with velocity v, to O(u⁴): (…, nv)."""
        ...

    # calling

    def kernel(self, name: str, *arrays: str, **static: Any) -> Kernel:
        """The compiled algorithm of that name for the named arrays and the other arguments.

        `robot.kernel("inverse_dynamics", "q", "qd", "qdd")`
        """
        asked = (name, arrays, self._settings(name, static))
        make = partial(robot_kernel, self.mechanism, *asked, self.dtype, self._backend)
        return self._keep(asked, make)

    def explain(self, name: str, *arrays: str, samples: int | None = None, **static: Any) -> str:
        """How a method is computed and why, and how many operations that takes, to be printed.

        arrays: names, by default of those that it needs; samples: 1 for a call with one or a batch
        of one, None for many; static: other arguments, such as `frame` or `active`.
        """
        if name not in ALGORITHMS:
            hint = did_you_mean(name, ALGORITHMS)
            raise ArgumentError(f"explain {self.name!r}: no algorithm is called {name!r}; {hint}")
        where, mech = f"explain {name} of {self.name!r}", self.mechanism
        fixed = {n: settled(mech, where, n, x, split_per_sample=False) for n, x in static.items()}
        can = self._backend.climbs, self._backend.solves
        told = explain(mech, name, arrays or None, fixed, samples, *can)
        if self.device == "cpu":
            return told
        takes = arrays or needed(mech, name, fixed)
        answer = self._answer(name, takes, fixed, tuple)
        if not isinstance(answer, ByKernel) or answer.kernel.caller is None:
            return f"{told}\n  card        its pieces, each as a kernel"
        return f"{told}\n  card        {answer.kernel.caller.told()}"

    def precompile(
        self,
        *methods: str,
        single: bool = True,
        batch: bool = True,
        processes: int | None = None,
        **settings: Any,
    ) -> dict[str, float]:
        """Compile methods now, so that their first calls find the code on disk; seconds by name.

        `robot.precompile("forward_dynamics", "jacobian", frame="hand")`

        methods: names, by default all that need nothing but arrays and the settings that are given.
        single, batch: for calls with one sample, with many.  processes: how many share the work,
        None for one per core.  settings: arguments that choose a kernel, for the methods that take
        them.
        """
        from .precompile import precompile

        leads = (((),) if single else ()) + (((2,),) if batch else ())
        return precompile(self, methods, leads, processes, settings)

    @overload
    def compile(self, fn: Callable[P, R], **shapes: tuple[int, ...]) -> Kernel[P, R]:
        """A function."""
        ...

    @overload
    def compile(
        self, fn: None = None, **shapes: tuple[int, ...]
    ) -> Callable[[Callable[P, R]], Kernel[P, R]]:
        """A decorator."""
        ...

    def compile(self, fn: Any = None, **shapes: tuple[int, ...]) -> Any:
        """A function of traced arrays as one fused kernel; also as a decorator.

        Arguments called like an array of this robot's methods (q, qd, tau, f_ext, dq, u, v, nu, …)
        have its shape; others are scalars unless it is given: `robot.compile(fn, gains=(7, 7))`.
        """
        if fn is None:
            return lambda function: self.compile(function, **shapes)
        names = list(inspect.signature(fn).parameters)
        own = {n: array_shape(self.mechanism, n) for n in names}
        return compile_for(self._backend, fn, self.dtype, {**own, **shapes})

    def rollout(
        self,
        fn: Callable[..., Any] | None = None,
        state: Sequence[str] = ("q", "qd"),
        inputs: Sequence[str] = (),
        keep: Mapping[str, Reduction] | None = None,
        **shapes: tuple[int, ...],
    ) -> Any:
        """A step (states, inputs, parameters) ↦ states, run many times in one kernel.

        `hinge.rollout` with the shapes of this robot, as in `compile`; also as a decorator.
        keep: what is kept instead of states, such as {"peak": hinge.Max(lambda qd: qd @ qd)}.
        """
        from ..functions.rollout import rollout_for

        if fn is None:
            return lambda function: self.rollout(function, state, inputs, keep, **shapes)
        own = {n: array_shape(self.mechanism, n) for n in inspect.signature(fn).parameters}
        return rollout_for(self._backend, fn, state, inputs, self.dtype, {**own, **shapes}, keep)

    # for functions that are built on robots

    def _with_numbers(self, numbers: Mapping[str, Any]) -> Self:
        """This robot with other numbers of the mechanism in all calls that take arrays.

        numbers: some of gravity, inertia, placement, with any leading shape.
        """
        other = object.__new__(type(self))
        other.__setstate__({**self.__getstate__(), "_numbers": dict(numbers)})
        other._kept, other._recent = self._kept, self._recent
        return other

    def _with_mechanism(self, mechanism: Mechanism) -> Self:
        """A robot like this one of another mechanism: what `hinge.edit` gives back."""
        other = object.__new__(type(self))
        left = acting_on(mechanism, self._actuators)
        other.__setstate__({**self.__getstate__(), "_mechanism": mechanism, "_actuators": left})
        other._check_constraints()
        return other

    def _keep(self, asked: Any, make: Callable[[], Any]) -> Any:
        """What was made for this robot when the same was asked before, or is made now."""
        if asked not in self._kept:
            self._kept[asked] = make()
        return self._kept[asked]

    def _keep_recent(self, asked: Any, make: Callable[[], Any]) -> Any:
        """The same of what may be asked in ever new forms: the last of them stay."""
        return self._recent.get(asked, make)

    def _ask(self, name: str, static: Mapping[str, Any], **arrays: Any) -> Any:
        """The named algorithm on the arrays that are not None, checked."""
        out = arrays.pop("out", None)
        given = {n: x for n, x in {**arrays, **self._numbers}.items() if x is not None}
        answer = self._answer(name, tuple(given), dict(static), tuple)
        return self._answered(answer, f"{name} of {self.name!r}", given, out)

    def _answered(self, answer: Answer, where: str, given: Mapping[str, Any], out: Any) -> Any:
        """What answers, called with arrays in its order; where nothing does, why."""
        if self.device != "cpu" and not isinstance(answer, (ByColumns, ByKernel)):
            resident = getattr(answer, "on_card", None)
            there = resident(given) if resident and out is None else None
            return self._through_host(answer, where, given, out) if there is None else there
        try:
            return answer(where, self._arguments(given, answer.static), out)
        except SingularError:
            raise SingularError(self._why_singular(where, {**given, **answer.static})) from None

    def _through_host(self, answer: Answer, where: str, given: Mapping[str, Any], out: Any) -> Any:
        """The same where a robot on a card has no kernel: results are put together in NumPy."""

        @through_host
        def put_together(robot: Self, *values: Any) -> Any:
            arguments = robot._arguments(dict(zip(given, values, strict=True)), answer.static)
            return answer(where, arguments, None)

        results = put_together(self, *given.values())
        if out is None:
            return results
        raise ArgumentError(
            f"{where}: it is put together on the host, and takes no out on a card; leave it out"
        )

    def _why_singular(self, where: str, given: Mapping[str, Any]) -> str:
        """Why one sample has no answer; given: the arguments of the call."""
        if "q" not in given:
            return why_singular(where, "")
        numbers = {n: given[n] for n in PARAMETERS if n in given}
        if "constraints" in given:
            return self._why_held(where, given, numbers)
        # in a batch, which is NaN where this one raises
        (M,) = self._ask("mass_matrix", {}, q=np.asarray(given["q"])[None], **numbers)
        held = self.mechanism.driven(given["active"]) if "active" in given else None
        return why_singular(where, loose_joint(self.mechanism, M, held))

    def _why_held(self, where: str, given: Mapping[str, Any], numbers: Mapping[str, Any]) -> str:
        """Why constraints hold no motion: the plain algorithm says it."""
        mech = with_parameters(self.mechanism, **{n: np.asarray(x) for n, x in numbers.items()})
        state: dict[str, Any] = {n: x for n, x in given.items() if n not in numbers}
        state |= {n: np.asarray(x, float) for n, x in state.items() if n != "constraints"}
        try:
            ALGORITHMS[where.partition(" of ")[0]].function(mech, **state)
        except SingularError as conflict:
            return str(conflict)
        return why_singular(where, "")

    def _look_at_loops(self, where: str, constraints: Any, given: Mapping[str, Any]) -> None:
        """Warn of open loops, once for the constraints and of what is called first."""
        from .gaps import warn_of_open_loops

        known = ("loops", constraints) in self._kept
        if "q" in given and "placement" not in given and not known:
            q = broadcast(where, [self._argument("q", given["q"])])["q"]
            looked = partial(warn_of_open_loops, self.mechanism, where, constraints, q)
            self._keep(("loops", constraints), looked)

    def _answer(
        self, name: str, arrays: tuple[str, ...], static: dict[str, Any], form: type
    ) -> Answer:
        """What answers calls of an algorithm."""
        asked = ("answer", name, arrays, self._settings(name, static))
        return self._keep(asked, lambda: answer_of(self, name, arrays, static, form))

    def _settings(self, name: str, static: Mapping[str, Any]) -> tuple[Any, ...]:
        """Settings as a key."""
        asked = tuple(sorted(static.items()))
        try:
            hash(asked)
        except TypeError:
            told = ", ".join(f"{n} is {x!r}" for n, x in static.items())
            raise ArgumentError(
                f"{name} of {self.name!r}: {told}; expected names and numbers, or tuples of them"
            ) from None
        return asked

    def _arguments(self, given: Mapping[str, Any], static: Mapping[str, Any]) -> list[Argument]:
        """Arrays with what this robot expects of them."""
        return [self._argument(n, x, static) for n, x in given.items()]

    def _refuse(self, where: str, numbers: Mapping[str, Any]) -> None:
        """Calls that are made for a mechanism take no numbers of it, and no other keywords."""
        method = getattr(type(self), where.partition(" of ")[0])
        for name in (n for n in numbers if n not in PARAMETERS):
            known = list(inspect.signature(method).parameters)[1:-1]
            raise ArgumentError(f"{where}: {unknown_argument(name, known)}")
        if numbers:
            raise ArgumentError(
                f"{where} takes no {' or '.join(numbers)}: it is made for the mechanism as it is; "
                f"use a robot of hinge.model.parameters.with_parameters(robot.mechanism, …)"
            )

    def _argument(self, name: str, value: Any, static: Mapping[str, Any] | None = None) -> Argument:
        """An array with what this robot expects of it; static: the other arguments of a call."""
        held = {n: x for n, x in (static or {}).items() if n == "constraints"}
        describe = partial(_described, self.mechanism, name, held)
        shape, holds = self._keep(("array", name, *held.values()), describe)
        if name not in ("q", "q0", "q1"):
            return Argument(name, value, shape, holds)
        sound = self._check_quaternions, self._quaternions_in_range
        return Argument(name, value, shape, holds, *sound, endless=_ENDLESS)

    def _quaternions(self) -> Iterator[tuple[str, slice]]:
        """The joints that have one, and where it is in q."""
        for body in self.mechanism.bodies[1:]:
            if body.joint.nq > body.joint.nv:
                stop = self.q_slice(body.joint_name).stop
                yield body.joint_name, slice(stop - 4, stop)

    def _check_quaternions(self, q: np.ndarray) -> str:
        for joint, at in self._quaternions():
            if not q[at].any():
                where = f"q[{at.start}:{at.stop}], the quaternion of joint {joint!r}"
                return f"{where}, is zero; give (1, 0, 0, 0) for no rotation"
        return ""

    def _quaternions_in_range(self, q: np.ndarray, dtype: np.dtype) -> np.ndarray:
        out = q.astype(float)
        for _, at in self._quaternions():
            out[at] = safe_to_square(out[at], dtype)
        return out


def _described(
    mech: Mechanism, name: str, static: Mapping[str, Any]
) -> tuple[tuple[int, ...], str]:
    return array_shape(mech, name, static), meaning(mech, name)
