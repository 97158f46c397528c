"""The leaves of operator expressions: what sweeps are made of.

A local operator works on each body by itself and rides along with any sweep; a hop or a chain is
a sweep, inward, or outward if it is transposed; a pick joins frames to the bodies that carry them.
A leaf is a symbol: what its blocks are at a configuration, that configuration works out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from .expr import Identity, Symbol
from .operator import Operator

__all__ = ["Chain", "Data", "Dense", "Hold", "Hop", "Leaf", "Local", "Named", "Pick"]

Make = Callable[..., Sequence[Any]]


@dataclass(frozen=True, eq=False)
class Data:
    """An array that a leaf is made for besides q, such as the direction of a derivative.

    shape: of one sample; value: (…, *shape).
    """

    value: Any
    shape: tuple[int, ...]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Data) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


@dataclass(frozen=True, repr=False, kw_only=True)
class Leaf(Symbol):
    """An operator with a name, in Python and in LaTeX."""

    name: str
    tex: str
    symmetric: bool = False
    adjoint: bool = False

    def turned(self) -> Operator:
        """Itself if it is symmetric."""
        if self.symmetric:
            return self
        other = replace(self, out=self.into, into=self.out, adjoint=not self.adjoint)
        other.memo["T"] = self
        return other

    def __repr__(self) -> str:
        return self.name + (".T" if self.adjoint else "")

    def _latex(self) -> str:
        return f"{self.tex}^*" if self.adjoint else self.tex


@dataclass(frozen=True, repr=False, kw_only=True)
class Local(Leaf):
    """Block diagonal: each body by itself; constant: the blocks do not depend on q.

    make, invert: (configuration, *needs) ↦ the blocks, or the inverse of each, a block per body;
    needs: operators, given arrays and names that they are made of besides the mechanism.
    """

    make: Make = field(compare=False)
    invert: Make | None = field(default=None, compare=False)
    needs: tuple[Any, ...] = ()
    constant: bool = False
    inverse: bool = False

    @property
    def lasting(self) -> bool:
        """Whether it is made for no array but q."""
        return not any(isinstance(x, Data) or not getattr(x, "lasting", True) for x in self.needs)

    def inverted(self) -> Operator:
        """The blocks' inverses, if they are known."""
        if self.invert is None:
            return super().inverted()
        other = replace(self, inverse=not self.inverse)
        other.memo["inv"] = self
        return other

    def __repr__(self) -> str:
        return self.name + (".inv" if self.inverse else "") + (".T" if self.adjoint else "")

    def _latex(self) -> str:
        return (
            f"{self.tex}^{{-{'*' if self.adjoint else '1'}}}" if self.inverse else super()._latex()
        )


@dataclass(frozen=True, repr=False, kw_only=True)
class Hop(Leaf):
    """ℰ_φ: forces from each body to its parent, once; its adjoint, motions from the parent."""


@dataclass(frozen=True, repr=False, kw_only=True)
class Chain(Leaf):
    """(I − ℰ)⁻¹ with ℰ = ℰ_φ, or with ℰ = ℰ_φ(I − GH) if a gain (G, H) is given; once: ℰ."""

    hop: Hop = field(compare=False)
    once: Operator = field(compare=False)
    gain: tuple[Local, Local] | None = field(default=None, compare=False)

    def inverted(self) -> Operator:
        """I − ℰ."""
        back = Identity() - self.once
        return back.T if self.adjoint else back


@dataclass(frozen=True, repr=False, kw_only=True)
class Pick(Leaf):
    """B: forces on frames as forces on the bodies that carry them; bodies: of each frame."""

    frames: tuple[str, ...]
    reference: Any
    bodies: tuple[int, ...]

    @property
    def ends(self) -> tuple[tuple[int, int], ...]:
        """Which frame pushes which body."""
        return tuple(enumerate(self.bodies))


@dataclass(frozen=True, repr=False, kw_only=True)
class Hold(Leaf):
    """C: forces along the rows of constraints as forces on the bodies that carry their frames.

    ends: which constraint pushes which body.
    """

    constraints: tuple[Any, ...]
    ends: tuple[tuple[int, int], ...]


@dataclass(frozen=True, repr=False, kw_only=True)
class Dense(Leaf):
    """A matrix that couples all frames, or all constraints.

    make: configuration ↦ the matrix; back: its inverse, as an expression.
    """

    make: Callable[[Any], Any] = field(compare=False)
    back: Operator = field(compare=False)

    def inverted(self) -> Operator:
        """What it is the inverse of."""
        return self.back


@dataclass(frozen=True, repr=False, kw_only=True)
class Named(Leaf):
    """A name for an expression, kept when it is shown and opened when it is worked out."""

    definition: Operator = field(compare=False)

    @property
    def opened(self) -> Operator:
        """What it stands for."""
        return self.definition.T if self.adjoint else self.definition

    def inverted(self) -> Operator:
        """That of what it stands for."""
        return self.opened.symbol.inverted()
