"""Named spaces: what kind of vector an operator takes and gives.

A vector of the joint space has one entry per degree of freedom, one of the body space a spatial
vector per body, one of a frame space a spatial vector per frame.  Two spaces of the same size are
still two spaces: composing across them is an error where it is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import ArgumentError

__all__ = ["ANY", "Space", "direct_sum"]

# one block per body (or frame) of a vector, or of a matrix of columns; a tuple for a direct sum
Value = Any


@dataclass(frozen=True)
class Space:
    """A space of vectors made of blocks; sizes: the entries of each block.

    parts: the spaces side by side that a direct sum is made of.
    """

    name: str
    sizes: tuple[int, ...]
    parts: tuple[Space, ...] = ()

    @property
    def dim(self) -> int:
        """The number of entries of a vector."""
        return sum(self.sizes)

    def split(self, x: np.ndarray) -> Value:
        """The blocks of a vector (dim,) or of columns (dim, n)."""
        if self.parts:
            ends = np.cumsum([part.dim for part in self.parts])[:-1]
            pieces = np.split(x, ends)
            return tuple(p.split(piece) for p, piece in zip(self.parts, pieces, strict=True))
        ends = np.cumsum(self.sizes)
        return [x[end - size : end] for size, end in zip(self.sizes, ends, strict=True)]

    def join(self, blocks: Value) -> np.ndarray:
        """The vector or the columns with these blocks."""
        if self.parts:
            pairs = zip(self.parts, blocks, strict=True)
            return np.concatenate([part.join(piece) for part, piece in pairs])
        return np.concatenate(blocks)

    def check(self, what: str, x: Any) -> np.ndarray:
        """The vector, or vectors as columns (…, dim, n), that an operator can be applied to."""
        if self.parts and isinstance(x, (tuple, list)):
            if len(x) != len(self.parts):
                raise ArgumentError(
                    f"{what} takes {len(self.parts)} vectors ({self.name}), got {len(x)}"
                )
            pairs = zip(self.parts, x, strict=True)
            x = np.concatenate([part.check(what, piece) for part, piece in pairs])
        x = np.asarray(x)
        if x.dtype.kind not in "iufcO":
            raise ArgumentError(f"{what} takes numbers, got an array of dtype {x.dtype}")
        if x.ndim == 0 or x.shape[-1 if x.ndim == 1 else -2] != self.dim:
            raise ArgumentError(
                f"{what} takes {self.name} vectors, ({self.dim},) or columns (…, {self.dim}, n); "
                f"got shape {x.shape}{self._advice(x)}"
            )
        return x

    def vector(self, what: str, x: Any) -> np.ndarray:
        """The one vector (dim,) that something is made for."""
        x = self.check(what, x)
        if x.ndim != 1:
            raise ArgumentError(f"{what} takes one vector, ({self.dim},); got shape {x.shape}")
        return x

    def _advice(self, x: np.ndarray) -> str:
        if x.size == self.dim:
            return "; flatten it with x.reshape(-1)"
        if x.shape[-1:] == (self.dim,):
            return "; vectors are columns: give x.T"
        return ""

    def __str__(self) -> str:
        return self.name


# the space of an identity that has not met another operator yet
ANY = Space("any", ())


def direct_sum(parts: Sequence[Space]) -> Space:
    """The space of vectors stacked from vectors of the parts; of a single part, the part."""
    if len(parts) == 1:
        return parts[0]
    sizes = tuple(size for part in parts for size in part.sizes)
    return Space(" ⊕ ".join(part.name for part in parts), sizes, tuple(parts))
