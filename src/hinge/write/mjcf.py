"""MJCF: bodies in bodies, each with the joints that carry it, frames as sites, numbers as they are.

A body moves in its own frame: with X the pose at q = 0 and S the pose of the body in a joint's
moving frame then, P J(q) O = X S⁻¹ J(q) S, which is a joint about the axis Sᵀa through the anchor
−Sᵀt.  Bodies without mass that do no more than hold a joint become further joints of the next body,
as they are when such a file is read.
"""

from __future__ import annotations

import os
import xml.etree.ElementTree as ET
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from ..algebra.rotation import quaternion_exp, quaternion_from_matrix
from ..algebra.spatial import Transform
from ..load.mujoco_state import SPLIT
from ..model.actuator import Actuator
from ..model.joints import Free, Joint, Prismatic, Revolute, Spherical, Translation
from ..model.mechanism import Body, Frame, Mechanism
from ..model.shapes import Shape
from .losses import Losses
from .mesh_files import MeshFiles
from .parts import add, as_text, at_joints, has_inertia, number, numbers, the_one

__all__ = ["mjcf_text"]

_KINDS: dict[type[Joint], str] = {
    Revolute: "hinge",
    Prismatic: "slide",
    Spherical: "ball",
    Free: "free",
}
_SPLITTABLE = ("Universal", "Cylindrical", "Translation")
_MESHES = "binary .stl of at most 200000 triangles, .obj, .msh"
_NO_LIMIT = 1e10  # mjMAXVAL
_LEAST = 1e-15  # mjMINVAL, of what moves
_SAME = 1e-14  # how far frames that are one may be apart, m
_DATA = {
    "armature": "armature",
    "damping": "damping",
    "friction": "frictionloss",
    "stiffness": "stiffness",
}
# MuJoCo's viewer hides groups from 3 on
_SEEN = {"group": "0"}
_ONLY_SEEN = {"group": "2", "contype": "0", "conaffinity": "0"}
_HIDDEN = {"group": "3"}


def mjcf_text(
    mech: Mechanism, actuators: Iterable[Actuator], meshes: MeshFiles, losses: Losses
) -> str:
    """The text of an MJCF file; meshes: what the file names."""
    mech = at_joints(mech, (k for k, b in enumerate(mech.bodies) if k and _turned(b)))
    return as_text(_Writer(mech, meshes, losses).document(actuators))


def _turned(b: Body) -> bool:
    """Whether the coordinates of a joint belong to axes that are not the body's."""
    if isinstance(b.joint, Free):
        return b.offset != Transform()
    return isinstance(b.joint, Spherical) and not np.array_equal(b.offset.rotation, np.eye(3))


