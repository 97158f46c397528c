"""Forward dynamics of a mechanism that is held.  Paper F eq. 34; math §3, §6.

    M q̈ − Kᵀ λ = τ − bias,   K q̈ = k             λ: the force on l, its opposite on r           (1)

so that A λ = k − K q̈_free with A = K M⁻¹ Kᵀ, both of which come with the inward sweep of ABA
(`response.py`); λ is solved for (`multipliers.py`) and goes outward with everything else.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...model.protocol import Descents
from ..declare import algorithm
from ..inverse_dynamics import joint_forces, motion
from .description import Constraint, refuse_unused_anchors
from .multipliers import DOUBLE, multipliers, refuse_conflict
from .response import Felt, response
from .rows import Held, held, in_given_axes, pushes, wanted

__all__ = [
    "ConstrainedHybridMotion",
    "ConstrainedMotion",
    "Solved",
    "constrained_forward_dynamics",
    "constrained_hybrid_dynamics",
    "solved_motion",
]


class ConstrainedMotion(NamedTuple):
    """qdd: accelerations (nv,); forces: λ (rows,), constraint after constraint.

    A loop's act on `left` at its origin, in the axes of `right`; a contact's act on its frame, in
    the axes of its reference.
    """

    qdd: Any
    forces: Any


class Solved(NamedTuple):
    """q̈ (nv,), or the jump of q̇; λ (rows,) in the axes in which rows are solved for.

    met: 1 where the constraints can be met, else NaN, as q̈ and λ are.
    """

    qdd: np.ndarray
    forces: np.ndarray
    places: list[Held]
    felt: Felt
    met: Any


class ConstrainedHybridMotion(NamedTuple):
    """tau, qdd: forces and accelerations of all DoF (nv,); forces: λ as in `ConstrainedMotion`."""

    tau: Any
    qdd: Any
    forces: Any


@algorithm(joint_level=True, loops=True)
def constrained_forward_dynamics(
    mech: Descents,
    q: np.ndarray,
    qd: np.ndarray,
    tau: np.ndarray,
    constraints: Sequence[Constraint],
    f_ext: np.ndarray | None = None,
    mask: np.ndarray | None = None,
    anchors: np.ndarray | None = None,
    rounding: float = DOUBLE,
) -> ConstrainedMotion:
    """q̈ and λ with M q̈ − Kᵀλ = τ − bias and K q̈ = k (1).  O(N) and O(rows³).

    Of redundant constraints λ is the least of the many force systems that hold them; q̈ is unique.
    mask: (constraints,), 0 for those that do not act.  anchors: (contacts, 4, 4), where contacts
    with a stiffness are drawn to.
    """
    solved = solved_motion(mech, q, qd, tau, constraints, f_ext, mask, anchors, rounding)
    return ConstrainedMotion(solved.qdd, in_given_axes(solved.places, solved.forces))


def solved_motion(
    mech: Descents,
    q: np.ndarray,
    qd: np.ndarray,
    tau: np.ndarray,
    constraints: Sequence[Constraint],
    f_ext: np.ndarray | None,
    mask: np.ndarray | None,
    anchors: np.ndarray | None,
    rounding: float = DOUBLE,
) -> Solved:
    """The motion, and what was solved for it."""
    refuse_unused_anchors("constrained_forward_dynamics", constraints, anchors)
    phi = mech.phi(q)
    moving = motion(mech, mech.H(q), phi, q, qd, np.zeros(mech.nv), f_ext)
    places = held(mech, phi, constraints, anchors)
    found = response(mech, q, places, moving.f, tau)
    rows = wanted(places, moving.V, moving.alpha)
    solved = multipliers(found.felt, rows.k - found.felt.free, rows.size, mask, rounding)
    refuse_conflict("constrained_forward_dynamics", mech, constraints, solved.missed)
    forces = solved.met * solved.forces + solved.doubt
    qdd = found.qdd(forces, solved.doubt)
    return Solved(qdd, forces, places, found.felt, solved.met)


@algorithm(joint_level=True, loops=True)
def constrained_hybrid_dynamics(
    mech: Descents,
    q: np.ndarray,
    qd: np.ndarray,
    qdd_active: np.ndarray,
    tau_passive: np.ndarray,
    constraints: Sequence[Constraint],
    active: Any,
    f_ext: np.ndarray | None = None,
    mask: np.ndarray | None = None,
    anchors: np.ndarray | None = None,
    rounding: float = DOUBLE,
) -> ConstrainedHybridMotion:
    """τ of the active DoF, q̈ of the passive ones and λ, joined with what is given.

    As `constrained_forward_dynamics`, of a mechanism whose active DoF move as told: the passive
    ones and the forces of the constraints have to do the rest.  O(N) and O(rows³).
    """
    refuse_unused_anchors("constrained_hybrid_dynamics", constraints, anchors)
    m, phi = mech.driven(active), mech.phi(q)
    told = mech.combined(operator.mul, m, qdd_active)
    moving = motion(mech, mech.H(q), phi, q, qd, told, f_ext)
    places = held(mech, phi, constraints, anchors)
    found = response(mech, q, places, moving.f, tau_passive, m)
    rows = wanted(places, moving.V, moving.alpha)
    solved = multipliers(found.felt, rows.k - found.felt.free, rows.size, mask, rounding)
    refuse_conflict("constrained_hybrid_dynamics", mech, constraints, solved.missed)
    forces = solved.met * solved.forces + solved.doubt
    qdd = mech.combined(_split, m, qdd_active, found.qdd(forces, solved.doubt))
    tau = mech.combined(_split, m, _needed(mech, q, qd, qdd, f_ext, places, forces), tau_passive)
    return ConstrainedHybridMotion(tau, qdd, in_given_axes(places, forces))


def _needed(
    mech: Descents,
    q: np.ndarray,
    qd: np.ndarray,
    qdd: np.ndarray,
    f_ext: np.ndarray | None,
    places: Sequence[Held],
    forces: np.ndarray,
) -> np.ndarray:
    """The joint forces of a motion, with those of the constraints acting as well: (nv,)."""
    H, phi, push = mech.H(q), mech.phi(q), mech.placed(pushes(places, forces))
    f = motion(mech, H, phi, q, qd, qdd, f_ext).f
    for _, k in mech.outward():
        f[k] = f[k] - push[k]
    return joint_forces(mech, H, phi, f, qdd)


def _split(m: np.ndarray, of_active: np.ndarray, of_passive: np.ndarray) -> np.ndarray:
    return m * of_active + (1 - m) * of_passive
