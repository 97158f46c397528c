"""What both formats share: numbers as text, bodies framed at their joints."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from ..algebra.spatial import Inertia, Transform
from ..model.joint import PerDof
from ..model.mechanism import Frame, Mechanism

__all__ = [
    "add",
    "as_text",
    "at_joints",
    "has_inertia",
    "number",
    "numbers",
    "the_one",
]


def number(x: Any) -> str:
    """The shortest text that is read as the same number."""
    # no negative zeros
    return repr(float(x) + 0.0).removesuffix(".0")


def numbers(values: Iterable[Any]) -> str:
    """Numbers with spaces between them."""
    return " ".join(map(number, values))


def the_one(values: PerDof) -> float | None:
    """The number that all degrees of freedom share; None if they differ."""
    found = set(np.atleast_1d(values).tolist())
    return found.pop() if len(found) == 1 else None


def has_inertia(inertia: Inertia) -> bool:
    """Whether there is any."""
    return bool(inertia.mass or inertia.about_com.any())


def add(parent: ET.Element, tag: str, **attributes: str) -> ET.Element:
    """A new element at the end of another."""
    return ET.SubElement(parent, tag, attributes)


def as_text(root: ET.Element) -> str:
    """The document."""
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=False) + "\n"


def at_joints(mech: Mechanism, chosen: Iterable[int]) -> Mechanism:
    """The mechanism with the frames of some bodies moved into their joints' moving frames.

    Such a body is called "name/moving"; "name" stays as a frame where it was.
    """
    back = {k: mech.bodies[k].offset for k in chosen}
    taken = set(mech.frame_names)
    bodies, names = [], {}
    for k, b in enumerate(mech.bodies):
        placement = back.get(b.parent, Transform()) @ b.placement
        b = replace(b, placement=placement)
        if X := back.get(k):
            names[k] = _unique(f"{b.name}/moving", taken)
            shapes = (tuple(s.moved(X) for s in shapes) for shapes in (b.visuals, b.collisions))
            moved = dict(zip(("visuals", "collisions"), shapes, strict=True))
            inertia = b.inertia.moved(X)
            b = replace(b, name=names[k], inertia=inertia, offset=Transform(), **moved)
        bodies.append(b)
    frames = [
        replace(f, placement=back[f.body] @ f.placement) if f.body in back else f
        for f in mech.frames
    ]
    own = [Frame(name, k) for k, name in names.items()]
    return replace(mech, bodies=tuple(bodies), frames=(*frames, *own))


def _unique(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name
