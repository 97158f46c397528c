"""Expressions multiplied out: sums of words whose letters are leaves."""

from __future__ import annotations

from typing import Any

from .block import Block, block
from .expr import Adjoint, Identity, Product, Sum, Zero, product, total
from .leaves import Named
from .numbers import same_number
from .operator import Operator

__all__ = [
    "Polynomial",
    "Word",
    "added",
    "contains_block",
    "equal",
    "expression",
    "polynomial",
    "spread",
]

Word = tuple[Operator, ...]
Polynomial = dict[Word, Any]


def polynomial(A: Operator) -> Polynomial:
    """The words of A and their coefficients; names are opened, identities are the empty word."""
    A = A.symbol
    match A:
        case Identity():
            return {(): 1}
        case Zero():
            return {}
        case Named() | Adjoint():
            return polynomial(A.opened)
        case Sum():
            return added([(c, polynomial(t)) for c, t in A.terms])
        case Product():
            out: Polynomial = {(): 1}
            for factor in A.factors:
                right = polynomial(factor)
                out = added([(c * d, {a + b: 1}) for a, c in out.items() for b, d in right.items()])
            return out
    return {(A,): 1}


def added(parts: list[tuple[Any, Polynomial]]) -> Polynomial:
    """Σ c p, without the words that cancel."""
    out: Polynomial = {}
    for c, p in parts:
        for word, d in p.items():
            out[word] = out[word] + c * d if word in out else c * d
    return {w: c for w, c in out.items() if not same_number(c, 0)}


def equal(p: Polynomial, q: Polynomial) -> bool:
    """Whether both have the same words with the same coefficients."""
    return p.keys() == q.keys() and all(same_number(p[w], q[w]) for w in p)


def expression(p: Polynomial, like: Operator) -> Operator:
    """The operator with these words, between the spaces of another."""
    if not p:
        return Zero(like.out, like.into)
    return total([(c, product(w) if w else Identity(like.out)) for w, c in p.items()])


def contains_block(A: Operator) -> bool:
    """Whether a block of operators is somewhere in A."""
    match A:
        case Product(factors=parts):
            return any(contains_block(part) for part in parts)
        case Sum(terms=terms):
            return any(contains_block(term) for _, term in terms)
        case Adjoint():
            return contains_block(A.of)
    return isinstance(A, Block)


def spread(A: Operator) -> Operator:
    """A with blocks multiplied into what stands beside them, so that one block is left, or none."""
    return block(_grid(A)) if A.out.parts or A.into.parts else _grid(A)[0][0]


def _grid(A: Operator) -> list[list[Operator]]:
    match A:
        case Block():
            return [[_grid(entry)[0][0] for entry in row] for row in A.rows]
        case Product():
            out = _grid(A.factors[0])
            for factor in A.factors[1:]:
                columns = list(zip(*_grid(factor), strict=True))
                out = [[_dot(row, column) for column in columns] for row in out]
            return out
        case Sum():
            grids = [(c, _grid(t)) for c, t in A.terms]
            shape = grids[0][1]
            return [
                [total([(c, g[i][j]) for c, g in grids]) for j in range(len(shape[0]))]
                for i in range(len(shape))
            ]
        case Adjoint() if contains_block(A):
            return _grid(A.opened)
    return [[A]]


def _dot(row: list[Operator], column: tuple[Operator, ...]) -> Operator:
    return total([(1, a @ b) for a, b in zip(row, column, strict=True)])
