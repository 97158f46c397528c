"""The leaves of operator expressions: what sweeps are made of.

A local operator works on each body by itself and rides along with any sweep; a hop or a chain is
a sweep, inward, or outward if it is transposed; a pick joins frames to the bodies that carry them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from .expr import Operator

__all__ = ["Blocks", "Chain", "Hop", "Leaf", "Local", "Named", "Pick"]


class Blocks:
    """A block per body, worked out when first asked for; so are their inverses, if known."""

    def __init__(
        self, make: Callable[[], Sequence[Any]], invert: Callable[[], Sequence[Any]] | None = None
    ) -> None:
        self._make, self.invert = make, invert

    @cached_property
    def forward(self) -> Sequence[Any]:
        """The blocks."""
        return self._make()

    @cached_property
    def inverse(self) -> Sequence[Any]:
        """The inverse of each block."""
        return [] if self.invert is None else self.invert()


@dataclass(frozen=True, repr=False, kw_only=True)
class Leaf(Operator):
    """An operator with a name, in Python and in LaTeX."""

    name: str
    tex: str
    symmetric: bool = False
    adjoint: bool = False

    @property
    def T(self) -> Operator:
        """The adjoint, itself if it is symmetric."""
        if self.symmetric:
            return self
        return replace(self, out=self.into, into=self.out, adjoint=not self.adjoint)


@dataclass(frozen=True, repr=False, kw_only=True)
class Local(Leaf):
    """Block diagonal: each body by itself; constant: the blocks do not depend on q."""

    blocks: Blocks
    constant: bool = False
    inverted: bool = False

    @property
    def values(self) -> Sequence[Any]:
        """The blocks of this operator, before any transposition."""
        return self.blocks.inverse if self.inverted else self.blocks.forward


@dataclass(frozen=True, repr=False, kw_only=True)
class Hop(Leaf):
    """ℰ_φ: forces from each body to its parent, once; its adjoint, motions from the parent."""


@dataclass(frozen=True, repr=False, kw_only=True)
class Chain(Leaf):
    """(I − ℰ)⁻¹ with ℰ = ℰ_φ, or with ℰ = ℰ_φ(I − GH) if a gain (G, H) is given; once: ℰ."""

    hop: Hop = field(compare=False)
    once: Operator = field(compare=False)
    gain: tuple[Local, Local] | None = field(default=None, compare=False)


@dataclass(frozen=True, repr=False, kw_only=True)
class Pick(Leaf):
    """B: forces on frames as forces on the bodies that carry them; (body, φ(body, frame)) each."""

    frames: tuple[tuple[int, Any], ...] = field(compare=False)


@dataclass(frozen=True, repr=False, kw_only=True)
class Named(Leaf):
    """A name for an expression, kept when it is shown and opened when it is worked out."""

    definition: Operator = field(compare=False)

    @property
    def opened(self) -> Operator:
        """What it stands for."""
        return self.definition.T if self.adjoint else self.definition
