"""How far a frame can get, whatever the joints do: bounds that prove a target out of reach.

From the point P where the first joint on the way to a frame F sits, fixed in the world, the origin
of F is a sum of vectors: the offsets s_i between joints that turn, of fixed lengths, with slides at
the middle of their ranges, and what slides move from there, t_j at most.  Whatever the directions,

    2 max |s_i| − Σ |s_i| − Σ t_j   ≤   |p_F − P|   ≤   Σ |s_i| + Σ t_j                         (1)

A pose says also where the last joint's origin is, if that joint only turns: it has its own (1).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..algebra.spatial import Transform
from ..model.joint import Joint
from ..model.mechanism import Frame, Mechanism
from .configuration import limits
from .tasks import TARGETS, Task

__all__ = ["out_of_reach"]


class _Shell(NamedTuple):
    """All that (1) leaves for a point: least ≤ |p − middle| ≤ most."""

    middle: np.ndarray
    least: float
    most: float

    def misses(self, p: np.ndarray, tolerance: float) -> np.ndarray:
        """Whether points (…, 3) are outside by more than a tolerance and rounding."""
        far = np.linalg.norm(p - self.middle, axis=-1)
        slack = tolerance + 1e-12 * (self.most + np.abs(self.middle).max())
        return (far > self.most + slack) | (far < self.least - slack)


def out_of_reach(mech: Mechanism, task: Task, target: np.ndarray, tolerance: float) -> np.ndarray:
    """Whether targets (…, *shape) of a task are proven to be out of reach: (…,)."""
    lead = target.shape[: target.ndim - len(TARGETS[task.kind])]
    if task.frame is None or task.kind not in ("pose", "position"):
        return np.zeros(lead, dtype=bool)
    F = mech.frame(task.frame)
    if task.kind == "position":
        return _shell(mech, F).misses(target, tolerance)
    R, p, body = target[..., :3, :3], target[..., :3, 3], mech.bodies[F.body]
    missed = _shell(mech, F).misses(p, tolerance)
    if F.body and _slide(body.joint, np.full(body.joint.nv, np.inf)) == 0:
        # the last joint's origin, as far from a target within the tolerance as its arm is long
        arm = (body.offset @ F.placement).inv.translation
        joint = _shell(mech, Frame("", body.parent, body.placement))
        missed |= joint.misses(p + R @ arm, tolerance * (1 + float(np.linalg.norm(arm))))
    return missed


def _shell(mech: Mechanism, F: Frame) -> _Shell:
    """What (1) leaves for the origin of a frame."""
    X, fixed, slides = F.placement, [0.0], 0.0
    for _, k in mech.ancestors(F.body):
        body, (middle, half) = mech.bodies[k], _range(mech, k)
        X = body.offset @ X
        if _turns(body.joint):
            fixed.append(float(np.linalg.norm(X.translation)))
            X, half = Transform(), half + abs(middle)
        elif np.isfinite(half).all():
            X = Transform(*body.joint.pose(middle)) @ X
        slides += _slide(body.joint, half)
        X = body.placement @ X
    total = sum(fixed)
    return _Shell(np.asarray(X.translation), 2 * max(fixed) - total - slides, total + slides)


def _turns(joint: Joint) -> bool:
    """Whether a joint changes directions, as far as is known."""
    constant = type(joint).H_slope is Joint.H_slope
    return not constant or bool(joint.H(joint.neutral())[:, :3].any())


def _slide(joint: Joint, far: np.ndarray) -> float:
    """How far a joint takes the origin of what it carries, if its coordinates go so far from 0."""
    along = np.linalg.norm(joint.H(joint.neutral())[:, 3:], axis=1)
    if type(joint).H_slope is not Joint.H_slope:
        return np.inf
    return float(along[along > 0] @ far[along > 0])


def _range(mech: Mechanism, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The middle of the range of each DoF of a joint, and how far it goes from there."""
    bounds, joint = limits(mech), mech.bodies[k].joint
    ends = np.full((2, mech.nq), np.inf) * [[-1], [1]]
    ends[:, bounds.place[bounds.bounded]] = np.array(bounds[:2])[:, bounds.bounded]
    low, high = np.sort([mech.coordinates(q)[k] for q in ends], axis=0)
    if joint.nq != joint.nv or not np.isfinite([low, high]).all():
        return np.zeros(joint.nv), np.full(joint.nv, np.inf)
    return (low + high) / 2, (high - low) / 2
