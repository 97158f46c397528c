"""Triangles, and the solids that robots are made of when no file has others."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..algebra.spatial import Transform

__all__ = ["Mesh", "Rgba", "box", "creased", "lathe", "sheet", "tapered", "unit"]

Rgba = tuple[float, float, float, float]

_AROUND = 32  # points of a circle
_QUARTER = 6  # steps of a quarter of it
_CREASE = np.cos(np.radians(35.0))  # flatter edges are shaded as if they were round


@dataclass(frozen=True, eq=False)
class Mesh:
    """Triangles, (V, 3) vertices in m and (F, 3) faces, counter-clockwise from outside.

    rgba: one colour for all; colors: (V, 3), one for each vertex instead; neither: not painted yet.
    """

    vertices: np.ndarray
    faces: np.ndarray
    rgba: Rgba | None = None
    colors: np.ndarray | None = None

    def placed(self, X: Transform) -> Mesh:
        """The mesh, given in frame B, in frame A, for X_AB."""
        return replace(self, vertices=self.vertices @ X.rotation.T + X.translation)

    def scaled(self, factors: tuple[float, ...]) -> Mesh:
        """Stretched along the axes; a mirrored one is turned inside out again."""
        mirrored = np.prod(factors) < 0
        faces = self.faces[:, ::-1] if mirrored else self.faces
        return replace(self, vertices=self.vertices * np.array(factors), faces=faces)

    def painted(self, rgba: Rgba) -> Mesh:
        """All of one colour."""
        return replace(self, rgba=rgba, colors=None)

    @property
    def paint(self) -> np.ndarray:
        """The colour of every vertex, (V, 3); grey if it has none."""
        if self.colors is not None:
            return self.colors
        return np.tile((self.rgba or (0.7, 0.7, 0.7, 1.0))[:3], (len(self.vertices), 1))

    @property
    def normals(self) -> np.ndarray:
        """(V, 3), of the faces around each vertex, by their areas."""
        corners = self.vertices[self.faces]
        across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        index = self.faces.ravel()
        sums = [np.bincount(index, np.repeat(x, 3), len(self.vertices)) for x in across.T]
        return unit(np.stack(sums, axis=-1))


def unit(vectors: np.ndarray) -> np.ndarray:
    """Along the last axis of length one; zero stays zero."""
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.where(length > 0, length, 1.0)


def creased(mesh: Mesh) -> Mesh:
    """The same surface with a vertex of its own on each side of a sharp edge.

    Corners of faces are one vertex where faces meet smoothly: the components of the graph in which
    each smooth edge links the corners at its two ends.
    """
    n, faces = len(mesh.faces), mesh.faces
    if not n:
        return mesh
    corners = mesh.vertices[faces]
    flat = unit(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]))
    # every edge twice, once in each face; corner = 3 face + place
    start = np.arange(3 * n)
    end = start - start % 3 + (start + 1) % 3
    ends = np.stack([faces.ravel()[start], faces.ravel()[end]], axis=-1)
    swapped = ends[:, 0] > ends[:, 1]
    low, high = np.where(swapped, end, start), np.where(swapped, start, end)
    order = np.lexsort((ends.max(axis=1), ends.min(axis=1)))
    key = np.sort(ends, axis=1)[order]
    meet = np.flatnonzero((key[1:] == key[:-1]).all(axis=1))
    a, b = order[meet], order[meet + 1]
    smooth = np.einsum("ij,ij->i", flat[a // 3], flat[b // 3]) > _CREASE
    a, b = a[smooth], b[smooth]
    label = _components(3 * n, np.concatenate([low[a], high[a]]), np.concatenate([low[b], high[b]]))
    kept, index = np.unique(label, return_inverse=True)
    at = faces.ravel()[kept]
    colors = None if mesh.colors is None else mesh.colors[at]
    return replace(mesh, vertices=mesh.vertices[at], faces=index.reshape(-1, 3), colors=colors)


def _components(n: int, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The least node that each of n nodes is linked with, for links a[i] – b[i]."""
    label = np.arange(n)
    while True:
        least = np.minimum(label[a], label[b])
        before = label.copy()
        np.minimum.at(label, a, least)
        np.minimum.at(label, b, least)
        label = label[label]
        if (label == before).all():
            return label


