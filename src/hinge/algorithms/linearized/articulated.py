"""The articulated recursions behind linearised forward dynamics.  Paper L (4.12); math §4, §5.

    inward    P, D, G of `riccati.py`,   τ̄ = 1 − G H                                            (1)
              Ĝ = P̂* H* D⁻¹        G^z = (P^z)* H* D⁻¹                                          (2)
              Y_A = P (Ḣ + H′) + P̂ H*                                                           (3)
              Y_B = P H″ + P̂ H′ + P^z H* + F                                                    (4)
              P̂(p) = P̂(p) + φ(p,k) τ̄ P̂ φ*(p,k),   P^z likewise                                  (5)

starting from 2 M̂ and Z̄ of each body.  P̂ has no right half, so that Ĝ is a pure moment.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ...model.protocol import PerBody, Tree
from ..congruences import left_half, two_sided
from ..riccati import riccati
from .gyroscopic import gyroscopic
from .nominal import Nominal

__all__ = ["Articulated", "articulated"]


class Articulated(NamedTuple):
    """Per body, in its axes; with one column per DoF of the joint."""

    P: Any
    P_hat: Any  # left half (6, 3)
    D_inv: Any
    G: Any
    G_hat: Any  # moments (3, dof)
    G_z: Any
    P_z: Any
    Y_A: Any
    Y_B: Any


def articulated(mech: Tree, n: Nominal, Z: PerBody) -> Articulated:
    """The recursions on the nominal motion n with the stiffness Z of the external forces.  O(N)."""
    H, phi = n.H, n.phi
    P, _, _, D_inv, G = riccati(mech, mech.each(lambda k: H[k].T), phi)  # (1)
    P_hat = mech.filled(lambda k: gyroscopic(mech.M[k], n.V[k] + n.V[k]).left)
    P_z = mech.filled(lambda k: Z[k])
    G_hat, G_z, Y_A, Y_B = mech.slots(4)
    for p, k in mech.inward():
        PH_hat, PH_z = P_hat[k].T @ H[k], P_z[k].T @ H[k]
        G_hat[k], G_z[k] = PH_hat @ D_inv[k], PH_z @ D_inv[k]  # (2)
        Y_A[k] = P[k] @ n.H_sum[k] + P_hat[k] @ H[k][:3]  # (3)
        gyration = P_hat[k] @ n.H_first[k][:3]
        Y_B[k] = P[k] @ n.H_second[k] + gyration + P_z[k] @ H[k] + n.F[k]  # (4)
        P_hat[p] = P_hat[p] + left_half(P_hat[k] - G[k] @ PH_hat.T, phi[k])  # (5)
        P_z[p] = P_z[p] + two_sided(P_z[k] - G[k] @ PH_z.T, phi[k])
    return Articulated(P, P_hat, D_inv, G, G_hat, G_z, P_z, Y_A, Y_B)
