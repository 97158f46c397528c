"""From an expression to the fewest sweeps that apply it to a vector.

`plan` turns an expression into steps, one per leaf, equal steps once.  Where several terms begin
with the same leaf it is applied to their sum: A B x + A C y becomes A (B x + C y); what a chain
receives through its own hop rides on that hop, and G x − G H z becomes G (x − H z).  A local step
joins the sweep of what it reads; a hop or a chain joins it if the directions agree, else it opens
the next one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .block import Block
from .expr import Adjoint, Identity, Product, Sum, Zero
from .leaves import Chain, Dense, Hold, Hop, Local, Named, Pick
from .numbers import same_number
from .operator import Operator
from .spaces import Space
from .steps import Apply, Carry, Combine, Couple, Direction, Given, Memory, Reach, Step

__all__ = ["Plan", "evaluate", "plan"]

# c · factors · step
Term = tuple[Any, tuple[Operator, ...], Any]


@dataclass(frozen=True)
class Plan:
    """Steps, the sweep each rides in, the way each sweep goes, and the step of the result."""

    steps: tuple[Step, ...]
    sweep_of: tuple[int, ...]
    directions: tuple[Direction, ...]
    result: Any

    def riding(self, sweep: int) -> list[int]:
        """The numbers of the steps of a sweep."""
        return [i for i, s in enumerate(self.sweep_of) if s == sweep]

    def run(self, at: Any, given: Sequence[Any], columns: tuple[int, ...]) -> Any:
        """The blocks of the result at a configuration, from those of each vector given."""
        mech, memory = at.mechanism, Memory(at, self.steps, columns)
        for step, values in zip(self.steps, memory.values, strict=True):
            if isinstance(step, Given):
                values[:] = given[step.which]
        for sweep, direction in enumerate(self.directions):
            at_bodies = []
            for i in self.riding(sweep):
                if _of_frames(self.steps[i]):
                    for k in range(len(self.steps[i].space.sizes)):
                        self.steps[i].visit(memory, i, 0, k)
                else:
                    at_bodies.append(i)
            for p, k in mech.inward() if direction == "inward" else mech.outward():
                for i in at_bodies:
                    self.steps[i].visit(memory, i, p, k)
        return self._gathered(self.result, memory)

    def _gathered(self, result: Any, memory: Memory) -> Any:
        if isinstance(result, tuple):
            return tuple(self._gathered(part, memory) for part in result)
        sizes = self.steps[result].space.sizes
        pairs = zip(memory.values[result], sizes, strict=True)
        return [memory.zero(size) if v is None else v for v, size in pairs]


def evaluate(A: Operator, at: Any, x: np.ndarray) -> np.ndarray:
    """A x at a configuration, for a vector (dim,) or columns (dim, n) of any scalar."""
    blocks = A.into.split(x)
    given = list(blocks) if isinstance(blocks, tuple) else [blocks]
    return A.out.join(plan(A).run(at, given, x.shape[1:]))


def plan(A: Operator) -> Plan:
    """The steps that apply A, and the sweeps they ride in."""
    if "plan" not in A.memo:
        A.memo["plan"] = _planned(A.symbol)
    return A.memo["plan"]


def _planned(A: Operator) -> Plan:
    lowering = _Lowering()
    parts = A.into.parts or (A.into,)
    given = [lowering.step(Given(part, (), i)) for i, part in enumerate(parts)]
    start = tuple(given) if A.into.parts else given[0]
    result = lowering.value([(1, (A,), start)], A.out)
    steps = tuple(lowering.steps)
    sweep_of, directions = _schedule(steps)
    return Plan(steps, sweep_of, directions, result)


class _Lowering:
    """Steps made so far, each once."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.known: dict[Step, int] = {}

    def step(self, step: Step) -> int:
        """The number of a step, which is new unless an equal one is there."""
        if step not in self.known:
            self.known[step] = len(self.steps)
            self.steps.append(step)
        return self.known[step]

    def value(self, terms: list[Term], space: Space) -> Any:
        """The step that computes Σ c · factors · v; a tuple of steps in a direct sum."""
        terms = self.opened(terms)
        if space.parts:
            return self.stacked(terms, space)
        plain: dict[int, Any] = {}
        groups: dict[Operator, list[Term]] = {}
        for c, factors, v in terms:
            if factors:
                groups.setdefault(factors[0], []).append((c, factors[1:], v))
            else:
                plain[v] = plain[v] + c if v in plain else c
        for leaf, inner in groups.items():
            scale, inner = _normalised(inner)
            v = self.applied(leaf, inner)
            plain[v] = plain[v] + scale if v in plain else scale
        if len(plain) == 1 and same_number(next(iter(plain.values())), 1):
            return next(iter(plain))
        return self.step(Combine(space, tuple(plain), tuple(plain.values())))

    def stacked(self, terms: list[Term], space: Space) -> tuple[Any, ...]:
        """The steps of each part of a direct sum."""
        rows: list[list[Term]] = [
            [(c, (), v[i]) for c, f, v in terms if not f] for i in range(len(space.parts))
        ]
        heads = dict.fromkeys(f[0] for _, f, _ in terms if f)
        for head in [h for h in heads if isinstance(h, Block)]:
            inner = self.value(_sift(terms, head)[1], head.into)
            columns = inner if head.into.parts else (inner,)
            for row, entries in zip(rows, head.rows, strict=True):
                row += [(1, (op,), v) for op, v in zip(entries, columns, strict=True)]
        return tuple(self.value(row, part) for row, part in zip(rows, space.parts, strict=True))

    def opened(self, terms: list[Term]) -> list[Term]:
        """The terms with a leaf as first factor: names, products and sums are spread out.

        What a sum or a row of blocks acts on is worked out first, once for all terms it begins.
        """
        terms = [_opened_name(term) for term in terms]
        terms = [t for t in terms if not (t[1] and isinstance(t[1][0], Zero))]
        heads = [f for _, f, _ in terms if f and isinstance(f[0], Sum | Block)]
        head: Any = min(heads, key=len, default=(None,))[0]
        if head is None or (isinstance(head, Block) and head.out.parts):
            return terms
        others, same = _sift(terms, head)
        inner = self.value(same, head.into)
        if isinstance(head, Sum):
            spread = [(c, (op,), inner) for c, op in head.terms]
        else:
            spread = [(1, (op,), inner[j]) for j, op in enumerate(head.rows[0])]
        return self.opened(others + spread)

    def applied(self, leaf: Any, inner: list[Term]) -> int:
        """The step of a leaf on the sum of the terms."""
        if isinstance(leaf, Chain) and not leaf.adjoint:
            return self.chained(leaf, inner)
        arg = self.value(inner, leaf.into)
        match leaf:
            case Local():
                return self.step(Apply(leaf.out, (arg,), leaf))
            case Pick() | Hold():
                return self.step(Reach(leaf.out, (arg,), leaf))
            case Dense():
                return self.step(Couple(leaf.out, (arg,), leaf))
            case Hop(adjoint=False):
                return self.step(Carry(leaf.out, (None, arg, None), leaf))
        return self.step(Carry(leaf.out, (arg, None, None), leaf))

    def chained(self, leaf: Chain, inner: list[Term]) -> int:
        """A chain inward: what reaches it through its hop, and through its gain, apart."""
        direct, hopped = _sift(self.opened(inner), leaf.hop)
        hopped = self.opened(hopped)
        plain, gained = _sift(hopped, leaf.gain[0]) if leaf.gain else (hopped, [])
        args = tuple(
            self.value(part, space) if part else None
            for part, space in (
                (direct, leaf.into),
                (plain, leaf.into),
                (gained, leaf.gain[0].into if leaf.gain else leaf.into),
            )
        )
        return self.step(Carry(leaf.out, args, leaf))


