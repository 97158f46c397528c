"""From algorithms and functions to kernels."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from . import algorithms
from .errors import ArgumentError
from .mechanism import Mechanism, did_you_mean
from .parameters import PARAMETERS, parameter_shape, with_parameters
from .runtime.cache import digest
from .runtime.kernel import Kernel

if TYPE_CHECKING:
    from .trace.loop import LoopProgram
    from .trace.program import Program

__all__ = [
    "MOST_UNROLLED",
    "PER_DOF",
    "array_shape",
    "checked_shapes",
    "compile",
    "is_long",
    "robot_kernel",
]

# results that do not depend on the choice of body frames, nor on how inertia is shared
_JOINT_LEVEL = {
    "inverse_dynamics",
    "forward_dynamics",
    "mass_matrix",
    "mass_matrix_inverse",
    "bias_forces",
    "gravity_forces",
    "kinetic_energy",
    "total_rates",
    "joint_rates",
    "working_forces",
    "working_gravity",
    "joint_forces",
    "innovations",
    "diagonal_coriolis",
    "diagonal_dynamics",
    "mass_factor",
    "mass_factor_inverse",
    "mass_factor_rate",
    "mass_matrix_rate",
    "mass_matrix_sensitivity",
    "mass_matrix_second_sensitivity",
    "christoffel",
    "curvature",
    "mass_factor_curl",
    "generalized_momentum",
    "hybrid_dynamics",
    "hybrid_dynamics_derivatives",
    "disturbance_jacobian",
    "disturbance_bias",
    "active_inertia",
    "schur_blocks",
    "complete_motion",
}


# linearised dynamics: joint-level too, with forces at points of bodies, and more than one way to it
_LINEARIZED = {
    "inverse_dynamics_derivatives",
    "inverse_dynamics_jvp",
    "forward_dynamics_derivatives",
    "forward_dynamics_jvp",
}
# from how many bodies in a row on ground axes may pay, and from how many DoF on Algorithms 5 and 6
_DEEP, _MANY = 7, 16

# results whose sweeps can be loops, and from how many bodies on they are
_LOOPED = {
    "inverse_dynamics",
    "forward_dynamics",
    "bias_forces",
    "gravity_forces",
    "total_rates",
    "joint_rates",
    "working_forces",
    "working_gravity",
    "joint_forces",
    "diagonal_coriolis",
    "diagonal_dynamics",
    "generalized_momentum",
    "hybrid_dynamics",
    "inverse_dynamics_jvp",
    "forward_dynamics_jvp",
}
MOST_UNROLLED = 40

# arrays with an entry per degree of freedom, and what the entries are
PER_DOF = {
    "dq": "changes of q along the joints",
    "dqd": "changes of joint velocities",
    "dqdd": "changes of joint accelerations",
    "dtau": "changes of joint forces",
    "qd": "joint velocities",
    "qdd": "joint accelerations",
    "tau": "joint forces",
    "dv": "joint displacements",
    "u": "joint displacements",
    "v": "joint velocities",
    "nu": "total rates",
    "eps": "working forces",
    "active": "marks, 1 for a driven DoF and 0 for another",
    "qd_active": "joint velocities, used where a DoF is driven",
    "qdd_active": "joint accelerations, used where a DoF is driven",
    "tau_passive": "joint forces, used where a DoF is not driven",
    "momentum_passive": "joint momenta, used where a DoF is not driven",
}


def is_long(mech: Mechanism) -> bool:
    """Whether sweeps over a mechanism are compiled as loops."""
    return mech.n_bodies > MOST_UNROLLED and not mech.has_followers


def array_shape(mech: Mechanism, name: str) -> tuple[int, ...]:
    """The shape of one sample of an array of that name; a name without a meaning is a scalar."""
    if name in ("q", "q0", "q1"):
        return (mech.nq,)
    if name == "f_ext":
        return (mech.n_bodies, 6)
    if name == "points":
        return (mech.n_bodies, 3)
    if name in PARAMETERS:
        return parameter_shape(mech, name)
    return (mech.nv,) if name in PER_DOF else ()


def robot_kernel(
    mech: Mechanism,
    name: str,
    arrays: tuple[str, ...],
    static: tuple[tuple[str, Any], ...],
    dtype: Any = np.float64,
    threads: int | None = None,
) -> Kernel:
    """The named algorithm on a mechanism, compiled; arrays in order, other arguments fixed.

    Arrays named gravity, inertia or placement are numbers of the mechanism left open.
    """
    if name not in algorithms.__all__:
        hint = did_you_mean(name, algorithms.__all__)
        raise ArgumentError(f"kernel of {mech.name!r}: no algorithm is called {name!r}; {hint}")
    for unknown in (a for a in arrays if array_shape(mech, a) == ()):
        hint = did_you_mean(unknown, ("q", "f_ext", "points", *PARAMETERS, *PER_DOF))
        raise ArgumentError(f"kernel of {mech.name!r}: no array is called {unknown!r}; {hint}")
    make = partial(_program, mech, name, arrays, dict(static))
    key = digest(pickle.dumps(mech), name, repr(arrays), repr(static))
    title = f"{name} of {mech.name!r}"
    return Kernel(make, title, arrays, dtype, threads, key=key, strict=True)


def _program(
    mech: Mechanism, name: str, arrays: tuple[str, ...], static: dict[str, Any]
) -> Program | LoopProgram:
    """The named algorithm on a mechanism, traced."""
    from .lean import Lean, lean
    from .trace.program import trace

    _check_arguments(mech, name, [*(a for a in arrays if a not in PARAMETERS), *static])
    shapes = [array_shape(mech, a) for a in arrays]
    open_numbers = [a for a in arrays if a in PARAMETERS]
    fixed = name in _JOINT_LEVEL | _LINEARIZED and not open_numbers
    form = lean(mech) if fixed else Lean.same(mech)
    loops = name in _LOOPED and static.get("method") != "conventional"
    if loops and is_long(mech) and not open_numbers:
        from .looped import trace_loops

        given = dict(zip(arrays, shapes, strict=True))
        algorithm = partial(getattr(algorithms, name), **static)
        return trace_loops(algorithm, form, given, name, static.get("active"))

    def fn(*values: Any, **way: Any) -> Any:
        given = dict(zip(arrays, values, strict=True))
        if "f_ext" in given:
            given["f_ext"] = form.forces(given["f_ext"])
        if name in _LINEARIZED:
            given["points"] = form.points(given.get("points"))
        numbers = {n: given.pop(n) for n in open_numbers}
        this = with_parameters(form.mechanism, **numbers)
        return getattr(algorithms, name)(this, **given, **static, **way)

    ways = _ways(mech, name, static)
    programs = [trace(partial(fn, **way), shapes, name) for way in ways]
    return min(programs, key=lambda program: sum(program.ops))


def _check_arguments(mech: Mechanism, name: str, given: list[str]) -> None:
    """An algorithm gets what it takes, and all that it needs."""
    takes = list(inspect.signature(getattr(algorithms, name)).parameters.values())[1:]
    needed = [p.name for p in takes if p.default is p.empty and p.name not in given]
    unknown = [n for n in given if n not in [p.name for p in takes]]
    if needed or unknown:
        missing, strange = ", ".join(needed), ", ".join(unknown)
        what = f"{missing} is missing, or None" if needed else f"{strange} is not an argument"
        raise ArgumentError(
            f"{name} of {mech.name!r}: {what}; it takes {', '.join(p.name for p in takes)}"
        )


def _ways(mech: Mechanism, name: str, static: dict[str, Any]) -> list[dict[str, Any]]:
    """Arguments that change how a result is computed but not what it is; the cheapest is taken."""
    if name not in _LINEARIZED:
        return [{}]
    deep = any(len(list(mech.ancestors(k))) >= _DEEP for _, k in mech.outward())
    ways = [{"axes": axes} for axes in (("body", "ground") if deep else ("body",))]
    if name.startswith("forward") and "method" not in static:
        method = "articulated" if mech.nv >= _MANY else "conventional"
        return [way | {"method": method} for way in ways]
    return ways


def compile(
    fn: Callable[..., Any],
    dtype: Any = np.float64,
    threads: int | None = None,
    **shapes: tuple[int, ...],
) -> Kernel:
    """A function of arrays, given the shape of each argument, as one fused kernel.

    norm = hinge.compile(lambda x: np.sqrt(x @ x), x=(3,))
    """
    from .trace.program import trace

    names = list(inspect.signature(fn).parameters)
    title = getattr(fn, "__name__", "kernel")
    sizes = checked_shapes(f"compile {title}", names, shapes)
    program = trace(fn, list(sizes.values()), title)
    return Kernel(program, title, names, dtype, threads)


def checked_shapes(
    where: str, names: list[str], shapes: Mapping[str, Any]
) -> dict[str, tuple[int, ...]]:
    """The shape of each argument of a function, in their order."""
    if sorted(names) != sorted(shapes):
        raise ArgumentError(
            f"{where}: it takes {', '.join(names) or 'nothing'}; give the shape of each, "
            f"got {', '.join(shapes) or 'none'}"
        )
    for n, shape in shapes.items():
        whole = isinstance(shape, tuple) and all(isinstance(k, int) and k >= 0 for k in shape)
        if not whole:
            raise ArgumentError(
                f"{where}: the shape of {n} is {shape!r}; expected a tuple of whole numbers, () "
                f"for a scalar"
            )
    return {n: shapes[n] for n in names}
