"""Rigid contact: velocities after a step such that nothing sinks in and friction obeys Coulomb.

A step of semi-implicit Euler with impulses λ on the points, of which each has a normal and two
tangents in its axes (n; t):

    v = A λ + b,   A = J M⁻¹ Jᵀ,   b = J (q̇ + h q̈) of the step without ground                    (1)
    v_n ≥ v*,   λ_n ≥ 0,   (v_n − v*) λ_n = 0                                                    (2)
    |λ_t| ≤ μ λ_n,   where it slips λ_t = −μ λ_n v_t/|v_t|                                       (3)
    q̇ ← q̇ + h q̈ + M⁻¹Jᵀλ,   q ← q ⊞ h (q̇ + u)                                                    (4)

where ⊞ and q̈ are such that free bodies go straight (`Joint.glided`), with v* = −gap/h, so that a
point may come down to the ground and no further, or −e v_n of before where it hits it.  (2) and (3)
are solved point after point, a fixed number of times: sticking, λ ← λ − A(i,i)⁻¹ v, if that is in
the cone; else on the cone and against the slip,

    λ = λ_n (1; μ d),   d along λ_t − r v_t,   λ_n = (A(i,i) λ − v)_n / (A_nn + μ A_nt d) ≥ 0    (5)

whose fixed points are (3) as it stands.  The forces of the step before are where it starts.
Where friction would press a point into the ground (Painlevé's paradox) there may be no solution,
and sweeps go astray; λ is then scaled down until it adds no energy,

    λᵀb + ½ λᵀAλ ≤ 0                                                                            (6)

which a solution is far from: there λᵀb ≤ −λᵀAλ.

A point that is below the ground all the same, by the curvature of its path, is lifted by u, which
moves q and no velocity: a fifth of its depth in a step, by normal impulses of the same A.

A is found as in `operational_space.py`, by unit forces that go inward: no M, and no columns but
those of the points beyond a body.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .. import algorithms
from ..algebra.small import Factor, inverse_spd, solve_spd, sqrt
from ..algebra.spatial import congruence
from ..algorithms.configuration import glide_rate, glided, gliding
from ..algorithms.riccati import released
from ..graph.functions import less, maximum, minimum, where
from ..model.mechanism import Mechanism
from .terrain import Terrain
from .touching import Spot, Touch, axes_of, body_velocities, touches

__all__ = ["Response", "RigidGround", "Stepped", "response", "solved"]

_LIFTED = 0.2  # of its depth a point, in a step
_LIFTING = 4  # sweeps for that
# beside the diagonal of A, for points that cannot move in all directions
_SOFT, _NONE = 1e-7, 1e-12
_LEAST = 0.05  # of A_nn, what holds a point that friction presses down
_RESTING = 2.0  # steps of free fall, below whose speed nothing bounces


class Stepped(NamedTuple):
    """After a step: q, q̇, the forces on the points (points, 3) in world axes, and by how much the
    last sweep still changed the velocity of a point, m/s.
    """

    q: Any
    qd: Any
    forces: Any
    residual: Any


@dataclass(frozen=True)
class RigidGround:
    """The numbers of the law, and the points that it is for."""

    spots: Sequence[Spot]
    terrain: Terrain
    friction: tuple[float, ...]
    restitution: float
    sweeps: int

    def step(
        self, mech: Mechanism, q: Any, qd: Any, tau: Any, f_ext: Any, h: Any, before: Any
    ) -> Stepped:
        """A step of length h; before: the forces (points, 3) of the step before."""
        rate = algorithms.forward_dynamics(mech, q, qd, tau, f_ext) + glide_rate(mech, qd)
        free = qd + h * rate
        points = touches(mech, self.spots, self.terrain, q)
        axes = [axes_of(p.normal) for p in points]
        found = response(mech, q, points, axes)
        b = _velocities(mech, q, free, points, axes)
        b = b - self._allowed(mech, q, qd, points, axes, h)
        start = np.array([x @ f * h for x, f in zip(axes, before, strict=True)])
        lam, residual = solved(found.A, b, start, self.friction, self.sweeps)
        sunk = np.array([maximum(-p.gap, 0.0) * (_LIFTED / h) for p in points])
        both = np.stack([lam.ravel(), _lift(found.A, sunk).ravel()], axis=1)
        change = found.velocities(both)
        after = free + change[:, 0]  # (4)
        forces = np.array([x.T @ f / h for x, f in zip(axes, lam, strict=True)])
        lifted = after + change[:, 1]
        return Stepped(
            glided(mech, q, h, lifted), gliding(mech, h, lifted, after), forces, residual
        )

    def _allowed(
        self, mech: Mechanism, q: Any, qd: Any, points: Sequence[Touch], axes: Any, h: Any
    ) -> np.ndarray:
        """v* of (2), 0 along the tangents: (points, 3)."""
        closing = [-maximum(p.gap, 0.0) / h for p in points]
        if self.restitution:
            slow = _RESTING * h * sqrt(sum(g * g for g in mech.gravity))
            v = _velocities(mech, q, qd, points, axes)[:, 0]
            for i, p in enumerate(points):
                hits = less(p.gap + h * v[i], 0.0) * less(v[i], -slow)
                closing[i] = where(hits, -self.restitution * v[i], closing[i])
        return np.array([[x, 0.0, 0.0] for x in closing])


def _velocities(
    mech: Mechanism, q: Any, qd: Any, points: Sequence[Touch], axes: Sequence[Any]
) -> np.ndarray:
    """J q̇: (points, 3)."""
    V = body_velocities(mech, q, qd)
    return np.array([x @ p.velocity(V) for x, p in zip(axes, points, strict=True)])


def solved(
    A: np.ndarray, b: np.ndarray, start: np.ndarray, friction: Sequence[float], sweeps: int
) -> tuple[np.ndarray, Any]:
    """λ (points, 3) of (2) and (3), and what the last sweep still changed; A: (3 n, 3 n)."""
    n = len(b)
    lam, residual = list(start), 0.0
    diagonal = [A[3 * i : 3 * i + 3, 3 * i : 3 * i + 3] for i in range(n)]
    locals_ = [_local(x) for x in diagonal]
    for sweep in range(sweeps):
        for i in range(n):
            v = A[3 * i : 3 * i + 3] @ np.concatenate(lam) + b[i]
            new = _on_cone(diagonal[i], *locals_[i], v, lam[i], friction[i])
            if sweep == sweeps - 1:
                change = diagonal[i] @ (new - lam[i])
                residual = maximum(residual, change @ change)
            lam[i] = new
    return _passive(A, b, np.concatenate(lam)).reshape(n, 3), sqrt(residual)


def _passive(A: np.ndarray, b: np.ndarray, lam: np.ndarray) -> np.ndarray:
    """λ, as much of it as adds no energy: λᵀb + ½ λᵀAλ ≤ 0 (6)."""
    spent, stored = -2 * (lam @ b.ravel()), lam @ (A @ lam)
    return minimum(1.0, maximum(spent, 0.0) / (stored + _NONE * _NONE)) * lam


def _local(a: np.ndarray) -> tuple[np.ndarray, Any, Any]:
    """(A(i,i) + a little)⁻¹, r and A_nn of one point."""
    little = _SOFT * np.trace(a) + _NONE
    softened = a + little * np.eye(3)
    return inverse_spd(softened), 2 / (softened[1, 1] + softened[2, 2]), softened[0, 0]


def _on_cone(
    a: np.ndarray, inverse: np.ndarray, r: Any, a_nn: Any, v: np.ndarray, lam: np.ndarray, mu: float
) -> np.ndarray:
    """The new impulse of one point, the others as they are."""
    sticking = lam - inverse @ v
    reach = mu * sticking[0]
    aside = sticking[1] * sticking[1] + sticking[2] * sticking[2]
    sticks = less(aside, reach * reach) * less(0.0, sticking[0])
    y = lam[1:] - r * v[1:]
    d = mu * y / sqrt(y @ y + _NONE * _NONE)
    # where friction would press a point down (Painlevé), as if it did not
    hold = maximum(a_nn + a[0, 1:] @ d, _LEAST * a_nn)
    push = maximum((a[0] @ lam - v[0]) / hold, 0.0)
    slipping = np.array([push, push * d[0], push * d[1]])  # (5)
    return where(sticks, sticking, slipping)


def _lift(A: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Normal impulses (points, 3) that give the points at least these velocities."""
    n = len(wanted)
    blocks = (A[i : i + 3, i : i + 3] for i in range(0, 3 * n, 3))
    own = [a[0, 0] + _SOFT * np.trace(a) + _NONE for a in blocks]
    p: list[Any] = [0.0 * x for x in wanted]
    for _ in range(_LIFTING):
        for i in range(n):
            v = sum(A[3 * i, 3 * j] * p[j] for j in range(n))
            p[i] = maximum(p[i] + (wanted[i] - v) / own[i], 0.0)
    return np.array([[x, 0.0, 0.0] for x in p])


