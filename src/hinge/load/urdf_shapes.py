"""What the links of a URDF look like: shapes, colours, meshes.

None of it touches the dynamics, so nothing here refuses a robot: what cannot be read is left out,
what is written otherwise than it should be is read as it is meant, and both are remarked on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ..algebra.rotation import from_rpy, quaternion_matrix
from ..algebra.spatial import Transform
from ..errors import ModelError
from ..model.mechanism import did_you_mean
from ..model.shapes import Shape
from .paths import PathLike, packages_given, resolve_mesh
from .project import MeshReach
from .xml import Element, shortened

__all__ = ["ShapeReader", "origin_pose"]

Rgba = tuple[float, float, float, float]

# the attributes that make the size of a shape; those of Drake have its prefix
_SIZES = {
    "box": ("size",),
    "sphere": ("radius",),
    "cylinder": ("radius", "length"),
    "capsule": ("radius", "length"),
    "ellipsoid": ("a", "b", "c"),
}
_GREY = (0.7, 0.7, 0.7, 1.0)


def origin_pose(origin: Element | None) -> Transform:
    """The pose that an <origin> gives; without one, the identity."""
    if origin is None:
        return Transform()
    xyz = origin.numbers("xyz", 3, (0.0, 0.0, 0.0))
    if origin.get("quat_xyzw") is None:
        return Transform(from_rpy(*origin.numbers("rpy", 3, (0.0, 0.0, 0.0))), xyz)
    if origin.get("rpy") is not None:
        raise origin.error("<origin> has both rpy and quat_xyzw; keep one")
    x, y, z, w = origin.numbers("quat_xyzw", 4)
    if w * w + x * x + y * y + z * z < 1e-12:
        raise origin.error("<origin> has quat_xyzw of length 0; give a unit quaternion")
    return Transform(quaternion_matrix(np.array([w, x, y, z])), xyz)


@dataclass(frozen=True)
class ShapeReader:
    """What shapes need besides their own element: where meshes are, and colors by name."""

    folder: PathLike | None
    package_dirs: Sequence[PathLike]
    colors: dict[str, Rgba] = field(default_factory=dict)

    def learn(self, materials: Iterable[Element]) -> None:
        """Keep the colors that materials define; the first of a name counts."""
        for material in materials:
            name, color = (material.get("name") or "").strip(), self._color(material)
            if name and color is not None:
                self.colors.setdefault(name, color)

    def shapes(self, link: Element, tag: str) -> list[Shape]:
        """The shapes of a link; tag: "visual" or "collision"."""
        return [shape for element in link.all(tag) for shape in self._shapes(element)]

    def _shapes(self, element: Element) -> Iterator[Shape]:
        """The shapes of one <visual> or <collision>: one, if the file is as it should be."""
        found = [shape for geometry in element.all("geometry") for shape in geometry.children]
        if not found:
            self._left_out(element, element.error(f"{element} has no shape"))
        if len(found) > 1:
            element.remark(
                f"shapes of {element.tag}", f"{element} has {len(found)} shapes; all are kept"
            )
        for shape in found:
            try:
                yield self._shape(element, shape)
            except ModelError as e:
                self._left_out(element, e)

    def _left_out(self, element: Element, error: ModelError) -> None:
        element.remarks.add(f"unread {element.tag}", f"{error}; this shape is left out")

    def _shape(self, element: Element, shape: Element) -> Shape:
        kind, mesh, may_read = shape.tag.removeprefix("drake:"), None, True
        if kind == "mesh":
            size = self._scale(shape)
            mesh = resolve_mesh(shape.string("filename"), self.folder, self.package_dirs)
            may_read = self._reach.holds(mesh)
        elif kind in _SIZES:
            size = _size(shape, kind)
        else:
            hint = did_you_mean(kind[:60], (*_SIZES, "mesh"))
            raise shape.error(f"<geometry> has an unknown shape {shortened(kind)}; {hint}")
        placement = origin_pose(self._first(element, "origin"))
        rgba = self._rgba(self._first(element, "material"))
        return Shape(kind, size, placement, rgba, mesh, element.get("name") or "", may_read)

    @cached_property
    def _reach(self) -> MeshReach:
        return MeshReach(self.folder, packages_given(self.package_dirs))

    def _first(self, element: Element, tag: str) -> Element | None:
        """The child with a tag, the first if there are several."""
        found = element.all(tag)
        if len(found) > 1:
            element.remark(
                f"{tag} of {element.tag}", f"{element} has {len(found)} <{tag}>; the first is used"
            )
        return found[0] if found else None

    def _scale(self, mesh: Element) -> tuple[float, ...]:
        if _count(mesh, "scale") != 1:
            return mesh.numbers("scale", 3, (1.0, 1.0, 1.0))
        mesh.remark("scale", "<mesh> has one number for a scale; it is used for x, y and z")
        return mesh.numbers("scale", 1) * 3

    def _rgba(self, material: Element | None) -> Rgba:
        """The color of a material: its own, the one of its name, or grey."""
        if material is None:
            return _GREY
        return self._color(material) or self.colors.get((material.get("name") or "").strip(), _GREY)

    def _color(self, material: Element) -> Rgba | None:
        """The color that a material defines, if it does and can be read."""
        element = self._first(material, "color")
        if element is None:
            return None
        try:
            r, g, b, *rest = element.numbers("rgba", 3 if _count(element, "rgba") == 3 else 4)
        except ModelError as e:
            element.remarks.add("color", f"{e}; this color is left out")
            return None
        if not rest:
            element.remark("alpha", "<color> has three numbers in rgba; alpha is taken for 1")
        return r, g, b, rest[0] if rest else 1.0


def _count(element: Element, name: str) -> int:
    """The number of words in an attribute."""
    return len((element.get(name) or "").split())


def _size(shape: Element, kind: str) -> tuple[float, ...]:
    size: tuple[float, ...] = ()
    for name in _SIZES[kind]:
        size += shape.numbers(name, 3 if kind == "box" else 1)
    if min(size) < 0:
        raise shape.error(f"<{shape.tag}> has a size of {min(size):g} m; it must not be negative")
    return size
