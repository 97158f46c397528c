"""What a program costs, for those that know nothing else about it."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Operations"]


class Operations(NamedTuple):
    """What one evaluation costs; the sine and cosine of one angle are one sincos."""

    multiplications: int
    additions: int
    divisions: int
    sincos: int
    others: int
