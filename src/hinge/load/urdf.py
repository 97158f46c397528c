"""URDF: the robot files of ROS, read into a `Mechanism`.

Read are links (inertial, visual, collision), joints (revolute, continuous, prismatic, fixed,
floating, planar; origin, axis, limit, dynamics, mimic) and materials; other elements, such as
gazebo and transmission, are skipped.  Where files differ from the letter of the format:

- <limit> may be missing, or may lack `lower` and `upper` both: no limit.  If one is missing it is
  0.  Limits beyond 1e12 are none; every other number is at most 1e12 in size.
- <axis> may be missing: x.  It need not be of unit length.
- a planar joint moves in the plane normal to its axis; its x and y are those of the joint's frame,
  turned the shortest way that takes z to the axis.
- a fixed joint that mimics another stays fixed.
- unknown attributes on what matters for the dynamics are refused.

An <inertal> or a `multipler` that is skipped gives a robot that loads and moves wrongly.  So on the
elements that matter for the dynamics every attribute must be known, and no child may nearly be a
known one.  Attributes that real files carry for other programs are ignored, with one warning.
"""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from ..algebra.rotation import about_axis, from_rpy, quaternion_matrix
from ..algebra.spatial import Inertia, Transform
from ..errors import ModelError, ModelWarning
from ..model.builder import MechanismBuilder
from ..model.joints import Fixed, Free, Joint, Mimic, Planar, Prismatic, Revolute
from ..model.mechanism import GROUND, Mechanism, did_you_mean
from ..model.shapes import Shape
from .paths import PathLike, resolve_mesh
from .xml import MAX_SIZE, Element, parse, shortened

__all__ = ["ShapeReader", "check_spelling", "read_origin", "read_urdf"]

ROOT_JOINT = "root_joint"

_JOINTS: dict[str, type[Joint]] = {
    "revolute": Revolute,
    "continuous": Revolute,
    "prismatic": Prismatic,
    "fixed": Fixed,
    "floating": Free,
    "planar": Planar,
}
_INERTIA = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")


@dataclass(frozen=True)
class _Edge:
    """A joint of the file and the two links it joins."""

    element: Element
    name: str
    kind: str
    parent: str
    child: str

    def __str__(self) -> str:
        return f"{shortened(self.name)} (line {self.element.line})"


def read_urdf(
    text: str | bytes,
    source: str,
    floating_base: bool = False,
    package_dirs: Sequence[PathLike] = (),
    folder: PathLike | None = None,
) -> Mechanism:
    """The mechanism that a URDF text describes.

    source: the file's name, for messages; folder: where it lies, for relative mesh names.
    floating_base: the root link moves freely, carried by `Free()` "root_joint"; otherwise it is
    welded to the ground.  A root link named "world" is the ground itself, so it cannot float.
    package_dirs: where package:// leads, as in `resolve_mesh`.

    A wrong file is one `ModelError` "file:line: …"; an inertia that no body can have is a
    `ModelWarning`.
    """
    robot = parse(text, source)
    check_spelling(robot)
    links = _links(robot)
    edges = _edges(robot, links)
    root = _root(links, edges)
    mimics = _mimics(edges)
    reader = ShapeReader(folder, package_dirs)
    reader.learn(robot.all("material"))
    reader.learn(v.child("material") for link in links.values() for v in link.all("visual"))
    builder = MechanismBuilder((robot.get("name") or "").strip() or "robot", nonphysical="warn")
    if floating_base:
        _check_floating(links[root], edges)
    _add_root(builder, links[root], reader, floating_base)
    for edge in edges.values():
        joint = _joint(edge, mimics.get(edge.name))
        placement, offset = _frames(edge, joint)
        contents = _contents(links[edge.child], reader)
        with _at(links[edge.child]):
            builder.add(
                edge.child, edge.parent, joint, edge.name, placement, offset=offset, **contents
            )
    return builder.build()


# the tree of links


def _links(robot: Element) -> dict[str, Element]:
    links = _by_name(robot, "link")
    if not links:
        raise robot.error(f"{robot} has no <link>; a robot needs at least one")
    return links


