"""How the mass matrix changes with the configuration.  Paper D eq. 6.12, general; math §8.

h(k), (6, nv), are the momenta of the bodies beyond joint k for a unit rate of each DoF: the rows of
φMφ*H*.  Moving along rates that make W(i) across joint i changes the mass matrix by N + N*:

    outward   V(k) = φ*(p,k) V(p) + H*(k);   h(k) = M(k) V(k)                                   (1)
    inward    h(p) = h(p) + φ(p,k) h(k)                                                         (2)
    inward    y(p) = y(p) + φ(p,k) (y(k) + W(k) ×* h(k))                                        (3)
              N(k) = H(k) y(k) + H°(k) h(k)                                                     (4)

H° is the componentwise rate of H, zero for all joints but the universal one.  A dash is the change
along a second motion, W' and H' being those of it:

    outward   V'(k) = φ*(p,k) V'(p) − W'(k) × V⁺(k) + H'*(k)                                    (5)
    inward    h'(p) = h'(p) + φ(p,k) (h'(k) + W'(k) ×* h(k)),   starting from M V'              (6)
    inward    y'(p) = y'(p) + φ(p,k) (y' + W ×* h' + (H'* q̇) ×* h + W' ×* (y + W ×* h))         (7)
              N'(k) = H y' + H' y + H° h' + H°' h                                               (8)

The Coriolis matrix is made of (5) along the motion itself and of a skew operator X of each body
with X V = V ×* M V, of which there are many:

    inward    f(k) = M(k) V'(k) + X(k) V(k), summed;   its rows are H(k) f(k)                   (9)
              X = V ×* M + M V ×                                             form "body"        (10)
              X = ½ (V ×* M + M V × + (M V) ×̄),  h ×̄ v = v ×* h             form "christoffel" (11)

With (11) the matrix is that of Christoffel's symbols, Σ_k ½ (∂_k M_ij + ∂_j M_ik − ∂_i M_jk) q̇_k
(S. Echeandia, P. Wensing, "Numerical methods to compute the Coriolis matrix and Christoffel symbols
for rigid-body systems", 2021), and depends on no choice of frames; (10) takes fewer operations.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ...algebra.rotation import skew
from ...algebra.spatial import cross_force, cross_motion
from ...model.mechanism import Mechanism
from ..declare import algorithm

__all__ = [
    "coriolis_matrix",
    "mass_matrix_rate",
    "mass_matrix_second_sensitivity",
    "mass_matrix_sensitivity",
]


@algorithm(joint_level=True)
def mass_matrix_rate(mech: Mechanism, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
    """Ṁ(q, q̇), symmetric (nv, nv).  O(N · nv): out, in, in."""
    H, phi = mech.H(q), mech.phi(q)
    h = _momenta(mech, phi, _velocities(mech, H, phi))
    return _symmetric(mech, _rows(mech, q, qd, H, phi, h, mech.inward())[0])


@algorithm(joint_level=True)
def mass_matrix_sensitivity(mech: Mechanism, q: np.ndarray) -> np.ndarray:
    """∂M/∂q along every joint tangent, (nv, nv, nv): [:, :, i] = ∂M/∂q_i.  O(depth · nv²)."""
    H, phi, nv = mech.H(q), mech.phi(q), mech.nv
    h = _momenta(mech, phi, _velocities(mech, H, phi))
    along = ((e, _inward_of(mech, e)) for e in np.eye(nv))
    slices = [_symmetric(mech, _rows(mech, q, e, H, phi, h, way)[0]) for e, way in along]
    return np.array(slices).reshape(nv, nv, nv).transpose(1, 2, 0)


@algorithm(joint_level=True)
def mass_matrix_second_sensitivity(mech: Mechanism, q: np.ndarray) -> np.ndarray:
    """∂²M/∂q∂q, (nv, nv, nv, nv): [..., i, j] = the change of ∂M/∂q_i along j.  O(N · nv³)."""
    H, phi, nv = mech.H(q), mech.phi(q), mech.nv
    V = _velocities(mech, H, phi)
    h = _momenta(mech, phi, V)
    unit = np.eye(nv)
    first = [_rows(mech, q, e, H, phi, h, _inward_of(mech, e))[1] for e in unit]
    slices = []
    for along in unit:
        h_dash = _momenta_dash(mech, q, along, H, phi, V, h)
        for i in range(nv):
            N = _rows_dash(mech, q, unit[i], along, H, phi, h, first[i], h_dash)
            slices.append(_symmetric(mech, N))
    return np.array(slices).reshape(nv, nv, nv, nv).transpose(2, 3, 1, 0)


@algorithm()
def coriolis_matrix(
    mech: Mechanism, q: np.ndarray, qd: np.ndarray, form: str = "body"
) -> np.ndarray:
    """C(q, q̇), (nv, nv): C q̇ = bias − gravity, and C + Cᵀ = Ṁ.  O(N · nv): out, in.

    form: "body" or "christoffel", which of the matrices that do so.
    """
    H, phi = mech.H(q), mech.phi(q)
    V = _velocities(mech, H, phi)
    V_dash = _velocities_dash(mech, q, qd, H, phi, V)
    f = mech.filled(lambda k: np.zeros((6, mech.nv)))
    columns = {}
    for p, k in mech.inward():
        own, M = V[k] @ np.asarray(qd), mech.M[k]
        gyroscopic = cross_force(own, M @ V[k]) + M @ cross_motion(own, V[k])  # (10)
        if form == "christoffel":
            gyroscopic = 0.5 * (gyroscopic + _on_force(V[k], M @ own))  # (11)
        f[k] = f[k] + M @ V_dash[k] + gyroscopic  # (9)
        columns[k] = (H[k] @ f[k]).T
        f[p] = f[p] + phi[k] @ f[k]
    return mech.join_columns(columns, mech.nv).T


def _on_force(V: np.ndarray, h: np.ndarray) -> np.ndarray:
    """h ×̄ V = V ×* h for every column of V."""
    n, g = skew(h[:3]), skew(h[3:])
    return -np.concatenate([n @ V[:3] + g @ V[3:], g @ V[:3]])


def _symmetric(mech: Mechanism, rows: dict[int, np.ndarray]) -> np.ndarray:
    N = mech.join_columns({k: row.T for k, row in rows.items()}, mech.nv)
    return N + N.T


def _velocities(mech: Mechanism, H: Any, phi: Any) -> list[Any]:
    """V(k), (6, nv), of every body for a unit rate of each DoF: its Jacobian in its own axes."""
    unit = mech.rates(np.eye(mech.nv))
    V = mech.filled(lambda k: np.zeros((6, mech.nv)))
    for p, k in mech.outward():
        V[k] = phi[k].T @ V[p] + H[k].T @ unit[k]  # (1)
    return V


def _momenta(mech: Mechanism, phi: Any, V: list[Any]) -> list[Any]:
    h = mech.filled(lambda k: mech.M[k] @ V[k])
    for p, k in mech.inward():
        h[p] = h[p] + phi[k] @ h[k]  # (2)
    return h


def _inward_of(mech: Mechanism, rates: np.ndarray) -> list[tuple[int, int]]:
    """The steps inward from joints that have rates: all that (3) and (4) are not zero on."""
    rates_, way = mech.rates(rates), set()
    steps = list(mech.inward())
    for p, k in steps:
        if k in way or rates_[k].any():
            way |= {p, k}
    return [(p, k) for p, k in steps if k in way]


def _rows(
    mech: Mechanism,
    q: np.ndarray,
    qd: np.ndarray,
    H: Any,
    phi: Any,
    h: list[Any],
    way: Iterable[tuple[int, int]],
) -> tuple[dict[int, np.ndarray], list[Any]]:
    """N and y; way: the steps inward on which there is something."""
    qd_, H_rate = mech.rates(qd), mech.H_rate(q, qd)
    y = mech.filled(lambda k: np.zeros((6, mech.nv)))
    N = {}
    for p, k in way:
        N[k] = H[k] @ y[k] + H_rate[k] @ h[k]  # (4)
        y[p] = y[p] + phi[k] @ (y[k] + cross_force(H[k].T @ qd_[k], h[k]))  # (3)
    return N, y


def _velocities_dash(
    mech: Mechanism, q: np.ndarray, qd: np.ndarray, H: Any, phi: Any, V: list[Any]
) -> list[Any]:
    qd_, H_rate, unit = mech.rates(qd), mech.H_rate(q, qd), mech.rates(np.eye(mech.nv))
    V_dash = mech.filled(lambda k: np.zeros((6, mech.nv)))
    for p, k in mech.outward():
        turned = cross_motion(H[k].T @ qd_[k], phi[k].T @ V[p])
        V_dash[k] = phi[k].T @ V_dash[p] - turned + H_rate[k].T @ unit[k]  # (5)
    return V_dash


def _momenta_dash(
    mech: Mechanism, q: np.ndarray, qd: np.ndarray, H: Any, phi: Any, V: list[Any], h: list[Any]
) -> list[Any]:
    V_dash, qd_ = _velocities_dash(mech, q, qd, H, phi, V), mech.rates(qd)
    h_dash = mech.filled(lambda k: mech.M[k] @ V_dash[k])
    for p, k in mech.inward():
        h_dash[p] = h_dash[p] + phi[k] @ (h_dash[k] + cross_force(H[k].T @ qd_[k], h[k]))  # (6)
    return h_dash


def _rows_dash(
    mech: Mechanism,
    q: np.ndarray,
    qd: np.ndarray,
    along: np.ndarray,
    H: Any,
    phi: Any,
    h: list[Any],
    y: list[Any],
    h_dash: list[Any],
) -> dict[int, np.ndarray]:
    """N'."""
    qd_, along_ = mech.rates(qd), mech.rates(along)
    H_rate, H_dash, H_both = mech.H_rate(q, qd), mech.H_rate(q, along), mech.H_second(q, qd, along)
    y_dash = mech.filled(lambda k: np.zeros((6, mech.nv)))
    N = {}
    for p, k in mech.inward():
        N[k] = H[k] @ y_dash[k] + H_dash[k] @ y[k] + H_rate[k] @ h_dash[k] + H_both[k] @ h[k]  # (8)
        W, W_dash = H[k].T @ qd_[k], H[k].T @ along_[k]
        own = cross_force(W, h_dash[k]) + cross_force(H_dash[k].T @ qd_[k], h[k])
        carried = cross_force(W_dash, y[k] + cross_force(W, h[k]))
        y_dash[p] = y_dash[p] + phi[k] @ (y_dash[k] + own + carried)  # (7)
    return N
