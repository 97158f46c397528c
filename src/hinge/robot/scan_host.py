"""Scans on a CPU: stretches are swept by time loops, a lane each, and joined by kernels on batches.

Arrays have a row for each place; those of a level are seen as (bodies of a stretch, lanes, …).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, final

import numpy as np

from ..algorithms import log_depth as steps
from ..graph.program import Program, trace
from ..graph.scan import Scan
from ..runtime.cache import digest
from ..runtime.kernel import Kernel
from ..runtime.rollout import Rollout
from .scan_plan import Along, Each, Place, Plan, Stretches, Way, shapes_of

if TYPE_CHECKING:
    from .front import Front

__all__ = ["OnHost"]


@final
class OnHost:
    """A plan, carried out state by state."""

    def __init__(self, robot: Front, plan: Plan) -> None:
        self.steps, self._plan = Steps(robot), plan
        self._constant = {n: x.astype(robot.dtype) for n, x in plan.constant.items()}
        self._begun = {n: x.astype(robot.dtype) for n, x in plan.begun.items()}

    def __call__(self, given: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        """As in `Way`."""
        arrays = {**self._constant, **{n: x.copy() for n, x in self._begun.items()}}
        for name, x in given.items():
            # behind what is given a row for what is not there
            arrays[name] = np.concatenate([x, np.zeros_like(x[:1])])
        for operation in self._plan.operations:
            if isinstance(operation, Each):
                self._each(operation, arrays)
            else:
                self._along(operation, arrays)
        return [arrays[name][:-1] for name in self._plan.results]

    def there(
        self, given: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]
    ) -> list[Any] | None:
        """As in `Way`: arrays of the host are not elsewhere."""
        return None

    def _each(self, op: Each, arrays: Mapping[str, np.ndarray]) -> None:
        found = self.steps.each(op)(*(arrays[x.array][x.rows] for x in op.reads))
        results = found if len(op.writes) > 1 else (found,)
        for x, value in zip(op.writes, results, strict=True):
            arrays[x.array][x.rows] = value

    def _along(self, op: Along, arrays: Mapping[str, np.ndarray]) -> None:
        way, level = op.way, self._plan.places.levels[op.level]
        seen = partial(_seen, arrays, level)
        turned = _turned if op.inward else _as_it_is
        given = [turned(seen(x)) for x in op.reads]
        none = [np.tile(x, (level.lanes, *[1] * x.ndim)).astype(given[0].dtype) for x in way.none]
        whole = self.steps.swept(way.sweep, none, [given[i] for i in op.swept])
        found = _before(self.steps.join(way), whole, none)
        start = [found[i] for i in way.enters]
        results = self.steps.walked(way.walk, start, given, tuple(op.writes))
        for place, value in zip(op.writes.values(), results, strict=True):
            if place.rows is None:
                seen(place)[...] = turned(value)
            else:
                arrays[place.array][place.rows] = turned(value).reshape(place.rows.shape)


def _seen(arrays: Mapping[str, np.ndarray], level: Stretches, x: Place) -> np.ndarray:
    """An array of a level: (bodies of a stretch, lanes, …)."""
    array, shape = arrays[x.array], (level.steps, level.lanes)
    if x.rows is None:
        part = array[level.first : level.first + level.size]
        return part.reshape(*shape, *array.shape[1:])
    found = array[x.rows]
    return found.reshape(*shape, *found.shape[1:])


def _turned(x: np.ndarray) -> np.ndarray:
    """Stretches, and what is in them, the other way round."""
    return np.ascontiguousarray(np.flip(x, (0, 1)))


def _as_it_is(x: np.ndarray) -> np.ndarray:
    return x


def _before(
    join: Callable[..., Any], whole: Sequence[np.ndarray], none: Sequence[np.ndarray]
) -> list[np.ndarray]:
    """What all stretches before each do together, from what each does.

    none: what a stretch of no bodies does; such are before the first, so that all are joined
    with one `reach` before them alike.
    """
    count, reach = len(whole[0]), 1
    empty = 1 << max(count - 1, 1).bit_length() - 1
    now = [np.concatenate([x[:empty], y]) for x, y in zip(none, whole, strict=True)]
    then = [x.copy() for x in now]
    while reach < count:
        first = empty - reach
        before = (x[first : first + count] for x in now)
        join(*before, *(x[empty:] for x in now), out=tuple(x[empty:] for x in then))
        now, then, reach = then, now, 2 * reach
    return [x[empty - 1 : -1] for x in now]


@final
class Steps:
    """The functions of a plan, compiled."""

    def __init__(self, robot: Front) -> None:
        self._robot = robot
        self._rounding = float(np.finfo(robot.dtype).eps)
        self._own: dict[int, Kernel] = {}

    def each(self, op: Each) -> Kernel:
        """A function of single samples."""
        if op.key is not None:
            return self._kernel(op.fn, dict(op.shapes))
        if id(op) not in self._own:
            robot, make = self._robot, partial(traced, op.fn, op.shapes)
            self._own[id(op)] = Kernel(
                make, op.fn.__name__, tuple(op.shapes), robot.dtype, robot._backend
            )
        return self._own[id(op)]

    def kernel(self, fn: Callable[..., Any]) -> Kernel:
        """A function of `log_depth.py` on batches."""
        return self._kernel(fn, shapes_of(fn))

    def join(self, way: Way) -> Kernel:
        """Products of elements."""
        return self.product if way.join is None else self.kernel(way.join)

    @property
    def product(self) -> Kernel:
        """Products of elements of inertias."""

        def element_product(*x: Any) -> tuple[Any, ...]:
            i, j = steps.Element(*x[:5]), steps.Element(*x[5:])
            return tuple(steps.product(i, j, self._rounding))

        shapes = shapes_of(steps.element_step)
        own = [(n, shapes[n]) for n in steps.Element._fields]
        return self._kernel(element_product, {f"{n}_{i}": shape for i in "ij" for n, shape in own})

    def swept(
        self, fn: Callable[..., Any], none: Sequence[np.ndarray], given: Sequence[np.ndarray]
    ) -> list[np.ndarray]:
        """The elements of stretches; given: (bodies, stretches, …)."""
        whole = self._rollout(fn, len(none), tuple(range(len(none))))
        return [x[0] for x in whole(*none, *given, every=len(given[0]))]

    def walked(
        self,
        fn: Callable[..., Any],
        start: Sequence[np.ndarray],
        given: Sequence[np.ndarray],
        keep: tuple[int, ...],
    ) -> Sequence[np.ndarray]:
        """Results of a walk, by their numbers."""
        found = self._rollout(fn, len(start), keep)(*start, *given)
        return found if isinstance(found, tuple) else (found,)

    def _rollout(self, fn: Callable[..., Any], states: int, keep: tuple[int, ...]) -> Rollout:
        robot, shapes, asked = self._robot, shapes_of(fn), self._asked(fn, keep)
        inputs = len(shapes) - states

        def make() -> Scan:
            return Scan(traced(fn, shapes), states, inputs, recorded=keep)

        made = partial(Rollout, make, shapes, states, inputs, fn.__name__, robot.dtype)
        return robot._keep(asked, lambda: made(robot._backend, digest(*asked)))

    def _kernel(self, fn: Callable[..., Any], shapes: dict[str, tuple[int, ...]]) -> Kernel:
        robot, asked = self._robot, self._asked(fn)
        made = partial(Kernel, partial(traced, fn, shapes), fn.__name__, tuple(shapes))
        return robot._keep(asked, lambda: made(robot.dtype, robot._backend, digest(*asked)))

    def _asked(self, fn: Callable[..., Any], keep: tuple[int, ...] = ()) -> tuple[str, ...]:
        """What the code is kept under: it is the same for all robots."""
        return "log depth", fn.__name__, str(self._rounding), str(keep)


def traced(fn: Callable[..., Any], shapes: Mapping[str, tuple[int, ...]]) -> Program:
    """A function of arrays of these shapes."""
    return trace(fn, list(shapes.values()), fn.__name__)
