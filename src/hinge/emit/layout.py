"""Where the results of a program go: each distinct value once, and an index of the entries."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ..graph.loop import LoopProgram
from ..graph.program import Program
from ..graph.scalar import Node
from .rows import Rows

__all__ = ["Layout", "LoopLayout"]


class Layout:
    """The distinct results of a program: those that vary first, then the constants.

    index: for every entry of every result in turn, the number of its value.
    """

    def __init__(self, program: Program) -> None:
        self.program = program

    @cached_property
    def values(self) -> list[Node]:
        """The distinct values in order."""
        distinct = list({node.id: node for node in self.program.values}.values())
        return sorted(distinct, key=lambda node: node.op == "const")

    @property
    def size(self) -> int:
        """How many distinct values there are."""
        return len(self.values)

    @property
    def varying(self) -> int:
        """How many of them depend on the arguments."""
        return sum(node.op != "const" for node in self.values)

    @cached_property
    def place(self) -> dict[int, int]:
        """The number of each node's value."""
        return {node.id: i for i, node in enumerate(self.values)}

    @property
    def constants(self) -> list[float]:
        """Those that do not, behind the others."""
        return [node.value for node in self.values[self.varying :]]

    @property
    def index(self) -> np.ndarray:
        """For every entry of every result, the number of its value."""
        return np.array([self.place[node.id] for node in self.program.values], np.int32)


class LoopLayout:
    """Where the results of a loop program go.

    Every entry is a value of its own, but of matrices what there is of pairs, and a zero.
    """

    def __init__(self, program: LoopProgram) -> None:
        self.program = program
        self.values: list[Node] = []
        zeros = program.matrices and not program.pairs.everywhere
        self.constants = [0.0] if zeros else []

    @cached_property
    def rows(self) -> Rows:
        """Where everything else is."""
        return Rows(self.program)

    @property
    def size(self) -> int:
        """How many values there are."""
        return self.varying + len(self.constants)

    @property
    def varying(self) -> int:
        """How many of them depend on the arguments."""
        return len(self.program.results) + self.program.pairs.size

    @property
    def index(self) -> np.ndarray:
        """For every entry of every result, the number of its value."""
        if self.program.matrices:
            return self.program.pairs.index()
        return np.arange(self.size, dtype=np.int32)
