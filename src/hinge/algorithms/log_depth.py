"""Sweeps as products: what a path of bodies does, whichever way its bodies are put together.

A sweep along a path is a chain of maps, and maps compose associatively: neighbours may be joined
first, then pairs, then fours, so that N bodies take log₂ N steps one after the other.  Outward the
maps are affine, of velocities and of accelerations at q̈ = 0 (`inverse_dynamics.py`),

    V(k) = φ*(p,k) V(p) + W(k)                                                                  (1)
    (φ₁, W₁) then (φ₂, W₂)  =  (φ₁ φ₂,  φ₂* W₁ + W₂)                                            (2)

and of the change α that the joints make (`forward_dynamics.py`), with F = (1 − H*G*) φ*:

    α(k) = F(k) α(p) + H*(k) ν(k);   (F₁, g₁) then (F₂, g₂)  =  (F₂ F₁,  F₂ g₁ + g₂)            (3)

Inward the recursion of articulated inertias is a Kalman filter, from the tip to the base, in which
armature is the noise of a measurement τ of H z.  Its elements are those of parallel filters
(Särkkä and García-Fernández, "Temporal parallelization of Bayesian smoothers", IEEE Trans. Autom.
Control 66, 2021).  What a stretch of bodies makes of an inertia C₀ and a force b₀ that reach it
from beyond is told by A, b, C, η, J:

    E = (1 + C₀ J)⁻¹;    C₀ → A E C₀ A* + C,    b₀ → A E (b₀ + C₀ η) + b                        (4)

and of two stretches, i beyond j, with E = (1 + C_i J_j)⁻¹,

    A = A_j E A_i,    b = A_j E (b_i + C_i η_j) + b_j,    C = A_j E C_i A_j* + C_j              (5)
    η = A_i* E* (η_j − J_j b_i) + η_i,    J = A_i* E* J_j A_i + J_i                             (6)

One body joins a stretch beyond it by the step of the sweep itself, P = C + M, z = b + f̂, D, G, P⁺
as in `riccati.py`, ε = τ − H z:

    C ← φ P⁺ φ*,    b ← φ (z + G ε),    A ← φ (1 − G H) A                                       (7)
    η ← η + (H A)* D⁻¹ ε,    J ← J + (H A)* D⁻¹ (H A)                                           (8)

from A = 1 and zeros, which is a stretch of no bodies.  D of a stretch that ends with a body is the
inertia of that body alone: of a massless link without armature it is zero, and such a link has to
be in the same stretch as its neighbour.

Where a path ends, φ is zero, and nothing is carried across: many paths are done as one.  C and J
are kept exactly symmetric, without which errors grow exponentially along the path.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..algebra.small import Factor, less, mirror_lower, sqrt, where
from ..algebra.spatial import ForceTransfer, carried_acceleration, congruence
from ..model.parameters import inertia_of
from .riccati import released

__all__ = ["Element", "Factored", "product", "semidefinite_root"]

# a pivot of so many roundings of its entry is none
_LOST = 64


class Element(NamedTuple):
    """What a stretch of bodies makes of what reaches it from beyond (4)."""

    A: Any
    b: Any
    C: Any
    eta: Any
    J: Any


class Factored(NamedTuple):
    """What two stretches are joined by: with C_i = U U* and 1 + U* J_j U = L D L*,

    T = L⁻¹ U*, N = L⁻¹ U* J_j, D⁻¹, x = b_i + C_i η_j and y = η_j − J_j b_i; so that
    E v = v − T* D⁻¹ N v,  E* v = v − N* D⁻¹ T v,  E C_i = T* D⁻¹ T,  E* J_j = J_j − N* D⁻¹ N.
    """

    T: Any
    N: Any
    d_inv: Any
    x: Any
    y: Any


def product(i: Element, j: Element, rounding: float) -> Element:
    """Two stretches, i beyond j: (5) and (6), column by column."""
    f, one = factored(i.C, i.b, j.J, j.eta, rounding), np.eye(6)
    e = from_columns([met(*given) for given in meetings(i, j, f, one, -one)])
    return from_columns([carried(*given) for given in carryings(i, j, e, one)])


def factored(C: Any, b: Any, J: Any, eta: Any, rounding: float) -> Factored:
    """C and b of the stretch beyond, J and η of the other.

    rounding: that of the numbers, beside which a part of C is nothing.
    """
    U = semidefinite_root(C, rounding)
    JU = J @ U
    S = Factor(mirror_lower(np.eye(6) + U.T @ JU))
    return Factored(S.half(U.T), S.half(JU.T), S.d_inv, b + C @ eta, eta - J @ b)


def met(base: Any, X: Any, d_inv: Any, K: Any, v: Any) -> Any:
    """base − X* D⁻¹ K v."""
    return base - X.T @ (d_inv * (K @ v))


def meetings(
    i: Element, j: Element, f: Factored, one: np.ndarray, minus: np.ndarray
) -> list[tuple[Any, ...]]:
    """What `met` takes for the columns of E A_i, E x, E C_i, E* y and E* J_j.

    one, minus: the unit matrix, and less than nothing by as much.
    """
    none = one[[0] * 6, [1] * 6]
    columns = range(6)
    found = [(i.A[:, c], f.T, f.d_inv, f.N, i.A[:, c]) for c in columns]
    found += [(f.x, f.T, f.d_inv, f.N, f.x)]
    found += [(none, f.T, f.d_inv, f.T, minus[:, c]) for c in columns]
    found += [(f.y, f.N, f.d_inv, f.T, f.y)]
    return found + [(j.J[:, c], f.N, f.d_inv, f.N, one[:, c]) for c in columns]


def carried(base: Any, Y: Any, Z: Any, v: Any) -> Any:
    """base + Y Z v."""
    return base + Y @ (Z @ v)


def carryings(i: Element, j: Element, e: Element, one: np.ndarray) -> list[tuple[Any, ...]]:
    """What `carried` takes for the columns of the product, from those that met."""
    none = one[[0] * 6, [1] * 6]
    columns = range(6)
    found = [(none, j.A, e.A, one[:, c]) for c in columns]
    found += [(j.b, j.A, e.b[:, None], one[0, :1])]
    found += [(j.C[:, c], j.A, e.C, j.A[c]) for c in columns]
    found += [(i.eta, i.A.T, e.eta[:, None], one[0, :1])]
    return found + [(i.J[:, c], i.A.T, e.J, i.A[:, c]) for c in columns]


def from_columns(columns: Sequence[Any]) -> Element:
    """An element of A, b, C, η and J; of C and J what is below the diagonal."""
    A, C, J = (np.array(columns[k : k + 6]).T for k in (0, 7, 14))
    return Element(A, columns[6], mirror_lower(C), columns[13], mirror_lower(J))


def semidefinite_root(C: np.ndarray, rounding: float) -> np.ndarray:
    """The lower triangular U with C = U U*; where C is singular, columns of U are zero."""
    n = len(C)
    U = [[C[0, 0] * 0.0] * n for _ in range(n)]
    for j in range(n):
        left = C[j, j] - sum(U[j][k] * U[j][k] for k in range(j))
        there = less(_LOST * rounding * C[j, j], left)
        inverse = where(there, 1 / sqrt(where(there, left, 1.0)), 0.0)
        for i in range(j, n):
            rest = C[i, j] - sum(U[i][k] * U[j][k] for k in range(j))
            U[i][j] = rest * inverse
    return np.array(U)


# Steps along a stretch, and products of two; arrays are those of one body: φ as (R, p), s = 0 where
# a path begins and 1 elsewhere, the hinge map H (dof, 6).


def rigid_step(R0: Any, p0: Any, W0: Any, R: Any, p: Any, s: Any, W: Any) -> Sequence[Any]:
    """(2) of a stretch (R₀, p₀, W₀) and the next body outward."""
    return rigid_product(R0, p0, W0, s * R, p, W)


def rigid_product(R0: Any, p0: Any, W0: Any, R: Any, p: Any, W: Any) -> Sequence[Any]:
    """(2)."""
    return R0 @ R, p0 + R0 @ p, ForceTransfer(R, p).T @ W0 + W


def velocity_step(V: Any, R: Any, p: Any, s: Any, W: Any, own: Any) -> Sequence[Any]:
    """V of a body (1) from that of its parent, and its acceleration beside φ* α̂."""
    phi = ForceTransfer(s * R, p)
    return phi.T @ V + W, s * carried_acceleration(phi, V, np.zeros(6), W) + own


def first_step(R: Any, p: Any, W: Any, own: Any, V: Any, alpha: Any) -> Sequence[Any]:
    """V and α̂ of the first body of a path, as its own, from those of the body that carries it."""
    phi = ForceTransfer(R, p)
    return phi.T @ V + W, carried_acceleration(phi, V, alpha, W) + own


def force_step(
    alpha: Any, R: Any, p: Any, s: Any, a: Any, V: Any, inertia: Any, f_ext: Any
) -> Sequence[Any]:
    """α̂ of a body, and the force f̂ that it needs; inertia: its ten numbers."""
    alpha = ForceTransfer(s * R, p).T @ alpha + a
    return alpha, inertia_of(inertia).force(V, alpha) - f_ext


def element_step(
    A: Any, b: Any, C: Any, eta: Any, J: Any, R: Any, p: Any, s: Any, H: Any, armature: Any, M: Any,
    f: Any, tau: Any,
) -> Sequence[Any]:  # fmt: skip
    """A stretch and the next body inward, (7) and (8)."""
    phi = ForceTransfer(R, p)
    P_plus, z_plus, G, D, eps = _absorbed(C, b, H, armature, M, f, tau)[2:]
    HA = H @ A
    kept = D.solve(HA)
    A, b, C = phi @ (A - G @ HA), phi @ z_plus, congruence(P_plus, phi)
    return s * A, s * b, s * C, eta + kept.T @ eps, mirror_lower(J + HA.T @ kept)


def articulated_step(
    C: Any, b: Any, R: Any, p: Any, s: Any, H: Any, armature: Any, M: Any, f: Any, tau: Any
) -> Sequence[Any]:
    """(C, b) of the next body inward; P, z, G and ν = D⁻¹ε of this one; what it hands on."""
    phi = ForceTransfer(R, p)
    P, z, P_plus, z_plus, G, D, eps = _absorbed(C, b, H, armature, M, f, tau)
    C, b = congruence(P_plus, phi), phi @ z_plus
    return s * C, s * b, P, z, G, D.solve(eps), C, b


def _absorbed(C: Any, b: Any, H: Any, armature: Any, M: Any, f: Any, tau: Any) -> tuple[Any, ...]:
    """A body and what reaches it: P, z, P⁺, z⁺, G, D and ε."""
    P, z = C + M, b + f
    D, G, P_plus = released(P, H, armature, np.zeros(len(H)))
    eps = tau - H @ z
    return P, z, P_plus, z + G @ eps, G, Factor(D), eps


def change_step(
    F: Any, g: Any, R: Any, p: Any, s: Any, H: Any, G: Any, nu: Any, given: Any
) -> Sequence[Any]:
    """(3) of a stretch and the next body outward; given: φ* α where a path begins, else 0."""
    phi = ForceTransfer(s * R, p)
    F, g = phi.T @ F, phi.T @ g + given
    return F - H.T @ (G.T @ F), g + H.T @ (nu - G.T @ g)


def change_product(F0: Any, g0: Any, F: Any, g: Any) -> Sequence[Any]:
    """(3)."""
    return F @ F0, F @ g0 + g


def acceleration_step(
    alpha: Any, R: Any, p: Any, s: Any, H: Any, G: Any, nu: Any, given: Any
) -> Sequence[Any]:
    """α of a body, and the accelerations of its joint."""
    alpha_plus = ForceTransfer(s * R, p).T @ alpha + given
    qdd = nu - G.T @ alpha_plus
    return alpha_plus + H.T @ qdd, qdd


def given_step(R: Any, p: Any, alpha: Any) -> Any:
    """φ* α."""
    return ForceTransfer(R, p).T @ alpha


def passive_part(H: Any, armature: Any, active: Any) -> Sequence[Any]:
    """H and armature of what is not driven; active: 1 where q̈ is given, else 0."""
    passive = 1 - active
    return passive[:, None] * H, passive * armature + active


def with_limb(M: Any, f: Any, C: Any, b: Any) -> Sequence[Any]:
    """Inertia and force of a body, and what a limb hands it."""
    return M + C, f + b


def split(active: Any, qdd_active: Any, tau_passive: Any) -> Sequence[Any]:
    """q̈ and τ as far as they are given."""
    return active * qdd_active, (1 - active) * tau_passive


def put_together(active: Any, qdd: Any, tau: Any, change: Any, forces: Any) -> Sequence[Any]:
    """All of τ and q̈."""
    return tau + active * forces, qdd + change


def driven_forces(H: Any, P: Any, z: Any, alpha: Any, armature: Any, qdd: Any) -> Any:
    """τ of degrees of freedom whose accelerations are given."""
    return H @ (z + P @ alpha) + armature * qdd
