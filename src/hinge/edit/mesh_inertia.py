"""Inertias from shapes: of meshes by trimesh, of primitives by their formulas, of one density."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from importlib.util import find_spec
from io import BytesIO
from math import pi
from typing import Any, Literal

import numpy as np

from ..algebra.spatial import Inertia
from ..errors import ArgumentError, ModelError
from ..model.mechanism import Body, Mechanism
from ..model.shapes import Shape
from .rebuild import edits, moving_body, names_in, rebuilt

__all__ = ["with_mesh_inertia"]

_MOST_BYTES = 200_000_000
_KINDS = ("visuals", "collisions")


@edits
def with_mesh_inertia(
    mech: Mechanism,
    bodies: str | Iterable[str] | None = None,
    *,
    density: float | None = None,
    shapes: Literal["visuals", "collisions"] = "collisions",
    hull: bool = False,
) -> Mechanism:
    """The mechanism with inertias of bodies from their shapes, each filled with one density.

    bodies: names; default: all that move and have such shapes.  density: kg/m³; default: such that
    every body keeps its mass.  What two shapes of a body share counts twice.
    hull: take the convex hull of a mesh that is not closed, which is refused otherwise.
    """
    if density is not None and not (isinstance(density, (int, float)) and 0 < density < np.inf):
        raise ArgumentError(f"with_mesh_inertia: density is {density!r}; give kg/m³, above 0")
    if shapes not in _KINDS:
        raise ArgumentError(f"with_mesh_inertia: shapes is {shapes!r}; expected one of {_KINDS}")
    have = [b.name for b in mech.bodies[1:] if getattr(b, shapes)]
    chosen = have if bodies is None else names_in("with_mesh_inertia", "body", bodies)
    new = list(mech.bodies)
    for k in (moving_body(mech, name) for name in chosen):
        whole = _filled(mech, new[k], shapes, hull)
        scale = new[k].inertia.mass / whole.mass if density is None else density
        if scale == 0:
            raise ModelError(
                f"{mech.name!r}: body {new[k].name!r} has no mass to keep; give a density"
            )
        new[k] = replace(new[k], inertia=_times(scale, whole))
    return rebuilt(replace(mech, bodies=tuple(new)))


def _filled(mech: Mechanism, body: Body, shapes: str, hull: bool) -> Inertia:
    """The inertia of a body's shapes at a density of 1, in the body's frame."""
    where = f"{mech.name!r}: body {body.name!r}"
    found: tuple[Shape, ...] = getattr(body, shapes)
    if not found:
        other = next(kind for kind in _KINDS if kind != shapes)
        raise ModelError(f"{where} has no {shapes}; it has {len(getattr(body, other))} {other}")
    total = Inertia()
    for shape in found:
        parts = [_primitive(where, shape)] if shape.kind != "mesh" else _meshes(where, shape, hull)
        for part in parts:
            total = total + part.moved(shape.placement)
    return total


def _times(density: float, inertia: Inertia) -> Inertia:
    return Inertia(density * inertia.mass, inertia.com, density * inertia.about_com)


def _primitive(where: str, shape: Shape) -> Inertia:
    """A primitive of density 1 about its centre."""
    match shape.kind, shape.size:
        case "box", (x, y, z):
            return _diagonal(x * y * z, np.array([x, y, z]) ** 2 / 12)
        case (("sphere" | "ellipsoid"), size):
            a, b, c = np.broadcast_to(size, 3)
            return _diagonal(4 / 3 * pi * a * b * c, np.array([a, b, c]) ** 2 / 5)
        case "cylinder", (r, length):
            return _diagonal(pi * r**2 * length, np.array([r**2 / 4, r**2 / 4, length**2 / 12]))
        case "capsule", (r, length):
            caps = _diagonal(4 / 3 * pi * r**3, np.full(3, r**2 / 5))
            out = caps.mass * (length**2 / 4 + 3 / 8 * length * r)
            apart = Inertia(caps.mass, about_com=caps.about_com + np.diag([out, out, 0.0]))
            return apart + _primitive(where, replace(shape, kind="cylinder"))
    raise ModelError(f"{where}: a {shape.kind} has no volume; leave the body out")


def _diagonal(volume: float, spread: np.ndarray) -> Inertia:
    """Of density 1, with the mean squares of x, y and z."""
    return Inertia(volume, about_com=volume * np.diag(spread.sum() - spread))


def _meshes(where: str, shape: Shape, hull: bool) -> Iterator[Inertia]:
    """Each part of a mesh file at a density of 1, in the shape's frame."""
    where = f"{where}: mesh {shape.mesh!r}"
    for mesh in _parts(where, shape):
        mesh.apply_scale(shape.size)
        # a mesh without volume has no centre
        with np.errstate(all="ignore"):
            yield _solid(where, mesh, hull)


