"""Configurations to show a robot in."""

from __future__ import annotations

import numpy as np

from ..model.joints import Free
from ..model.mechanism import Mechanism
from .actor import Actor, all_poses, place_of
from .look import floor_of, look_of

__all__ = ["standing", "within_limits"]


def standing(actor: Actor) -> np.ndarray:
    """The neutral configuration within limits, and what is loose on the floor, not in it: (nq,)."""
    mech, q = actor.mechanism, within_limits(actor.mechanism, actor.neutral())
    loose = [b for b in mech.bodies[1:] if isinstance(b.joint, Free) and b.parent == 0]
    floor = floor_of(mech)
    if len(loose) == 1 and floor is not None:
        low = place_of(mech, look_of(mech), all_poses(actor, q)).points[:, 2].min()
        at = mech.q_slice(loose[0].joint_name).start
        lift = np.array([0.0, 0.0, max(0.0, floor - low)])
        q[at : at + 3] += loose[0].placement.rotation.T @ lift
    return q


def within_limits(mech: Mechanism, q: np.ndarray) -> np.ndarray:
    """q with every coordinate that has limits inside them."""
    q = np.array(q)
    for body in mech.bodies[1:]:
        if body.joint.mimic is None and body.joint.nq == body.joint.nv:
            at = mech.q_slice(body.joint_name)
            q[at] = np.clip(q[at], body.joint.lower, body.joint.upper)
    return q
