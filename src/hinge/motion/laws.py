"""Laws that move robots: functions of (t, q, qd) of a user, and what is checked of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from inspect import signature
from os.path import basename, dirname
from traceback import extract_tb
from typing import Any

import numpy as np

from ..errors import ArgumentError
from ..graph.scalar import Node
from ..robot import Robot
from ..runtime.arguments import broadcast

__all__ = ["Law", "check_law", "law_value", "source_line"]

Law = Callable[[Any, Any, Any], Any]
# where lines are not a user's
_LIBRARIES = dirname(dirname(__file__)), dirname(np.__file__)


def check_law(where: str, law: Law) -> Law:
    """The law, if it can be called with (t, q, qd), as far as one can tell."""
    try:
        form = signature(law)
    except (TypeError, ValueError):
        return law
    try:
        form.bind(0.0, None, None)
    except TypeError:
        raise ArgumentError(
            f"{where}: tau is a function of {form}; expected one of (t, q, qd) of one sample"
        ) from None
    return law


def source_line(law: Law, problem: BaseException | None = None) -> str:
    """The line of a law's source where a problem came up, or else where it begins, if known."""
    while problem is not None and problem.__cause__ is not None:
        problem = problem.__cause__
    frames = [] if problem is None else extract_tb(problem.__traceback__)
    own = [f for f in frames if not f.filename.startswith(_LIBRARIES)]
    if own:
        return f"{basename(own[-1].filename)}:{own[-1].lineno}: {own[-1].line}"
    code = getattr(law, "__code__", None) or getattr(type(law).__call__, "__code__", None)
    if code is None or code.co_filename.startswith(_LIBRARIES):
        return ""
    return f"{basename(code.co_filename)}:{code.co_firstlineno}"


def law_value(
    where: str, robot: Robot, law: Law, t: float, q: np.ndarray, qd: np.ndarray
) -> np.ndarray:
    """What a law gives for numbers: (…, nv)."""
    # the law may write into what it gets
    value = law(t, q.copy(), qd.copy())
    if value is None:
        raise ArgumentError(f"{where}: tau gave None; does the function end in return?")
    if any(isinstance(x, Node) for x in _flat(value)):
        raise ArgumentError(
            f"{where}: tau has kept symbols from the attempt to trace it; a law with a memory of "
            f"its own needs compiled=False"
        )
    pair = [robot._argument("tau", value), robot._argument("qd", qd)]
    total = broadcast(where, pair)["tau"]
    if total.shape != qd.shape:
        raise ArgumentError(
            f"{where}: tau has leading shape {total.shape[:-1]}; the motion has {qd.shape[:-1]}"
        )
    return total


def _flat(value: Any) -> Iterator[Any]:
    """The entries of nested lists and arrays, ragged ones too."""
    if isinstance(value, np.ndarray):
        yield from value.flat
    elif isinstance(value, (list, tuple)):
        for x in value:
            yield from _flat(x)
    else:
        yield value
