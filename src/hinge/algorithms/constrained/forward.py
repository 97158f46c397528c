"""Forward dynamics of a mechanism that is held.  Paper F eq. 34; math §3, §6.

    M q̈ − Kᵀ λ = τ − bias,   K q̈ = k             λ: the force on l, its opposite on r           (1)

so that A λ = k − K q̈_free with A = K M⁻¹ Kᵀ, both of which come with the inward sweep of ABA
(`response.py`); λ is solved for (`multipliers.py`) and goes outward with everything else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...model.mechanism import Mechanism
from ..declare import algorithm
from ..inverse_dynamics import motion
from .description import Constraint
from .multipliers import multipliers, refuse_conflict
from .response import Felt, accelerations, response
from .rows import Held, held, in_given_axes, wanted

__all__ = ["ConstrainedMotion", "Solved", "constrained_forward_dynamics", "solved_motion"]


class ConstrainedMotion(NamedTuple):
    """qdd: accelerations (nv,); forces: λ (rows,), constraint after constraint.

    A loop's act on `left` at its origin, in the axes of `right`; a contact's act on its frame, in
    the axes of its reference.
    """

    qdd: Any
    forces: Any


class Solved(NamedTuple):
    """q̈, and λ in the axes in which the rows are solved for; what was solved."""

    qdd: np.ndarray
    forces: np.ndarray
    places: list[Held]
    felt: Felt


@algorithm(joint_level=True, independent_joints=True)
def constrained_forward_dynamics(
    mech: Mechanism,
    q: np.ndarray,
    qd: np.ndarray,
    tau: np.ndarray,
    constraints: Sequence[Constraint],
    f_ext: np.ndarray | None = None,
    mask: np.ndarray | None = None,
    anchors: np.ndarray | None = None,
) -> ConstrainedMotion:
    """q̈ and λ with M q̈ − Kᵀλ = τ − bias and K q̈ = k (1).  O(N) and O(rows³).

    Of redundant constraints λ is the least of the many force systems that hold them; q̈ is unique.
    mask: (constraints,), 0 for those that do not act.  anchors: (contacts, 4, 4), where contacts
    with a stiffness are drawn to.
    """
    solved = solved_motion(mech, q, qd, tau, constraints, f_ext, mask, anchors)
    return ConstrainedMotion(solved.qdd, in_given_axes(solved.places, solved.forces))


def solved_motion(
    mech: Mechanism,
    q: np.ndarray,
    qd: np.ndarray,
    tau: np.ndarray,
    constraints: Sequence[Constraint],
    f_ext: np.ndarray | None,
    mask: np.ndarray | None,
    anchors: np.ndarray | None,
) -> Solved:
    """The sweeps: out, in, out."""
    H, phi = mech.H(q), mech.phi(q)
    moving = motion(mech, H, phi, q, qd, np.zeros(mech.nv), f_ext)
    places = held(mech, phi, constraints, anchors)
    found = response(mech, H, phi, places, moving.f, mech.rates(tau))
    rows = wanted(places, moving.V, moving.alpha)
    solved = multipliers(found.felt, rows.k - found.felt.free, rows.size, mask)
    refuse_conflict("constrained_forward_dynamics", mech, constraints, solved.missed)
    qdd = mech.join(accelerations(mech, H, phi, found, solved.forces))
    return Solved(solved.met * qdd, solved.met * solved.forces, places, found.felt)
