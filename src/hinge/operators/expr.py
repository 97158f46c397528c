"""Operator expressions: sums and products in named spaces, in normal form as they are made.

Products and sums flatten, identities drop out, equal terms of a sum join, adjoints move to the
leaves of a product.  An expression is immutable and compared by what it is made of.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import ArgumentError
from .numbers import is_plain, same_number, signed_sum
from .operator import Bound, Operator
from .spaces import ANY, Space

__all__ = [
    "Adjoint",
    "Identity",
    "Product",
    "Sum",
    "Symbol",
    "Zero",
    "home_of",
    "product",
    "total",
]


@dataclass(frozen=True, repr=False)
class Symbol(Operator):
    """An expression without a configuration; home: the symbols of the mechanism it is made of."""

    out: Space
    into: Space
    home: Any
    memo: dict[Any, Any] = field(default_factory=dict, init=False, compare=False, kw_only=True)
    at = None

    @property
    def symbol(self) -> Any:
        """Itself."""
        return self

    @property
    def lasting(self) -> bool:
        """Whether it is made of symbols and plain numbers alone, so that it may be met again."""
        return True

    def bind(self, at: Any) -> Any:
        """The operator at a configuration; identities and zeros are the same everywhere."""
        return self if at is None or self.home is None else Bound(self, at)

    @abstractmethod
    def turned(self) -> Operator:
        """The adjoint, not looked up."""

    def inverted(self) -> Operator:
        """The inverse that its structure gives."""
        raise ArgumentError(
            f"no rule inverts {self}; rules are known for block-diagonal D, M and J, chains "
            f"(φ, ψ), the factors I + HφK and I − HψK, the mass operator, and products of these; "
            f"if a matrix is what you want, invert (…).dense()"
        )

    def joined(self, sign: str, other: Operator) -> Operator:
        """The product, the sum or the difference, not looked up."""
        if sign == "@":
            return product([self, other])
        return total([(1, self), (1 if sign == "+" else -1, other)])

    def scaled(self, factor: Any) -> Operator:
        """A multiple."""
        return total([(factor, self)])

    def on(self, x: Any) -> np.ndarray:
        """Identities and zeros on a vector (n,) or on columns (…, n, k)."""
        self._refuse_without_place()
        return self._everywhere(
            np.asarray(x) if self.into == ANY else self.into.check(f"{self}", x)
        )

    def apply(self, x: Any) -> np.ndarray:
        """Identities and zeros on vectors (…, n)."""
        self._refuse_without_place()
        x = np.asarray(x) if self.into == ANY else self.into.rows(f"{self}", x)
        return np.moveaxis(self._everywhere(np.moveaxis(x, -1, 0)), 0, -1)

    def dense(self) -> np.ndarray:
        """Identities and zeros as matrices."""
        self._refuse_without_place()
        if self.into == ANY:
            raise ArgumentError(f"{self} has no size of its own: add it to another operator")
        return self._everywhere(np.eye(self.into.dim))

    def _refuse_without_place(self) -> None:
        if self.home is not None:
            raise ArgumentError(f"{self} has no configuration: take it from robot.operators(q)")

    def _everywhere(self, x: np.ndarray) -> np.ndarray:
        """What it makes of columns if it belongs to no mechanism."""
        return x

    def _latex(self) -> str:
        return str(self)


class Identity(Symbol):
    """I, of any space until it stands beside an operator that has one."""

    def __init__(self, space: Space = ANY) -> None:
        Symbol.__init__(self, space, space, None)

    def turned(self) -> Operator:
        """Itself."""
        return self

    def inverted(self) -> Operator:
        """Itself."""
        return self

    def __repr__(self) -> str:
        return "I"


class Zero(Symbol):
    """The operator that gives zero."""

    def __init__(self, out: Space, into: Space) -> None:
        Symbol.__init__(self, out, into, None)

    def turned(self) -> Operator:
        """Zero the other way."""
        return Zero(self.into, self.out)

    def __repr__(self) -> str:
        return "0"

    def _everywhere(self, x: np.ndarray) -> np.ndarray:
        lead, columns = (x.shape[:-2], x.shape[-1:]) if x.ndim > 1 else ((), ())
        return np.zeros((*lead, self.out.dim, *columns))


@dataclass(frozen=True, repr=False)
class Product(Symbol):
    """Factors, applied from the right."""

    factors: tuple[Operator, ...]

    @property
    def lasting(self) -> bool:
        """Whether all factors are."""
        return all(f.lasting for f in self.factors)

    def turned(self) -> Operator:
        """The adjoints in reverse."""
        return product([f.T for f in reversed(self.factors)])

    def inverted(self) -> Operator:
        """The inverses in reverse."""
        if not all(f.out == f.into for f in self.factors):
            return super().inverted()
        return product([f.inv for f in reversed(self.factors)])

    def __repr__(self) -> str:
        return " @ ".join(f"({f})" if isinstance(f, Sum) else str(f) for f in self.factors)

    def _latex(self) -> str:
        parts = ((f, f._latex()) for f in self.factors)
        return r"\,".join(rf"\left({s}\right)" if isinstance(f, Sum) else s for f, s in parts)


@dataclass(frozen=True, repr=False, eq=False)
class Sum(Symbol):
    """Terms with their coefficients; a single scaled term too."""

    terms: tuple[tuple[Any, Operator], ...]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sum) or len(self.terms) != len(other.terms):
            return False
        pairs = zip(self.terms, other.terms, strict=True)
        return all(same_number(c, d) and t == u for (c, t), (d, u) in pairs)

    def __hash__(self) -> int:
        return hash(self.terms)

    @property
    def lasting(self) -> bool:
        """Whether all coefficients are plain numbers, and all terms last."""
        return all(is_plain(c) and t.lasting for c, t in self.terms)

    def turned(self) -> Operator:
        """The adjoint, kept as one unless it is the sum itself."""
        turned = total([(c, t.T) for c, t in self.terms])
        if len(self.terms) == 1:
            return turned
        mirrored = dict((t, c) for c, t in turned.terms) if isinstance(turned, Sum) else {}
        same = all(t in mirrored and same_number(mirrored[t], c) for c, t in self.terms)
        return self if same else Adjoint(self.into, self.out, self.home, self)

    def inverted(self) -> Operator:
        """Of a single scaled term."""
        (c, term), *others = self.terms
        return super().inverted() if others else total([(1 / c, term.inv)])

    def __repr__(self) -> str:
        return signed_sum([(c, _wrapped(c, t)) for c, t in self.terms], " * ")

    def _latex(self) -> str:
        return signed_sum([(c, t._latex()) for c, t in self.terms], r"\,")

    def _everywhere(self, x: np.ndarray) -> np.ndarray:
        return self.terms[0][0] * x


@dataclass(frozen=True, repr=False)
class Adjoint(Symbol):
    """The adjoint of a sum, kept as it is written."""

    of: Sum

    @property
    def opened(self) -> Operator:
        """The sum of the adjoints."""
        return total([(c, t.T) for c, t in self.of.terms])

    @property
    def lasting(self) -> bool:
        """Whether the sum is."""
        return self.of.lasting

    def turned(self) -> Operator:
        """The sum."""
        return self.of

    def inverted(self) -> Operator:
        """The adjoint of the inverse."""
        return self.of.inv.T

    def __repr__(self) -> str:
        return f"({self.of}).T"

    def _latex(self) -> str:
        return f"\\left({self.of._latex()}\\right)^*"


def product(factors: Iterable[Operator]) -> Operator:
    """The product in normal form."""
    flat: list[Operator] = []
    scale: Any = 1
    for factor in factors:
        if isinstance(factor, Sum) and len(factor.terms) == 1:
            scale, factor = scale * factor.terms[0][0], factor.terms[0][1]
        flat.extend(factor.factors if isinstance(factor, Product) else [factor])
    spaced = [f for f in flat if f.out != ANY]
    for left, right in zip(spaced, spaced[1:], strict=False):
        if left.into != right.out:
            raise ArgumentError(
                f"cannot compose ({left}) @ ({right}): {left} acts on {left.into} vectors, "
                f"{right} returns {right.out} vectors"
            )
    rest = [f for f in spaced if not isinstance(f, Identity)]
    if any(isinstance(f, Zero) for f in rest):
        return Zero(rest[0].out, rest[-1].into)
    if len(rest) > 1:
        plain: Operator = Product(rest[0].out, rest[-1].into, home_of(rest), tuple(rest))
    else:
        plain = next(iter([*rest, *spaced, *flat]))
    return plain if same_number(scale, 1) else total([(scale, plain)])


def total(terms: Iterable[tuple[Any, Operator]]) -> Operator:
    """The sum in normal form; equal terms join, vanishing ones go."""
    flat: list[tuple[Any, Operator]] = []
    for c, term in terms:
        inner = term.terms if isinstance(term, Sum) else ((1, term),)
        flat.extend((c * d, t) for d, t in inner)
    flat = _in_one_space(flat)
    first = flat[0][1]
    joined: dict[Operator, Any] = {}
    for c, term in flat:
        joined[term] = joined[term] + c if term in joined else c
    kept = [(c, t) for t, c in joined.items() if not same_number(c, 0) and not isinstance(t, Zero)]
    if not kept:
        return Zero(first.out, first.into)
    if len(kept) == 1 and same_number(kept[0][0], 1):
        return kept[0][1]
    return Sum(first.out, first.into, home_of([t for _, t in kept]), tuple(kept))


def _in_one_space(terms: list[tuple[Any, Operator]]) -> list[tuple[Any, Operator]]:
    """The terms, if they map between the same spaces; identities take the space of the others."""
    first = next((t for _, t in terms if t.out != ANY), None)
    if first is None:
        return terms
    full = [(c, Identity(first.out) if t.out == ANY else t) for c, t in terms]
    for _, term in full:
        if (term.out, term.into) != (first.out, first.into):
            raise ArgumentError(
                f"cannot add {first} and {term}: {first} takes {first.into} to {first.out} "
                f"vectors, {term} takes {term.into} to {term.out} vectors"
            )
    return full


def home_of(operators: Sequence[Operator]) -> Any:
    """The symbols that they are made of."""
    return next((op.home for op in operators if op.home is not None), None)


def _wrapped(c: Any, term: Operator) -> str:
    plain = same_number(c, 1) or same_number(c, -1) or not isinstance(term, Product)
    return str(term) if plain else f"({term})"