def _by_name(robot: Element, tag: str) -> dict[str, Element]:
    found: dict[str, Element] = {}
    for element in robot.all(tag):
        name = element.string("name")
        if name in found:
            first = found[name].line
            raise element.error(f"{element} is there twice, first on line {first}; rename one")
        found[name] = element
    return found


def _edges(robot: Element, links: dict[str, Element]) -> dict[str, _Edge]:
    """The joints by name, in the order of the file; no link is carried twice."""
    edges: dict[str, _Edge] = {}
    carriers: dict[str, _Edge] = {}
    for name, element in _by_name(robot, "joint").items():
        kind = element.string("type")
        if kind not in _JOINTS:
            hint = did_you_mean(kind[:60], _JOINTS)
            raise element.error(f"{element} has unknown type {shortened(kind)}; {hint}")
        parent, child = (_end(element, tag, links) for tag in ("parent", "child"))
        edge = edges[name] = _Edge(element, name, kind, parent, child)
        first = carriers.setdefault(child, edge)
        if first is not edge:
            raise element.error(
                f"link {shortened(child)} is the child of joints {first} and {edge}; a tree needs "
                "one: remove the other and close the loop with a LoopConstraint"
            )
    return edges


def _end(joint: Element, tag: str, links: dict[str, Element]) -> str:
    element = joint.need(tag)
    name = element.string("link")
    if name not in links:
        hint = did_you_mean(name[:60], links)
        raise element.error(f"{joint} has unknown {tag} link {shortened(name)}; {hint}")
    return name


def _root(links: dict[str, Element], edges: dict[str, _Edge]) -> str:
    """The one link that no joint carries, and from which every link is reached."""
    carriers = {edge.child: edge for edge in edges.values()}
    roots = [name for name in links if name not in carriers]
    if len(roots) > 1:
        names = ", ".join(f"{shortened(n)} (line {links[n].line})" for n in roots[:8])
        raise links[roots[1]].error(
            f"{len(roots)} links have no parent: {names}; a robot has one root: join the rest to it"
        )
    settled = set(roots)
    for link in links:
        path: dict[str, _Edge] = {}
        while link not in settled:
            if link in path:
                raise _loop(path, link)
            path[link] = carriers[link]
            link = carriers[link].parent
        settled.update(path)
    if GROUND in links and roots[0] != GROUND:
        raise links[GROUND].error(
            f"link {GROUND!r} is the ground, but joint {carriers[GROUND]} moves it; rename the link"
        )
    return roots[0]


def _loop(path: dict[str, _Edge], start: str) -> ModelError:
    """The error about the links of a path from `start` on, which lead back to it."""
    names = list(path)
    loop = [path[name] for name in names[names.index(start) :]]
    listed = ", ".join(str(edge) for edge in loop[:8])
    return loop[0].element.error(
        f"joints {listed} form a loop that hangs on nothing; a tree is needed: remove one of them "
        "and close the loop with a LoopConstraint"
    )


# joints


def _mimics(edges: dict[str, _Edge]) -> dict[str, Mimic]:
    """What each follower follows in the end, through any chain of followers."""
    resolved: dict[str, Mimic] = {}
    for edge in edges.values():
        path: dict[str, Mimic] = {}
        while edge.name not in resolved and (mimic := _mimic(edge, edges)):
            if edge.name in path:
                raise _circle(path, edge)
            path[edge.name] = mimic
            edge = edges[mimic.joint]
        leader = resolved.get(edge.name, Mimic(edge.name))
        for name, mimic in reversed(path.items()):
            ratio, offset = mimic.ratio * leader.ratio, mimic.ratio * leader.offset + mimic.offset
            if max(abs(ratio), abs(offset)) > MAX_SIZE:
                raise edges[name].element.error(
                    f"joint {shortened(name)} follows {shortened(leader.joint)} {ratio:g} times, "
                    f"from {offset:g}; expected at most {MAX_SIZE:g}"
                )
            leader = resolved[name] = Mimic(leader.joint, ratio, offset)
    return resolved


def _circle(path: dict[str, Mimic], edge: _Edge) -> ModelError:
    """The error about the followers of a path from `edge` on, which lead back to it."""
    names = list(path)
    circle = ", ".join(shortened(name) for name in names[names.index(edge.name) :][:8])
    return edge.element.error(f"joints {circle} mimic one another in a circle; free one")


