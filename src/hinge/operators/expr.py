"""Operator expressions: sums and products in named spaces, in normal form as they are made.

Products and sums flatten, identities drop out, equal terms of a sum join, adjoints move to the
leaves of a product.  An expression is immutable and compared by what it is made of; it is worked
out only when it meets a vector (`plan.py`), inverted by rules (`inverse.py`), shown by `show.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import ArgumentError
from .spaces import ANY, Space, direct_sum

__all__ = [
    "Adjoint",
    "Block",
    "Identity",
    "Operator",
    "Product",
    "Sum",
    "Zero",
    "block",
    "product",
    "same_number",
    "total",
]


@dataclass(frozen=True, repr=False)
class Operator(ABC):
    """A linear map between named spaces that knows how to be applied, transposed and inverted.

    out, into: the spaces of its results and of its arguments; at: the configuration it belongs to,
    None for identities and zeros.
    """

    out: Space
    into: Space
    at: Any

    __array_ufunc__ = None

    @property
    @abstractmethod
    def T(self) -> Operator:
        """The adjoint."""

    @property
    def inv(self) -> Operator:
        """The inverse, by a rule; an error where none applies."""
        from .inverse import inverse

        return inverse(self)

    @property
    def shape(self) -> tuple[int, int]:
        """That of the dense matrix."""
        return self.out.dim, self.into.dim

    def dense(self) -> np.ndarray:
        """The matrix, by the cheapest route."""
        from .plan import dense

        return dense(self)

    def __matmul__(self, other: Any) -> Any:
        if isinstance(other, Operator):
            return product([self, other])
        from .plan import apply

        return apply(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        x = np.asarray(other)
        return self.T @ x if x.ndim == 1 else np.swapaxes(self.T @ np.swapaxes(x, -1, -2), -1, -2)

    def __add__(self, other: Any) -> Any:
        return total([(1, self), (1, other)]) if isinstance(other, Operator) else NotImplemented

    def __sub__(self, other: Any) -> Any:
        return total([(1, self), (-1, other)]) if isinstance(other, Operator) else NotImplemented

    def __neg__(self) -> Operator:
        return total([(-1, self)])

    def __mul__(self, factor: Any) -> Operator:
        if isinstance(factor, (Operator, str)) or np.ndim(factor):
            raise ArgumentError(
                f"({self}) * {type(factor).__name__}: * scales by a number; compose with @"
            )
        return total([(factor, self)])

    __rmul__ = __mul__

    def __truediv__(self, factor: Any) -> Operator:
        return self * (1 / factor)

    def __repr__(self) -> str:
        from .show import text

        return text(self)

    def _repr_latex_(self) -> str:
        from .show import latex

        return f"${latex(self)}$"


class Identity(Operator):
    """I, of any space until it stands beside an operator that has one."""

    def __init__(self, space: Space = ANY) -> None:
        Operator.__init__(self, space, space, None)

    @property
    def T(self) -> Operator:
        """Itself."""
        return self


class Zero(Operator):
    """The operator that gives zero."""

    def __init__(self, out: Space, into: Space) -> None:
        Operator.__init__(self, out, into, None)

    @property
    def T(self) -> Operator:
        """Zero the other way."""
        return Zero(self.into, self.out)


@dataclass(frozen=True, repr=False)
class Product(Operator):
    """Factors, applied from the right."""

    factors: tuple[Operator, ...]

    @property
    def T(self) -> Operator:
        """The adjoints in reverse."""
        return product([f.T for f in reversed(self.factors)])


@dataclass(frozen=True, repr=False, eq=False)
class Sum(Operator):
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
    def T(self) -> Operator:
        """The adjoint, kept as one unless it is the sum itself."""
        turned = total([(c, t.T) for c, t in self.terms])
        if len(self.terms) == 1:
            return turned
        mirrored = dict((t, c) for c, t in turned.terms) if isinstance(turned, Sum) else {}
        same = all(t in mirrored and same_number(mirrored[t], c) for c, t in self.terms)
        return self if same else Adjoint(self.into, self.out, self.at, self)


@dataclass(frozen=True, repr=False)
class Adjoint(Operator):
    """The adjoint of a sum, kept as it is written."""

    of: Sum

    @property
    def opened(self) -> Operator:
        """The sum of the adjoints."""
        return total([(c, t.T) for c, t in self.of.terms])

    @property
    def T(self) -> Operator:
        """The sum."""
        return self.of


@dataclass(frozen=True, repr=False)
class Block(Operator):
    """Operators in rows and columns, between direct sums of spaces."""

    rows: tuple[tuple[Operator, ...], ...]

    @property
    def T(self) -> Operator:
        """The adjoints, rows and columns exchanged."""
        return block([[entry.T for entry in column] for column in zip(*self.rows, strict=True)])


def product(factors: Iterable[Operator]) -> Operator:
    """The product in normal form."""
    flat: list[Operator] = []
    scale: Any = 1
    for factor in factors:
        if isinstance(factor, Sum) and len(factor.terms) == 1:
            scale, factor = scale * factor.terms[0][0], factor.terms[0][1]
        flat.extend(factor.factors if isinstance(factor, Product) else [factor])
    spaced = [f for f in flat if f.out != ANY]
    _check_composition(spaced)
    rest = [f for f in spaced if not isinstance(f, Identity)]
    if any(isinstance(f, Zero) for f in rest):
        return Zero(rest[0].out, rest[-1].into)
    if len(rest) > 1:
        plain: Operator = Product(rest[0].out, rest[-1].into, _place(rest), tuple(rest))
    else:
        plain = next(iter([*rest, *spaced, *flat]))
    return plain if same_number(scale, 1) else total([(scale, plain)])


def _check_composition(factors: Sequence[Operator]) -> None:
    for left, right in zip(factors, factors[1:], strict=False):
        if left.into != right.out:
            raise ArgumentError(
                f"cannot compose ({left}) @ ({right}): {left} acts on {left.into} vectors, "
                f"{right} returns {right.out} vectors"
            )


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
    return Sum(first.out, first.into, _place([t for _, t in kept]), tuple(kept))


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


def _place(operators: Sequence[Operator]) -> Any:
    """The one configuration they belong to."""
    places = {id(op.at): op.at for op in operators if op.at is not None}
    if len(places) > 1:
        raise ArgumentError(
            f"{' and '.join(str(op) for op in operators)} belong to different configurations; "
            f"take both from the same robot.operators(q)"
        )
    return next(iter(places.values()), None)


def same_number(a: Any, b: Any) -> bool:
    """Whether two coefficients are equal; traced ones are if they are the same node."""
    plain = (int, float, complex, np.number)
    return a is b or (isinstance(a, plain) and isinstance(b, plain) and bool(a == b))


def block(rows: Sequence[Sequence[Operator]]) -> Operator:
    """Operators in rows and columns: `block([[A, B], [C, D]])`, between direct sums of spaces."""
    given = tuple(tuple(row) for row in rows)
    if not given or not all(len(row) == len(given[0]) > 0 for row in given):
        lengths = ", ".join(str(len(row)) for row in given) or "none"
        raise ArgumentError(
            f"block needs rows of the same length, at least one operator in each; got rows of "
            f"length {lengths}"
        )
    for i, row in enumerate(given):
        for j, entry in enumerate(row):
            if not isinstance(entry, Operator):
                raise ArgumentError(
                    f"block: entry ({i}, {j}) is a {type(entry).__name__}, not an operator"
                )
    grid = _with_spaces(given)
    if len(grid) == len(grid[0]) == 1:
        return grid[0][0]
    out = direct_sum([row[0].out for row in grid])
    into = direct_sum([entry.into for entry in grid[0]])
    return Block(out, into, _place([e for row in grid for e in row]), grid)


def _with_spaces(grid: tuple[tuple[Operator, ...], ...]) -> tuple[tuple[Operator, ...], ...]:
    """The grid, if rows and columns fit; identities take the space of their row or column."""
    outs = [next((e.out for e in row if e.out != ANY), ANY) for row in grid]
    intos = [next((e.into for e in c if e.into != ANY), ANY) for c in zip(*grid, strict=True)]
    rows = []
    for i, row in enumerate(grid):
        entries = []
        for j, entry in enumerate(row):
            if entry.out == ANY:
                entry = Identity(outs[i] if outs[i] != ANY else intos[j])
            wanted = (_known(outs[i], entry.out), _known(intos[j], entry.into))
            if (entry.out, entry.into) != wanted:
                raise ArgumentError(
                    f"block: entry ({i}, {j}), {entry}, takes {entry.into} to {entry.out} vectors; "
                    f"its row and column need {wanted[1]} to {wanted[0]}"
                )
            entries.append(entry)
        rows.append(tuple(entries))
    return tuple(rows)


def _known(space: Space, otherwise: Space) -> Space:
    return otherwise if space == ANY else space
