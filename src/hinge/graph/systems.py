"""Functions whose results solve linear systems of one matrix: what these are made of, as programs.

    X = −M⁻¹ R for each of some matrices R, and M⁻¹,   M = m mᵀ with m upper triangular

Straight-line code of all that is long, and who runs it holds hundreds of numbers.  So programs give
the numbers of m and of the R, as far as they are not zero whatever the arguments are, and where
each of them belongs is said here: the rest is the same for every column of X, and short.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from .arrays import Shape
from .operations import Operations
from .program import Program
from .scalar import Node

__all__ = ["Stage", "Systems", "factor_numbers", "right_numbers"]


class Stage(NamedTuple):
    """A program, and which of the arguments of the whole it takes, by number."""

    program: Program
    takes: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Systems:
    """Programs that give the numbers of systems, one vector each, and where these belong.

    before: gives what counts as one more argument, the last, of the others; None if nothing does.
    factor: gives the numbers of m, in the order of `factor_numbers`.
    above: for each column of m from the last on, the rows above the diagonal that are not zero.
    sides: give the numbers of the R, one after the other; none if there is no R.
    right: for each R where its entries are among these, (n, n), −1 for those that are zero.
    The results are the X in the order of the R, then M⁻¹.
    """

    name: str
    inputs: tuple[Shape, ...]
    outputs: tuple[Shape, ...]
    form: type | None
    before: Stage | None
    factor: Stage
    above: tuple[tuple[int, ...], ...]
    sides: tuple[Stage, ...]
    right: tuple[np.ndarray, ...]

    @property
    def rows(self) -> int:
        """How many there are in each system."""
        return len(self.above)

    @cached_property
    def ops(self) -> Operations:
        """How many operations of each kind."""
        stages = [s.program.ops for s in (self.before, self.factor, *self.sides) if s is not None]
        n, off = self.rows, sum(map(len, self.above))
        columns = n * len(self.outputs)
        stages.append(Operations(columns * 2 * (off + n), columns * 2 * off, 0, 0, 0))
        return Operations(*(sum(x) for x in zip(*stages, strict=True)))


def factor_numbers(m: np.ndarray) -> tuple[list[Node], tuple[tuple[int, ...], ...]]:
    """The numbers of m, an array of nodes, and the rows that they are in, as `Systems` has them.

    What is above the diagonal comes first, column by column from the last on; then, from the last
    on, 1 over each entry of the diagonal.
    """
    n = len(m)
    above = [tuple(j for j in range(k) if not _is_zero(m[j, k])) for k in reversed(range(n))]
    numbers = [m[j, n - 1 - i] for i, rows in enumerate(above) for j in rows]
    return [*numbers, *(1 / m[k, k] for k in reversed(range(n)))], tuple(above)


def right_numbers(
    right: Sequence[np.ndarray], most: int
) -> tuple[list[list[Node]], tuple[np.ndarray, ...]]:
    """The numbers of the R, arrays of nodes, each once, and where they are in each.

    They come in groups that take so many operations at most, or have one number.
    """
    found = {x.id: x for R in right for x in R.flat if not _is_zero(x)}
    groups = _groups(sorted(found.values(), key=lambda x: x.id), most)
    group_of = {x.id: i for i, group in enumerate(groups) for x in group}
    # in a group row by row, so that neighbours are neighbours
    order = sorted(found, key=group_of.__getitem__)
    place = {id: i for i, id in enumerate(order)}
    tables = [np.full(R.shape, -1) for R in right]
    for R, table in zip(right, tables, strict=True):
        for at, x in np.ndenumerate(R):
            if not _is_zero(x):
                table[at] = place[x.id]
    numbers = [[found[id] for id in order if group_of[id] == i] for i in range(len(groups))]
    return numbers, tuple(tables)


def _groups(values: Sequence[Node], most: int) -> list[list[Node]]:
    """Values in the order of their making, in groups that need so many nodes at most.

    What several groups need counts for each of them: it is computed in each.
    """
    groups: list[list[Node]] = []
    known: set[int] = set()
    for value in values:
        needed = _needed(value, known)
        if not groups or len(known) + len(needed) > most:
            groups.append([])
            known, needed = set(), _needed(value, set())
        known |= needed
        groups[-1].append(value)
    return groups


def _needed(value: Node, known: set[int]) -> set[int]:
    """What a value needs and is not known yet, itself among it."""
    found: set[int] = set()
    stack = [value]
    while stack:
        node = stack.pop()
        if node.id not in known and node.id not in found:
            found.add(node.id)
            stack += node.args
    return found


def _is_zero(x: Node) -> bool:
    return x.op == "const" and x.value == 0
