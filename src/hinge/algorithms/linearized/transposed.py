"""Gradients of inverse and of forward dynamics along a vector.  Paper L, Algorithms 1, 5; math §3.

    μ·δτ = dq·δq + dqd·δq̇ + dqdd·δq̈         dq = B_D* μ,   dqd = A_D* μ,   dqdd = M μ
    μ·δq̈ = dq·δq + dqd·δq̇ + dtau·δτ         dq = −B_D* λ,  dqd = −A_D* λ,  dtau = λ = M⁻¹ μ

H, H′, H″, Ḣ, F, E are those of `linearized/nominal.py`, M̂ the gyroscopic matrix of `gyroscopic.py`,
Z̄ the stiffness of `loads.py`.  Algorithm 1 takes changes of the joints to motions ξ, ϑ, η of the
bodies and these to forces; read from its end, the rates μ move the bodies by W, and what these do
against the forces beyond a joint is the gradient of that joint (O(N)):

    outward   W(k) = φ*(p,k) W(p) + H* μ                                                        (1)
    inward    h(k) = M W + Σ φ(k,c) h(c)                         against η                      (2)
              ĥ(k) = 2 M̂* W + Σ φ(k,c) ĥ(c)                      against ϑ, a pure moment       (3)
              h^z(k) = Z̄* W + Σ φ(k,c) h^z(c)                    against ξ                      (4)
              dqdd(k) = H h + armature μ                                                        (5)
              dqd(k) = (Ḣ + H′)* h + H ĥ                                                        (6)
              dq(k) = (H″)* h + (H′)* ĥ + H h^z + F* W − E* μ                                   (7)

h is the momentum that μ would give the bodies beyond the joint.  In forward dynamics q̈ and −λ, for
which (1) to (7) are taken, answer forces τ and −μ in one and the same articulated recursion
(`riccati.py`); the second column has neither velocity nor gravity:

    inward    z(k) = [f̂, 0] + Σ φ(k,c) (z(c) + G(c) ε(c)),   ε(k) = [τ, −μ] − H z(k)            (8)
    outward   [q̈, −λ](k) = D⁻¹ ε − G* φ*(p,k) α(p),   α(k) = φ*(p,k) α(p) + H* [q̈, −λ]          (9)
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...algebra.small import solve_spd
from ...algebra.spatial import congruence
from ...model.ground_axes import Axes, seen_in
from ...model.mechanism import Mechanism
from ...model.protocol import PerBody, Tree
from ..declare import algorithm
from ..inverse_dynamics import motion
from ..riccati import released
from .gyroscopic import gyroscopic
from .loads import Load, load_stiffness
from .nominal import Nominal, nominal

__all__ = [
    "ForwardDynamicsGradient",
    "InverseDynamicsGradient",
    "forward_dynamics_vjp",
    "inverse_dynamics_vjp",
]


class InverseDynamicsGradient(NamedTuple):
    """(∂τ/∂q)ᵀ μ, (∂τ/∂q̇)ᵀ μ and M μ, each (nv,)."""

    dq: np.ndarray
    dqd: np.ndarray
    dqdd: np.ndarray


class ForwardDynamicsGradient(NamedTuple):
    """(∂q̈/∂q)ᵀ μ, (∂q̈/∂q̇)ᵀ μ and M⁻¹ μ, each (nv,)."""

    dq: np.ndarray
    dqd: np.ndarray
    dtau: np.ndarray


@algorithm(joint_level=True, loops=True)
def inverse_dynamics_vjp(
    mech: Mechanism,
    q: np.ndarray,
    qd: np.ndarray,
    qdd: np.ndarray,
    cotangent: np.ndarray,
    f_ext: np.ndarray | None = None,
    points: np.ndarray | None = None,
    load: Load = "body",
    axes: Axes = "body",
) -> InverseDynamicsGradient:
    """The gradient of μ·τ for a cotangent μ, with respect to q, q̇, q̈, each (nv,).  O(N).

    A general hinge takes 240 multiplications and 210 additions.
    dq is along the joints' tangents.  load: how f_ext changes with q; see `loads.py`.
    axes: the axes of the arithmetic; the result does not depend on them, its cost does.
    """
    mech_ = seen_in(axes, mech, q)
    n = nominal(mech_, q, qd, qdd, f_ext)
    Z = load_stiffness(mech_, f_ext, points, load)
    return InverseDynamicsGradient(*_gradient(mech_, n, Z, cotangent))


@algorithm(joint_level=True, loops=True, independent_joints=True)
def forward_dynamics_vjp(
    mech: Mechanism,
    q: np.ndarray,
    qd: np.ndarray,
    tau: np.ndarray,
    cotangent: np.ndarray,
    f_ext: np.ndarray | None = None,
    points: np.ndarray | None = None,
    load: Load = "body",
    axes: Axes = "body",
) -> ForwardDynamicsGradient:
    """The gradient of μ·q̈ for a cotangent μ, with respect to q, q̇, τ, each (nv,).  O(N).

    A general hinge takes 487 multiplications and 443 additions.
    dq is along the joints' tangents.  load: how f_ext changes with q; see `loads.py`.
    axes: those of the arithmetic; the result does not depend on them.
    """
    mech_ = seen_in(axes, mech, q)
    qdd, lam, opposite = _two_answers(mech_, q, qd, tau, cotangent, f_ext)
    n = nominal(mech_, q, qd, qdd, f_ext)
    dq, dqd, _ = _gradient(mech_, n, load_stiffness(mech_, f_ext, points, load), opposite)
    return ForwardDynamicsGradient(dq, dqd, lam)


def _gradient(mech: Tree, n: Nominal, Z: PerBody, mu: Any) -> tuple[np.ndarray, ...]:
    """B_D* μ, A_D* μ and M μ on a nominal motion."""
    H, phi, mu_ = n.H, n.phi, mech.rates(mu)
    W, h, h_hat, h_z, dq, dqd, dqdd = mech.slots(7)
    h_hat[0] = np.zeros(3)
    for p, k in mech.outward():
        W[k] = phi[k].T @ W[p] + H[k] @ mu_[k]  # (1)
        h[k] = mech.M[k] @ W[k]
        h_hat[k] = gyroscopic(mech.M[k], n.V[k] + n.V[k]).adjoint(W[k])
        h_z[k] = Z[k].T @ W[k]
    for p, k in mech.inward():
        dqdd[k] = H[k].T @ h[k] + mech.armature[k] * mu_[k]  # (5)
        dqd[k] = n.H_sum[k].T @ h[k] + H[k][:3].T @ h_hat[k]  # (6)
        turned = n.H_first[k][:3].T @ h_hat[k] + H[k].T @ h_z[k]
        own = n.F[k].T @ W[k] - n.E[k].T @ mu_[k]
        dq[k] = n.H_second[k].T @ h[k] + turned + own  # (7)
        h[p] = h[p] + phi[k] @ h[k]  # (2)
        h_hat[p] = h_hat[p] + phi[k].R @ h_hat[k]  # (3)
        h_z[p] = h_z[p] + phi[k] @ h_z[k]  # (4)
    return mech.join(dq), mech.join(dqd), mech.join(dqdd)


def _two_answers(
    mech: Tree, q: np.ndarray, qd: np.ndarray, tau: Any, mu: Any, f_ext: np.ndarray | None
) -> tuple[np.ndarray, ...]:
    """q̈ = M⁻¹ (τ − bias), λ = M⁻¹ μ and −λ."""
    H, phi, tau_, mu_ = mech.H(q), mech.phi(q), mech.rates(tau), mech.rates(mu)
    f = motion(mech, H, phi, q, qd, np.zeros(mech.nv), f_ext).f
    P = mech.filled(lambda k: mech.M[k].matrix)
    z = mech.filled(lambda k: np.column_stack([f[k], np.zeros(6)]))
    G, nu, alpha, qdd, lam, opposite = mech.slots(6)
    alpha[0] = np.zeros((6, 2))
    for p, k in mech.inward():
        D, G[k], P_plus = released(P[k], H[k], mech.armature[k], mech.least[k])
        P[p] = P[p] + congruence(P_plus, phi[k])
        eps = np.column_stack([tau_[k], -mu_[k]]) - H[k] @ z[k]
        nu[k] = solve_spd(D, eps)
        z[p] = z[p] + phi[k] @ (z[k] + G[k] @ eps)  # (8)
    for p, k in mech.outward():
        alpha_plus = phi[k].T @ alpha[p]
        answers = nu[k] - G[k].T @ alpha_plus
        qdd[k], lam[k], opposite[k] = answers[:, 0], -answers[:, 1], answers[:, 1]
        alpha[k] = alpha_plus + H[k].T @ answers  # (9)
    return mech.join(qdd), mech.join(lam), mech.join(opposite)
