"""Where the frames of constraints are to each other, and how joints move them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...model.mechanism import Mechanism
from ..declare import algorithm
from ..kinematics import frame_pose
from .description import Constraint
from .rows import held, in_given_axes, solved_jacobian

__all__ = ["constraint_closure", "relative_poses"]


def relative_poses(mech: Mechanism, q: np.ndarray, constraints: Sequence[Constraint]) -> np.ndarray:
    """X_RL of each constraint's frames, `left` seen from `right`: (n, 4, 4)."""
    relative = [np.zeros((0, 4, 4))]
    for c in constraints:
        right, left = frame_pose(mech, q, c.right), frame_pose(mech, q, c.left)
        turn = right[:3, :3].T
        place = turn @ (left[:3, 3] - right[:3, 3])
        top = np.concatenate([turn @ left[:3, :3], place[:, None]], axis=1)
        relative.append(np.concatenate([top, [[0.0, 0.0, 0.0, 1.0]]])[None])
    return np.concatenate(relative)


@algorithm()
def constraint_closure(
    mech: Mechanism, q: np.ndarray, constraints: Sequence[Constraint]
) -> tuple[np.ndarray, np.ndarray]:
    """X_RL of each constraint's frames, `left` seen from `right` (n, 4, 4), and K (rows, nv)."""
    places = held(mech, mech.phi(q), constraints)
    K = in_given_axes(places, solved_jacobian(mech, q, places))
    return relative_poses(mech, q, constraints), K
