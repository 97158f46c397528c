"""Sines and cosines of many angles, in a loop before all else: their code is there once.

Angles that are arguments side by side, as those of revolute joints are, perhaps with a number added
to each, are taken four at a time; the sine takes the place of its angle in shared memory, the
cosine a slot.  In line they were a sixth of the code of Talos' forward dynamics, which caches of
instructions did not hold: float64 0.36 → 0.70 G/s on an H200.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from ...graph.operations import SINCOS
from ...graph.program import Program
from ...graph.scalar import Node

__all__ = ["TOGETHER", "Turns", "turns_of"]

# angles whose sines are made in turns, so that none waits for the arithmetic of another
TOGETHER = 4


class Turns(NamedTuple):
    """Angles side by side.

    first: the number of the argument of the first; offsets: what is added to each.
    sines, cosines: the nodes of each angle, None if nobody needs it.
    """

    first: int
    offsets: tuple[float, ...]
    sines: tuple[Node | None, ...]
    cosines: tuple[Node | None, ...]


class _Angle(NamedTuple):
    argument: int
    offset: float
    node: Node


def turns_of(program: Program, angles: Sequence[Node]) -> list[Turns]:
    """Those of some angles that are side by side, at least four of them; in the same array."""
    found = sorted(_known(program, angles), key=lambda angle: angle.argument)
    array_of = [i for i, size in enumerate(program.input_sizes) for _ in range(size)]
    pairs = {(n.op, n.args[0].id): n for n in program.nodes if n.op in SINCOS}
    runs = []
    for _, group in groupby(
        enumerate(found), lambda pair: (pair[1].argument - pair[0], array_of[pair[1].argument])
    ):
        run = [angle for _, angle in group]
        if len(run) >= TOGETHER:
            sines, cosines = (
                tuple(pairs.get((op, angle.node.id)) for angle in run) for op in SINCOS
            )
            runs.append(Turns(run[0].argument, tuple(a.offset for a in run), sines, cosines))
    return runs


def _known(program: Program, angles: Sequence[Node]) -> Iterator[_Angle]:
    """Angles that are an argument, or that and a number, if nothing else takes the argument."""
    takers: dict[int, list[Node]] = {}
    for node in program.nodes:
        for a in node.args:
            takers.setdefault(a.id, []).append(node)
    results = {value.id for value in program.values}
    for angle in angles:
        # adding −0 leaves every number as it is
        given, offset = angle, -0.0
        if angle.op == "add" and {a.op for a in angle.args} == {"input", "const"}:
            number, given = sorted(angle.args, key=lambda a: a.op)
            offset = number.value
        both = takers[angle.id]
        others = [] if given is angle else [n for n in takers[given.id] if n is not angle]
        alone = not others and all(n.op in SINCOS for n in both)
        if given.op == "input" and alone and not results & {given.id, *(n.id for n in both)}:
            yield _Angle(given.value, offset, angle)
