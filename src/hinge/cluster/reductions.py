"""What becomes of the results of a study, block by block and then of blocks together.

All of these give the same bits however samples are divided into blocks.  Sums are exact: a number
is a whole multiple of 2⁻¹¹²⁶, whole numbers are added without rounding, and the result is rounded
once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, final

import numpy as np

from ..errors import ArgumentError

__all__ = [
    "Block",
    "Extreme",
    "Reduction",
    "collected",
    "highest",
    "histogram",
    "least",
    "lowest",
    "mean",
    "most",
    "total",
]

# numbers are m 2^(e − 53) with whole m, and e is −1073 at least
_UNIT, _LOWEST = 1126, 1073


class Block(NamedTuple):
    """Samples of a block: what was measured of them, (n, …), their numbers and their points."""

    values: np.ndarray
    numbers: np.ndarray
    points: Mapping[str, np.ndarray]


def _same(x: Any) -> Any:
    """What there is at the end, unless told otherwise: as it is."""
    return x


@final
@dataclass(frozen=True)
class Reduction:
    """Any associative reduction.

    start: what a block becomes; combine: two of those, the earlier samples first; finish: the end.
    of: what is reduced: the place or name of a result, or a function of the results of a block that
    gives (n, …); None for the only result.
    whole: samples that are not finite are among those of a block; otherwise they are left out.
    """

    start: Callable[[Block], Any]
    combine: Callable[[Any, Any], Any]
    finish: Callable[[Any], Any] = _same
    of: Any = None
    whole: bool = False

    def measured(self, where: str, results: Any, count: int) -> np.ndarray:
        """What is reduced, of the results of a block of so many samples."""
        several = isinstance(results, (tuple, Mapping))
        if callable(self.of):
            # other reductions look at the results too: the function may write into them
            own = deepcopy(results)
            found = self.of(*own) if isinstance(own, tuple) else self.of(own)
        elif self.of is None and several and len(results) > 1:
            named = list(results) if isinstance(results, Mapping) else f"0 … {len(results) - 1}"
            raise ArgumentError(
                f"{where}: there are several results ({named}); say which by of=, or give a "
                f"function of them"
            )
        elif self.of is None:
            found = next(iter(_items(results).values())) if several else results
        else:
            known = _items(results) if several else {0: results}
            if self.of not in known:
                raise ArgumentError(
                    f"{where}: of={self.of!r} is no result; expected one of {list(known)}"
                )
            found = known[self.of]
        x = np.asarray(found)
        if x.shape[:1] != (count,) or x.dtype.kind not in "fiub":
            raise ArgumentError(
                f"{where}: it has shape {x.shape} and dtype {x.dtype}; expected real numbers with "
                f"one entry per sample first: ({count}, …); time comes before samples in rollouts"
            )
        return x


def _items(results: Any) -> dict[Any, Any]:
    return dict(results) if isinstance(results, Mapping) else dict(enumerate(results))


# sums


def total(of: Any = None) -> Reduction:
    """The sum over all samples, rounded once."""
    return Reduction(_exact_sum, _added, _rounded, of)


def mean(of: Any = None) -> Reduction:
    """The mean over all samples, rounded once."""
    return Reduction(_counted_sum, _both_added, _quotient, of)


def _exact_sum(block: Block) -> np.ndarray:
    """The sum as whole numbers, in units of 2⁻¹¹²⁶."""
    fractions, powers = np.frexp(block.values.astype(float))
    whole = np.ldexp(fractions, 53).astype(np.int64)
    found = np.zeros(block.values.shape[1:], dtype=object)
    for power in np.unique(powers):
        part = np.where(powers == power, whole, 0)
        # in halves, of which millions can be added
        halves = (part >> 27).sum(axis=0), (part & (1 << 27) - 1).sum(axis=0)
        high, low = (np.asarray(x).astype(object) for x in halves)
        found = _added(found, (high * (1 << 27) + low) * (1 << int(power) + _LOWEST))
    return found


def _added(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    # of no axes, NumPy gives the whole number itself
    return np.asarray(a + b, dtype=object)


def _counted_sum(block: Block) -> tuple[np.ndarray, int]:
    return _exact_sum(block), len(block.values)


def _both_added(a: tuple[np.ndarray, int], b: tuple[np.ndarray, int]) -> tuple[np.ndarray, int]:
    return _added(a[0], b[0]), a[1] + b[1]


def _rounded(found: np.ndarray) -> Any:
    return _quotient((found, 1))


def _quotient(found: tuple[np.ndarray, int]) -> Any:
    # Python rounds a quotient of whole numbers once
    whole, count = found
    divided = [int(n) / (count << _UNIT) for n in whole.ravel()]
    return np.array(divided, dtype=float).reshape(whole.shape)[()]


# extremes


def least(of: Any = None) -> Reduction:
    """The least of each entry over all samples."""
    return Reduction(partial(_along, np.min), np.minimum, of=of)


def most(of: Any = None) -> Reduction:
    """The most of each entry over all samples."""
    return Reduction(partial(_along, np.max), np.maximum, of=of)


def _along(fn: Callable[..., Any], block: Block) -> Any:
    return fn(block.values, axis=0)


class Extreme(NamedTuple):
    """A sample that no other is beyond: its value, its number and its point."""

    value: float
    number: int
    point: Mapping[str, Any]


def lowest(of: Any = None) -> Reduction:
    """The sample with the lowest value, the first of several, as an `Extreme`."""
    return Reduction(partial(_extreme, 1.0), partial(_further, 1.0), of=of)


def highest(of: Any = None) -> Reduction:
    """The sample with the highest value, the first of several, as an `Extreme`."""
    return Reduction(partial(_extreme, -1.0), partial(_further, -1.0), of=of)


def _extreme(sign: float, block: Block) -> Extreme:
    if block.values.ndim != 1:
        raise ArgumentError(
            f"lowest and highest take one number per sample, got shape {block.values.shape}"
        )
    i = int(np.argmin(sign * block.values))
    point = {name: x[i] for name, x in block.points.items()}
    return Extreme(block.values[i].item(), int(block.numbers[i]), point)


def _further(sign: float, a: Extreme, b: Extreme) -> Extreme:
    return b if sign * b.value < sign * a.value else a


# counts, and all of it


def histogram(edges: Sequence[float], of: Any = None) -> Reduction:
    """How many numbers are between each two edges: as `numpy.histogram`, which closes the last."""
    bins = np.asarray(edges, dtype=float)
    if bins.ndim != 1 or len(bins) < 2 or not (np.diff(bins) > 0).all():
        raise ArgumentError(
            f"hinge.cluster.histogram: edges are {edges!r}; expected two numbers or more, rising"
        )
    return Reduction(partial(_counts, bins), np.add, of=of)


def _counts(bins: np.ndarray, block: Block) -> np.ndarray:
    return np.histogram(block.values, bins)[0]


def collected(of: Any = None) -> Reduction:
    """All of them, in order: (samples, …); NaN where a sample has no answer."""
    return Reduction(_listed, list.__add__, np.concatenate, of, whole=True)


def _listed(block: Block) -> list[np.ndarray]:
    return [block.values]
