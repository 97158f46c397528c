"""Numbers of the mechanism as keywords of a robot's methods."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import FunctionType
from typing import Any

from ..errors import ArgumentError
from .front import Front

__all__ = ["open_methods"]


def open_methods(robot: Front) -> None:
    """Let every method of every chapter take the robot's parameters as keywords."""
    chapters = [kind for kind in type(robot).__mro__ if kind not in Front.__mro__]
    for name in {name for kind in chapters for name in vars(kind) if not name.startswith("_")}:
        method = getattr(type(robot), name)
        if isinstance(method, FunctionType):
            robot.__dict__[name] = _opened(robot, name, method)


def _opened(robot: Front, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def call(*arguments: Any, **keywords: Any) -> Any:
        given = {n: keywords.pop(n, None) for n in robot.parameters}
        numbers = {n: x for n, x in given.items() if x is not None}
        if not numbers:
            return method(robot, *arguments, **keywords)
        other = robot.opened(numbers)
        result = method(other, *arguments, **keywords)
        if not other.asked:
            raise ArgumentError(
                f"{name} of {robot.name!r} takes no {' or '.join(numbers)}: it is not compiled; "
                f"use a robot of hinge.model.parameters.with_parameters(robot.mechanism, …)"
            )
        return result

    return call
