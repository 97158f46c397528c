"""URDF: every body and every frame a link, the ground a link "world", gravity and springs nowhere.

A link's frame is its joint's moving frame.  Where a body's is elsewhere, and not only turned or
shifted along the axis, the link at the joint is called "name/moving" and carries "name".
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from ..algebra.spatial import Inertia, Transform
from ..load.urdf import turn_z_to
from ..model.actuator import Actuator
from ..model.joints import Free, Joint, Planar, Prismatic, Revolute
from ..model.mechanism import Body, Mechanism
from ..model.shapes import Shape
from .losses import Losses
from .mesh_files import MeshFiles
from .parts import add, as_text, at_joints, has_inertia, number, numbers, the_one

__all__ = ["urdf_text"]

_GRAVITY = (0.0, 0.0, -9.81)  # what readers take for granted
_NO_LIMIT = 1e16  # what files write for infinity
_SIZES = {"box": ("size",), "sphere": ("radius",), "cylinder": ("radius", "length")}
_KINDS: dict[type[Joint], str] = {
    Revolute: "revolute",
    Prismatic: "prismatic",
    Free: "floating",
    Planar: "planar",
}
_INTERFACES = {
    **dict.fromkeys(("effort", "motor"), "Effort"),
    "position": "Position",
    "velocity": "Velocity",
}
_SPLIT = ("Universal", "Cylindrical", "Translation")


def urdf_text(
    mech: Mechanism, actuators: Iterable[Actuator], meshes: MeshFiles, losses: Losses
) -> str:
    """The text of a URDF file; meshes: what the file names."""
    if mech.gravity != _GRAVITY:
        losses.lose(f"gravity, which readers take for {_GRAVITY}", str(mech.gravity))
    mech = at_joints(mech, (k for k, b in enumerate(mech.bodies) if k and _absorbed(b) is None))
    writer = _Writer(mech, meshes, losses)
    root = writer.robot()
    for actuator in actuators:
        writer.transmission(root, actuator)
    return as_text(root)


def _absorbed(b: Body) -> tuple[Transform, np.ndarray] | None:
    """Origin and axis of a URDF joint whose moving frame is the body's; None if there is none."""
    O, axis = b.offset, np.array(getattr(b.joint, "axis", (0.0, 0.0, 1.0)))
    R, t = O.rotation, O.translation
    if isinstance(b.joint, Planar):
        n = R.T[:, 2]
        along = not t.any() and np.abs(turn_z_to(n) - R.T).max() < 8 * np.finfo(float).eps
        return (b.placement @ O, n) if along else None
    # a shift along the axis commutes with the turn about it, any shift with a slide
    along = not np.cross(t, axis).any() or isinstance(b.joint, Prismatic)
    one_axis = isinstance(b.joint, (Revolute, Prismatic))
    if Transform() == O or (one_axis and along):
        return b.placement @ O, R.T @ axis
    return None


