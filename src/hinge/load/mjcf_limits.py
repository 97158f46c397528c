"""Bounds on what an MJCF file may ask MuJoCo to make: a short file can describe a huge model.

MuJoCo copies (`replicate`, `attach`) and allocates (grids, textures, samples) whatever it is told
to, follows models that contain themselves for ever, and takes a time that grows with the square of
the number of elements.  What is refused here would exhaust the machine there.
"""

from __future__ import annotations

import math

from .xml import Element

__all__ = ["check_copies", "check_sizes", "descendants"]

MAX_ELEMENTS = 50_000
MAX_COPIES = 10_000  # of elements, made by replicate and attach

# the product of all numbers in these attributes of one element is at most this
_SIZES = (
    (("count",), 4_000),
    (("params",), 100_000),
    (("nrow", "ncol"), 100_000_000),
    (("width", "height"), 100_000_000),
    (("resolution",), 10_000_000),
    (("dim",), 100_000),
    (("num",), 100_000),
    (("actdim",), 100_000),
    (("nsample",), 100_000),
)


def check_sizes(element: Element) -> None:
    """Refuse an element that asks for an absurd amount of anything."""
    for names, limit in _SIZES:
        given = [name for name in names if name in element.attributes]
        size = math.prod(max(1.0, abs(x)) for name in given for x in element.numbers(name))
        if size > limit:
            what = " and ".join(f"{name}={element.get(name)!r}" for name in given)
            raise element.error(f"<{element.tag}> has {what}; at most {limit} is read")


def check_copies(root: Element, largest: int) -> int:
    """Refuse a document that makes too many elements; returns how many it makes.

    largest: the elements of the largest model that the document can attach.
    """
    made = 0
    limit = min(MAX_ELEMENTS, len(descendants(root)) + MAX_COPIES)
    sizes: dict[str, int] = {}

    def walk(element: Element) -> None:
        nonlocal made
        before = made
        made += 1 + _grid(element)
        if element.tag == "attach":
            # what is not finished yet, or was made by attaching, is at most all there is
            target = element.get("body") or element.get("frame") or ""
            made += largest if "model" in element.attributes else sizes.get(target, made)
        for child in element.children:
            walk(child)
        if element.tag == "replicate":
            made += (made - before) * max(0, int(element.number("count", 1.0)))
        if made > limit:
            raise element.error(
                f"with <{element.tag}> there are more than {limit} elements, counting what is "
                "replicated and attached; split the model"
            )
        if element.tag in ("body", "frame"):
            sizes[element.get("name") or ""] = made - before

    walk(root)
    return made


def _grid(element: Element) -> int:
    """The elements that MuJoCo makes of a grid."""
    if element.tag not in ("composite", "flexcomp"):
        return 0
    return int(math.prod(abs(n) for n in element.numbers("count", default=(0.0,))))


def descendants(root: Element) -> list[Element]:
    """The element and all below it."""
    found = [root]
    for element in found:
        found.extend(element.children)
    return found
