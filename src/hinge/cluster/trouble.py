"""Samples that have no answer, and blocks that failed: which, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ..errors import HingeError

__all__ = ["Trouble", "block_failed", "failed", "spoiled"]


class Trouble(NamedTuple):
    """What went wrong in a block.

    block: its place among blocks; samples: their places among all samples, (n, axes of samples);
    why: in words.
    """

    block: tuple[int, ...]
    samples: np.ndarray
    why: str

    def __str__(self) -> str:
        count = len(self.samples)
        first = ", ".join(map(str, self.samples[0])) if count else "none"
        which = f"sample {first}" if count == 1 else f"{count} samples from {first} on"
        return f"block {_place(self.block)}, {which}: {self.why}"


def _place(block: tuple[int, ...]) -> str:
    return str(block[0]) if len(block) == 1 else str(block)


def failed(block: tuple[int, ...], extent: Sequence[slice], error: Exception) -> Trouble:
    """That of a whole block, which covers this part of the samples."""
    ranges = [range(s.start, s.stop) for s in extent]
    samples = np.stack(np.meshgrid(*ranges, indexing="ij"), axis=-1) if ranges else np.zeros((1, 0))
    why = f"{type(error).__name__}: {error}"
    return Trouble(block, samples.reshape(-1, len(ranges)).astype(int), why)


def block_failed(where: str, trouble: Trouble) -> HingeError:
    """What is raised where troubles are not asked for."""
    return HingeError(
        f"{where}: {trouble}; with report=True the other blocks are delivered, and this one is NaN"
    )


def spoiled(
    block: tuple[int, ...],
    extent: Sequence[slice],
    sound: np.ndarray,
    given: Mapping[str, np.ndarray],
) -> Trouble | None:
    """That of single samples, None if there is none.

    sound: whether all results of a sample are finite; given: the same for the arguments, by name.
    """
    if sound.all():
        return None
    names = [name for name, finite in given.items() if not (finite | sound).all()]
    lost = ~sound
    for finite in given.values():
        lost = lost & finite
    because = [f"{' and '.join(names)} not finite"] if names else []
    if lost.any():
        there = f" of {int(lost.sum())}" if names else ""
        because.append(f"the result{there} is not finite: no answer there, or an overflow")
    samples = np.argwhere(~sound) + np.array([s.start for s in extent], dtype=int)
    return Trouble(block, samples, "; ".join(because))
