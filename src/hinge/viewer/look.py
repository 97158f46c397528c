"""From a mechanism to what is drawn of each body: its shapes, or limbs from joint to joint."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..algebra.spatial import Inertia, Transform
from ..errors import warn_of_model
from ..model.joints import Free
from ..model.mechanism import Body, Mechanism
from ..model.shapes import Shape
from ..runtime.progress import progress
from .files import MeshError, read_mesh
from .mesh import Mesh, Rgba, box, sheet, tapered, unit

__all__ = [
    "ACCENT",
    "DARK",
    "LIGHT",
    "Look",
    "floor_of",
    "inertia_box",
    "joint_axes",
    "look_of",
    "shape_meshes",
]

# the colours of everything that has none of its own
LIGHT: Rgba = (0.90, 0.91, 0.93, 1.0)
DARK: Rgba = (0.20, 0.22, 0.26, 1.0)
ACCENT: Rgba = (0.95, 0.42, 0.13, 1.0)

_UNPAINTED = Shape("box", ()).rgba
_ENDLESS = 10.0  # m, half the side of an endless plane
_SMALL = 0.05  # m, the side of a box for a mesh whose size nothing tells
_LIGHTEST = 100.0  # kg/m³, of a box that stands for a body
_DENSITY = 1200.0  # kg/m³, of limbs whose thickness nothing tells


@dataclass(frozen=True, eq=False)
class Look:
    """Meshes of every body, the ground first, in the body's own axes.

    floor: the height of the level plane that the ground has, if it has one; it is not among them.
    """

    visuals: list[list[Mesh]]
    collisions: list[list[Mesh]]
    floor: float | None = None

    @property
    def faces(self) -> int:
        """How many triangles are seen."""
        return sum(len(mesh.faces) for meshes in self.visuals for mesh in meshes)


def look_of(mechanism: Mechanism) -> Look:
    """What is drawn of a mechanism; without shapes it is made of limbs between its joints."""
    bodies, plain = mechanism.bodies, _is_plain(mechanism)
    reader = _Reader(mechanism.name)
    visuals: list[list[Mesh]] = []
    collisions: list[list[Mesh]] = []
    for body in progress(bodies, f"reading the meshes of {mechanism.name}"):
        visuals.append(reader.meshes(body, body.visuals, dressed=plain))
        collisions.append(reader.meshes(body, body.collisions))
    reader.warn()
    moving = bodies[1:]
    if moving and not any(b.visuals for b in moving):
        most_collide = sum(bool(b.collisions) for b in moving) > len(moving) / 2
        drawn = collisions if most_collide else _limbs(mechanism)
        visuals = [visuals[0], *drawn[1:]]
    elif plain:
        visuals = _dressed(mechanism, visuals)
    return Look(visuals, collisions, floor_of(mechanism))


def floor_of(mechanism: Mechanism) -> float | None:
    """The height of the highest level plane that the ground looks like."""
    shapes = mechanism.bodies[0].visuals
    return max((float(s.placement.translation[2]) for s in shapes if _is_floor(s)), default=None)


def _dressed(mechanism: Mechanism, visuals: list[list[Mesh]]) -> list[list[Mesh]]:
    """Shapes that have no colours in those of the house, with hubs between them."""
    bodies = mechanism.bodies
    tips = set(range(1, len(bodies))) - {b.parent for b in bodies}
    hubs = _hubs(mechanism, [_thickness(b) for b in bodies])
    return [
        [m.painted(ACCENT) if k in tips else m for m in meshes] + hubs[k]
        for k, meshes in enumerate(visuals)
    ]


def _is_floor(shape: Shape) -> bool:
    return shape.kind == "plane" and shape.placement.rotation[2, 2] > 1 - 1e-9


def _is_plain(mechanism: Mechanism) -> bool:
    """Whether all that is seen of it are primitives without a colour."""
    shapes = [s for b in mechanism.bodies for s in b.visuals]
    return all(s.kind != "mesh" and s.rgba == _UNPAINTED for s in shapes)


class _Reader:
    """Shapes of bodies become triangles; meshes that cannot be had are boxes, told at the end."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lost: dict[str, dict[tuple[str, str], None]] = {}

    def meshes(self, body: Body, shapes: tuple[Shape, ...], dressed: bool = False) -> list[Mesh]:
        """The triangles of a body; what is level ground is not among them."""
        found: list[Mesh] = []
        missing: list[Shape] = []
        for shape in shapes:
            try:
                if body.parent >= 0 or not _is_floor(shape):
                    found += shape_meshes(shape, dressed)
            except MeshError as problem:
                missing.append(shape)
                self.lost.setdefault(str(problem), {})[body.name, shape.mesh or ""] = None
        return found + _stand_ins(body, missing, alone=not found)

    def warn(self) -> None:
        """Once for each thing that is wrong with meshes."""
        for problem, meshes in self.lost.items():
            (body, path), *rest = meshes
            more = f" ({len(rest)} more like this)" if rest else ""
            warn_of_model(
                f"{self.name}: body {body!r}: mesh {path!r} {problem}{more}; it is drawn as a box"
            )


