"""To follow a hand: the configuration near the last one that brings a frame near to a pose."""

from __future__ import annotations

import numpy as np

from ..algorithms.tasks import Task
from ..model.joints import Free
from ..model.mechanism import Mechanism
from .actor import Actor

__all__ = ["reach"]

_STEPS = 12
_TURNS = 0.01  # what a turn counts beside a place, where both cannot be had


def reach(actor: Actor, q: np.ndarray, frame: str, target: np.ndarray) -> np.ndarray:
    """Some steps from q towards X_WF = target (4, 4), within limits: (nq,).

    A free base stays where it is, unless it is what is moved.
    """
    tasks = Task(frame, "position"), Task(frame, "orientation", weight=_TURNS)
    held = _held(actor.mechanism, frame)
    given = {"starts": 1, "iterations": _STEPS, "hold": held}
    return actor.inverse_kinematics(tasks, (target, target), q, **given).q


def _held(mech: Mechanism, frame: str) -> list[str]:
    """The joints of free bases, unless nothing else carries the frame."""
    bodies = mech.bodies
    chain = [k for _, k in mech.ancestors(mech.frame(frame).body)]
    free = [k for k in chain if isinstance(bodies[k].joint, Free)]
    return [] if chain == free else [bodies[k].joint_name for k in free]