def lathe(profile: np.ndarray, around: int = _AROUND) -> Mesh:
    """The solid that a profile (n, 2) of (radius, height), from bottom to top, sweeps about z."""
    profile = np.asarray(profile, dtype=float)
    turn = np.arange(around) * (2 * np.pi / around)
    r, z = profile[:, :1], np.repeat(profile[:, 1:], around, axis=1)
    points = np.stack([r * np.cos(turn), r * np.sin(turn), z], axis=-1)
    low = np.arange(len(profile) - 1)[:, None] * around
    i, j = np.arange(around), (np.arange(around) + 1) % around
    lower = np.stack([low + i, low + j, low + around + j], axis=-1)
    upper = np.stack([low + i, low + around + j, low + around + i], axis=-1)
    faces = np.concatenate([lower[profile[:-1, 0] > 0], upper[profile[1:, 0] > 0]])
    return creased(_welded(points.reshape(-1, 3), faces.reshape(-1, 3)))


def tapered(a: float, b: float, length: float, rim: float = 1.0) -> Mesh:
    """A cone cut off at radius a, at height 0, and b, at `length`, with rounded ends.

    rim: how much of each radius is rounded: 0 for a cylinder's edge, 1 for a capsule's cap, which
    reach out beyond the ends.
    """
    quarter = np.linspace(0, np.pi / 2, _QUARTER + 1)
    low = np.stack([a * (1 - rim + rim * np.sin(quarter)), -a * rim * np.cos(quarter)], axis=-1)
    high = np.stack([b * (1 - rim + rim * np.cos(quarter)), b * rim * np.sin(quarter)], axis=-1)
    ends = ((0.0, -a * rim), low, high + (0, length), (0.0, length + b * rim))
    profile = np.concatenate([np.atleast_2d(part) for part in ends])
    new = np.append(True, np.abs(np.diff(profile, axis=0)).max(axis=1) > 1e-12)
    return lathe(profile[new])


def box(size: tuple[float, ...], rim: float = 0.0) -> Mesh:
    """A box with its middle at the origin; rim: the radius of its edges, within the size."""
    half = np.array(size) / 2
    rim = min(rim, *half)
    steps = np.linspace(0, 1, 4)[1:] if rim > 0 else np.ones(1)
    # 0 is there twice, for the two corners that share what is flat between them
    inner = np.array([0.0]) if rim > 0 else np.zeros(0)
    side = np.concatenate([-steps[::-1], -inner, inner, steps])
    sign = np.concatenate([-np.ones(len(side) // 2), np.ones(len(side) // 2)])
    parts, faces, n = [], [], len(side)
    i, j = (x.ravel() for x in np.meshgrid(np.arange(n - 1), np.arange(n - 1), indexing="ij"))
    quad = np.stack([i * n + j, (i + 1) * n + j, (i + 1) * n + j + 1, i * n + j + 1], axis=-1)
    for axis in range(3):
        for out in (-1.0, 1.0):
            u, v = np.meshgrid(np.tan(side * np.pi / 4), np.tan(side * np.pi / 4), indexing="ij")
            su, sv = np.meshgrid(sign, sign, indexing="ij")
            round_ = unit(np.stack([np.full(u.shape, out), u, v], axis=-1))
            flat = np.stack([np.full(u.shape, out), su, sv], axis=-1)
            turned = np.roll(np.stack([round_, flat]), axis, axis=-1).reshape(2, -1, 3)
            rows = quad if out > 0 else quad[:, ::-1]
            faces.append(
                np.concatenate([rows[:, [0, 1, 2]], rows[:, [0, 2, 3]]]) + len(parts) * n * n
            )
            parts.append(rim * turned[0] + (half - rim) * turned[1])
    return creased(_welded(np.concatenate(parts), np.concatenate(faces)))


def _welded(vertices: np.ndarray, faces: np.ndarray) -> Mesh:
    """Equal vertices as one, and without the faces that then have no area."""
    kept, index = np.unique(vertices.round(9), axis=0, return_inverse=True)
    faces = index.ravel()[faces]
    whole = (faces != np.roll(faces, 1, axis=1)).all(axis=1)
    return Mesh(kept, faces[whole])


def sheet(x: float, y: float) -> Mesh:
    """A rectangle in the plane z = 0, seen from both sides."""
    corners = np.array([[-x, -y, 0], [x, -y, 0], [x, y, 0], [-x, y, 0]], dtype=float)
    faces = np.array([[0, 1, 2], [0, 2, 3], [4, 6, 5], [4, 7, 6]])
    return Mesh(np.concatenate([corners, corners]), faces)
