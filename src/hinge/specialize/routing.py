"""Which way a result is computed: all decisions, in one place that can be asked why.

    route(mech, "mass_matrix", ("q",)).text()

What is decided of an algorithm on a mechanism:

    plan      "unrolled", one straight-line program; "loops", one with a loop over bodies for every
              sweep, and for matrices one over ancestors inside it; "columns", products with all
              unit vectors, as a batch; "rows", the same from the left; "parts", several programs
              and products of their matrices; "systems", several programs, and linear systems of
              the mass matrix with a thread for each column; "scan", many lanes at once, each with
              a stretch of the bodies; "source", the algorithm as it is written, in NumPy, calling
              kernels
    frames    "canonical", chosen anew so that most numbers are 0 or 1; "given", as they are
    method    of linearised forward dynamics: "articulated" (Algorithms 5 and 6), "conventional" (3
              and 4); None elsewhere
    axes      of linearised dynamics: those to be traced, of which the cheapest is taken
    inertias  of dynamics in total rates: articulated inertias, "kept" from sweep to sweep or "made
              again"; None elsewhere

The constants below are where one way stops being better than the next, as measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from ..algorithms.declare import ALGORITHMS, Algorithm
from ..model.joints import Axial
from ..model.mechanism import Mechanism
from ..model.parameters import PARAMETERS
from .walks import marks, walks_of

__all__ = ["MANY_COLUMNS", "MOST_BLOCKS", "MOST_OPERATIONS", "MOST_UNROLLED", "Piece", "Route"]
__all__ += ["is_large", "is_long", "route", "whole"]

# Bodies up to which sweeps are unrolled.  Straight-line code is faster while it fits the caches,
# but the time to compile it grows with its length: loops over 1000 bodies are there in a second.
MOST_UNROLLED = 40

# Bodies for each kind of them below which sweeps are unrolled all the same: a loop has a step for
# every kind, and in general numbers, so that it is as much code.  Forward dynamics of a tree of 55
# bodies, joints of nine kinds: 52 700 operations in loops, 39 000 unrolled; first derivatives of
# its hybrid dynamics took 27 s of CPU time in loops, and 3 s unrolled.
FEW_ALIKE = 3
# The same with constraints, whose ways to the ground tell bodies apart, and whose columns make each
# step much code.  First calls of constrained forward dynamics, seconds of CPU time, loops and
# unrolled: a snake of 200 with one contact 0.7 and 2.5, with a loop closed 1.3 and 2.0 (7 kinds),
# with eight contacts 6.2 and 3.3 (19 kinds); 88 bodies of 24 kinds 5.0 and 1.6.
FEW_ALIKE_HELD = 12

# Steps of a climb from body to body, told apart by joints, up to which matrices are loops over
# bodies with loops over ancestors inside: every one is code of its own.
MOST_STEPS = 8

# Blocks (pairs of bodies) up to which matrices of long mechanisms are unrolled all the same: a mass
# matrix of 32 links in a row takes as long either way.
FEW_BLOCKS = 1024

# Blocks up to which matrices are unrolled where they are no loops.  Derivatives
# of a snake of 64, 12 000 blocks, took 21 and 35 s to compile; column by column one of 200 takes
# 0.7 and 1.7 s, but batches run many times slower (chain of 256: mass matrix 8 times, ∂q̈ 25 times).
MOST_BLOCKS = 4096

# DoF from which on matrices are too many entries to unroll even where bodies are few: columns, or
# derivatives with constraints from free ones, as of long mechanisms.  ∂q̈ takes 16 operations for
# each of 3 nv² entries.  30 free bodies, 180 DoF: first calls of ∂q̈ and of hybrid derivatives,
# seconds of CPU time, unrolled 16 and more than 90, by columns 0.5.
MANY_COLUMNS = 110

# Operations up to which straight-line code is compiled: 600 000 take about 6 s and 0.8 GB (∂τ of a
# chain of 200 with 100 mimic joints has 1 780 000, and took 18 s and 1.5 GB).  Beyond, the source
# of the algorithm is run in NumPy.
MOST_OPERATIONS = 600_000

# DoF for which the straight-line code of ∂q̈ outgrows the instruction caches: read once for one
# sample, it is slower than three kernels and two matrix products (Talos, 32 DoF: 94 to 117 µs, by
# parts 26 µs).  A batch reads it once for all.  Longer mechanisms come by columns, from
# Algorithm 5, which is more exact there.  With constraints there is more of it, and no way by
# columns.
ONE_SAMPLE_BY_PARTS = {
    "forward_dynamics_derivatives": range(30, 49),
    "constrained_forward_dynamics_derivatives": range(24, 10**6),
}

# DoF for which a thread of a card that computes a whole sample of these has no room for what it
# needs, so that there are threads for columns instead.  On an H200, Talos, float32 and float64, in
# ns a state: one kernel, with 2700 numbers far away, 50 and 106 for ∂q̈, systems 16 and 35; for M⁻¹
# 11.8 and 20, systems 4.7 and 10.6.  Up to what a thread can hold a column of.
SYSTEMS = {
    "forward_dynamics_derivatives": range(36, 81),
    "mass_matrix_inverse": range(36, 81),
}

# Operations whose code a multiprocessor of a card holds; of more, threads wait for it.  On an H200,
# float32, parts of Talos' B_D and A_D: 8700 operations take 0.6 ns a state, 9600 take 1.4 and 2.2;
# in float64 all of them 13.4 by one kernel of 24 000 operations, 8.3 by six, which have 38 000.
CODE_OF_A_CARD = 8_000

# DoF from which on Algorithms 5 and 6 cost less than 3 and 4.  Operations of a chain at any angles:
# ∂q̈ of 14 joints 31 500 by Algorithm 6, 32 000 by 4; δq̈ of 16 joints 15 900 by 5, 15 500 by 3, and
# of 18 joints 18 000 and 18 300.
MANY_DOF = 16

# Bodies in a row from which on ground axes may cost less than body axes; below, tracing both is
# time lost.  Operations of ∂τ of a chain at any angles: of 7 bodies 5500 in body axes, 5700 in
# ground axes, of 8 bodies 6900 in both.  With right angles, as arms have, body axes stay ahead.
DEEP = 7
# Bodies from which on the time to trace both is felt, so that right angles decide.  Operations of
# ∂q̈ in body and in ground axes: Talos 86 400 and 103 200, a snake of 32 at right angles 117 000 and
# 127 300, a chain of 32 at any angles 150 100 and 114 700.
MANY_BODIES = 16

# Bodies from which on articulated inertias of all of them are more than caches hold beside those of
# other samples.  ν̇ of a snake in batches, ns a body, kept and made again: 17.2 and 18.6 of 1024
# links, 21 and 18.5 of 4096, 40 and 23 of 16 384; one call of any of them 70 and 84.
MANY_INERTIAS = 4096

_SMALL = 1e-9

Plan = Literal["unrolled", "loops", "columns", "rows", "parts", "systems", "scan", "source"]
_WORDS = {
    "unrolled": "one program, unrolled",
    "loops": "one program, a loop over bodies for each sweep",
    "columns": "column by column, from ",
    "rows": "row by row, from ",
    "parts": "by parts, from ",
    "systems": "linear systems, a thread for each column, from ",
    "scan": "by scans over stretches of bodies",
    "source": "its source, in NumPy, on what kernels give",
}


class Piece(NamedTuple):
    """A kernel that columns or parts are made of.

    along: the arrays that unit vectors go to; symmetric: whether the last matrix of columns is.
    """

    algorithm: str
    along: tuple[str, ...] = ()
    symmetric: bool = True


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
    inertias: str | None = None

    @property
    def ways(self) -> list[dict[str, Any]]:
        """Arguments that change how the result is computed but not what it is, to choose from."""
        decided = {"method": self.method, "inertias": self.inertias}
        fixed = {name: value for name, value in decided.items() if value is not None}
        return [{"axes": axes} | fixed for axes in self.axes] or [fixed]

    def text(self) -> str:
        """All choices, a line each, with their reasons."""
        plan = _WORDS[self.plan] + ", ".join(piece.algorithm for piece in self.pieces)
        choices = plan, self.frames, self.method, " or ".join(self.axes), self.inertias
        rows = zip(("plan", "frames", "method", "axes", "inertias"), choices, strict=True)
        lines = [f"  {n:<10}  {x}: {self.why[n]}" for n, x in rows if n in self.why]
        return "\n".join([f"{self.name} of {self.mechanism!r}", *lines])


class _Matrices(NamedTuple):
    """Results over pairs of bodies: how many, whether over pairs on different branches, and how.

    pieces: what gives their columns, one after the other, from unit vectors, if anything does.
    axes: those in which loops over ancestors cost least without losing digits.
    """

    number: int
    across: bool
    pieces: tuple[Piece, ...]
    axes: Literal["body", "ground"] | None = None


# One call of a general chain of 128, µs: M 44 in ground axes, 144 in body axes, ∂τ 153 and 335.
# Articulated inertias lose digits unless their joint is an axis: M⁻¹ of a snake of 128 is right to
# 5 eps N in ground axes, to 1 in body axes, at the same cost.
_MATRICES = {
    "mass_matrix": _Matrices(1, False, (Piece("generalized_momentum", ("qd",)),), "ground"),
    "mass_matrix_inverse": _Matrices(
        1, True, (Piece("working_forces", ("tau",)), Piece("joint_rates", ("nu",))), "body"
    ),
    "inverse_dynamics_derivatives": _Matrices(
        3, False, (Piece("inverse_dynamics_jvp", ("dq", "dqd", "dqdd")),), "ground"
    ),
    "forward_dynamics_derivatives": _Matrices(
        3, True, (Piece("forward_dynamics_jvp", ("dq", "dqd", "dtau")),), "body"
    ),
    "mass_factor": _Matrices(1, False, (Piece("joint_forces", ("eps",), symmetric=False),)),
    "mass_factor_inverse": _Matrices(
        1, False, (Piece("working_forces", ("tau",), symmetric=False),)
    ),
    "mass_factor_rate": _Matrices(1, False, ()),
    "hybrid_dynamics_derivatives": _Matrices(
        3, True, (Piece("hybrid_dynamics_jvp", ("dq", "dqd", "dgiven"), symmetric=False),)
    ),
}
# columns of the driven DoF; with forces and accelerations on the way a block takes as much code as
# three others: unrolled, those of 60 links took 5 to 8 s to compile
_RESPONSE = Piece("hybrid_response", ("given",))
_MATRICES |= dict.fromkeys(
    ("active_inertia", "disturbance_jacobian"), _Matrices(3, True, (_RESPONSE,))
)
_MATRICES["generalized_jacobian"] = _Matrices(3, True, (_RESPONSE, Piece("jacobian")))
# unrolled, these are traced in body axes alone: ground axes take more time than they save
_AT_REST = ("mass_matrix", "mass_matrix_inverse")
_PARTS = {
    name: tuple(map(Piece, (first, "inverse_dynamics_derivatives", "mass_matrix_inverse")))
    for name, first in (
        ("forward_dynamics_derivatives", "forward_dynamics"),
        ("constrained_forward_dynamics_derivatives", "constrained_changes"),
    )
}
# of long mechanisms that are held
_HELD = {
    name: (Piece(first), Piece("forward_dynamics_derivatives"))
    for name, first in (
        ("constrained_forward_dynamics_derivatives", "constrained_changes"),
        ("impulse_dynamics_derivatives", "impulse_changes"),
    )
}
_SYSTEMS = {
    "forward_dynamics_derivatives": tuple(
        map(Piece, ("forward_dynamics", "mass_factor", "inverse_dynamics_derivatives"))
    ),
    "mass_matrix_inverse": (Piece("mass_factor"),),
}
# ten columns a body
_REGRESSOR = _Matrices(10, False, (Piece("torque_regressor_row", ("v",)),))


def route(
    mech: Mechanism,
    name: str,
    arrays: tuple[str, ...] = (),
    static: Mapping[str, Any] | None = None,
    samples: int | None = None,
    climbs: bool = True,
    solves: bool = False,
) -> Route:
    """How the named algorithm is computed.

    arrays: names of those given with each sample; static: the other arguments, fixed.
    samples: how many there are, 1 for one or for a batch of one; None for many.
    climbs: whether the code may have loops inside loops: that of cards may not.
    solves: whether linear systems may be left to what runs it, as cards do.
    """
    static, declared = static or {}, ALGORITHMS[name]
    if static.get("method") == "scan":
        return _in_pieces(mech, name, "scan", (), "that is the method asked for")
    if declared.composed and is_long(mech):
        why = f"{mech.n_bodies} bodies, and what it calls are loops over them"
        return _in_pieces(mech, name, "source", (), why)
    own = declared.name
    if is_large(mech) and (why := _why_held_in_parts(mech, own, samples)):
        return _in_pieces(mech, name, "parts", _HELD[own], why)
    by_rows = own == "torque_regressor"
    matrices, free = _REGRESSOR if by_rows else _MATRICES.get(own), "method" not in static
    entire = whole(mech, name, arrays, static, climbs, samples)
    many = matrices and is_large(mech) and entire.plan == "unrolled"
    if matrices and matrices.pieces and many and static.get("method") != "conventional":
        blocks = matrices.number * _blocks(mech, matrices.across)
        if blocks > MOST_BLOCKS:
            why = f"{blocks} blocks are more than {MOST_BLOCKS}, too many to compile unrolled"
            if reason := _cannot_climb(mech, matrices, climbs):
                why += f", and {reason}"
            return _in_pieces(mech, name, "rows" if by_rows else "columns", matrices.pieces, why)
    if solves and free and not is_long(mech) and mech.nv in SYSTEMS.get(own, ()):
        why = f"a thread that has a whole sample of {mech.nv} DoF cannot hold what it needs"
        return _in_pieces(mech, name, "systems", _SYSTEMS[own], why)
    if samples == 1 and free and mech.nv in ONE_SAMPLE_BY_PARTS.get(own, ()):
        why = f"one sample of {mech.nv} DoF would read more code than the caches hold"
        return _in_pieces(mech, name, "parts", _PARTS[own], why)
    return entire


def _why_held_in_parts(mech: Mechanism, own: str, samples: int | None) -> str:
    """Why derivatives of a long mechanism that is held come from those of the free one, if so."""
    blocks = _blocks(mech, across=True)
    if own in _HELD and blocks > MOST_BLOCKS:
        return f"{blocks} blocks are more than {MOST_BLOCKS}, too many to compile unrolled"
    # where one sample comes by parts, a batch has no kernel of its own that would be ready in time
    by_parts = own in _HELD and mech.nv in ONE_SAMPLE_BY_PARTS.get(own, ())
    return f"{blocks} blocks would take long to compile" if by_parts and samples != 1 else ""


def whole(
    mech: Mechanism,
    name: str,
    arrays: tuple[str, ...],
    static: Mapping[str, Any],
    climbs: bool = True,
    samples: int | None = None,
) -> Route:
    """How it is computed as one program, large or not; the rest as in `route`."""
    declared = ALGORITHMS[name]
    open_numbers = tuple(a for a in arrays if a in PARAMETERS)
    plan, why_plan = _plan(mech, declared, open_numbers, static)
    few = FEW_ALIKE_HELD if static.get("constraints") else FEW_ALIKE
    kinds = _kinds(mech, static, declared.reads_passive) if plan == "loops" and climbs else 0
    if kinds * few > mech.n_bodies:
        plan, why_plan = "unrolled", f"{why_plan}, but {kinds} kinds of them are as much code"
    matrices = _MATRICES.get(declared.name)
    if plan == "loops" and matrices:
        plan, why_plan = _climbing(mech, matrices, climbs, why_plan)
    frames, why_frames = _frames(declared, open_numbers)
    why, method, axes = {"plan": why_plan, "frames": why_frames}, None, ()
    if "method" in declared.parameters and "method" not in static and plan == "unrolled":
        method, why["method"] = _method(mech)
    moving = "axes" in declared.parameters and declared.name not in _AT_REST
    if moving and "axes" not in static and plan == "unrolled":
        axes, why["axes"] = _axes(mech)
    if plan == "loops" and matrices and matrices.axes and "axes" not in static:
        axes, why["axes"] = (matrices.axes,), "as measured, for loops over ancestors"
    inertias = None
    if "inertias" in declared.parameters and "inertias" not in static and plan == "loops":
        inertias, why["inertias"] = _inertias(mech, samples)
    return Route(name, mech.name, plan, frames, method, axes, (), why, inertias)


def is_long(mech: Mechanism) -> bool:
    """Whether sweeps over a mechanism are compiled as loops."""
    return mech.n_bodies > MOST_UNROLLED and not mech.has_followers


def is_large(mech: Mechanism) -> bool:
    """Whether matrices over pairs of its bodies, or of its DoF, may be too many to unroll."""
    return is_long(mech) or (mech.nv >= MANY_COLUMNS and not mech.has_followers)


def _climbing(mech: Mechanism, matrices: _Matrices, climbs: bool, why: str) -> tuple[Plan, str]:
    """Loops over ancestors inside those over bodies, or why not."""
    reason = _cannot_climb(mech, matrices, climbs)
    if reason:
        return "unrolled", f"{why}, but {reason}"
    return "loops", f"{why}; for pairs of bodies with loops over ancestors inside"


def _cannot_climb(mech: Mechanism, matrices: _Matrices, climbs: bool) -> str:
    """Why matrices cannot be loops over ancestors, nothing if they can."""
    blocks = matrices.number * _blocks(mech, matrices.across)
    if blocks <= FEW_BLOCKS:
        return f"{blocks} blocks are few, up to {FEW_BLOCKS} are unrolled"
    if not climbs:
        return "cards have no loops inside loops"
    if matrices.across and not mech.is_chain:
        return "loops climb along one branch only"
    steps = _climbing_steps(mech)
    return f"{steps} kinds of climbs are more than {MOST_STEPS}" if steps > MOST_STEPS else ""


def _kinds(mech: Mechanism, static: Mapping[str, Any], reads_passive: bool) -> int:
    """About how many kinds of bodies loops tell apart.

    By joints, children and elder siblings, and by where they are on the ways to frames.
    """
    walks = walks_of(mech, static, reads_passive)
    if len(walks) * FEW_ALIKE_HELD > mech.n_bodies:
        # the bodies at their ends are as many kinds: no need to look at the others
        return len(walks)
    places = [marks(mech, walk) for walk in walks]
    first: dict[int, int] = {}
    for k, body in enumerate(mech.bodies[1:], 1):
        first.setdefault(body.parent, k)
    return len(
        {
            (type(body.joint), k in first, first[body.parent] == k, *(x[k] for x in places))
            for k, body in enumerate(mech.bodies[1:], 1)
        }
    )


def _climbing_steps(mech: Mechanism) -> int:
    """How many kinds of steps there are from body to body, for joints of so many DoF below."""
    onward: list[frozenset[Any]] = [frozenset()]
    found: set[Any] = set()
    for body in mech.bodies[1:]:
        step = type(body.joint), type(mech.bodies[body.parent].joint)
        onward.append(onward[body.parent] | ({step} if body.parent else set()))
        found |= {(body.joint.nv, step) for step in onward[-1]}
    return len(found)


def _in_pieces(
    mech: Mechanism, name: str, plan: Plan, pieces: tuple[Piece, ...], why: str
) -> Route:
    return Route(name, mech.name, plan, None, None, (), pieces, {"plan": why})


def _blocks(mech: Mechanism, across: bool) -> int:
    """How many blocks of a matrix are not zero; where bodies are few, how many entries."""
    size = [1 if is_long(mech) else body.joint.nv for body in mech.bodies]
    if across:
        return sum(size[1:]) ** 2
    return sum(
        size[k] * (2 * sum(size[p] for p, _ in mech.climb(k)) + size[k]) for _, k in mech.outward()
    )


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
    if declared.loops and "frame" in static:
        between = len(list(mech.ancestors(mech.frame(static["frame"]).body)))
        if between <= MOST_UNROLLED:
            up_to = f"up to {MOST_UNROLLED} are unrolled"
            return "unrolled", f"{between} bodies between the ground and the frame, and {up_to}"
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


def _inertias(mech: Mechanism, samples: int | None) -> tuple[str, str]:
    size = f"{mech.n_bodies} bodies, up to {MANY_INERTIAS} leave room for them in caches"
    if mech.n_bodies <= MANY_INERTIAS:
        return "kept", size
    if samples == 1:
        return "kept", "one sample leaves room for them in caches"
    return "made again", size


def _axes(mech: Mechanism) -> tuple[tuple[str, ...], str]:
    deepest = max((len(list(mech.ancestors(k))) for _, k in mech.outward()), default=0)
    if deepest < DEEP:
        return ("body",), f"{deepest} bodies in a row, ground axes may pay from {DEEP} on"
    if mech.n_bodies > MANY_BODIES and _right_angled(mech):
        return ("body",), "most joints are at right angles to the next, which ground axes lose"
    return ("body", "ground"), f"{deepest} bodies in a row: both are traced, the cheaper taken"


def _right_angled(mech: Mechanism) -> bool:
    """Whether nearly all axes are at right angles to the one before or parallel, not most of them
    parallel: in a plane both ways cost the same.
    """
    cosines = []
    for p, k in mech.outward():
        before, body = mech.bodies[p - 1].joint if p else None, mech.bodies[k - 1]
        if isinstance(before, Axial) and isinstance(body.joint, Axial):
            turned = body.placement.rotation @ np.array(body.joint.axis)
            cosines.append(abs(float(turned @ np.array(before.axis))))
    right, parallel = sum(c < _SMALL for c in cosines), sum(c > 1 - _SMALL for c in cosines)
    return right + parallel > 0.9 * len(cosines) and right > parallel
