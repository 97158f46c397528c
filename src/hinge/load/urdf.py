"""URDF: the robot files of ROS, read into a `Mechanism`.

Read are links (inertial, visual, collision), joints (revolute, continuous, prismatic, fixed,
floating, planar, spherical; origin, axis, limit, dynamics, mimic) and materials; gazebo,
transmission and the like are skipped.  Where files differ from the letter of the format:

- <limit> may be missing, or may lack `lower` and `upper` both: no limit.  If one is missing it is
  0.  Limits beyond 1e12 are none; every other number is at most 1e12 in size.
- <axis> may be missing: x.  It need not be of unit length.
- a planar joint moves in the plane normal to its axis; its x and y are those of the joint's frame,
  turned the shortest way that takes z to the axis.
- a fixed joint that mimics another stays fixed.

Real files have faults.  One that does not touch the dynamics is a remark, which becomes a
`ModelWarning`: shapes, colors and limits are read as far as they can be.  One that does and has a
single sensible meaning is read so, with a remark: products of inertia that are left out are 0, a
mass without <inertia> is a point.  Nothing else is guessed: an <inertal> or a `multipler` that is
skipped would give a robot that loads and moves wrongly.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ..algebra.rotation import about_axis
from ..algebra.spatial import Inertia, Transform
from ..errors import ModelError
from ..model.builder import MechanismBuilder
from ..model.joints import Fixed, Free, Joint, Mimic, Planar, Prismatic, Revolute, Spherical
from ..model.mechanism import GROUND, Mechanism, did_you_mean
from .paths import PathLike
from .urdf_shapes import ShapeReader, origin_pose
from .xml import MAX_SIZE, Element, parse, shortened

__all__ = ["check_spelling", "mechanism_of", "read_urdf", "turn_z_to"]

ROOT_JOINT = "root_joint"

_JOINTS: dict[str, type[Joint]] = {
    "revolute": Revolute,
    "continuous": Revolute,
    "prismatic": Prismatic,
    "fixed": Fixed,
    "floating": Free,
    "planar": Planar,
    "spherical": Spherical,
}
_PRODUCTS = ((0, 1, "ixy", "iyx"), (0, 2, "ixz", "izx"), (1, 2, "iyz", "izy"))


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
    lenient: bool = False,
) -> Mechanism:
    """The mechanism that a URDF text describes.

    source: the file's name, for messages; folder: where it lies, for relative mesh names.
    floating_base: the root link moves freely, carried by `Free()` "root_joint"; otherwise it is
    welded to the ground.  A root link named "world" is the ground itself, so it cannot float.
    package_dirs: where package:// leads, as in `package_folders`.
    lenient: go on past faults that do no harm: a mimic of a joint that is not there or has not one
    DoF (the joint moves on its own), a link that nothing is joined to, negative damping or friction
    (left out).

    A wrong file is one `ModelError` "file:line: …"; what is odd but can be read is a
    `ModelWarning`, and so is an inertia that no body can have.
    """
    return mechanism_of(parse(text, source), floating_base, package_dirs, folder, lenient)


def mechanism_of(
    robot: Element,
    floating_base: bool = False,
    package_dirs: Sequence[PathLike] = (),
    folder: PathLike | None = None,
    lenient: bool = False,
) -> Mechanism:
    """The mechanism that the root element of a URDF file describes; arguments as of `read_urdf`."""
    robot.remarks.lenient = lenient
    check_spelling(robot)
    links = _links(robot)
    edges = _edges(robot, links)
    root = _root(links, edges)
    mimics = _mimics(edges)
    reader = ShapeReader(folder, package_dirs)
    reader.learn(robot.all("material"))
    reader.learn(
        m for link in links.values() for v in link.all("visual") for m in v.all("material")
    )
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
    robot.remarks.tell()
    return builder.build()


# the tree of links


def _links(robot: Element) -> dict[str, Element]:
    links = _by_name(robot, "link")
    if not links:
        raise robot.error(f"{robot} has no <link>; a robot needs at least one")
    for parent in (parent for joint in robot.all("joint") for parent in joint.all("parent")):
        if (parent.get("link") or "").strip() == GROUND and GROUND not in links:
            links[GROUND] = Element("link", {"name": GROUND}, parent.source, parent.line)
            parent.remark("ground", f"there is no link {GROUND!r}; it is taken for the ground")
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
        kind = _kind(element)
        parent, child = (_end(element, tag, links) for tag in ("parent", "child"))
        edge = edges[name] = _Edge(element, name, kind, parent, child)
        first = carriers.setdefault(child, edge)
        if first is not edge:
            raise element.error(
                f"link {shortened(child)} is the child of joints {first} and {edge}; a tree needs "
                "one: remove the other and close the loop with a LoopConstraint"
            )
    return edges


def _kind(joint: Element) -> str:
    written = joint.string("type")
    kind = written.lower()
    if kind not in _JOINTS:
        hint = did_you_mean(kind[:60], _JOINTS)
        raise joint.error(f"{joint} has unknown type {shortened(written)}; {hint}")
    if kind != written:
        joint.remark("type", f"{joint} has type {written!r}; it is read as {kind!r}")
    return kind


def _end(joint: Element, tag: str, links: dict[str, Element]) -> str:
    element = _only(joint, tag)
    if element is None:
        raise joint.error(f"{joint} has no <{tag}>; add one")
    name = element.string("link")
    if name not in links:
        hint = did_you_mean(name[:60], links)
        raise element.error(f"{joint} has unknown {tag} link {shortened(name)}; {hint}")
    return name


def _root(links: dict[str, Element], edges: dict[str, _Edge]) -> str:
    """The one link that no joint carries, and from which every link is reached."""
    carriers = {edge.child: edge for edge in edges.values()}
    roots = [name for name in links if name not in carriers]
    parents = {edge.parent for edge in edges.values()}
    for name in [n for n in roots if n not in parents and links[n].remarks.lenient]:
        if len(roots) > 1:
            stray = links.pop(name)
            stray.remark(f"stray {name}", f"{stray} is joined to nothing; it is left out")
            roots.remove(name)
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
    element = _only(edge.element, "mimic")
    if element is None or edge.kind == "fixed":
        return None
    leader = element.string("joint")
    where = f"joint {shortened(edge.name)} mimics {shortened(leader)}"
    alone = "the joint moves on its own"
    if leader not in edges:
        hint = did_you_mean(leader[:60], edges)
        element.fault(f"{where}, which is not there", hint, alone)
        return None
    for joint in (edges[leader], edge):
        nv = _JOINTS[joint.kind].nv
        if nv != 1:
            what = f"{where}, but {shortened(joint.name)} is {joint.kind} and has {nv} DoF"
            element.fault(what, "both need one", alone)
            return None
    return Mimic(leader, element.number("multiplier", 1.0), element.number("offset", 0.0))


def _joint(edge: _Edge, mimic: Mimic | None) -> Joint:
    kind = _JOINTS[edge.kind]
    if kind is Fixed:
        return Fixed()
    data: dict[str, Any] = {"mimic": mimic}
    dynamics = _only(edge.element, "dynamics")
    if dynamics is not None:
        data |= {name: dynamics.number(name, 0.0) for name in ("damping", "friction", "armature")}
        data["stiffness"] = dynamics.number("spring_stiffness", 0.0)
        for name in ("damping", "friction"):
            if data[name] < 0 and dynamics.remarks.lenient:
                what = f"{edge.element} has {name}={data[name]:g}, below 0; it is left out"
                dynamics.remark(f"{name} of {edge.name}", what)
                data[name] = 0.0
        data["rest"] = dynamics.number("spring_reference", 0.0)
    data |= _limits(edge)
    if kind in (Revolute, Prismatic):
        data["axis"] = _axis(edge.element)
    with _at(edge.element):
        return kind(**data)


def _limits(edge: _Edge) -> dict[str, float]:
    """The limits of a joint; what cannot be one is none, since the dynamics does not know them."""
    limit, *others = edge.element.all("limit") or [None]
    if limit is None:
        return {}
    if others:
        limit.remark("limits", f"{edge.element} has {len(others) + 1} <limit>; the first is used")
    data = {}
    for name in ("velocity", "effort"):
        data[f"{name}_limit"] = value = _limit(limit, name, np.inf)
        if value < 0:
            limit.remark(name, f"<limit> has {name}={value:g}, below 0; it is left out")
            data[f"{name}_limit"] = np.inf
    if edge.kind in ("revolute", "prismatic") and {"lower", "upper"} & limit.attributes.keys():
        lower, upper = (_limit(limit, name, 0.0) for name in ("lower", "upper"))
        if lower <= upper:
            return data | {"lower": lower, "upper": upper}
        limit.remark(
            "lower", f"<limit> has lower={lower:g} above upper={upper:g}; both are left out"
        )
    return data


def _limit(limit: Element, name: str, default: float) -> float:
    """A limit as it is meant: some programs write 1e16 for infinity."""
    try:
        value = limit.number(name, default, unbounded=True)
    except ModelError as e:
        limit.remarks.add("limit", f"{e}; it is left out")
        return -np.inf if name == "lower" else np.inf
    return value if abs(value) <= MAX_SIZE else np.copysign(np.inf, value)


def _axis(joint: Element) -> np.ndarray:
    """The unit axis of a joint, in the joint's frame."""
    element = _only(joint, "axis")
    axis = np.array((1.0, 0.0, 0.0) if element is None else element.numbers("xyz", 3))
    length = np.linalg.norm(axis)
    if element is not None and length < 1e-12:
        raise element.error(f"{joint} has axis {tuple(axis.tolist())}; give a non-zero axis")
    return axis / length


