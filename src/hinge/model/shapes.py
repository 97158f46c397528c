"""Shapes that bodies look like and collide as: data for drawing, never used by the dynamics."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from ..algebra.spatial import Transform
from ..errors import ModelError

__all__ = ["Shape", "Triangles"]


@dataclass(frozen=True, eq=False)
class Triangles:
    """A surface: vertices (V, 3) in m, and faces (F, 3), counter-clockwise seen from outside."""

    vertices: np.ndarray
    faces: np.ndarray

    def __post_init__(self) -> None:
        points, faces = np.array(self.vertices, dtype=float), np.array(self.faces)
        if points.ndim != 2 or points.shape[1] != 3 or not np.isfinite(points).all():
            raise ModelError(f"triangles have vertices of shape {points.shape}; give finite (V, 3)")
        whole = faces.ndim == 2 and faces.shape[1] == 3 and faces.dtype.kind in "iu"
        if not whole or (faces.size and not 0 <= faces.min() <= faces.max() < len(points)):
            raise ModelError(
                f"triangles have faces {faces.shape} of {faces.dtype}; expected (F, 3) of "
                f"whole numbers from 0 to {len(points) - 1}, which is the last vertex"
            )
        object.__setattr__(self, "vertices", points)
        object.__setattr__(self, "faces", faces)


@dataclass(frozen=True)
class Shape:
    """A primitive or a mesh fixed to a body.

    kind and size (m):  box (x, y, z) · sphere (radius,) · cylinder, capsule (radius, length along
    z, the capsule's without its caps) · ellipsoid (three half axes) · plane (half x, half y, 0 for
    endless) · mesh (scale x, y, z), read from the file `mesh`, unless it has its `triangles`.

    link: the link or body of the file that it is on, before fixed joints are merged; not compared.
    may_read: whether the mesh is opened to be drawn; a robot file that names one far away from
    itself has no say over that.
    """

    kind: str
    size: tuple[float, ...]
    placement: Transform = field(default_factory=Transform)
    rgba: tuple[float, float, float, float] = (0.7, 0.7, 0.7, 1.0)
    mesh: str | None = None
    name: str = ""
    may_read: bool = True
    triangles: Triangles | None = field(default=None, repr=False)
    link: str = field(default="", compare=False)

    def moved(self, X_AB: Transform) -> Shape:
        """This shape, given in frame B, in frame A."""
        return replace(self, placement=X_AB @ self.placement)
