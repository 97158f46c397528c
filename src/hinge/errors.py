"""What hinge raises and warns. Every message says what, where, expected, got, and what to do."""

from __future__ import annotations

__all__ = [
    "ArgumentError",
    "HingeError",
    "ImmutableError",
    "ModelError",
    "ModelWarning",
    "SingularError",
    "TraceError",
]


class HingeError(Exception):
    """Any error that hinge raises on purpose."""


class ModelError(HingeError, ValueError):
    """A mechanism, or the file it comes from, is wrong."""


class ArgumentError(HingeError, ValueError):
    """An argument of a call does not fit the robot or the function."""


class ImmutableError(HingeError, AttributeError):
    """Something was set that is fixed once it is made, and would have been ignored."""


class ModelWarning(UserWarning):
    """A mechanism can be used, but a number in it is not what nature makes."""


class SingularError(HingeError, ArithmeticError):
    """There is no answer at this point: a joint moves no inertia, a matrix has no inverse."""


class TraceError(HingeError, TypeError):
    """A traced scalar was asked for something that only a number has."""
