"""From an algorithm and a mechanism to a program: which way, unrolled or as loops."""

from __future__ import annotations

import inspect
from functools import partial
from typing import TYPE_CHECKING, Any

from .. import algorithms
from ..errors import ArgumentError
from ..model.mechanism import Mechanism
from ..model.parameters import PARAMETERS, with_parameters
from .arrays import array_shape

if TYPE_CHECKING:
    from ..graph.loop import LoopProgram
    from ..graph.program import Program

__all__ = ["MOST_UNROLLED", "is_long", "robot_program"]

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


def is_long(mech: Mechanism) -> bool:
    """Whether sweeps over a mechanism are compiled as loops."""
    return mech.n_bodies > MOST_UNROLLED and not mech.has_followers


def robot_program(
    mech: Mechanism, name: str, arrays: tuple[str, ...], static: dict[str, Any]
) -> Program | LoopProgram:
    """The named algorithm on a mechanism, traced."""
    from ..graph.program import trace
    from .canonical import Lean, lean

    _check_arguments(mech, name, [*(a for a in arrays if a not in PARAMETERS), *static])
    shapes = [array_shape(mech, a) for a in arrays]
    open_numbers = [a for a in arrays if a in PARAMETERS]
    fixed = name in _JOINT_LEVEL | _LINEARIZED and not open_numbers
    form = lean(mech) if fixed else Lean.same(mech)
    loops = name in _LOOPED and static.get("method") != "conventional"
    if loops and is_long(mech) and not open_numbers:
        from .loops import trace_loops

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
