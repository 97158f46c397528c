"""What can be done with operators: applied, multiplied, added, transposed, inverted.

An expression is made once, as a symbol (`expr.py`), which remembers its adjoint, its inverse and
what it was multiplied with or added to; at a configuration it is `Bound`, and meets vectors.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError
from .spaces import Space

__all__ = ["Bound", "Operator", "place"]

# a symbol forgets what it was multiplied with or added to after so many others
_REMEMBERED = 256


class Operator(ABC):
    """A linear map between named spaces that knows how to be applied, transposed and inverted.

    out, into: the spaces of its results and of its arguments; symbol: what it is, at: the
    configuration it belongs to, None for a symbol; home: the symbols of its mechanism, None for
    identities and zeros; memo: what is known of its symbol.
    """

    __slots__ = ()
    __array_ufunc__ = None

    out: Space
    into: Space
    symbol: Any
    at: Any
    home: Any
    memo: dict[Any, Any]

    @property
    @abstractmethod
    def lasting(self) -> bool:
        """Whether it is made of symbols and plain numbers alone, so that it may be met again."""

    @abstractmethod
    def bind(self, at: Any) -> Any:
        """The same operator at a configuration; identities and zeros are the same everywhere."""

    @abstractmethod
    def _latex(self) -> str: ...

    def _repr_latex_(self) -> str:
        return f"${self._latex()}$"

    @property
    def T(self) -> Operator:
        """The adjoint."""
        turned = self.memo.get("T")
        if turned is None:
            turned = self.memo["T"] = self.symbol.turned()
        return self if turned is self.symbol else turned.bind(self.at)

    @property
    def inv(self) -> Operator:
        """The inverse, by a rule; an error where none applies."""
        found = self.memo.get("inv")
        if found is None:
            theorem = None if self.home is None else self.home.theorem(self.symbol)
            found = self.memo["inv"] = theorem or self.symbol.inverted()
        return self if found is self.symbol else found.bind(self.at)

    @property
    def shape(self) -> tuple[int, int]:
        """That of the dense matrix."""
        return self.out.dim, self.into.dim

    @abstractmethod
    def on(self, x: Any) -> np.ndarray:
        """The operator on a vector (n,) or on columns (…, n, k); in a batch, on vectors (…, n)."""

    @abstractmethod
    def apply(self, x: Any) -> np.ndarray:
        """The operator on vectors (…, n), whose leading shape broadcasts with that of q."""

    @abstractmethod
    def dense(self) -> np.ndarray:
        """The matrix, by the cheapest route; (…, m, n) at a batch of configurations (…, nq)."""

    def __matmul__(self, other: Any) -> Any:
        # most are one of these two, and to ask an abstract class takes longer than the rest
        kind = type(other)
        if kind is Bound or (kind is not np.ndarray and isinstance(other, Operator)):
            return self._with("@", other)
        return self.on(other)

    def __rmatmul__(self, other: Any) -> Any:
        x = np.asarray(other)
        if x.ndim == 1 or (self.at is not None and self.at.is_batch):
            return self.T @ x
        return np.swapaxes(self.T @ np.swapaxes(x, -1, -2), -1, -2)

    def __add__(self, other: Any) -> Any:
        return self._with("+", other) if isinstance(other, Operator) else NotImplemented

    def __sub__(self, other: Any) -> Any:
        return self._with("-", other) if isinstance(other, Operator) else NotImplemented

    def __neg__(self) -> Operator:
        return self * -1

    def __mul__(self, factor: Any) -> Operator:
        known = self.memo.get(("*", factor)) if type(factor) in (int, float) else None
        if known is not None:
            return known[0].bind(self.at)
        if isinstance(factor, (Operator, str)) or np.ndim(factor):
            raise ArgumentError(
                f"({self}) * {type(factor).__name__}: * scales by a number; compose with @"
            )
        made = self.symbol.scaled(factor)
        if type(factor) in (int, float):
            self._remember(("*", factor), (made, factor))
        return made.bind(self.at)

    __rmul__ = __mul__

    def __truediv__(self, factor: Any) -> Operator:
        return self * (1 / factor)

    def _with(self, sign: str, other: Operator) -> Operator:
        """What the sign makes of both, once for the same symbols."""
        right, at = other.symbol, self.at
        if other.at is not at:
            at = place([self, other])
        known = self.memo.get((sign, id(right)))
        if known is None:
            known = self.symbol.joined(sign, right), right
            self._remember((sign, id(right)), known)
        return known[0].bind(at)

    def _remember(self, key: Any, known: tuple[Any, Any]) -> None:
        """Keep a symbol made of this one, and what else it was made of, if it may be met again."""
        if known[0].lasting:
            if len(self.memo) >= _REMEMBERED:
                self.memo.clear()
            self.memo[key] = known


class Bound(Operator):
    """A symbol at a configuration."""

    __slots__ = ("at", "memo", "symbol")

    def __init__(self, symbol: Any, at: Any) -> None:
        self.symbol, self.at, self.memo = symbol, at, symbol.memo

    def on(self, x: Any) -> np.ndarray:
        """The operator on a vector (n,) or on columns (…, n, k); in a batch, on vectors (…, n)."""
        return self.at.on(self, x)

    def apply(self, x: Any) -> np.ndarray:
        """The operator on vectors (…, n), whose leading shape broadcasts with that of q."""
        return self.at.apply(self, x)

    def dense(self) -> np.ndarray:
        """The matrix, by the cheapest route; (…, m, n) at a batch of configurations (…, nq)."""
        return self.at.dense(self)

    @property
    def values(self) -> Sequence[Any]:
        """The blocks of a local operator, before any transposition."""
        return self.at.blocks(self.symbol)

    @property
    def rows(self) -> tuple[tuple[Operator, ...], ...]:
        """The operators of a block, row by row."""
        return tuple(tuple(entry.bind(self.at) for entry in row) for row in self.symbol.rows)

    @property
    def lasting(self) -> bool:
        """Whether the symbol is made of symbols and plain numbers alone."""
        return self.symbol.lasting

    def bind(self, at: Any) -> Any:
        """The same operator at another configuration."""
        return self.symbol.bind(at)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.symbol, name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Bound) and self.at is other.at and self.symbol == other.symbol

    def __hash__(self) -> int:
        return hash(self.symbol)

    def __repr__(self) -> str:
        return repr(self.symbol)

    def _latex(self) -> str:
        return self.symbol._latex()


def place(operators: Sequence[Operator]) -> Any:
    """The one configuration that they belong to."""
    places = {id(op.at): op.at for op in operators if op.at is not None}
    if len(places) > 1:
        raise ArgumentError(
            f"{' and '.join(str(op) for op in operators)} belong to different configurations; "
            f"take both from the same robot.operators(q)"
        )
    return next(iter(places.values()), None)