class _Writer:
    """One document: the mechanism, and what is lost of it."""

    def __init__(self, mech: Mechanism, meshes: MeshFiles, losses: Losses) -> None:
        self.mech, self.meshes, self.losses = mech, meshes, losses
        self.taken = set(mech.joint_names)

    def robot(self) -> ET.Element:
        root, bodies = ET.Element("robot", name=self.mech.name), self.mech.bodies
        for b in bodies:
            self.link(root, b)
            if b.parent >= 0:
                self.joint(root, b, bodies[b.parent].name)
        own = {b.name for b in bodies}
        for f in self.mech.frames:
            if f.name not in own:
                add(root, "link", name=f.name)
                self.weld(root, f.name, bodies[f.body].name, f.placement)
        return root

    def link(self, root: ET.Element, b: Body) -> None:
        link = add(root, "link", name=b.name)
        if has_inertia(b.inertia):
            self.inertial(link, b.inertia)
        for tag, shapes in (("visual", b.visuals), ("collision", b.collisions)):
            for shape in shapes:
                self.shape(link, tag, shape, b.name)

    def inertial(self, link: ET.Element, inertia: Inertia) -> None:
        element = add(link, "inertial")
        add(element, "origin", xyz=numbers(inertia.com), rpy="0 0 0")
        add(element, "mass", value=number(inertia.mass))
        I = (inertia.about_com + inertia.about_com.T) / 2
        at = {"ixx": (0, 0), "ixy": (0, 1), "ixz": (0, 2), "iyy": (1, 1), "iyz": (1, 2)}
        moments = {name: number(I[i, j]) for name, (i, j) in at.items()}
        add(element, "inertia", **moments, izz=number(I[2, 2]))

    def shape(self, link: ET.Element, tag: str, shape: Shape, body: str) -> None:
        if shape.kind == "capsule":
            for part in _capsule(shape):
                self.shape(link, tag, part, body)
            return
        if shape.kind not in (*_SIZES, "mesh") or (shape.kind == "mesh" and not shape.mesh):
            without = " without a file" if shape.kind == "mesh" else ""
            self.losses.leave_out(f"a {shape.kind}{without}, of", body)
            return
        element = add(link, tag, **({"name": shape.name} if shape.name else {}))
        _origin(element, shape.placement)
        geometry = add(element, "geometry")
        if shape.kind == "mesh":
            name = self.meshes.name(shape)
            add(geometry, "mesh", filename=name, scale=numbers(shape.size))
        else:
            names = _SIZES[shape.kind]
            size = [numbers(shape.size)] if shape.kind == "box" else map(number, shape.size)
            add(geometry, shape.kind, **dict(zip(names, size, strict=True)))
        if tag == "visual":
            material = add(element, "material", name=f"rgba {numbers(shape.rgba)}")
            add(material, "color", rgba=numbers(shape.rgba))

    def joint(self, root: ET.Element, b: Body, parent: str) -> None:
        j, found = b.joint, _absorbed(b)
        if type(j) not in _KINDS or found is None:
            hint = " (hinge.edit.single_axis makes joints of one axis of it)"
            self.losses.refuse(f"a {j} joint{hint if str(j) in _SPLIT else ''}", b.joint_name)
            return
        bounded = isinstance(j, Prismatic) or np.isfinite([*_both(j)]).any()
        kind = "continuous" if isinstance(j, Revolute) and not bounded else _KINDS[type(j)]
        element = add(root, "joint", name=b.joint_name, type=kind)
        self.ends(element, parent, b.name, found[0])
        if not isinstance(j, Free):
            add(element, "axis", xyz=numbers(found[1]))
        self.limits(element, b, kind)
        self.dynamics(element, b)
        if j.mimic:
            ratio, offset = number(j.mimic.ratio), number(j.mimic.offset)
            add(element, "mimic", joint=j.mimic.joint, multiplier=ratio, offset=offset)

    def limits(self, element: ET.Element, b: Body, kind: str) -> None:
        j = b.joint
        attributes: dict[str, str] = {}
        if kind in ("revolute", "prismatic"):
            attributes["lower"], attributes["upper"] = map(_limit, _both(j))
        elif np.isfinite([*np.atleast_1d(j.lower), *np.atleast_1d(j.upper)]).any():
            self.losses.leave_out(f"limits of a {kind} joint, of", b.joint_name)
        for name, values in (("effort", j.effort_limit), ("velocity", j.velocity_limit)):
            value = the_one(values)
            if value is None:
                self.losses.leave_out(f"{name} limits that differ, of", b.joint_name)
            attributes[name] = _limit(np.inf if value is None else value)
        add(element, "limit", **attributes)

    def dynamics(self, element: ET.Element, b: Body) -> None:
        known = {"damping": "damping", "friction": "friction"}
        ours = {"armature": "armature", "stiffness": "spring_stiffness"}
        attributes = {}
        for datum, name in {**known, **ours}.items():
            value = the_one(getattr(b.joint, datum))
            if value is None:
                self.losses.lose(f"{datum} that differs by degree of freedom, of", b.joint_name)
            elif value:
                attributes[name] = number(value)
                if datum in ours:
                    what = f"{datum}, written as hinge reads it and others do not, of"
                    self.losses.leave_out(what, b.joint_name)
        if "spring_stiffness" in attributes:
            rest = the_one(b.joint.rest)
            if rest is None:
                self.losses.lose("rest that differs by degree of freedom, of", b.joint_name)
            attributes["spring_reference"] = number(rest or 0.0)
        if attributes:
            add(element, "dynamics", **attributes)

    def weld(self, root: ET.Element, name: str, parent: str, X: Transform) -> None:
        joint = f"{name}_fixed"
        while joint in self.taken:
            joint += "_"
        self.taken.add(joint)
        self.ends(add(root, "joint", name=joint, type="fixed"), parent, name, X)

    def transmission(self, root: ET.Element, a: Actuator) -> None:
        """An actuator of one joint: by what it is commanded, and its gear."""
        interface = _INTERFACES.get(a.type)
        if interface is None or len(a.joints) != 1:
            self.losses.leave_out("actuators of other types, or of several joints,", a.name)
            return
        if len(a.gears) != 1 or a != Actuator(
            a.name, a.type, a.joints, a.gears, dynamics=a.dynamics
        ):
            self.losses.leave_out("gains and ranges of actuators,", a.name)
        element = add(root, "transmission", name=f"{a.name}_transmission")
        add(element, "type").text = "transmission_interface/SimpleTransmission"
        named = f"hardware_interface/{interface}JointInterface"
        add(add(element, "joint", name=a.joints[0]), "hardwareInterface").text = named
        motor = add(element, "actuator", name=a.name)
        add(motor, "hardwareInterface").text = named
        add(motor, "mechanicalReduction").text = number(a.gears[0] if a.gears else 1.0)

    def ends(self, joint: ET.Element, parent: str, child: str, X: Transform) -> None:
        add(joint, "parent", link=parent)
        add(joint, "child", link=child)
        _origin(joint, X)


def _origin(element: ET.Element, X: Transform) -> None:
    add(element, "origin", xyz=numbers(X.translation), rpy=numbers(X.rpy))


def _both(joint: Joint) -> tuple[float, float]:
    """Lower and upper limit of a joint of one DoF; of any other, those that it cannot have."""
    if joint.nv != 1:
        return -np.inf, np.inf
    return float(np.atleast_1d(joint.lower)[0]), float(np.atleast_1d(joint.upper)[0])


def _limit(x: float) -> str:
    return number(x if np.isfinite(x) else np.copysign(_NO_LIMIT, x))


def _capsule(shape: Shape) -> list[Shape]:
    """A capsule as a cylinder and two spheres, which every reader knows."""
    radius, length = shape.size
    ends = [Transform(translation=(0, 0, side * length / 2)) for side in (1, -1)]
    balls = [
        replace(shape, kind="sphere", size=(radius,), placement=shape.placement @ X) for X in ends
    ]
    return [replace(shape, kind="cylinder"), *balls]
