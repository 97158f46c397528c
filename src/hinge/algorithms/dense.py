"""Where a joint mimics another: the same results by dense algebra.  math §4, §7, §8.

A follower ties branches together, so that no sweep can release joint after joint.  What a sweep
needs independent joints for is worked out here from the mass matrix M, which knows of followers,
and from its factor M = m mᵀ, m upper triangular, ℓ = m⁻¹:

    q̈ = M⁻¹ (τ − bias),   Λ⁻¹ = J M⁻¹ Jᵀ
    ν = mᵀ q̇,   ε = ℓ τ,   ṁ = m Φ(ℓ Ṁ ℓᵀ),   C = ℓ (bias − g) − Φᵀ(ℓ Ṁ ℓᵀ) ν

L is the part of m within each joint.  O(nv³).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..algebra.small import (
    half_upper,
    inverse_spd,
    is_zero,
    mirror_lower,
    solve_spd,
    sqrt,
    upper_root,
)
from ..errors import ModelError
from ..model.ground_axes import Axes
from ..model.mechanism import Mechanism
from .constrained.derivatives import Limbs, limbs_of
from .constrained.description import row_slices
from .constrained.response import Felt, Response, response
from .constrained.rows import Held, Reach, solved_jacobian
from .declare import with_followers
from .diagonalized.diagonal_dynamics import (
    ArticulatedRates,
    Inertias,
    articulated_rates,
    diagonal_coriolis,
    diagonal_coriolis_matrix,
    diagonal_dynamics,
    mass_factor_rate,
)
from .diagonalized.mass_factor import mass_factor, mass_factor_inverse
from .diagonalized.mass_matrix_rates import coriolis_matrix, mass_matrix_rate
from .diagonalized.rates_and_forces import (
    Innovations,
    innovations,
    joint_forces,
    joint_rates,
    total_rates,
    working_forces,
    working_gravity,
)
from .forward_dynamics import forward_dynamics
from .inverse_dynamics import bias_forces, gravity_forces
from .kinematics import Reference, jacobian
from .linearized.conventional import (
    conventional_derivatives,
    conventional_forward_derivatives,
    conventional_forward_jvp,
    conventional_jvp,
)
from .linearized.forward_change import ForwardDynamicsChange, forward_dynamics_change
from .linearized.forward_derivatives import (
    ForwardDynamicsDerivatives,
    Method,
    forward_dynamics_derivatives,
    forward_dynamics_jvp,
)
from .linearized.inverse_derivatives import inverse_dynamics_jvp
from .linearized.loads import Load
from .linearized.nominal import Nominal
from .linearized.transposed import (
    ForwardDynamicsGradient,
    forward_dynamics_vjp,
    inverse_dynamics_vjp,
)
from .mass_matrix import mass_matrix, mass_matrix_inverse
from .operational_space import operational_space_inertia_inverse
from .underactuated.generalized_jacobians import complete_motion
from .underactuated.hybrid_derivatives import hybrid_dynamics_jvp
from .underactuated.hybrid_dynamics import HybridDynamics, hybrid_dynamics, hybrid_response

__all__: list[str] = []

# accelerations and inertias


@with_followers(forward_dynamics)
def _(
    mech: Mechanism,
    q: np.ndarray,
    qd: np.ndarray,
    tau: np.ndarray,
    f_ext: np.ndarray | None = None,
) -> np.ndarray:
    """M q̈ = τ − bias."""
    return solve_spd(mass_matrix(mech, q), np.asarray(tau) - bias_forces(mech, q, qd, f_ext))


@with_followers(mass_matrix_inverse)
def _(mech: Mechanism, q: np.ndarray, axes: Axes = "body") -> np.ndarray:
    return inverse_spd(mass_matrix(mech, q, axes))


@with_followers(operational_space_inertia_inverse)
def _(
    mech: Mechanism,
    q: np.ndarray,
    frames: str | Sequence[str],
    reference: Reference = "aligned",
) -> np.ndarray:
    """Λ⁻¹ = J M⁻¹ Jᵀ."""
    names = (frames,) if isinstance(frames, str) else tuple(frames)
    J = np.vstack([jacobian(mech, q, name, reference) for name in names])
    return mirror_lower(J @ solve_spd(mass_matrix(mech, q), J.T))


@with_followers(hybrid_dynamics)
def _(
    mech: Mechanism,
    q: np.ndarray,
    qd: np.ndarray,
    qdd_active: np.ndarray,
    tau_passive: np.ndarray,
    active: Any,
    f_ext: np.ndarray | None = None,
) -> HybridDynamics:
    bias, m = bias_forces(mech, q, qd, f_ext), mech.driven(active)
    return _split(mass_matrix(mech, q), np.asarray(qdd_active), np.asarray(tau_passive), m, bias)


@with_followers(hybrid_response)
def _(mech: Mechanism, q: np.ndarray, given: np.ndarray, active: Any) -> np.ndarray:
    x = np.asarray(given)
    m = mech.driven(active).reshape(-1, *[1] * (x.ndim - 1))
    found = _split(mass_matrix(mech, q), x, x, m, 0.0)
    return m * found.tau + (1 - m) * found.qdd


@with_followers(complete_motion)
def _(
    mech: Mechanism,
    q: np.ndarray,
    qd_active: np.ndarray,
    active: Any,
    momentum_passive: np.ndarray | None = None,
) -> np.ndarray:
    m, rates = mech.driven(active), np.asarray(qd_active)
    h = np.zeros(mech.nv) if momentum_passive is None else np.asarray(momentum_passive)
    return m * rates + (1 - m) * hybrid_response(mech, q, m * rates + (1 - m) * h, m)


@with_followers(hybrid_dynamics_jvp)
def _(
    mech: Mechanism,
    q: np.ndarray,
    qd: np.ndarray,
    qdd_active: np.ndarray,
    tau_passive: np.ndarray,
    dq: np.ndarray,
    dqd: np.ndarray,
    dgiven: np.ndarray,
    active: Any,
    f_ext: np.ndarray | None = None,
) -> np.ndarray:
    """δy = m δτ + S (δx − s δτ)."""
    m = mech.driven(active)
    qdd = hybrid_dynamics(mech, q, qd, qdd_active, tau_passive, active, f_ext).qdd
    felt = inverse_dynamics_jvp(mech, q, qd, qdd, dq, dqd, np.zeros(mech.nv), f_ext)
    return m * felt + hybrid_response(mech, q, np.asarray(dgiven) - (1 - m) * felt, active)


def _split(M: np.ndarray, qdd: Any, tau: Any, m: Any, bias: Any) -> HybridDynamics:
    """s M s δ = s (τ − bias − M m q̈), with ones for the active DoF."""
    s = 1 - m
    row = np.ravel(s)
    held = M * row * row[:, None] + np.diag(1 - row)
    qdd = m * qdd + s * solve_spd(held, s * (tau - bias - M @ (m * qdd)))
    return HybridDynamics(s * tau + m * (M @ qdd + bias), qdd)


# held


class _Held(NamedTuple):
    """What constraints feel, q̈ without them, and M⁻¹ Kᵀ (nv, rows)."""

    felt: Felt
    free: np.ndarray
    moved: np.ndarray

    def qdd(self, forces: np.ndarray, doubt: Any = 0.0) -> np.ndarray:
        """q̈ under forces λ (rows,)."""
        return self.free + self.moved @ forces + doubt


@with_followers(response)
def _(
    mech: Mechanism,
    q: np.ndarray,
    places: Sequence[Held],
    z: Any,
    tau: np.ndarray,
    active: np.ndarray | None = None,
) -> Response:
    """A = K M⁻¹ Kᵀ, of the free degrees of freedom."""
    s = np.ones(mech.nv) if active is None else 1 - active
    M = mass_matrix(mech, q) * s * s[:, None] + np.diag(1 - s)
    K = solved_jacobian(mech, q, places) * s
    free = solve_spd(M, s * (np.asarray(tau) - _joint_forces(mech, q, z)))
    moved = solve_spd(M, K.T)
    slices, H, phi = row_slices([h.constraint for h in places]), mech.H(q), mech.phi(q)
    units = mech.rates(np.array([0.0 if is_zero(x) else 1 / sqrt(x) for x in np.diagonal(M)]))
    bound = [np.zeros(0)]
    for h in places:
        reach = Reach(mech, h)
        on_way = [k for _, k in mech.inward() if reach.passes(k)]
        felt = [(reach.felt(k, H[k], phi[k]) * units[k]) ** 2 for k in on_way]
        bound.append(sum((x.sum(axis=1) for x in felt), np.zeros(len(h.axes))))
    sums = Felt(mirror_lower(K @ moved), K @ free, np.concatenate(bound), slices)
    return _Held(sums, free, moved)


@with_followers(limbs_of)
def _(
    mech: Mechanism, n: Nominal, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray, loads: np.ndarray
) -> Limbs:
    """By Algorithm 4, all joints in one limb."""
    dq, dqd, M_inv = conventional_derivatives(mech, q, qd, qdd, loads)
    return Limbs(0, M_inv, dq, dqd)


def _joint_forces(mech: Mechanism, q: np.ndarray, f: Any) -> np.ndarray:
    """What forces on the bodies come to at the joints: (nv,)."""
    H, phi = mech.H(q), mech.phi(q)
    carried, out = mech.filled(lambda k: f[k]), mech.slots(1)[0]
    for p, k in mech.inward():
        out[k] = H[k] @ carried[k]
        carried[p] = carried[p] + phi[k] @ carried[k]
    return mech.join(out)


# linearised: Algorithms 3 and 4, which form M, whatever the method


@with_followers(forward_dynamics_jvp)
def _(
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
    method: Method = "conventional",
    axes: Axes = "body",
) -> np.ndarray:
    change = (dq, dqd, dtau)
    return conventional_forward_jvp(mech, q, qd, tau, *change, f_ext, points, load, axes)


@with_followers(forward_dynamics_derivatives)
def _(
    mech: Mechanism,
    q: np.ndarray,
    qd: np.ndarray,
    tau: np.ndarray,
    f_ext: np.ndarray | None = None,
    points: np.ndarray | None = None,
    load: Load = "body",
    method: Method = "conventional",
    axes: Axes = "body",
) -> ForwardDynamicsDerivatives:
    parts = conventional_forward_derivatives(mech, q, qd, tau, f_ext, points, load, axes)
    return ForwardDynamicsDerivatives(*parts)


@with_followers(forward_dynamics_change)
def _(
    mech: Mechanism,
    q: np.ndarray,
    qd: np.ndarray,
    tau: np.ndarray,
    dq: np.ndarray,
    dqd: np.ndarray,
    dtau: np.ndarray,
    f_ext: np.ndarray | None = None,
) -> ForwardDynamicsChange:
    qdd = forward_dynamics(mech, q, qd, tau, f_ext)
    return ForwardDynamicsChange(qdd, conventional_jvp(mech, q, qd, qdd, dq, dqd, dtau, f_ext))


@with_followers(forward_dynamics_vjp)
def _(
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
    """λ = M⁻¹ μ, and what it gives for inverse dynamics at the same motion."""
    qdd, lam = forward_dynamics(mech, q, qd, tau, f_ext), solve_spd(mass_matrix(mech, q), cotangent)
    dq, dqd, _ = inverse_dynamics_vjp(mech, q, qd, qdd, lam, f_ext, points, load, axes)
    return ForwardDynamicsGradient(-dq, -dqd, lam)


# diagonalised


class _Roots(NamedTuple):
    """m, its inverse ℓ, and the parts L, L⁻¹ of both within each joint."""

    m: np.ndarray
    l: np.ndarray
    L: np.ndarray
    L_inv: np.ndarray


def _roots(mech: Mechanism, q: np.ndarray) -> _Roots:
    m, l = upper_root(mass_matrix(mech, q))
    own = _within_joints(mech)
    return _Roots(m, l, own * m, own * l)


def _within_joints(mech: Mechanism) -> np.ndarray:
    """1 where row and column belong to the same joint, else 0: (nv, nv)."""
    leaders = {k: b.joint.nv for k, b in enumerate(mech.bodies) if b.joint.mimic is None}
    return mech.join_matrix({(k, k): np.ones((nv, nv)) for k, nv in leaders.items() if k})


def _turn(mech: Mechanism, q: np.ndarray, qd: np.ndarray, l: np.ndarray) -> np.ndarray:
    """Φ(ℓ Ṁ ℓᵀ)."""
    return half_upper(l @ mass_matrix_rate(mech, q, qd) @ l.T)


@with_followers(mass_factor)
def _(mech: Mechanism, q: np.ndarray) -> np.ndarray:
    return upper_root(mass_matrix(mech, q))[0]


@with_followers(mass_factor_inverse)
def _(mech: Mechanism, q: np.ndarray) -> np.ndarray:
    return upper_root(mass_matrix(mech, q))[1]


@with_followers(mass_factor_rate)
def _(mech: Mechanism, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
    """ṁ = m Φ(ℓ Ṁ ℓᵀ)."""
    r = _roots(mech, q)
    return r.m @ _turn(mech, q, qd, r.l)


@with_followers(total_rates)
def _(mech: Mechanism, q: np.ndarray, qd: np.ndarray, normalized: bool = True) -> np.ndarray:
    """ν = mᵀ q̇, ξ = L⁻ᵀ ν."""
    r = _roots(mech, q)
    nu = r.m.T @ qd
    return nu if normalized else r.L_inv.T @ nu


@with_followers(joint_rates)
def _(mech: Mechanism, q: np.ndarray, nu: np.ndarray, normalized: bool = True) -> np.ndarray:
    """q̇ = ℓᵀ ν, ν = Lᵀ ξ."""
    r = _roots(mech, q)
    return r.l.T @ (nu if normalized else r.L.T @ nu)


@with_followers(working_forces)
def _(
    mech: Mechanism,
    q: np.ndarray,
    tau: np.ndarray,
    f_ext: np.ndarray | None = None,
    normalized: bool = True,
) -> np.ndarray:
    """ε = ℓ (τ + Σ Jᵀ f_ext), κ = L ε."""
    r, still = _roots(mech, q), np.zeros(mech.nv)
    external = gravity_forces(mech, q) - bias_forces(mech, q, still, f_ext)
    eps = r.l @ (tau + external)
    return eps if normalized else r.L @ eps


@with_followers(joint_forces)
def _(mech: Mechanism, q: np.ndarray, eps: np.ndarray, normalized: bool = True) -> np.ndarray:
    """τ = m ε, ε = L⁻¹ κ."""
    r = _roots(mech, q)
    return r.m @ (eps if normalized else r.L_inv @ eps)


@with_followers(working_gravity)
def _(mech: Mechanism, q: np.ndarray, normalized: bool = True) -> np.ndarray:
    return working_forces(mech, q, -gravity_forces(mech, q), None, normalized)


@with_followers(innovations)
def _(mech: Mechanism, q: np.ndarray, tau: np.ndarray) -> Innovations:
    """κ with the covariance L Lᵀ."""
    kappa, eps = working_forces(mech, q, tau, normalized=False), working_forces(mech, q, tau)
    L = _roots(mech, q).L
    return Innovations(tau - kappa, kappa, L @ L.T, eps)


@with_followers(diagonal_coriolis)
def _(
    mech: Mechanism,
    q: np.ndarray,
    nu: np.ndarray,
    normalized: bool = True,
    inertias: Inertias = "kept",
) -> np.ndarray:
    """C = ℓ (bias − g) − Φᵀ ν;   C_ξ = L (C + Φᵀ ν), Φ within each joint; no inertias are kept."""
    r = _roots(mech, q)
    nu = nu if normalized else r.L.T @ nu
    qd = r.l.T @ nu
    turn = _turn(mech, q, qd, r.l)
    C = r.l @ (bias_forces(mech, q, qd) - gravity_forces(mech, q)) - turn.T @ nu
    return C if normalized else r.L @ (C + (_within_joints(mech) * turn).T @ nu)


@with_followers(diagonal_coriolis_matrix)
def _(mech: Mechanism, q: np.ndarray, nu: np.ndarray) -> np.ndarray:
    """A = ℓ C ℓᵀ − Φᵀ."""
    r = _roots(mech, q)
    qd = r.l.T @ nu
    turn = _turn(mech, q, qd, r.l)
    return r.l @ coriolis_matrix(mech, q, qd) @ r.l.T - turn.T


@with_followers(diagonal_dynamics)
def _(
    mech: Mechanism,
    q: np.ndarray,
    nu: np.ndarray,
    tau: np.ndarray,
    f_ext: np.ndarray | None = None,
    normalized: bool = True,
    inertias: Inertias = "kept",
) -> np.ndarray:
    """ν̇ = ε + ε_g − C;   ξ̇ = L⁻ᵀ L⁻¹ (κ + κ_g − C_ξ); no inertias are kept."""
    force = working_forces(mech, q, tau, f_ext, normalized) + working_gravity(mech, q, normalized)
    rate = force - diagonal_coriolis(mech, q, nu, normalized)
    if normalized:
        return rate
    r = _roots(mech, q)
    return r.L_inv.T @ (r.L_inv @ rate)


@with_followers(articulated_rates)
def _(mech: Mechanism, q: np.ndarray, qd: np.ndarray) -> ArticulatedRates:
    raise ModelError(
        f"{mech.name!r} has joints that mimic others: it has no articulated inertias; "
        f"mass_factor_rate gives the rate of its mass factor"
    )
