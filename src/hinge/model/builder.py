"""MechanismBuilder: bodies in any order in, a checked and merged `Mechanism` out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeVar

import numpy as np

from ..algebra.rotation import is_rotation, nearest_rotation
from ..algebra.spatial import Inertia, Transform
from ..errors import ModelError, warn_of_model
from .joint import Joint, Mimic
from .joint_check import check_unknown_joint
from .joints import Fixed
from .mechanism import GROUND, Body, Frame, Mechanism, did_you_mean, ground
from .shapes import Shape

__all__ = ["MechanismBuilder", "check_inertia"]

T = TypeVar("T")

_NONPHYSICAL = ("error", "warn", "accept")


class MechanismBuilder:
    """Collects bodies and frames, in any order, and builds the mechanism.

    nonphysical: what to do about a rotational inertia that no body can have: "error", "warn" or
    "accept".
    """

    def __init__(
        self,
        name: str,
        gravity: Sequence[float] | np.ndarray = (0.0, 0.0, -9.81),
        nonphysical: Literal["error", "warn", "accept"] = "error",
    ) -> None:
        if nonphysical not in _NONPHYSICAL:
            raise ModelError(
                f"{name}: nonphysical is {nonphysical!r}; expected one of {', '.join(_NONPHYSICAL)}"
            )
        g = _finite(f"{name}: gravity", gravity, (3,))
        self._name = name
        self._gravity: tuple[float, float, float] = (float(g[0]), float(g[1]), float(g[2]))
        self._nonphysical = nonphysical
        # each with the name of its parent, whose number is not known yet
        self._links: dict[str, tuple[str, Body]] = {}
        self._joint_names: set[str] = set()
        self._frames: dict[str, tuple[str, Transform]] = {}
        self._ground = ground()

    def add(
        self,
        name: str,
        parent: str = GROUND,
        joint: Joint | None = None,
        joint_name: str | None = None,
        placement: Transform | None = None,
        inertia: Inertia | None = None,
        offset: Transform | None = None,
        visuals: Iterable[Shape] = (),
        collisions: Iterable[Shape] = (),
    ) -> MechanismBuilder:
        """Add a body and the joint (default: Fixed) that carries it.

        placement: the joint's frame in the parent body's frame; the body's frame is there at q = 0,
        offset: or, if the joint is elsewhere on the body, at this pose in the joint's moving frame.
        """
        self._check_new_frame(name)
        joint_name = f"{name}_joint" if joint_name is None else joint_name
        if joint_name in self._joint_names:
            raise ModelError(f"{self._name}: two joints are named {joint_name!r}; rename one")
        where = f"{self._name}: body {name!r}"
        joint = _is_a(f"{where}: its joint", Joint, Fixed() if joint is None else joint)
        check_unknown_joint(where, joint)
        placement = _pose(f"{where}: its placement", placement)
        offset = _pose(f"{where}: its offset", offset)
        inertia = Inertia() if inertia is None else inertia
        hint = '; MechanismBuilder(…, nonphysical="accept") takes it as it is'
        check_inertia(where, inertia, self._nonphysical, hint)
        self._joint_names.add(joint_name)
        shapes = tuple(visuals), tuple(collisions)
        body = Body(name, -1, joint_name, joint, placement, inertia, offset, *shapes)
        self._links[name] = parent, body
        return self

    def add_frame(
        self, name: str, body: str, placement: Transform | None = None
    ) -> MechanismBuilder:
        """Add a named frame fixed to a body, merged link or other frame."""
        self._check_new_frame(name)
        placement = _pose(f"{self._name}: frame {name!r}: its placement", placement)
        self._frames[name] = (body, placement)
        return self

    def dress_ground(
        self,
        visuals: Iterable[Shape] = (),
        collisions: Iterable[Shape] = (),
        inertia: Inertia | None = None,
    ) -> MechanismBuilder:
        """Give the ground shapes, and an inertia for when it is put on something that moves."""
        still = self._ground
        inertia = still.inertia if inertia is None else still.inertia + inertia
        shapes = still.visuals + tuple(visuals), still.collisions + tuple(collisions)
        self._ground = ground(*shapes, inertia)
        return self

    def build(self) -> Mechanism:
        """The mechanism: depth first, fixed joints merged, everything checked."""
        bodies = [self._ground]
        welded: list[list[tuple[Body, Transform]]] = [[]]
        home = {GROUND: Frame(GROUND, 0)}
        for parent, link in self._depth_first():
            carrier = home[parent]
            placement = carrier.placement @ link.placement
            if isinstance(link.joint, Fixed):
                pose = placement @ link.offset
                home[link.name] = Frame(link.name, carrier.body, pose)
                welded[carrier.body].append((link, pose))
            else:
                home[link.name] = Frame(link.name, len(bodies))
                bodies.append(replace(link, parent=carrier.body, placement=placement))
                welded.append([])
        for name, (body, placement) in self._frames.items():
            if body not in home:
                hint = did_you_mean(body, home)
                raise ModelError(
                    f"{self._name}: frame {name!r} is on unknown body {body!r}; {hint}"
                )
            home[name] = Frame(name, home[body].body, home[body].placement @ placement)
        bodies = [_with_welded(_named(b), links) for b, links in zip(bodies, welded, strict=True)]
        bodies = _resolve_mimics(self._name, bodies)
        return Mechanism(self._name, tuple(bodies), tuple(home.values()), self._gravity)

    def _depth_first(self) -> list[tuple[str, Body]]:
        children: dict[str, list[str]] = {name: [] for name in (GROUND, *self._links)}
        for name, (parent, _) in self._links.items():
            if parent not in children:
                hint = did_you_mean(parent, children)
                where = f"{self._name}: body {name!r} has unknown parent {parent!r}"
                raise ModelError(f"{where}; {hint}")
            children[parent].append(name)
        placed: dict[str, tuple[str, Body]] = {}
        stack = children[GROUND][::-1]
        while stack:
            name = stack.pop()
            placed[name] = self._links[name]
            stack.extend(children[name][::-1])
        if len(placed) < len(self._links):
            loop = [name for name in self._links if name not in placed]
            raise ModelError(
                f"{self._name}: bodies {', '.join(loop[:8])} form a cycle: none leads to "
                f"{GROUND!r}; close loops with a LoopConstraint instead"
            )
        return list(placed.values())

    def _check_new_frame(self, name: str) -> None:
        if name == GROUND:
            raise ModelError(f"{self._name}: {GROUND!r} is the ground; choose another name")
        if name in self._links or name in self._frames:
            raise ModelError(f"{self._name}: two bodies or frames are named {name!r}; rename one")


def check_inertia(where: str, inertia: Inertia, nonphysical: str = "error", hint: str = "") -> None:
    """Raise ModelError, or warn, about an inertia that cannot be used or that no body can have."""
    _is_a(f"{where}: its inertia", Inertia, inertia)
    mass = _finite(f"{where}: mass", inertia.mass, ())
    if mass < 0:
        raise ModelError(f"{where}: mass is {mass:g} kg; it must not be negative")
    _finite(f"{where}: com", inertia.com, (3,))
    _finite(f"{where}: about_com", inertia.about_com, (3, 3))
    problem = _inertia_problem(inertia)
    if problem and nonphysical == "error":
        raise ModelError(f"{where}: {problem}{hint}")
    if problem and nonphysical == "warn":
        warn_of_model(f"{where}: {problem}")


def _inertia_problem(inertia: Inertia) -> str:
    """What keeps a rotational inertia from being that of a body, or nothing.

    Principal moments come from ∫ρ: they are not negative, and none exceeds the sum of the others.
    Slack: 1e-6 of the largest, the rounding of numbers written with seven digits.
    """
    I = inertia.about_com
    if np.abs(I - I.T).max() > 1e-6 * np.abs(I).max():
        return f"about_com is not symmetric: {I.tolist()}; give I with I = Iᵀ"
    a, b, c = np.linalg.eigvalsh(I)
    moments = f"principal moments are ({a:.4g}, {b:.4g}, {c:.4g}) kg m²"
    slack = 1e-6 * max(abs(a), abs(c))
    if a < -slack:
        return f"{moments}: a negative one; about_com must be positive semidefinite"
    if a + b < c - slack:
        return f"{moments}: they violate the triangle inequality (largest ≤ sum of the others)"
    return ""


def _finite(what: str, values: Any, shape: tuple[int, ...]) -> np.ndarray:
    try:
        a = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise ModelError(f"{what} is {values!r}; expected numbers of shape {shape}") from None
    if a.shape != shape:
        raise ModelError(f"{what} has shape {a.shape}; expected {shape}")
    if not np.isfinite(a).all():
        raise ModelError(f"{what} is {a.tolist()}; expected finite numbers")
    return a


def _is_a(what: str, kind: type[T], value: Any) -> T:
    """The value, if it is of that kind."""
    if not isinstance(value, kind):
        known = {Joint: "Revolute(axis=…)", Inertia: "Inertia(mass, com, about_com)"}
        example = known.get(kind, "Transform(rotation, translation)")
        matrix = kind is Transform and np.shape(value) == (4, 4)
        example = "Transform.from_matrix(…)" if matrix else example
        raise ModelError(f"{what} is {value!r}; expected such as hinge.{example}")
    return value


def _pose(where: str, X: Transform | None) -> Transform:
    """The pose, the identity by default; a rotation written with few digits made one to all."""
    if X is None:
        return Transform()
    _is_a(where, Transform, X)
    _finite(f"{where}: translation", X.translation, (3,))
    R = _finite(f"{where}: rotation", X.rotation, (3, 3))
    if not is_rotation(R):
        raise ModelError(f"{where}: rotation is not orthonormal and right-handed: {R.tolist()}")
    nearest = nearest_rotation(R)
    return X if nearest is R else Transform(nearest, X.translation)


def _named(body: Body) -> Body:
    """The body, its shapes with its name for that of their link, unless they have one."""
    visuals, collisions = (
        tuple(s if s.link else replace(s, link=body.name) for s in shapes)
        for shapes in (body.visuals, body.collisions)
    )
    return replace(body, visuals=visuals, collisions=collisions)


def _with_welded(body: Body, links: list[tuple[Body, Transform]]) -> Body:
    """The body with links welded on at their poses.

    What is welded to the ground moves nothing; its inertia is kept for when the robot is put on
    something that moves.
    """
    if not links:
        return body
    inertia = body.inertia
    for link, X in links:
        inertia = inertia + link.inertia.moved(X)
    links = [(_named(link), X) for link, X in links]
    visuals = [shape.moved(X) for link, X in links for shape in link.visuals]
    collisions = [shape.moved(X) for link, X in links for shape in link.collisions]
    return replace(
        body,
        inertia=inertia,
        visuals=(*body.visuals, *visuals),
        collisions=(*body.collisions, *collisions),
    )


def _resolve_mimics(name: str, bodies: list[Body]) -> list[Body]:
    """Let every follower follow a joint that leads, through any chain of followers."""
    joints = {b.joint_name: b.joint for b in bodies[1:]}
    out = []
    for b in bodies:
        followed, seen = b.joint.mimic, [b.joint_name]
        while followed is not None:
            _check_mimic(name, seen, followed, joints)
            b = replace(b, joint=replace(b.joint, mimic=followed))
            above = joints[followed.joint].mimic
            seen.append(followed.joint)
            followed = above and Mimic(
                above.joint,
                followed.ratio * above.ratio,
                followed.ratio * above.offset + followed.offset,
            )
        out.append(b)
    return out


def _check_mimic(name: str, seen: list[str], mimic: Mimic, joints: dict[str, Joint]) -> None:
    where = f"{name}: joint {seen[-1]!r} mimics {mimic.joint!r}"
    if mimic.joint not in joints:
        hint = did_you_mean(mimic.joint, joints)
        raise ModelError(f"{where}, which does not move or exist; {hint}")
    if mimic.joint in seen:
        raise ModelError(f"{where}: the joints {', '.join(seen)} mimic one another in a circle")
    if joints[mimic.joint].nv != 1:
        raise ModelError(f"{where}, which has {joints[mimic.joint].nv} DoF; it needs one")
    if not np.isfinite([mimic.ratio, mimic.offset]).all():
        raise ModelError(
            f"{where} with ratio {mimic.ratio} and offset {mimic.offset}; give numbers"
        )
