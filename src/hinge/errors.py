"""What hinge raises and warns. Every message says what, where, expected, got, and what to do."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = [
    "ArgumentError",
    "DeviceError",
    "DeviceMemoryError",
    "HingeError",
    "ImmutableError",
    "ModelError",
    "ModelWarning",
    "OpenLoopWarning",
    "SingularError",
    "TooLongError",
    "TraceError",
    "TraceWarning",
    "located",
    "warn",
    "warn_of_model",
]


class HingeError(Exception):
    """Any error that hinge raises on purpose."""


class ModelError(HingeError, ValueError):
    """A mechanism, or the file it comes from, is wrong."""


class ArgumentError(HingeError, ValueError):
    """An argument of a call does not fit the robot or the function."""


class DeviceError(HingeError, RuntimeError):
    """A card is not there, its driver is too old, or it has failed."""


class DeviceMemoryError(DeviceError, MemoryError):
    """The memory of a card is full."""


class ImmutableError(HingeError, AttributeError):
    """Something was set that is fixed once it is made, and would have been ignored."""


class ModelWarning(UserWarning):
    """A mechanism can be used, but something in it is odd, or was not read."""


class OpenLoopWarning(ModelWarning):
    """Constraints are asked to hold frames that are not together."""


class SingularError(HingeError, ArithmeticError):
    """There is no answer at this point: a joint moves no inertia, a matrix has no inverse."""


class TraceError(HingeError, TypeError):
    """A traced scalar was asked for something that only a number has."""


class TooLongError(TraceError):
    """A traced function has more operations than are worth compiling."""


class TraceWarning(UserWarning):
    """A function cannot be traced, and is called from Python instead, which takes far longer."""


@contextmanager
def located(place: str) -> Iterator[None]:
    """Whatever is raised meanwhile says at which place of a long work that was."""
    try:
        yield
    except HingeError as problem:
        raise type(problem)(f"{place}: {problem}") from problem
    except BaseException as problem:
        problem.add_note(f"hinge was at {place}; what came before is finished")
        raise


def warn_of_model(message: str, kind: type[ModelWarning] = ModelWarning) -> None:
    """Give a `ModelWarning`, as in `warn`."""
    warn(message, kind)


def warn(message: str, kind: type[Warning]) -> None:
    """Give a warning that points at the line outside this package that called into it."""
    caller = sys._getframe(1)
    while caller.f_back is not None and _is_ours(caller.f_globals):
        caller = caller.f_back
    warnings.warn_explicit(
        message,
        kind,
        caller.f_code.co_filename,
        caller.f_lineno,
        # Python drops a warning of no module
        module=caller.f_globals.get("__name__", caller.f_code.co_filename),
        registry=caller.f_globals.setdefault("__warningregistry__", {}),
    )


def _is_ours(names: dict[str, Any]) -> bool:
    """Whether the global names of a piece of code are those of a module of this package."""
    return str(names.get("__name__")).partition(".")[0] == __name__.partition(".")[0]