class _Writer:
    """One document: the mechanism, its meshes, and what is lost of it."""

    def __init__(self, mech: Mechanism, files: MeshFiles, losses: Losses) -> None:
        self.mech, self.files, self.losses = mech, files, losses
        self.meshes: dict[tuple[str, str], str] = {}
        self.geoms: set[str] = set()
        self.children: list[list[int]] = [[] for _ in mech.bodies]
        for p, k in mech.outward():
            self.children[p].append(k)

    def document(self, actuators: Iterable[Actuator]) -> ET.Element:
        root = ET.Element("mujoco", model=self.mech.name)
        flags = {"angle": "radian", "autolimits": "true", "inertiafromgeom": "false"}
        add(root, "compiler", **flags, fusestatic="false")
        add(root, "option", gravity=numbers(self.mech.gravity))
        assets, world = ET.Element("asset"), ET.Element("worldbody")
        self.ground(world)
        for (file, scale), name in self.meshes.items():
            add(assets, "mesh", name=name, file=file, scale=scale, inertia="shell")
        root.extend([assets, world] if self.meshes else [world])
        self.equality(root)
        section = ET.Element("actuator")
        for actuator in actuators:
            self.actuator(section, actuator)
        root.extend([section] * (len(section) > 0))
        return root

    # bodies

    def ground(self, world: ET.Element) -> None:
        ground, frames = self.mech.bodies[0], self.frames_on(0)
        if has_inertia(ground.inertia) and frames:
            # a body that stands still keeps what is welded to the ground
            first = frames.pop(0)
            still = add(world, "body", name=first.name, **_pose(first.placement))
            inertia = ground.inertia.moved(first.placement.inv)
            self.inertial(still, replace(ground, inertia=inertia))
        self.contents(world, ground, frames)
        for k in self.children[0]:
            self.body(world, k)

    def body(self, parent: ET.Element, k: int) -> None:
        """The element of a body, with all beyond it."""
        chain = self.chain(k)
        last = self.mech.bodies[chain[-1]]
        element = add(parent, "body", name=last.name, **_pose(self.rest(chain)))
        self.joints(element, chain)
        self.inertial(element, last)
        self.contents(element, last, self.frames_on(chain[-1]))
        for child in self.children[chain[-1]]:
            self.body(element, child)

    def chain(self, k: int) -> list[int]:
        """The bodies that are one in the file: those that do no more than hold a joint, and called
        so, before the next one, and that one.
        """
        chain = [k]
        while self.only_holds_a_joint(chain[-1]):
            chain.append(self.children[chain[-1]][0])
        names = [self.mech.bodies[i] for i in chain]
        called = [b.name.rstrip("_") == f"{names[-1].name}/{b.joint_name}" for b in names[:-1]]
        return chain if self.is_split_free(k) or all(called) else [k]

    def only_holds_a_joint(self, k: int) -> bool:
        """Whether there is nothing on a body but the next one."""
        b = self.mech.bodies[k]
        if has_inertia(b.inertia) or b.visuals or b.collisions or self.frames_on(k):
            return False
        held = isinstance(b.joint, (Revolute, Prismatic)) or self.is_split_free(k)
        return held and len(self.children[k]) == 1

    def is_split_free(self, k: int) -> bool:
        """Whether a body and the next one are moved by the two halves of a free joint."""
        b = self.mech.bodies[k]
        if not isinstance(b.joint, Translation) or b.parent or len(self.children[k]) != 1:
            return False
        child, stay = self.mech.bodies[self.children[k][0]], Transform()
        names = [x.joint_name.removesuffix(s) for x, s in zip((b, child), SPLIT, strict=True)]
        poses = (b.placement, b.offset, child.placement, child.offset)
        alike = names[0] == names[1] != b.joint_name and all(stay == X for X in poses)
        return isinstance(child.joint, Spherical) and alike

    def rest(self, chain: list[int]) -> Transform:
        """The pose of the last body in what carries the first, at q = 0.

        A free joint counts from the world; its spring pulls to the pose that its body has here.
        """
        first, X = self.mech.bodies[chain[0]], Transform()
        if isinstance(first.joint, Free) and np.any(first.joint.stiffness):
            rest = np.array(first.joint.rest)
            return Transform.from_quaternion(quaternion_exp(rest[:3]), rest[3:])
        if self.is_split_free(chain[0]):
            turn = np.array(self.mech.bodies[chain[1]].joint.rest)
            return Transform.from_quaternion(quaternion_exp(turn), first.joint.rest)
        for k in chain:
            X = X @ self.mech.bodies[k].placement @ self.mech.bodies[k].offset
        return X

    # joints

    def joints(self, element: ET.Element, chain: list[int]) -> None:
        """The joints of a chain, about axes and through anchors of the last body's frame."""
        bodies = [self.mech.bodies[k] for k in chain]
        if self.is_split_free(chain[0]):
            name = bodies[0].joint_name.removesuffix(SPLIT[0])
            parts = [b.joint for b in bodies]
            attributes = self.data(name, {n: _joined(parts, n) for n in _DATA})
            add(element, "joint", name=name, type="free", **attributes)
            return
        found, S = [], Transform()
        for b in reversed(bodies):
            if np.abs(S.matrix - np.eye(4)).max() > _SAME:
                self.losses.leave_out("the frame of a body between joints,", b.name)
            S = b.offset @ S
            found.insert(0, (b, S))
            S = b.placement @ S
        for b, S in found:
            self.joint(element, b, S)

    def joint(self, element: ET.Element, b: Body, S: Transform) -> None:
        """One joint; S: the pose of the file's body in the joint's moving frame, at q = 0."""
        j, name, R = b.joint, b.joint_name, S.rotation.T
        kind = _KINDS.get(type(j))
        if kind is None:
            hint = " (hinge.edit.single_axis makes joints of one axis of it)"
            self.losses.refuse(f"a {j} joint{hint if str(j) in _SPLITTABLE else ''}", name)
            return
        attributes = {"name": name, "type": kind}
        if kind != "free":
            attributes["pos"] = numbers(-R @ S.translation)
        elif b.parent or b.placement != Transform():
            self.losses.refuse("a free joint that does not count from the world's origin", name)
        if isinstance(j, (Revolute, Prismatic)):
            attributes["axis"] = numbers(R @ np.array(j.axis))
            attributes |= self.limits(name, j)
        self.check(name, j)
        # those of a free joint are along other axes there
        none = ("armature", "friction") if kind == "free" else ()
        data = {n: np.atleast_1d(getattr(j, n)) * (n not in none) for n in _DATA}
        attributes |= self.data(name, data)
        add(element, "joint", **attributes)

    def data(self, name: str, data: dict[str, np.ndarray]) -> dict[str, str]:
        """Losses and springs of a joint, each one number for all degrees of freedom."""
        attributes = {}
        for datum, attribute in _DATA.items():
            value = the_one(data[datum])
            if value is None:
                self.losses.lose(f"{datum} that differs by degree of freedom, of", name)
            elif value:
                attributes[attribute] = number(value)
        return attributes

    def check(self, name: str, j: Joint) -> None:
        """What MuJoCo means otherwise, or has no place for."""
        if isinstance(j, Free) and (np.any(j.armature) or np.any(j.friction)):
            self.losses.lose("armature and friction of a free joint, along axes of the body", name)
        if isinstance(j, Spherical) and np.any(j.stiffness) and np.any(j.rest):
            self.losses.lose("where the spring of a ball joint is slack, of", name)
        if np.isfinite(j.velocity_limit).any():
            self.losses.leave_out("velocity limits, of", name)
        if not isinstance(j, (Revolute, Prismatic)) and np.isfinite(j.effort_limit).any():
            self.losses.leave_out("effort limits, of", name)
        if j.mimic:
            what = "a joint that mimics another, by a constraint that is soft in MuJoCo and that "
            self.losses.leave_out(f"{what}hinge.load reads with constraints=True,", name)

    def limits(self, name: str, j: Joint) -> dict[str, str]:
        """Range and spring of a hinge or slide."""
        (lower,), (upper,), (effort,), (rest,) = (
            np.atleast_1d(x) for x in (j.lower, j.upper, j.effort_limit, j.rest)
        )
        attributes = {"springref": number(rest)} if np.any(j.stiffness) else {}
        if np.isfinite([lower, upper]).any():
            if lower == upper:
                self.losses.leave_out("limits that leave no room, of", name)
            else:
                bounds = np.clip([lower, upper], -_NO_LIMIT, _NO_LIMIT)
                attributes["range"] = numbers(bounds)
        if effort == 0:
            self.losses.leave_out("effort limits of 0, of", name)
        elif np.isfinite(effort):
            attributes["actuatorfrcrange"] = numbers([-effort, effort])
        return attributes

    def equality(self, root: ET.Element) -> None:
        """Joints that mimic others, which are constraints here."""
        followers = [b for b in self.mech.bodies if b.joint.mimic]
        element = add(root, "equality") if followers else root
        for b in followers:
            mimic = b.joint.mimic
            if mimic is not None:
                law = numbers([mimic.offset, mimic.ratio, 0, 0, 0])
                pair = {"joint1": b.joint_name, "joint2": mimic.joint}
                add(element, "joint", **pair, polycoef=law)

    def actuator(self, section: ET.Element, a: Actuator) -> None:
        """A motor or servo of one joint, by the numbers of its law."""
        if a.dynamics or len(a.joints) != 1 or len(a.gears) != 1:
            self.losses.leave_out("actuators without a law, or of several joints,", a.name)
            return
        attributes = {"gainprm": numbers(a.gain), "biasprm": numbers(a.bias)}
        for name, values in (("gaintype", a.gain[1:]), ("biastype", a.bias)):
            attributes |= {name: "affine"} if any(values) else {}
        for name, ends in (("ctrlrange", a.control_range), ("forcerange", a.force_range)):
            if np.isfinite(ends).any():
                attributes[name] = numbers(np.clip(ends, -_NO_LIMIT, _NO_LIMIT))
        gear = number(a.gears[0])
        add(section, "general", name=a.name, joint=a.joints[0], gear=gear, **attributes)

    # what is on a body

    def frames_on(self, k: int) -> list[Frame]:
        own = self.mech.bodies[k].name
        return [f for f in self.mech.frames if f.body == k and f.name != own]

    def inertial(self, element: ET.Element, b: Body) -> None:
        """The inertia of a body by its principal axes: MuJoCo's own search for them is coarse."""
        inertia = b.inertia
        I = (inertia.about_com + inertia.about_com.T) / 2
        moments, axes = np.diag(I), np.eye(3)
        if (np.diag(moments) != I).any():
            moments, axes = np.linalg.eigh(I)
            axes = axes * np.sign(np.linalg.det(axes))
        self.check_inertia(b, moments)
        place = {"pos": numbers(inertia.com), "quat": numbers(quaternion_from_matrix(axes))}
        amount = {"mass": number(inertia.mass), "diaginertia": numbers(moments)}
        add(element, "inertial", **place, **amount)

    def check_inertia(self, b: Body, moments: np.ndarray) -> None:
        a, m, c = np.sort(moments)
        if b.parent >= 0 and min(b.inertia.mass, a) < _LEAST:
            self.losses.refuse("a body that moves and has no mass or no moment of inertia", b.name)
        elif a + m < c * (1 - 4 * np.finfo(float).eps):
            self.losses.refuse("an inertia that no body can have, of", b.name)

    def contents(self, element: ET.Element, b: Body, frames: list[Frame]) -> None:
        for shape in b.visuals:
            both = shape in b.collisions
            self.geom(element, b, shape, _SEEN if both else _ONLY_SEEN)
        for shape in b.collisions:
            if shape not in b.visuals:
                self.geom(element, b, shape, _HIDDEN)
        for f in frames:
            add(element, "site", name=f.name, **_pose(f.placement), group="4")

    def geom(self, element: ET.Element, b: Body, shape: Shape, role: dict[str, str]) -> None:
        size = self.size(b, shape)
        if size is None:
            return
        attributes = {"type": shape.kind, **size, **_pose(shape.placement), **role}
        if shape.name and shape.name not in self.geoms:
            attributes["name"] = shape.name
            self.geoms.add(shape.name)
        add(element, "geom", **attributes, rgba=numbers(shape.rgba))

    def size(self, b: Body, shape: Shape) -> dict[str, str] | None:
        """How large a shape is, in MuJoCo's words; None if it has no place there."""
        if shape.kind == "mesh":
            return self.mesh(b, shape)
        if shape.kind == "plane":
            size = (*shape.size, 0.05)
        elif min(shape.size) > 0:
            size = {"box": (0.5, 0.5, 0.5), "cylinder": (1, 0.5), "capsule": (1, 0.5)}
            size = np.array(shape.size) * size.get(shape.kind, 1)
        else:
            size = None
        if size is None or (shape.kind == "plane" and b.parent >= 0):
            self.losses.leave_out(f"a {shape.kind} of no size, or that moves, of", b.name)
            return None
        return {"size": numbers(size)}

    def mesh(self, b: Body, shape: Shape) -> dict[str, str] | None:
        path = shape.mesh or ""
        if not _is_readable(path):
            what = f"meshes that are not there, or that MuJoCo cannot read ({_MESHES}), of"
            self.losses.leave_out(what, b.name)
            return None
        if not shape.may_read:
            what = (
                "meshes far from the robot's own file, unless that is loaded with package_dirs, of"
            )
            self.losses.leave_out(what, b.name)
            return None
        asked = self.files.name(shape), numbers(shape.size)
        return {"mesh": self.meshes.setdefault(asked, f"mesh{len(self.meshes)}")}


def _pose(X: Transform) -> dict[str, str]:
    return {"pos": numbers(X.translation), "quat": numbers(quaternion_from_matrix(X.rotation))}


def _is_readable(path: str) -> bool:
    """Whether MuJoCo reads a mesh file; text in an STL file it does not."""
    if not os.path.isfile(path):
        return False
    if not path.lower().endswith(".stl"):
        return path.lower().endswith((".obj", ".msh"))
    with open(path, "rb") as file:
        count = int.from_bytes(file.read(84)[80:], "little")
    return os.path.getsize(path) == 84 + 50 * count and 0 < count <= 200_000


def _joined(parts: list[Joint], name: str) -> np.ndarray:
    """A datum of joints, one after the other."""
    return np.concatenate([np.atleast_1d(getattr(joint, name)) for joint in parts])
