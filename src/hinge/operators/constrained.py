"""Constraints as operators: their Jacobian, what they feel, and what they leave free.  math §6.

C takes forces along the rows of constraints to forces on the bodies that carry their frames, as B
does with frames.  With it

    K = C* φ* H*                        the constraint Jacobian
    A = K 𝓜⁻¹ K* = C* Ω C               how the rows accelerate under forces along them
    P = I − 𝓜⁻¹ K* A⁻ K                 what the constraints leave of velocities and accelerations
    P* = I − K* A⁻ K 𝓜⁻¹                and of joint forces

P takes out what an impulse of the constraints takes out: P² = P, K P = 0, 𝓜 P = P* 𝓜.  Redundant
constraints have no A⁻¹; A⁻ is then the least of the matrices that do in its place, and P the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..algorithms.constrained.description import Constraint, as_constraints
from ..algorithms.constrained.multipliers import multipliers
from ..algorithms.constrained.response import response
from ..algorithms.constrained.rows import held, in_given_axes
from .leaves import Dense, Hold
from .library import Operators
from .operator import Operator

__all__ = ["ConstrainedOperators", "constrained"]


class ConstrainedOperators(NamedTuple):
    """C, K, A, A⁻, P and P* of constraints.

    C: constraint → body; jacobian K: joint → constraint; response A and inertia A⁻: constraint →
    constraint; free_motion P and free_force P*: joint → joint.
    """

    C: Operator
    jacobian: Operator
    response: Operator
    inertia: Operator
    free_motion: Operator
    free_force: Operator


def constrained(
    o: Operators, constraints: Constraint | Sequence[Constraint]
) -> ConstrainedOperators:
    """The operators of loop constraints and contacts for `robot.operators(q)`."""
    where = f"constrained of {o.mechanism.name!r}"
    C = o.home.C(as_constraints(where, constraints)).bind(o)
    K, A = C.T @ o.phi.T @ o.H.T, C.T @ o.Omega @ C
    inverse = _inertia(C.symbol, A.symbol).bind(o)
    # 𝓜⁻¹ H φ is [I − HψK]* D⁻¹ H ψ
    P = o.I - o.innovations.T @ o.D.inv @ o.H @ o.psi @ C @ inverse @ K
    return ConstrainedOperators(C, K, A, inverse, P, P.T)


def _inertia(C: Hold, A: Operator) -> Dense:
    """A⁻ of the constraints of C."""
    kind: dict[str, Any] = {"name": f"A_inv{C.name[1:]}", "tex": f"A^-{C.tex[1:]}"}
    kind |= {"symmetric": True, "make": lambda at: _least_inverse(at, C.constraints), "back": A}
    made = lambda: Dense(C.into, C.into, C.home, **kind)  # noqa: E731
    return C.home.once(("A_inv", C.constraints), made)


def _least_inverse(at: Any, constraints: Sequence[Constraint]) -> np.ndarray:
    mech = at.mechanism
    places = held(mech, at.phi_blocks, constraints)
    nothing = [np.zeros(6) for _ in mech.bodies]
    felt = response(mech, at.q, places, nothing, np.zeros(mech.nv)).felt
    units = np.eye(len(felt.A))
    columns = np.array([multipliers(felt, b, 0 * b).forces for b in units]).reshape(units.shape)
    columns = 0.5 * (columns + columns.T)
    return in_given_axes(places, in_given_axes(places, columns).T)
