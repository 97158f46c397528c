"""What an algorithm is, declared once, beside its function: every list is derived from that."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any, NamedTuple, TypeVar

__all__ = ["ALGORITHMS", "Algorithm", "algorithm"]

F = TypeVar("F", bound=FunctionType)


class Algorithm(NamedTuple):
    """A function of a mechanism and of arrays, and what a compiler may do with it.

    joint_level: its results, if they are one per DoF, depend neither on where the frames of bodies
    are nor on how inertia is shared by bodies that move alike: canonical frames serve it.
    loops: its sweeps may be traced once per kind of joint, as loops over bodies.
    """

    name: str
    function: Callable[..., Any]
    joint_level: bool
    loops: bool

    @property
    def parameters(self) -> dict[str, inspect.Parameter]:
        """What it takes besides the mechanism."""
        _, *rest = inspect.signature(self.function).parameters.items()
        return dict(rest)


# by name, aliases included
ALGORITHMS: dict[str, Algorithm] = {}


def algorithm(
    *, joint_level: bool = False, loops: bool = False, aliases: tuple[str, ...] = ()
) -> Callable[[F], F]:
    """Declare a function as an algorithm; the words are those of `Algorithm`."""

    def declare(function: F) -> F:
        declared = Algorithm(function.__name__, function, joint_level, loops)
        ALGORITHMS.update(dict.fromkeys((function.__name__, *aliases), declared))
        return function

    return declare
