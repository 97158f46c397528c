"""Linearised inverse dynamics.  Paper L, Algorithms 1 and 2; math §3.

    δτ = M δq̈ + A_D δq̇ + B_D δq

H, H′, H″, Ḣ, F, E are those of `linearized/nominal.py`, M̂ the gyroscopic matrix of `gyroscopic.py`,
Z̄ the stiffness of `loads.py`.  Of ϑ only the angular part is needed: M̂ has no right half.

Algorithm 1, one direction (O(N)):

    outward   ξ(k) = φ*(p,k) ξ(p) + H* δq                                                       (1)
              ϑ(k) = φ*(p,k) ϑ(p) + H* δq̇ + H′ δq                                               (2)
              η(k) = φ*(p,k) η(p) + H* δq̈ + (Ḣ + H′) δq̇ + H″ δq                                 (3)
    inward    ρ(k) = M η + 2 M̂ ϑ + Z̄ ξ + F δq + Σ φ(k,c) ρ(c)                                   (4)
              δτ(k) = H ρ(k) − E δq + armature δq̈                                               (5)

Algorithm 2, all directions (O(N · depth)), with the composites R, R̂, R^z of M, 2 M̂, Z̄:

    inward    R(p) = R(p) + φ(p,k) R(k) φ*(p,k),   R̂ and R^z likewise                           (6)
              X = R H*        X̂ = R̂* H*        X^z = (R^z)* H*                                  (7)
              X_A = R (Ḣ + H′) + R̂ H*                                                           (8)
              X_B = R̂ H′ + R H″ + R^z H* + F                                                    (9)
              M(k,k) = H X + armature,   A_D(k,k) = H X_A,   B_D(k,k) = H X_B − E              (10)
              climbing from k to each ancestor j:  X ← φ X, X̂, X^z, X_A, X_B likewise          (11)
              M(j,k) = H(j) X,   A_D(j,k) = H(j) X_A,   B_D(j,k) = H(j) X_B                    (12)
              A_D(k,j) = X* (Ḣ + H′)(j) + X̂* H*(j)                                             (13)
              B_D(k,j) = X* H″(j) + X̂* H′(j) + (X^z)* H*(j)                                    (14)

X̂ is a pure moment, so that (11) only turns it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...algebra.small import mirror_lower
from ...algebra.spatial import congruence
from ...model.ground_axes import Axes, seen_in
from ...model.mechanism import Mechanism
from ..congruences import two_sided
from ..declare import algorithm
from .gyroscopic import gyroscopic
from .loads import Load, load_stiffness
from .nominal import nominal

__all__ = [
    "InverseDynamicsDerivatives",
    "inverse_dynamics_derivatives",
    "inverse_dynamics_jvp",
]


class InverseDynamicsDerivatives(NamedTuple):
    """∂τ/∂q, ∂τ/∂q̇ and ∂τ/∂q̈ = M(q), each (nv, nv)."""

    dq: np.ndarray
    dqd: np.ndarray
    dqdd: np.ndarray


@algorithm(joint_level=True, loops=True, result="dtau")
def inverse_dynamics_jvp(
    mech: Mechanism,
    q: np.ndarray,
    qd: np.ndarray,
    qdd: np.ndarray,
    dq: np.ndarray,
    dqd: np.ndarray,
    dqdd: np.ndarray,
    f_ext: np.ndarray | None = None,
    points: np.ndarray | None = None,
    load: Load = "body",
    axes: Axes = "body",
) -> np.ndarray:
    """δτ, (nv,): how the joint forces change if q, q̇, q̈ change by dq, dqd, dqdd.  O(N).

    dq is along the joints' tangents.  load: how f_ext changes with q; see `loads.py`.
    axes: the axes of the arithmetic; the result does not depend on them, its cost does.
    """
    mech_ = seen_in(axes, mech, q)
    n = nominal(mech_, q, qd, qdd, f_ext)
    H, phi, M, Z = n.H, n.phi, mech_.M, load_stiffness(mech_, f_ext, points, load)
    dq_, dqd_, dqdd_ = mech_.rates(dq), mech_.rates(dqd), mech_.rates(dqdd)
    xi, theta, eta, rho, tau = mech_.slots(5)
    theta[0] = np.zeros(3)
    for p, k in mech_.outward():
        xi[k] = phi[k].T @ xi[p] + H[k] @ dq_[k]  # (1)
        theta[k] = phi[k].R.T @ theta[p] + H[k][:3] @ dqd_[k] + n.H_first[k][:3] @ dq_[k]  # (2)
        own = H[k] @ dqdd_[k] + n.H_sum[k] @ dqd_[k] + n.H_second[k] @ dq_[k]
        eta[k] = phi[k].T @ eta[p] + own  # (3)
        M_hat = gyroscopic(M[k], n.V[k] + n.V[k])
        rho[k] = M[k] @ eta[k] + M_hat @ theta[k] + Z[k] @ xi[k] + n.F[k] @ dq_[k]
    for p, k in mech_.inward():
        tau[k] = H[k].T @ rho[k] - n.E[k] @ dq_[k] + mech_.armature[k] * dqdd_[k]  # (5)
        rho[p] = rho[p] + phi[k] @ rho[k]  # (4)
    return mech_.join(tau)


@algorithm(joint_level=True, loops=True)
def inverse_dynamics_derivatives(
    mech: Mechanism,
    q: np.ndarray,
    qd: np.ndarray,
    qdd: np.ndarray,
    f_ext: np.ndarray | None = None,
    points: np.ndarray | None = None,
    load: Load = "body",
    axes: Axes = "body",
) -> InverseDynamicsDerivatives:
    """∂τ/∂q, ∂τ/∂q̇, ∂τ/∂q̈ = M, each (nv, nv), ∂q along the joints' tangents.  O(N · depth).

    load: how f_ext changes with q; see `loads.py`.
    axes: the axes of the arithmetic; the result does not depend on them, its cost does.
    """
    mech_ = seen_in(axes, mech, q)
    n = nominal(mech_, q, qd, qdd, f_ext)
    H, phi, M = n.H, n.phi, mech_.M
    crb = mech_.filled(lambda k: M[k])
    crg = mech_.filled(lambda k: gyroscopic(M[k], n.V[k] + n.V[k]))
    Z = load_stiffness(mech_, f_ext, points, load)
    crz = mech_.filled(lambda k: Z[k])
    X, X_hat, X_z, X_A, X_B = mech_.slots(5)
    mass, A, B = (mech_.pairs() for _ in range(3))
    for p, k in mech_.inward():
        crb[p], crg[p] = crb[p] + congruence(crb[k], phi[k]), crg[p] + congruence(crg[k], phi[k])
        crz[p] = crz[p] + two_sided(crz[k], phi[k])  # (6)
        X[k], X_hat[k], X_z[k] = crb[k] @ H[k], crg[k].adjoint(H[k]), crz[k].T @ H[k]  # (7)
        X_A[k] = crb[k] @ n.H_sum[k] + crg[k] @ H[k][:3]  # (8)
        turned = crg[k] @ n.H_first[k][:3] + crz[k] @ H[k]
        X_B[k] = crb[k] @ n.H_second[k] + turned + n.F[k]  # (9)
        mass[k, k] = mirror_lower(H[k].T @ X[k] + np.diag(mech_.armature[k]))
        A[k, k], B[k, k] = H[k].T @ X_A[k], H[k].T @ X_B[k] - n.E[k]  # (10)
        for j, c in mech_.climb(k):
            for x in (X, X_A, X_B, X_z):
                x[k] = phi[c] @ x[k]
            X_hat[k] = phi[c].R @ X_hat[k]  # (11)
            mass[j, k], A[j, k], B[j, k] = (H[j].T @ x[k] for x in (X, X_A, X_B))  # (12)
            A[k, j] = X[k].T @ n.H_sum[j] + X_hat[k].T @ H[j][:3]  # (13)
            turn = X_hat[k].T @ n.H_first[j][:3] + X_z[k].T @ H[j]
            B[k, j] = X[k].T @ n.H_second[j] + turn  # (14)
    return InverseDynamicsDerivatives(
        mech_.join_blocks(B), mech_.join_blocks(A), mech_.join_matrix(mass)
    )
