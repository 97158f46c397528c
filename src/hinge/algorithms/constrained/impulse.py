"""Impacts: how the velocities of a mechanism jump when constraints set in.

    M (q̇⁺ − q̇) = Kᵀ Λ,   K q̇⁺ = −e K q̇             e: restitution, 0 if nothing comes back     (1)

so that A Λ = −(1 + e) K q̇, with the A of `response.py`; what is swept outward has no velocity, no
gravity and no joint force in it, because an impact takes no time.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...model.protocol import Descents
from ..declare import algorithm
from ..inverse_dynamics import motion
from .description import Constraint
from .forward import Solved
from .multipliers import DOUBLE, multipliers, per_row, refuse_conflict
from .response import response
from .rows import held, in_given_axes, velocities

__all__ = ["Impact", "impulse_dynamics", "solved_impact"]


class Impact(NamedTuple):
    """qd_plus: velocities after it (nv,); impulses: Λ (rows,), in the axes of forces."""

    qd_plus: Any
    impulses: Any


@algorithm(joint_level=True, loops=True)
def impulse_dynamics(
    mech: Descents,
    q: np.ndarray,
    qd: np.ndarray,
    constraints: Sequence[Constraint],
    restitution: np.ndarray | None = None,
    mask: np.ndarray | None = None,
    rounding: float = DOUBLE,
) -> Impact:
    """q̇⁺ and Λ with M (q̇⁺ − q̇) = KᵀΛ and K q̇⁺ = −e K q̇ (1).  O(N) and O(rows³).

    restitution: e (constraints,), 0 by default.  mask: (constraints,), 0 for those that do not act.
    """
    solved = solved_impact(mech, q, qd, constraints, restitution, mask, rounding)
    forces = in_given_axes(solved.places, solved.forces)
    return Impact(mech.combined(operator.add, qd, solved.qdd), forces)


def solved_impact(
    mech: Descents,
    q: np.ndarray,
    qd: np.ndarray,
    constraints: Sequence[Constraint],
    restitution: np.ndarray | None,
    mask: np.ndarray | None,
    rounding: float = DOUBLE,
) -> Solved:
    """The jump q̇⁺ − q̇, and what was solved for it."""
    phi, still = mech.phi(q), np.zeros(mech.nv)
    moving = motion(mech, mech.H(q), phi, q, qd, still, None)
    places = held(mech, phi, constraints)
    found = response(mech, q, places, mech.filled(lambda k: np.zeros(6)), still)
    rows = velocities(places, moving.V)
    back = 0.0 if restitution is None else per_row(found.felt.slices, np.asarray(restitution))
    solved = multipliers(found.felt, -(1 + back) * rows.velocity, rows.size, mask, rounding)
    refuse_conflict("impulse_dynamics", mech, constraints, solved.missed)
    forces = solved.met * solved.forces + solved.doubt
    jump = found.qdd(forces, solved.doubt)
    return Solved(jump, forces, places, found.felt, solved.met)
