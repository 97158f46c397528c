"""Loops that are to be closed from anywhere."""

from __future__ import annotations

import numpy as np

import hinge
from hinge import LoopConstraint, zoo

from .lines import Outcome, line

__all__ = ["loops_from_anywhere"]

_ROBOTS = {}
_AXES = [(3, 4, 5), (3, 5), (0, 1, 3, 4, 5), (0, 1, 2, 3, 4, 5), (5,)]
_STARTS = (0.0, 1e-300, 1e-8, 0.3, 3.0, 1e6, 1e100, np.nan, np.inf)


def _robot(rng: np.random.Generator) -> tuple[hinge.Robot, list[LoopConstraint]]:
    """One of a few trees, with one of a few loops."""
    seed, kind = int(rng.integers(4)), int(rng.integers(len(_AXES)))
    if (seed, kind) not in _ROBOTS:
        robot = zoo.tree(seed, 6)
        left, right = robot.frame_names[-1], robot.frame_names[3]
        _ROBOTS[seed, kind] = robot, [LoopConstraint(left, right, _AXES[kind])]
    return _ROBOTS[seed, kind]


@line("starts", figure="gap of what is called closed")
def loops_from_anywhere(rng: np.random.Generator) -> Outcome:
    """Loops closed from wild starts: what is called closed is, and held joints stay."""
    robot, loops = _robot(rng)
    sizes = rng.choice(_STARTS, size=(16, 1))
    with np.errstate(all="ignore"):
        q = np.array([robot.random_configuration(rng) for _ in sizes]) + sizes * rng.normal(
            size=(16, robot.nq)
        )
    chance = rng.choice([0.0, 0.3])
    held = [name for name in robot.joint_names if rng.random() < chance]
    metric = rng.choice(["mass", "plain"])
    found = robot.assemble(q, loops, rng.normal(size=robot.nv), hold=held, metric=metric)
    assert set(found.status.tolist()) <= {"closed", "open", "unfinished", "stuck"}
    closed = np.flatnonzero((found.status == "closed") | (found.status == "stuck"))
    worst = 0.0
    for i in closed:
        worst = max(worst, float(np.abs(robot.alg.constraint_error(found.q[i], loops)).max()))
        still = robot.mechanism.driven(held) > 0
        assert np.abs(found.moved[i][still]).max(initial=0.0) < 1e-6
    assert worst < 1e-9, (robot.name, loops, worst)
    return Outcome(len(q), worst, len(closed))
