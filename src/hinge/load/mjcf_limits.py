"""How much an MJCF file may ask for.

A short file can describe a huge model: MuJoCo copies (`replicate`, `attach`) and allocates (grids,
meshes, samples) whatever it is told to, and takes a time that grows with the square of the number
of elements.  Everything is counted in bytes of one budget, before MuJoCo sees the file.
"""

from __future__ import annotations

import math

from ..errors import ModelError
from .xml import Element

__all__ = ["Budget", "check_sizes", "descendants", "elements_made"]

_ELEMENT = 1 << 16  # what a body with its names, joints and geoms takes, and its time
_MESH = 8  # bytes for one of a mesh's file: normals, edges, hull and tree


class Budget:
    """What may still be asked for, in bytes."""

    def __init__(self, limit: int) -> None:
        self._limit = self._left = limit
        self.elements = limit // _ELEMENT

    def take_mesh(self, size: int) -> None:
        """Count a file that MuJoCo makes a mesh of, of no more bytes than `file`."""
        self._left -= _MESH * size

    @property
    def file(self) -> int:
        """The bytes that the next file may have."""
        return self._left // _MESH

    def error(self, element: Element, what: str) -> ModelError:
        """The error about an element that asks for too much."""
        return element.error(
            f"with {what} the model needs more than {self._limit / 1e9:.3g} GB; split it, or pass "
            "a larger max_memory (bytes) to hinge.load"
        )


MAX_SIZE = 100_000
# what makes MuJoCo allocate
_SIZES = ("actdim", "nsample", "dim")


def check_sizes(element: Element) -> None:
    """Refuse an element that asks for an absurd amount of anything."""
    asked = {name: max(map(abs, element.numbers(name, default=(0.0,)))) for name in _SIZES}
    asked["params"] = _vertices(element)
    for name, size in asked.items():
        if size > MAX_SIZE:
            given = f"{name}={element.get(name)!r}"
            raise element.error(
                f"<{element.tag}> has {given}, which asks for {size:g}; at most {MAX_SIZE} is read"
            )


def _vertices(element: Element) -> float:
    """The vertices of a mesh that MuJoCo makes, of parameters that begin with its resolution."""
    params = element.numbers("params", default=(0.0,))
    if element.get("builtin") in ("wedge", "plate"):
        return math.prod(map(abs, params[:2]))
    return abs(params[0]) ** (2 if (element.get("builtin") or "").startswith("super") else 1)


def elements_made(root: Element, largest: int, budget: Budget) -> int:
    """The number of elements that MuJoCo makes of a document, which the budget must allow.

    largest: the elements of the largest model that the document can attach.
    """
    made = 0
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
        if made > budget.elements:
            raise budget.error(element, f"<{element.tag}>, all copies counted,")
        if element.tag in ("body", "frame"):
            sizes[element.get("name") or ""] = made - before

    walk(root)
    return made


def _grid(element: Element) -> int:
    """The elements that MuJoCo makes of a grid."""
    if element.tag not in ("composite", "flexcomp"):
        return 0
    return int(math.prod(max(1.0, abs(n)) for n in element.numbers("count", default=(0.0,))))


def descendants(root: Element) -> list[Element]:
    """The element and all below it."""
    found = [root]
    for element in found:
        found.extend(element.children)
    return found
