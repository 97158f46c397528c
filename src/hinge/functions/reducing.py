"""Rollouts that keep reductions, not states: memory as for one step, however many there are."""

from __future__ import annotations

import inspect
from collections import namedtuple
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from keyword import iskeyword
from typing import Any, NamedTuple, final

import numpy as np

from ..errors import ArgumentError, located
from ..graph.program import Program, running, trace
from ..runtime.rollout import Rollout, blocks_of_steps, check_indexed
from .reductions import Reduction

__all__ = ["Measured", "ReducingRollout", "kept_form", "measured", "updated"]

Shape = tuple[int, ...]


class Measured(NamedTuple):
    """A reduction of values of some shape, traced.

    of: the number of a result of the step, or a program of arguments by name; change: the program
    of the reduction after one more value, from what it was and the value.
    """

    reduction: Reduction
    shape: Shape
    of: int | Program
    names: tuple[str, ...]
    change: Program

    @property
    def digest(self) -> str:
        """The same for reductions that compute the same of the same."""
        of = self.of if isinstance(self.of, int) else self.of.digest
        return f"{of} {self.names} {self.change.digest}"

    def start(self, dtype: np.dtype) -> np.ndarray:
        """What it begins with."""
        return self.reduction.start(self.shape, dtype)

    def update(self, total: Any, known: Mapping[str, Any], results: Sequence[Any]) -> Any:
        """What it is after one more step: known are the step's arguments, results what it gave."""
        if isinstance(self.of, int):
            value = results[self.of]
        else:
            (value,) = running(self.of)(*(known[n] for n in self.names))
        return running(self.change)(total, value)[0]

    def finish(self, total: np.ndarray, steps: int) -> Any:
        """The result after so many steps; what the reduction was stays as it is."""
        own = total.copy() if isinstance(total, np.ndarray) else total
        return self.reduction.finish(own, steps)


def measured(
    where: str, keep: Any, shapes: Mapping[str, Shape], outputs: Sequence[Shape]
) -> dict[str, Measured]:
    """What is asked to be kept, checked, by name; shapes: of what its functions may take.

    outputs: the shapes of the results of a step, for reductions of those.
    """
    if not isinstance(keep, Mapping) or not keep:
        raise ArgumentError(
            f"{where}: keep is {keep!r}; expected reductions by name, such as "
            f"{{'cost': hinge.Sum(cost)}}"
        )
    for name, reduction in keep.items():
        good = isinstance(name, str) and name.isidentifier() and not iskeyword(name)
        if not good or name.startswith("_") or name in shapes:
            raise ArgumentError(
                f"{where}: keep has the name {name!r}; expected one that no argument of the step "
                f"has, of letters and digits"
            )
        if not isinstance(reduction, Reduction):
            raise ArgumentError(
                f"{where}: keep has {name} = {reduction!r}; expected a reduction: hinge.Sum, Mean, "
                f"Max, Min, Last or Histogram of a function"
            )
    return {n: _measured(f"{where}: {n}", r, shapes, outputs) for n, r in keep.items()}


def _measured(
    where: str, reduction: Reduction, shapes: Mapping[str, Shape], outputs: Sequence[Shape]
) -> Measured:
    of = reduction.of
    if isinstance(of, int):
        if not 0 <= of < len(outputs):
            raise ArgumentError(
                f"{where} is of result {of} of the step, which gives {len(outputs)}, counted from 0"
            )
        return Measured(reduction, outputs[of], of, (), _change(where, reduction, outputs[of]))
    names = list(inspect.signature(of).parameters) if callable(of) else ["nothing"]
    if not set(names) <= set(shapes):
        raise ArgumentError(
            f"{where} is of {of!r}, which takes {', '.join(names)}; expected a function of some of "
            f"{', '.join(shapes)}, or the number of a result of the step"
        )
    program = trace(of, [shapes[n] for n in names], where)
    if program.form is not None:
        raise ArgumentError(f"{where} gives {len(program.outputs)} results; expected one array")
    (shape,) = program.outputs
    return Measured(reduction, shape, program, tuple(names), _change(where, reduction, shape))


