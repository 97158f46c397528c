"""Running a time loop in Python, over arrays: the definition that the emitter must match."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .interpret import interpret
from .scan import Scan

__all__ = ["interpret_scan"]


def interpret_scan(
    scan: Scan, arguments: Sequence[np.ndarray], steps: int, every: int = 1
) -> list[np.ndarray]:
    """What is recorded, (steps // every, …, *shape), after every so many steps.

    States and parameters have shape (…, *shape), inputs (steps, …, *shape), with the same leading
    shape.
    """
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
