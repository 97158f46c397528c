"""Running programs in Python, over arrays: the definition that every emitter must match."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from .arrays import Shape
from .loop import GROUND, PAIR, Climb, LoopProgram, Step
from .operations import OPERATIONS
from .program import Program
from .relay import Relay
from .scalar import Node, reachable
from .scan import Scan

__all__ = ["evaluated", "interpret"]


def interpret(
    program: Program | LoopProgram | Relay | Scan,
    arguments: Sequence[np.ndarray],
    steps: int = 1,
    every: int = 1,
) -> list[np.ndarray]:
    """The results for arguments of shape (…, *shape), all with the same leading shape.

    Of a scan, what is recorded after every so many of its steps: (steps // every, …, *shape); the
    inputs of its steps have shape (steps, …, *shape).
    """
    if isinstance(program, Scan):
        return _over_time(program, arguments, steps, every)
    if isinstance(program, Relay):
        arrays = list(arguments)
        for part in program.parts:
            arrays += interpret(part.program, [arrays[k] for k in part.takes])
        return arrays[-len(program.outputs) :]
    return (_loops if isinstance(program, LoopProgram) else _straight)(program, arguments)


def _straight(program: Any, arguments: Sequence[np.ndarray]) -> list[np.ndarray]:
    lead, dtype, flat = _flat(program.inputs, arguments)
    inputs = np.concatenate(flat, axis=-1) if flat else np.zeros((*lead, 0), dtype)
    values = evaluated(program.nodes, lambda i: inputs[..., i], dtype)
    return _cut([values[node.id] for node in program.values], program.outputs, lead, dtype)


def _loops(program: Any, arguments: Sequence[np.ndarray]) -> list[np.ndarray]:
    lead, dtype, flat = _flat(program.inputs, arguments)
    run = _Loops(program, flat, lead, dtype)
    for stage in program.stages:
        run.step(stage.before, {})
        for i in range(len(program.visits))[:: -1 if stage.backwards else 1]:
            kind = program.visits[i].kind
            run.step(stage.steps[kind], {"own": i})
            if stage.climbs and stage.climbs[kind]:
                run.climb(stage.climbs[kind], i)
    results = [run.slots[slot][row, entry] for slot, row, entry in program.results]
    if program.matrices:
        results = [*results, *np.concatenate([run.pairs, run.pairs[:1] * 0])[program.pairs.index()]]
    return _cut(results, program.outputs, lead, dtype)


class _Loops:
    """What a loop program works on: slots, and values of pairs of things."""

    def __init__(
        self, program: LoopProgram, flat: Sequence[np.ndarray], lead: Shape, dtype: np.dtype
    ) -> None:
        self.program, self.flat, self.dtype = program, flat, dtype
        self.slots = [np.zeros((program.rows, size, *lead), dtype) for size in program.slots]
        for slot, values in program.start.items():
            self.slots[slot][0, : len(values)] = np.reshape(values, (-1, *(1 for _ in lead)))
        self.pairs = np.zeros((program.pairs.size, *lead), dtype)

    def step(self, step: Step, at: Mapping[str, int], pair: int | None = None) -> None:
        """One step; at: the numbers of the visits of rows; pair: where that row begins."""
        visits, pairs = self.program.visits, self.program.pairs
        rows = {row: visits[i].own for row, i in at.items()} | {GROUND: 0}
        rows |= {"parent": visits[at["own"]].parent} if at else {}
        nodes = reachable(store.value for store in step.stores)

        def loaded(i: int) -> np.ndarray:
            load = step.loads[i]
            if load.kind == "slot":
                return np.copy(self.slots[load.which][rows[load.row], load.entry])
            if load.row == GROUND:
                return np.copy(self.flat[load.which][..., load.entry])
            visit = visits[at[load.row]]
            if load.kind == "argument":
                return np.copy(self.flat[load.which][..., visit.places[load.which] + load.entry])
            return np.asarray(visit.numbers[load.entry], self.dtype)

        values = evaluated(nodes, loaded, self.dtype)
        for store in step.stores:
            if store.row != PAIR:
                self.slots[store.slot][rows[store.row], store.entry] = values[store.value.id]
                continue
            own, upper = at["own"], at.get("upper", at["own"])
            begin = pairs.begin[own] if pair is None else pair
            place = begin + pairs.place(store.slot, own, pairs.dofs[upper]) + store.entry
            self.pairs[place] = values[store.value.id]

    def climb(self, climb: Climb, own: int) -> None:
        """All steps from a thing to its root."""
        pairs, lower, pair = self.program.pairs, own, self.program.pairs.climb[own]
        while (upper := pairs.above[lower]) >= 0:
            at = {"own": own, "lower": lower, "upper": upper}
            self.step(climb[self.program.ways[lower]], at, pair)
            pair += pairs.slots * pairs.dofs[own] * pairs.dofs[upper]
            lower = upper


def _over_time(
    scan: Scan, arguments: Sequence[np.ndarray], steps: int, every: int
) -> list[np.ndarray]:
    state, rest = list(arguments[: scan.states]), arguments[scan.states :]
    inputs, parameters = rest[: scan.inputs_per_step], rest[scan.inputs_per_step :]
    lead = state[0].shape[: state[0].ndim - len(scan.inputs[0])]
    rows: list[list[np.ndarray]] = [[] for _ in scan.recorded]
    for i in range(steps):
        results = state
        for stage in scan.stages:
            row = np.broadcast_to(np.array(stage, state[0].dtype), (*lead, len(stage)))
            given = [*state, *(u[i] for u in inputs), *parameters]
            results = interpret(scan.step, [*given, row] if scan.staged else given)
            state = results[: scan.states]
        if (i + 1) % every == 0:
            for column, number in zip(rows, scan.recorded, strict=True):
                column.append(results[number])
    shapes = [(steps // every, *lead, *shape) for shape in scan.outputs]
    return [np.array(c).reshape(s) for c, s in zip(rows, shapes, strict=True)]


def evaluated(
    nodes: Iterable[Node], loaded: Callable[[int], np.ndarray], dtype: np.dtype
) -> dict[int, np.ndarray]:
    """The values of nodes, arguments before their uses, by id; loaded: input i."""
    values: dict[int, np.ndarray] = {}
    with np.errstate(all="ignore"):
        for node in nodes:
            if node.op == "const":
                values[node.id] = np.asarray(node.value, dtype)
            elif node.op == "input":
                values[node.id] = loaded(node.value)
            else:
                values[node.id] = OPERATIONS[node.op].numpy(*(values[a.id] for a in node.args))
    return values


def _flat(
    shapes: Sequence[Shape], arguments: Sequence[np.ndarray]
) -> tuple[Shape, np.dtype, list[np.ndarray]]:
    """The leading shape, the dtype, and every argument with its entries along one last axis."""
    arrays = [np.asarray(a) for a in arguments]
    dtype = np.result_type(*arrays) if arrays else np.dtype(float)
    lead = arrays[0].shape[: arrays[0].ndim - len(shapes[0])] if arrays else ()
    return lead, dtype, [a.reshape(*lead, -1) for a in arrays]


def _cut(
    values: Sequence[np.ndarray], shapes: Sequence[Shape], lead: Shape, dtype: np.dtype
) -> list[np.ndarray]:
    """One value for every entry, as arrays of the shapes."""
    results, start = [], 0
    for shape in shapes:
        out = np.empty((*lead, prod(shape)), dtype)
        for i in range(prod(shape)):
            out[..., i] = values[start + i]
        results.append(out.reshape(lead + shape))
        start += prod(shape)
    return results
