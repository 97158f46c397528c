"""What CasADi calls: a kernel between matrices of CasADi, and the pieces that are its derivatives.

A matrix of CasADi lies column after column and may be sparse; with several samples each matrix is
as many side by side, so that the samples follow each other in memory as a kernel has them, and a
Jacobian is block diagonal, a sample's block after the other.  So every piece is one batched call of
one kernel, whose arguments and results are the entries that are not structurally zero.

    jacobian    ∂ result_i/∂ argument_j          reverse    Σᵢ (∂ result_i/∂ argument_j)ᵀ w_i
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod
from typing import NamedTuple

import numpy as np

from ..errors import ArgumentError
from ..graph.arrays import cut, entries, inputs
from ..graph.autodiff import adjoints, jacobian_nodes
from ..graph.program import Program, applied
from ..graph.scalar import Graph, Node
from ..runtime.kernel import Kernel

__all__ = ["Piece", "Slot", "as_matrix", "whole"]


class Slot(NamedTuple):
    """A matrix of CasADi: its name, its shape, and where its entries are, column after column.

    places: (samples, entries), of those that are not zero.
    """

    name: str
    shape: tuple[int, int]
    places: np.ndarray

    @classmethod
    def dense(cls, name: str, shape: tuple[int, ...], samples: int) -> Slot:
        """As many matrices side by side."""
        rows, columns = as_matrix(shape)
        places = np.arange(rows * columns * samples).reshape(samples, rows * columns)
        return cls(name, (rows, columns * samples), places)

    @property
    def entries(self) -> int:
        """How many a sample has."""
        return self.places.shape[1]

    def empty(self, name: str) -> Slot:
        """A matrix of this shape with nothing but zeros."""
        return Slot(name, self.shape, self.places[:, :0])

    def named(self, name: str) -> Slot:
        """The same by another name."""
        return self._replace(name=name)

    def by(self, other: Slot, rows: np.ndarray, columns: np.ndarray) -> Slot:
        """The Jacobian of this by another: which entries by which others are not zero."""
        height, width = prod(self.shape), prod(other.shape)
        places = self.places[:, rows] + height * other.places[:, columns]
        return Slot(f"jac_{self.name}_{other.name}", (height, width), places)

    @property
    def sparsity(self) -> np.ndarray:
        """As CasADi has it: rows, columns, where columns begin, the row of each entry."""
        rows, columns = self.shape
        column, row = np.divmod(self.places.ravel(), max(rows, 1))
        starts = np.searchsorted(column, np.arange(columns + 1))
        return np.concatenate([[rows, columns], starts, row]).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Piece:
    """A function for CasADi.

    used, made: which of the slots the kernel takes and gives; no other slot has entries.
    """

    name: str
    arguments: tuple[Slot, ...]
    results: tuple[Slot, ...]
    used: tuple[int, ...]
    made: tuple[int, ...]
    kernel: Kernel

    @property
    def samples(self) -> int:
        """How many are worked on in one call."""
        return (*self.arguments, *self.results)[0].places.shape[0]

    @cached_property
    def jacobian(self) -> Piece:
        """Block after block, those of the first result first.

        CasADi gives the results as well, which are not looked at.
        """
        given = (*self.arguments, *(slot.empty(f"out_{slot.name}") for slot in self.results))
        blocks = self._blocks()
        slots, values = [], []
        for i, result in enumerate(self.results):
            for j, argument in enumerate(self.arguments):
                block = blocks.get((i, j), _NOTHING)
                columns, rows = np.nonzero(_may_differ_from_zero(block).T)
                slots.append(result.by(argument, rows, columns))
                values.append(block[rows, columns])
        return self._derived("jac", given, self.used, slots, values)

    @cached_property
    def reverse(self) -> Piece:
        """Jᵀ w: arguments, results, which are not looked at, and their weights."""
        n, m = len(self.arguments), len(self.results)
        outs = [slot.empty(f"out_{slot.name}") for slot in self.results]
        weights = [slot.named(f"adj_{slot.name}") for slot in self.results]
        sizes = [self.results[i].entries for i in self.made]
        leaves, given, nodes = _opened(self.kernel.program, sizes)
        bars = list(adjoints(nodes, given, leaves).values())
        slots = [slot.named(f"adj_{slot.name}") for slot in self.arguments]
        parts = _split(bars, [self.arguments[j].entries for j in self.used])
        values = [parts[self.used.index(j)] if j in self.used else _NO_NODES for j in range(n)]
        used = (*self.used, *(n + m + i for i in self.made))
        arguments, known = (*self.arguments, *outs, *weights), self.kernel.hessian
        return self._derived("adj1", arguments, used, slots, values, known)

    def _blocks(self) -> dict[tuple[int, int], np.ndarray]:
        """∂ result/∂ argument, dense, for those that the kernel has."""
        widths = [self.arguments[j].entries for j in self.used]
        if self.kernel.jacobian is not None:
            pairs = list(product(self.made, self.used))
            shapes = [(self.results[i].entries, self.arguments[j].entries) for i, j in pairs]
            return dict(zip(pairs, cut(self.kernel.jacobian().values, shapes), strict=True))
        leaves, _, nodes = _opened(self.kernel.program)
        J = jacobian_nodes(nodes, leaves)
        bands = np.split(J, np.cumsum([self.results[i].entries for i in self.made])[:-1])
        return {
            (i, j): block
            for i, band in zip(self.made, bands, strict=True)
            for j, block in zip(self.used, np.split(band, np.cumsum(widths)[:-1], 1), strict=True)
        }

    def _derived(
        self,
        kind: str,
        arguments: Sequence[Slot],
        used: Sequence[int],
        results: Sequence[Slot],
        values: Sequence[np.ndarray],
        jacobian: Callable[[], Program] | None = None,
    ) -> Piece:
        """Another piece, of nodes; jacobian: as a kernel has it."""
        name, made = f"{kind}_{self.name}", [i for i, x in enumerate(values) if len(x)]
        takes = tuple((arguments[j].entries,) for j in used)
        gives = tuple((results[i].entries,) for i in made)
        program = Program(name, takes, gives, tuple(entries(values)), tuple)
        own = self.kernel
        kernel = Kernel(program, name, (), own.dtype, own.backend, jacobian=jacobian)
        return Piece(name, tuple(arguments), tuple(results), tuple(used), tuple(made), kernel)


def whole(name: str, kernel: Kernel, samples: int) -> Piece:
    """The piece of a kernel itself; name: what CasADi calls it."""
    artifact, form = kernel.artifact, kernel.program.form
    results = getattr(form, "_fields", None) or [f"o{i}" for i in range(len(artifact.outputs))]
    takes, gives = (
        tuple(Slot.dense(_word(n), shape, samples) for n, shape in zip(names, shapes, strict=True))
        for names, shapes in ((kernel.names, artifact.inputs), (results, artifact.outputs))
    )
    everything = tuple(range(len(takes))), tuple(range(len(gives)))
    return Piece(name, takes, gives, *everything, _column_major(kernel))


def _column_major(kernel: Kernel) -> Kernel:
    """The kernel with matrices column after column: itself, if it has none."""
    artifact = kernel.artifact
    if all(1 in as_matrix(shape) for shape in (*artifact.inputs, *artifact.outputs)):
        return kernel
    program, graph = kernel.program, Graph()
    if not isinstance(program, Program):
        raise ArgumentError(
            f"casadi.function: {kernel.name} is a loop over bodies with matrices, which it has row "
            f"after row and CasADi column after column; leave out matrices such as f_ext"
        )
    arrays = [inputs(graph, (n,)) for n in program.input_sizes]
    # a matrix column after column is its transpose row after row
    turned = [
        a.reshape(as_matrix(shape)[::-1]).T for a, shape in zip(arrays, program.inputs, strict=True)
    ]
    values = [x.reshape(as_matrix(x.shape)).T for x in applied(program, graph, turned)]
    takes, gives = (
        tuple((n,) for n in sizes) for sizes in (program.input_sizes, program.output_sizes)
    )
    flat = Program(program.name, takes, gives, tuple(entries(values)), tuple)
    return Kernel(flat, kernel.name, kernel.names, kernel.dtype, kernel.backend)


_NO_NODES = np.empty(0, dtype=object)
_NOTHING = np.empty((0, 0), dtype=object)


def as_matrix(shape: tuple[int, ...]) -> tuple[int, int]:
    """Vectors are columns; of a higher array the matrices are one above the other."""
    if len(shape) < 2:
        return prod(shape), 1
    return prod(shape[:-1]), shape[-1]


def _opened(
    program: Program, more: Sequence[int] = ()
) -> tuple[list[Node], list[Node], list[Node]]:
    """The program in a graph of its own: inputs, as many more inputs, values."""
    graph = Graph()
    leaves = entries(inputs(graph, (n,)) for n in program.input_sizes)
    others = entries(inputs(graph, (n,)) for n in more)
    return leaves, others, entries(applied(program, graph, [np.array(leaves, dtype=object)]))


def _split(nodes: Sequence[Node], sizes: Sequence[int]) -> list[np.ndarray]:
    return cut(nodes, [(n,) for n in sizes])


def _may_differ_from_zero(block: np.ndarray) -> np.ndarray:
    there = [not (x.op == "const" and x.value == 0) for x in block.ravel()]
    return np.array(there, dtype=bool).reshape(block.shape)


def _word(name: str) -> str:
    """A name that CasADi takes: letters, digits and single underscores, a letter first."""
    return re.sub(r"_+", "_", re.sub(r"\W", "_", name)).strip("_") or "x"
