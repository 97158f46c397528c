"""Stops at the limits of joints: springs and dampers that push back and never pull.

A DoF that is x beyond its limit and moves further with u is pushed back by

    τ = I ω² · median(0, x + (b/ω) u, 4 x)                                                       (1)

a spring with a damper, at least nothing and at most four times the spring: continuous, so that
integrators of any kind go through it, and of degree one in (x, u), so that a DoF comes back with
the same part of its speed however fast it was.  That part, the restitution e, is that of

    b = ½ (1/e − 1) (1 + e/8),   at most 5                                                      (2)

to about 0.01, the least 0.09.  I is what the DoF has of inertia where all others give way, the
least over a few configurations, and ω = 0.15/h for steps of length h: there (1) is stable, whoever
integrates it.  A DoF that comes at speed u gets ½ u/ω beyond its limit where its inertia is I.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import algorithms
from ..algorithms.congruences import compliance
from ..algorithms.riccati import riccati
from ..graph.functions import maximum, minimum
from ..model.joint import Joint
from ..model.mechanism import Mechanism
from ..specialize.routing import is_long

__all__ = ["Stops", "pace_of", "stops_of"]

_PACE = 0.15  # ω h of (1)
_ADAPTIVE_STEP = 1e-3  # s: of whichever steps, a method that chooses them has stops for these
_STEEPEST, _MOST_DAMPED = 4.0, 5.0
_LOOKS = 3  # configurations besides the neutral one


@dataclass(frozen=True)
class Stops:
    """The inertia behind each DoF of each body's joint, none for joints without limits."""

    inertias: tuple[tuple[float, ...], ...]

    def forces(self, mech: Mechanism, q: Any, qd: Any, pace: Any) -> np.ndarray:
        """The joint forces of all stops (nv,), ω being the pace."""
        parts = zip(mech.bodies, self.inertias, mech.coordinates(q), mech.rates(qd), strict=True)
        return mech.join([_force(b.joint, np.array(i), x, v, pace) for b, i, x, v in parts])


def pace_of(method: str, dt: float) -> float:
    """ω for steps of that length."""
    return _PACE / (_ADAPTIVE_STEP if method == "adaptive" else dt)


def _force(joint: Joint, inertia: np.ndarray, q: Any, qd: Any, pace: Any) -> np.ndarray:
    if not len(inertia):
        return np.zeros(joint.nv)
    E = joint.coordinate_rates(q)
    ends = zip(q, np.array(joint.lower), np.array(joint.upper), strict=True)
    x = np.array([a - _within(a, low, high) for a, low, high in ends])
    bound = _STEEPEST * x
    wanted = x + _damping(np.array(joint.restitution)) / pace * (E @ qd)
    pushed = minimum(maximum(wanted, minimum(bound, 0.0)), maximum(bound, 0.0))
    return -(E.T @ (inertia * (pace * pace) * pushed))  # (1)


def _within(q: Any, lower: float, upper: float) -> Any:
    q = maximum(q, lower) if np.isfinite(lower) else q
    return minimum(q, upper) if np.isfinite(upper) else q


def _damping(restitution: np.ndarray) -> np.ndarray:
    e = np.maximum(restitution, 1 / (1 + 2 * _MOST_DAMPED))
    return 0.5 * (1 / e - 1) * (1 + e / 8)  # (2)


def stops_of(mech: Mechanism) -> Stops | None:
    """The stops of a mechanism, None if no joint has limits."""
    bounds = [np.array([b.joint.lower, b.joint.upper]) for b in mech.bodies]
    limited = [bool(np.isfinite(x).any()) for x in bounds]
    if not any(limited):
        return None
    rng = np.random.default_rng(0)
    looks = [algorithms.random_configuration(mech, rng) for _ in range(_LOOKS)]
    poses = [algorithms.neutral(mech), *looks]
    felt = np.min([(_swept if is_long(mech) else _dense)(mech, q) for q in poses], axis=0)
    return Stops(tuple(_own(mech, k, felt) if limited[k] else () for k in range(len(limited))))


def _swept(mech: Mechanism, q: np.ndarray) -> np.ndarray:
    """1/(M⁻¹)(i,i): what a DoF has of inertia where all others give way.  (4) of mass_matrix.py."""
    H, phi = mech.H(q), mech.phi(q)
    _, _, _, D_inv, G = riccati(mech, H, phi)
    Y, felt = mech.slots(2)
    Y[0] = np.zeros((6, 6))
    for p, k in mech.outward():
        Y_plus = compliance(Y[p], phi[k])
        Z = Y_plus @ G[k]
        L = D_inv[k] + G[k].T @ Z
        Y[k] = Y_plus - H[k].T @ (Z - H[k].T @ L).T - Z @ H[k]
        felt[k] = 1 / np.diagonal(L)
    return np.asarray(mech.join(felt), float)


def _dense(mech: Mechanism, q: np.ndarray) -> np.ndarray:
    """The same of a mechanism that is not long."""
    M = np.asarray(algorithms.mass_matrix(mech, q), float)
    diagonal = np.diagonal(M)
    # without any inertia, which the dynamics themselves will say, none is divided by
    scale = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    own = M / np.outer(scale, scale) + 1e-9 * np.eye(len(M))
    return scale * scale / np.diagonal(np.linalg.inv(own))


def _own(mech: Mechanism, k: int, felt: np.ndarray) -> tuple[float, ...]:
    """Of a body's joint; that of a follower as its leader has it, three digits of each."""
    joint, name = mech.bodies[k].joint, mech.bodies[k].joint_name
    ratio = joint.mimic.ratio if joint.mimic else 1.0
    return tuple(float(f"{x / ratio**2:.3g}") if ratio else 0.0 for x in felt[mech.v_slice(name)])
