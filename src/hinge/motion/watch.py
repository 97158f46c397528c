"""What is said of a motion under constraints that cannot be right, or that has no end."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..algorithms.constrained.closure import relative_poses
from ..algorithms.constrained.description import Constraint, LoopConstraint
from ..errors import OpenLoopWarning, warn_of_model
from ..robot import Robot
from ..robot.gaps import gaps, units_of, worst_gap

__all__ = ["rank_at", "warn_of_lost_loops"]

# of the energy that moves, what may be lost; of a radian and of lengths, what may come open
_LOST, _OPEN = 0.1, 1e-2
# what a start may be off for that to be judged, in rad, rad/s and lengths
_CLOSED = 1e-3


def warn_of_lost_loops(
    robot: Robot,
    where: str,
    constraints: Sequence[Constraint],
    q: np.ndarray,
    qd: np.ndarray,
    conservative: bool,
) -> None:
    """Say if loops that were closed at the start (T, …, nq) are open at the end, or energy jumped.

    Of a batch its first sample is looked at.
    """
    loops = tuple(c for c in constraints if isinstance(c, LoopConstraint) and c.stiffness)
    ends = [x.reshape(len(x), -1, x.shape[-1])[[0, -1], :1][:, 0] for x in (q, qd)]
    if not loops or not q.size or not all(np.isfinite(x).all() for x in ends):
        return
    units = units_of(robot.mechanism, loops)
    before, after = (gaps(loops, relative_poses(robot.mechanism, x, loops)) for x in ends[0])
    slip = robot.alg.constraint_jacobian(ends[0][0], loops) @ ends[1][0]
    if not (np.abs(before) + np.abs(slip) < _CLOSED * units).all():
        return
    if (np.abs(after) > _OPEN * units).any():
        said = f"a loop has come open: {worst_gap(loops, after)}"
    elif conservative and _lost(robot, *ends) > _LOST:
        said = f"{_lost(robot, *ends):.0%} of the energy that moves has come or gone"
    else:
        return
    warn_of_model(
        f"{where}: {said}: the steps are too long for these loops, most of all at dead points; "
        f"take shorter ones",
        OpenLoopWarning,
    )


def _lost(robot: Robot, q: np.ndarray, qd: np.ndarray) -> float:
    """By how much the energy changes from start to end, beside the largest part of it."""
    pairs = list(zip(q, qd, strict=True))
    kinetic = np.array([float(robot.alg.kinetic_energy(x, v)) for x, v in pairs])
    potential = np.array(
        [float(robot.alg.potential_energy(x) + robot.alg.spring_energy(x)) for x in q]
    )
    most = max(kinetic.max(), abs(np.ptp(potential)))
    return float(abs(np.ptp(kinetic + potential)) / most) if most else 0.0


def rank_at(robot: Robot, constraints: Sequence[Constraint], q: np.ndarray) -> str:
    """Where the constraints stand there, in words; nothing without any."""
    if not constraints:
        return ""
    K = robot.alg.constraint_jacobian(q, tuple(constraints))
    singular = np.linalg.svd(K, compute_uv=False)
    rank = int((singular > 1e-3 * singular.max(initial=0.0)).sum())
    names = ", ".join(f"{c.left!r} on {c.right!r}" for c in constraints[:3])
    return (
        f"; before that the rows of {names}{' …' if len(constraints) > 3 else ''} have rank {rank} "
        f"of {len(K)} to three digits, at q = {np.array2string(q, precision=4, threshold=12)}"
    )
