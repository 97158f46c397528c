"""Forces as arrows: from points in the world, along vectors in the world."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..errors import ArgumentError

__all__ = ["ARROW", "Arrows", "check_arrows", "of_bodies"]

ARROW = 0.5  # sizes of the robot: the arrow of a force that is its weight


class Arrows(NamedTuple):
    """Where forces act, points (…, n, 3), and what they are, vectors (…, n, 3); world axes."""

    points: np.ndarray
    vectors: np.ndarray

    @classmethod
    def together(cls, parts: Sequence[Arrows]) -> Arrows:
        """Those of several that are there at all."""
        points, vectors = (np.concatenate(x) for x in zip(*parts, strict=True))
        there = np.isfinite(points + vectors).all(axis=1) & vectors.any(axis=1)
        return cls(points[there], vectors[there])


def check_arrows(where: str, forces: Any, before: tuple[int, ...] = ()) -> Arrows:
    """Points and vectors that somebody gave, or a refusal; before: the shape before (n, 3)."""
    if forces is None:
        return Arrows(np.zeros((*before, 0, 3)), np.zeros((*before, 0, 3)))
    shapes = [np.shape(part) for part in forces]
    count = shapes[0][-2] if shapes and len(shapes[0]) > 1 else 0
    if shapes != [(*before, count, 3)] * 2:
        wanted = ", ".join(map(str, (*before, "n", 3)))
        raise ArgumentError(
            f"{where}: forces are of shapes {shapes}; expected points and vectors in world axes, "
            f"both ({wanted})"
        )
    points, vectors = (np.array(part, dtype=float) for part in forces)
    return Arrows(points, vectors)


def of_bodies(poses: np.ndarray, f_ext: np.ndarray, farthest: float) -> Arrows:
    """Forces on bodies, (n, 6) in their axes, as arrows that start on the lines they act along.

    poses: X_WB (n, 4, 4).  A line starts where it is nearest to the body's origin: f × m / f²; if
    that is farther away than `farthest`, at the origin.
    """
    m, f = f_ext[:, :3], f_ext[:, 3:]
    square = np.einsum("ki,ki->k", f, f)[:, None]
    at = np.cross(f, m) / np.where(square > 0, square, 1.0)
    at = np.where(np.linalg.norm(at, axis=1, keepdims=True) > farthest, 0.0, at)
    R, p = poses[:, :3, :3], poses[:, :3, 3]
    return Arrows(p + np.einsum("kij,kj->ki", R, at), np.einsum("kij,kj->ki", R, f))
