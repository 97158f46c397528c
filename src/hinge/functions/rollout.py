"""A step of one's own, run many times in one kernel."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError
from ..graph.program import Program, trace
from ..graph.scan import Scan
from ..runtime.backend import Backend
from ..runtime.cpu import Cpu
from ..runtime.rollout import Rollout
from .compile import checked_shapes

__all__ = ["rollout", "rollout_for"]


def rollout(
    fn: Callable[..., Any],
    state: Sequence[str],
    inputs: Sequence[str] = (),
    dtype: Any = np.float64,
    threads: int | None = None,
    **shapes: tuple[int, ...],
) -> Rollout:
    """A step as a kernel with the time loop inside: (s, y)(i+1) = fn(s(i), u(i), p).

    state, inputs: the names of the first arguments, s and u; the others, p, stay the same in all
    steps.  fn gives the new states, in order, and whatever else is to be recorded.  Shapes are
    those of one sample.

    fall = hinge.rollout(lambda z, v, h: (z + h * v, v - 9.81 * h), ("z", "v"), z=(), v=(), h=())
    z, v = fall(1.0, 0.0, 1e-3, steps=1000, every=10)
    """
    return rollout_for(Cpu(threads), fn, state, inputs, dtype, shapes)


def rollout_for(
    backend: Backend,
    fn: Callable[..., Any],
    state: Sequence[str],
    inputs: Sequence[str],
    dtype: Any,
    shapes: Mapping[str, tuple[int, ...]],
) -> Rollout:
    """The same on any backend."""
    title = f"rollout of {getattr(fn, '__name__', 'a function')}"
    names = list(inspect.signature(fn).parameters)
    state, inputs = ((x,) if isinstance(x, str) else tuple(x) for x in (state, inputs))
    first = [*state, *inputs]
    if names[: len(first)] != first or len(first) == len(inputs):
        raise ArgumentError(
            f"{title}: it takes {', '.join(names) or 'nothing'}; expected its states first, then "
            f"its inputs, got state {', '.join(state) or 'none'}, inputs "
            f"{', '.join(inputs) or 'none'}"
        )
    sizes = checked_shapes(title, names, shapes)
    program = trace(fn, list(sizes.values()), title)
    count = len(first) - len(inputs)
    _check_states(title, program, dict(list(sizes.items())[:count]))
    scan = Scan(program, count, len(inputs), recorded=tuple(range(len(program.outputs))))
    return Rollout(scan, sizes, count, len(inputs), title, dtype, backend)


def _check_states(title: str, step: Program, states: dict[str, tuple[int, ...]]) -> None:
    """The first results are to be the states again."""
    if step.outputs[: len(states)] != tuple(states.values()):
        told = ", ".join(map(str, step.outputs)) or "nothing"
        wanted = ", ".join(f"{name} {shape}" for name, shape in states.items())
        raise ArgumentError(
            f"{title}: its results have shapes {told}; expected the new states first: {wanted}"
        )