def _mimic(edge: _Edge, edges: dict[str, _Edge]) -> Mimic | None:
    """What a joint's own <mimic> says; a fixed joint follows nothing."""
    element = edge.element.child("mimic")
    if element is None or edge.kind == "fixed":
        return None
    leader = element.string("joint")
    where = f"joint {shortened(edge.name)} mimics {shortened(leader)}"
    if leader not in edges:
        raise element.error(f"{where}, which is not there; {did_you_mean(leader[:60], edges)}")
    for joint in (edges[leader], edge):
        nv = _JOINTS[joint.kind].nv
        if nv != 1:
            raise element.error(
                f"{where}, but {shortened(joint.name)} is {joint.kind} and has {nv} DoF; "
                "both need one"
            )
    return Mimic(leader, element.number("multiplier", 1.0), element.number("offset", 0.0))


def _joint(edge: _Edge, mimic: Mimic | None) -> Joint:
    kind = _JOINTS[edge.kind]
    if kind is Fixed:
        return Fixed()
    data: dict[str, Any] = {"mimic": mimic}
    dynamics, limit = edge.element.child("dynamics"), edge.element.child("limit")
    if dynamics is not None:
        data |= {name: dynamics.number(name, 0.0) for name in ("damping", "friction")}
        data["stiffness"] = dynamics.number("spring_stiffness", 0.0)
        data["rest"] = dynamics.number("spring_reference", 0.0)
    if limit is not None:
        data |= {f"{name}_limit": _limit(limit, name, np.inf) for name in ("velocity", "effort")}
        if edge.kind in ("revolute", "prismatic") and {"lower", "upper"} & limit.attributes.keys():
            data |= {name: _limit(limit, name, 0.0) for name in ("lower", "upper")}
    if kind in (Revolute, Prismatic):
        data["axis"] = _axis(edge.element)
    with _at(edge.element):
        return kind(**data)


def _limit(limit: Element, name: str, default: float) -> float:
    """A limit as it is meant: some programs write 1e16 for infinity."""
    value = limit.number(name, default, unbounded=True)
    return value if abs(value) <= MAX_SIZE else np.copysign(np.inf, value)


def _axis(joint: Element) -> np.ndarray:
    """The unit axis of a joint, in the joint's frame."""
    element = joint.child("axis")
    axis = np.array((1.0, 0.0, 0.0) if element is None else element.numbers("xyz", 3))
    length = np.linalg.norm(axis)
    if element is not None and length < 1e-12:
        raise element.error(f"{joint} has axis {tuple(axis.tolist())}; give a non-zero axis")
    return axis / length


def _frames(edge: _Edge, joint: Joint) -> tuple[Transform, Transform]:
    """Placement and offset of the joint; those of a planar one turn its z to the axis and back."""
    origin = read_origin(edge.element)
    if not isinstance(joint, Planar):
        return origin, Transform()
    turn = Transform(_turn_z_to(_axis(edge.element)))
    return origin @ turn, turn.inv


def _turn_z_to(n: np.ndarray) -> np.ndarray:
    """The smallest rotation with R z = n, for a unit vector n; half a turn about x for −z."""
    sine = np.hypot(n[0], n[1])
    axis = np.array([-n[1], n[0], 0]) / sine if sine > 1e-15 else np.array([1.0, 0.0, 0.0])
    return about_axis(axis, np.array([np.arctan2(sine, n[2])]))


# links


def _check_floating(root: Element, edges: dict[str, _Edge]) -> None:
    if root.string("name") == GROUND:
        raise root.error(
            f"the root link {GROUND!r} is the ground and cannot float; load with "
            "floating_base=False, or give the link another name"
        )
    if ROOT_JOINT in edges:
        raise edges[ROOT_JOINT].element.error(
            f"joint {ROOT_JOINT!r} has the name of the joint that carries the floating base; "
            "rename it"
        )


