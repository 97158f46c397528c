"""Forces as arrows: from points in the world, along vectors in the world."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..algebra.spatial import Transform
from ..errors import ArgumentError
from ..model.mechanism import Mechanism
from .mesh import Mesh, Rgba, lathe, unit

__all__ = [
    "Arrows",
    "check_arrows",
    "lengths",
    "of_bodies",
    "show_arrows",
    "solid_arrows",
    "weight_of",
]

_ARROW = 0.5  # sizes of the robot: the arrow of a force that is its weight
_RED: Rgba = (0.86, 0.15, 0.15, 1.0)
_SHAFT = 0.009  # sizes of the robot, its radius; that of the head, and how long that is
_HEAD = 2.5 * _SHAFT, 5 * _SHAFT
_SHORTEST = 1e-3


class Arrows(NamedTuple):
    """Where forces act, points (…, n, 3), and what they are, vectors (…, n, 3); world axes."""

    points: np.ndarray
    vectors: np.ndarray

    def at(self, i: int) -> Arrows:
        """Those of one time that are there at all."""
        return Arrows.together([Arrows(self.points[i], self.vectors[i])])

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


def lengths(mechanism: Mechanism, size: float) -> float:
    """How long the arrow of 1 N is, m, for a robot of that size."""
    return _ARROW * size / weight_of(mechanism)


def weight_of(mechanism: Mechanism) -> float:
    """Of the robot on Earth, N; 1 for one without mass."""
    return 9.81 * sum(body.inertia.mass for body in mechanism.bodies[1:]) or 1.0


def show_arrows(scene: Any, arrows: Arrows, size: float, length: float) -> None:
    """Those on a page, instead of those that were there; length: of 1 N, m."""
    start, along = _seen(arrows, size, length)
    if not len(start):
        scene.remove_by_name("/forces")
        return
    scene.add_arrows(
        "/forces",
        np.stack([start, start + along], axis=1),
        tuple(int(255 * x) for x in _RED[:3]),
        shaft_radius=_SHAFT * size,
        head_radius=_HEAD[0] * size,
        head_length=_HEAD[1] * size,
    )


def solid_arrows(arrows: Arrows, size: float, length: float) -> list[Mesh]:
    """Those of a picture; length: of 1 N, m."""
    found = []
    for point, along in zip(*_seen(arrows, size, length), strict=True):
        long = float(np.linalg.norm(along))
        neck = max(0.0, long - _HEAD[1] * size)
        profile = (0, 0), (_SHAFT, 0), (_SHAFT, neck), (_HEAD[0], neck), (0, long)
        z = along / long
        x = unit(np.cross(np.eye(3)[np.abs(z).argmin()], z))
        X = Transform(np.stack([x, np.cross(z, x), z], axis=1), point)
        found.append(lathe(np.array(profile) * (size, 1)).painted(_RED).placed(X))
    return found


def _seen(arrows: Arrows, size: float, length: float) -> Arrows:
    """Points, and vectors in m, of those that are long enough to be seen."""
    along = length * arrows.vectors
    there = np.linalg.norm(along, axis=1) > _SHORTEST * size
    return Arrows(arrows.points[there], along[there])
