"""How much inertia along a joint is nothing but rounding.

What a joint feels is what its own body has along it, and what bodies beyond add, less what gives
way.  Where the own body is enough there is nothing to fear, whatever the configuration; where it is
not (a massless link, a point on a ball joint) the rest may cancel, up to the rounding of its terms.
No term is more than that of the whole subtree, stretched out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["least_inertias"]

_ROUNDING = 32 * float(np.finfo(float).eps)
# the own body of a joint is enough from so many roundings on
_ENOUGH = 64


def least_inertias(mech: Any) -> tuple[np.ndarray, ...]:
    """For each DoF of each body's joint the inertia that is rounding; 0 where it cannot be met.

    mech: a `Mechanism`; of numbers that are not known yet nothing is said.
    """
    bodies, armature, matrices = mech.bodies, mech.armature, [M.matrix for M in mech.M]
    places = [np.asarray(b.placement.translation) for b in bodies]
    if any(x.dtype == object for x in (*matrices, *places)):
        return tuple(np.zeros(len(a)) for a in armature)
    leaders = [b.joint.neutral() for b in bodies[1:] if b.joint.mimic is None]
    H = mech.H(np.concatenate([np.zeros(0), *leaders]))
    mass, moment = _stretched(bodies, matrices)
    found = [np.zeros(len(armature[0]))]
    for k in range(1, len(bodies)):
        turn, slide = (np.linalg.norm(H[k][:, at], axis=1) for at in (slice(0, 3), slice(3, 6)))
        whole = (turn * np.sqrt(moment[k]) + slide * np.sqrt(mass[k])) ** 2 + armature[k]
        own = H[k] @ matrices[k] @ H[k].T + np.diag(armature[k])
        found.append(_ROUNDING * whole * (not _is_enough(own, whole)))
    return tuple(found)


def _stretched(bodies: Sequence[Any], matrices: Sequence[Any]) -> tuple[np.ndarray, np.ndarray]:
    """The mass of each subtree, and a bound of its moments of inertia about the body's origin."""
    mass = np.array([abs(x[5, 5]) for x in matrices])
    moment = np.array([abs(np.trace(x[:3, :3])) for x in matrices])
    for k in reversed(range(1, len(bodies))):
        body = bodies[k]
        steps = (body.placement.translation, body.offset.translation)
        far = sum(np.linalg.norm(step) for step in steps)
        mass[body.parent] += mass[k]
        moment[body.parent] += (np.sqrt(moment[k]) + far * np.sqrt(mass[k])) ** 2
    return mass, moment


def _is_enough(own: np.ndarray, whole: np.ndarray) -> bool:
    """Whether the inertia of the body alone is more than rounding of the whole, in every way."""
    if not whole.all():
        return False
    scale = 1 / np.sqrt(whole)
    least = np.linalg.eigvalsh(scale[:, None] * own * scale).min(initial=1.0)
    return bool(least > _ENOUGH * _ROUNDING)
