"""The front door: a mechanism with checked arguments and batches over any leading shape."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from . import algorithms
from .algorithms.constraints import ConstrainedMotion, LoopConstraint
from .algorithms.inverse_kinematics import InverseKinematics, Task
from .algorithms.kinematics import Reference
from .compiled import array_shape, compile, robot_kernel
from .errors import ArgumentError
from .load import load_mechanism
from .mechanism import Mechanism
from .runtime.call import Argument, evaluate, single
from .runtime.check import check_choice, check_number, check_pose
from .runtime.kernel import Kernel

__all__ = ["Robot", "load"]


def load(
    path_or_text: str | Path,
    floating_base: bool = False,
    package_dirs: Sequence[str | Path] = (),
) -> Robot:
    """A robot from a URDF or MJCF file, or from the text of one.

    floating_base: let the root link move freely instead of welding it to the world.
    package_dirs: where the packages of package:// mesh addresses are.
    """
    return Robot(load_mechanism(path_or_text, floating_base, package_dirs))


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


class Robot:
    """A mechanism ready for use.

    Every method takes arrays with any leading shape and broadcasts them: `q` (…, nq), `qd`, `qdd`,
    `tau` (…, nv), `f_ext` (…, n_bodies, 6).  A wrong argument raises `ArgumentError`; NaN raises in
    a single call and gives NaN for that sample in a batch.
    """

    def __init__(
        self, mechanism: Mechanism, dtype: Any = np.float64, threads: int | None = None
    ) -> None:
        """dtype: of the arithmetic, float64 or float32; threads: for batches, None: all cores."""
        if not isinstance(mechanism, Mechanism):
            raise ArgumentError(
                f"Robot needs a Mechanism, got {type(mechanism).__name__}; "
                f"build one with MechanismBuilder, or use hinge.load for a file"
            )
        self.mechanism, self.dtype, self.threads = mechanism, np.dtype(dtype), threads
        self.alg = Algorithms(mechanism)
        self._kernels: dict[Any, Kernel] = {}

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

    # kinematics

    def poses(self, q: ArrayLike) -> np.ndarray:
        """X_WB of every body: (…, n_bodies, 4, 4)."""
        return self._call("poses", q=q)

    def frame_pose(self, q: ArrayLike, frame: str) -> np.ndarray:
        """X_WF of a frame: (…, 4, 4)."""
        return self._call("frame_pose", {"frame": frame}, q=q)

    def jacobian(self, q: ArrayLike, frame: str, reference: Reference = "aligned") -> np.ndarray:
        """J with J q̇ = (ω; v) of a frame: (…, 6, nv)."""
        return self._call("jacobian", {"frame": frame, "reference": reference}, q=q)

    def frame_velocity(
        self, q: ArrayLike, qd: ArrayLike, frame: str, reference: Reference = "aligned"
    ) -> np.ndarray:
        """The velocity (ω; v) of a frame: (…, 6)."""
        return self._call("frame_velocity", {"frame": frame, "reference": reference}, q=q, qd=qd)

    def frame_acceleration(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        frame: str,
        reference: Reference = "aligned",
    ) -> np.ndarray:
        """J q̈ + J̇ q̇, the rate of `frame_velocity` in the same reference: (…, 6)."""
        static = {"frame": frame, "reference": reference}
        return self._call("frame_acceleration", static, q=q, qd=qd, qdd=qdd)

    def velocity_product_acceleration(
        self, q: ArrayLike, qd: ArrayLike, frame: str, reference: Reference = "aligned"
    ) -> np.ndarray:
        """J̇ q̇, the acceleration of a frame at q̈ = 0: (…, 6)."""
        static = {"frame": frame, "reference": reference}
        return self._call("velocity_product_acceleration", static, q=q, qd=qd)

    def inverse_kinematics(
        self,
        frame: str,
        target: ArrayLike,
        q0: ArrayLike | None = None,
        task: Task = "pose",
        tolerance: float = 1e-9,
        max_iterations: int = 200,
        restarts: int = 20,
        rng: np.random.Generator | int | None = 0,
    ) -> InverseKinematics:
        """A configuration within the limits that brings a frame to the target pose (4, 4).

        task: "pose", "position" or "orientation".  The result says how it ended in `.status`:
        "reached", "unreachable", "singular" or "unfinished".
        """
        where = f"inverse_kinematics of {self.name!r}"
        start = self.argument("q0", self.neutral() if q0 is None else q0)
        return self.alg.inverse_kinematics(
            **single(where, [start]),
            frame=frame,
            target=check_pose(where, "target", target),
            task=check_choice(where, "task", task, ("pose", "position", "orientation")),
            tolerance=check_number(where, "tolerance", tolerance, above=0),
            max_iterations=int(check_number(where, "max_iterations", max_iterations, above=0)),
            restarts=int(check_number(where, "restarts", restarts, above=-1)),
            rng=np.random.default_rng(rng),
        )

    # energy and momentum

    def center_of_mass(self, q: ArrayLike) -> np.ndarray:
        """The centre of mass in the world: (…, 3)."""
        return self._call("center_of_mass", q=q)

    def momentum(
        self, q: ArrayLike, qd: ArrayLike, about: Literal["com", "world"] = "com"
    ) -> np.ndarray:
        """The momentum (angular; linear) in world axes: (…, 6); about: "com" or "world"."""
        return self._call("momentum", {"about": about}, q=q, qd=qd)

    def kinetic_energy(self, q: ArrayLike, qd: ArrayLike) -> np.ndarray:
        """½ q̇ᵀ M(q) q̇, armature included: (…)."""
        return self._call("kinetic_energy", q=q, qd=qd)

    def potential_energy(self, q: ArrayLike) -> np.ndarray:
        """−Σ m g·c: (…)."""
        return self._call("potential_energy", q=q)

    # dynamics

    def inverse_dynamics(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        f_ext: ArrayLike | None = None,
        out: np.ndarray | None = None,
    ) -> np.ndarray:
        """τ = M q̈ + C(q, q̇) + g(q) − Σ Jᵀ f_ext: (…, nv)."""
        return self._call("inverse_dynamics", q=q, qd=qd, qdd=qdd, f_ext=f_ext, out=out)

    def forward_dynamics(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        tau: ArrayLike,
        f_ext: ArrayLike | None = None,
        out: np.ndarray | None = None,
    ) -> np.ndarray:
        """q̈ = M⁻¹(τ − C(q, q̇) − g(q) + Σ Jᵀ f_ext): (…, nv)."""
        return self._call("forward_dynamics", q=q, qd=qd, tau=tau, f_ext=f_ext, out=out)

    def mass_matrix(self, q: ArrayLike, out: np.ndarray | None = None) -> np.ndarray:
        """M(q): (…, nv, nv)."""
        return self._call("mass_matrix", q=q, out=out)

    def mass_matrix_inverse(self, q: ArrayLike, out: np.ndarray | None = None) -> np.ndarray:
        """M(q)⁻¹, without forming M: (…, nv, nv)."""
        return self._call("mass_matrix_inverse", q=q, out=out)

    def bias_forces(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        f_ext: ArrayLike | None = None,
        out: np.ndarray | None = None,
    ) -> np.ndarray:
        """C(q, q̇) + g(q) − Σ Jᵀ f_ext: (…, nv)."""
        return self._call("bias_forces", q=q, qd=qd, f_ext=f_ext, out=out)

    def gravity_forces(self, q: ArrayLike, out: np.ndarray | None = None) -> np.ndarray:
        """g(q), the joint forces that hold the robot still: (…, nv)."""
        return self._call("gravity_forces", q=q, out=out)

    def constrained_forward_dynamics(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        tau: ArrayLike,
        constraints: Sequence[LoopConstraint],
        f_ext: ArrayLike | None = None,
    ) -> ConstrainedMotion:
        """q̈ (…, nv) and constraint forces λ (…, rows): M q̈ − Kᵀλ = τ − bias, K q̈ = k."""
        static = {"constraints": tuple(constraints)}
        name = "constrained_forward_dynamics"
        return ConstrainedMotion(*self._call(name, static, q=q, qd=qd, tau=tau, f_ext=f_ext))

    rnea = inverse_dynamics
    aba = forward_dynamics
    crba = mass_matrix

    # calling

    def kernel(self, name: str, *arrays: str, **static: Any) -> Kernel:
        """The compiled algorithm of that name for the named arrays and the other arguments.

        `robot.kernel("inverse_dynamics", "q", "qd", "qdd")`
        """
        asked = (name, arrays, tuple(sorted(static.items())))
        if asked not in self._kernels:
            self._kernels[asked] = robot_kernel(self.mechanism, *asked, self.dtype, self.threads)
        return self._kernels[asked]

    def compile(self, fn: Callable[..., Any] | None = None, **shapes: tuple[int, ...]) -> Any:
        """A function of traced arrays as one fused kernel; also as a decorator.

        The shapes of arguments called q, qd, qdd, tau, dv or f_ext are this robot's; others are
        scalars unless their shape is given: `robot.compile(fn, gains=(7, 7))`.
        """
        if fn is None:
            return lambda function: self.compile(function, **shapes)
        names = list(inspect.signature(fn).parameters)
        own = {n: array_shape(self.mechanism, n) for n in names}
        return compile(fn, self.dtype, self.threads, **{**own, **shapes})

    def _call(self, name: str, static: dict[str, Any] | None = None, **arrays: Any) -> Any:
        out = arrays.pop("out", None)
        given = [self.argument(k, v) for k, v in arrays.items() if v is not None]
        kernel = self.kernel(name, *(a.name for a in given), **(static or {}))
        result = evaluate(f"{name} of {self.name!r}", kernel, given, out)
        if tuple(a.name for a in given) == _DIRECT.get(name) and name not in self.__dict__:
            # from now on single calls go straight to machine code, which comes back here if need be
            fast = kernel.fast(getattr(type(self), name).__get__(self))
            self.__dict__.update({alias: fast for alias, n in _ALIASES.items() if n == name})
            self.__dict__[name] = fast
        return result

    def __reduce__(self) -> Any:
        return Robot, (self.mechanism, self.dtype, self.threads)

    def argument(self, name: str, value: Any) -> Argument:
        """What this robot expects of an array of that name, for functions built on robots."""
        shape = array_shape(self.mechanism, name)
        if name in ("q", "q0", "q1"):
            meaning = f"nq = {self.nq} coordinates"
            return Argument(name, value, shape, meaning, self._check_quaternions)
        if name == "f_ext":
            return Argument(name, value, shape, f"a force (moment; force) on {shape[0]} bodies")
        return Argument(name, value, shape, f"nv = {self.nv} {_NOUNS[name]}")

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


# calls that take nothing but arrays, and which
_DIRECT = {
    "inverse_dynamics": ("q", "qd", "qdd"),
    "forward_dynamics": ("q", "qd", "tau"),
    "mass_matrix": ("q",),
    "mass_matrix_inverse": ("q",),
    "bias_forces": ("q", "qd"),
    "gravity_forces": ("q",),
    "poses": ("q",),
    "center_of_mass": ("q",),
    "integrate": ("q", "dv"),
    "difference": ("q0", "q1"),
}
_ALIASES = {"rnea": "inverse_dynamics", "aba": "forward_dynamics", "crba": "mass_matrix"}
_NOUNS = {
    "qd": "joint velocities",
    "qdd": "joint accelerations",
    "tau": "joint forces",
    "dv": "joint displacements",
    "u": "joint displacements",
    "v": "joint velocities",
}