def _frames(edge: _Edge, joint: Joint) -> tuple[Transform, Transform]:
    """Placement and offset of the joint; those of a planar one turn its z to the axis and back."""
    origin = origin_pose(_only(edge.element, "origin"))
    if not isinstance(joint, Planar):
        return origin, Transform()
    turn = Transform(turn_z_to(_axis(edge.element)))
    return origin @ turn, turn.inv


def turn_z_to(n: np.ndarray) -> np.ndarray:
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
        builder.dress_ground(**contents)
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
    element = _only(link, "inertial")
    if element is None:
        return Inertia()
    mass, tensor = (_only(element, tag) for tag in ("mass", "inertia"))
    about_com = np.zeros((3, 3)) if tensor is None else _tensor(tensor)
    if mass is None and (about_com.any() or element.all("density")):
        raise element.error("<inertial> has no <mass>, and one is meant; add it")
    if mass is None:
        element.remark("inertial", "<inertial> has no <mass> and no moments; the link has none")
        return Inertia()
    if tensor is None:
        element.remark("point", "<inertial> has no <inertia>; it is a point mass")
    origin = origin_pose(_only(element, "origin"))
    return Inertia(mass.number("value"), about_com=about_com).moved(origin)


def _tensor(element: Element) -> np.ndarray:
    """The symmetric matrix of an <inertia>."""
    about_com = np.diag([element.number(name) for name in ("ixx", "iyy", "izz")])
    for i, j, name, mirrored in _PRODUCTS:
        about_com[i, j] = about_com[j, i] = _product(element, name, mirrored)
    return about_com


