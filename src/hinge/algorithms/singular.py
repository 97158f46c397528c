"""Where there is no answer: a joint that moves no inertia.  math §4.

M has an inverse where every D(k) has one, and its elimination from the tips to the base leaves the
pivots of D(k) on the diagonal.  Those that are nothing beside M(k,k) but its rounding belong to a
joint that can move, at that configuration, without moving any mass.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..algebra.small import more_than
from ..model.mechanism import Mechanism

__all__ = ["joint_of", "loose_joint", "sound", "why_singular"]

# roundings of M(k,k), times its rows, that a pivot has to exceed; asked only where an answer failed
_ROUNDING = 64


def loose_joint(mech: Mechanism, M: np.ndarray, held: Any = None) -> str:
    """The first joint from the tips that moves no inertia where the mass matrix is M, "" if none.

    held: 1 for the DoF whose motion is given, which need none.
    """
    kept, nv = np.real(M).astype(float), mech.nv
    if not np.isfinite(kept).all():
        return ""
    free = np.ones(nv) if held is None else 1 - np.asarray(held, dtype=float)
    least = _ROUNDING * max(nv, 1) * np.finfo(M.dtype).eps * np.diagonal(kept)
    for j in (j for j in reversed(range(nv)) if free[j]):
        if kept[j, j] <= least[j]:
            return joint_of(mech, j)
        kept -= np.outer(kept[:, j], kept[j] / kept[j, j])
    return ""


def sound(mech: Mechanism, M: np.ndarray, free: Any = 1.0) -> np.ndarray:
    """The mass matrix, with NaN in it where a pivot from the tips is nothing but rounding.

    free: 0 for the DoF whose motion is given, where M has a one on its diagonal and nothing else.
    """
    if mech.has_followers:
        return M
    least = free * np.concatenate([np.zeros(0), *mech.least[1:]])
    return more_than(M[::-1, ::-1], least[::-1])[::-1, ::-1]


def why_singular(where: str, joint: str) -> str:
    """What to say of a result that is not finite; joint: the loose one, "" if there is none."""
    if joint:
        return (
            f"{where}: joint {joint!r} moves no inertia here (a massless tip, a zero inertia about "
            f"its axis), and has no acceleration; give the bodies beyond it mass, or it armature"
        )
    return (
        f"{where}: the result is not finite: a number overflows; are all masses, lengths and "
        f"arguments in the same units, and none too small beside the others?"
    )


def joint_of(mech: Mechanism, dof: int) -> str:
    """The joint that a degree of freedom belongs to."""
    leaders = [b.joint_name for b in mech.bodies[1:] if b.joint.mimic is None]
    ends = {name: mech.v_slice(name) for name in leaders}
    return next(name for name, at in ends.items() if at.start <= dof < at.stop)