def _add_root(
    builder: MechanismBuilder, link: Element, reader: ShapeReader, floating_base: bool
) -> None:
    name, contents = link.string("name"), _contents(link, reader)
    if name == GROUND:
        builder.dress_ground(contents["visuals"], contents["collisions"])
        return
    # no joint of the file is called "", so a welded root takes no name away
    joint, joint_name = (Free(), ROOT_JOINT) if floating_base else (Fixed(), "")
    with _at(link):
        builder.add(name, GROUND, joint, joint_name, **contents)


def _contents(link: Element, reader: ShapeReader) -> dict[str, Any]:
    return {
        "inertia": _inertia(link),
        "visuals": reader.shapes(link, "visual"),
        "collisions": reader.shapes(link, "collision"),
    }


def _inertia(link: Element) -> Inertia:
    """The link's inertia in the axes of the link; without <inertial> there is none."""
    element = link.child("inertial")
    if element is None:
        return Inertia()
    xx, xy, xz, yy, yz, zz = (element.need("inertia").number(name) for name in _INERTIA)
    about_com = [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]
    mass = element.need("mass").number("value")
    return Inertia(mass, about_com=about_com).moved(read_origin(element))


@contextmanager
def _at(element: Element) -> Iterator[None]:
    """Give an error from further in the file and line of an element."""
    try:
        yield
    except ModelError as e:
        raise element.error(f"{element}: {e}") from None


_CHILDREN = {
    "robot": ("link", "joint", "material"),
    "link": ("inertial", "visual", "collision"),
    "joint": ("origin", "parent", "child", "axis", "limit", "dynamics", "mimic"),
    "inertial": ("origin", "mass", "inertia"),
}
_ATTRIBUTES = {
    "joint": ("name", "type"),
    "origin": ("xyz", "rpy", "quat_xyzw"),
    "parent": ("link",),
    "child": ("link",),
    "axis": ("xyz",),
    "limit": ("lower", "upper", "velocity", "effort"),
    "dynamics": ("damping", "friction", "spring_stiffness", "spring_reference"),
    "mimic": ("joint", "multiplier", "offset"),
    "mass": ("value",),
    "inertia": ("ixx", "ixy", "ixz", "iyy", "iyz", "izz"),
}
# of other programs, seen in files that are in use; none changes the dynamics
_FOREIGN = {
    "joint": ("dont_collapse",),
    "limit": ("acceleration", "deceleration", "jerk", "command_effort", "current", "gear_velocity"),
    "dynamics": ("D", "K", "mu_coulomb", "mu_viscous"),
}


def check_spelling(robot: Element) -> None:
    """Refuse what is not URDF, or is URDF but for a letter."""
    if robot.tag != "robot":
        raise robot.error(f"the root element is {robot}; expected <robot> for URDF")
    for child in robot.children:
        if child.tag.startswith("xacro:"):
            raise child.error(f"{child} is xacro, not URDF; expand the file with xacro first")
    ignored: dict[str, Element] = {}
    for element in _elements(robot):
        _check_children(element)
        _check_attributes(element, ignored)
    for tag, element in ignored.items():
        names = ", ".join(name for name in _FOREIGN[tag] if name in element.attributes)
        message = f"{element.where}: <{tag}> has {names}: not URDF, ignored here and further on"
        warnings.warn(message, ModelWarning, stacklevel=3)


def _elements(robot: Element) -> Iterator[Element]:
    """The elements that the dynamics and the shapes are read from."""
    yield robot
    for joint in robot.all("joint"):
        yield joint
        yield from joint.children
    for link in robot.all("link"):
        yield link
        for inertial in link.all("inertial"):
            yield inertial
            yield from inertial.children
        for shape in link.all("visual") + link.all("collision"):
            yield shape
            yield from shape.all("origin")


def _check_children(element: Element) -> None:
    """A child that is nearly a known one is misspelt; any other is an extension."""
    known = _CHILDREN.get(element.tag, ())
    for child in element.children if known else ():
        if child.tag not in known and (near := _nearly(child.tag, known)):
            raise child.error(
                f"{element} has an unknown element <{child.tag[:60]}>; did you mean <{near}>?"
            )


@lru_cache(maxsize=1000)
def _nearly(tag: str, known: tuple[str, ...]) -> str | None:
    return next(iter(difflib.get_close_matches(tag[:60].lower(), known, 1, 0.8)), None)


