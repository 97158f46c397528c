"""Derivatives of functions that call sweeps, as those that relays are traced from do.

    forward     in the place of a sweep y(x) a program of its own gives y and ẏ of x and ẋ
    backward    from the last call to the first, another gives x̄ of x and ȳ

Between calls it is the graph that is differentiated, and what calls give are leaves as the
arguments are.  Backward a sweep itself is run only where something depends on its results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..graph.arrays import cut, entries, leaves, lifted
from ..graph.autodiff import adjoints, substitute, tangents
from ..graph.loop import LoopProgram
from ..graph.program import Program
from ..graph.relay import Call
from ..graph.scalar import Graph, Node, reachable

__all__ = ["Sweep", "pulled_through", "pushed_through"]

Arrays = Sequence[np.ndarray]


class Sweep(Protocol):
    """A program that is called, and how what it gives changes with what it is given."""

    @property
    def program(self) -> Program | LoopProgram:
        """From arrays x to arrays y."""
        ...

    def push(self, call: Call, x: Arrays, dots: Arrays) -> tuple[Arrays, Arrays]:
        """y and ẏ of x and ẋ, with calls of other programs."""
        ...

    def pull(self, call: Call, x: Arrays, bars: Arrays) -> Arrays:
        """x̄ of x and ȳ, with calls of other programs."""
        ...


def pushed_through(
    fn: Callable[..., Any], call: Call | None, primals: Sequence[Any], dots: Sequence[Any]
) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
    """The results of fn(call, *primals) and how they change along dots; fn calls sweeps.

    call: None if it calls none; then that is what it is given.
    """
    tape = _Tape(call, primals)
    seeds = dict(zip(entries(tape.arguments), tape.nodes(dots), strict=True))

    def called(sweep: Sweep, *given: Any) -> tuple[np.ndarray, ...]:
        made = tape.called(sweep, given)
        changes = tape.placed(cut(tangents(entries(made.given), seeds), _shapes(made.given)))
        y, moved = sweep.push(tape.call, tape.placed(made.given), changes)
        tape.know(made, y)
        seeds.update(zip(entries(made.results), tape.nodes(moved), strict=True))
        return made.results

    results = tape.lifted(fn(call and called, *(a.copy()[()] for a in tape.arguments)))
    changes = cut(tangents(entries(results), seeds), _shapes(results))
    return tuple(tape.placed(results)), tuple(tape.placed(changes))


def pulled_through(
    fn: Callable[..., Any], call: Call | None, primals: Sequence[Any], bars: Sequence[Any]
) -> tuple[np.ndarray, ...]:
    """The gradient of Σ bar · result of fn(call, *primals), for each primal; fn calls sweeps.

    call: None if it calls none.
    """
    tape = _Tape(call, primals)

    def called(sweep: Sweep, *given: Any) -> tuple[np.ndarray, ...]:
        return tape.called(sweep, given).results

    results = tape.lifted(fn(call and called, *(a.copy()[()] for a in tape.arguments)))
    total = adjoints(entries(results), tape.nodes(bars), tape.leaves)
    for made in reversed(tape.calls):
        weights = cut([total[leaf] for leaf in entries(made.results)], _shapes(made.results))
        back = made.sweep.pull(tape.call, tape.placed(made.given), tape.placed(weights))
        more = adjoints(entries(made.given), tape.nodes(back), tape.leaves)
        total = {leaf: x + more[leaf] for leaf, x in total.items()}
    found = [total[leaf] for leaf in entries(tape.arguments)]
    return tuple(tape.placed(cut(found, _shapes(tape.arguments))))


class _Called(NamedTuple):
    """A sweep, what it is given, and the leaves that stand for what it gives."""

    sweep: Sweep
    given: list[np.ndarray]
    results: tuple[np.ndarray, ...]


class _Tape:
    """The leaves of a function that calls sweeps, and what they stand for."""

    def __init__(self, call: Any, primals: Sequence[Any]) -> None:
        self.call, self.calls = call, list[_Called]()
        nodes = entries(np.asarray(x) for x in primals)
        self.graph: Graph = next(x.graph for x in nodes if isinstance(x, Node))
        self.arguments = [leaves(self.graph, np.shape(x)) for x in primals]
        self.places = dict(zip(entries(self.arguments), self.nodes(primals), strict=True))
        self.waiting: dict[Node, _Called] = {}

    @property
    def leaves(self) -> list[Node]:
        """All of them."""
        return entries([*self.arguments, *(x for made in self.calls for x in made.results)])

    def lifted(self, arrays: Sequence[Any]) -> list[np.ndarray]:
        """Arrays of nodes."""
        return [lifted("a function that calls sweeps", self.graph, x) for x in arrays]

    def nodes(self, arrays: Sequence[Any]) -> list[Node]:
        """What arrays hold, as nodes."""
        return entries(self.lifted(arrays))

    def called(self, sweep: Sweep, given: Sequence[Any]) -> _Called:
        """A call that waits until something needs its results."""
        results = tuple(leaves(self.graph, shape) for shape in sweep.program.outputs)
        made = _Called(sweep, self.lifted(given), results)
        self.calls.append(made)
        self.waiting.update(dict.fromkeys(entries(results), made))
        return made

    def placed(self, arrays: Arrays) -> list[np.ndarray]:
        """The same with what leaves stand for in their places."""
        for node in reachable(entries(arrays)):
            if node in self.waiting:
                made = self.waiting[node]
                self.know(made, self.call(made.sweep.program, *self.placed(made.given)))
        return cut(substitute(entries(arrays), self.places), _shapes(arrays))

    def know(self, made: _Called, results: Arrays) -> None:
        """A call waits no more: that is what it gives."""
        for leaf, node in zip(entries(made.results), entries(results), strict=True):
            self.places[leaf] = node
            del self.waiting[leaf]


def _shapes(arrays: Arrays) -> list[tuple[int, ...]]:
    return [a.shape for a in arrays]
