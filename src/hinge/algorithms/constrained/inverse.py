"""Inverse dynamics of a mechanism that is held: who carries what.

Of a motion q̈ the joint forces and those of the constraints are together known, r = M q̈ + bias:

    S τ + Kᵀ λ = r                                  S: the degrees of freedom that are driven   (1)

The rows of passive degrees of freedom, B λ = r_p with B = K_pᵀ, say what λ has to do; what is left
of it, and how driven joints and constraints share, is chosen by least squares:

    minimise τᵀ W τ + λᵀ w λ                                                                    (2)
    Q = K_a W K_aᵀ + w,   c = K_a W r_a,   B Q⁻¹ Bᵀ y = r_p − B Q⁻¹ c,   Q λ = c + Bᵀ y         (3)

The system of y is solved as that of constraint forces is (`multipliers.py`), whatever its rank.
K is made body by body, as unit forces ride inward; Q and c are sums over the bodies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...algebra.small import Factor, mirror_lower
from ...errors import ArgumentError, SingularError
from ...model.mechanism import Mechanism
from ...model.protocol import Descents, Tree
from ..declare import algorithm, with_followers
from ..inverse_dynamics import inverse_dynamics
from ..singular import joint_of
from .description import Constraint, count_rows, row_slices
from .multipliers import DOUBLE, Multipliers, Thresholds, marks, multipliers, per_row
from .response import Felt
from .rows import constraint_jacobian, felt_at_joints, held, reach_of_joints

__all__ = ["ConstrainedForces", "constrained_inverse_dynamics"]

# beside the squares of joint forces, by default
_FORCE_WEIGHT = 1e-4
# passive DoF up to which a dense system of as many rows takes seconds
_MOST_PASSIVE = 600


class ConstrainedForces(NamedTuple):
    """tau: joint forces (nv,), 0 for passive DoF; forces: λ (rows,) as in `ConstrainedMotion`."""

    tau: Any
    forces: Any


@algorithm(joint_level=True, loops=True, independent_joints=True, reads_passive=True)
def constrained_inverse_dynamics(
    mech: Descents,
    q: np.ndarray,
    qd: np.ndarray,
    qdd: np.ndarray,
    constraints: Sequence[Constraint],
    active: Any,
    f_ext: np.ndarray | None = None,
    mask: np.ndarray | None = None,
    tau_weights: np.ndarray | None = None,
    force_weights: np.ndarray | None = None,
    rounding: float = DOUBLE,
) -> ConstrainedForces:
    """τ of the driven joints and λ with S τ + Kᵀλ = M q̈ + bias (1), least by weights (2).

    active: the joints that are driven, by name or as a mask (nv,).  q̈ is taken as it is; that the
    constraints allow it is up to who wants it.  tau_weights: (nv,), 1 by default; force_weights:
    (rows,), 1e-4 by default.  mask: (constraints,), 0 for those that do not act.  O(nv rows²).
    """
    driven, phi = mech.driven(active), mech.phi(q)
    m, r = mech.rates(driven), mech.rates(inverse_dynamics(mech, q, qd, qdd, f_ext))
    places, (acting, odd) = held(mech, phi, constraints), _acting(constraints, mask)
    forces = [h.given_forces(at) for h, at in zip(places, acting, strict=True)]
    K, (tau,) = felt_at_joints(mech, mech.H(q), phi, forces), mech.slots(1)
    reach = reach_of_joints(mech, mech.H(q), phi, places)
    w, weights = _weights(constraints, force_weights), mech.rates(_or_ones(mech, tau_weights))
    Q, c = mech.shared(np.zeros((len(w), len(w)))), mech.shared(np.zeros(len(w)))
    size, weight = mech.shared(0.0), mech.free_fall @ mech.free_fall
    for _, k in mech.outward():
        KW = K[k].T * (m[k] * weights[k])
        Q.value, c.value = Q.value + mirror_lower(KW @ K[k]), c.value + KW @ r[k]
        size.value = size.value + r[k] @ r[k] + mech.M[k].mass ** 2 * weight
    ends = _passive(mech, driven)
    _refuse_many(mech, sum(map(len, ends.values())))
    B = np.concatenate([np.zeros((0, len(w))), *(K[j][at] for j, at in ends.items())])
    most = np.concatenate([np.zeros((0, len(w))), *(reach[j][at] for j, at in ends.items())])
    needed = np.concatenate([np.zeros(0), *(r[j][at] for j, at in ends.items())])
    sizes = _Sizes((most * most) @ (1 / w), needed**2 + _nothing(rounding) * size.value)
    solved = _solved(Q.value + np.diag(w), c.value, B, needed, sizes, rounding)
    solved = solved._replace(odd=odd)
    _refuse_unreachable(mech, driven, solved.missed)
    lam, met, doubt = map(mech.shared, (solved.forces, solved.met, solved.doubt))
    for _, k in mech.outward():
        tau[k] = met.value * (m[k] * (r[k] - K[k] @ lam.value)) + doubt.value
    return ConstrainedForces(mech.join(tau), solved.met * solved.forces + solved.doubt)


@with_followers(constrained_inverse_dynamics)
def _(
    mech: Mechanism,
    q: np.ndarray,
    qd: np.ndarray,
    qdd: np.ndarray,
    constraints: Sequence[Constraint],
    active: Any,
    f_ext: np.ndarray | None = None,
    mask: np.ndarray | None = None,
    tau_weights: np.ndarray | None = None,
    force_weights: np.ndarray | None = None,
    rounding: float = DOUBLE,
) -> ConstrainedForces:
    """The same from K as a matrix: a joint that follows feels for its leader."""
    m, (acting, odd) = mech.driven(active), _acting(constraints, mask)
    passive, w = np.flatnonzero(m == 0), _weights(constraints, force_weights)
    _refuse_many(mech, len(passive))
    r, K = inverse_dynamics(mech, q, qd, qdd, f_ext), constraint_jacobian(mech, q, constraints)
    K = np.concatenate([np.zeros(0), *acting])[:, None] * K
    KW = K * (m * np.asarray(_or_ones(mech, tau_weights)))
    B, needed = K[:, passive].T, r[passive]
    weight = (mech.free_fall @ mech.free_fall) * sum(M.mass * M.mass for M in mech.M[1:])
    sizes = _Sizes((B * B) @ (1 / w), needed**2 + _nothing(rounding) * (r @ r + weight))
    solved = _solved(KW @ K.T + np.diag(w), KW @ r, B, needed, sizes, rounding)
    solved = solved._replace(odd=odd)
    _refuse_unreachable(mech, m, solved.missed)
    tau = solved.met * (m * (r - K.T @ solved.forces)) + solved.doubt
    return ConstrainedForces(tau, solved.met * solved.forces + solved.doubt)


def _refuse_many(mech: Any, passive: int) -> None:
    """Refuse a dense system that takes minutes."""
    if passive > _MOST_PASSIVE:
        raise ArgumentError(
            f"constrained_inverse_dynamics of {mech.name!r}: {passive} passive DoF make a dense "
            f"system of as many equations, {_MOST_PASSIVE} at the most; make more joints active, "
            f"or take constrained_hybrid_dynamics, where passive joints accelerate freely"
        )


class _Sizes(NamedTuple):
    """Of the rows of passive DoF.

    bound: what B w⁻¹ Bᵀ would have on its diagonal if nothing cancelled in B.
    needed: the squares of the terms of r_p.
    """

    bound: np.ndarray
    needed: np.ndarray


def _nothing(rounding: float) -> float:
    """The square of what, of all joint forces and weights, a passive joint need not be given."""
    least = Thresholds.of(rounding)
    return (least.row / least.conflict) ** 2


def _solved(
    Q: np.ndarray,
    c: np.ndarray,
    B: np.ndarray,
    needed: np.ndarray,
    sizes: _Sizes,
    rounding: float,
) -> Multipliers:
    """λ of (3), and by how much it misses r_p."""
    factor = Factor(mirror_lower(Q))
    X, free = factor.solve(B.T), factor.solve(c)
    b = needed - B @ free
    felt = Felt(mirror_lower(B @ X), 0 * b, sizes.bound, [slice(0, len(b))])
    solved = multipliers(felt, b, sizes.needed, None, rounding)
    return solved._replace(forces=free + X @ solved.forces)  # (3)


def _acting(
    constraints: Sequence[Constraint], mask: np.ndarray | None
) -> tuple[list[np.ndarray], np.ndarray]:
    """Marks of the rows of each constraint, and what is odd about them."""
    acting, odd = (np.ones(len(constraints)), np.zeros(0)) if mask is None else marks(mask)
    rows = per_row(row_slices(constraints), acting)
    return [rows[at] for at in row_slices(constraints)], odd


def _weights(constraints: Sequence[Constraint], given: np.ndarray | None) -> np.ndarray:
    return np.full(count_rows(constraints), _FORCE_WEIGHT) if given is None else np.asarray(given)


def _or_ones(mech: Tree, given: Any) -> Any:
    return np.ones(mech.nv) if given is None else given


def _passive(mech: Descents, driven: np.ndarray) -> dict[int, list[int]]:
    """The bodies with passive degrees of freedom, and which of their own these are."""
    stops = np.cumsum([body.joint.nv for body in mech.bodies]).tolist()
    own = {k: driven[stops[k - 1] : stops[k]] for k in range(1, len(stops))}
    found = {k: [i for i, x in enumerate(part) if not x] for k, part in own.items()}
    return {k: at for k, at in found.items() if at}


def _refuse_unreachable(mech: Any, driven: np.ndarray, missed: np.ndarray) -> None:
    if missed.dtype.kind != "f" or not (missed > 0).any():
        return
    joint = joint_of(mech, np.flatnonzero(driven == 0)[int(np.argmax(missed))])
    raise SingularError(
        f"constrained_inverse_dynamics of {mech.name!r}: neither the driven joints nor the "
        f"constraints can give the passive joint {joint!r} the force that the motion needs; ask "
        f"for another motion, or hold more"
    )
