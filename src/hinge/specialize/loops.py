"""Sweeps as loops: the same algorithm source, traced once per kind of joint instead of per body.

The algorithm is traced on a `LoopMechanism` until it does as was assumed of it; what it did then is
put together, and what can be done once is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Concatenate

import numpy as np

from ..errors import TraceError
from ..graph.angles import with_angles_kept
from ..graph.fusion import fused
from ..graph.handed import with_values_handed_on
from ..graph.loop import ZERO, LoopProgram, Visit, alike, pruned
from ..graph.numbers import with_numbers_made
from ..graph.pairs import Matrix
from ..model.protocol import Tree
from .canonical import Reframed
from .kinds import find_kinds
from .loop_mechanism import Argument, Known, LoopMechanism
from .walks import Walk

__all__ = ["trace_loops"]


def trace_loops(
    algorithm: Callable[Concatenate[Tree, ...], Any],
    form: Reframed,
    arrays: dict[str, tuple[int, ...]],
    name: str,
    active: Sequence[bool] | None = None,
    walks: Sequence[Walk] = (),
) -> LoopProgram:
    """The algorithm on arrays of the given names and shapes, its sweeps as loops over bodies.

    active: which DoF are driven, where the algorithm is told so in advance.
    walks: those that the algorithm goes.
    """
    mech = form.mechanism
    if mech.has_followers:
        raise TraceError(f"{mech.name!r} has joints that mimic others: it cannot be looped")
    known = Known(find_kinds(form, active, walks), walks)
    while True:
        tracer = LoopMechanism(mech, known, arrays)
        # what is zero so far may be divided by
        with np.errstate(all="ignore"):
            result = algorithm(tracer, **{n: Argument(tracer, i) for i, n in enumerate(arrays)})
            parts = tracer.results(name, result if isinstance(result, tuple) else (result,))
        assumed = alike(tracer.stages, tracer.start, tracer.sizes, known.assumed)
        if assumed == known.assumed and tracer.kept == known.kept and known.shapes is not None:
            break
        known = known._replace(assumed=assumed, shapes=tracer.shapes, kept=tracer.kept)
    return _program(tracer, name, parts, type(result) if isinstance(result, tuple) else None)


def _program(
    tracer: LoopMechanism, name: str, parts: Sequence[Any], form: type | None
) -> LoopProgram:
    """Everything that was traced."""
    matrices = tuple(part for part in parts if isinstance(part, Matrix))
    gathered = [part.gathered(tracer.mech) for part in parts if not isinstance(part, Matrix)]
    results = tuple(place for _, entries in gathered for place in entries)
    shapes = [shape for shape, _ in gathered] or [(tracer.nv, tracer.nv)] * len(matrices)
    slots = len(tracer.sizes)
    stages, handed = with_values_handed_on(tracer.stages, tracer.first_nodes, slots + 1)
    stages = fused(
        stage for stage in pruned(stages, results) if stage.visits_any or stage.before.stores
    )
    # kinds that walks tell apart need not do otherwise
    stages = [
        replace(stage, steps=tuple(map(tracer.same, stage.steps))) if tracer.walks else stage
        for stage in stages
    ]
    lower: list[set[int]] = [set() for _ in tracer.ways.kinds]
    for k, way in enumerate(tracer.ways.of, 1):
        if way != ZERO:
            lower[way].add(tracer.role_of[k])
    stages, angles = with_angles_kept(stages, slots, lower)
    stages, visits = with_numbers_made(stages, _visits(tracer))
    return LoopProgram(
        name,
        tuple(tracer.arrays.values()),
        tuple(shapes),
        (*tracer.sizes, angles, *([handed] if handed else [])),
        len(tracer.mech.bodies),
        tracer.start,
        pruned(stages, results),
        visits,
        results,
        form,
        tracer.ways.of,
        matrices,
        tuple(body.joint.nv for body in tracer.mech.bodies[1:]) if matrices else (),
    )


def _visits(tracer: LoopMechanism) -> tuple[Visit, ...]:
    mech = tracer.mech
    visits, rows = [], [iter(kind.table) for kind in tracer.kinds]
    like_q = [n for i, n in enumerate(tracer.arrays) if i in tracer.like_q]
    for k, body in enumerate(mech.bodies[1:], 1):
        kind, role = tracer.kind_of[k], tracer.role_of[k]
        q, v = mech.q_slice(body.joint_name).start, mech.v_slice(body.joint_name).start
        where = {"f_ext": 6 * (k - 1), "points": 3 * (k - 1), **{n: q for n in like_q}}
        places = tuple(where.get(n, v) for n in tracer.arrays)
        visits.append(Visit(role, k, body.parent, places, next(rows[kind])))
    return tuple(visits)
