"""Forces that joints exert by themselves: springs, damping, dry friction.

    τ = −stiffness (q ⊟ rest) − damping q̇ − friction s(q̇)                                       (1)

s is the sign, smoothed at low speed: s = c (3 − c²)/2 with c = q̇ / stiction speed, clipped to ±1.
These forces come besides those of motors: give them as `tau_passive` of hybrid dynamics, add them
to `tau` of forward dynamics, take them off the result of inverse dynamics.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..algebra.small import clip, sign
from ..model.joint import Joint
from ..model.mechanism import Mechanism
from .declare import algorithm

__all__ = ["dry_friction", "friction_damping", "passive_forces", "spring_energy"]

# below this speed (rad/s or m/s) Coulomb friction fades to zero instead of jumping
_STICTION_SPEED = 1.5e-2
_FAR = 1e30


@algorithm(result="tau")
def passive_forces(mech: Mechanism, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
    """The joint forces of springs, damping and friction: (nv,) (1).  O(N)."""
    parts = zip(mech.bodies, mech.coordinates(q), mech.rates(qd), strict=True)
    return mech.join([_force(b.joint, qk, qdk) for b, qk, qdk in parts])


@algorithm()
def spring_energy(mech: Mechanism, q: np.ndarray) -> Any:
    """½ Σ stiffness (q ⊟ rest)²: a scalar, in J.  O(N)."""
    twice = 0.0
    for body, qk in zip(mech.bodies, mech.coordinates(q), strict=True):
        if np.any(body.joint.stiffness):
            stretch = body.joint.stretch(qk)
            twice = twice + np.array(body.joint.stiffness) @ (stretch * stretch)
    return 0.5 * twice


def _force(joint: Joint, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
    force = -np.array(joint.damping) * qd
    if np.any(joint.stiffness):
        force = force + joint.spring_force(q)
    if np.any(joint.friction):
        force = force - np.array(joint.friction) * dry_friction(qd)
    return force


def dry_friction(qd: np.ndarray) -> np.ndarray:
    """s(q̇) of (1), per unit of friction."""
    c = clip(qd / _STICTION_SPEED, -1.0, 1.0)
    return 0.5 * c * (3 - c * c)


def friction_damping(joint: Joint, qd: np.ndarray) -> np.ndarray:
    """friction s(q̇)/q̇ of (1): the damping that gives the same force at this speed."""
    if not np.any(joint.friction):
        return np.zeros(joint.nv)
    speed = np.array([clip(sign(v) * v, _STICTION_SPEED, _FAR) for v in qd])
    c = clip(qd / _STICTION_SPEED, -1.0, 1.0)
    return np.array(joint.friction) * (1.5 - 0.5 * c * c) / speed
