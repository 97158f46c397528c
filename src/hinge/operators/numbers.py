"""Coefficients of operator expressions: plain numbers, or traced ones."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

__all__ = ["is_plain", "same_number", "signed_sum"]

_PLAIN = (int, float, complex, np.number)


def is_plain(c: Any) -> bool:
    """Whether a coefficient is a number, not a traced one."""
    return isinstance(c, _PLAIN)


def same_number(a: Any, b: Any) -> bool:
    """Whether two coefficients are equal; traced ones are if they are the same node."""
    return a is b or (isinstance(a, _PLAIN) and isinstance(b, _PLAIN) and bool(a == b))


def signed_sum(terms: Iterable[tuple[Any, str]], times: str) -> str:
    """Σ c · name as text, as in a - 2 b; times: what stands between a number and a name."""
    out = ""
    for c, name in terms:
        negative = isinstance(c, (int, float)) and c < 0
        size = -c if negative else c
        number = f"{size:g}" if isinstance(size, (int, float)) else str(size)
        sign = (" - " if negative else " + ") if out else ("-" if negative else "")
        out += sign + (name if same_number(size, 1) else f"{number}{times}{name}")
    return out
