"""Where a picture is taken from: a pinhole that sees all of a robot."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .mesh import unit

__all__ = ["Camera"]

_MARGIN = 1.12
_UP = np.array([0.0, 0.0, 1.0])


@dataclass(frozen=True, eq=False)
class Camera:
    """An eye that looks at a target, z up in the picture; fov: the angle of its height, rad."""

    eye: np.ndarray
    target: np.ndarray
    fov: float = 0.6

    @classmethod
    def around(
        cls,
        points: np.ndarray,
        azimuth: float = -0.9,
        elevation: float = 0.3,
        fov: float = 0.6,
        aspect: float = 4 / 3,
    ) -> Camera:
        """One that sees all points (N, 3); azimuth: from x towards y, rad."""
        across, up = np.cos(elevation), np.sin(elevation)
        out = np.array([across * np.cos(azimuth), across * np.sin(azimuth), up])
        axes = cls(out, np.zeros(3), fov).axes
        # the middle of what the picture shows, not of the world
        seen = points @ axes.T
        middle = (seen.min(axis=0) + seen.max(axis=0)) / 2 @ axes
        x, y, z = axes @ (points - middle).T
        tangent = np.tan(fov / 2)
        # a point at z towards the eye is seen if |y| < tan (distance − z)
        distance = max((np.abs(y) / tangent + z).max(), (np.abs(x) / (aspect * tangent) + z).max())
        return cls(middle + _MARGIN * max(float(distance), 1e-3) * out, middle, fov)

    @property
    def distance(self) -> float:
        """From the eye to the target."""
        return float(np.linalg.norm(self.eye - self.target))

    @property
    def axes(self) -> np.ndarray:
        """(3, 3), rows: right, up and backwards of the picture in the world."""
        back = unit(self.eye - self.target)
        up = _UP if abs(back[2]) < 0.9999 else np.array([1.0, 0.0, 0.0])
        right = unit(np.cross(up, back))
        return np.stack([right, np.cross(back, right), back])

    def pixels(self, points: np.ndarray, width: int, height: int) -> np.ndarray:
        """Where points (…, 3) are in a picture: (…, 3), column, row, and depth along the view."""
        x, y, z = np.moveaxis((points - self.eye) @ self.axes.T, -1, 0)
        focal = height / 2 / np.tan(self.fov / 2)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.stack([width / 2 - focal * x / z, height / 2 + focal * y / z, -z], axis=-1)
