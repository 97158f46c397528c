"""Programs from programs: how results change along a direction, and the transpose of that.

    pushed    (x, ẋ) ↦ ẏ = ∂y/∂x ẋ            one forward sweep, linear in ẋ
    pulled    (x, ȳ) ↦ x̄ = (∂y/∂x)ᵀ ȳ         one backward sweep of a program y(x) that is linear in
                                              some of its arguments, for these

The transpose of what `pushed` gives is the gradient of the program it was made from.

Time loops (s, y)(i+1) = step(s(i), u(i), p) likewise, as loops:

    pushed_loop    (s, ṡ; u, u̇; p, ṗ) ↦ (s, ṡ), recording ẏ
    pulled_loop    (λ, Σ; s(i), u(i), ȳ(i); p) ↦ (λ, Σ), from the last step to the first:
                   λ ← (∂step/∂s)ᵀ(λ, ȳ),   Σ ← Σ + (∂step/∂p)ᵀ(λ, ȳ),   recording (∂step/∂u)ᵀ(λ, ȳ)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import TraceError
from ..graph.arrays import cut, entries, inputs
from ..graph.autodiff import adjoints, tangents
from ..graph.program import Program, applied
from ..graph.scalar import Graph
from ..graph.scan import Scan

__all__ = ["pulled", "pulled_loop", "pushed", "pushed_loop", "straight_step"]


def pushed(program: Program, moving: Sequence[int]) -> Program:
    """Changes of the results, from the arguments and then the changes of those that move."""
    graph, name = Graph(), f"changes of {program.name}"
    arrays = _inputs(graph, program, range(len(program.inputs)))
    dots = _inputs(graph, program, moving)
    results = applied(program, graph, arrays)
    leaves = entries(arrays[i] for i in moving)
    nodes = tangents(entries(results), dict(zip(leaves, entries(dots), strict=True)))
    shapes = program.inputs + tuple(program.inputs[i] for i in moving)
    return Program(name, shapes, program.outputs, tuple(nodes), tuple)


def pulled(program: Program, linear: Sequence[int]) -> Program:
    """The transpose with respect to some arguments, all that the program is linear in.

    Its arguments are the others, and then one for each result.
    """
    graph, name = Graph(), f"transpose of {program.name}"
    others = [i for i in range(len(program.inputs)) if i not in linear]
    known = dict(zip(others, _inputs(graph, program, others), strict=True))
    bars = [inputs(graph, shape) for shape in program.outputs]
    leaves = dict(zip(linear, _inputs(graph, program, linear), strict=True))
    arrays = [(known | leaves)[i] for i in range(len(program.inputs))]
    values = entries(applied(program, graph, arrays))
    found = adjoints(values, entries(bars), entries(leaves.values()))
    shapes = tuple(program.inputs[i] for i in others) + program.outputs
    outputs = tuple(program.inputs[i] for i in linear)
    nodes = [found[leaf] for leaf in entries(leaves.values())]
    return Program(name, shapes, outputs, tuple(entries(cut(nodes, outputs))), tuple)


def pushed_loop(scan: Scan, moving: Sequence[int]) -> Scan:
    """How a time loop changes; moving: which arguments do, all states among them."""
    step, graph, n = straight_step(scan), Graph(), scan.states
    arrays: dict[int, np.ndarray] = {}
    dots: dict[int, np.ndarray] = {}
    for part in parts_of(scan):
        arrays |= zip(part, _inputs(graph, step, part), strict=True)
        own = [i for i in part if i in moving]
        dots |= zip(own, _inputs(graph, step, own), strict=True)
    results = applied(step, graph, list(arrays.values()))
    leaves = entries(arrays[i] for i in dots)
    seeds = dict(zip(leaves, entries(dots.values()), strict=True))
    changes = cut(tangents(entries(results), seeds), step.outputs)
    others = sorted({k for k in scan.recorded if k >= n})
    made = [*results[:n], *changes[:n], *(changes[k] for k in others)]
    order = [i for part in parts_of(scan) for i in (*part, *(j for j in part if j in moving))]
    program = _program(f"changes of {step.name}", step, order, made)
    recorded = tuple(n + k if k < n else 2 * n + others.index(k) for k in scan.recorded)
    inputs_ = scan.inputs_per_step + sum(i in moving for i in parts_of(scan)[1])
    return Scan(program, 2 * n, inputs_, recorded=recorded)


def pulled_loop(scan: Scan, inputs_: Sequence[int], fixed: Sequence[int]) -> Scan:
    """The transpose, backward in time, for the states, some inputs and some parameters."""
    step, graph = straight_step(scan), Graph()
    states, timed, parameters = parts_of(scan)
    bars, sums = _inputs(graph, step, states), _inputs(graph, step, fixed)
    s, u = _inputs(graph, step, states), _inputs(graph, step, timed)
    ys = [inputs(graph, step.outputs[k]) for k in scan.recorded]
    p = _inputs(graph, step, parameters)
    weights = [np.zeros(shape) for shape in step.outputs]
    weights[: len(states)] = bars
    for k, y in zip(scan.recorded, ys, strict=True):
        weights[k] = _sum(weights[k], y)
    arrays = [*s, *u, *p]
    values = entries(applied(step, graph, arrays))
    leaves = [arrays[i] for i in (*states, *fixed, *inputs_)]
    found = adjoints(values, entries(weights), entries(leaves))
    made = cut([found[x] for x in entries(leaves)], [x.shape for x in leaves])
    n = len(states) + len(sums)
    made[len(states) : n] = map(_sum, made[len(states) : n], sums)
    shapes = [x.shape for x in (*bars, *sums, *s, *u, *ys, *p)]
    outputs = tuple(x.shape for x in made)
    title = f"transpose of {step.name}"
    program = Program(title, tuple(shapes), outputs, tuple(entries(made)), tuple)
    return Scan(program, n, len(s) + len(u) + len(ys), recorded=tuple(range(n, len(made))))


def parts_of(scan: Scan) -> tuple[range, range, range]:
    """The numbers of the states, of the inputs and of the parameters."""
    timed = scan.states + scan.inputs_per_step
    return range(scan.states), range(scan.states, timed), range(timed, len(scan.inputs))


def _sum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    # of two without dimensions NumPy makes a scalar
    return np.asarray(a + b, dtype=object)


def straight_step(scan: Scan) -> Program:
    """The step of a time loop, if its graph is there to be differentiated."""
    if isinstance(scan.step, Program):
        return scan.step
    raise TraceError(
        f"changes of {scan.step.name!r}: its step is made of loops over bodies, as those of long "
        f"mechanisms are, and only straight-line steps can be differentiated; "
        f"hinge.trajectory_sensitivity knows how motions of long mechanisms change"
    )


def _program(name: str, like: Program, order: Sequence[int], made: Sequence[np.ndarray]) -> Program:
    shapes = tuple(like.inputs[i] for i in order)
    return Program(name, shapes, tuple(x.shape for x in made), tuple(entries(made)), tuple)


def _inputs(graph: Graph, program: Program, which: Sequence[int]) -> list[np.ndarray]:
    return [inputs(graph, program.inputs[i]) for i in which]
