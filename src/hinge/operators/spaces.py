"""Named spaces: what kind of vector an operator takes and gives.

A vector of the joint space has one entry per degree of freedom, one of the body space a spatial
vector per body, one of a frame space a spatial vector per frame.  Two spaces of the same size are
still two spaces: composing across them is an error where it is written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..algebra.small import is_masked
from ..errors import ArgumentError

__all__ = ["ANY", "Space", "common_lead", "direct_sum"]

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
        """The vector (dim,), or vectors as columns (…, dim, n), that an operator is applied to."""
        x = self._joined(what, x, lambda part, piece: part.check(what, piece), -2)
        if x.ndim == 0 or x.shape[-1 if x.ndim == 1 else -2] != self.dim:
            raise ArgumentError(
                f"{what} takes {self.name} vectors, ({self.dim},) or columns (…, {self.dim}, n); "
                f"got shape {x.shape}{self._advice(x)}"
            )
        return x

    def rows(self, what: str, x: Any) -> np.ndarray:
        """The vectors (…, dim) that an operator is applied to at a batch of configurations."""
        x = self._joined(what, x, lambda part, piece: part.rows(what, piece), -1)
        if x.shape[-1:] != (self.dim,):
            raise ArgumentError(
                f"{what} takes {self.name} vectors, (…, {self.dim}); got shape {x.shape}"
            )
        return x

    def vector(self, what: str, x: Any, batch: bool = False) -> np.ndarray:
        """The one vector (dim,) that something is made for; in a batch, (…, dim)."""
        if batch:
            return self.rows(what, x)
        x = self.check(what, x)
        if x.ndim != 1:
            raise ArgumentError(f"{what} takes one vector, ({self.dim},); got shape {x.shape}")
        return x

    def _joined(self, what: str, x: Any, check: Callable[..., Any], axis: int) -> np.ndarray:
        """Numbers in one array; the parts of a direct sum may come as a tuple."""
        if self.parts and isinstance(x, (tuple, list)):
            if len(x) != len(self.parts):
                raise ArgumentError(
                    f"{what} takes {len(self.parts)} vectors ({self.name}), got {len(x)}"
                )
            x = _concatenated([check(*pair) for pair in zip(self.parts, x, strict=True)], axis)
        if is_masked(x):
            raise ArgumentError(f"{what} takes numbers, got masked entries; fill them first")
        x = np.asarray(x)
        if x.dtype.kind not in "iufcO":
            raise ArgumentError(f"{what} takes numbers, got an array of dtype {x.dtype}")
        return x

    def _advice(self, x: np.ndarray) -> str:
        if x.size == self.dim:
            return "; flatten it with x.reshape(-1)"
        if x.shape[-1:] == (self.dim,):
            return "; vectors are columns: give x.T, or call apply(x) for a batch (…, n)"
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


def _concatenated(pieces: list[np.ndarray], axis: int) -> np.ndarray:
    """Vectors after each other along the axis; rows may have leading shapes that broadcast."""
    if axis == -2:
        return np.concatenate(pieces, axis=max(-2, -pieces[0].ndim))
    lead = common_lead("a direct sum", [x.shape[:-1] for x in pieces])
    return np.concatenate([np.broadcast_to(x, lead + x.shape[-1:]) for x in pieces], axis=-1)


def common_lead(what: str, leads: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The leading shape that all broadcast to."""
    try:
        return np.broadcast_shapes(*leads)
    except ValueError:
        told = ", ".join(map(str, leads))
        raise ArgumentError(f"{what}: leading shapes do not broadcast: {told}") from None