def _check_attributes(element: Element, ignored: dict[str, Element]) -> None:
    """Refuse unknown attributes; note where other programs' begin."""
    if element.tag not in _ATTRIBUTES:
        return
    foreign = _FOREIGN.get(element.tag, ())
    element.only(*_ATTRIBUTES[element.tag], ignoring=foreign)
    if any(name in element.attributes for name in foreign):
        ignored.setdefault(element.tag, element)


_SIZES = {"box": ("size",), "sphere": ("radius",), "cylinder": ("radius", "length")}
_SIZES["capsule"] = _SIZES["cylinder"]
_GREY = (0.7, 0.7, 0.7, 1.0)


def read_origin(element: Element) -> Transform:
    """The pose in the <origin> of an element; without one, the identity."""
    origin = element.child("origin")
    if origin is None:
        return Transform()
    xyz = origin.numbers("xyz", 3, (0.0, 0.0, 0.0))
    if origin.get("quat_xyzw") is None:
        return Transform(from_rpy(*origin.numbers("rpy", 3, (0.0, 0.0, 0.0))), xyz)
    if origin.get("rpy") is not None:
        raise origin.error("<origin> has both rpy and quat_xyzw; keep one")
    x, y, z, w = origin.numbers("quat_xyzw", 4)
    if w * w + x * x + y * y + z * z < 1e-12:
        raise origin.error("<origin> has quat_xyzw of length 0; give a unit quaternion")
    return Transform(quaternion_matrix(np.array([w, x, y, z])), xyz)


@dataclass(frozen=True)
class ShapeReader:
    """What shapes need besides their own element: colors by name, and where meshes are."""

    folder: PathLike | None
    package_dirs: Sequence[PathLike]
    colors: dict[str, tuple[float, ...]] = field(default_factory=dict)

    def learn(self, materials: Iterable[Element | None]) -> None:
        """Keep the colors that materials define; the first of a name counts."""
        for material in materials:
            color = None if material is None else material.child("color")
            if material is not None and color is not None and material.get("name"):
                self.colors.setdefault(material.string("name"), color.numbers("rgba", 4))

    def shapes(self, link: Element, tag: str) -> list[Shape]:
        """The shapes of a link; tag: "visual" or "collision"."""
        return [self._shape(element) for element in link.all(tag)]

    def _shape(self, element: Element) -> Shape:
        known = (*_SIZES, "mesh")
        geometry = element.need("geometry")
        if len(geometry.children) != 1:
            found = f"{len(geometry.children)} shapes" if geometry.children else "no shape"
            raise geometry.error(f"<geometry> has {found}; give one of {', '.join(known)}")
        shape, mesh = geometry.children[0], None
        if shape.tag == "mesh":
            size = shape.numbers("scale", 3, (1.0, 1.0, 1.0))
            name = shape.string("filename")
            mesh = resolve_mesh(name, self.folder, self.package_dirs, shape.where)
        elif shape.tag in _SIZES:
            size = _size(shape)
        else:
            hint = did_you_mean(shape.tag, known)
            raise shape.error(f"<geometry> has an unknown shape {shortened(shape.tag)}; {hint}")
        rgba = self._rgba(element.child("material"))
        name = element.get("name") or ""
        return Shape(shape.tag, size, read_origin(element), rgba, mesh, name)

    def _rgba(self, material: Element | None) -> tuple[float, float, float, float]:
        """The color of a material: its own, the one of its name, or grey."""
        if material is None:
            return _GREY
        color = material.child("color")
        if color is None:
            r, g, b, a = self.colors.get((material.get("name") or "").strip(), _GREY)
        else:
            r, g, b, a = color.numbers("rgba", 4)
        return r, g, b, a


def _size(shape: Element) -> tuple[float, ...]:
    size: tuple[float, ...] = ()
    for name in _SIZES[shape.tag]:
        size += shape.numbers(name, 3 if shape.tag == "box" else 1)
    if min(size) < 0:
        raise shape.error(f"<{shape.tag}> has a size of {min(size):g} m; it must not be negative")
    return size