def _opened_name(term: Term) -> Term:
    """The term with names, products and single scaled terms at its head spread out."""
    c, factors, v = term
    while factors:
        match factors[0]:
            case Named() | Adjoint() as head:
                factors = (head.opened, *factors[1:])
            case Product() as head:
                factors = (*head.factors, *factors[1:])
            case Identity():
                factors = factors[1:]
            case Sum(terms=((scale, op),)):
                c, factors = c * scale, (op, *factors[1:])
            case _:
                break
    return c, factors, v


def _sift(terms: list[Term], head: Operator) -> tuple[list[Term], list[Term]]:
    """The terms that do not begin with the operator, and those that do, without it."""
    mine = [(c, f[1:], v) for c, f, v in terms if f and f[0] == head]
    return [t for t in terms if not (t[1] and t[1][0] == head)], mine


def _normalised(terms: list[Term]) -> tuple[Any, list[Term]]:
    """A factor and the terms without it, so that a vector and its multiple are worked out once."""
    first = terms[0][0]
    if len(terms) == 1:
        return first, [(1, *terms[0][1:])]
    if isinstance(first, (int, float)) and first < 0:
        return -1, [(-c, f, v) for c, f, v in terms]
    return 1, terms


def _of_frames(step: Step) -> bool:
    of_frames = step.space.name.startswith(("frame", "constraint"))
    return isinstance(step, Couple) or (isinstance(step, Combine) and of_frames)


def _schedule(steps: Sequence[Step]) -> tuple[tuple[int, ...], tuple[Direction, ...]]:
    """The sweep of each step: no earlier than what it reads, in a sweep that goes its way."""
    sweeps: list[Direction] = [""]
    sweep_of: list[int] = []
    ready: list[int] = []
    for step in steps:
        sweep = max((ready[a] for a in step.args if a is not None), default=0)
        while step.direction and sweep < len(sweeps) and sweeps[sweep] not in ("", step.direction):
            sweep += 1
        if sweep == len(sweeps):
            sweeps.append("")
        if step.direction:
            sweeps[sweep] = step.direction
        sweep_of.append(sweep)
        gathers = isinstance(step, Reach) and step.leaf.adjoint
        ready.append(sweep + 1 if gathers else sweep)
    return tuple(sweep_of), tuple(sweeps)
