"""The table of lines, and what a line is."""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

__all__ = ["LINES", "Line", "Outcome", "all_lines", "line"]

# modules that have lines; a new one is named here
MODULES = ("states", "trees", "calls", "processes", "kept", "bounds", "files", "loops", "laws")
MODULES += ("expressions", "precision", "dead_points", "first_calls")


class Outcome(NamedTuple):
    """What a round was: so many things checked, and the worst figure among them.

    compared: of how many that figure is, None for all.
    """

    count: int
    worst: float = 0.0
    compared: int | None = None


class Line(NamedTuple):
    """A named check that is done again and again.

    unit: what is counted; figure: what the worst figure is of, "" if there is none.
    weight: its share of the time; limit: seconds that a round may take before it counts as hung.
    rounds: no more than these, None for as many as there is time for.
    """

    name: str
    what: str
    round: Callable[[np.random.Generator], Outcome]
    unit: str
    figure: str
    weight: float
    limit: float
    rounds: int | None

    def rng(self, seed: int, number: int) -> np.random.Generator:
        """The generator of one round."""
        return np.random.default_rng([seed, zlib.crc32(self.name.encode()), number])


LINES: dict[str, Line] = {}


def line(
    unit: str,
    figure: str = "",
    weight: float = 1.0,
    limit: float = 300.0,
    rounds: int | None = None,
) -> Callable[[Callable[[np.random.Generator], Outcome]], Callable[..., Outcome]]:
    """Put a function into the table; its docstring says what it checks."""

    def put(fn: Callable[[np.random.Generator], Outcome]) -> Callable[..., Outcome]:
        name = fn.__name__.replace("_", "-")
        what = " ".join((fn.__doc__ or "").split())
        LINES[name] = Line(name, what, fn, unit, figure, weight, limit, rounds)
        return fn

    return put


def all_lines() -> dict[str, Line]:
    """The whole table."""
    for module in MODULES:
        importlib.import_module(f"{__package__}.{module}")
    return LINES
