"""An expression with its numbers taken out, so that one kernel serves all of them.

Coefficients other than ±1 and the arrays that leaves were made for become arguments; what is left
is a text that is the same for the same computation, and a way to put other numbers back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .block import Block
from .expr import Adjoint, Product, Sum
from .leaves import Data, Leaf, Local
from .numbers import same_number
from .operator import Operator

__all__ = ["Opening"]

# what is written of a part, and the part again from other numbers
Read = tuple[str, Callable[[Sequence[Any]], Any]]


class Opening:
    """text: what is computed; values, shapes: the numbers taken out, and of one sample of each."""

    def __init__(self, A: Operator) -> None:
        self.values: list[Any] = []
        self.shapes: list[tuple[int, ...]] = []
        self._known: dict[Data, int] = {}
        self._whole = A.symbol
        self.text, self._made = self._read(self._whole)

    def closed(self, numbers: Sequence[Any]) -> Operator:
        """The expression with these numbers instead of its own."""
        return self._made(numbers) if numbers else self._whole

    def _read(self, A: Any) -> Read:
        match A:
            case Product():
                texts, parts = self._all(A.factors)
                return f"({texts})", lambda v: replace(A, factors=parts(v))
            case Sum():
                numbers = [self._number(c) for c, _ in A.terms]
                texts, parts = self._all([t for _, t in A.terms])
                scales = " ".join(text for text, _ in numbers)
                return f"<{scales}; {texts}>", lambda v: replace(
                    A, terms=tuple(zip((c(v) for _, c in numbers), parts(v), strict=True))
                )
            case Adjoint():
                text, part = self._read(A.of)
                return f"{text}*", lambda v: replace(A, of=part(v))
            case Block():
                rows = [self._all(row) for row in A.rows]
                texts = " / ".join(text for text, _ in rows)
                return f"[{texts}]", lambda v: replace(A, rows=tuple(row(v) for _, row in rows))
            case Local() if A.needs:
                texts, parts = self._all(A.needs)
                return f"{_leaf(A)}{{{texts}}}", lambda v: replace(A, needs=parts(v))
            case Data():
                return self._data(A)
        return _leaf(A) if isinstance(A, Operator) else repr(A), lambda v: A

    def _all(self, parts: Sequence[Any]) -> Read:
        read = [self._read(part) for part in parts]
        return ", ".join(text for text, _ in read), lambda v: tuple(part(v) for _, part in read)

    def _number(self, c: Any) -> Read:
        if same_number(c, 1) or same_number(c, -1):
            return f"{c:+g}", lambda v: c
        i = self._taken(c, ())
        return f"c{i}", lambda v: v[i]

    def _data(self, data: Data) -> Read:
        """The array, once for all leaves that were made for it."""
        if data not in self._known:
            self._known[data] = self._taken(data.value, data.shape)
        i = self._known[data]
        return f"d{i}", lambda v: Data(v[i], data.shape)

    def _taken(self, value: Any, shape: tuple[int, ...]) -> int:
        self.values.append(np.asarray(value))
        self.shapes.append(shape)
        return len(self.values) - 1


def _leaf(A: Operator) -> str:
    marks = "".join(m for m in ("adjoint", "inverse") if getattr(A, m, False))
    return f"{A.name if isinstance(A, Leaf) else A}{marks}:{A.into}>{A.out}"
