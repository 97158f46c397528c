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

A is found as in `constrained/response.py`, by unit forces that go inward: no M, and no columns but
those of the points beyond a body.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .. import algorithms
from ..algebra.small import inverse_spd, sqrt
from ..algebra.spatial import Transform
from ..algorithms.configuration import glide_rate, glided, gliding
from ..algorithms.constrained.description import Contact
from ..algorithms.constrained.response import response
from ..algorithms.constrained.rows import Held
from ..graph.functions import less, maximum, minimum, where
from ..model.mechanism import Mechanism
from .terrain import Terrain
from .touching import Spot, Touch, axes_of, body_velocities, touches

__all__ = ["Response", "RigidGround", "Stepped", "solved"]

_LIFTED = 0.2  # of its depth a point, in a step
_LIFTING = 4  # sweeps for that
# beside the diagonal of A, for points that cannot move in all directions
_SOFT, _NONE = 1e-7, 1e-12
_LEAST = 0.05  # of A_nn, what holds a point that friction presses down
_POINT = Contact("a point that touches")
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
        found = Response(mech, q, points, axes)
        b = _velocities(mech, q, free, points, axes)
        b = b - self._allowed(mech, q, qd, points, axes, h)
        start = np.array([x @ f * h for x, f in zip(axes, before, strict=True)])
        lam, residual = solved(found.A, b, start, self.friction, self.sweeps)
        sunk = np.array([maximum(-p.gap, 0.0) * (_LIFTED / h) for p in points])
        after = free + found.velocities(lam.ravel())  # (4)
        forces = np.array([x.T @ f / h for x, f in zip(axes, lam, strict=True)])
        lifted = after + found.velocities(_lift(found.A, sunk).ravel())
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
    """How a mechanism gives way to impulses on its points: A = J M⁻¹ Jᵀ, (3 n, 3 n)."""

    def __init__(
        self, mech: Mechanism, q: Any, points: Sequence[Touch], axes: Sequence[np.ndarray]
    ) -> None:
        """At a configuration, unit impulses along the axes of each point.  O(N n²)."""
        places = [_held(p, x) for p, x in zip(points, axes, strict=True)]
        at_rest, none = [np.zeros(6) for _ in mech.bodies], np.zeros(mech.nv)
        self._response = response(mech, q, places, at_rest, none)

    @property
    def A(self) -> np.ndarray:
        """J M⁻¹ Jᵀ, (3 n, 3 n)."""
        return self._response.felt.A

    def velocities(self, impulses: np.ndarray) -> np.ndarray:
        """M⁻¹ Jᵀ of impulses (3 n,): (nv,)."""
        return self._response.qdd(impulses)


def _held(point: Touch, axes: np.ndarray) -> Held:
    """A point as a contact whose rows are along the axes."""
    X = Transform(point.R.T @ axes.T, point.at)
    return Held(_POINT, point.body, 0, X, Transform(), None, None, False, 0.0)
