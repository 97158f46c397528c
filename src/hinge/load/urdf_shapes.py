"""What the links of a URDF look like and collide as: geometry, materials and mesh names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..algebra.rotation import from_rpy, quaternion_matrix
from ..algebra.spatial import Transform
from ..model.mechanism import did_you_mean
from ..model.shapes import Shape
from .paths import PathLike, resolve_mesh
from .xml import Element, shortened

__all__ = ["ShapeReader", "read_origin"]

_SIZES = {"box": ("size",), "sphere": ("radius",), "cylinder": ("radius", "length")}
_SIZES["capsule"] = _SIZES["cylinder"]
_GREY = (0.7, 0.7, 0.7, 1.0)


def read_origin(element: Element) -> Transform:
    """The pose in the <origin> of an element; without one, the identity."""
    origin = element.child("origin")
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
    """What shapes need besides their own element: colors by name, and where meshes are."""

    folder: PathLike | None
    package_dirs: Sequence[PathLike]
    colors: dict[str, tuple[float, ...]] = field(default_factory=dict)

    def learn(self, materials: Iterable[Element | None]) -> None:
        """Keep the colors that materials define; the first of a name counts."""
        for material in materials:
            color = None if material is None else material.child("color")
            if material is not None and color is not None and material.get("name"):
                self.colors.setdefault(material.string("name"), color.numbers("rgba", 4))

    def shapes(self, link: Element, tag: str) -> list[Shape]:
        """The shapes of a link; tag: "visual" or "collision"."""
        return [self._shape(element) for element in link.all(tag)]

    def _shape(self, element: Element) -> Shape:
        known = (*_SIZES, "mesh")
        geometry = element.need("geometry")
        if len(geometry.children) != 1:
            found = f"{len(geometry.children)} shapes" if geometry.children else "no shape"
            raise geometry.error(f"<geometry> has {found}; give one of {', '.join(known)}")
        shape, mesh = geometry.children[0], None
        if shape.tag == "mesh":
            size = shape.numbers("scale", 3, (1.0, 1.0, 1.0))
            name = shape.string("filename")
            mesh = resolve_mesh(name, self.folder, self.package_dirs, shape.where)
        elif shape.tag in _SIZES:
            size = _size(shape)
        else:
            hint = did_you_mean(shape.tag, known)
            raise shape.error(f"<geometry> has an unknown shape {shortened(shape.tag)}; {hint}")
        rgba = self._rgba(element.child("material"))
        name = element.get("name") or ""
        return Shape(shape.tag, size, read_origin(element), rgba, mesh, name)

    def _rgba(self, material: Element | None) -> tuple[float, float, float, float]:
        """The color of a material: its own, the one of its name, or grey."""
        if material is None:
            return _GREY
        color = material.child("color")
        if color is None:
            r, g, b, a = self.colors.get((material.get("name") or "").strip(), _GREY)
        else:
            r, g, b, a = color.numbers("rgba", 4)
        return r, g, b, a


def _size(shape: Element) -> tuple[float, ...]:
    size: tuple[float, ...] = ()
    for name in _SIZES[shape.tag]:
        size += shape.numbers(name, 3 if shape.tag == "box" else 1)
    if min(size) < 0:
        raise shape.error(f"<{shape.tag}> has a size of {min(size):g} m; it must not be negative")
    return size
