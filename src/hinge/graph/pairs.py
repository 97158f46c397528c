"""Matrices over things in a tree, of which only pairs on one branch are kept.

A thing with n rows and columns in a matrix has, one after the other, the blocks of itself with
itself, with its parent, that one's parent and so on: as it meets them when it climbs.  All matrices
of a program have theirs side by side: of a pair (k, i), n(k) n(i) numbers of each pair slot.  The
first of these slots, one a matrix, have blocks above the diagonal and on it, the others below it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

__all__ = ["Matrix", "Pairs"]


@dataclass(frozen=True)
class Matrix:
    """A result with a block for every pair of things on one branch, zero elsewhere.

    above: the pair slot of the blocks (upper, thing); below: of those (thing, upper), None if they
    are the same, transposed, or nothing at all: triangular.
    """

    above: int
    below: int | None = None
    triangular: bool = False


class Pairs:
    """Where everything is.

    above: of each thing the number of its parent, negative for a root; dofs: its rows in a matrix.
    begin, climb: where each thing has itself, and the first pair that it comes to; size: how many
    values there are.
    """

    def __init__(
        self, above: Sequence[int], dofs: Sequence[int], matrices: Sequence[Matrix]
    ) -> None:
        self.above, self.dofs, self.matrices = above, dofs, matrices
        used = {slot for m in matrices for slot in (m.above, m.below) if slot is not None}
        self.slots = len(used)
        # rows of a thing and all above it
        self.reach: list[int] = []
        for up, n in zip(above, dofs, strict=True) if used else ():
            self.reach.append(n + (self.reach[up] if up >= 0 else 0))
        self.begin: list[int] = []
        self.climb: list[int] = []
        self.size = 0
        for n, reach in zip(dofs, self.reach, strict=False):
            self.begin.append(self.size)
            self.climb.append(self.size + len(matrices) * n * n)
            self.size = self.climb[-1] + self.slots * n * (reach - n)

    @property
    def everywhere(self) -> bool:
        """Whether no entry of a matrix is left out: all things are on one branch, and both ways."""
        chain = all(up == i - 1 for i, up in enumerate(self.above))
        return chain and not any(m.triangular for m in self.matrices)

    def place(self, slot: int, thing: int, dof: int) -> int:
        """How far from where a pair begins a pair slot does; dof: of the one above."""
        return slot * self.dofs[thing] * dof

    def index(self) -> np.ndarray:
        """For every entry of every matrix its place, `size` where it is zero."""
        n = sum(self.dofs)
        made = np.full((len(self.matrices), n, n), self.size, np.int32)
        first = np.cumsum([0, *self.dofs])[:-1].tolist()
        paths: list[np.ndarray] = []
        for k, (up, own) in enumerate(zip(self.above, self.dofs, strict=True)):
            # of each row above: its number, that in its thing, rows of that, and from where on
            rows = np.arange(own)
            mine = np.array([first[k] + rows, rows, 0 * rows + own, 0 * rows + self.reach[k]])
            path = np.hstack([mine, paths[up]]) if up >= 0 else mine
            paths.append(path)
            row, inner, dofs, reach = path[:, None]
            column = np.arange(own)[:, None]
            further = self.slots * own * (self.reach[k] - own - reach)
            pair = np.where(reach == self.reach[k], self.begin[k], self.climb[k] + further)
            outside = row[0] < first[k]
            for result, m in zip(made, self.matrices, strict=True):
                above = below = pair + m.above * own * dofs + inner * own + column
                if m.below is not None:
                    below = pair + m.below * own * dofs + column * dofs + inner
                result[row, first[k] + column] = above
                if not m.triangular:
                    result[first[k] + column, row[:, outside]] = below[:, outside]
        return made.reshape(-1)
