"""Motion in total rates: ν̇ + C(q, ν) = ε + ε_g.  Paper D §6, §7, general; math §5 to §7.

Λ⁺ is the rate of P⁺ as the parent's axes see it, W = H* q̇ the motion across the joint, H° the rate
of H; P, D, G are those of `riccati.py`, V⁺, ξ, L and g(k) those of `rates_and_forces.py`.

    inward    A(k) = Ṗ(k) H*(k) + P(k) H°*(k)
              Ḋ(k) = H(k) A(k) + H°(k) P(k) H*(k)                                               (1)
              Λ⁺(k) = Ṗ − A G* − G A* + G Ḋ G* + U + U*,   U = W ×* P⁺                          (2)
              Ṗ(p) = Ṗ(p) + φ(p,k) Λ⁺(k) φ*(p,k)                                                (3)
    inward    y(k) = Σ φ(k,c) y⁺(c) + V ×* M V − f_ext + A(k) ξ(k)                              (4)
              rhs(k) = τ(k) + H°(k) P⁺(k) V⁺(k) − H(k) y(k)                                     (5)
              y⁺(k) = y(k) + G(k) rhs(k) − W ×* P⁺(k) V⁺(k)                                     (6)
              ξ̇(k) = D⁻¹ rhs(k) + G* g(k);   C_ξ(k) = −rhs(k) where τ and f_ext are zero        (7)
              ν̇(k) = L⁻¹ rhs(k) + L* G* g(k) + Φ* ν(k),   Φ = Φ(L⁻¹ Ḋ L⁻*)                      (8)
              C(k) = L⁻¹ C_ξ(k) − Φ* ν(k)                                                       (9)

The last term of (8) is the rate of the root: L̇ = L Φ, not ½ Ḋ L⁻*, which is right for joints of one
DoF only, and whose error no energy balance shows: it is a skew matrix times ν (math §7).
C does no work: νᵀC = 0.  C_ξ does: ξᵀC_ξ = ½ ξᵀ Ḋ ξ.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np

from ...algebra.small import half_upper, mirror_lower, upper_root
from ...algebra.spatial import SpatialInertia, congruence, cross_force, cross_motion
from ...model.mechanism import Mechanism
from ...model.protocol import Branches, Tree
from ..declare import algorithm
from ..riccati import Riccati, riccati
from .rates_and_forces import spread

__all__ = [
    "ArticulatedRates",
    "Inertias",
    "articulated_rates",
    "diagonal_coriolis",
    "diagonal_coriolis_matrix",
    "diagonal_dynamics",
    "mass_factor_rate",
]


Inertias = Literal["kept", "made again"]


class ArticulatedRates(NamedTuple):
    """Articulated inertias and their rates along a motion, in the axes of each body.

    P, P_rate: (n_bodies, 6, 6); D, D_rate: (nv, nv), block diagonal.
    """

    P: np.ndarray
    P_rate: np.ndarray
    D: np.ndarray
    D_rate: np.ndarray


class _Rates(NamedTuple):
    """W and H° of every joint, and Ṗ, Ḋ and A that they make."""

    W: Any
    H_rate: Any
    P_rate: Any
    D_rate: Any
    A: Any


@algorithm(joint_level=True, loops=True, independent_joints=True, result="nu_dot")
def diagonal_dynamics(
    mech: Tree,
    q: np.ndarray,
    nu: np.ndarray,
    tau: np.ndarray,
    f_ext: np.ndarray | None = None,
    normalized: bool = True,
    inertias: Inertias = "kept",
) -> np.ndarray:
    """ν̇ = ε + ε_g − C(q, ν), (nv,); not normalized: ξ̇ from nu = ξ.  O(N): in, out, in.

    f_ext: (n_bodies, 6), forces (moment; force) acting on the bodies, in body axes at body origins.
    inertias: whether P, P⁺, D, G are kept from the first sweep to the last, or made again in it;
    the result does not depend on that, memory does.
    """
    H, phi = mech.H(q), mech.phi(q)
    known = riccati(mech, H, phi)
    fall, drop, nud = mech.slots(3)
    fall[0] = mech.free_fall
    for p, k in mech.outward():
        fall[k] = phi[k].T @ fall[p]
        drop[k] = known.G[k].T @ fall[k]
    balance = _balance(mech, q, H, phi, known, nu, tau, f_ext, normalized, inertias)
    rhs, rates, known = balance
    nu_ = mech.rates(nu)
    for _, k in mech.inward():
        if normalized:
            L, L_inv, Phi = _root_rate(known.D[k], rates.D_rate[k])
            nud[k] = L_inv @ rhs[k] + L.T @ drop[k] + Phi.T @ nu_[k]  # (8)
        else:
            nud[k] = known.D_inv[k] @ rhs[k] + drop[k]  # (7)
    return mech.join(nud)


@algorithm(joint_level=True, loops=True, independent_joints=True, result="C")
def diagonal_coriolis(
    mech: Tree,
    q: np.ndarray,
    nu: np.ndarray,
    normalized: bool = True,
    inertias: Inertias = "kept",
) -> np.ndarray:
    """C(q, ν), (nv,), orthogonal to ν; not normalized: C_ξ of nu = ξ.  O(N): in, out, in.

    inertias: as in `diagonal_dynamics`.
    """
    H, phi = mech.H(q), mech.phi(q)
    known = riccati(mech, H, phi)
    no_tau = np.zeros(mech.nv)
    balance = _balance(mech, q, H, phi, known, nu, no_tau, None, normalized, inertias)
    rhs, rates, known = balance
    nu_ = mech.rates(nu)
    (C,) = mech.slots(1)
    for _, k in mech.inward():
        C[k] = -rhs[k]  # (7)
        if normalized:
            _, L_inv, Phi = _root_rate(known.D[k], rates.D_rate[k])
            C[k] = -(L_inv @ rhs[k]) - Phi.T @ nu_[k]  # (9)
    return mech.join(C)


@algorithm(independent_joints=True)
def diagonal_coriolis_matrix(mech: Mechanism, q: np.ndarray, nu: np.ndarray) -> np.ndarray:
    """A(q, ν), the skew (nv, nv) with C = A ν.  O(N · nv)."""
    H, phi = mech.H(q), mech.phi(q)
    known = riccati(mech, H, phi)
    motion = spread(mech, H, phi, known, nu, normalized=True)
    rates = _rates(mech, q, H, phi, known, mech.join(motion.qd))
    unit = mech.rates(np.eye(mech.nv))
    V, V_plus, xi = mech.slots(3)
    V[0] = still = np.zeros((6, mech.nv))
    b = [still for _ in mech.bodies]
    for p, k in mech.outward():
        V_plus[k] = phi[k].T @ V[p]
        xi[k] = upper_root(known.D[k])[1].T @ unit[k]
        V[k] = V_plus[k] + H[k].T @ (xi[k] - known.G[k].T @ V_plus[k])
        b[k] = _carried(mech.M[k], motion.V[k]) @ V[k]
    no_tau = [np.zeros(x.shape) for x in xi]
    rhs = _inward(mech, H, phi, known, rates, b, xi, V_plus, no_tau, still)
    rows = [np.zeros((0, mech.nv))]
    for _, k in mech.outward():
        _, L_inv, Phi = _root_rate(known.D[k], rates.D_rate[k])
        rows.append(-(L_inv @ rhs[k]) - Phi.T @ unit[k])
    return np.vstack(rows)


def _carried(M: SpatialInertia, V: np.ndarray) -> np.ndarray:
    """V×* M + M V×, which times V is the gyroscopic force: M V× adds zero, and makes it skew."""
    carried = M @ cross_motion(V, np.eye(6))
    upper = np.triu(carried - carried.T, 1)
    return upper - upper.T


@algorithm(independent_joints=True)
def articulated_rates(mech: Branches, q: np.ndarray, qd: np.ndarray) -> ArticulatedRates:
    """Articulated inertias P, D and their rates Ṗ, Ḋ along q̇, in body axes.  O(N): in, in."""
    H, phi = mech.H(q), mech.phi(q)
    known = riccati(mech, H, phi)
    rates = _rates(mech, q, H, phi, known, qd)
    inertias = (np.array(P[1:]).reshape(-1, 6, 6) for P in (known.P, rates.P_rate))
    blocks = ({(k, k): D[k] for _, k in mech.outward()} for D in (known.D, rates.D_rate))
    return ArticulatedRates(*inertias, *(mech.join_matrix(D) for D in blocks))


@algorithm(joint_level=True, loops=True, independent_joints=True)
def mass_factor_rate(mech: Branches, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
    """ṁ(q, q̇), upper triangular (nv, nv).  O(N · depth).

    Climbing from k with F = G L:  (F, Ḟ) ← φ(p,j) (F, Ḟ + W ×* F),  ṁ(p,k) = H Ḟ + H° F.
    """
    H, phi = mech.H(q), mech.phi(q)
    known = riccati(mech, H, phi)
    rates = _rates(mech, q, H, phi, known, qd)
    (F, F_rate), blocks = mech.slots(2), mech.pairs()
    for _, k in mech.outward():
        L, L_inv, Phi = _root_rate(known.D[k], rates.D_rate[k])
        blocks[k, k], F[k] = L @ Phi, known.G[k] @ L
        # Ġ L + G L̇, and G L = P H* L⁻*
        F_rate[k] = rates.A[k] @ L_inv.T - F[k] @ Phi.T
        for i, j in mech.climb(k):
            F_rate[k] = phi[j] @ (F_rate[k] + cross_force(rates.W[j], F[k]))
            F[k] = phi[j] @ F[k]
            blocks[i, k] = H[i] @ F_rate[k] + rates.H_rate[i] @ F[k]
    return mech.join_blocks(blocks)


def _balance(
    mech: Tree,
    q: np.ndarray,
    H: Any,
    phi: Any,
    known: Riccati,
    nu: np.ndarray,
    tau: np.ndarray,
    f_ext: np.ndarray | None,
    normalized: bool,
    inertias: Inertias,
) -> tuple[list[Any], _Rates, Riccati]:
    """rhs of (5) at every joint, gravity apart, the rates that it took, and the inertias."""
    motion = spread(mech, H, phi, known, nu, normalized)
    # from here on sweeps go inward, the way that inertias are made
    known = known if inertias == "kept" else riccati(mech, H, phi)
    V_plus, tau_, f_ext_ = motion.V_plus, mech.rates(tau), mech.wrenches(f_ext)
    rates = _rates(mech, q, H, phi, known, mech.join(motion.qd))

    def own_force(k: Any) -> np.ndarray:
        V = V_plus[k] + rates.W[k]
        return cross_force(V, mech.M[k] @ V) - f_ext_[k]

    b = mech.each(own_force)
    rhs = _inward(mech, H, phi, known, rates, b, motion.xi, V_plus, tau_, np.zeros(6))
    return rhs, rates, known


def _rates(mech: Tree, q: np.ndarray, H: Any, phi: Any, known: Riccati, qd: Any) -> _Rates:
    """Ṗ, Ḋ and A = d(P H*)/dt of every body, for the motions W across the joints."""
    H_rate, qd_ = mech.H_rate(q, qd), mech.rates(qd)
    W = mech.each(lambda k: H[k].T @ qd_[k])
    P_rate = mech.filled(lambda k: np.zeros((6, 6)))
    D_rate, A = mech.slots(2)
    for p, k in mech.inward():
        G, P = known.G[k], known.P[k]
        A[k] = P_rate[k] @ H[k].T + P @ H_rate[k].T
        D_rate[k] = mirror_lower(H[k] @ A[k] + H_rate[k] @ (P @ H[k].T))  # (1)
        # in this order what is zero, along a joint without armature, is seen to be
        own = P_rate[k] - G @ A[k].T - (A[k] - G @ D_rate[k]) @ G.T
        U = cross_force(W[k], known.P_plus[k])
        Lambda_plus = mirror_lower(own + (U + U.T))  # (2)
        P_rate[p] = P_rate[p] + congruence(Lambda_plus, phi[k])  # (3)
    return _Rates(W, H_rate, P_rate, D_rate, A)


def _root_rate(D: np.ndarray, D_rate: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The root L of D, L⁻¹, and Φ(L⁻¹ Ḋ L⁻*), with which L̇ = L Φ."""
    L, L_inv = upper_root(D)
    return L, L_inv, half_upper(L_inv @ D_rate @ L_inv.T)


def _inward(
    mech: Tree,
    H: Any,
    phi: Any,
    known: Riccati,
    rates: _Rates,
    b: Any,
    xi: Any,
    V_plus: Any,
    tau: Any,
    still: np.ndarray,
) -> list[Any]:
    """The sweep (4) to (6) on vectors, or on columns of them; b: V ×* M V − f_ext of each body.

    still: zeros, as many for a body as there are vectors.
    """
    y, (rhs,) = mech.filled(lambda k: still), mech.slots(1)
    for p, k in mech.inward():
        own = y[k] + b[k] + rates.A[k] @ xi[k]  # (4)
        felt = known.P_plus[k] @ V_plus[k]
        rhs[k] = tau[k] + rates.H_rate[k] @ felt - H[k] @ own  # (5)
        y_plus = own + known.G[k] @ rhs[k] - cross_force(rates.W[k], felt)  # (6)
        y[p] = y[p] + phi[k] @ y_plus
    return rhs
