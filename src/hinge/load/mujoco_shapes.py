"""The geoms of a MuJoCo model as shapes: half sizes made whole, meshes put back in place."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..algebra.rotation import quaternion_matrix
from ..algebra.spatial import Transform
from ..model.shapes import Shape, Triangles
from .mujoco_state import names_of
from .xml import Element

__all__ = ["MeshFile", "body_shapes"]

# mjtGeom
_KINDS = {0: "plane", 2: "sphere", 3: "capsule", 4: "ellipsoid", 5: "cylinder", 6: "box", 7: "mesh"}
_MESH = 7
_OWN_FORMAT = ".msh"  # of MuJoCo alone
_HIDDEN = 3  # MuJoCo's viewer hides geoms of this group and above: they only collide
_DEFAULT_RGBA = (0.5, 0.5, 0.5, 1.0)


@dataclass(frozen=True)
class MeshFile:
    """Where a mesh comes from, and the pose that MuJoCo is told to take as its origin."""

    path: str
    refpos: tuple[float, ...] = (0.0, 0.0, 0.0)
    refquat: tuple[float, ...] = (1.0, 0.0, 0.0, 0.0)

    @classmethod
    def of(cls, element: Element, path: str) -> MeshFile:
        """The file that a <mesh> names."""
        refpos = element.numbers("refpos", 3, (0.0, 0.0, 0.0))
        return cls(path, refpos, element.numbers("refquat", 4, (1.0, 0.0, 0.0, 0.0)))

    def placed(self, scale: np.ndarray) -> Transform | None:
        """The scaled mesh relative to its origin, S Rᵀ (x − p) = Y (S x); None if it is sheared."""
        if not any(self.refquat):
            return None
        S, R = np.diag(scale), quaternion_matrix(np.array(self.refquat))
        if not np.allclose(S @ R.T, R.T @ S):
            return None
        return Transform(R.T, -S @ R.T @ np.array(self.refpos))


Shapes = tuple[list[Shape], list[Shape]]


def body_shapes(model: Any, mesh_files: Mapping[str, MeshFile]) -> list[Shapes]:
    """Visuals and collisions of every body; height fields and the like are left out.

    Seen is what MuJoCo's viewer shows at first; but where a body has meshes that are only seen,
    what collides is not, unless it is of their group.

    mesh_files: by the names under which MuJoCo read them; a mesh that has none, or is not drawn as
    it is in its file, is kept as triangles.
    """
    shapes: list[Shapes] = [([], []) for _ in range(model.nbody)]
    solids = _Solids(model)
    names = names_of(model, "geom", "geom")
    collides = (np.asarray(model.geom_contype) != 0) | (np.asarray(model.geom_conaffinity) != 0)
    seen = (np.asarray(model.geom_group) < _HIDDEN) & ~_covered(model, collides)
    for g, name in enumerate(names):
        shape = _shape(model, g, name, mesh_files, solids)
        visuals, collisions = shapes[model.geom_bodyid[g]]
        if shape is not None and seen[g]:
            visuals.append(shape)
        if shape is not None and collides[g]:
            collisions.append(shape)
    return shapes


def _covered(model: Any, collides: np.ndarray) -> np.ndarray:
    """Which geoms collide, but are not of the group of the meshes that their body looks like."""
    covered = np.zeros(len(collides), dtype=bool)
    for g in np.flatnonzero(~collides & (model.geom_type == _MESH) & (model.geom_group < _HIDDEN)):
        same = np.asarray(model.geom_bodyid) == model.geom_bodyid[g]
        covered |= same & collides & (model.geom_group != model.geom_group[g])
    return covered


class _Solids(dict[int, Triangles]):
    """The triangles of meshes by number, each made once: centred, scaled, as MuJoCo has them."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def __missing__(self, m: int) -> Triangles:
        model = self.model
        first, face = int(model.mesh_vertadr[m]), int(model.mesh_faceadr[m])
        self[m] = Triangles(
            model.mesh_vert[first : first + int(model.mesh_vertnum[m])],
            model.mesh_face[face : face + int(model.mesh_facenum[m])],
        )
        return self[m]


def _shape(
    model: Any, g: int, name: str, mesh_files: Mapping[str, MeshFile], solids: _Solids
) -> Shape | None:
    kind = _KINDS.get(int(model.geom_type[g]))
    X = Transform(quaternion_matrix(model.geom_quat[g]), model.geom_pos[g])
    rgba = _rgba(model, g)
    if kind is None:
        return None
    if kind != "mesh":
        return Shape(kind, _size(kind, model.geom_size[g].tolist()), X, rgba, name=name)
    m = model.geom_dataid[g]
    mesh = mesh_files.get(_file_name(model, m))
    placed = mesh.placed(model.mesh_scale[m]) if mesh else None
    if mesh is None or placed is None or mesh.path.lower().endswith(_OWN_FORMAT):
        return Shape(kind, (1.0, 1.0, 1.0), X, rgba, name=name, triangles=solids[int(m)])
    # MuJoCo centres a mesh and turns it to its principal axes
    X = X @ Transform(quaternion_matrix(model.mesh_quat[m]), model.mesh_pos[m]).inv @ placed
    return Shape(kind, tuple(model.mesh_scale[m].tolist()), X, rgba, mesh.path, name)


def _size(kind: str, half: list[float]) -> tuple[float, ...]:
    if kind == "box":
        return 2 * half[0], 2 * half[1], 2 * half[2]
    if kind in ("capsule", "cylinder"):
        return half[0], 2 * half[1]
    return tuple(half[: {"sphere": 1, "plane": 2, "ellipsoid": 3}[kind]])


def _rgba(model: Any, g: int) -> tuple[float, float, float, float]:
    """The geom's own colour, else its material's."""
    rgba, material = model.geom_rgba[g], model.geom_matid[g]
    if material >= 0 and np.allclose(rgba, _DEFAULT_RGBA):
        rgba = model.mat_rgba[material]
    r, g_, b, a = (float(x) for x in rgba)
    return r, g_, b, a


def _file_name(model: Any, m: int) -> str:
    """The name of the file that a mesh came from, empty if from none."""
    start = model.mesh_pathadr[m]
    if start < 0:
        return ""
    return os.path.basename(model.paths[start:].split(b"\0", 1)[0].decode())
