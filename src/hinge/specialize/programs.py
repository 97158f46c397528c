"""From an algorithm and a mechanism to a program, the way that `routing.py` says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from inspect import Parameter
from typing import TYPE_CHECKING, Any

from ..algorithms.declare import ALGORITHMS
from ..errors import ArgumentError, TooLongError
from ..model.mechanism import Mechanism
from ..model.parameters import PARAMETERS, with_parameters
from .arrays import array_shape
from .routing import MOST_OPERATIONS, MOST_UNROLLED, Route, is_long, route, whole
from .walks import walks_of

if TYPE_CHECKING:
    from ..graph.loop import LoopProgram
    from ..graph.program import Program
    from .canonical import Reframed

__all__ = ["MOST_UNROLLED", "explain", "is_long", "needed", "robot_program", "unrolled_program"]


def robot_program(
    mech: Mechanism,
    name: str,
    arrays: tuple[str, ...],
    static: dict[str, Any],
    climbs: bool = True,
) -> Program | LoopProgram:
    """The named algorithm on a mechanism, traced; of several ways the one of fewest operations.

    climbs: as in `routing.route`.
    """
    takes = ALGORITHMS[name].parameters
    _check_arguments(mech, name, takes, [*(a for a in arrays if a not in PARAMETERS), *static])
    way = whole(mech, name, arrays, static, climbs)
    return min(_programs(mech, way, arrays, static), key=lambda program: sum(program.ops))


def unrolled_program(
    mech: Mechanism, name: str, arrays: tuple[str, ...], static: dict[str, Any]
) -> Program:
    """The same without loops over bodies, however long that is."""
    way = replace(whole(mech, name, arrays, static, climbs=False), plan="unrolled")
    programs: list[Any] = _programs(mech, way, arrays, static)
    return programs[0]


def explain(
    mech: Mechanism,
    name: str,
    arrays: tuple[str, ...] | None = None,
    static: Mapping[str, Any] | None = None,
    samples: int | None = None,
    climbs: bool = True,
    solves: bool = False,
) -> str:
    """Which way a result is computed and why, and how many operations that takes.

    arrays: by default those that the algorithm needs; the rest as in `routing.route`.
    """
    static = dict(static or {})
    given = needed(mech, name, static) if arrays is None else arrays
    way = route(mech, name, given, static, samples, climbs, solves)
    if way.plan in ("scan", "source"):
        return way.text()
    if not way.pieces:
        return f"{way.text()}\n  operations  {_operations(mech, way, given, static)}"
    lines = [way.text()]
    for piece in way.pieces:
        takes = ALGORITHMS[piece.algorithm].parameters
        own = {n: x for n, x in static.items() if n in takes}
        extra = [a for a in given if a in takes and takes[a].default is not Parameter.empty]
        known = (*needed(mech, piece.algorithm, own), *extra)
        lines += explain(mech, piece.algorithm, known, own, climbs=climbs).splitlines()
    return "\n  ".join(lines)


def _operations(
    mech: Mechanism, way: Route, arrays: tuple[str, ...], static: dict[str, Any]
) -> str:
    """How many operations a sample takes, and of several axes, in which of them."""
    try:
        counts = [sum(program.ops) for program in _programs(mech, way, arrays, static)]
    except TooLongError:
        return f"more than {MOST_OPERATIONS}: too many, its source is run as it is, in NumPy"
    if len(counts) == 1:
        return str(*counts)
    axes = [f"{n} in {axes} axes" for n, axes in sorted(zip(counts, way.axes, strict=True))]
    return f"{axes[0]}, taken; {axes[1]}"


def needed(mech: Mechanism, name: str, static: Mapping[str, Any]) -> tuple[str, ...]:
    """The arrays without which an algorithm cannot be called."""
    takes = ALGORITHMS[name].parameters.items()
    return tuple(
        n for n, p in takes if p.default is p.empty and n not in static and array_shape(mech, n)
    )


def _programs(
    mech: Mechanism, way: Route, arrays: tuple[str, ...], static: dict[str, Any]
) -> list[Program] | list[LoopProgram]:
    """One program for each of the ways that a route leaves open."""
    from ..graph.program import trace
    from .canonical import Reframed, canonical

    form = canonical(mech) if way.frames == "canonical" else Reframed.same(mech)
    shapes = [array_shape(mech, a, static) for a in arrays]
    if way.plan == "loops":
        from .loops import trace_loops

        given = dict(zip(arrays, shapes, strict=True))
        (choice,) = way.ways
        algorithm = partial(ALGORITHMS[way.name].function, **static, **choice)
        walks = walks_of(mech, static, ALGORITHMS[way.name].reads_passive)
        told = static.get("active"), walks
        return [trace_loops(algorithm, form, given, way.name, *told)]
    fn = partial(_applied, way.name, form, arrays, static)
    return [trace(partial(fn, **choice), shapes, way.name, MOST_OPERATIONS) for choice in way.ways]


def _applied(
    name: str,
    form: Reframed,
    arrays: tuple[str, ...],
    static: dict[str, Any],
    *values: Any,
    **choice: Any,
) -> Any:
    """The algorithm on values in the frames of the original; open numbers go to the mechanism."""
    declared, given = ALGORITHMS[name], dict(zip(arrays, values, strict=True))
    if "f_ext" in given:
        given["f_ext"] = form.forces(given["f_ext"])
    if "points" in declared.parameters:
        given["points"] = form.points(given.get("points"))
    numbers = {n: given.pop(n) for n in arrays if n in PARAMETERS}
    this = with_parameters(form.mechanism, **numbers)
    return declared.function(this, **given, **static, **choice)


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