def _solid(where: str, mesh: Any, hull: bool) -> Inertia:
    closed = mesh.is_watertight and mesh.is_winding_consistent
    if not closed and hull:
        mesh = mesh.convex_hull
    elif not closed:
        raise ModelError(
            f"{where} is not closed, or its triangles face both ways: it has no inside; mend it, "
            f"or take its convex hull with hull=True"
        )
    # a mirror image, or one whose triangles face inwards
    if mesh.volume < 0:
        mesh.invert()
    if not mesh.volume > 0:
        raise ModelError(f"{where} has volume {mesh.volume:g}; expected more than 0")
    return Inertia(float(mesh.volume), mesh.center_mass, mesh.moment_inertia / mesh.density)


def _parts(where: str, shape: Shape) -> list[Any]:
    """The meshes of a shape: its own triangles, or those of its file."""
    if find_spec("trimesh") is None:
        raise ModelError(f'{where} is read by trimesh; pip install "hinge-dynamics[view]"')
    if shape.triangles is not None:
        import trimesh

        return [trimesh.Trimesh(shape.triangles.vertices, shape.triangles.faces)]
    if not shape.may_read:
        raise ModelError(
            f"{where} lies where its file may not lead; pass its folder to hinge.load in "
            f"package_dirs"
        )
    return _read(where, shape.mesh or "")


def _read(where: str, path: str) -> list[Any]:
    """The parts of a mesh file that have triangles."""
    if not os.path.isfile(path):
        raise ModelError(f"{where} is not there{_searched(path)}")
    if os.path.getsize(path) > _MOST_BYTES:
        raise ModelError(f"{where} has more than {_MOST_BYTES} bytes; simplify it")
    import trimesh

    try:
        with open(path, "rb") as file:
            data = BytesIO(file.read())
        kind, nothing = path.rpartition(".")[2].lower(), _Nothing()
        scene: Any = trimesh.load_scene(data, file_type=kind, resolver=nothing)  # pyright: ignore
        parts = [mesh for mesh in scene.dump() if len(getattr(mesh, "faces", ()))]
    except Exception as problem:  # readers of other people's files raise anything
        raise ModelError(f"{where} cannot be read: {type(problem).__name__}: {problem}") from None
    if not parts:
        raise ModelError(f"{where} has no triangles")
    return parts


def _searched(path: str) -> str:
    """Where a mesh was looked for when its file was loaded."""
    if "://" not in path:
        return ""
    paths = (f"{name}={os.environ.get(name, '')!r}" for name in _VARIABLES)
    return (
        f": its package was in none of the folders of {', '.join(paths)}, nor beside the file; "
        f"pass the folder that holds it to hinge.load in package_dirs"
    )


_VARIABLES = ("ROS_PACKAGE_PATH", "AMENT_PREFIX_PATH")


class _Nothing:
    """What a mesh file names besides: colours and textures, which have no mass."""

    def get(self, name: str) -> bytes:
        """Nothing."""
        return b""

    __getitem__ = get
