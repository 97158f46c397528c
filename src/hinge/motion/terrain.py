"""What robots stand on: a plane, or a field of heights.  Runs on any scalar."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..algebra.small import clip, sign, sqrt
from ..errors import ArgumentError

__all__ = ["HeightField", "Plane", "Terrain"]

_MOST = 4096  # heights, all of which are looked at for every point
_FAR = 1e30


@dataclass(frozen=True)
class Plane:
    """Through (0, 0, height), with its unit normal pointing out of the ground."""

    height: float = 0.0
    normal: tuple[float, float, float] = (0.0, 0.0, 1.0)

    def __str__(self) -> str:
        level = self.normal == (0.0, 0.0, 1.0)
        slope = "" if level else f", normal ({', '.join(f'{x:g}' for x in self.normal)})"
        return f"plane at z = {self.height:g}{slope}"

    def nearest(self, p: Any) -> tuple[Any, np.ndarray]:
        """How far a point is above the ground (negative: below), and the normal there."""
        n = np.array(self.normal)
        return n @ p - n[2] * self.height, n


@dataclass(frozen=True, init=False, repr=False)
class HeightField:
    """Heights (nx, ny) of the ground over even points of x = (first, last) and y = (first, last).

    Between them it is smooth: splines of second degree through all heights, so that the normal does
    not jump.  Beyond its edges the ground goes on as high as there.  Every step looks at all
    heights, so there are 4096 at the most.
    """

    coefficients: tuple[tuple[float, ...], ...]
    x: tuple[float, float]
    y: tuple[float, float]

    def __init__(self, heights: Any, x: tuple[float, float], y: tuple[float, float]) -> None:
        try:
            z = np.asarray(heights, dtype=float)
            ends = np.asarray([x, y], dtype=float)
        except (TypeError, ValueError):
            raise ArgumentError(
                f"HeightField: heights, x and y are {heights!r}, {x!r}, {y!r}; expected numbers"
            ) from None
        if z.ndim != 2 or min(z.shape) < 2 or z.size > _MOST or not np.isfinite(z).all():
            raise ArgumentError(
                f"HeightField: heights has shape {z.shape}; expected (nx, ny) finite numbers, two "
                f"or more along both, {_MOST} at the most"
            )
        if ends.shape != (2, 2) or not np.isfinite(ends).all() or (np.diff(ends) <= 0).any():
            raise ArgumentError(
                f"HeightField: x and y are {x!r}, {y!r}; expected (first, last) of both, rising"
            )
        found = _through(_through(z).T).T
        object.__setattr__(self, "coefficients", tuple(tuple(row) for row in found.tolist()))
        object.__setattr__(self, "x", tuple(ends[0].tolist()))
        object.__setattr__(self, "y", tuple(ends[1].tolist()))

    def __repr__(self) -> str:
        size = f"{len(self.coefficients) - 2} × {len(self.coefficients[0]) - 2} heights"
        return f"<HeightField: {size}, x = {list(self.x)}, y = {list(self.y)}>"

    def nearest(self, p: Any) -> tuple[Any, np.ndarray]:
        """How far a point is above the ground, to first order in its slope, and the normal."""
        C = np.array(self.coefficients)
        (bx, dx), (by, dy) = _basis(p[0], *self.x, len(C)), _basis(p[1], *self.y, len(C[0]))
        across = C @ by
        slope = np.array([dx @ across, bx @ (C @ dy)])
        steep = 1 / sqrt(1 + slope @ slope)
        return steep * (p[2] - bx @ across), steep * np.array([-slope[0], -slope[1], 1.0])


Terrain = Plane | HeightField


def _through(z: np.ndarray) -> np.ndarray:
    """Coefficients of splines that go through the rows of z, one more on both sides.

    ⅛ (c₋ + 6 c + c₊) = z inside; the ends go on in a straight line.
    """
    n = len(z)
    A = 0.75 * np.eye(n) + 0.125 * (np.eye(n, k=1) + np.eye(n, k=-1))
    A[[0, -1]] = np.eye(n)[[0, -1]]
    c = np.linalg.solve(A, z)
    return np.concatenate([2 * c[:1] - c[1:2], c, 2 * c[-1:] - c[-2:-1]])


def _basis(x: Any, first: float, last: float, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Each spline at x, and its slope: (count,)."""
    per = (count - 3) / (last - first)
    s = (x - first) * per
    at = clip(s, 0.0, count - 3.0)
    inside = 0.25 * per * (1 + sign(s)) * (1 + sign(count - 3.0 - s))
    values, slopes = [], []
    for i in range(count):
        # ½ (3/2 − |d|)² − 3/2 (½ − |d|)², each where it is positive
        d = at - (i - 1)
        side = sign(d)
        wide, narrow = clip(1.5 - side * d, 0.0, _FAR), clip(0.5 - side * d, 0.0, _FAR)
        values.append(0.5 * wide * wide - 1.5 * narrow * narrow)
        slopes.append(inside * side * (3 * narrow - wide))
    return np.array(values), np.array(slopes)
