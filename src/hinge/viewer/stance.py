"""Configurations to show a robot in."""

from __future__ import annotations

import numpy as np

from ..algorithms.configuration import limits
from ..model.joints import Free
from .actor import Actor, all_poses, place_of
from .look import floor_of, look_of

__all__ = ["standing"]


def standing(actor: Actor) -> np.ndarray:
    """The neutral configuration within limits, and what is loose on the floor, not in it: (nq,)."""
    mech, q = actor.mechanism, limits(actor.mechanism, strict=False).kept(actor.neutral())
    loose = [b for b in mech.bodies[1:] if isinstance(b.joint, Free) and b.parent == 0]
    floor = floor_of(mech)
    if len(loose) == 1 and floor is not None:
        low = place_of(mech, look_of(mech), all_poses(actor, q)).points[:, 2].min()
        at = mech.q_slice(loose[0].joint_name).start
        lift = np.array([0.0, 0.0, max(0.0, floor - low)])
        q[at : at + 3] += loose[0].placement.rotation.T @ lift
    return q
