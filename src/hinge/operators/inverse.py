"""Inverses by rules: one per structure, and one theorem.

Push-through, (I + A φ B)⁻¹ = I − A (φ⁻¹ + B A)⁻¹ B, with ψ⁻¹ = φ⁻¹ + K H (4.3), turns the
innovations factor I + HφK into I − HψK; the mass operator is inverted through its factorisation
(I + HφK) D (I + HφK)* (4.2), which takes the Riccati sweep when the result meets a vector.  There
is no dense inverse: an operator that no rule fits is refused.
"""

from __future__ import annotations

from dataclasses import replace

from ..errors import ArgumentError
from .articulation import Articulation
from .expr import Adjoint, Identity, Operator, Product, Sum, product, total
from .leaves import Chain, Leaf, Local, Named
from .words import equal, polynomial

__all__ = ["inverse"]


def inverse(A: Operator) -> Operator:
    """The inverse of A, or an error that says that no rule gives it."""
    if A.out != A.into:
        raise ArgumentError(
            f"{A} has no inverse: it takes {A.into} vectors to {A.out} vectors, "
            f"{A.shape[0]} × {A.shape[1]}"
        )
    compound = A.at is not None and (isinstance(A, Named) or not isinstance(A, Leaf))
    found = _by_theorem(A) if compound else None
    if found is None:
        found = _by_structure(A.opened if isinstance(A, Named) else A)
    if found is None:
        raise ArgumentError(
            f"no rule inverts {A}; rules are known for block-diagonal D, M and J, chains (φ, ψ), "
            f"the factors I + HφK and I − HψK, the mass operator, and products of these; "
            f"if a matrix is what you want, invert (…).dense()"
        )
    return found


def _by_structure(A: Operator) -> Operator | None:
    match A:
        case Identity():
            return A
        case Local() if A.blocks.invert is not None:
            return replace(A, inverted=not A.inverted)
        case Chain():
            back = Identity() - A.once
            return back.T if A.adjoint else back
        case Adjoint():
            return inverse(A.of).T
        case Sum() if len(A.terms) == 1:
            c, term = A.terms[0]
            return total([(1 / c, inverse(term))])
        case Product() if all(f.out == f.into for f in A.factors):
            return product([inverse(f) for f in reversed(A.factors)])
    return None


def _by_theorem(A: Operator) -> Operator | None:
    """The theorems about the joints that give way, found by what A is when multiplied out."""
    words = polynomial(A)
    for s in [A.at.free, *([A.at.passive] if A.at.is_split else [])]:
        for known, turned in _theorems(s):
            if equal(words, polynomial(known)):
                return turned
        if s.has_armature and equal(words, polynomial(s.mass - s.J)):
            raise ArgumentError(
                f"{A} leaves out the armature {s.J} of the joints, and the Riccati sweep has it; "
                f"invert {s.mass}"
            )
    return None


def _theorems(s: Articulation) -> list[tuple[Operator, Operator]]:
    closed = s.innovations.T @ s.D.inv @ s.innovations
    return [
        (s.mass, closed),
        (closed, s.mass),
        (s.factor, s.innovations),
        (s.innovations, s.factor),
        (s.factor.T, s.innovations.T),
        (s.innovations.T, s.factor.T),
        (Identity() - s.E_phi, s.phi),
        (Identity() - s.E_psi, s.psi),
        (Identity() - s.E_phi.T, s.phi.T),
        (Identity() - s.E_psi.T, s.psi.T),
    ]
