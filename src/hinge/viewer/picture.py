"""Pictures of a robot without a display, a browser or a graphics card.

Meshes of bodies are put where they are, a depth buffer says what each pixel sees, a second one,
from the light, what lies in shadow; the ground is a plane with a grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .camera import Camera
from .mesh import Mesh, unit
from .raster import Seen, rasterize

__all__ = ["NOTHING", "Floor", "Solid", "draw", "gathered"]

_SHARP = 2  # samples of a pixel each way
_SHADOW = 1024  # pixels of the light's picture
_TO_LIGHT = unit(np.array([0.35, -0.55, 0.9]))
_SLANT = float(np.hypot(*_TO_LIGHT[:2]) / _TO_LIGHT[2])  # of a shadow, for a unit of height
_SKY, _HAZE = np.array([0.985, 0.988, 0.992]), np.array([0.90, 0.915, 0.935])
_LINE = np.array([0.74, 0.77, 0.81])


@dataclass(frozen=True, eq=False)
class Solid:
    """All that is drawn, in the world: vertices, normals and colours (V, 3), faces (F, 3)."""

    vertices: np.ndarray
    normals: np.ndarray
    colors: np.ndarray
    faces: np.ndarray

    @classmethod
    def together(cls, parts: Sequence[Solid]) -> Solid:
        """Several as one."""
        starts = np.cumsum([0, *(len(part.vertices) for part in parts)])
        faces = [part.faces + start for part, start in zip(parts, starts, strict=False)]
        vertices, normals, colors = (
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("vertices", "normals", "colors")
        )
        return cls(vertices, normals, colors, np.concatenate(faces))

    @property
    def corners(self) -> tuple[np.ndarray, np.ndarray]:
        """Of the box around it."""
        if not len(self.vertices):
            return np.full(3, -0.5), np.full(3, 0.5)
        return self.vertices.min(axis=0), self.vertices.max(axis=0)


_NONE = np.zeros((0, 3))
NOTHING = Solid(_NONE, _NONE, _NONE, _NONE.astype(int))


def gathered(meshes: Sequence[Sequence[Mesh]], poses: np.ndarray) -> Solid:
    """The meshes of each body at its pose (n, 4, 4)."""
    parts = [
        Solid(m.vertices @ X[:3, :3].T + X[:3, 3], m.normals @ X[:3, :3].T, m.paint, m.faces)
        for body, X in zip(meshes, poses, strict=True)
        for m in body
    ]
    return Solid.together([NOTHING, *parts])


def draw(
    solid: Solid, camera: Camera, width: int = 800, height: int = 600, floor: Floor | None = None
) -> np.ndarray:
    """The picture, (height, width, 3) of 0 … 255; floor: of the same camera and size, if any."""
    w, h = _SHARP * width, _SHARP * height
    points = camera.pixels(solid.vertices, w, h)
    owner, _ = rasterize(points, solid.faces, w, h)
    seen = Seen(points, solid.faces, owner, w)
    shadow = _Shadow(solid)
    color = (_background(width, height) if floor is None else floor.under(shadow)).reshape(-1, 3)
    # of the samples of a pixel some see the solid, the rest what is behind
    pixel = seen.at // w // _SHARP * width + seen.at % w // _SHARP
    paint = _shaded(solid, seen, camera, shadow)
    behind = 1 - np.bincount(pixel, minlength=len(color)) / _SHARP**2
    front = [np.bincount(pixel, x, len(color)) / _SHARP**2 for x in paint.T]
    fine = (color * behind[:, None] + np.stack(front, axis=-1)).reshape(height, width, 3)
    return (255 * fine.clip(0, 1) + 0.5).astype(np.uint8)


def _background(w: int, h: int) -> np.ndarray:
    up = np.linspace(1, 0, h)[:, None, None]
    return np.repeat(_SKY * up + _HAZE * (1 - up), w, axis=1)


def _shaded(solid: Solid, seen: Seen, camera: Camera, shadow: _Shadow) -> np.ndarray:
    """A sun that casts shadows, a sky, light from the ground, and a gleam."""
    at = seen.blend(solid.vertices, solid.faces)
    eye = unit(camera.eye - at)
    normal = unit(seen.blend(solid.normals, solid.faces))
    # a surface that is seen from behind, as files have them, is turned round
    normal *= np.where(np.einsum("pi,pi->p", normal, eye) < 0, -1.0, 1.0)[:, None]
    base = seen.blend(solid.colors, solid.faces) ** 2.2
    lit = shadow.light(at + 3 * shadow.grain * normal)
    sun = lit * (normal @ _TO_LIGHT).clip(0)
    sky = 0.5 + 0.5 * normal[:, 2]
    fill = (normal @ unit(np.array([-0.8, -0.3, 0.35]))).clip(0)
    half = unit(eye + _TO_LIGHT)
    gleam = lit * np.einsum("pi,pi->p", normal, half).clip(0) ** 60
    rim = (1 - np.einsum("pi,pi->p", normal, eye).clip(0)) ** 4
    diffuse = 0.13 + 0.29 * sky + 0.82 * sun + 0.12 * fill
    light = base * diffuse[:, None] + (0.16 * gleam + 0.10 * rim * sky)[:, None]
    return _toned(light)


def _toned(light: np.ndarray) -> np.ndarray:
    """From light to what a screen shows, bright parts held back."""
    return (light / (1 + 0.30 * light)).clip(0) ** (1 / 2.2)


class Floor:
    """The sky and a plane of squares that fades out, as a camera sees them: once for a film.

    height: of the plane; middle, reach: of what stands there, its centre and half its size.
    """

    def __init__(
        self,
        camera: Camera,
        size: tuple[int, int],
        height: float,
        middle: np.ndarray,
        reach: float,
    ) -> None:
        w, h = size
        self.color = _background(w, h)
        x, y = np.meshgrid(np.arange(w) + 0.5, np.arange(h) + 0.5)
        focal = h / 2 / np.tan(camera.fov / 2)
        ray = np.stack([(x - w / 2) / focal, (h / 2 - y) / focal, -np.ones_like(x)], axis=-1)
        ray = ray @ camera.axes
        below = ray[..., 2] * (height - camera.eye[2]) > 0
        ray = ray[below]
        far = (height - camera.eye[2]) / ray[:, 2]
        at = camera.eye + far[:, None] * ray
        away = np.linalg.norm(at[:, :2] - middle[:2], axis=1) / reach
        fade = np.exp(-((away / 2.2) ** 2))
        # a line is about as wide as a pixel, whatever the distance
        pixel = far / focal / np.abs(unit(ray)[:, 2]) ** 0.5
        step = _grid_step(reach)
        off = step * np.abs(at[:, :2] / step - np.round(at[:, :2] / step))
        line = 0.75 * fade * (1.2 - off.min(axis=1) / pixel).clip(0, 1)
        self.color[below] = self.color[below] * (1 - line)[:, None] + _LINE * line[:, None]
        # the shadow falls within a circle, as far off as the light is low
        near = away < 1.2 + _SLANT * (abs(middle[2] - height) / reach + 1)
        self.where = np.flatnonzero(below)[near]
        self.at, self.fade = at[near], fade[near]

    def under(self, shadow: _Shadow) -> np.ndarray:
        """The picture of it with a shadow on it: (height, width, 3)."""
        color = self.color.copy()
        dim = 1 - 0.45 * self.fade * (1 - shadow.light(self.at, soft=4))
        color.reshape(-1, 3)[self.where] *= dim[:, None]
        return color


def _grid_step(reach: float) -> float:
    """1, 2 or 5 of a power of ten, a few to the size of the robot."""
    step = 10 ** np.floor(np.log10(max(reach, 1e-6) / 2))
    return float(max(s for s in (step, 2 * step, 5 * step) if s <= reach / 2 or s == step))


class _Shadow:
    """What the light sees: a parallel picture of the solid along it."""

    def __init__(self, solid: Solid) -> None:
        low, high = solid.corners
        self.middle = (low + high) / 2
        self.reach = float(np.linalg.norm(high - low)) / 2 + 1e-9
        self.grain = 2 * self.reach / _SHADOW
        right = unit(np.cross([0.0, 0.0, 1.0], _TO_LIGHT))
        self.axes = np.stack([right, np.cross(_TO_LIGHT, right), -_TO_LIGHT])
        self.near = rasterize(self._pixels(solid.vertices), solid.faces, _SHADOW, _SHADOW)[1]

    def _pixels(self, points: np.ndarray) -> np.ndarray:
        x, y, z = ((points - self.middle) @ self.axes.T / self.grain).T
        # beyond the light, so that depths are above 0
        return np.stack([x + _SHADOW / 2, y + _SHADOW / 2, z + 2 * _SHADOW], axis=-1)

    def light(self, points: np.ndarray, soft: int = 1) -> np.ndarray:
        """How much of the light comes to points (P, 3): 0 … 1; soft: how blurred, in pixels."""
        x, y, z = self._pixels(points).T
        total = np.zeros(len(points))
        lit = 1 / (z - 1.5)
        steps = np.arange(-1.5, 2) * soft
        for dx in steps:
            for dy in steps:
                column, row = (x + dx).astype(int), (y + dy).astype(int)
                inside = (column >= 0) & (row >= 0) & (column < _SHADOW) & (row < _SHADOW)
                place = np.where(inside, row * _SHADOW + column, 0)
                total += ~inside | (self.near[place] < lit)
        return total / len(steps) ** 2
