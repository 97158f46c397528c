"""Results of long mechanisms from the source of their algorithm, run as it is.

Some results have no loops over bodies, and too many operations to be straight-line code: tensors,
derivatives of matrices, what is put together from several algorithms.  Their source runs in NumPy,
sample by sample; the algorithms it calls that do have loops, or columns, are answered by kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any, final

import numpy as np

from ..algorithms.declare import ALGORITHMS, Served
from ..errors import SingularError
from ..model.parameters import PARAMETERS, with_parameters
from ..runtime.arguments import Argument, broadcast
from ..runtime.entry import Entry
from ..runtime.progress import progress
from ..specialize.arrays import array_shape, is_array
from ..specialize.routing import route
from .results import as_results
from .settings import settled

if TYPE_CHECKING:
    from .front import Front

__all__ = ["BySource"]

# the numbers of an inertia of 1 kg and 1 kg m²
_UNIT = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0)


@final
class BySource:
    """An algorithm of a long mechanism, its source run in NumPy."""

    def __init__(
        self,
        robot: Front,
        name: str,
        arrays: tuple[str, ...],
        static: Mapping[str, Any],
        form: type,
    ) -> None:
        self.robot, self.name = robot, ALGORITHMS[name].name
        self.arrays, self.static, self.form = arrays, static, form

    def __call__(self, where: str, given: Sequence[Argument], out: Any) -> Any:
        values = broadcast(where, given)
        lead = values[given[0].name].shape[: values[given[0].name].ndim - len(given[0].shape)]
        flat = {a.name: values[a.name].reshape(-1, *a.shape) for a in given}
        with np.errstate(all="ignore"):
            rows = [
                self._row({n: x[i] for n, x in flat.items()}, alone=lead == ())
                for i in progress(range(prod(lead)), where)
            ]
        shapes = [x.shape for x in next(filter(None, rows), None) or self._any_row(given)]
        stacked = [
            np.array([np.full(shape, np.nan) if row is None else row[i] for row in rows])
            for i, shape in enumerate(shapes)
        ]
        stacked = [x.reshape(*lead, *shape) for x, shape in zip(stacked, shapes, strict=True)]
        results = as_results(self.robot, where, stacked, out, stacked[0].ndim - len(lead))
        return results[0] if len(results) == 1 else self.form(*results)

    def _row(self, values: dict[str, np.ndarray], alone: bool) -> list[np.ndarray] | None:
        """The results of one sample, None if there are none: alone, it raises."""
        if not all(np.isfinite(x).all() for x in values.values()):
            return None
        try:
            parts = self._run(values)
        except SingularError:
            if alone:
                raise
            return None
        return parts if alone or all(np.isfinite(x).all() for x in parts) else None

    def _any_row(self, given: Sequence[Argument]) -> list[np.ndarray]:
        """Those of bodies that have inertia, in any state: for their shapes."""
        q, mech = self.robot.neutral(), self.robot.mechanism
        values = {a.name: q if a.shape == q.shape else np.zeros(a.shape) for a in given}
        return self._run(values | {"inertia": np.tile(_UNIT, (mech.n_bodies, 1))})

    def _run(self, values: dict[str, np.ndarray]) -> list[np.ndarray]:
        numbers = {n: x for n, x in values.items() if n in PARAMETERS}
        given = {n: x for n, x in values.items() if n not in numbers}
        mech = with_parameters(self.robot.mechanism, **numbers)
        if not numbers:
            mech = Served.by(mech, partial(_answered, self.robot, self.name))
        found = ALGORITHMS[self.name].function(mech, **given, **self.static)
        return [np.asarray(x, float) for x in (found if isinstance(found, tuple) else (found,))]

    def entry(self, otherwise: Callable[..., Any]) -> Entry | None:
        """There is no machine code."""
        return None


def _answered(robot: Front, own: str, name: str, given: dict[str, Any]) -> Any:
    """What an algorithm called by the source gives, if a kernel is worth it; None otherwise.

    An array with columns where a sample has one vector is a batch of them.
    """
    if name == own:
        return None
    mech, where = robot.mechanism, f"{name} of {robot.name!r}"
    arrays = {n: np.asarray(x) for n, x in given.items() if is_array(n) and x is not None}
    rest = {n: x for n, x in given.items() if n not in arrays and x is not None}
    static = {n: settled(mech, where, n, x, split_per_sample=False) for n, x in rest.items()}
    asked = "source", own, name, tuple(arrays), robot._settings(name, static)
    unrolled = ALGORITHMS[own].composed
    answer = robot._keep(asked, lambda: _answer(robot, name, tuple(arrays), static, unrolled))
    if answer is None:
        return None
    wide = [n for n, x in arrays.items() if x.ndim > len(array_shape(mech, n, static))]
    arrays |= {n: np.ascontiguousarray(arrays[n].T) for n in wide}
    found = robot._answered(answer, where, arrays, None)
    return found.T if wide else found


def _answer(
    robot: Front, name: str, arrays: tuple[str, ...], static: dict[str, Any], unrolled: bool
) -> Any:
    """What answers an algorithm by loops or columns, or unrolled; None if nothing does."""
    way = route(robot.mechanism, name, arrays, static, climbs=robot._backend.climbs)
    if way.plan == "unrolled" and not unrolled:
        return None
    return robot._answer(name, arrays, static, ALGORITHMS[name].form)
