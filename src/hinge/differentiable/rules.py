"""How functions are differentiated, on arrays of traced scalars."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ..graph.program import Program

__all__ = ["Arrays", "Rule", "Shape", "program_rule"]

Shape = tuple[int, ...]
Arrays = Sequence[Any]


class Rule(NamedTuple):
    """A function's two derivatives.

    push: from (x, y, ẋ) to ẏ; pull: from (x, y, ȳ) to x̄; all of them tuples.
    """

    push: Callable[[Arrays, Arrays, Arrays], Arrays]
    pull: Callable[[Arrays, Arrays, Arrays], Arrays]


def program_rule(make: Callable[[], Program]) -> Rule:
    """The derivatives of a program, by its graph."""
    from ..functions.derivatives import jvp, vjp
    from ..graph.program import running

    fn = running(make())

    def push(x: Arrays, y: Arrays, dots: Arrays) -> Arrays:
        return jvp(fn)(tuple(x), tuple(dots))

    def pull(x: Arrays, y: Arrays, bars: Arrays) -> Arrays:
        return vjp(fn)(tuple(x), tuple(bars))

    return Rule(push, pull)
