"""The forces of constraints: A λ = b, whatever the rank of A.

Redundant constraints make A = K M⁻¹ Kᵀ singular, yet the system consistent.  Steps

    (A + μ diag A) Δ₁ = b,   (A + μ diag A) Δ₊ = μ diag A Δ,   λ = Σ Δ                          (1)

(Martinet's proximal ones) leave b − A λ = μ diag A Δ of the last, converge whatever the rank, and
need no decision about it; the diagonal makes them the same in all units and for all masses.  In a
direction that A does not move every step adds as much, which is taken away at the end:

    λ = Δ₁ + … + Δₙ − n Δₙ₊₁                                                                    (2)

is the least one, in the metric of the diagonal, of those that come nearest.  How near, Δₙ₊₁ tells.

A row that no joint moves is nothing but rounding of the terms it is made of, and is left out; it
contradicts the joints if its b is more than that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...algebra.small import Factor, is_zero, mirror_lower, one_below_zero, sign, vanishes
from ...errors import ArgumentError, SingularError
from ...model.protocol import Descents
from .description import AXES, Constraint
from .response import Felt

__all__ = [
    "DOUBLE",
    "Multipliers",
    "Thresholds",
    "generalized_inverse",
    "marks",
    "moved_rows",
    "multipliers",
    "per_row",
    "refuse_conflict",
]

# proximal steps: of a direction with eigenvalue σ (μ/(μ + σ))^n is left
_STEPS = 3


class Thresholds(NamedTuple):
    """What is nothing, of numbers of a precision.

    proximal: μ beside the unit diagonal, more than rounding leaves of a singular A.
    row: a row of K is rounding where it is less than this of the terms that it is made of.
    conflict: what K q̈ may miss of k, beside the terms of both.
    dependent: a row depends on those before where elimination leaves less than this of its A(i,i).
    """

    proximal: float
    row: float
    conflict: float
    dependent: float

    @classmethod
    def of(cls, rounding: float) -> Thresholds:
        """Those of double precision, or of single precision where numbers are rounded like that."""
        return _DOUBLE if rounding < _BETWEEN else _SINGLE


DOUBLE = float(np.finfo(np.float64).eps)
_BETWEEN = 1e-12
_DOUBLE = Thresholds(proximal=1e-10, row=1e-13, conflict=1e-4, dependent=1e-11)
_SINGLE = Thresholds(proximal=1e-5, row=1e-5, conflict=2e-3, dependent=1e-4)


class Multipliers(NamedTuple):
    """λ (rows,), and by how much the square of what it misses is more than may be (rows,).

    odd: 0 for marks of a mask that are 0 or 1.
    """

    forces: np.ndarray
    missed: np.ndarray
    odd: np.ndarray

    @property
    def met(self) -> Any:
        """1 where the constraints can be met, else NaN."""
        return one_below_zero(sum(1 - sign(-x) for x in (*self.missed, *self.odd)))

    @property
    def doubt(self) -> Any:
        """0 where the constraints can be met, else NaN; 0.0 for certain where λ says it by itself.

        Where no joint moves any row λ is known to be 0 and a product with it is folded, NaN or not.
        """
        return self.met - 1 if all(map(vanishes, self.forces)) else 0.0


def multipliers(
    felt: Felt,
    b: np.ndarray,
    size: np.ndarray,
    mask: np.ndarray | None = None,
    rounding: float = DOUBLE,
) -> Multipliers:
    """The λ with A λ = b, and how far off it is.

    size: the squares of the terms of b; mask: 0 for constraints that do not act, 1 for the others.
    """
    A, odd, least = felt.A, np.zeros(0), Thresholds.of(rounding)
    if mask is not None:
        mask, odd = marks(mask)
        A, b = _uncoupled(A, felt.slices, mask), per_row(felt.slices, mask) * b
    diagonal, (moved, instead) = np.diagonal(A), moved_rows(felt._replace(A=A), least)
    shift = least.proximal * diagonal
    factor = Factor(A + np.diag(shift + instead))
    steps = [factor.solve(moved * b)]
    for _ in range(_STEPS):
        steps.append(factor.solve(shift * steps[-1]))  # (1)
    forces = moved * (sum(steps[:-1]) - _STEPS * steps[-1])  # (2)
    left = shift * steps[-1] + (1 - moved) * b
    terms = size + b * b + _terms(A, forces, b - left)
    return Multipliers(forces, left * left - least.conflict**2 * terms, odd)


def moved_rows(felt: Felt, least: Thresholds = _DOUBLE) -> tuple[np.ndarray, np.ndarray]:
    """1 for rows that joints move, else 0; what stands on the diagonal of A for these: (rows,)."""
    pairs = zip(np.diagonal(felt.A), felt.bound, strict=True)
    moved = np.array([_more(x, least.row**2 * y) for x, y in pairs])
    return moved, (1 - moved) * np.array([x + 1 - _more(x, 0.0) for x in felt.bound])


def marks(mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Marks of constraints, and for each 0 if it is 0 or 1, else more; of numbers it has to be."""
    m = np.asarray(mask)
    if m.dtype.kind in "fiub" and not ((m == 0) | (m == 1)).all():
        raise ArgumentError(f"mask is {m.tolist()}; expected 1 for constraints that act, else 0")
    m = m if m.dtype == object else m * 1.0
    return m, (m - m * m) ** 2


