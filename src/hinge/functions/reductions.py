"""Reductions: what a rollout keeps of a function of its states, one number for each sample.

A reduction is a further state of the step, from `start`, by `update` after every step, to what
`finish` makes of it: so it runs wherever steps run, and no states are stored for it.  A value that
is NaN makes the result NaN.  Write another by deriving from `Reduction`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from ..errors import ArgumentError
from ..graph.functions import less, maximum, minimum, where

__all__ = ["Histogram", "Last", "Max", "Mean", "Min", "Reduction", "Sum"]

Shape = tuple[int, ...]
# what is left over of a sum is that small, or there is no use in keeping it
_LARGE = 2.0**120


@dataclass(frozen=True)
class Reduction(ABC):
    """of: a function of some arguments of the step, by their names, after the step: states are the
    new ones; or the number of a result of the step.  It may give an array of any shape.
    """

    of: Callable[..., Any] | int

    @abstractmethod
    def start(self, shape: Shape, dtype: np.dtype) -> np.ndarray:
        """What it begins with, for values of that shape."""

    @abstractmethod
    def update(self, total: Any, value: Any) -> Any:
        """What it is after one more value, in traced scalars."""

    def finish(self, total: Any, steps: int) -> Any:
        """The result, after so many steps."""
        return total


@final
@dataclass(frozen=True)
class Sum(Reduction):
    """The sum over all steps, with what rounding left over carried along (Kahan): as exact after a
    million steps as after one.
    """

    def start(self, shape: Shape, dtype: np.dtype) -> np.ndarray:
        """As in `Reduction`: the sum, and by how much it is too large."""
        return np.zeros((*shape, 2), dtype)

    def update(self, total: Any, value: Any) -> Any:
        """As in `Reduction`."""
        return _summed(total, value)

    def finish(self, total: Any, steps: int) -> Any:
        """As in `Reduction`."""
        return total[..., 0]


@final
@dataclass(frozen=True)
class Mean(Reduction):
    """The mean over all steps."""

    def start(self, shape: Shape, dtype: np.dtype) -> np.ndarray:
        """As in `Sum`."""
        return np.zeros((*shape, 2), dtype)

    def update(self, total: Any, value: Any) -> Any:
        """As in `Reduction`."""
        return _summed(total, value)

    def finish(self, total: Any, steps: int) -> Any:
        """As in `Reduction`."""
        return total[..., 0] / steps


@final
@dataclass(frozen=True)
class Max(Reduction):
    """The largest value after any step."""

    def start(self, shape: Shape, dtype: np.dtype) -> np.ndarray:
        """As in `Reduction`: finite, since states are."""
        return np.full(shape, np.finfo(dtype).min, dtype)

    def update(self, total: Any, value: Any) -> Any:
        """As in `Reduction`."""
        return _unless_nan(value, maximum(total, value))


@final
@dataclass(frozen=True)
class Min(Reduction):
    """The smallest value after any step."""

    def start(self, shape: Shape, dtype: np.dtype) -> np.ndarray:
        """As in `Max`."""
        return np.full(shape, np.finfo(dtype).max, dtype)

    def update(self, total: Any, value: Any) -> Any:
        """As in `Reduction`."""
        return _unless_nan(value, minimum(total, value))


@final
@dataclass(frozen=True)
class Last(Reduction):
    """The value after the last step."""

    def start(self, shape: Shape, dtype: np.dtype) -> np.ndarray:
        """As in `Reduction`."""
        return np.zeros(shape, dtype)

    def update(self, total: Any, value: Any) -> Any:
        """As in `Reduction`."""
        return value


@final
@dataclass(frozen=True, init=False)
class Histogram(Reduction):
    """After how many steps the value lay in each bin: (…, bins).

    edges: of the bins, rising; a value is in a bin from its left edge on, and below its right one.
    What lies beyond the first or the last edge is not counted.
    """

    edges: tuple[float, ...]

    def __init__(self, of: Callable[..., Any] | int, edges: Any) -> None:
        numbers = np.asarray(edges)
        real = numbers.dtype.kind in "fiu" and numbers.ndim == 1 and len(numbers) > 1
        if not real or not np.isfinite(numbers).all() or not (np.diff(numbers) > 0).all():
            raise ArgumentError(
                f"Histogram: edges are {edges!r}; expected two finite numbers or more, rising"
            )
        object.__setattr__(self, "of", of)
        object.__setattr__(self, "edges", tuple(map(float, numbers)))

    def start(self, shape: Shape, dtype: np.dtype) -> np.ndarray:
        """As in `Reduction`."""
        return np.zeros((*shape, len(self.edges) - 1), dtype)

    def update(self, total: Any, value: Any) -> Any:
        """As in `Reduction`."""
        each = np.asarray(value, dtype=object)[..., None]
        below = less(each, np.array(self.edges))
        return _unless_nan(each, total + below[..., 1:] - below[..., :-1])


def _summed(total: Any, value: Any) -> Any:
    """The sum, and what is left over."""
    old, more = total[..., 0], value - total[..., 1]
    new = old + more
    left = (new - old) - more
    # beyond all numbers nothing is left
    left = where(less(np.abs(left), _LARGE), left, 0.0)
    return np.stack([np.asarray(new, dtype=object), np.asarray(left, dtype=object)], axis=-1)


def _unless_nan(value: Any, result: Any) -> Any:
    """The result, or the value if that is NaN: then it is neither below 1 nor above 0."""
    return where(less(value, 1.0), result, where(less(0.0, value), result, value))
