"""What a robot computes in NumPy, for arrays of others: they come to the host, results go back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from functools import partial, wraps
from typing import Any, TypeVar

import numpy as np

from ..runtime.guests import guest_among

__all__ = ["through_host"]

F = TypeVar("F", bound=Callable[..., Any])


def through_host(method: F) -> F:
    """A method that is no kernel, or not one alone; arrays that live on a card are copied, those of
    other packages on the host are not.

    Its results are of the kind of the first of them: arrays, or tuples and dataclasses of them, but
    for times.
    """

    @wraps(method)
    def checked(robot: Any, *arguments: Any, **keywords: Any) -> Any:
        if getattr(robot, "device", "cpu") != "cpu":
            from ..runtime.device_calls import brought_back, brought_here

            values, origin = brought_here([*arguments, *keywords.values()], robot._backend.device)
            back = partial(brought_back, origin=origin)
        else:
            quick = arguments and type(arguments[0]) is np.ndarray
            guest = None if quick else guest_among((*arguments, *keywords.values()))
            if guest is None:
                return method(robot, *arguments, **keywords)
            values = [guest.taken(method.__name__, x) for x in (*arguments, *keywords.values())]
            back = guest.given
        given = values[: len(arguments)]
        named = dict(zip(keywords, values[len(arguments) :], strict=True))
        return _through(method(robot, *given, **named), back)

    return checked  # pyright: ignore[reportReturnType]


def _through(result: Any, back: Callable[[np.ndarray], Any]) -> Any:
    """Arrays of a result, one by one."""
    if isinstance(result, np.ndarray):
        return back(result)
    if isinstance(result, tuple):
        parts = [_through(x, back) for x in result]
        return type(result)(*parts) if hasattr(result, "_fields") else tuple(parts)
    if is_dataclass(result) and not isinstance(result, type):
        known = {f.name: getattr(result, f.name) for f in fields(result) if f.name != "t"}
        arrays = {n: _through(x, back) for n, x in known.items() if _is_numbers(x)}
        return replace(result, **arrays)
    return result


def _is_numbers(x: Any) -> bool:
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return all(map(_is_numbers, x))
    return isinstance(x, np.ndarray) and x.dtype.kind == "f"
