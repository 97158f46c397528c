"""Programs along paths of bodies, for many lanes: a stretch of bodies a lane, joined as a scan.

Each lane sweeps its stretch to what it does as a whole, an element; elements are joined, neighbours
first, until each lane knows what all before it do together; and from what that hands it, it walks
along its stretch again:

    e = begin(given(0));   e ← extend(e, given(t))                     t = 1 … steps − 1         (1)
    e(l) ← join(e(l − r), e(l))                                        r = 1, 2, 4, …            (2)
    x = e(l − 1)[enters];  x, results(t) = walk(x, given(t))           t = 0 … steps − 1         (3)

Without elements there is the walk alone, of samples that have nothing to do with each other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from .arrays import Shape
from .operations import OPERATIONS, Operations
from .program import Program
from .scalar import Node

__all__ = ["Elements", "Joined", "PathScan", "Slices", "dealt"]

# what a quotient or a root takes, in products
_HEAVY = {"div": 10, "sqrt": 10, "sin": 20, "cos": 20}


class Slices(NamedTuple):
    """A program for several slices of what is there, such as the columns of matrices.

    reads: (slices, inputs) numbers, counted through both elements, what stages made before, and
    constants.  writes: (slices, values, 2) places of each value in what stages make, or in the last
    stage in the element; where there is none, the one after the last.
    """

    program: Program
    reads: np.ndarray
    writes: np.ndarray


class Joined(NamedTuple):
    """Two elements to one, in stages; made: so many numbers by all stages but the last."""

    stages: tuple[tuple[Slices, ...], ...]
    made: int
    constants: np.ndarray

    @property
    def programs(self) -> list[Program]:
        """All programs."""
        return [x.program for stage in self.stages for x in stage]


@dataclass(frozen=True, eq=False)
class Elements:
    """What stretches are joined by.

    join: a program of two elements, or one in stages.  none: the element of no bodies, array by
    array.  enters: the numbers of its arrays that a walk begins with.
    """

    begin: Program
    extend: Program
    join: Program | Joined
    none: tuple[np.ndarray, ...]
    enters: tuple[int, ...]

    @property
    def sizes(self) -> list[int]:
        """How many numbers each array of an element has."""
        return [x.size for x in self.none]

    @property
    def programs(self) -> list[Program]:
        """All programs."""
        join = self.join.programs if isinstance(self.join, Joined) else [self.join]
        return [self.begin, self.extend, *join]


@dataclass(frozen=True, eq=False)
class PathScan:
    """The walk: of what it carries and what is given, it makes the same anew, and results.

    found: of everything given, then of the results, whether its numbers are found by a table, one
    number for each entry, or else in their places.
    """

    walk: Program
    found: tuple[bool, ...]
    elements: Elements | None = None

    @property
    def name(self) -> str:
        """The name of the walk."""
        return self.walk.name

    @property
    def form(self) -> type:
        """As in `Program`."""
        return tuple

    @property
    def carried(self) -> int:
        """How many arrays a walk carries."""
        return 0 if self.elements is None else len(self.elements.enters)

    @property
    def inputs(self) -> tuple[Shape, ...]:
        """The shapes of what is given."""
        return self.walk.inputs[self.carried :]

    @property
    def outputs(self) -> tuple[Shape, ...]:
        """The shapes of the results."""
        return self.walk.outputs[self.carried :]

    @property
    def programs(self) -> tuple[Program, ...]:
        """All programs."""
        return self.walk, *(() if self.elements is None else self.elements.programs)

    @property
    def ops(self) -> Operations:
        """What all programs cost, each once."""
        return Operations(*map(sum, zip(*(p.ops for p in self.programs), strict=True)))

    @cached_property
    def digest(self) -> str:
        """The same for those that compute the same in the same way, and for no others."""
        e = self.elements
        joined = None if e is None else (e.enters, [x.tolist() for x in e.none])
        slices = ()
        if e is not None and isinstance(e.join, Joined):
            each = [x for stage in e.join.stages for x in stage]
            slices = (
                e.join.constants.tolist(),
                [(x.reads.tolist(), x.writes.tolist()) for x in each],
            )
        parts = [p.digest for p in self.programs], self.found, joined, slices
        return hashlib.sha256(repr(parts).encode()).hexdigest()


def dealt(program: Program, parts: int) -> list[list[int]]:
    """The numbers of a program's values, dealt out such that no part has much more to do.

    Each part computes all that its values need, and what several need each of them does.
    """
    cones = dict(_cones(program.nodes))
    heavy = [
        (weight - 1, sum(1 << i for i, n in enumerate(program.nodes) if n.op == op))
        for op, weight in _HEAVY.items()
    ]

    def cost(nodes: int) -> int:
        return nodes.bit_count() + sum(w * (nodes & which).bit_count() for w, which in heavy)

    numbers: dict[int, list[int]] = {}
    for i, node in enumerate(program.values):
        numbers.setdefault(node.id, []).append(i)
    work, found = [0] * parts, [[] for _ in range(parts)]
    for id in sorted(numbers, key=lambda id: -cost(cones[id])):
        k = min(range(parts), key=lambda k: (cost(work[k] | cones[id]), len(found[k])))
        work[k] |= cones[id]
        found[k] += numbers[id]
    return found


def _cones(nodes: Sequence[Node]) -> Iterator[tuple[int, int]]:
    """Of each node the operations that it needs, itself among them, as bits."""
    cones: dict[int, int] = {}
    for i, node in enumerate(nodes):
        own = 1 << i if node.op in OPERATIONS else 0
        for a in node.args:
            own |= cones[a.id]
        cones[node.id] = own
        yield node.id, own
