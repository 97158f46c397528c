"""Rollouts as operations: time loops that know how they change, in one call.

Besides what is recorded, a time loop gives its states at the end.  Its transpose goes through time
backward; the states on the way are computed once more, so that nothing waits in memory meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from math import prod
from typing import Any

import numpy as np

from ..functions.directional import parts_of, pulled_loop, pushed_loop
from ..graph.scan import Scan
from ..runtime.cache import digest
from ..runtime.forks import made_once
from ..runtime.rollout import Rollout
from .binding import call
from .code import Code, loop_code
from .operation import Signature

__all__ = ["Family", "TimeLoop"]

jnp: Any = import_module("jax.numpy")

Shape = tuple[int, ...]


class Family:
    """A rollout, and the rollouts that were derived from it."""

    def __init__(self, rollout: Rollout) -> None:
        self.rollout = rollout
        self._loops: dict[tuple[int, int], TimeLoop] = {}
        self._derived: dict[Any, Family] = {}

    def loop(self, steps: int, every: int) -> TimeLoop:
        """So many steps, every so many of them recorded."""
        if (steps, every) not in self._loops:
            self._loops[steps, every] = TimeLoop(self, steps, every)
        return self._loops[steps, every]

    def derived(self, how: str, which: Any, make: Callable[[Scan], Scan]) -> Family:
        """The family of another time loop that is made from this one."""
        if (how, which) not in self._derived:
            old = self.rollout
            scan = make(old.scan)
            shapes = {f"{how} {i}": shape for i, shape in enumerate(scan.inputs)}
            key = digest(old._source.own_key, how, repr(which))
            counts, title = (scan.states, scan.inputs_per_step), f"{how} of {old.name}"
            new = Rollout(scan, shapes, *counts, title, old.dtype, old.backend, key)
            self._derived[how, which] = Family(new)
        return self._derived[how, which]


class TimeLoop:
    """A rollout of so many steps, as JAX knows it; the rest as of `Operation`."""

    matrices = origin = parts = None

    def __init__(self, family: Family, steps: int, every: int) -> None:
        self.family, self.steps, self.every = family, steps, every
        self.linear: tuple[int, ...] = ()
        self._pushed: dict[tuple[int, ...], _Pushed] = {}

    @property
    def rollout(self) -> Rollout:
        """What is run."""
        return self.family.rollout

    @property
    def scan(self) -> Scan:
        """The step and its loop."""
        return self.rollout.scan

    @property
    def states(self) -> int:
        """How many arguments are states."""
        return self.scan.states

    @property
    def dtype(self) -> np.dtype:
        """Of all its arrays."""
        return self.rollout.dtype

    @made_once
    def signature(self) -> Signature:
        """The shapes of one sample: of the arguments; of what is recorded, then of the states."""
        inputs, states = self.scan.inputs, self.scan.inputs[: self.scan.states]
        return Signature(inputs, self.scan.outputs + states, self.scan.form is not None)

    @property
    def inputs(self) -> tuple[Shape, ...]:
        """The shapes of one sample of the arguments."""
        return self.signature.inputs

    @property
    def times(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """How many dimensions come before the samples'."""
        timed, scan = parts_of(self.scan)[1], self.scan
        inputs = tuple(int(i in timed) for i in range(len(scan.inputs)))
        return inputs, (1,) * len(scan.recorded) + (0,) * scan.states

    def shapes(self, lead: Shape) -> list[Shape]:
        """The shapes of the results."""
        rows = (self.steps // self.every,)
        pairs = zip(self.signature.outputs, self.times[1], strict=True)
        return [rows * t + lead + shape for shape, t in pairs]

    def code(self, lead: Shape, platform: str) -> Code:
        """What runs so many samples."""
        return loop_code(self.rollout, self.steps, self.every, prod(lead), platform)

    # derivatives

    def change(self, point: Sequence[Any], dots: Mapping[int, Any]) -> list[Any]:
        """Changes of the results, from those of some arguments; those of states are always told."""
        states, timed, fixed = parts_of(self.scan)
        dots = {i: jnp.zeros_like(point[i]) for i in states} | dict(dots)
        moving = tuple(sorted(dots))
        if moving not in self._pushed:
            family = self.family.derived("change", moving, partial(pushed_loop, moving=moving))
            self._pushed[moving] = _Pushed(self, moving, family)
        arrays = [
            x
            for part in (states, timed, fixed)
            for x in (*(point[i] for i in part), *(dots[i] for i in part if i in dots))
        ]
        results = call(self._pushed[moving], *arrays)
        records = len(self.scan.recorded)
        return [*results[:records], *results[records + len(states) :]]


class _Pushed(TimeLoop):
    """The change of a time loop, linear in the changes of its arguments."""

    def __init__(self, base: TimeLoop, moving: tuple[int, ...], family: Family) -> None:
        super().__init__(family, base.steps, base.every)
        self.base = base
        # where the arguments and their changes are
        at, self.point, self.dots = 0, {}, {}
        for part in parts_of(base.scan):
            for i in part:
                self.point[i], at = at, at + 1
            for i in (j for j in part if j in moving):
                self.dots[i], at = at, at + 1
        self.linear = tuple(self.dots.values())

    def transpose(
        self, linear: tuple[int, ...], known: Sequence[Any], bars: Sequence[Any]
    ) -> list[Any]:
        """Through time backward."""
        base, scan = self.base, self.base.scan
        states, timed, fixed = parts_of(scan)
        places = iter(known)
        given = {i: next(places) for i in range(len(self.inputs)) if i not in linear}
        point = [given[self.point[i]] for i in range(len(scan.inputs))]
        wanted = [i for i, at in self.dots.items() if at in linear]
        inputs = tuple(i for i in wanted if i in timed)
        numbers = tuple(i for i in wanted if i in fixed)
        records, ends = len(scan.recorded), bars[len(scan.recorded) + len(states) :]
        back = base.family.derived(
            "transpose",
            (inputs, numbers),
            partial(pulled_loop, inputs_=inputs, fixed=numbers),
        ).loop(self.steps, 1)
        lead = ends[0].shape[: ends[0].ndim - len(scan.inputs[0])]
        sums = [jnp.zeros(lead + scan.inputs[i], self.dtype) for i in numbers]
        before = [_flipped(x) for x in self.visited(point)]
        forces = [_flipped(point[i]) for i in timed]
        weights = [_flipped(self.spread(bar)) for bar in bars[:records]]
        found = call(back, *ends, *sums, *before, *forces, *weights, *(point[i] for i in fixed))
        by = dict(zip(inputs, (_flipped(x) for x in found[: len(inputs)]), strict=True))
        by |= zip((*states, *numbers), found[len(inputs) :], strict=True)
        return [by[i] for i, at in sorted(self.dots.items(), key=lambda x: x[1]) if at in linear]

    def visited(self, point: Sequence[Any]) -> list[Any]:
        """The states before every step."""
        loop = self.base.family.derived("states", (), _only_states).loop(self.steps, 1)
        later = call(loop, *point)[: self.base.scan.states]
        pairs = [(jnp.broadcast_to(point[i], x.shape[1:]), x) for i, x in enumerate(later)]
        return [jnp.concatenate([x[None], y[:-1]]) for x, y in pairs]

    def spread(self, bar: Any) -> Any:
        """Cotangents of what is recorded, for every step."""
        if self.every == 1:
            return bar
        rows = jnp.zeros((self.steps, *bar.shape[1:]), bar.dtype)
        return rows.at[self.every - 1 :: self.every].set(bar)


def _only_states(scan: Scan) -> Scan:
    return Scan(scan.step, scan.states, scan.inputs_per_step, recorded=tuple(range(scan.states)))


def _flipped(x: Any) -> Any:
    return jnp.flip(x, axis=0)
