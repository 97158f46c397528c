"""The steps of a plan: what is done at a body when a sweep comes by.

A sweep visits the bodies inward or outward and runs its steps at each.  A step reads what earlier
steps left at the body and leaves its own block there; a `Carry` also passes something on along the
sweep.  Blocks are vectors or matrices of columns of any scalar.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from .leaves import Chain, Dense, Hold, Hop, Local, Pick
from .numbers import same_number, signed_sum
from .spaces import Space

__all__ = [
    "Apply",
    "Carry",
    "Combine",
    "Couple",
    "Direction",
    "Given",
    "Memory",
    "Reach",
    "Step",
]

Direction = Literal["inward", "outward", ""]


class Memory:
    """What the steps of a plan have left at each body, by the number of the step.

    at: the configuration, which knows the blocks of the leaves; columns: () if the blocks are
    vectors, (n,) if they are matrices of n columns.
    """

    def __init__(self, at: Any, steps: Sequence[Step], columns: tuple[int, ...]) -> None:
        self.values: list[list[Any]] = [[None] * len(step.space.sizes) for step in steps]
        self.at, self.columns = at, columns
        self._blocks: dict[int, Sequence[Any]] = {}

    def blocks(self, leaf: Local | Pick | Hold | Dense) -> Sequence[Any]:
        """The blocks of a leaf of the plan."""
        found = self._blocks.get(id(leaf))
        if found is None:
            found = self._blocks[id(leaf)] = self.at.blocks(leaf)
        return found

    def zero(self, size: int) -> np.ndarray:
        """A block of zeros."""
        return np.zeros((size, *self.columns))


@dataclass(frozen=True)
class Step(ABC):
    """One step: the space of its result and the steps it reads (None where it reads nothing)."""

    space: Space
    args: tuple[int | None, ...]

    @property
    def direction(self) -> Direction:
        """The way its sweep must go; nothing if any way will do."""
        return ""

    @abstractmethod
    def visit(self, memory: Memory, me: int, p: int, k: int) -> None:
        """Work at body k, whose parent is p."""

    @abstractmethod
    def show(self, names: list[str]) -> str:
        """The step as text, given the names of what it reads."""


@dataclass(frozen=True)
class Given(Step):
    """A vector that the plan is given; which: its number."""

    which: int

    def visit(self, memory: Memory, me: int, p: int, k: int) -> None:
        """Nothing to do."""

    def show(self, names: list[str]) -> str:
        """Nothing to show."""
        return ""


@dataclass(frozen=True)
class Combine(Step):
    """A sum of multiples; of frame vectors it is formed frame by frame."""

    coefficients: tuple[Any, ...]

    def visit(self, memory: Memory, me: int, p: int, k: int) -> None:
        """Σ c v(k)."""
        out = memory.zero(self.space.sizes[k])
        for i, (c, arg) in enumerate(zip(self.coefficients, self.args, strict=True)):
            v = memory.values[arg or 0][k]
            term = v if same_number(c, 1) else -v if same_number(c, -1) else c * v
            out = term if i == 0 else out + term
        memory.values[me][k] = out

    def show(self, names: list[str]) -> str:
        """As in v1 - 2 v2."""
        return signed_sum(zip(self.coefficients, names, strict=True), " ") or "0"


@dataclass(frozen=True)
class Apply(Step):
    """A block of a local operator."""

    leaf: Local

    def visit(self, memory: Memory, me: int, p: int, k: int) -> None:
        """X(k) v(k)."""
        block, v = memory.blocks(self.leaf)[k], memory.values[self.args[0] or 0][k]
        memory.values[me][k] = block.T @ v if self.leaf.adjoint else block @ v

    def show(self, names: list[str]) -> str:
        """As in D.inv v1."""
        return f"{self.leaf} {names[0]}"


@dataclass(frozen=True)
class Reach(Step):
    """From frames to the bodies that carry them, or back."""

    leaf: Pick | Hold

    def visit(self, memory: Memory, me: int, p: int, k: int) -> None:
        """Σ φ(k, frame) v(frame), or φ*(k, frame) v(k), of all bodies that a constraint holds."""
        v, out = memory.values[self.args[0] or 0], memory.values[me]
        ends = zip(self.leaf.ends, memory.blocks(self.leaf), strict=True)
        mine = [(i, phi) for (i, body), phi in ends if body == k]
        if self.leaf.adjoint:
            for i, phi in mine:
                moved = phi.T @ v[k]
                out[i] = moved if out[i] is None else out[i] + moved
        else:
            memory.values[me][k] = sum((phi @ v[i] for i, phi in mine), memory.zero(6))

    def show(self, names: list[str]) -> str:
        """As in B.T v1."""
        return f"{self.leaf} {names[0]}"


@dataclass(frozen=True)
class Couple(Step):
    """A matrix on all frames."""

    leaf: Dense

    def visit(self, memory: Memory, me: int, p: int, k: int) -> None:
        """Σ A(k, j) v(j)."""
        v, sizes = memory.values[self.args[0] or 0], self.space.sizes
        parts = [memory.zero(n) if x is None else x for x, n in zip(v, sizes, strict=True)]
        start = sum(sizes[:k])
        rows = memory.blocks(self.leaf)[0][start : start + sizes[k]]
        memory.values[me][k] = rows @ np.concatenate(parts)

    def show(self, names: list[str]) -> str:
        """As in Lambda v1."""
        return f"{self.leaf} {names[0]}"


@dataclass(frozen=True)
class Carry(Step):
    """A hop or a chain.  Inward it computes, with E = φ of the hop,

        hop E y             v(p) = Σ E y(k)
        φ u + φ E y         v(p) = u(p) + Σ E (v(k) + y(k))
        ψ u + ψ E (y + Gx)  v(p) = u(p) + Σ E (v(k) + y(k) + G(k) (x(k) − H(k) v(k)))

    and outward, of u alone, v(k) = E* u(p), u(k) + E* v(p), u(k) + (1 − H*(k) G*(k)) E* v(p).
    args: u, y, x.
    """

    leaf: Hop | Chain

    @property
    def direction(self) -> Direction:
        """Inward, or outward if transposed."""
        return "outward" if self.leaf.adjoint else "inward"

    def visit(self, memory: Memory, me: int, p: int, k: int) -> None:
        """Take what arrived, leave the block, pass on the rest."""
        u, y, x = (None if a is None else memory.values[a] for a in self.args)
        v, phi = memory.values[me], memory.at.phi_blocks[k]
        if self.leaf.adjoint:
            source = v if isinstance(self.leaf, Chain) else u
            arrived = phi.T @ source[p] if p and source else memory.zero(6)
            v[k] = self._outward(memory, arrived, u, k)
            return
        arrived = memory.zero(6) if v[k] is None else v[k]
        v[k] = arrived if u is None else arrived + u[k]
        if p:
            passed = phi @ self._passed(memory, v[k], y, x, k)
            v[p] = passed if v[p] is None else v[p] + passed

    def _outward(self, memory: Memory, arrived: Any, u: Any, k: int) -> Any:
        if isinstance(self.leaf, Hop):
            return arrived
        if self.leaf.gain is not None:
            G, H = (memory.blocks(leaf)[k] for leaf in self.leaf.gain)
            arrived = arrived - H.T @ (G.T @ arrived)
        return arrived if u is None else arrived + u[k]

    def _passed(self, memory: Memory, v: Any, y: Any, x: Any, k: int) -> Any:
        if isinstance(self.leaf, Hop):
            return y[k]
        passed = v if y is None else v + y[k]
        if self.leaf.gain is None:
            return passed
        G, H = (memory.blocks(leaf)[k] for leaf in self.leaf.gain)
        eps = -(H @ v) if x is None else x[k] - H @ v
        return passed + G @ eps

    def show(self, names: list[str]) -> str:
        """As in psi(v1 + E_phi(v2 + G v3))."""
        if isinstance(self.leaf, Hop):
            return f"{self.leaf} {''.join(names)}"
        u, y, x = names
        G = "" if self.leaf.gain is None else f"{self.leaf.gain[0]} "
        inner = " + ".join(part for part in (y, G + x if x else "") if part)
        terms = [part for part in (u, f"{self.leaf.hop}({inner})" if inner else "") if part]
        return f"{self.leaf} {terms[0]}" if terms == [u] else f"{self.leaf}({' + '.join(terms)})"
