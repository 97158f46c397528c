"""Blocks of operators, between direct sums of spaces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import ArgumentError
from .expr import Identity, Symbol, home_of
from .operator import Operator, place
from .spaces import ANY, Space, direct_sum

__all__ = ["Block", "block"]

Grid = tuple[tuple[Operator, ...], ...]


@dataclass(frozen=True, repr=False)
class Block(Symbol):
    """Operators in rows and columns, between direct sums of spaces."""

    rows: Grid

    @property
    def lasting(self) -> bool:
        """Whether all entries are."""
        return all(entry.lasting for row in self.rows for entry in row)

    def turned(self) -> Operator:
        """The adjoints, rows and columns exchanged."""
        return _stacked(
            tuple(tuple(e.T for e in column) for column in zip(*self.rows, strict=True))
        )

    def _everywhere(self, x: np.ndarray) -> np.ndarray:
        parts = self.into.parts or (self.into,)
        ends = np.cumsum([part.dim for part in parts])[:-1]
        columns = np.split(x, ends, axis=max(x.ndim - 2, 0))
        rows = (sum(e @ c for e, c in zip(row, columns, strict=True)) for row in self.rows)
        return np.concatenate(list(rows), axis=max(x.ndim - 2, 0))

    def __repr__(self) -> str:
        rows = ("[" + ", ".join(str(e) for e in row) + "]" for row in self.rows)
        return f"block([{', '.join(rows)}])"

    def _latex(self) -> str:
        rows = r" \\ ".join(" & ".join(e._latex() for e in row) for row in self.rows)
        return rf"\begin{{bmatrix}} {rows} \end{{bmatrix}}"


def block(rows: Sequence[Sequence[Operator]]) -> Operator:
    """Operators in rows and columns: `block([[A, B], [C, D]])`, between direct sums of spaces."""
    given = tuple(tuple(row) for row in rows)
    if not given or not all(len(row) == len(given[0]) > 0 for row in given):
        lengths = ", ".join(str(len(row)) for row in given) or "none"
        raise ArgumentError(
            f"block needs rows of the same length, at least one operator in each; got rows of "
            f"length {lengths}"
        )
    for i, row in enumerate(given):
        for j, entry in enumerate(row):
            if not isinstance(entry, Operator):
                raise ArgumentError(
                    f"block: entry ({i}, {j}) is a {type(entry).__name__}, not an operator"
                )
    at = place([entry for row in given for entry in row])
    symbols = tuple(tuple(entry.symbol for entry in row) for row in given)
    return _stacked(_with_spaces(symbols)).bind(at)


def _stacked(grid: Grid) -> Operator:
    if len(grid) == len(grid[0]) == 1:
        return grid[0][0]
    out = direct_sum([row[0].out for row in grid])
    into = direct_sum([entry.into for entry in grid[0]])
    return Block(out, into, home_of([e for row in grid for e in row]), grid)


def _with_spaces(grid: Grid) -> Grid:
    """The grid, if rows and columns fit; identities take the space of their row or column."""
    outs = [next((e.out for e in row if e.out != ANY), ANY) for row in grid]
    intos = [next((e.into for e in c if e.into != ANY), ANY) for c in zip(*grid, strict=True)]
    rows = []
    for i, row in enumerate(grid):
        entries = []
        for j, entry in enumerate(row):
            if entry.out == ANY:
                entry = Identity(outs[i] if outs[i] != ANY else intos[j])
            wanted = (_known(outs[i], entry.out), _known(intos[j], entry.into))
            if (entry.out, entry.into) != wanted:
                raise ArgumentError(
                    f"block: entry ({i}, {j}), {entry}, takes {entry.into} to {entry.out} vectors; "
                    f"its row and column need {wanted[1]} to {wanted[0]}"
                )
            entries.append(entry)
        rows.append(tuple(entries))
    return tuple(rows)


def _known(space: Space, otherwise: Space) -> Space:
    return otherwise if space == ANY else space