def _stand_ins(body: Body, missing: list[Shape], alone: bool) -> list[Mesh]:
    """A box that the body's inertia could be of; beside other shapes a small one for each."""
    if not missing:
        return []
    if alone and body.inertia.mass > 0:
        X, size = _plausible_box(body.inertia)
        return [box(tuple(np.maximum(size, _SMALL / 5))).painted(LIGHT).placed(X)]
    return [box((_SMALL,) * 3).painted(LIGHT).placed(shape.placement) for shape in missing]


def shape_meshes(shape: Shape, dressed: bool = False) -> list[Mesh]:
    """The triangles of a shape in the axes of its body; dressed: with edges rounded off."""
    meshes = read_mesh(shape) if shape.kind == "mesh" else [_primitive(shape, dressed)]
    if shape.rgba != _UNPAINTED:
        meshes = [mesh.painted(shape.rgba) for mesh in meshes]
    return [_with_paint(mesh).placed(shape.placement) for mesh in meshes]


def _with_paint(mesh: Mesh) -> Mesh:
    return mesh if mesh.rgba or mesh.colors is not None else mesh.painted(LIGHT)


def _primitive(shape: Shape, dressed: bool) -> Mesh:
    kind, size = shape.kind, shape.size
    if kind == "box":
        return box(size, 0.2 * min(size) if dressed else 0.0)
    if kind == "sphere":
        return tapered(size[0], size[0], 0.0)
    if kind == "ellipsoid":
        return tapered(1.0, 1.0, 0.0).scaled(size)
    if kind == "plane":
        return sheet(*(x or _ENDLESS for x in size[:2]))
    radius, length = size
    down = Transform(translation=(0.0, 0.0, -length / 2))
    if kind == "capsule" or not dressed:
        return tapered(radius, radius, length, float(kind == "capsule")).placed(down)
    # a rounded end within the length
    rim = min(0.5, 0.45 * length / radius)
    inner = tapered(radius, radius, length - 2 * rim * radius, rim)
    return inner.placed(Transform(translation=(0.0, 0.0, rim * radius - length / 2)))


# limbs: what a body without shapes looks like


def _limbs(mechanism: Mechanism) -> list[list[Mesh]]:
    """A limb from each joint to the next ones, a box for trunks, a foot for what is fixed."""
    bodies = mechanism.bodies
    ends = [_ends(mechanism, k) for k in range(len(bodies))]
    spans = [
        np.linalg.norm(p - _socket(b).translation)
        for b, points in zip(bodies[1:], ends[1:], strict=True)
        for p in points
    ]
    typical = float(np.median(spans)) if spans else 0.1
    radii = [_radius(b, points, typical) for b, points in zip(bodies, ends, strict=True)]
    meshes: list[list[Mesh]] = [[] for _ in bodies]
    for k, body in enumerate(bodies[1:], 1):
        start = _socket(body).translation
        inner = [b for b in bodies[1:] if b.parent == k]
        if len(inner) > 2 or isinstance(body.joint, Free) or not ends[k]:
            meshes[k] += _trunk(body.inertia, typical)
        color = LIGHT if inner else ACCENT
        meshes[k] += [_limb(start, p, radii[k], color) for p in ends[k]]
    hubs = _hubs(mechanism, radii)
    return [a + b for a, b in zip(meshes, hubs, strict=True)]


def _ends(mechanism: Mechanism, k: int) -> list[np.ndarray]:
    """Where a limb leads to: the next joints, else the farthest frame, else beyond the centre."""
    start = _socket(mechanism.bodies[k]).translation
    next_ = [b.placement.translation for b in mechanism.bodies[1:] if b.parent == k]
    if not next_:
        frames = [f.placement.translation for f in mechanism.frames if f.body == k]
        beyond = 2 * np.array(mechanism.bodies[k].inertia.com) - start
        next_ = [max((*frames, beyond), key=lambda p: float(np.linalg.norm(p - start)))]
    return [p for p in next_ if np.linalg.norm(p - start) > 1e-6]


def _socket(body: Body) -> Transform:
    """The joint's moving frame, in the axes of the body it carries."""
    return body.offset.inv


