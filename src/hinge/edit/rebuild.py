"""What all edits share: a robot's mechanism taken out and put back, and its parts built anew."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, Self, TypeVar, cast

from ..errors import ArgumentError, ModelError
from ..model.builder import MechanismBuilder
from ..model.mechanism import GROUND, Body, Mechanism
from ..model.shapes import Shape

__all__ = [
    "Edit",
    "add_body",
    "add_frames",
    "builder_like",
    "check_mimics",
    "copied",
    "dress",
    "edits",
    "mechanism_in",
    "moving_body",
    "names_in",
    "prefixed",
    "rebuilt",
]

P = ParamSpec("P")


class HasMechanism(Protocol):
    """A robot: something that has a mechanism and can be made of another."""

    @property
    def mechanism(self) -> Mechanism:
        """Its bodies, joints and frames."""
        ...

    def _with_mechanism(self, mechanism: Mechanism) -> Self: ...


T = TypeVar("T", bound=Mechanism | HasMechanism)


class Edit(Protocol[P]):
    """A function that gives back the kind of thing it is given."""

    def __call__(self, robot: T, /, *args: P.args, **kwargs: P.kwargs) -> T: ...


def edits(change: Callable[Concatenate[Mechanism, P], Mechanism]) -> Edit[P]:
    """Let a change of mechanisms take robots too, and give back what it is given."""

    @wraps(change)
    def call(robot: Any, /, *args: P.args, **kwargs: P.kwargs) -> Any:
        mech = mechanism_in(change.__name__, robot)
        made = change(mech, *args, **kwargs)
        return made if robot is mech else robot._with_mechanism(made)

    return cast(Edit[P], call)


def mechanism_in(where: str, robot: Any) -> Mechanism:
    """The mechanism, or that of a robot."""
    mech = getattr(robot, "mechanism", robot)
    if not isinstance(mech, Mechanism):
        raise ArgumentError(
            f"{where} needs a Robot or a Mechanism, got {type(robot).__name__}; hinge.load reads "
            f"one from a file"
        )
    return mech


def names_in(where: str, what: str, names: str | Iterable[str]) -> tuple[str, ...]:
    """One name or several as a tuple."""
    found = (names,) if isinstance(names, str) else tuple(names)
    if not found or not all(isinstance(name, str) for name in found):
        raise ArgumentError(f"{where}: {names!r} is no name of a {what}, nor a list of names")
    return found


def moving_body(mech: Mechanism, name: str) -> int:
    """The number of a body that moves; why there is none, if there is none."""
    if name == GROUND:
        raise ModelError(f"{mech.name!r}: the ground does not move; name a moving body")
    frame = next((f for f in mech.frames if f.name == name), None)
    if frame is not None and mech.bodies[frame.body].name != name:
        carrier = mech.bodies[frame.body].name
        raise ModelError(
            f"{mech.name!r}: {name!r} is welded to {carrier!r} and merged into it; name that body, "
            f"or change the file that it comes from"
        )
    return mech.body_index(name)


def check_mimics(mech: Mechanism, kept: Iterable[int]) -> None:
    """Refuse to part a joint from the one that it mimics."""
    here = set(kept)
    for k in here:
        mimic = mech.bodies[k].joint.mimic
        if mimic and mech.joint_index(mimic.joint) not in here:
            raise ModelError(
                f"{mech.name!r}: joint {mech.bodies[k].joint_name!r}, which is kept, mimics "
                f"{mimic.joint!r}, which is not; lock one of them first"
            )


def builder_like(mech: Mechanism) -> MechanismBuilder:
    """A builder like the one that made the mechanism; what it took then it takes again."""
    return MechanismBuilder(mech.name, mech.gravity, nonphysical="accept")


def rebuilt(mech: Mechanism) -> Mechanism:
    """The same mechanism, checked again."""
    return copied(builder_like(mech), mech).build()


def copied(
    builder: MechanismBuilder, mech: Mechanism, prefix: str = "", onto: str = GROUND
) -> MechanismBuilder:
    """The builder with all parts of a mechanism, its ground at a frame of the builder's."""
    if onto == GROUND:
        dress(builder, mech)
    for b in mech.bodies[1:]:
        add_body(builder, mech, b, prefix, onto)
    add_frames(builder, mech, range(len(mech.bodies)), prefix, onto)
    return builder


def dress(builder: MechanismBuilder, mech: Mechanism) -> None:
    """Give the builder's ground the shapes and the inertia of a mechanism's."""
    ground = mech.bodies[0]
    builder.dress_ground(ground.visuals, ground.collisions, ground.inertia)


def add_body(
    builder: MechanismBuilder, mech: Mechanism, b: Body, prefix: str = "", onto: str = GROUND
) -> None:
    """Add a body of a mechanism and its joint; those on the ground go onto a frame."""
    joint = b.joint
    if joint.mimic is not None:
        joint = replace(joint, mimic=replace(joint.mimic, joint=prefix + joint.mimic.joint))
    parent = onto if b.parent == 0 else prefix + mech.bodies[b.parent].name
    names = prefix + b.name, parent, joint, prefix + b.joint_name
    shapes = prefixed(b.visuals, prefix), prefixed(b.collisions, prefix)
    builder.add(*names, b.placement, b.inertia, b.offset, *shapes)


def prefixed(shapes: Iterable[Shape], prefix: str) -> list[Shape]:
    """Shapes whose links have a prefix before their names."""
    return [replace(s, link=prefix + s.link) for s in shapes]


def add_frames(
    builder: MechanismBuilder,
    mech: Mechanism,
    kept: Iterable[int],
    prefix: str = "",
    onto: str = GROUND,
) -> None:
    """Add every frame that is not a body's own, on the bodies that are kept."""
    here, own = set(kept), {b.name for b in mech.bodies}
    for f in mech.frames:
        if f.name not in own and f.body in here:
            body = onto if f.body == 0 else prefix + mech.bodies[f.body].name
            builder.add_frame(prefix + f.name, body, f.placement)