def _product(element: Element, name: str, mirrored: str) -> float:
    """A product of inertia; it may be left out, or have the name of its mirror image, or both."""
    given = [n for n in (name, mirrored) if n in element.attributes]
    values = [element.number(n) for n in given]
    if not given:
        element.remark("products", f"<inertia> has no {name}; it is taken for 0")
        return 0.0
    if given == [mirrored]:
        element.remark("mirrored", f"<inertia> has {mirrored}; it is read as {name}")
    if not math.isclose(values[0], values[-1], rel_tol=1e-6):
        raise element.error(
            f"<inertia> has {name}={values[0]:g} and {mirrored}={values[1]:g}; an inertia is "
            "symmetric: keep one"
        )
    return values[0]


def _only(element: Element, tag: str) -> Element | None:
    """The child with a tag, if there is one; any other must say the same."""
    found = element.all(tag)
    for other in found[1:]:
        if not _same(other, found[0]):
            raise other.error(
                f"{element} has {len(found)} <{tag}>, the first on line {found[0].line}; keep one"
            )
        other.remark(f"second {tag}", f"{element} has a second <{tag}> like the first; one is used")
    return found[0] if found else None


def _same(one: Element, other: Element) -> bool:
    """Whether two elements say the same."""
    pairs = zip(one.children, other.children, strict=False)
    equal = (one.tag, one.attributes) == (other.tag, other.attributes)
    return equal and len(one.children) == len(other.children) and all(_same(*p) for p in pairs)


