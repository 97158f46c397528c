"""How an impact changes with the state it happens in.

With Δ = q̇⁺ − q̇ and the impulses Λ held fixed, M Δ − K* Λ is the inverse dynamics of a mechanism at
rest and without weight that is accelerated by Δ and loaded with Λ, and K q̇⁺ + e K q̇ what its rows
feel of accelerations: all that `derivatives.py` does holds of

    M ∂q̇⁺ − K* ∂Λ = M ∂q̇ − ∂(M Δ − K* Λ),     K ∂q̇⁺ = −e K ∂q̇ − ∂(K q̇⁺ + e K q̇)              (1)

Over q̇ the first right side is M, which changes q̇⁺ by as much, and leaves −(1 + e) K to the rows.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ...model.mechanism import Mechanism
from ...model.protocol import Descents
from ..declare import algorithm
from ..linearized.nominal import nominal
from .changes import changes
from .derivatives import Core, all_loads, in_doubt, limbs_of
from .description import Constraint
from .impulse import solved_impact
from .multipliers import DOUBLE, generalized_inverse, per_row
from .rows import Held, in_given_axes, pushed, pushes

__all__ = [
    "ImpactChanges",
    "ImpactDerivatives",
    "impulse_changes",
    "impulse_dynamics_derivatives",
]


class ImpactChanges(NamedTuple):
    """An impact, and what its derivatives need beside those of the motion under its impulses.

    loads: the impulses on bodies, (n_bodies, 6).  K; after, before: of K q̇⁺ and of K q̇ over q, the
    first again where nothing bounces back; turn: of Λ, as its axes turn; (rows, nv) each.
    pushed, push: as in `ConstrainedChanges`.  A_inv: (rows, rows).
    """

    loads: Any
    K: Any
    after: Any
    before: Any
    turn: Any
    pushed: Any
    push: Any
    A_inv: Any


class ImpactDerivatives(NamedTuple):
    """∂q̇⁺ over q and q̇, (nv, nv) each, and ∂Λ over the same, (rows, nv) each."""

    dq: Any
    dqd: Any
    impulses_dq: Any
    impulses_dqd: Any


@algorithm(joint_level=True)
def impulse_dynamics_derivatives(
    mech: Mechanism,
    q: np.ndarray,
    qd: np.ndarray,
    constraints: Sequence[Constraint],
    restitution: np.ndarray | None = None,
    mask: np.ndarray | None = None,
    rounding: float = DOUBLE,
) -> ImpactDerivatives:
    """∂q̇⁺ and ∂Λ over q and q̇, ∂q along the joints' tangents.  O(N²) and O(N rows²)."""
    solved = solved_impact(mech, q, qd, constraints, restitution, mask, rounding)
    mech, still, qd = _weightless(mech), np.zeros(mech.nv), np.asarray(qd)
    places, jump = [_plain(h) for h in solved.places], solved.qdd
    loads = pushed(mech, places, solved.forces)
    n = nominal(mech, q, still, jump, loads)
    limbs = limbs_of(mech, n, q, still, jump, loads)
    rows = changes(mech, nominal(mech, q, still, qd + jump, None), places, solved.forces)
    core = Core(limbs, rows.K, generalized_inverse(solved.felt, mask, rounding))
    felt, again = rows.dq, rows.K
    if restitution is not None:
        back = per_row(solved.felt.slices, np.asarray(restitution))[:, None]
        before = changes(mech, nominal(mech, q, still, qd, None), places, solved.forces)
        felt, again = felt + back * before.dq, again + back * rows.K
    moved = limbs.dq + limbs.pushed(rows.pushed.T) @ rows.push
    dq, impulses_dq = core.answer(moved, felt)
    dqd, impulses_dqd = core.answer(np.zeros(moved.shape), again)
    impulses = impulses_dq + rows.turn, impulses_dqd
    whole = np.eye(mech.nv) + dqd
    own = (in_given_axes(places, x) for x in impulses)
    return ImpactDerivatives(in_doubt(dq, solved), whole, *own)


@algorithm(loops=True)
def impulse_changes(
    mech: Descents,
    q: np.ndarray,
    qd: np.ndarray,
    constraints: Sequence[Constraint],
    restitution: np.ndarray | None = None,
    mask: np.ndarray | None = None,
    rounding: float = DOUBLE,
) -> ImpactChanges:
    """The part of the derivatives of an impact that constraints add, in the axes given.  O(N rows).

    The impact is a motion of the mechanism at rest and without weight under `loads`.
    """
    solved = solved_impact(mech, q, qd, constraints, restitution, mask, rounding)
    still, places = np.zeros(mech.nv), [_plain(h) for h in solved.places]
    push = mech.placed(pushes(places, solved.forces))
    after = mech.combined(operator.add, qd, solved.qdd)
    n = nominal(mech, q, still, after, None, falls=False)
    rows = changes(mech, n, places, solved.forces, given_axes=True)
    before = rows.dq
    if restitution is not None:
        n = nominal(mech, q, still, qd, None, falls=False)
        before = changes(mech, n, places, solved.forces, given_axes=True).dq
    half = in_given_axes(places, generalized_inverse(solved.felt, mask, rounding))
    A_inv = in_given_axes(places, half.T)
    loads, pushes_ = all_loads(mech, None, push), (rows.pushed, rows.push)
    return ImpactChanges(loads, rows.K, rows.dq, before, rows.turn, *pushes_, A_inv)


def _weightless(mech: Mechanism) -> Mechanism:
    """The mechanism where nothing falls; what its joints have to feel to move stays the same."""
    made = replace(mech, gravity=(0.0, 0.0, 0.0))
    made.__dict__["least"] = mech.least
    return made


def _plain(h: Held) -> Held:
    """A constraint that draws to nowhere: an impact takes no time."""
    return h._replace(constraint=replace(h.constraint, stiffness=0.0, damping=0.0))
