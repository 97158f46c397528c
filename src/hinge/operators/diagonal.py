"""Diagonalised dynamics as operators.  Paper D §5 to §7; math §4, §6, §8.

    ν = m* q̇,   ε = ℓ τ,   m = [I + HφK] L,   ℓ = m⁻¹ = L⁻¹ [I − HψK],   D = L L*
    C(q, ν) = A ν,   A = L⁻¹Hψ [dP H*L⁻* + (v×*M − (v×*M)* − ℰ_φ vJ×* P⁺ ℰ_φ*) ψ*H*L⁻*] − dL* L⁻*

A is skew, so that C does no work.  It is a formula for joints whose H is constant in the body; the
others have their C from `robot.diagonal_coriolis`.  m and ℓ are `o.mass_factor` and its `.inv`, the
rate of m is `derivative(o.mass_factor, qd)`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..algebra.spatial import cross_force
from ..errors import ArgumentError
from .derivative import Along
from .leaves import Data, Local
from .library import Operators
from .operator import Operator

__all__ = ["coriolis"]


def coriolis(o: Operators, nu: Any) -> Operator:
    """A(q, ν), joint → joint and skew, with A ν the Coriolis term C of ν̇ + C = ε."""
    rates = o.mass_factor.inv.T @ o.rates("coriolis", nu).value
    along = Along(o.home, o.rates("coriolis", rates))
    if o.home.bends:
        raise ArgumentError(
            f"coriolis of {o.mechanism.name!r}: a joint's axes move in its body (a universal "
            f"joint), where C is not this skew operator times ν; use robot.diagonal_coriolis"
        )
    velocity = (o.phi.T @ o.H.T) @ rates
    turn = _turning(o, velocity) @ o.M
    P_plus = o.tau_bar @ o.P
    inner = turn - turn.T - o.E_phi @ along.turning @ P_plus @ o.E_phi.T
    L_inv = o.D_root.inv
    motion = o.H.T @ L_inv.T
    skew = o.H @ o.psi @ (along.dP(o.home.free) @ motion + inner @ o.psi.T @ motion)
    return L_inv @ skew - along(o.home.free.D_root).T @ L_inv.T


def _turning(o: Operators, velocity: np.ndarray) -> Local:
    """[v×*], the force cross operator of the velocity of each body."""
    b, needs = o.body, (Data(velocity, (o.body.dim,)),)
    symbol = Local(b, b, o.home, name="V_cross", tex=r"[v\times^*]", make=_crosses, needs=needs)
    return symbol.bind(o)


def _crosses(at: Any, velocity: Data) -> list[np.ndarray]:
    return [
        np.column_stack([cross_force(V, e) for e in np.eye(6)]) if len(V) else np.zeros((0, 0))
        for V in at.body.split(velocity.value)
    ]
