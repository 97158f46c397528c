"""Linearised forward dynamics.  Paper L, Algorithms 5 and 6; math §5.

    δq̈ = M⁻¹ δτ − A_C δq̇ − B_C δq

without M or A_D, B_D: on the nominal motion of `linearized/nominal.py` and the recursions of
`linearized/articulated.py`.

Algorithm 5, one direction (O(N)); ξ, ϑ, η as in `linearized/inverse_derivatives.py`:

    inward    z(k) = Y_A δq̇ + Y_B δq + Σ φ(k,c) (z(c) + G(c) ε(c))                              (1)
              ε(k) = δτ + E δq − H z(k)                                                         (2)
    outward   δq̈(k) = D⁻¹ ε − Ĝ* ϑ⁺ − (G^z)* ξ⁺ − G* η⁺,   ⁺ those of the parent               (3)

Algorithm 6, all directions (O(N²)), outward, ⁺ again those of the parent:

    Z = Υ⁺ G,   L = D⁻¹ + G* Z,   U = Z − H* L,   Υ = Υ⁺ − H* U* − Z H                          (4)
    Q = Ĝ* − G* Ĵ⁺,   Ĵ = Ĵ⁺ + H* Q;   Q^z and Ĵ^z likewise from G^z                            (5)
    E_A = Υ Y_A − (Ḣ + H′) − Ĵ H*                                                               (6)
    E_B = Υ Y_B − H″ − Ĵ H′ − Ĵ^z H* + U E                                                      (7)
    M⁻¹(k,k) = L,   −A_C(k,k) = U* Y_A,   −B_C(k,k) = U* Y_B + L E                              (8)
    climbing from k to each ancestor j, ← φ τ̄(j) ·, from (W, S_B, S_A) =
       φ (G, τ̄ Y_B + G E, τ̄ Y_A) at its parent                                                 (9)
       M⁻¹(j,k) = U*(j) W,   −B_C(j,k) = U*(j) S_B,   −A_C(j,k) = U*(j) S_A                    (10)
       −A_C(k,j) = W* E_A(j) − Q H*(j),   −B_C(k,j) = W* E_B(j) − Q H′(j) − Q^z H*(j)          (11)
    where k and i meet in j from different branches:
       M⁻¹(k,i) = W*(k) Υ(j) W(i),   −B_C(k,i) = W*(k) Υ(j) S_B(i),   −A_C likewise            (12)

(U is the paper's −U*, E_A and E_B have the opposite sign, Q and Ĵ twice its own.)

With the only body on the ground held, its joint k neither moves nor gives way:

    Υ(k) = 0,   Ĵ(k) = 0,   U(k) = −H*,   E_A(k) = −(Ḣ + H′),   E_B(k) = −H″                    (13)

Then rows of k have forces ε(k), for which D(k) q̈(k) = ε(k), in place of accelerations, and columns
of M⁻¹ what the others do as q̈(k) = 1: all else is that of limbs on a base that keeps its motion.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np

from ...algebra.small import mirror_lower
from ...model.ground_axes import Axes, seen_in
from ...model.mechanism import Mechanism
from ...model.protocol import Branches, PerBody, Slot, Tree
from ..congruences import compliance, mixed
from ..declare import algorithm
from ..forward_dynamics import forward_dynamics
from .articulated import Articulated, articulated
from .conventional import conventional_forward_derivatives, conventional_forward_jvp
from .loads import Load, load_stiffness
from .nominal import Nominal, nominal

__all__ = [
    "ForwardDynamicsDerivatives",
    "Method",
    "all_directions",
    "forward_dynamics_derivatives",
    "forward_dynamics_jvp",
    "one_direction",
]

Method = Literal["articulated", "conventional"]


class ForwardDynamicsDerivatives(NamedTuple):
    """∂q̈/∂q, ∂q̈/∂q̇ and ∂q̈/∂τ = M(q)⁻¹, each (nv, nv)."""

    dq: np.ndarray
    dqd: np.ndarray
    dtau: np.ndarray


@algorithm(joint_level=True, loops=True, independent_joints=True, result="dqdd")
def forward_dynamics_jvp(
    mech: Mechanism,
    q: np.ndarray,
    qd: np.ndarray,
    tau: np.ndarray,
    dq: np.ndarray,
    dqd: np.ndarray,
    dtau: np.ndarray,
    f_ext: np.ndarray | None = None,
    points: np.ndarray | None = None,
    load: Load = "body",
    method: Method = "articulated",
    axes: Axes = "body",
) -> np.ndarray:
    """δq̈, (nv,): how the accelerations change if q, q̇, τ change by dq, dqd, dtau.  O(N).

    dq is along the joints' tangents.  load: how f_ext changes with q; see `loads.py`.
    method: "conventional" is Algorithm 3, M δq̈ = δτ − ρ.
    axes: those of the arithmetic; the result does not depend on them.
    """
    if method == "conventional":
        change = (dq, dqd, dtau)
        return conventional_forward_jvp(mech, q, qd, tau, *change, f_ext, points, load, axes)
    mech_ = seen_in(axes, mech, q)
    qdd = forward_dynamics(mech_, q, qd, tau, f_ext)
    n = nominal(mech_, q, qd, qdd, f_ext)
    a = articulated(mech_, n, load_stiffness(mech_, f_ext, points, load))
    return one_direction(mech_, n, a, (dq, dqd, dtau))


@algorithm(joint_level=True, loops=True, independent_joints=True)
def forward_dynamics_derivatives(
    mech: Mechanism,
    q: np.ndarray,
    qd: np.ndarray,
    tau: np.ndarray,
    f_ext: np.ndarray | None = None,
    points: np.ndarray | None = None,
    load: Load = "body",
    method: Method = "articulated",
    axes: Axes = "body",
) -> ForwardDynamicsDerivatives:
    """∂q̈/∂q, ∂q̈/∂q̇, ∂q̈/∂τ = M⁻¹, each (nv, nv), ∂q along the joints' tangents.  O(N²).

    load: how f_ext changes with q; see `loads.py`.
    method: "conventional" is Algorithm 4, M⁻¹ times the derivatives of inverse dynamics.
    axes: those of the arithmetic.
    """
    if method == "conventional":
        parts = conventional_forward_derivatives(mech, q, qd, tau, f_ext, points, load, axes)
        return ForwardDynamicsDerivatives(*parts)
    mech_ = seen_in(axes, mech, q)
    qdd = forward_dynamics(mech_, q, qd, tau, f_ext)
    n = nominal(mech_, q, qd, qdd, f_ext)
    a = articulated(mech_, n, load_stiffness(mech_, f_ext, points, load))
    return ForwardDynamicsDerivatives(*all_directions(mech_, n, a))


def one_direction(mech: Tree, n: Nominal, a: Articulated, change: Any) -> np.ndarray:
    """δq̈ by Algorithm 5, on a nominal motion and its recursions; change: dq, dqd, dtau."""
    H, phi = n.H, n.phi
    dq, dqd, dtau = (mech.rates(x) for x in change)
    z = mech.filled(lambda k: np.zeros(6))
    eps, xi, theta, eta, qdd = mech.slots(5)
    theta[0] = np.zeros(3)
    for p, k in mech.inward():
        z[k] = z[k] + a.P[k] @ (n.H_sum[k] @ dqd[k] + n.H_second[k] @ dq[k])
        z[k] = z[k] + a.P_hat[k] @ (H[k][:3] @ dqd[k] + n.H_first[k][:3] @ dq[k])
        z[k] = z[k] + a.P_z[k] @ (H[k] @ dq[k]) + n.F[k] @ dq[k]  # (1)
        eps[k] = dtau[k] + n.E[k] @ dq[k] - H[k].T @ z[k]  # (2)
        z[p] = z[p] + phi[k] @ (z[k] + a.G[k] @ eps[k])
    for p, k in mech.outward():
        xi_plus, eta_plus = phi[k].T @ xi[p], phi[k].T @ eta[p]
        theta_plus = phi[k].R.T @ theta[p]
        known = a.G_hat[k].T @ theta_plus + a.G_z[k].T @ xi_plus + a.G[k].T @ eta_plus
        qdd[k] = a.D_inv[k] @ eps[k] - known  # (3)
        xi[k] = xi_plus + H[k] @ dq[k]
        theta[k] = theta_plus + H[k][:3] @ dqd[k] + n.H_first[k][:3] @ dq[k]
        eta[k] = eta_plus + H[k] @ qdd[k] + n.H_sum[k] @ dqd[k] + n.H_second[k] @ dq[k]
    return mech.join(qdd)


def all_directions(
    mech: Branches, n: Nominal, a: Articulated, held: int | None = None
) -> tuple[np.ndarray, ...]:
    """∂q̈/∂q, ∂q̈/∂q̇, M⁻¹ by Algorithm 6, on a nominal motion and its recursions.

    held: a body that is held, (13); D⁻¹ of it is in the place of its own block of M⁻¹.
    """
    H, phi, G = n.H, n.phi, a.G
    local, meeting = _local(mech, n, a, held), mech.meetings()
    inverse, B, A = blocks = local.blocks
    (S,), Q, Q_z = mech.slots(1), local.Q, local.Q_z
    for _, k in mech.outward():
        own = n.E[k] - H[k].T @ a.Y_B[k]
        S[k] = np.hstack(
            [G[k], a.Y_B[k] + G[k] @ own, a.Y_A[k] - G[k] @ (H[k].T @ a.Y_A[k])]
        )  # (9)
        for j, c in mech.climb(k):
            S[k], Q[k], Q_z[k] = phi[c] @ S[k], phi[c].R @ Q[k], phi[c] @ Q_z[k]
            W = S[k][:, : Q[k].shape[1]]
            for x, above in zip(blocks, np.split(local.U[j].T @ S[k], 3, axis=1), strict=True):
                x[j, k] = above  # (10)
            turn = Q[k].T @ n.H_first[j][:3] + Q_z[k].T @ H[j]
            B[k, j], A[k, j] = W.T @ local.E_B[j] - turn, W.T @ local.E_A[j] - Q[k].T @ H[j][:3]
            meeting.bring(j, c, (k, S[k], local.Y[j] @ W))  # (11)
            S[k] = S[k] - G[j] @ (H[j].T @ S[k])
    for _, (k, S_k, X_k), (i, S_i, X_i) in meeting.pairs():
        inverse[k, i], B[k, i], A[k, i] = np.split(X_k.T @ S_i, 3, axis=1)  # (12)
        _, B[i, k], A[i, k] = np.split(X_i.T @ S_k, 3, axis=1)
    return mech.join_blocks(B), mech.join_blocks(A), mech.join_matrix(inverse)


class _Local(NamedTuple):
    """What Algorithm 6 needs of each body; blocks: of M⁻¹, −B_C, −A_C, so far those (k,k)."""

    Y: PerBody
    U: PerBody
    Q: Slot
    Q_z: Slot
    E_A: PerBody
    E_B: PerBody
    blocks: tuple[Any, Any, Any]


def _local(mech: Branches, n: Nominal, a: Articulated, held: int | None = None) -> _Local:
    H, phi, G = n.H, n.phi, a.G
    Y, J, J_z, U, Q, Q_z, E_A, E_B = mech.slots(8)
    Y[0], J[0], J_z[0] = np.zeros((6, 6)), np.zeros((6, 3)), np.zeros((6, 6))
    inverse, B, A = mech.pairs(), mech.pairs(), mech.pairs()
    if held is not None:
        Y[held], J[held], J_z[held] = Y[0], J[0], J_z[0]
        U[held], E_A[held], E_B[held] = -H[held], -n.H_sum[held], -n.H_second[held]  # (13)
        Q[held], Q_z[held] = a.G_hat[held], a.G_z[held]
        inverse[held, held] = a.D_inv[held]
        B[held, held], A[held, held] = n.E[held] - H[held].T @ a.Y_B[held], -H[held].T @ a.Y_A[held]
    for p, k in ((p, k) for p, k in mech.outward() if k != held):
        Y_plus, J_z_plus = compliance(Y[p], phi[k]), mixed(J_z[p], phi[k])
        J_plus = phi[k].T @ (J[p] @ phi[k].R)
        Z = Y_plus @ G[k]
        L = mirror_lower(a.D_inv[k] + G[k].T @ Z)
        U[k] = Z - H[k] @ L
        Y[k] = mirror_lower(Y_plus - H[k] @ U[k].T - Z @ H[k].T)  # (4)
        Q[k], Q_z[k] = a.G_hat[k] - J_plus.T @ G[k], a.G_z[k] - J_z_plus.T @ G[k]
        J[k], J_z[k] = J_plus + H[k] @ Q[k].T, J_z_plus + H[k] @ Q_z[k].T  # (5)
        E_A[k] = Y[k] @ a.Y_A[k] - n.H_sum[k] - J[k] @ H[k][:3]  # (6)
        turn = J[k] @ n.H_first[k][:3] + J_z[k] @ H[k]
        E_B[k] = Y[k] @ a.Y_B[k] - n.H_second[k] - turn + U[k] @ n.E[k]  # (7)
        inverse[k, k] = L
        B[k, k], A[k, k] = U[k].T @ a.Y_B[k] + L @ n.E[k], U[k].T @ a.Y_A[k]  # (8)
    return _Local(Y, U, Q, Q_z, E_A, E_B, (inverse, B, A))
