"""Under-actuated dynamics as operators of a split into active and passive joints.  Paper U §5, §6.

With P, D, K, ψ, Ω those of the passive joints let go,

    S_pp = 𝓜_pp⁻¹ = 𝓛* D⁻¹ 𝓛
    S_ap = H_a {(ψ − PΩ) K + P ψ*H_p* D⁻¹}                                              (5.1b)
    S_aa = H_a {(ψ − PΩ) P + P (ψ* − I)} H_a* + J_a                                     (5.1c)
    J_G = B* (ψ* − ΩP) H_a*,    J_D = −S_ap*                                            (6.1, 6.2)
    𝒯 = ΩM,    𝒯̄ = I − ΩM                                                               (6.5)

Without armature 𝒯 and 𝒯̄ are projections: 𝒯̄ takes out of a motion what the passive joints would do.
"""

from __future__ import annotations

from typing import NamedTuple

from .library import Operators
from .operator import Operator

__all__ = ["SplitOperators", "split"]


class SplitOperators(NamedTuple):
    """Schur blocks, disturbance Jacobian, and projections of a split."""

    S_aa: Operator
    S_ap: Operator
    S_pp: Operator
    J_D: Operator
    passive_motion: Operator
    active_motion: Operator

    def J_G(self, B: Operator) -> Operator:
        """The generalized Jacobian of the frames of B = o.B(…), active → frame."""
        o = B.at
        return B.T @ (o.psi_p.T - o.Omega_p @ o.P_p) @ o.H_a.T


def split(o: Operators) -> SplitOperators:
    """The operators of paper U for `robot.operators(q, active=…)`.

    S_aa, S_ap, S_pp: [τ_a; q̈_p] = [[S_aa, S_ap], [−S_ap*, S_pp]] [q̈_a; τ_p] without bias; J_D:
    active → passive; passive_motion 𝒯 = ΩM and active_motion 𝒯̄ = I − ΩM, body → body.
    """
    s, I = o.passive, o.I
    rest = s.psi - s.P @ s.Omega
    S_ap = o.H_a @ (rest @ s.K + s.P @ s.psi.T @ s.H.T @ s.D.inv)
    S_aa = o.H_a @ (rest @ s.P + s.P @ (s.psi.T - I)) @ o.H_a.T + o.J_a
    T = s.Omega @ o.M
    return SplitOperators(S_aa, S_ap, s.mass.inv, -S_ap.T, T, I - T)
