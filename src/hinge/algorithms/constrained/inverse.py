"""Inverse dynamics of a mechanism that is held: who carries what.

Of a motion q̈ the joint forces and those of the constraints are together known, r = M q̈ + bias:

    S τ + Kᵀ λ = r                                  S: the degrees of freedom that are driven   (1)

The rows of passive degrees of freedom, B λ = r_p with B = K_pᵀ, say what λ has to do; what is left
of it, and how driven joints and constraints share, is chosen by least squares:

    minimise τᵀ W τ + λᵀ w λ                                                                    (2)
    Q = K_a W K_aᵀ + w,   c = K_a W r_a,   B Q⁻¹ Bᵀ y = r_p − B Q⁻¹ c,   Q λ = c + Bᵀ y         (3)

The system of y is solved as that of constraint forces is (`multipliers.py`), whatever its rank.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...algebra.small import Factor, mirror_lower
from ...errors import SingularError
from ...model.mechanism import Mechanism
from ..declare import algorithm
from ..inverse_dynamics import inverse_dynamics
from ..singular import joint_of
from .description import Constraint, row_slices
from .multipliers import marks, multipliers, per_row
from .response import Felt
from .rows import constraint_jacobian

__all__ = ["ConstrainedForces", "constrained_inverse_dynamics"]

# beside the squares of joint forces, by default
_FORCE_WEIGHT = 1e-4


class ConstrainedForces(NamedTuple):
    """tau: joint forces (nv,), 0 for passive DoF; forces: λ (rows,) as in `ConstrainedMotion`."""

    tau: Any
    forces: Any


@algorithm(joint_level=True)
def constrained_inverse_dynamics(
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
) -> ConstrainedForces:
    """τ of the driven joints and λ with S τ + Kᵀλ = M q̈ + bias (1), least by weights (2).

    active: the joints that are driven, by name or as a mask (nv,).  q̈ is taken as it is; that the
    constraints allow it is up to who wants it.  tau_weights: (nv,), 1 by default; force_weights:
    (rows,), 1e-4 by default.  mask: (constraints,), 0 for those that do not act.  O(nv rows²).
    """
    m = mech.driven(active)
    passive = [i for i in range(mech.nv) if not m[i]]
    r, K = inverse_dynamics(mech, q, qd, qdd, f_ext), constraint_jacobian(mech, q, constraints)
    odd = np.zeros(0)
    if mask is not None:
        acting, odd = marks(mask)
        K = per_row(row_slices(constraints), acting)[:, None] * K
    W = m if tau_weights is None else m * np.asarray(tau_weights)
    w = np.full(len(K), _FORCE_WEIGHT) if force_weights is None else np.asarray(force_weights)
    Q, c, B = Factor(mirror_lower((K * W) @ K.T + np.diag(w))), (K * W) @ r, K[:, passive].T
    X, free = Q.solve(B.T), Q.solve(c)
    b, sizes = r[passive] - B @ free, (B * B) @ (1 / w)
    felt = Felt(mirror_lower(B @ X), 0 * b, sizes, [slice(0, len(passive))])
    solved = multipliers(felt, b, r[passive] ** 2)._replace(odd=odd)
    _refuse_unreachable(mech, passive, solved.missed)
    forces = free + X @ solved.forces  # (3)
    return ConstrainedForces(solved.met * (m * (r - K.T @ forces)), solved.met * forces)


def _refuse_unreachable(mech: Mechanism, passive: list[int], missed: np.ndarray) -> None:
    if missed.dtype.kind != "f" or not (missed > 0).any():
        return
    joint = joint_of(mech, passive[int(np.argmax(missed))])
    raise SingularError(
        f"constrained_inverse_dynamics of {mech.name!r}: neither the driven joints nor the "
        f"constraints can give the passive joint {joint!r} the force that the motion needs; ask "
        f"for another motion, or hold more"
    )
