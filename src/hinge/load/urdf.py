"""URDF: the robot files of ROS, read into a `Mechanism`.

Read are links (inertial, visual, collision), joints (revolute, continuous, prismatic, fixed,
floating, planar, spherical; origin, axis, limit, dynamics, mimic) and materials; gazebo,
transmission and the like are skipped.  Where files differ from the letter of the format:

- <limit> may be missing, or may lack `lower` and `upper` both: no limit, with a remark where the
  joint should have one.  If one is missing it is 0.  Limits beyond 1e12 are none; every other
  number is at most 1e12 in size.
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

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..algebra.rotation import about_axis
from ..algebra.spatial import Inertia, Transform
from ..errors import ModelError
from ..model.builder import MechanismBuilder
from ..model.joints import Fixed, Free, Joint, Mimic, Planar, Prismatic, Revolute, Spherical
from ..model.mechanism import GROUND, Mechanism, did_you_mean
from .loaded import Loaded
from .paths import PathLike
from .urdf_actuators import actuators_of
from .urdf_shapes import ShapeReader, origin_pose
from .urdf_spelling import check_spelling
from .xml import MAX_SIZE, Element, parse, shortened

__all__ = ["loaded_urdf", "read_urdf", "turn_z_to"]

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
_MANY_TURNS = 5 * np.pi  # limits beyond are unusual
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
    welded to the ground.  A root link named "world" is the ground itself; where it floats, or is
    not the root, it is called "world_link".
    package_dirs: where package:// leads, as in `package_folders`.
    lenient: go on past a mimic of a joint that is not there or has not one DoF (the joint moves on
    its own), a link that nothing is joined to, negative damping or friction, xacro that is not
    expanded (left out), an <inertial> without <mass> (0), and second elements that differ from the
    first (the first is used).

    A wrong file is one `ModelError` "file:line: …"; what is odd but can be read is a
    `ModelWarning`, and so is an inertia that no body can have.
    """
    root = parse(text, source)
    return loaded_urdf(root, floating_base, package_dirs, folder, lenient).mechanism


def loaded_urdf(
    robot: Element,
    floating_base: bool = False,
    package_dirs: Sequence[PathLike] = (),
    folder: PathLike | None = None,
    lenient: bool = False,
) -> Loaded:
    """What the root element of a URDF file describes; arguments as of `read_urdf`."""
    robot.remarks.lenient = lenient
    check_spelling(robot)
    links = _links(robot)
    edges = _edges(robot, links)
    root = _root(links, edges)
    mimics = _mimics(edges)
    if GROUND in links and (floating_base or root != GROUND):
        links, edges, root = _without_ground(links, edges, root)
    reader = ShapeReader(folder, package_dirs)
    reader.learn(robot.all("material"))
    reader.learn(
        m for link in links.values() for v in link.all("visual") for m in v.all("material")
    )
    builder = MechanismBuilder((robot.get("name") or "").strip() or "robot", nonphysical="warn")
    floating = _root_joint(robot, edges) if floating_base else None
    _add_root(builder, root, links[root], reader, floating)
    for edge in edges.values():
        joint = _joint(edge, mimics.get(edge.name))
        placement, offset = _frames(edge, joint)
        contents = _contents(links[edge.child], reader)
        with _at(links[edge.child]):
            builder.add(
                edge.child, edge.parent, joint, edge.name, placement, offset=offset, **contents
            )
    mechanism = builder.build()
    actuators = actuators_of(robot, edges, mechanism)
    robot.remarks.tell()
    return Loaded(mechanism, actuators=actuators)


# the tree of links


def _links(robot: Element) -> dict[str, Element]:
    links = _by_name(robot, "link")
    if not links:
        raise robot.error(f"{robot} has no <link>; a robot needs at least one")
    for parent in (parent for joint in robot.all("joint") for parent in joint.all("parent")):
        if (parent.get("link") or "").strip() == GROUND and GROUND not in links:
            here = parent.source, parent.line, [], parent.remarks
            links[GROUND] = Element("link", {"name": GROUND}, *here)
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
    return roots[0]


