"""What a program costs, for those that know nothing else about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["Operations"]


class Operations(NamedTuple):
    """What one evaluation costs; the sine and cosine of one angle are one sincos."""

    multiplications: int
    additions: int
    divisions: int
    sincos: int
    others: int

    @classmethod
    def counted(cls, nodes: Mapping[str, int], sincos: int) -> Operations:
        """From the number of nodes of each operation, and of angles whose sine or cosine is taken.

        Signs cost nothing.
        """
        sums = nodes.get("add", 0) + nodes.get("sub", 0)
        others = sum(nodes.get(op, 0) for op in _OTHERS)
        return cls(nodes.get("mul", 0), sums, nodes.get("div", 0), sincos, others)


_OTHERS = ("sqrt", "atan2", "abs", "min", "max", "less", "where")
