"""What emitted code is tried with: every operation, every kind of number, both precisions."""

from __future__ import annotations

import platform

import numpy as np
import pytest

import hinge
from hinge.graph.loop import LoopProgram
from hinge.graph.operations import OPERATIONS
from hinge.graph.program import Program
from hinge.graph.scalar import Graph
from hinge.runtime.target import Target, host
from same_kernels import signature

EDGES = (0.0, -0.0, 1.0, -1.0, 0.3, -2.5, 700.0, 1e-310, 3e38, 1e200, np.inf, -np.inf, np.nan)

X86 = platform.machine() in ("x86_64", "AMD64")
AVX2 = X86 and "+avx2" in host().features and "+fma" in host().features
# None: this machine cannot run it
TARGETS = {
    "host": host(),
    "avx2": Target("haswell", "+avx2,+fma,+bmi,+bmi2", 256) if AVX2 else None,
    "plain": Target("x86-64", "", 128) if X86 else None,
}
both_dtypes = pytest.mark.parametrize("dtype", [np.float64, np.float32])


def target(name: str) -> Target:
    """A machine by name; skips where it cannot be run."""
    return TARGETS[name] or pytest.skip(f"this machine cannot run code for {name}")


def program_of(robot: hinge.Robot, name: str) -> tuple[list[str], Program | LoopProgram]:
    """The arrays that an algorithm is asked with, and what is compiled; skips where it is not."""
    arrays, static = signature(robot, name) or ([], {})
    if not arrays:
        pytest.skip("it takes no arrays, or more than arrays")
    try:
        return arrays, robot.kernel(name, *arrays, **static).program
    except hinge.HingeError as refused:
        pytest.skip(str(refused))


def every_operation() -> Program:
    """One entry of the result per operation, of the first of three numbers."""
    graph = Graph()
    x = [graph.input() for _ in range(3)]
    values = tuple(graph.intern(op, tuple(x[: row.arity])) for op, row in OPERATIONS.items())
    return Program("every_operation", ((3,),), ((len(values),),), values)
