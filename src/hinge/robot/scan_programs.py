"""The functions of a plan as scans along paths (`graph/path_scan.py`), for cards.

A product of two elements of inertias comes in three stages: what they are joined by, then the
columns of what met, then those of the product (`meetings` and `carryings` of `log_depth.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np

from ..algorithms import log_depth as steps
from ..graph.path_scan import Elements, Joined, PathScan, Slices
from ..graph.program import Program, trace
from .scan_plan import INERTIAS, Along, Each, Operation, shapes_of

__all__ = ["Programs"]

# what two elements are joined by
_FACTORED = [np.empty(shape) for shape in ((6, 6), (6, 6), 6, 6, 6)]


@final
class Programs:
    """The functions of a plan as scans; rounding: that of the numbers that they work on."""

    def __init__(self, rounding: float) -> None:
        self._rounding = rounding

    def key(self, op: Operation) -> tuple[str, ...] | None:
        """What the code is kept under: it is the same for all robots."""
        found = _found(op)
        if isinstance(op, Each):
            return None if op.key is None else (op.key, str(found))
        own = op.way.walk.__name__, tuple(op.writes), found, self._rounding
        return tuple(map(str, own))

    def shapes(self, op: Operation) -> list[tuple[int, ...]]:
        """Of what an operation reads."""
        if isinstance(op, Each):
            return list(op.shapes.values())
        return list(shapes_of(op.way.walk).values())[len(op.way.enters) :]

    def ends(self, op: Operation) -> list[tuple[int, ...]]:
        """Of what it writes."""
        if isinstance(op, Each):
            return list(_traced(op.fn, self.shapes(op)).outputs)
        whole = _traced(op.way.walk, list(shapes_of(op.way.walk).values()))
        return [whole.outputs[i] for i in op.writes]

    def scan(self, op: Operation) -> PathScan:
        """An operation, traced."""
        if isinstance(op, Each):
            return PathScan(_traced(op.fn, self.shapes(op)), _found(op))
        way, own = op.way, list(shapes_of(op.way.walk).values())
        carried = len(way.enters)

        def walk(*x: Any) -> tuple[Any, ...]:
            made = tuple(way.walk(*x))
            return *made[:carried], *(made[i] for i in op.writes)

        return PathScan(_traced(walk, own), _found(op), self._elements(op, own[carried:]))

    def _elements(self, op: Along, given: list[tuple[int, ...]]) -> Elements:
        way, none = op.way, op.way.none
        own = [x.shape for x in none]

        def begin(*x: Any) -> tuple[Any, ...]:
            return tuple(way.sweep(*none, *(x[i] for i in op.swept)))

        def extend(*x: Any) -> tuple[Any, ...]:
            element, rest = x[: len(none)], x[len(none) :]
            return tuple(way.sweep(*element, *(rest[i] for i in op.swept)))

        join = self._joined() if way.join is None else _traced(way.join, [*own, *own])
        programs = _traced(begin, given), _traced(extend, [*own, *given]), join
        return Elements(*programs, tuple(none), way.enters)

    def _joined(self) -> Joined:
        """The product of elements, a column of it for each warp."""
        own, made = INERTIAS.none, sum(x.size for x in _FACTORED)
        size = sum(x.size for x in own)
        # numbers are counted through i, j, what stages make, f and then e, and constants; met is
        # e as counted from the first that stages make
        i, j, e, met = (
            steps.Element(*_numbered(own, start)) for start in (0, size, 2 * size + made, made)
        )
        f = steps.Factored(*_numbered(_FACTORED, 2 * size))
        one, minus = _numbered([np.eye(6), np.eye(6)], 3 * size + made)

        def factored(C: Any, b: Any, J: Any, eta: Any) -> tuple[Any, ...]:
            return steps.factored(C, b, J, eta, self._rounding)

        ends = np.stack([np.arange(made)] * 2, 1)
        first = _slices(factored, [(i.C, i.b, j.J, j.eta)], [ends])
        columns = _columns(met, made + size)
        second = _slices(steps.met, steps.meetings(i, j, f, one, minus), columns)
        third = _slices(steps.carried, steps.carryings(i, j, e, one), _columns(i, size))
        constants = np.stack([np.eye(6), -np.eye(6)]).ravel()
        return Joined((first, second, third), made + size, constants)


def _numbered(like: Sequence[np.ndarray], start: int) -> list[np.ndarray]:
    """Numbers for the entries of arrays, counted through all of them."""
    ends = np.cumsum([start, *(x.size for x in like)])
    return [k + np.arange(x.size).reshape(x.shape) for k, x in zip(ends, like, strict=False)]


def _columns(to: steps.Element, none: int) -> list[np.ndarray]:
    """Where columns of a product go: of what is symmetric those below the diagonal, to both sides.

    none: the place for the others.
    """
    below = np.tri(6, dtype=bool)
    found = [np.stack([to.A[:, c]] * 2, 1) for c in range(6)]
    for vector, matrix in ((to.b, to.C), (to.eta, to.J)):
        found.append(np.stack([vector] * 2, 1))
        both = np.stack([matrix, matrix.T], 2)
        found += [np.where(below[:, c, None], both[:, c], none) for c in range(6)]
    return found


def _slices(
    fn: Callable[..., Any], given: Sequence[tuple[Any, ...]], ends: Sequence[np.ndarray]
) -> tuple[Slices, ...]:
    """A function of several slices, by the numbers of their entries: one program for each shape."""
    alike: dict[Any, list[int]] = {}
    for k, arrays in enumerate(given):
        alike.setdefault(tuple(x.shape for x in arrays), []).append(k)
    return tuple(
        Slices(
            _traced(fn, shapes),
            np.array([np.concatenate([x.ravel() for x in given[k]]) for k in own]),
            np.array([ends[k] for k in own]),
        )
        for shapes, own in alike.items()
    )


def _found(op: Operation) -> tuple[bool, ...]:
    """Of all that it reads and writes, whether it is found by a table."""
    writes = op.writes.values() if isinstance(op, Along) else op.writes
    return tuple(x.rows is not None for x in (*op.reads, *writes))


def _traced(fn: Callable[..., Any], shapes: Sequence[tuple[int, ...]]) -> Program:
    """A function as a program, of several results or one."""
    return trace(fn, shapes, fn.__name__)