def _radius(body: Body, ends: list[np.ndarray], typical: float) -> float:
    """Of limbs as heavy as the body, if they are as heavy as most."""
    start = _socket(body).translation
    length = sum(float(np.linalg.norm(p - start)) for p in ends) or typical
    mass = body.inertia.mass if body.parent >= 0 else 0.0
    radius = np.sqrt(max(mass, 0.0) / (np.pi * length * _DENSITY))
    return float(np.clip(radius, 0.07 * typical, 0.3 * typical))


def _limb(start: np.ndarray, end: np.ndarray, radius: float, color: Rgba) -> Mesh:
    along = end - start
    length = float(np.linalg.norm(along))
    X = Transform(_z_along(along), start)
    return tapered(radius, 0.75 * radius, length).painted(color).placed(X)


def _trunk(inertia: Inertia, typical: float) -> list[Mesh]:
    X, size = _plausible_box(inertia)
    size = np.clip(size, 0.25 * typical, 4 * typical)
    return [box(tuple(size), 0.25 * min(size)).painted(LIGHT).placed(X)] if inertia.mass else []


def _plausible_box(inertia: Inertia) -> tuple[Transform, np.ndarray]:
    """The box of an inertia, smaller where it would weigh next to nothing for its size."""
    X, size = inertia_box(inertia)
    room = float(np.prod(np.maximum(size, _SMALL / 5))) * _LIGHTEST
    return X, size * min(1.0, (inertia.mass / room) ** (1 / 3))


def inertia_box(inertia: Inertia) -> tuple[Transform, np.ndarray]:
    """The even box that has this mass and these moments: where it is, and its three sides."""
    moments, axes = np.linalg.eigh(np.array(inertia.about_com, dtype=float))
    axes[:, 2] *= np.linalg.det(axes)
    mass = max(float(inertia.mass), 1e-12)
    sides = np.sqrt(np.maximum(6 * (moments.sum() - 2 * moments) / mass, 0.0))
    return Transform(axes, inertia.com), sides


# joints: what turns and slides


def _hubs(mechanism: Mechanism, radii: list[float]) -> list[list[Mesh]]:
    meshes: list[list[Mesh]] = [[] for _ in mechanism.bodies]
    for k, body in enumerate(mechanism.bodies[1:], 1):
        if not isinstance(body.joint, Free):
            hub = _hub(body, radii[k], radii[body.parent])
            meshes[k] += [m.painted(DARK).placed(_socket(body)) for m in hub]
    return meshes


def _hub(body: Body, own: float, parent: float) -> list[Mesh]:
    """A drum along the axis of a hinge, a ball for several, a sleeve for what slides.

    own, parent: how thick the limbs are that it joins; 0 if that is not known.
    """
    joint, radii = body.joint, [r for r in (own, parent) if r]
    H = joint.H(joint.neutral())
    turns, slides = (H[np.abs(part).max(axis=1) > 0] for part in (H[:, :3], H[:, 3:]))
    if not radii or not len(turns) + len(slides) or len(slides) > 2:
        return []
    if len(turns) > 1:
        return [tapered(1.15 * min(radii), 1.15 * min(radii), 0.0)]
    axis = turns[0, :3] if len(turns) else slides[0, 3:]
    X = Transform(_z_along(axis))
    if not len(turns):
        side = 2.6 * min(radii)
        return [box((side, side, 1.2 * side), 0.15 * side).placed(X)]
    toward = _socket(body).rotation.T @ (np.array(body.inertia.com) - _socket(body).translation)
    twists = abs(unit(toward) @ unit(axis)) > 0.9
    wide, half = 1.04 * max(radii), (0.3 if twists else 1.12) * max(radii)
    rim = 0.15
    drum = tapered(wide, wide, 2 * (half - rim * wide), rim)
    return [drum.placed(X @ Transform(translation=(0.0, 0.0, rim * wide - half)))]


def _thickness(body: Body) -> float:
    """The radius of the thickest shape; 0 without one."""
    round_ = ("cylinder", "capsule", "sphere")
    radii = [s.size[0] if s.kind in round_ else min(s.size) / 2 for s in body.visuals]
    return max(radii, default=0.0)


def joint_axes(body: Body) -> list[Transform]:
    """For each axis that a joint turns about or slides along, a frame of the body with z on it."""
    if isinstance(body.joint, Free):
        return []
    H = body.joint.H(body.joint.neutral())
    found = [row[:3] if row[:3].any() else row[3:] for row in H]
    return [_socket(body) @ Transform(_z_along(axis)) for axis in found]


def _z_along(v: np.ndarray) -> np.ndarray:
    """A rotation that lays z along a vector."""
    z = unit(np.asarray(v, dtype=float))
    x = unit(np.cross(np.eye(3)[int(np.argmin(np.abs(z)))], z))
    return np.stack([x, np.cross(z, x), z], axis=-1)
