"""The geoms of a MuJoCo model as shapes: MuJoCo's half sizes made whole, its meshes put back in place."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..rotation import quaternion_matrix
from ..shapes import Shape
from ..spatial import Transform
from .mujoco_state import names_of

__all__ = ["body_shapes"]

_MESH = 7  # mjtGeom
_KINDS = {0: "plane", 2: "sphere", 3: "capsule", 4: "ellipsoid", 5: "cylinder", 6: "box", 7: "mesh"}
_HIDDEN = 3  # MuJoCo's viewer hides geoms of this group and above: they only collide
_DEFAULT_RGBA = (0.5, 0.5, 0.5, 1.0)

Shapes = tuple[list[Shape], list[Shape]]


def body_shapes(model: Any, mesh_files: Mapping[str, str]) -> list[Shapes]:
    """Visuals and collisions of every body; height fields and meshes without a file are left out.

    mesh_files: paths of meshes by the names under which MuJoCo read them.
    """
    shapes: list[Shapes] = [([], []) for _ in range(model.nbody)]
    names = names_of(model, "geom", "geom")
    for g, name in enumerate(names):
        shape = _shape(model, g, name, mesh_files)
        visuals, collisions = shapes[model.geom_bodyid[g]]
        if shape is not None and model.geom_group[g] < _HIDDEN:
            visuals.append(shape)
        if shape is not None and (model.geom_contype[g] or model.geom_conaffinity[g]):
            collisions.append(shape)
    return shapes


def _shape(model: Any, g: int, name: str, mesh_files: Mapping[str, str]) -> Shape | None:
    kind = _KINDS.get(int(model.geom_type[g]))
    X = Transform(quaternion_matrix(model.geom_quat[g]), model.geom_pos[g])
    rgba = _rgba(model, g)
    if kind is None:
        return None
    if kind != "mesh":
        return Shape(kind, _size(kind, model.geom_size[g].tolist()), X, rgba, name=name)
    m = model.geom_dataid[g]
    path = mesh_files.get(_file_name(model, m))
    if path is None:
        return None
    # MuJoCo centres a mesh and turns it to its principal axes
    centred = Transform(quaternion_matrix(model.mesh_quat[m]), model.mesh_pos[m])
    return Shape(kind, tuple(model.mesh_scale[m].tolist()), X @ centred.inv, rgba, path, name)


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
