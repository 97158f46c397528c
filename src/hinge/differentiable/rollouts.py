"""A rollout with its derivatives: one more time loop, forward or backward in time.

    (s, y)(i+1) = step(s(i), u(i), p)

    push    ṡ, ẏ of (i+1) = ∂step (ṡ(i), u̇(i), ṗ), along with the states                        (1)
    pull    (s̄(i), ū(i), δp̄) = ∂stepᵀ (s̄(i+1) + c_s(i), c_y(i)),   p̄ += δp̄                     (2)

from s̄(steps) = 0, where c(i) is the derivative of a cost with respect to what step i recorded.  The
gradient with respect to the start is s̄(0).  All of it is with respect to entries of the arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, final

import numpy as np

from ..errors import ArgumentError
from ..functions.directional import straight_step
from ..graph.program import running, trace
from ..graph.scan import Scan
from ..runtime.rollout import Rollout
from .rules import Shape

__all__ = ["DifferentiableRollout"]


@final
class DifferentiableRollout:
    """A rollout that knows its derivatives, each a rollout: `push` and `pull`.

    states, inputs, parameters: the names of each; recorded: the shapes of what is recorded, states
    first.
    """

    def __init__(self, rollout: Rollout) -> None:
        self.rollout = rollout
        names = list(rollout.shapes)
        s, u = rollout.states, rollout.inputs
        self.states, self.inputs, self.parameters = names[:s], names[s : s + u], names[s + u :]

    @property
    def recorded(self) -> tuple[Shape, ...]:
        """The shapes of one sample of what a step leaves, the states first."""
        return self.rollout.scan.outputs

    def lead(
        self, shapes: Sequence[Any], broadcast: Callable[..., Any] = np.broadcast_shapes
    ) -> Any:
        """The common leading shape of arguments of these shapes; raises if there is none.

        broadcast: how leading shapes are, where sizes are symbols.
        """
        where, own, leads = self.rollout.name, self.rollout.shapes, []
        if len(shapes) != len(own):
            raise ArgumentError(
                f"{where} takes {len(own)} arrays ({', '.join(own)}), got {len(shapes)}"
            )
        for (name, shape), given in zip(own.items(), shapes, strict=True):
            time, before = int(name in self.inputs), len(given) - len(shape)
            if before < time or tuple(given[before:]) != shape:
                sizes = ", ".join([*["steps"] * time, "…", *map(str, shape)])
                raise ArgumentError(
                    f"{where}: {name} has shape {tuple(given)}; expected shape ({sizes})"
                )
            leads.append(tuple(given[time:before]))
        try:
            return broadcast(*leads)
        except (ValueError, RuntimeError):
            told = ", ".join(f"{n} {lead}" for n, lead in zip(own, leads, strict=True))
            raise ArgumentError(
                f"{where}: leading shapes do not broadcast: {told}; give all the same, or none"
            ) from None

    def steps(self, shapes: Sequence[Any], asked: int | None) -> Any:
        """How many steps the inputs are for, or were asked for."""
        own = list(self.rollout.shapes)
        lengths = {n: shapes[own.index(n)][0] for n in self.inputs}
        if asked is not None:
            lengths["steps="] = asked
        if len(set(lengths.values())) != 1:
            told = ", ".join(f"{n} {k}" for n, k in lengths.items()) or "nothing tells"
            raise ArgumentError(
                f"{self.rollout.name}: how many steps? {told}; give one number of steps"
            )
        return next(iter(lengths.values()))

    @cached_property
    def push(self) -> Rollout:
        """(s, ṡ), inputs (u, u̇), parameters (p, ṗ): records (s, ṡ), then what else, y and ẏ."""
        from ..functions.derivatives import jvp

        s, u, p = len(self.states), len(self.inputs), len(self.parameters)
        step = self._step

        def both(*arrays: Any) -> tuple[Any, ...]:
            parts = _cut(arrays, (s, s, u, u, p, p))
            x, dots = (*parts[0], *parts[2], *parts[4]), (*parts[1], *parts[3], *parts[5])
            y, dy = step(*x), jvp(step)(x, dots)  # (1)
            return *y[:s], *dy[:s], *y[s:], *dy[s:]

        # of changes of changes, names that the first do not have
        own, shapes, mark = self.rollout.shapes, {}, "'" * len(self.rollout.shapes)
        for names in (self.states, self.inputs, self.parameters):
            shapes |= {n: own[n] for n in names} | {f"d({n}){mark}": own[n] for n in names}
        every = tuple(range(2 * len(self.recorded)))
        return self._made("push", both, shapes, 2 * s, 2 * u, every)

    @cached_property
    def pull(self) -> Rollout:
        """States (s̄, p̄), inputs (s, u, c) backward in time, parameters p: records ū alone.

        Its states at the end are the gradients with respect to the start and the parameters.
        """
        from ..functions.derivatives import vjp

        s, u, p = len(self.states), len(self.inputs), len(self.parameters)
        step, r = self._step, len(self.recorded)

        def back(*arrays: Any) -> tuple[Any, ...]:
            bars, sums, at, given, costs, fixed = _cut(arrays, (s, p, s, u, r, p))
            seen = [bar + c for bar, c in zip(bars, costs, strict=False)]
            gone = vjp(step)((*at, *given, *fixed), (*seen, *costs[s:]))  # (2)
            more = [total + g for total, g in zip(sums, gone[s + u :], strict=True)]
            return *gone[:s], *more, *gone[s : s + u]

        own = self.rollout.shapes
        shapes = {f"bar({n})": own[n] for n in (*self.states, *self.parameters)}
        shapes |= {n: own[n] for n in (*self.states, *self.inputs)}
        shapes |= {f"cost({i})": shape for i, shape in enumerate(self.recorded)}
        shapes |= {n: own[n] for n in self.parameters}
        return self._made("pull", back, shapes, s + p, s + u + r, tuple(range(s + p, s + p + u)))

    def _step(self, *arrays: Any) -> tuple[Any, ...]:
        return running(straight_step(self.rollout.scan))(*arrays)

    def _made(
        self,
        kind: str,
        step: Any,
        shapes: dict[str, Shape],
        states: int,
        inputs: int,
        recorded: tuple[int, ...],
    ) -> Rollout:
        own, title = self.rollout, f"{kind} of {self.rollout.name}"
        program = trace(step, list(shapes.values()), title)
        scan = Scan(program, states, inputs, recorded=recorded)
        return Rollout(scan, shapes, states, inputs, title, own.dtype, own.backend)


def _cut(arrays: tuple[Any, ...], counts: tuple[int, ...]) -> list[tuple[Any, ...]]:
    """Arrays in groups of so many."""
    ends = [sum(counts[: i + 1]) for i in range(len(counts))]
    return [arrays[end - n : end] for end, n in zip(ends, counts, strict=True)]