def _without_ground(
    links: dict[str, Element], edges: dict[str, _Edge], root: str
) -> tuple[dict[str, Element], dict[str, _Edge], str]:
    """Links, joints and root with another name for a link that is called as the ground is."""
    name = f"{GROUND}_link"
    while name in links:
        name += "_"
    moves = "is the root and floats" if root == GROUND else "moves"
    links[GROUND].remark(
        "ground that moves",
        f"link {GROUND!r} {moves}; it is called {name!r}, since {GROUND!r} is the ground",
    )
    called = {link: link for link in links} | {GROUND: name}
    moved = {
        n: replace(e, parent=called[e.parent], child=called[e.child]) for n, e in edges.items()
    }
    return {called[link]: element for link, element in links.items()}, moved, called[root]


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
    bounded = edge.kind in ("revolute", "prismatic")
    if limit is None:
        if bounded:
            what = f"{edge.element} is {edge.kind} and has no <limit>; nothing limits it"
            edge.element.remark("no limit", what)
        return {}
    if others:
        limit.remark("limits", f"{edge.element} has {len(others) + 1} <limit>; the first is used")
    data = {}
    for name in ("velocity", "effort"):
        data[f"{name}_limit"] = value = _limit(limit, name, np.inf)
        if value < 0:
            limit.remark(name, f"<limit> has {name}={value:g}, below 0; it is left out")
            data[f"{name}_limit"] = np.inf
    if bounded and not {"lower", "upper"} & limit.attributes.keys():
        what = f"<limit> of {edge.element} has neither lower nor upper"
        limit.remark("no bounds", f"{what}; nothing limits its position (URDF's default is 0 to 0)")
    elif bounded:
        lower, upper = (_limit(limit, name, 0.0) for name in ("lower", "upper"))
        if lower <= upper:
            _check_unit(edge, limit, lower, upper)
            return data | {"lower": lower, "upper": upper}
        limit.remark(
            "lower", f"<limit> has lower={lower:g} above upper={upper:g}; both are left out"
        )
    return data


def _check_unit(edge: _Edge, limit: Element, lower: float, upper: float) -> None:
    """Remark on limits of several turns that would be of less than two in degrees."""
    most = max((abs(x) for x in (lower, upper) if np.isfinite(x)), default=0.0)
    if edge.kind == "revolute" and _MANY_TURNS < most <= 720:
        turns = f"{most / (2 * np.pi):.1f} turns"
        what = f"<limit> of {edge.element} goes from {lower:g} to {upper:g} rad, {turns}"
        limit.remark("degrees", f"{what}; are degrees meant?")


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


def _root_joint(robot: Element, edges: dict[str, _Edge]) -> str:
    """The name of the joint that carries a floating base."""
    name = ROOT_JOINT
    while name in edges:
        name += "_"
    if name != ROOT_JOINT:
        what = f"{edges[ROOT_JOINT].element} is a joint of the file; the floating base has {name!r}"
        robot.remarks.add("root joint", f"{edges[ROOT_JOINT].element.where}: {what}")
    return name


def _add_root(
    builder: MechanismBuilder, name: str, link: Element, reader: ShapeReader, floating: str | None
) -> None:
    """Add the root link; floating: the joint that carries it, None to weld it to the ground."""
    contents = _contents(link, reader)
    if name == GROUND:
        builder.dress_ground(**contents)
        return
    # no joint of the file is called "", so a welded root takes no name away
    joint, joint_name = (Fixed(), "") if floating is None else (Free(), floating)
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
    origin = origin_pose(_only(element, "origin"))
    if mass is None and (about_com.any() or element.all("density")):
        element.fault("<inertial> has no <mass>, and one is meant", "add it", "it is taken for 0")
    elif mass is None:
        element.remark("inertial", "<inertial> has no <mass> and no moments; the link has none")
    elif tensor is None:
        element.remark("point", "<inertial> has no <inertia>; it is a point mass")
    value = 0.0 if mass is None else mass.number("value")
    return Inertia(value, about_com=about_com).moved(origin)


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
    """The child with a tag, if there is one; any other must say the same, unless it is excused."""
    found = element.all(tag)
    for other in found[1:]:
        count = f"{element} has {len(found)} <{tag}>, the first on line {found[0].line}"
        if _same(other, found[0]):
            like = f"{element} has a second <{tag}> like the first; one is used"
            other.remark(f"second {tag}", like)
        elif tag in ("parent", "child"):
            raise other.error(f"{count}; keep one")
        else:
            other.fault(count, "keep one", "the first is used")
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