def generalized_inverse(
    felt: Felt, mask: np.ndarray | None = None, rounding: float = DOUBLE
) -> np.ndarray:
    """A⁻¹ (rows, rows) of the rows that act and do not depend on those before; 0 for the others.

    By sweeps, row after row (Goodnight 1979, A tutorial on the SWEEP operator): for many columns b,
    where steps (1) for each would cost too much.
    """
    n, A = len(felt.A), felt.A
    acts = np.ones(n) if mask is None else per_row(felt.slices, mask)
    nothing = Thresholds.of(rounding)
    least = nothing.dependent * np.diagonal(A) + nothing.row**2 * felt.bound
    for k in range(n):
        kept = acts[k] * _more(A[k, k], least[k])
        h = kept / (kept * A[k, k] + (1 - kept))
        column = h * A[k]
        A = mirror_lower(A - np.outer(column, A[k])).reshape(n, n)
        A[k], A[:, k] = column, column
        A[k, k] = -h
    return -A


def refuse_conflict(
    where: str, mech: Descents, constraints: Sequence[Constraint], missed: np.ndarray
) -> None:
    """Raise if numbers say that the constraints contradict each other, or the joints."""
    if missed.dtype.kind != "f" or not (missed > 0).any():
        return
    c, axis = [(c, axis) for c in constraints for axis in c.axes][int(np.argmax(missed))]
    raise SingularError(
        f"{where} of {mech.name!r}: no motion keeps {c.left!r} on {c.right!r} along axis {axis} "
        f"({AXES[axis]}) and all other constraints: they contradict each other, or no joint moves "
        f"it; close the loops first (constraint_error), or hold fewer axes"
    )


def _more(x: Any, low: Any) -> Any:
    """1 where a number is more than that, else 0."""
    return 0.5 * (1 - sign(low - x))


def per_row(slices: Sequence[slice], values: np.ndarray) -> np.ndarray:
    """What there is one of per constraint, for each of its rows."""
    return np.repeat(values, [at.stop - at.start for at in slices])


def _uncoupled(A: np.ndarray, slices: Sequence[slice], mask: np.ndarray) -> np.ndarray:
    """A without what couples constraints of which one does not act."""
    n = len(mask)
    both = [[1.0 if i == j else mask[i] * mask[j] for j in range(n)] for i in range(n)]
    rows = per_row(slices, np.arange(n))
    return A * np.array(both).reshape(n, n)[rows][:, rows]


def _terms(A: np.ndarray, forces: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A(i,i) λᵀ A λ, no less than the squares of A λ, by Cauchy and Schwarz, and b = A λ.

    Of rows that have to do with row i alone: light mechanisms beside heavy ones have their own.
    """
    work = forces * b
    out = np.diagonal(A) + 0 * work
    for rows in _coupled(A):
        out[rows] = out[rows] * sum(work[rows])
    return out


def _coupled(A: np.ndarray) -> list[list[int]]:
    """Rows in groups that have nothing to do with each other."""
    groups: list[list[int]] = []
    for i, row in enumerate(A):
        near = [g for g in groups if not all(is_zero(row[j]) for j in g)]
        groups = [g for g in groups if g not in near] + [sorted([i, *sum(near, [])])]
    return groups
