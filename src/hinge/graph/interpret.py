"""Running a program in Python, over arrays: the definition that every emitter must match."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .operations import OPERATIONS
from .program import Program

__all__ = ["interpret"]


def interpret(program: Program, arguments: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The results for arguments of shape (…, *shape), all with the same leading shape."""
    arrays = [np.asarray(a) for a in arguments]
    dtype = np.result_type(*arrays) if arrays else np.dtype(float)
    lead = arrays[0].shape[: arrays[0].ndim - len(program.inputs[0])] if arrays else ()
    flat = [a.reshape(*lead, -1) for a in arrays]
    inputs = np.concatenate(flat, axis=-1) if flat else np.zeros((*lead, 0), dtype)
    values: dict[int, np.ndarray] = {}
    with np.errstate(all="ignore"):
        for node in program.nodes:
            if node.op == "const":
                values[node.id] = np.asarray(node.value, dtype)
            elif node.op == "input":
                values[node.id] = inputs[..., node.value]
            else:
                values[node.id] = OPERATIONS[node.op].numpy(*(values[a.id] for a in node.args))
    results, start = [], 0
    for shape, size in zip(program.outputs, program.output_sizes, strict=True):
        out = np.empty((*lead, size), dtype)
        for i in range(size):
            out[..., i] = values[program.values[start + i].id]
        results.append(out.reshape(lead + shape))
        start += size
    return results
