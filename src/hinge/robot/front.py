"""Names, configurations, kernels and checked calls: what the chapters of a robot stand on."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import algorithms
from ..errors import ArgumentError
from ..functions.compile import compile
from ..model.mechanism import Mechanism
from ..model.parameters import PARAMETERS
from ..runtime.call import Argument, evaluate
from ..runtime.check import check_choice
from ..runtime.kernel import Kernel
from ..specialize.arrays import PER_DOF, array_shape
from .kernels import robot_kernel

__all__ = ["Algorithms", "Front"]


class Algorithms:
    """The generic algorithms with a mechanism bound: `robot.alg.inverse_dynamics(q, qd, qdd)`.

    They check nothing, do not batch, and run on any scalar in object arrays.
    """

    def __init__(self, mechanism: Mechanism) -> None:
        self._mechanism = mechanism

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in algorithms.__all__:
            raise AttributeError(f"hinge.algorithms has no function {name!r}")
        return partial(getattr(algorithms, name), self._mechanism)

    def __dir__(self) -> list[str]:
        return algorithms.__all__


class Front:
    """What every robot has: its names, its configurations, and how calls reach kernels."""

    def __init__(
        self,
        mechanism: Mechanism,
        dtype: Any = np.float64,
        threads: int | None = None,
        parameters: Sequence[str] = (),
    ) -> None:
        """dtype: of the arithmetic, float64 or float32; threads: for batches, None: all cores.

        parameters: numbers of the mechanism that calls may give as keywords, of "gravity" (…, 3),
        "inertia" (…, n_bodies, 10), "placement" (…, n_bodies, 12); see `hinge.model.parameters`.
        """
        if not isinstance(mechanism, Mechanism):
            raise ArgumentError(
                f"Robot needs a Mechanism, got {type(mechanism).__name__}; "
                f"build one with MechanismBuilder, or use hinge.load for a file"
            )
        if threads is not None and (not isinstance(threads, (int, np.integer)) or threads < 1):
            raise ArgumentError(
                f"Robot of {mechanism.name!r}: threads is {threads!r}; expected a whole number "
                f"above 0, or None for all cores"
            )
        self.mechanism, self.dtype, self.threads = mechanism, np.dtype(dtype), threads
        self.alg = Algorithms(mechanism)
        self.parameters = (parameters,) if isinstance(parameters, str) else tuple(parameters)
        for name in self.parameters:
            check_choice(f"Robot of {mechanism.name!r}", "a parameter", name, PARAMETERS)
        self._kernels: dict[Any, Any] = {}
        self._numbers: dict[str, Any] = {}
        self.asked = False
        if self.parameters:
            from .opened import open_methods

            open_methods(self)

    # what it is

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
        return (
            f"<Robot {self.name!r}: {len(self.body_names)} bodies, nq = {self.nq}, nv = {self.nv}>"
        )

    # configurations

    def neutral(self) -> np.ndarray:
        """The configuration in which every body's frame is at its placement: (nq,)."""
        return algorithms.neutral(self.mechanism)

    def random_configuration(self, rng: np.random.Generator | int | None = None) -> np.ndarray:
        """A random configuration within the joint limits: (nq,); rng: a generator or a seed."""
        return algorithms.random_configuration(self.mechanism, np.random.default_rng(rng))

    def integrate(self, q: ArrayLike, dv: ArrayLike) -> np.ndarray:
        """q ⊞ dv: q after moving with velocity dv for a unit of time, (…, nq)."""
        return self._call("integrate", q=q, dv=dv)

    def difference(self, q0: ArrayLike, q1: ArrayLike) -> np.ndarray:
        """q1 ⊟ q0: the velocity that leads from q0 to q1 in a unit of time, (…, nv)."""
        return self._call("difference", q0=q0, q1=q1)

    def tangent_rate(self, u: ArrayLike, v: ArrayLike) -> np.ndarray:
        """The rate of u at which q ⊞ u moves with velocity v, to O(u⁴): (…, nv)."""
        return self._call("tangent_rate", u=u, v=v)

    # calling

    def kernel(self, name: str, *arrays: str, **static: Any) -> Kernel:
        """The compiled algorithm of that name for the named arrays and the other arguments.

        `robot.kernel("inverse_dynamics", "q", "qd", "qdd")`
        """
        asked = (name, arrays, tuple(sorted(static.items())))
        try:
            hash(asked)
        except TypeError:
            told = ", ".join(f"{n} is {x!r}" for n, x in static.items())
            raise ArgumentError(
                f"{name} of {self.name!r}: {told}; expected names and numbers, or tuples of them"
            ) from None
        make = partial(robot_kernel, self.mechanism, *asked, self.dtype, self.threads)
        return self.keep(asked, make)

    def keep(self, asked: Any, make: Callable[[], Any]) -> Any:
        """What was made for this robot when the same was asked before, or is made now."""
        if asked not in self._kernels:
            self._kernels[asked] = make()
        return self._kernels[asked]

    def compile(self, fn: Callable[..., Any] | None = None, **shapes: tuple[int, ...]) -> Any:
        """A function of traced arrays as one fused kernel; also as a decorator.

        Arguments called like an array of this robot's methods (q, qd, tau, f_ext, dq, u, v, nu, …)
        have its shape; others are scalars unless it is given: `robot.compile(fn, gains=(7, 7))`.
        """
        if fn is None:
            return lambda function: self.compile(function, **shapes)
        names = list(inspect.signature(fn).parameters)
        own = {n: array_shape(self.mechanism, n) for n in names}
        return compile(fn, self.dtype, self.threads, **{**own, **shapes})

    def rollout(
        self,
        fn: Callable[..., Any] | None = None,
        state: Sequence[str] = ("q", "qd"),
        inputs: Sequence[str] = (),
        **shapes: tuple[int, ...],
    ) -> Any:
        """A step (states, inputs, parameters) ↦ states, run many times in one kernel.

        `hinge.rollout` with the shapes of this robot, as in `compile`; also as a decorator.
        """
        from ..functions.rollout import rollout

        if fn is None:
            return lambda function: self.rollout(function, state, inputs, **shapes)
        own = {n: array_shape(self.mechanism, n) for n in inspect.signature(fn).parameters}
        return rollout(fn, state, inputs, self.dtype, self.threads, **{**own, **shapes})

    def apply(self, name: str, static: dict[str, Any], **arrays: Any) -> Any:
        """The named algorithm on arrays, checked, for functions built on robots."""
        return self._call(name, static, **arrays)

    def _call(
        self,
        name: str,
        static: dict[str, Any] | None = None,
        wrap: Callable[..., Any] | None = None,
        single: bool = True,
        **arrays: Any,
    ) -> Any:
        """The named algorithm on the arrays that are not None.

        wrap: joins several results.  single: whether later calls with one sample may go straight
        to machine code, as batches do.
        """
        self.asked, out = True, arrays.pop("out", None)
        arrays.update(self._numbers)
        given = [self.argument(k, v) for k, v in arrays.items() if v is not None]
        names = [a.name for a in given]
        kernel = self.kernel(name, *names, **(static or {}))
        result = evaluate(f"{name} of {self.name!r}", kernel, given, out)
        if static is None and name not in self.__dict__ and not self._numbers:
            self._shorten(name, names, kernel, tuple if wrap is None else wrap, single)
        return result if wrap is None else wrap(*result)

    def _shorten(
        self, name: str, names: list[str], kernel: Kernel, form: Callable[..., Any], single: bool
    ) -> None:
        """Let calls go straight to machine code, which comes back here if need be."""
        method = getattr(type(self), name, None)
        if method is None or not isinstance(form, type) or not issubclass(form, tuple):
            return
        parameters = list(inspect.signature(method).parameters.values())[1:]
        if names == [p.name for p in parameters if p.default is p.empty]:
            fast = kernel.fast(method.__get__(self), form, single)
            aliases = [n for n in dir(type(self)) if getattr(type(self), n) is method]
            self.__dict__.update(dict.fromkeys(aliases, fast))

    def __reduce__(self) -> Any:
        return type(self), (self.mechanism, self.dtype, self.threads, self.parameters)

    def opened(self, numbers: Mapping[str, Any]) -> Any:
        """This robot with other numbers in all calls that take arrays, for functions on robots.

        numbers: some of gravity, inertia, placement, with any leading shape.  `asked` tells
        afterwards whether there were such calls.
        """
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        for name in [n for n in other.__dict__ if n in dir(type(self))]:
            del other.__dict__[name]
        other.__dict__.update(parameters=(), asked=False, _numbers=dict(numbers))
        return other

    def argument(self, name: str, value: Any) -> Argument:
        """What this robot expects of an array of that name, for functions built on robots."""
        shape = array_shape(self.mechanism, name)
        if name in ("q", "q0", "q1"):
            meaning = f"nq = {self.nq} coordinates"
            return Argument(name, value, shape, meaning, self._check_quaternions)
        if name == "f_ext":
            return Argument(name, value, shape, f"a force (moment; force) on {shape[0]} bodies")
        if name == "points":
            return Argument(name, value, shape, f"a point of each of {shape[0]} bodies")
        if name in PARAMETERS:
            return Argument(name, value, shape, f"the {name} of the mechanism")
        return Argument(name, value, shape, f"nv = {self.nv} {PER_DOF[name]}")

    def _check_quaternions(self, q: np.ndarray) -> str:
        for body in self.mechanism.bodies[1:]:
            if body.joint.nq > body.joint.nv:
                at = self.q_slice(body.joint_name)
                if not q[at.stop - 4 : at.stop].any():
                    where = (
                        f"q[{at.stop - 4}:{at.stop}], the quaternion of joint {body.joint_name!r}"
                    )
                    return f"{where}, is zero; give (1, 0, 0, 0) for no rotation"
        return ""