class Response:
    """How a mechanism gives way to impulses on its points."""

    def __init__(self, A: np.ndarray, velocities: Any) -> None:
        """A: J M⁻¹ Jᵀ, (3 n, 3 n); velocities: M⁻¹ Jᵀ of columns (3 n, c), (nv, c)."""
        self.A, self.velocities = A, velocities


def response(
    mech: Mechanism, q: Any, points: Sequence[Touch], axes: Sequence[np.ndarray]
) -> Response:
    """A and M⁻¹Jᵀ at a configuration, unit impulses along the axes of each point.  O(N n²)."""
    units = [p.wrench(x.T) for p, x in zip(points, axes, strict=True)]
    return (_dense if mech.has_followers else _by_sweeps)(mech, q, points, units)


def _by_sweeps(
    mech: Mechanism, q: Any, points: Sequence[Touch], units: Sequence[np.ndarray]
) -> Response:
    H, phi, n = mech.H(q), mech.phi(q), len(points)
    P = mech.filled(lambda k: mech.M[k].matrix)
    # of each body, the columns of the points beyond it
    z: list[dict[int, Any]] = [{} for _ in mech.bodies]
    for i, p in enumerate(points):
        z[p.body][i] = units[i]
    blocks: dict[tuple[int, int], Any] = {}
    G, eps, D = mech.slots(3)
    for p, k in mech.inward():
        own, G[k], P_plus = released(P[k], H[k], mech.armature[k], mech.least[k])
        D[k] = Factor(own)
        P[p] = P[p] + congruence(P_plus, phi[k])
        eps[k] = {i: H[k] @ x for i, x in z[k].items()}
        half = {i: D[k].half(x) for i, x in eps[k].items()}
        for i, x in eps[k].items():
            scaled = D[k].d_inv[:, None] * half[i]
            for j in (j for j in half if j >= i):
                both = half[j].T @ scaled
                blocks[j, i] = blocks[j, i] + both if (j, i) in blocks else both
            if p:
                up = phi[k] @ (z[k][i] - G[k] @ x)
                z[p][i] = z[p][i] + up if i in z[p] else up
    return Response(_joined(blocks, n), lambda c: _outward(mech, phi, H, D, G, eps, c))