def _change(where: str, reduction: Reduction, shape: Shape) -> Program:
    """The reduction after one more value, as a program."""
    start = reduction.start(shape, np.dtype(float)).shape
    program = trace(reduction.update, [start, shape], where)
    if program.outputs != (start,):
        raise ArgumentError(
            f"{where}: {type(reduction).__name__}.update gives {program.outputs}; expected an "
            f"array of shape {start}, as start does"
        )
    return program


def updated(
    kept: Mapping[str, Measured],
    totals: Sequence[Any],
    known: Mapping[str, Any],
    results: Sequence[Any],
) -> list[Any]:
    """What all reductions are after one more step."""
    pairs = zip(kept.values(), totals, strict=True)
    return [m.update(total, known, results) for m, total in pairs]


@lru_cache(maxsize=256)
def kept_form(names: tuple[str, ...]) -> Any:
    """The named tuple that holds what is kept; it pickles."""

    def reduced(self: Any) -> Any:
        return _restored, (names, tuple(self))

    return type("Kept", (namedtuple("Kept", names),), {"__slots__": (), "__reduce__": reduced})


def _restored(names: tuple[str, ...], values: tuple[Any, ...]) -> Any:
    return kept_form(names)(*values)


@final
class ReducingRollout:
    """A compiled time loop that stores no states: it keeps those at the end, and sums, extremes and
    the like of what happened on the way.

    `rollout(*arrays, steps=None)`: states and parameters of shape (…, *shape), inputs of shape
    (steps, …, *shape), leading shapes broadcast.  The result is a named tuple: the states at the
    end, then what was asked for, each (…, *shape).
    """

    records = False

    def __init__(
        self, rollout: Rollout, states: Sequence[str], kept: Mapping[str, Measured]
    ) -> None:
        """rollout: its first states are the step's own, the others those of the reductions."""
        self.rollout, self.states, self.kept = rollout, tuple(states), dict(kept)
        self.name, self.dtype, self.timed = rollout.name, rollout.dtype, rollout.timed
        own = list(rollout.shapes.items())
        self.shapes = dict(own[: len(states)] + own[len(states) + len(kept) :])
        self.form = kept_form((*states, *kept))

    @property
    def starts(self) -> list[np.ndarray]:
        """What the reductions begin with."""
        return [m.start(self.dtype) for m in self.kept.values()]

    def __call__(self, *arrays: Any, steps: int | None = None, **unknown: Any) -> Any:
        """Run; steps: how many, if there are no inputs to tell."""
        return self.run(self.rollout, self.starts, arrays, steps, **unknown)

    def run(
        self,
        call: Callable[..., Any],
        totals: Sequence[Any],
        arrays: Sequence[Any],
        steps: int | None,
        **settings: Any,
    ) -> Any:
        """By whatever does what the rollout does, on arrays of its kind."""
        self._check(arrays)
        n = len(self.states)
        records = call(*arrays[:n], *totals, *arrays[n:], steps=steps, every=None, **settings)
        taken = np.shape(arrays[n])[0] if self.timed else steps
        return self._finished([x[0] for x in records], taken or 0)

    def stream(self, *arrays: Any) -> Iterator[Any]:
        """Yield what is kept so far, after one block of steps after the other.

        The inputs are iterables of blocks, (steps of a block, …, *shape).
        """
        self._check(arrays)
        n, taken = len(self.states), 0
        ends, fixed = [*arrays[:n], *self.starts], arrays[n + len(self.timed) :]
        for block in blocks_of_steps(self.name, self.timed, arrays[n:]):
            with located(f"the block after {taken} steps"):
                ends = [x[0] for x in self.rollout(*ends, *block, *fixed, every=None)]
            taken += np.shape(block[0])[0]
            yield self._finished(ends, taken)

    def _finished(self, ends: Sequence[Any], steps: int) -> Any:
        n = len(self.states)
        pairs = zip(self.kept.values(), ends[n:], strict=True)
        return self.form(*ends[:n], *(m.finish(total, steps) for m, total in pairs))

    def _check(self, arrays: Sequence[Any]) -> None:
        check_indexed(self.name, arrays)
        if len(arrays) != len(self.shapes):
            raise ArgumentError(
                f"{self.name} takes {len(self.shapes)} arrays ({', '.join(self.shapes)}), got "
                f"{len(arrays)}"
            )
