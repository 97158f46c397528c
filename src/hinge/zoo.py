"""Robots made in code, for demonstrations and tests; their sizes and masses are round numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from .algebra.rotation import quaternion_matrix
from .algebra.spatial import Inertia, Transform
from .model.builder import MechanismBuilder
from .model.joints import (
    Cylindrical,
    Free,
    Helical,
    Joint,
    Planar,
    Prismatic,
    Revolute,
    Spherical,
    Translation,
    Universal,
)
from .model.mechanism import GROUND
from .model.shapes import Shape
from .robot import Robot
from .runtime.check import check_whole

__all__ = [
    "acrobot",
    "arm",
    "cartpole",
    "flexible_arm",
    "humanoid",
    "pendulum",
    "quadruped",
    "slosh",
    "snake",
    "space_arm",
    "tree",
]


def __dir__() -> list[str]:
    return __all__


_X, _Y, _Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
_TURN = {0: ((0, 0, 1), (0, 1, 0), (-1, 0, 0)), 1: ((1, 0, 0), (0, 0, -1), (0, 1, 0))}


def pendulum(n: int = 1) -> Robot:
    """n links of 1 m and 1 kg hanging from one another; hinges about y."""
    check_whole("zoo.pendulum", "n", n)
    b = MechanismBuilder(f"pendulum{n}")
    parent, at = GROUND, (0.0, 0.0, 0.0)
    for i in range(1, n + 1):
        _link(b, f"link{i}", parent, Revolute(_Y), at, 1.0, (0.0, 0.0, -1.0), 0.03, f"hinge{i}")
        parent, at = f"link{i}", (0.0, 0.0, -1.0)
    b.add_frame("tip", parent, Transform(translation=at))
    return Robot(b.build())


def arm(n: int = 7) -> Robot:
    """A serial arm of n joints that twist and bend in turn, with a frame "tool"."""
    check_whole("zoo.arm", "n", n)
    b = MechanismBuilder(f"arm{n}")
    _serial_arm(b, n, GROUND, (0.0, 0.0, 0.0))
    return Robot(b.build())


def space_arm(n: int = 7) -> Robot:
    """An arm of n joints on a 100 kg satellite that floats without gravity."""
    check_whole("zoo.space_arm", "n", n)
    b = MechanismBuilder(f"space_arm{n}", gravity=(0.0, 0.0, 0.0))
    _box(b, "base", GROUND, Free(), (0.0, 0.0, 0.0), 100.0, (1.0, 1.0, 1.0), "base_free")
    _serial_arm(b, n, "base", (0.0, 0.0, 0.5))
    return Robot(b.build())


def flexible_arm(n: int = 2, segments: int = 4) -> Robot:
    """n hinges about z that drive elastic links of 1 m: bending stiffness 20 N m², 1 kg, slender.

    A link is cut into `segments` pieces, each with a spring in its middle, so that whole pieces lie
    between springs and halves at the ends; springs are passive hinges with a little damping.
    """
    check_whole("zoo.flexible_arm", "n", n)
    check_whole("zoo.flexible_arm", "segments", segments)
    b = MechanismBuilder(f"flexible_arm{n}", gravity=(0.0, 0.0, 0.0))
    piece, bend = 1.0 / segments, 20.0 * segments
    parent, at = GROUND, (0.0, 0.0, 0.0)
    for i in range(1, n + 1):
        for j in range(segments + 1):
            length = piece / 2 if j in (0, segments) else piece
            spring = Revolute(_Z, stiffness=bend, damping=2e-3 * bend)
            joint, name = (spring, f"flex{i}_{j}") if j else (Revolute(_Z), f"joint{i}")
            along = (length, 0.0, 0.0)
            _link(b, f"link{i}_{j}", parent, joint, at, length, along, 0.01, name)
            parent, at = f"link{i}_{j}", along
    b.add_frame("tip", parent, Transform(translation=at))
    return Robot(b.build())


def slosh(tanks: int = 2) -> Robot:
    """A satellite of 200 kg with reaction wheels and tanks in which 20 kg of fuel slosh, damped.

    The fuel of a tank is a mass on springs, 0.2 Hz if the satellite were held; the wheels are
    driven, the satellite and the fuel are not.
    """
    check_whole("zoo.slosh", "tanks", tanks)
    b = MechanismBuilder(f"slosh{tanks}", gravity=(0.0, 0.0, 0.0))
    _box(b, "hull", GROUND, Free(), (0.0, 0.0, 0.0), 200.0, (1.0, 1.0, 1.5), "hull_free")
    for i, (name, axis) in enumerate((("x", _X), ("y", _Y), ("z", _Z))):
        wheel = Inertia(2.0, (0.0, 0.0, 0.0), 0.01 * (np.eye(3) + np.diag(axis)))
        disc = Shape("cylinder", (0.14, 0.02), Transform(_along(i)))
        b.add(f"wheel_{name}", "hull", Revolute(axis), f"spin_{name}", None, wheel, visuals=[disc])
    stiffness = 20.0 * (2 * np.pi * 0.2) ** 2
    damping = 2 * 0.02 * np.sqrt(20.0 * stiffness)
    for i in range(1, tanks + 1):
        turn = 2 * np.pi * i / tanks
        at = (0.4 * np.cos(turn), 0.4 * np.sin(turn), 0.2)
        joint = Translation(stiffness=stiffness, damping=damping)
        _box(b, f"fuel{i}", "hull", joint, at, 20.0, (0.2, 0.2, 0.2), f"slosh{i}")
    return Robot(b.build())


def snake(n: int = 10) -> Robot:
    """n links of 0.2 m on the loose, joined by hinges that bend in turn sideways and up."""
    check_whole("zoo.snake", "n", n)
    b = MechanismBuilder(f"snake{n}")
    tail = (-0.2, 0.0, 0.0)
    _link(b, "link1", GROUND, Free(), (0.0, 0.0, 0.0), 0.5, tail, 0.04, "head_free")
    for i in range(2, n + 1):
        joint = Revolute(_Z if i % 2 == 0 else _Y, lower=-1.5, upper=1.5, armature=1e-3)
        _link(b, f"link{i}", f"link{i - 1}", joint, tail, 0.5, tail, 0.04, f"bend{i - 1}")
    b.add_frame("head", "link1")
    b.add_frame("tail", f"link{n}", Transform(translation=tail))
    return Robot(b.build())


def cartpole() -> Robot:
    """A cart of 1 kg on a rail along x with a pole of 0.1 kg and 1 m; at q = 0 the pole is up."""
    b = MechanismBuilder("cartpole")
    _box(b, "cart", GROUND, Prismatic(_X), (0.0, 0.0, 0.0), 1.0, (0.4, 0.2, 0.15), "slider")
    _link(b, "pole", "cart", Revolute(_Y), (0.0, 0.0, 0.0), 0.1, (0.0, 0.0, 1.0), 0.02, "hinge")
    b.add_frame("tip", "pole", Transform(translation=(0.0, 0.0, 1.0)))
    return Robot(b.build())


def acrobot() -> Robot:
    """Two links of 1 m and 1 kg hanging at q = 0; only the elbow is meant to be driven."""
    b = MechanismBuilder("acrobot")
    down = (0.0, 0.0, -1.0)
    passive = Revolute(_Y, effort_limit=0.0)
    _link(b, "upper", GROUND, passive, (0.0, 0.0, 0.0), 1.0, down, 0.04, "shoulder")
    _link(b, "lower", "upper", Revolute(_Y), down, 1.0, down, 0.04, "elbow")
    b.add_frame("tip", "lower", Transform(translation=down))
    return Robot(b.build())


def quadruped() -> Robot:
    """A trunk on the loose and four legs of three hinges each; frames FL_foot, FR_foot, …"""
    b = MechanismBuilder("quadruped")
    _box(b, "trunk", GROUND, Free(), (0.0, 0.0, 0.0), 12.0, (0.5, 0.25, 0.12), "trunk_free")
    for front, x in (("F", 0.22), ("R", -0.22)):
        for side, y in (("L", 1.0), ("R", -1.0)):
            leg = f"{front}{side}"
            out, down = (0.0, 0.08 * y, 0.0), (0.0, 0.0, -0.25)
            hip = Revolute(_X, lower=-1.0, upper=1.0, armature=0.01)
            _link(b, f"{leg}_hip", "trunk", hip, (x, 0.06 * y, 0.0), 0.7, out, 0.04, f"{leg}_roll")
            thigh = Revolute(_Y, lower=-1.5, upper=3.5, armature=0.01)
            _link(b, f"{leg}_thigh", f"{leg}_hip", thigh, out, 1.2, down, 0.03, f"{leg}_pitch")
            calf = Revolute(_Y, lower=-2.7, upper=-0.2, armature=0.01)
            _link(b, f"{leg}_calf", f"{leg}_thigh", calf, down, 0.25, down, 0.015, f"{leg}_knee")
            b.add_frame(f"{leg}_foot", f"{leg}_calf", Transform(translation=down))
    return Robot(b.build())


def humanoid() -> Robot:
    """A pelvis on the loose, ball joints at waist, neck, shoulders and hips, hinges elsewhere."""
    b = MechanismBuilder("humanoid")
    _box(b, "pelvis", GROUND, Free(), (0.0, 0.0, 0.0), 12.0, (0.2, 0.35, 0.15), "pelvis_free")
    up, down = (0.0, 0.0, 0.45), (0.0, 0.0, -0.3)
    _link(b, "torso", "pelvis", Spherical(), (0.0, 0.0, 0.1), 25.0, up, 0.15, "waist")
    _link(b, "head", "torso", Spherical(), (0.0, 0.0, 0.5), 5.0, (0.0, 0.0, 0.2), 0.1, "neck")
    for side, y in (("left", 1.0), ("right", -1.0)):
        shoulder, elbow, at = f"{side}_shoulder", f"{side}_elbow", (0.0, 0.22 * y, 0.42)
        _link(b, f"{side}_arm", "torso", Spherical(), at, 2.0, down, 0.05, shoulder)
        bend = Revolute(_Y, lower=-2.5, upper=0.0)
        _link(b, f"{side}_forearm", f"{side}_arm", bend, down, 1.5, (0.0, 0.0, -0.28), 0.04, elbow)
        b.add_frame(f"{side}_hand", f"{side}_forearm", Transform(translation=(0.0, 0.0, -0.33)))
        _leg(b, side, y)
    return Robot(b.build())


def _leg(b: MechanismBuilder, side: str, y: float) -> None:
    thigh, shank = (0.0, 0.0, -0.42), (0.0, 0.0, -0.4)
    hip = (0.0, 0.1 * y, -0.05)
    _link(b, f"{side}_thigh", "pelvis", Spherical(), hip, 8.0, thigh, 0.07, f"{side}_hip")
    knee = Revolute(_Y, lower=0.0, upper=2.5)
    _link(b, f"{side}_shank", f"{side}_thigh", knee, thigh, 4.0, shank, 0.05, f"{side}_knee")
    ankle = Universal(_Y, _X, lower=-0.8, upper=0.8)
    _box(b, f"{side}_foot", f"{side}_shank", ankle, shank, 1.0, (0.25, 0.1, 0.06), f"{side}_ankle")
    b.add_frame(f"{side}_sole", f"{side}_foot", Transform(translation=(0.05, 0.0, -0.06)))


def tree(seed: int = 0, n: int = 20) -> Robot:
    """A random tree of n bodies that has every joint type, branches, armature and offsets."""
    check_whole("zoo.tree", "n", n)
    rng = np.random.default_rng(seed)
    b = MechanismBuilder(f"tree{seed}", gravity=rng.normal(size=3) * 5)
    kinds = rng.permutation(len(_KINDS))
    names = [GROUND]
    for i in range(n):
        # near the last bodies, so that the tree is deep as well as wide
        parent = names[int(rng.integers(max(0, len(names) - 4), len(names)))]
        joint = _KINDS[kinds[i % len(_KINDS)]](rng)
        placement, inertia = _random_pose(rng), _random_inertia(rng)
        offset = _random_pose(rng) if rng.random() < 0.3 else None
        names.append(f"body{i + 1}")
        b.add(names[-1], parent, joint, f"joint{i + 1}", placement, inertia, offset)
    b.add_frame("tip", names[-1], _random_pose(rng))
    return Robot(b.build())


def _random_pose(rng: np.random.Generator) -> Transform:
    return Transform(quaternion_matrix(rng.normal(size=4)), 0.5 * rng.normal(size=3))


def _random_inertia(rng: np.random.Generator) -> Inertia:
    """That of a few random points: always one that a body can have."""
    points = 0.2 * rng.normal(size=(3, 6))
    second = points @ points.T
    about = np.trace(second) * np.eye(3) - second
    return Inertia(rng.uniform(0.5, 2.0), 0.3 * rng.normal(size=3), about)


def _armature(rng: np.random.Generator, nv: int) -> Sequence[float]:
    return tuple(rng.uniform(0, 0.2, size=nv)) if rng.random() < 0.5 else (0.0,) * nv


_KINDS: tuple[Callable[[np.random.Generator], Joint], ...] = (
    lambda rng: Revolute(rng.normal(size=3), armature=_armature(rng, 1)),
    lambda rng: Prismatic(rng.normal(size=3), armature=_armature(rng, 1)),
    lambda rng: Helical(rng.normal(size=3), rng.normal(), armature=_armature(rng, 1)),
    lambda rng: Cylindrical(rng.normal(size=3), armature=_armature(rng, 2)),
    lambda rng: Translation(armature=_armature(rng, 3)),
    lambda rng: Spherical(armature=_armature(rng, 3)),
    lambda rng: Planar(armature=_armature(rng, 3)),
    lambda rng: Universal(rng.normal(size=3), rng.normal(size=3), armature=_armature(rng, 2)),
    lambda rng: Free(armature=_armature(rng, 6)),
)


def _serial_arm(b: MechanismBuilder, n: int, parent: str, at: tuple[float, float, float]) -> None:
    length, mass, radius = 0.3, 4.0, 0.06
    for i in range(1, n + 1):
        joint = Revolute(
            _Z if i % 2 else _Y,
            lower=-2.8 if i % 2 else -2.0,
            upper=2.8 if i % 2 else 2.0,
            velocity_limit=3.0,
            effort_limit=100.0,
            armature=0.02,
        )
        along = (0.0, 0.0, length)
        _link(b, f"link{i}", parent, joint, at, mass, along, radius, f"joint{i}")
        parent, at = f"link{i}", along
        length, mass, radius = 0.9 * length, 0.8 * mass, 0.9 * radius
    b.add_frame("tool", parent, Transform(translation=at))


def _link(
    b: MechanismBuilder,
    name: str,
    parent: str,
    joint: Joint,
    at: tuple[float, ...],
    mass: float,
    along: tuple[float, float, float],
    radius: float,
    joint_name: str,
) -> None:
    """A solid cylinder from the joint to the point `along`, which lies on a coordinate axis."""
    length = float(np.linalg.norm(along))
    axis = int(np.argmax(np.abs(along)))
    across = mass * (3 * radius**2 + length**2) / 12
    moments = np.full(3, across)
    moments[axis] = mass * radius**2 / 2
    center = tuple(0.5 * x for x in along)
    shape = Shape("cylinder", (radius, length), Transform(_along(axis), center))
    inertia = Inertia(mass, center, np.diag(moments))
    b.add(name, parent, joint, joint_name, Transform(translation=at), inertia, visuals=[shape])


def _along(axis: int) -> np.ndarray:
    """The rotation that lays z along a coordinate axis."""
    return np.eye(3) if axis == 2 else np.array(_TURN[axis], dtype=float)


def _box(
    b: MechanismBuilder,
    name: str,
    parent: str,
    joint: Joint,
    at: tuple[float, ...],
    mass: float,
    size: tuple[float, float, float],
    joint_name: str,
) -> None:
    """A solid box centred on its joint."""
    x, y, z = (s * s for s in size)
    inertia = Inertia(mass, (0.0, 0.0, 0.0), np.diag([y + z, x + z, x + y]) * mass / 12)
    shape = Shape("box", size)
    b.add(name, parent, joint, joint_name, Transform(translation=at), inertia, visuals=[shape])
