"""One random description of a tree, built by `MechanismBuilder` and by Pinocchio's `Model`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import hinge
from hinge.algebra.rotation import from_rpy
from mechanisms import Generic
from oracle.pinocchio_bridge import SWAP, PinocchioRobot, pin

GRAVITY = np.array([1.0, 2.0, -9.0])

Axes = tuple[np.ndarray, np.ndarray, np.ndarray]  # a and b at right angles, c oblique to both


def _composite(*joints: Any) -> Any:
    out = pin.JointModelComposite(len(joints))
    for joint in joints:
        out.addJoint(joint)
    return out


# each kind: hinge's joint and Pinocchio's, from three unit axes; pitch of the screw: 0.3 m per rad
KINDS: dict[str, Callable[[Axes], tuple[hinge.Joint, Any]]] = {
    "revolute": lambda x: (hinge.Revolute(x[0]), pin.JointModelRevoluteUnaligned(x[0])),
    "unbounded": lambda x: (hinge.Revolute((0, 0, 1)), pin.JointModelRUBZ()),
    "prismatic": lambda x: (hinge.Prismatic(x[0]), pin.JointModelPrismaticUnaligned(x[0])),
    "helical": lambda x: (hinge.Helical(x[0], 0.3), pin.JointModelHelicalUnaligned(x[0], 0.3)),
    "cylindrical": lambda x: (
        hinge.Cylindrical(x[0]),
        _composite(pin.JointModelRevoluteUnaligned(x[0]), pin.JointModelPrismaticUnaligned(x[0])),
    ),
    "translation": lambda x: (hinge.Translation(), pin.JointModelTranslation()),
    "spherical": lambda x: (hinge.Spherical(), pin.JointModelSpherical()),
    "planar": lambda x: (hinge.Planar(), pin.JointModelPlanar()),
    "universal": lambda x: (hinge.Universal(x[0], x[1]), pin.JointModelUniversal(x[0], x[1])),
    "oblique universal": lambda x: (
        hinge.Universal(x[0], x[2]),
        _composite(pin.JointModelRevoluteUnaligned(x[0]), pin.JointModelRevoluteUnaligned(x[2])),
    ),
    "free": lambda x: (hinge.Free(), pin.JointModelFreeFlyer()),
}


@dataclass(frozen=True)
class Part:
    """A body of a tree, its joint in both libraries, and which earlier part carries it."""

    name: str
    parent: int | None
    joint: hinge.Joint
    pin_joint: Any
    placement: hinge.Transform
    offset: hinge.Transform
    inertia: hinge.Inertia

    @property
    def joint_name(self) -> str:
        return f"{self.name}_joint"


def random_tree(kinds: Sequence[str], seed: int, forest: bool = False) -> list[Part]:
    """A part for each kind of joint, hung on one of the four before it.

    forest: the ground also carries some of the first parts, not the very first alone.
    """
    rng = np.random.default_rng(seed)
    parts: list[Part] = []
    for k, kind in enumerate(kinds):
        joint, pin_joint = KINDS[kind](_axes(rng))
        joint = replace(joint, armature=rng.uniform(0.1, 1.0, size=joint.nv))
        above = int(rng.integers(k - 4 if forest else max(0, k - 4), max(k, 1)))
        parent = above if 0 <= above < k else None
        poses = _pose(rng), _pose(rng)
        parts.append(Part(f"body{k}", parent, joint, pin_joint, *poses, _inertia(rng)))
    return parts


def robot_of(parts: Sequence[Part]) -> hinge.Robot:
    """The tree as hinge builds it."""
    builder = hinge.MechanismBuilder("tree", gravity=GRAVITY)
    for part in parts:
        parent = "world" if part.parent is None else parts[part.parent].name
        builder.add(
            part.name,
            parent,
            part.joint,
            part.joint_name,
            part.placement,
            part.inertia,
            part.offset,
        )
    return hinge.Robot(builder.build())


def model_of(parts: Sequence[Part]) -> Any:
    """The tree as Pinocchio builds it: depth first, without which its crba is wrong."""
    model = pin.Model()
    model.gravity.linear = GRAVITY

    def add(k: int, parent_id: int, X_JB: Any) -> None:
        part, offset = parts[k], _se3(parts[k].offset)
        joint = model.addJoint(
            parent_id, part.pin_joint, X_JB * _se3(part.placement), part.joint_name
        )
        inertia = pin.Inertia(part.inertia.mass, part.inertia.com, part.inertia.about_com)
        model.appendBodyToJoint(joint, inertia, offset)
        model.addBodyFrame(part.name, joint, offset, 0)
        for child in _children(parts, k):
            add(child, joint, offset)

    for root in _children(parts, None):
        add(root, 0, pin.SE3.Identity())
    model.armature = _armature(model, parts)
    return model


def oracle_of(parts: Sequence[Part]) -> PinocchioRobot:
    """Both, tied by name."""
    mimics = {part.joint_name: part.joint.mimic for part in parts if part.joint.mimic}
    followers = {name: (m.joint, m.ratio, m.offset) for name, m in mimics.items()}
    return PinocchioRobot(Generic(robot_of(parts)), model_of(parts), followers)


def _children(parts: Sequence[Part], parent: int | None) -> list[int]:
    return [k for k, part in enumerate(parts) if part.parent == parent]


def _armature(model: Any, parts: Sequence[Part]) -> np.ndarray:
    out = np.zeros(model.nv)
    for part in parts:
        joint = model.joints[model.getJointId(part.joint_name)]
        values = np.array(part.joint.armature)
        out[joint.idx_v : joint.idx_v + joint.nv] = values[SWAP] if joint.nv == 6 else values
    return out


def _axes(rng: np.random.Generator) -> Axes:
    a, b, _ = np.linalg.qr(rng.normal(size=(3, 3)))[0].T
    c = a + b + rng.normal(size=3)
    return a, b, c / np.linalg.norm(c)


def _pose(rng: np.random.Generator) -> hinge.Transform:
    return hinge.Transform(from_rpy(*rng.uniform(-3, 3, size=3)), rng.uniform(-0.5, 0.5, size=3))


def _inertia(rng: np.random.Generator) -> hinge.Inertia:
    """A mass, and the rotational inertia of eight points."""
    points = rng.normal(size=(8, 3)) * rng.uniform(0.05, 0.3)
    about_com = sum(p @ p * np.eye(3) - np.outer(p, p) for p in points)
    return hinge.Inertia(rng.uniform(0.5, 3.0), rng.uniform(-0.3, 0.3, size=3), about_com)


def _se3(X: hinge.Transform) -> Any:
    return pin.SE3(np.array(X.rotation), np.array(X.translation))
