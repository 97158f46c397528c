"""Running programs in Python, over arrays: the definition that every emitter must match."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import prod
from typing import Any

import numpy as np

from .arrays import Shape
from .loop import Load, LoopProgram, Step, Visit
from .operations import OPERATIONS
from .program import Program
from .scalar import Node, reachable
from .scan import Scan

__all__ = ["interpret"]


def interpret(
    program: Program | LoopProgram | Scan,
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
    return (_loops if isinstance(program, LoopProgram) else _straight)(program, arguments)


def _straight(program: Any, arguments: Sequence[np.ndarray]) -> list[np.ndarray]:
    lead, dtype, flat = _flat(program.inputs, arguments)
    inputs = np.concatenate(flat, axis=-1) if flat else np.zeros((*lead, 0), dtype)
    values = _evaluated(program.nodes, lambda i: inputs[..., i], dtype)
    return _cut([values[node.id] for node in program.values], program.outputs, lead, dtype)


def _loops(program: Any, arguments: Sequence[np.ndarray]) -> list[np.ndarray]:
    lead, dtype, flat = _flat(program.inputs, arguments)
    slots = [np.zeros((program.rows, size, *lead), dtype) for size in program.slots]
    for slot, values in program.start.items():
        slots[slot][0, : len(values)] = np.reshape(values, (-1, *(1 for _ in lead)))

    def loaded(load: Load, visit: Visit) -> Any:
        if load.kind == "slot":
            return slots[load.which][getattr(visit, load.row), load.entry]
        if load.kind == "argument":
            return flat[load.which][..., visit.places[load.which] + load.entry]
        return np.asarray(visit.numbers[load.entry], dtype)

    def run(step: Step, visit: Visit) -> None:
        nodes = reachable(store.value for store in step.stores)
        values = _evaluated(nodes, lambda i: np.copy(loaded(step.loads[i], visit)), dtype)
        for store in step.stores:
            slots[store.slot][getattr(visit, store.row), store.entry] = values[store.value.id]

    for stage in program.stages:
        for visit in reversed(program.visits) if stage.backwards else program.visits:
            run(stage.steps[visit.kind], visit)
    results = [slots[slot][row, entry] for slot, row, entry in program.results]
    return _cut(results, program.outputs, lead, dtype)


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


def _evaluated(
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