def _joined(blocks: dict[tuple[int, int], Any], n: int) -> np.ndarray:
    """The whole of A from its blocks (j, i), j ≥ i."""
    none = np.zeros((3, 3))
    rows = []
    for i in range(n):
        parts = [
            blocks.get((i, j), none) if i >= j else blocks.get((j, i), none).T for j in range(n)
        ]
        rows.append(np.concatenate(parts, axis=1))
    return np.concatenate(rows)


def _outward(mech: Mechanism, phi: Any, H: Any, D: Any, G: Any, eps: Any, c: Any) -> np.ndarray:
    """M⁻¹Jᵀ c, (nv, columns): (6) to (8) of `forward_dynamics.py`."""
    alpha, out = mech.slots(2)
    alpha[0] = np.zeros((6, c.shape[1]))
    for p, k in mech.outward():
        alpha_plus = phi[k].T @ alpha[p]
        pushed = [x @ c[3 * i : 3 * i + 3] for i, x in eps[k].items()]
        out[k] = -(G[k].T @ alpha_plus)
        if pushed:
            out[k] = out[k] + D[k].solve(np.sum(pushed, axis=0))
        alpha[k] = alpha_plus + H[k].T @ out[k]
    columns = [mech.join([None, *(x[:, j] for x in out[1:])]) for j in range(c.shape[1])]
    return np.stack(columns, axis=1)


def _dense(
    mech: Mechanism, q: Any, points: Sequence[Touch], units: Sequence[np.ndarray]
) -> Response:
    """The same with M, where a joint mimics another."""
    H, phi = mech.H(q), mech.phi(q)
    rows = []
    for p, unit in zip(points, units, strict=True):
        felt, x = {}, unit
        for parent, k in mech.ancestors(p.body):
            felt[k] = (H[k] @ x).T
            x = phi[k] @ x if parent else x
        rows.append(mech.join_columns(felt, 3))
    J = np.concatenate(rows)
    given = solve_spd(algorithms.mass_matrix(mech, q), J.T)
    return Response(J @ given, lambda c: given @ c)
