"""Rollouts as operators of PyTorch: a whole motion forward, and its gradient, each in one call.

The gradient is the pull of `hinge.differentiable`, a time loop backward along the states; where
only every so many steps were recorded, the states are computed anew first.  Forward derivatives are
a rollout with a gradient of its own, so that Hessians are `jacrev(jacfwd(…))`; of a gradient there
is none.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from importlib import import_module
from typing import Any, final

from ..differentiable import DifferentiableRollout
from ..errors import ArgumentError
from ..functions.reducing import ReducingRollout
from ..runtime.check import check_whole
from ..runtime.rollout import Rollout
from .operators import (
    LIBRARY,
    as_given,
    as_tuple,
    detached,
    differentiated,
    dtype_of,
    like,
    place_of,
    refuse,
    require_tensors,
    spread,
    tensor,
    title,
)

__all__ = ["ReducingOperator", "RolloutOperator"]

torch: Any = import_module("torch")


@final
class RolloutOperator:
    """A rollout on tensors: states and parameters (…, *shape), inputs (steps, …, *shape).

    `rollout(*tensors, steps=None, every=1)` gives what is recorded, (steps // every, …, *shape).
    """

    def __init__(self, motion: DifferentiableRollout) -> None:
        self.motion, self.rollout = motion, motion.rollout
        self.dtype, self.names = dtype_of(self.rollout.dtype), tuple(self.rollout.shapes)
        self.place = place_of(self.rollout.backend)
        self.samples = tuple(self.rollout.shapes.values())
        self.timed = tuple(n in motion.inputs for n in self.names)
        name, x, y = title(self.rollout.name), len(self.names), len(motion.recorded)
        self.op = self._defined(name, x, y, self._run, self._shapes, self._batched)
        back = self._pull, self._shapes_back, self._batched_back
        self.pull_op = self._defined(f"{name}_pull", x + 2 * y, x, *back)
        LIBRARY.impl(name, differentiated(self.op, self), "Autograd", with_keyset=True)
        once = differentiated(self.pull_op, _Once(self.rollout.name))
        LIBRARY.impl(f"{name}_pull", once, "Autograd", with_keyset=True)

    def _defined(self, name: str, taken: int, given: int, run: Any, shapes: Any, batch: Any) -> Any:
        tensors = ", ".join(f"Tensor x{i}" for i in range(taken))
        results = ", ".join(["Tensor"] * given)
        LIBRARY.define(f"{name}({tensors}, SymInt steps, SymInt every) -> ({results})")
        for key in ("CPU", "CUDA"):
            LIBRARY.impl(name, run, key)
        torch.library.register_fake(f"hinge::{name}", shapes, lib=LIBRARY)
        torch.library.register_vmap(f"hinge::{name}", batch, lib=LIBRARY)
        return getattr(torch.ops.hinge, name).default

    def __call__(self, *tensors: Any, steps: int | None = None, every: int | None = 1) -> Any:
        where = self.rollout.name
        require_tensors(where, self.names, tensors)
        shapes = [x.shape for x in tensors]
        self.motion.lead(shapes, torch.broadcast_shapes)
        steps = self.motion.steps(shapes, steps)
        return self.op(
            *tensors, steps, steps if every is None else check_whole(where, "every", every)
        )

    def __repr__(self) -> str:
        return f"<hinge.torch.function {self.rollout.name}({', '.join(self.names)})>"

    # the operator

    def _lead(self, tensors: Sequence[Any]) -> Any:
        """The common leading shape of tensors of the right kind."""
        refuse(self.rollout.name, self.names, tensors, self.dtype, self.place)
        return self.motion.lead([x.shape for x in tensors], torch.broadcast_shapes)

    def _shapes(self, *arguments: Any) -> Any:
        *tensors, steps, every = arguments
        lead = self._lead(tensors)
        rows = [(steps // every, *lead, *shape) for shape in self.motion.recorded]
        return as_given([tensors[0].new_empty(row) for row in rows])

    def _run(self, *arguments: Any) -> Any:
        *tensors, steps, every = arguments
        made = self._shapes(*arguments)
        self._filled(
            self.rollout, tensors, as_tuple(made), tuple(self._lead(tensors)), steps, every
        )
        return made

    def _filled(
        self,
        rollout: Rollout,
        tensors: Sequence[Any],
        results: Sequence[Any],
        lead: tuple[int, ...],
        steps: int,
        every: int,
    ) -> list[Any]:
        """Run into tensors; the states at the end."""
        given = [detached(x) for x in tensors]
        if self.place.type == "cpu":
            arrays, into = [x.numpy() for x in given], [x.numpy() for x in results]
            return [tensor(x) for x in rollout.fill(into, arrays, lead, steps, every)]
        return [torch.from_dlpack(x) for x in rollout.fill_there(results, given, steps, every)]

    def _batched(self, info: Any, in_dims: tuple[Any, ...], *arguments: Any) -> Any:
        *tensors, steps, every = arguments
        result = self.op(*self._spread(tensors, in_dims, ()), steps, every)
        return result, (1,) * len(result) if isinstance(result, tuple) else 1

    def _spread(self, tensors: Sequence[Any], dims: Sequence[Any], more: Sequence[Any]) -> Any:
        """Tensors of the arguments, then of what is recorded, as many times as there are more."""
        samples, timed = [*self.samples, *more], [*self.timed, *(True for _ in more)]
        given = zip(tensors, dims, map(len, samples), timed, strict=False)
        return spread(list(given))

    # backward

    def _lead_back(self, arguments: Sequence[Any]) -> Any:
        """The common leading shape of arguments, results and their gradients."""
        n = len(self.names)
        pairs = zip(arguments[n:-2], 2 * self.motion.recorded, strict=True)
        seen = [y.shape[1 : y.dim() - len(shape)] for y, shape in pairs]
        return torch.broadcast_shapes(self._lead(arguments[:n]), *seen)

    def _shapes_back(self, *arguments: Any) -> Any:
        tensors, steps = arguments[: len(self.names)], arguments[-2]
        lead = self._lead_back(arguments)
        pairs = zip(self.timed, self.samples, strict=True)
        rows = [(*[steps] * timed, *lead, *shape) for timed, shape in pairs]
        return as_given([tensors[0].new_empty(row) for row in rows])

    def _pull(self, *arguments: Any) -> Any:
        """Gradients of all arguments, from those of what was recorded."""
        n, r = len(self.names), len(self.motion.recorded)
        x, y, bars = arguments[:n], arguments[n : n + r], arguments[n + r : n + 2 * r]
        (steps, every), lead = arguments[-2:], tuple(self._lead_back(arguments))
        if every != 1:
            y = as_tuple(self._run(*x, steps, 1))
        states, inputs, fixed = self._sorted(x)
        before = [_shifted(a, b) for a, b in zip(states, y, strict=False)]
        costs = [_at_every(bar, steps, every) for bar in bars]
        backward = [a.flip(0) for a in (*before, *inputs, *costs)]
        samples = self._sorted(self.samples)
        starts = [x[0].new_zeros(shape) for shape in (*samples[0], *samples[2])]
        found = [x[0].new_empty((steps, *lead, *shape)) for shape in samples[1]]
        given, s = (*starts, *backward, *fixed), len(states)
        last = self._filled(self.motion.pull, given, found, lead, steps, 1)
        return as_given([*last[:s], *(a.flip(0) for a in found), *last[s:]])

    def _sorted(self, x: Sequence[Any]) -> tuple[Any, Any, Any]:
        """Those of the states, of the inputs, of the parameters."""
        s, u = len(self.motion.states), len(self.motion.inputs)
        return x[:s], x[s : s + u], x[s + u :]

    def _batched_back(self, info: Any, in_dims: tuple[Any, ...], *arguments: Any) -> Any:
        *tensors, steps, every = arguments
        spread_out = self._spread(tensors, in_dims, 2 * self.motion.recorded)
        result = self.pull_op(*spread_out, steps, every)
        dims = tuple(map(int, self.timed))
        return result, dims if isinstance(result, tuple) else dims[0]

    def pull(
        self, x: Any, y: Any, bars: Any, wrt: Sequence[int], steps: int, every: int
    ) -> list[Any]:
        """Gradients of the arguments in wrt."""
        found = as_tuple(self.pull_op(*x, *y, *bars, steps, every))
        return [like(found[i], x[i]) for i in wrt]

    # forward

    @cached_property
    def _along(self) -> RolloutOperator:
        return RolloutOperator(DifferentiableRollout(self.motion.push))

    def push(self, x: Any, y: Any, dots: dict[int, Any], steps: int, every: int) -> Any:
        """How what is recorded changes."""
        moved = [dots[i] if i in dots else torch.zeros_like(a) for i, a in enumerate(x)]
        pairs = zip(self._sorted(x), self._sorted(moved), strict=True)
        given = [a for pair in pairs for group in pair for a in group]
        found, s = as_tuple(self._along.op(*given, steps, every)), len(self.motion.states)
        rest = len(self.motion.recorded) - s
        return *found[s : 2 * s], *found[2 * s + rest :]


@final
class ReducingOperator:
    """A rollout that reduces, on tensors: the states at the end, and what it keeps.

    Its gradient computes the states anew, and needs memory for those of all steps.
    """

    def __init__(self, rollout: ReducingRollout) -> None:
        self.rollout = rollout
        self._inner = RolloutOperator(DifferentiableRollout(rollout.rollout))

    def __call__(self, *tensors: Any, steps: int | None = None) -> Any:
        starts = [torch.as_tensor(x, device=self._inner.place) for x in self.rollout.starts]
        return self.rollout.run(self._inner, starts, tensors, steps)

    def __repr__(self) -> str:
        return f"<hinge.torch.function {self.rollout.name}({', '.join(self.rollout.shapes)})>"


def _shifted(start: Any, states: Any) -> Any:
    """The state before every step, from the one after it."""
    return torch.cat([start.expand(states.shape[1:])[None], states])[:-1]


def _at_every(bar: Any, steps: int, every: int) -> Any:
    """Zero at the steps that were not recorded."""
    if every == 1:
        return bar
    whole = bar.new_zeros((steps, *bar.shape[1:]))
    whole[every - 1 :: every][: len(bar)] = bar
    return whole


@final
class _Once:
    """What has no derivatives."""

    def __init__(self, name: str) -> None:
        self.name = name

    def pull(self, *given: Any) -> Any:
        """There is none."""
        raise ArgumentError(
            f"the gradient of {self.name} has no gradient; for second derivatives differentiate "
            f"forward first: torch.func.jacrev(torch.func.jacfwd(…))"
        )

    push = pull
