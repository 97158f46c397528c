"""Inverses that theorems give: what an expression is when it is multiplied out tells which.

Push-through, (I + A φ B)⁻¹ = I − A (φ⁻¹ + B A)⁻¹ B, with ψ⁻¹ = φ⁻¹ + K H (4.3), turns the
innovations factor I + HφK into I − HψK; the mass operator is inverted through its factorisation
(I + HφK) D (I + HφK)* (4.2), which takes the Riccati sweep when the result meets a vector.  There
is no dense inverse: an operator that neither a theorem nor its structure fits is refused.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import ArgumentError
from .articulation import Articulation
from .expr import Identity
from .leaves import Leaf, Named
from .operator import Operator
from .words import equal, polynomial

__all__ = ["theorem"]


def theorem(A: Operator, sets: Sequence[Articulation]) -> Operator | None:
    """The inverse of a symbol by a theorem about a set of joints that give way, if there is one."""
    if A.out != A.into:
        raise ArgumentError(
            f"{A} has no inverse: it takes {A.into} vectors to {A.out} vectors, "
            f"{A.shape[0]} × {A.shape[1]}"
        )
    if isinstance(A, Leaf) and not isinstance(A, Named):
        return None
    words = polynomial(A)
    for s in sets:
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
