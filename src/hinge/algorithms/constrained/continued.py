"""Forward dynamics that goes on through dead points, where constraints lose rank.  math §3, §6.

A parallelogram that lies flat may go on as one or fold: there K has one row less.  On the branch
where it moves q̈ is smooth.  But at an angle δ from the point, what q̈ is across the branch comes
from a row of size δ: of a state that is off the branch by ε it is off by ε/δ², and errors ν of the
velocity change by ν̇ = −ν/t, which has a pole that steps do not cross.  So q̈ is sought near q̈₀,
the one before:

    A λ₀ = K q̈₀ − K q̈_free                      the forces that keep q̈₀ along the rows          (1)
    (A + T) Δ₁ = k − K q̈₀ − r x,   (A + T) Δ₊ = T Δ,   λ = λ₀ + Σ Δ                              (2)
    x = ((A + T)⁻¹ T)³ (K q̇ + ¼ r e),   r = 2/h                                                  (3)

T is diagonal, h²Ω² of what A(i,i) would be if nothing cancelled in it.  Ω is how fast the linkage
turns, so that hΩ is the δ that a step h passes: rows that change faster than steps follow them are
met as fast as steps can.  Others are met as well as without T, to (hΩ)⁸ of what q̈ changes by in a
step.  What (2) leaves acts across the branch, where it does no work to first order.  Gaps would
grow from one dead point to the next; (3) shuts them in some steps, in directions where A is no
more than T.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...algebra.small import Factor
from ...model.protocol import Descents, PerBody
from ..declare import algorithm
from ..inverse_dynamics import motion
from .description import Constraint
from .multipliers import moved_rows, per_row
from .response import Felt, response
from .rows import Held, error, held, velocities, wanted

__all__ = ["continued_dynamics"]

# of redundant rows, elimination leaves no less of A(i,i): above rounding, below any dead point
_DEPENDENT = 1e-13
# how many steps (2) after the first, and how many of (3)
_STEPS = 3


@algorithm(joint_level=True, loops=True)
def continued_dynamics(
    mech: Descents,
    q: np.ndarray,
    qd: np.ndarray,
    tau: np.ndarray,
    qdd_before: np.ndarray,
    span: Any,
    constraints: Sequence[Constraint],
    f_ext: np.ndarray | None = None,
) -> np.ndarray:
    """q̈ of `constrained_forward_dynamics`; near dead points it goes on from qdd_before.

    span: h, how long constraints have for what they ask, in s.
    """
    phi, H, span = mech.phi(q), mech.H(q), np.asarray(span)[()]
    moving = motion(mech, H, phi, q, qd, np.zeros(mech.nv), f_ext)
    places = held(mech, phi, constraints)
    found = response(mech, q, places, moving.f, tau)
    rows, felt, rate = wanted(places, moving.V, moving.alpha), found.felt, 2 / span
    before = velocities(places, _carried(mech, H, phi, qdd_before)).velocity
    passed = per_row(felt.slices, span * span * _turning(mech, places, H, qd)) * felt.bound
    moved, keeping, soft = _factors(felt, passed)
    steps = [keeping.solve(moved * (before - felt.free))]  # (1)
    gap = rows.velocity + 0.25 * rate * _errors(places)
    for _ in range(_STEPS):
        gap = soft.solve(passed * gap)  # (3)
    steps.append(soft.solve(moved * (rows.k - before - rate * gap)))
    for _ in range(_STEPS):
        steps.append(soft.solve(passed * steps[-1]))  # (2)
    return found.qdd(moved * sum(steps))


def _factors(felt: Felt, passed: np.ndarray) -> tuple[np.ndarray, Factor, Factor]:
    """1 for rows that joints move, else 0; of A and of A + T, redundant rows or not."""
    moved, instead = moved_rows(felt)
    A, least = felt.A + np.diag(instead), _DEPENDENT * np.diagonal(felt.A)
    return moved, Factor(A, least), Factor(A + np.diag(passed + least))


def _errors(places: Sequence[Held]) -> np.ndarray:
    """The errors of constraints that are drawn shut, else 0: (rows,), in solved axes."""
    parts = [error(h) * (h.constraint.stiffness > 0) for h in places]
    return np.concatenate([np.zeros(0), *parts])


def _carried(mech: Descents, H: PerBody, phi: PerBody, rates: np.ndarray) -> PerBody:
    """The velocities of bodies whose joints have these rates.  O(N)."""
    rates_, (V,) = mech.rates(rates), mech.slots(1)
    for p, k in mech.outward():
        V[k] = phi[k].T @ V[p] + H[k].T @ rates_[k]
    return V


def _turning(mech: Descents, places: Sequence[Held], H: PerBody, qd: np.ndarray) -> np.ndarray:
    """Ω² of each constraint: the squares of how fast the joints turn that are on one side of it."""
    rates, sums = mech.rates(qd), [mech.shared(0.0) for _ in places]
    for _, k in mech.inward():
        w = H[k][:, :3].T @ rates[k]
        for h, total in zip(places, sums, strict=True):
            sides = [end for end in (h.left, h.right) if end and mech.carries(k, end)]
            if len(sides) == 1:
                total.value = total.value + w @ w
    return np.array([total.value for total in sums])
