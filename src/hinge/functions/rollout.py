"""A step of one's own, run many times in one kernel."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, overload

import numpy as np

from ..errors import ArgumentError
from ..graph.program import Program, running, trace
from ..graph.scan import Scan
from ..runtime.backend import Backend
from ..runtime.devices import backend_of, check_device
from ..runtime.rollout import Rollout
from .compile import checked_shapes
from .reducing import Measured, ReducingRollout, measured, updated
from .reductions import Reduction

__all__ = ["rollout", "rollout_for"]


@overload
def rollout(
    fn: Callable[..., Any],
    state: Sequence[str],
    inputs: Sequence[str] = (),
    dtype: Any = np.float64,
    threads: int | None = None,
    device: str = "cpu",
    keep: None = None,
    **shapes: tuple[int, ...],
) -> Rollout:
    """One that records."""
    ...


@overload
def rollout(
    fn: Callable[..., Any],
    state: Sequence[str],
    inputs: Sequence[str] = (),
    dtype: Any = np.float64,
    threads: int | None = None,
    device: str = "cpu",
    *,
    keep: Mapping[str, Reduction],
    **shapes: tuple[int, ...],
) -> ReducingRollout:
    """One that reduces."""
    ...


def rollout(
    fn: Callable[..., Any],
    state: Sequence[str],
    inputs: Sequence[str] = (),
    dtype: Any = np.float64,
    threads: int | None = None,
    device: str = "cpu",
    keep: Mapping[str, Reduction] | None = None,
    **shapes: tuple[int, ...],
) -> Rollout | ReducingRollout:
    """A step as a kernel with the time loop inside: (s, y)(i+1) = fn(s(i), u(i), p).

    state, inputs: the names of the first arguments, s and u; the others, p, stay the same in all
    steps.  fn gives the new states, in order, and whatever else is to be recorded.  Shapes are
    those of one sample.  device: where it runs, "cpu" or an NVIDIA card: "cuda", "cuda:1".

    fall = hinge.rollout(lambda z, v, h: (z + h * v, v - 9.81 * h), ("z", "v"), z=(), v=(), h=())
    z, v = fall(1.0, 0.0, 1e-3, steps=1000, every=10)

    keep: reductions by name, of functions of the step's arguments; then no states are stored, and
    the result is a `ReducingRollout`, whose calls give the states at the end and what was kept.

    fall = hinge.rollout(…, keep={"lowest": hinge.Min(lambda z: z)})
    z, v, lowest = fall(1.0, 0.0, 1e-3, steps=1_000_000)
    """
    backend = backend_of(check_device("rollout", device), threads)
    return rollout_for(backend, fn, state, inputs, dtype, shapes, keep)


def rollout_for(
    backend: Backend,
    fn: Callable[..., Any],
    state: Sequence[str],
    inputs: Sequence[str],
    dtype: Any,
    shapes: Mapping[str, tuple[int, ...]],
    keep: Mapping[str, Reduction] | None = None,
) -> Rollout | ReducingRollout:
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
    if keep is None:
        scan = Scan(program, count, len(inputs), recorded=tuple(range(len(program.outputs))))
        return Rollout(scan, sizes, count, len(inputs), title, dtype, backend)
    kept = measured(title, keep, sizes, program.outputs)
    whole = _with_totals(sizes, count, kept)
    step = partial(_reducing_step, running(program), names, count, kept)
    reducing = trace(step, list(whole.values()), title)
    count += len(kept)
    scan = Scan(reducing, count, len(inputs), recorded=tuple(range(count)))
    loop = Rollout(scan, whole, count, len(inputs), title, dtype, backend)
    return ReducingRollout(loop, state, kept)


def _with_totals(
    sizes: Mapping[str, tuple[int, ...]], states: int, kept: Mapping[str, Measured]
) -> dict[str, tuple[int, ...]]:
    """The shapes of the arguments, those of the reductions after the states."""
    own = list(sizes.items())
    totals = [(f"{n} so far", m.start(np.dtype(float)).shape) for n, m in kept.items()]
    return dict(own[:states] + totals + own[states:])


def _reducing_step(
    step: Callable[..., tuple[Any, ...]],
    names: Sequence[str],
    states: int,
    kept: Mapping[str, Measured],
    *arrays: Any,
) -> tuple[Any, ...]:
    """A step of the states, then of the reductions."""
    totals = arrays[states : states + len(kept)]
    given = arrays[:states] + arrays[states + len(kept) :]
    results = step(*given)
    new = results[:states]
    known = dict(zip(names, (*new, *given[states:]), strict=True))
    return *new, *updated(kept, totals, known, results)


def _check_states(title: str, step: Program, states: dict[str, tuple[int, ...]]) -> None:
    """The first results are to be the states again."""
    if step.outputs[: len(states)] != tuple(states.values()):
        told = ", ".join(map(str, step.outputs)) or "nothing"
        wanted = ", ".join(f"{name} {shape}" for name, shape in states.items())
        raise ArgumentError(
            f"{title}: its results have shapes {told}; expected the new states first: {wanted}"
        )