@contextmanager
def _at(element: Element) -> Iterator[None]:
    """Give an error from further in the file and line of an element."""
    try:
        yield
    except ModelError as e:
        raise element.error(f"{element}: {e}") from None


# spelling

_CHILDREN = {
    "robot": ("link", "joint", "material"),
    "link": ("inertial", "visual", "collision"),
    "joint": ("origin", "parent", "child", "axis", "limit", "dynamics", "mimic"),
    "inertial": ("origin", "mass", "inertia"),
}
# what other programs read and what cannot be meant for the dynamics
_SKIPPED = {
    "robot": ("gazebo", "transmission", "ros2_control", "mujoco", "sensor", "xacro:property"),
    "joint": ("calibration", "safety_controller", "hardwareInterface", "gazebo"),
    "inertial": (),
}
_COSMETIC = ("visual", "collision", "material", "limit")
_ATTRIBUTES = {
    "joint": ("name", "type"),
    "origin": ("xyz", "rpy", "quat_xyzw"),
    "parent": ("link",),
    "child": ("link",),
    "axis": ("xyz",),
    "limit": ("lower", "upper", "velocity", "effort"),
    "dynamics": ("damping", "friction", "armature", "spring_stiffness", "spring_reference"),
    "mimic": ("joint", "multiplier", "offset"),
    "mass": ("value",),
    "inertia": ("ixx", "iyy", "izz", "ixy", "ixz", "iyz", "iyx", "izx", "izy"),
}
# where every attribute may be left out, so that a misspelt one would be
_STRICT = ("origin", "mimic", "inertia")


def check_spelling(robot: Element) -> None:
    """Refuse what is not URDF, or is URDF but for a letter; remark on what is skipped."""
    if robot.tag != "robot":
        raise robot.error(f"the root element is {robot}; expected <robot> for URDF")
    for child in robot.children:
        if child.tag.startswith("xacro:") and child.tag not in _SKIPPED["robot"]:
            raise child.error(
                f"{child} is xacro, not URDF; expand it: name the file .xacro, or load it with "
                "xacro_args={}"
            )
    for joint in (joint for other in robot.all("gazebo") for joint in other.all("joint")):
        joint.remark("loops", f"<gazebo> closes a loop by {joint}, which is left out")
    for element in _elements(robot):
        _check_children(element)
        _check_attributes(element)


def _elements(robot: Element) -> Iterator[Element]:
    """The elements that the dynamics is read from."""
    yield robot
    for joint in robot.all("joint"):
        yield joint
        yield from joint.children
    for link in robot.all("link"):
        yield link
        for inertial in link.all("inertial"):
            yield inertial
            yield from inertial.children


def _check_children(element: Element) -> None:
    """A child that is nearly a known one is misspelt; any other is an extension."""
    known, skipped = _CHILDREN.get(element.tag, ()), _SKIPPED.get(element.tag)
    for child in element.children if known else ():
        if child.tag in known:
            continue
        near = _nearly(child.tag, known)
        if near and near not in _COSMETIC:
            raise child.error(
                f"{element} has an unknown element <{child.tag[:60]}>; did you mean <{near}>?"
            )
        if near or (skipped is not None and child.tag not in skipped):
            hint = f"; did you mean <{near}>?" if near else ""
            child.remark(
                f"element of {element.tag}",
                f"{element} has an unknown element <{child.tag[:60]}>, left out{hint}",
            )


@lru_cache(maxsize=1000)
def _nearly(word: str, known: tuple[str, ...]) -> str | None:
    return next(iter(difflib.get_close_matches(word[:60].lower(), known, 1, 0.8)), None)


def _check_attributes(element: Element) -> None:
    """An attribute that is nearly a known one, or may be, is misspelt; others are extensions."""
    known = _ATTRIBUTES.get(element.tag)
    if known is None:
        return
    # those of a namespace may be anything
    unknown = [name for name in element.attributes if name not in known and ":" not in name]
    for name in unknown:
        if element.tag in _STRICT or (element.tag == "dynamics" and _nearly(name, known)):
            hint = did_you_mean(name[:60], known)
            raise element.error(
                f"<{element.tag}> has an unknown attribute {shortened(name)}; {hint}"
            )
    if unknown:
        names = ", ".join(shortened(name) for name in unknown[:4])
        message = f"<{element.tag}> has unknown attributes {names}, left out"
        element.remark(f"attributes of {element.tag}", message)
