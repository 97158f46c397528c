"""Which way a result is computed: all decisions, in one place that can be asked why.

    route(mech, "mass_matrix", ("q",)).text()

What is decided of an algorithm on a mechanism:

    plan      "unrolled", one straight-line program; "loops", one with a loop over bodies for every
              sweep; "columns", products with all unit vectors, as a batch; "rows", the same from
              the left; "parts", several programs and products of their matrices
    frames    "canonical", chosen anew so that most numbers are 0 or 1; "given", as they are
    method    of linearised forward dynamics: "articulated" (Algorithms 5 and 6), "conventional" (3
              and 4); None elsewhere
    axes      of linearised dynamics: those to be traced, of which the cheapest is taken

The constants below are where one way stops being better than the next, as measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from ..algorithms.declare import ALGORITHMS, Algorithm
from ..model.mechanism import Mechanism
from ..model.parameters import PARAMETERS

__all__ = ["MOST_BLOCKS", "MOST_UNROLLED", "Piece", "Route", "is_long", "route", "whole"]

# Bodies up to which sweeps are unrolled.  Straight-line code is faster while it fits the caches,
# but the time to compile it grows with its length: loops over 1000 bodies are there in a second.
MOST_UNROLLED = 40

# Blocks (pairs of bodies) up to which matrices are unrolled.  Derivatives of a snake of 64, 12 000
# blocks, took 21 and 35 s to compile; column by column one of 200 takes 0.7 and 1.7 s, but batches
# run several times slower (8 times for a mass matrix of 64 bodies), so small matrices stay whole.
MOST_BLOCKS = 4096

# DoF for which the straight-line code of ∂q̈ outgrows the instruction caches: read once for one
# sample, it is slower than three kernels and two matrix products (Talos, 32 DoF: 94 to 117 µs, by
# parts 26 µs).  A batch reads it once for all.  Longer mechanisms come by columns, from
# Algorithm 5, which is more exact there.  With constraints there is more of it, and no way by
# columns.
ONE_SAMPLE_BY_PARTS = {
    "forward_dynamics_derivatives": range(30, 49),
    "constrained_forward_dynamics_derivatives": range(24, 10**6),
}

# DoF from which on Algorithms 5 and 6 cost less than 3 and 4.  Operations of a chain at any angles:
# ∂q̈ of 14 joints 31 500 by Algorithm 6, 32 000 by 4; δq̈ of 16 joints 15 900 by 5, 15 500 by 3, and
# of 18 joints 18 000 and 18 300.
MANY_DOF = 16

# Bodies in a row from which on ground axes may cost less than body axes; below, tracing both is
# time lost.  Operations of ∂τ of a chain at any angles: of 7 bodies 5500 in body axes, 5700 in
# ground axes, of 8 bodies 6900 in both.  With right angles, as arms have, body axes stay ahead.
DEEP = 7

Plan = Literal["unrolled", "loops", "columns", "rows", "parts"]
_WORDS = {
    "unrolled": "one program, unrolled",
    "loops": "one program, a loop over bodies for each sweep",
    "columns": "column by column, from ",
    "rows": "row by row, from ",
    "parts": "by parts, from ",
}


class Piece(NamedTuple):
    """A kernel that columns or parts are made of; along: the arrays that unit vectors go to."""

    algorithm: str
    along: tuple[str, ...] = ()


@dataclass(frozen=True)
class Route:
    """How a result is computed, and why; `why` has a reason for each of the choices."""

    name: str
    mechanism: str
    plan: Plan
    frames: Literal["canonical", "given"] | None
    method: str | None
    axes: tuple[str, ...]
    pieces: tuple[Piece, ...]
    why: Mapping[str, str]

    @property
    def ways(self) -> list[dict[str, Any]]:
        """Arguments that change how the result is computed but not what it is, to choose from."""
        method = {} if self.method is None else {"method": self.method}
        return [{"axes": axes} | method for axes in self.axes] or [method]

    def text(self) -> str:
        """All choices, a line each, with their reasons."""
        plan = _WORDS[self.plan] + ", ".join(piece.algorithm for piece in self.pieces)
        choices = plan, self.frames, self.method, " or ".join(self.axes)
        rows = zip(("plan", "frames", "method", "axes"), choices, strict=True)
        lines = [f"  {n:<10}  {x}: {self.why[n]}" for n, x in rows if n in self.why]
        return "\n".join([f"{self.name} of {self.mechanism!r}", *lines])


class _Matrices(NamedTuple):
    """Results over pairs of bodies: how many, whether over pairs on different branches, and how.

    pieces: what gives their columns, one after the other, from unit vectors.
    """

    number: int
    across: bool
    pieces: tuple[Piece, ...]


_MATRICES = {
    "mass_matrix": _Matrices(1, False, (Piece("generalized_momentum", ("qd",)),)),
    "mass_matrix_inverse": _Matrices(
        1, True, (Piece("working_forces", ("tau",)), Piece("joint_rates", ("nu",)))
    ),
    "inverse_dynamics_derivatives": _Matrices(
        3, False, (Piece("inverse_dynamics_jvp", ("dq", "dqd", "dqdd")),)
    ),
    "forward_dynamics_derivatives": _Matrices(
        3, True, (Piece("forward_dynamics_jvp", ("dq", "dqd", "dtau")),)
    ),
}
_PARTS = {
    name: tuple(map(Piece, (first, "inverse_dynamics_derivatives", "mass_matrix_inverse")))
    for name, first in (
        ("forward_dynamics_derivatives", "forward_dynamics"),
        ("constrained_forward_dynamics_derivatives", "constrained_changes"),
    )
}
# ten columns a body
_REGRESSOR = _Matrices(10, False, (Piece("torque_regressor_row", ("v",)),))


def route(
    mech: Mechanism,
    name: str,
    arrays: tuple[str, ...] = (),
    static: Mapping[str, Any] | None = None,
    samples: int | None = None,
) -> Route:
    """How the named algorithm is computed.

    arrays: names of those given with each sample; static: the other arguments, fixed.
    samples: how many there are, 1 for one or for a batch of one; None for many.
    """
    static, declared = static or {}, ALGORITHMS[name]
    own = declared.name
    by_rows = own == "torque_regressor"
    matrices, free = _REGRESSOR if by_rows else _MATRICES.get(own), "method" not in static
    if matrices and is_long(mech) and static.get("method") != "conventional":
        blocks = matrices.number * _blocks(mech, matrices.across)
        if blocks > MOST_BLOCKS:
            why = f"{blocks} blocks are more than {MOST_BLOCKS}, too many to compile unrolled"
            return _in_pieces(mech, name, "rows" if by_rows else "columns", matrices.pieces, why)
    if samples == 1 and free and mech.nv in ONE_SAMPLE_BY_PARTS.get(own, ()):
        why = f"one sample of {mech.nv} DoF would read more code than the caches hold"
        return _in_pieces(mech, name, "parts", _PARTS[own], why)
    return whole(mech, name, arrays, static)


def whole(mech: Mechanism, name: str, arrays: tuple[str, ...], static: Mapping[str, Any]) -> Route:
    """How it is computed as one program, large or not."""
    declared = ALGORITHMS[name]
    open_numbers = tuple(a for a in arrays if a in PARAMETERS)
    plan, why_plan = _plan(mech, declared, open_numbers, static)
    frames, why_frames = _frames(declared, open_numbers)
    why, method, axes = {"plan": why_plan, "frames": why_frames}, None, ()
    if "method" in declared.parameters and "method" not in static and plan == "unrolled":
        method, why["method"] = _method(mech)
    if "axes" in declared.parameters and "axes" not in static and plan == "unrolled":
        axes, why["axes"] = _axes(mech)
    return Route(name, mech.name, plan, frames, method, axes, (), why)


def is_long(mech: Mechanism) -> bool:
    """Whether sweeps over a mechanism are compiled as loops."""
    return mech.n_bodies > MOST_UNROLLED and not mech.has_followers


def _in_pieces(
    mech: Mechanism, name: str, plan: Plan, pieces: tuple[Piece, ...], why: str
) -> Route:
    return Route(name, mech.name, plan, None, None, (), pieces, {"plan": why})


def _blocks(mech: Mechanism, across: bool) -> int:
    """How many blocks of a matrix are not zero."""
    if across:
        return mech.n_bodies**2
    return sum(2 * len(list(mech.climb(k))) + 1 for _, k in mech.outward())


def _plan(
    mech: Mechanism, declared: Algorithm, open_numbers: tuple[str, ...], static: Mapping[str, Any]
) -> tuple[Plan, str]:
    size = f"{mech.n_bodies} bodies, and up to {MOST_UNROLLED} are unrolled"
    if mech.has_followers:
        dense = declared.independent_joints
        by = ": by dense algebra, from the mass matrix" if dense else ", which loops do not know"
        return "unrolled", f"joints mimic others{by}"
    if mech.n_bodies <= MOST_UNROLLED:
        return "unrolled", size
    if not declared.loops or static.get("method") == "conventional":
        return "unrolled", f"{size}, but its sweeps are not such as can be loops"
    if open_numbers:
        return "unrolled", f"{size}, but {', '.join(open_numbers)} come with each sample"
    return "loops", size


def _frames(
    declared: Algorithm, open_numbers: tuple[str, ...]
) -> tuple[Literal["canonical", "given"], str]:
    if not declared.joint_level:
        return "given", "its results depend on where the frames of bodies are"
    if open_numbers:
        return "given", f"{', '.join(open_numbers)} come with each sample, in the frames given"
    return "canonical", "its results at the joints are the same in all frames, at less cost"


def _method(mech: Mechanism) -> tuple[str, str]:
    if mech.has_followers:
        return "conventional", "joints mimic others: they cannot be released one by one"
    if mech.nv >= MANY_DOF:
        return "articulated", f"{mech.nv} DoF, from {MANY_DOF} on Algorithms 5 and 6 cost less"
    return "conventional", f"{mech.nv} DoF, below {MANY_DOF} Algorithms 3 and 4 cost less"


def _axes(mech: Mechanism) -> tuple[tuple[str, ...], str]:
    deepest = max((len(list(mech.ancestors(k))) for _, k in mech.outward()), default=0)
    if deepest >= DEEP:
        return ("body", "ground"), f"{deepest} bodies in a row: both are traced, the cheaper taken"
    return ("body",), f"{deepest} bodies in a row, ground axes may pay from {DEEP} on"
