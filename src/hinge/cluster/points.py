"""The points of a parameter study: named numbers, made where they are needed.

A point has a number, and what it is does not depend on how points are divided into blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any, Protocol, final

import numpy as np

from ..errors import ArgumentError
from ..runtime.check import check_whole

__all__ = ["Grid", "Points", "Samples", "grid", "samples"]

# samples of one stream of random numbers
_STRIPE = 1024


class Points(Protocol):
    """Points, numbered."""

    names: tuple[str, ...]

    def __len__(self) -> int:
        """How many there are."""
        ...

    def block(self, begin: int, end: int) -> dict[str, np.ndarray]:
        """Points begin … end: arrays (end − begin, …) by name."""
        ...


@final
class Grid:
    """Every choice of one entry of each axis; the last one changes first.

    shape: of an array with an entry per point.
    """

    def __init__(self, axes: Mapping[str, np.ndarray]) -> None:
        self.axes, self.names = dict(axes), tuple(axes)
        self.shape = tuple(len(x) for x in axes.values())

    def __len__(self) -> int:
        return prod(self.shape)

    def block(self, begin: int, end: int) -> dict[str, np.ndarray]:
        """As in `Points`."""
        places = np.unravel_index(np.arange(begin, end), self.shape)
        return {n: x[i] for (n, x), i in zip(self.axes.items(), places, strict=True)}


@final
class Samples:
    """Random points: those of a seed."""

    def __init__(self, count: int, seed: int, draws: Mapping[str, Any]) -> None:
        self.count, self.seed, self.draws, self.names = count, seed, dict(draws), tuple(draws)

    def __len__(self) -> int:
        return self.count

    def block(self, begin: int, end: int) -> dict[str, np.ndarray]:
        """As in `Points`: from streams of their own for every so many points."""
        first = begin // _STRIPE
        stripes = range(first, -(-end // _STRIPE))
        cut = slice(begin - first * _STRIPE, end - first * _STRIPE)
        found = {}
        for i, (name, draw) in enumerate(self.draws.items()):
            drawn = [draw(np.random.default_rng((self.seed, i, s)), _STRIPE) for s in stripes]
            found[name] = np.concatenate(drawn)[cut]
        return found


def grid(**axes: Any) -> Grid:
    """All combinations of the entries of axes: `grid(mass=np.linspace(1, 2, 50), gain=[5, 10])`.

    The entries of an axis may be arrays: starts (100, nq) are 100 of them.
    """
    _require_names("hinge.cluster.grid", axes)
    arrays = {n: np.asarray(x) for n, x in axes.items()}
    for name, x in arrays.items():
        if x.ndim == 0 or not len(x) or x.dtype.kind not in "fiub":
            raise ArgumentError(
                f"hinge.cluster.grid: {name} is {axes[name]!r}; expected real numbers in a list or "
                f"an array, at least one"
            )
    return Grid(arrays)


def samples(count: int, seed: int = 0, **draws: Any) -> Samples:
    """Random points: `samples(10**6, mass=(0.5, 2.0), push=lambda rng, n: rng.normal(size=n))`.

    A pair is a range of uniform numbers, whose ends may be arrays; a function takes a generator and
    how many, and gives an array with so many rows.
    """
    where = "hinge.cluster.samples"
    _require_names(where, draws)
    chosen = {n: _draw(where, n, x) for n, x in draws.items()}
    whole = check_whole(where, "count", count), check_whole(where, "seed", seed, above=-1)
    return Samples(*whole, chosen)


def _require_names(where: str, given: Mapping[str, Any]) -> None:
    if not given:
        raise ArgumentError(f"{where}: nothing is named; expected such as mass=(0.5, 2.0)")


def _draw(where: str, name: str, given: Any) -> Callable[..., Any]:
    if callable(given):
        return given
    try:
        low, high = (np.asarray(x, dtype=float) for x in given)
    except (TypeError, ValueError):
        low, high = np.ones(()), np.zeros(())
    if not (np.isfinite(low) & np.isfinite(high) & (low <= high)).all():
        raise ArgumentError(
            f"{where}: {name} is {given!r}; expected a pair (low, high) of finite numbers, or a "
            f"function of a generator and how many"
        )
    return _Uniform(low, high)


class _Uniform:
    """Numbers of a range."""

    def __init__(self, low: np.ndarray, high: np.ndarray) -> None:
        self.low, self.high = low, high

    def __call__(self, rng: np.random.Generator, count: int) -> np.ndarray:
        shape = np.broadcast_shapes(self.low.shape, self.high.shape)
        return rng.uniform(self.low, self.high, (count, *shape))
