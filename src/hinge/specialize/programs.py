"""From an algorithm and a mechanism to a program: which way, unrolled or as loops."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from inspect import Parameter
from typing import TYPE_CHECKING, Any

from ..algorithms.declare import ALGORITHMS
from ..errors import ArgumentError
from ..model.mechanism import Mechanism
from ..model.parameters import PARAMETERS, with_parameters
from .arrays import array_shape

if TYPE_CHECKING:
    from ..graph.loop import LoopProgram
    from ..graph.program import Program

__all__ = ["MOST_UNROLLED", "is_long", "robot_program"]

# from how many bodies in a row on ground axes may pay, and from how many DoF on Algorithms 5 and 6
_DEEP, _MANY = 7, 16

# from how many bodies on sweeps are loops, where they can be
MOST_UNROLLED = 40


def is_long(mech: Mechanism) -> bool:
    """Whether sweeps over a mechanism are compiled as loops."""
    return mech.n_bodies > MOST_UNROLLED and not mech.has_followers


def robot_program(
    mech: Mechanism, name: str, arrays: tuple[str, ...], static: dict[str, Any]
) -> Program | LoopProgram:
    """The named algorithm on a mechanism, traced."""
    from ..graph.program import trace
    from .canonical import Reframed, canonical

    declared = ALGORITHMS[name]
    takes = declared.parameters
    _check_arguments(mech, name, takes, [*(a for a in arrays if a not in PARAMETERS), *static])
    shapes = [array_shape(mech, a) for a in arrays]
    open_numbers = [a for a in arrays if a in PARAMETERS]
    form = canonical(mech) if declared.joint_level and not open_numbers else Reframed.same(mech)
    loops = declared.loops and static.get("method") != "conventional"
    if loops and is_long(mech) and not open_numbers:
        from .loops import trace_loops

        given = dict(zip(arrays, shapes, strict=True))
        algorithm = partial(declared.function, **static)
        return trace_loops(algorithm, form, given, name, static.get("active"))

    def fn(*values: Any, **way: Any) -> Any:
        given = dict(zip(arrays, values, strict=True))
        if "f_ext" in given:
            given["f_ext"] = form.forces(given["f_ext"])
        if "points" in takes:
            given["points"] = form.points(given.get("points"))
        numbers = {n: given.pop(n) for n in open_numbers}
        this = with_parameters(form.mechanism, **numbers)
        return declared.function(this, **given, **static, **way)

    ways = _ways(mech, takes, static)
    programs = [trace(partial(fn, **way), shapes, name) for way in ways]
    return min(programs, key=lambda program: sum(program.ops))


def _check_arguments(
    mech: Mechanism, name: str, takes: Mapping[str, Parameter], given: list[str]
) -> None:
    """An algorithm gets what it takes, and all that it needs."""
    needed = [n for n, p in takes.items() if p.default is p.empty and n not in given]
    unknown = [n for n in given if n not in takes]
    if needed or unknown:
        missing, strange = ", ".join(needed), ", ".join(unknown)
        what = f"{missing} is missing, or None" if needed else f"{strange} is not an argument"
        raise ArgumentError(f"{name} of {mech.name!r}: {what}; it takes {', '.join(takes)}")


def _ways(
    mech: Mechanism, takes: Mapping[str, Parameter], static: dict[str, Any]
) -> list[dict[str, Any]]:
    """Arguments that change how a result is computed but not what it is; the cheapest is taken."""
    if "axes" not in takes:
        return [{}]
    deep = any(len(list(mech.ancestors(k))) >= _DEEP for _, k in mech.outward())
    ways = [{"axes": axes} for axes in (("body", "ground") if deep else ("body",))]
    if "method" in takes and "method" not in static:
        method = "articulated" if mech.nv >= _MANY else "conventional"
        return [way | {"method": method} for way in ways]
    return ways
