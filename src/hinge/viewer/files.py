"""Meshes from files: STL, OBJ, DAE, glTF and PLY, read by trimesh.

The lengths of a DAE count in its unit; which of its axes is up does not count, as in RViz: robots
are drawn by the frames of their links.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from importlib.util import find_spec
from io import BytesIO
from typing import Any
from xml.etree import ElementTree

import numpy as np

from ..load.paths import read_bounded
from ..model.shapes import Shape
from .mesh import Mesh, creased

__all__ = ["MOST_BYTES", "MOST_FACES", "MeshError", "read_mesh"]

MOST_BYTES, MOST_FACES = 200_000_000, 2_000_000
_KNOWN = ("stl", "obj", "dae", "gltf", "glb", "ply")
_INSTALL = 'install it with: pip install "hinge-dynamics[view]"'


class MeshError(Exception):
    """Why a file is not a mesh to be drawn."""


def read_mesh(shape: Shape) -> list[Mesh]:
    """The triangles of a shape, or of its file, one mesh per colour; MeshError if it has none."""
    if shape.triangles is not None:
        own = Mesh(shape.triangles.vertices, shape.triangles.faces)
        return [creased(own).scaled(shape.size)]
    path = shape.mesh or ""
    if not shape.may_read and os.path.isfile(path):
        raise MeshError("is far from the robot's file; pass the folder of the mesh in package_dirs")
    parts = _read(path, os.path.getmtime(path) if os.path.isfile(path) else 0.0)
    return [part.scaled(shape.size) for part in parts]


@lru_cache(maxsize=256)
def _read(path: str, changed: float) -> Sequence[Mesh]:
    """The parts of a file as it was when it was last changed."""
    kind = path.rpartition(".")[2].lower()
    if kind not in _KNOWN:
        raise MeshError(f"is of an unknown format; known: {', '.join(_KNOWN)}")
    if not os.path.isfile(path):
        where = "; pass the folder of its package in package_dirs" if "://" in path else ""
        raise MeshError(f"is not there{where}")
    for module in ("trimesh", *(["collada"] if kind == "dae" else [])):
        if find_spec(module) is None:
            raise MeshError(f"needs {module}, which is not installed; {_INSTALL}")
    parts = _loaded(path, kind)
    count = sum(len(part.faces) for part in parts)
    if count > MOST_FACES:
        raise MeshError(f"is huge: {count} triangles, drawn are up to {MOST_FACES}")
    if not count or not all(np.isfinite(part.vertices).all() for part in parts):
        raise MeshError("has no triangles, or points that are nowhere")
    return parts


def _loaded(path: str, kind: str) -> list[Mesh]:
    import trimesh

    resolver: Any = _Beside(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            data, unit = read_bounded(path, MOST_BYTES), 1.0
            if kind == "dae":
                data, unit = _mended(data)
            scene: Any = trimesh.load_scene(BytesIO(data), file_type=kind, resolver=resolver)
            solids = [mesh for mesh in scene.dump() if len(getattr(mesh, "faces", ()))]
            return [_part(mesh).scaled((unit,) * 3) for mesh in solids]
    except OSError as error:
        raise MeshError(f"cannot be read: {error.strerror or error}") from None
    except Exception as error:  # readers of other people's files raise anything
        raise MeshError(f"cannot be read: {type(error).__name__}: {error}") from None


def _mended(data: bytes) -> tuple[bytes, float]:
    """A DAE without the materials that it lacks, with which its shapes go; and its unit, m."""
    from collada import Collada
    from collada.common import DaeBrokenRefError, DaeError

    scene: Any = Collada(BytesIO(data), ignore=[DaeError])
    unit = scene.assetInfo.unitmeter or 1.0
    if not any(isinstance(e, DaeBrokenRefError) for e in scene.errors):
        return data, unit
    root = ElementTree.fromstring(data)
    known = {f"#{material.id}" for material in scene.materials}
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag.endswith("instance_material") and child.get("target") not in known:
                parent.remove(child)
    return ElementTree.tostring(root), unit


def _part(mesh: Any) -> Mesh:
    """A mesh with its own colours: none, one, or one per vertex, as a texture has them."""
    part = Mesh(np.array(mesh.vertices, dtype=float), np.array(mesh.faces))
    if not mesh.visual.defined:
        return creased(part)
    rgba = np.asarray(_colors(mesh.visual), dtype=float).reshape(-1, 4) / 255
    if (rgba == rgba[0]).all():
        r, g, b, a = rgba[0].tolist()
        return creased(part.painted((r, g, b, a)))
    return creased(replace(part, colors=rgba[:, :3]))


def _colors(visual: Any) -> np.ndarray:
    """(4,) or (V, 4), of 0 … 255."""
    material = getattr(visual, "material", None)
    if material is None:
        return visual.vertex_colors
    image = getattr(material, "image", None) or getattr(material, "baseColorTexture", None)
    return material.main_color if image is None else visual.to_color().vertex_colors


class _Beside:
    """What a mesh file names, textures and buffers, is read from its own folder alone."""

    def __init__(self, path: str) -> None:
        self.folder = os.path.realpath(os.path.dirname(path))

    def get(self, name: str) -> bytes:
        """The contents of a file in the folder, or below it."""
        path = os.path.realpath(os.path.join(self.folder, name))
        if os.path.commonpath([path, self.folder]) != self.folder:
            raise MeshError(f"names {name!r}, which is out of its folder")
        return read_bounded(path, MOST_BYTES)

    __getitem__ = get
