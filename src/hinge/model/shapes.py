"""Shapes that bodies look like and collide as: data for drawing, never used by the dynamics."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ..algebra.spatial import Transform

__all__ = ["Shape"]


@dataclass(frozen=True)
class Shape:
    """A primitive or a mesh fixed to a body.

    kind and size (m):  box (x, y, z) · sphere (radius,) · cylinder, capsule (radius, length along
    z, the capsule's without its caps) · ellipsoid (three half axes) · plane (half x, half y, 0 for
    endless) · mesh (scale x, y, z), read from `mesh`.

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

    def moved(self, X_AB: Transform) -> Shape:
        """This shape, given in frame B, in frame A."""
        return replace(self, placement=X_AB @ self.placement)
