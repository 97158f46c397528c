"""To follow a hand: the configuration near the last one that brings a frame near to a pose."""

from __future__ import annotations

import numpy as np

from ..algebra.rotation import quaternion_from_matrix, quaternion_log
from ..model.joints import Free
from ..model.mechanism import Mechanism
from .actor import Actor
from .stance import within_limits

__all__ = ["reach"]

_STEPS = 12
_DAMPING = 0.01  # of the pseudoinverse, so that out of reach nothing jumps
_PER_TURN = 0.1  # m: what a radian is worth, where place and direction cannot both be had
_FARTHEST = 0.3  # rad or m of a joint in a step


def reach(actor: Actor, q: np.ndarray, frame: str, target: np.ndarray) -> np.ndarray:
    """A few damped steps towards X_WF = target (4, 4), within limits: (nq,).

    A free base stays where it is, unless it is what is moved.
    """
    mech = actor.mechanism
    moved, weights = _moved(mech, frame), np.repeat([_PER_TURN, 1.0], 3)
    for _ in range(_STEPS):
        X = actor.frame_pose(q, frame)
        turn = quaternion_log(quaternion_from_matrix(target[:3, :3] @ X[:3, :3].T))
        error = weights * np.concatenate([turn, target[:3, 3] - X[:3, 3]])
        J = weights[:, None] * actor.jacobian(q, frame) * moved
        dv = J.T @ np.linalg.solve(J @ J.T + _DAMPING**2 * np.eye(6), error)
        dv *= min(1.0, _FARTHEST / max(np.abs(dv).max(initial=0.0), 1e-12))
        q = within_limits(mech, actor.integrate(q, dv))
    return q


def _moved(mech: Mechanism, frame: str) -> np.ndarray:
    """1 for each DoF that may move to bring the frame along, (nv,)."""
    bodies = mech.bodies
    chain = [k for _, k in mech.ancestors(mech.frame(frame).body)]
    free = [k for k in chain if isinstance(bodies[k].joint, Free)]
    mask = np.zeros(mech.nv)
    for k in chain if chain == free else [k for k in chain if k not in free]:
        mask[mech.v_slice(bodies[k].joint_name)] = 1.0
    return mask
