"""Some samples of a motion, with the numbers of the mechanism that are theirs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ArgumentError
from ..specialize.arrays import array_shape
from .dense import Crossings

if TYPE_CHECKING:
    from .trajectory import Trajectory

__all__ = ["chosen"]


def chosen(
    motion: Trajectory, where: str, which: int | Sequence[int], most: int | None = None
) -> Trajectory:
    """The motion of one sample, or of several (T, n, …), counted through all leading axes.

    most: how many may be asked for.
    """
    robot, lead = motion.robot, motion.q.shape[1:-1]
    count = prod(lead)
    one = isinstance(which, (int, np.integer))
    pick = _checked(where, which, [which] if one else which, count, most)
    at: Any = pick[0] if one else pick

    def numbers(name: str, x: Any) -> np.ndarray:
        own = array_shape(robot.mechanism, name)
        return np.broadcast_to(x, (*lead, *own)).reshape(count, *own)[at]

    def rows(x: np.ndarray | None, times: bool) -> Any:
        if x is None:
            return None
        own = x.shape[times + len(lead) :]
        return x.reshape(len(x), count, *own)[:, at] if times else x.reshape(count, *own)[at]

    timed = {n: rows(getattr(motion, n), True) for n in ("q", "qd", "tau", "forces", "residual")}
    total = {n: rows(getattr(motion, n), False) for n in ("taken", "rejected")}
    kept = motion.kept
    kept = kept if kept is None else type(kept)(*(rows(x, False) for x in kept))
    own = {n: numbers(n, x) for n, x in robot._numbers.items()}
    events = tuple(_of(x, pick) for x in motion.events)
    robot = robot._with_numbers(own) if own else robot
    return replace(motion, robot=robot, **timed, **total, kept=kept, events=events)


def _checked(where: str, which: Any, several: Any, count: int, most: int | None) -> list[int]:
    """Samples that there are, and not too many of them."""
    try:
        found = [int(i) for i in several if i == int(i)]
        sound = len(found) == len(several) > 0 and all(-count <= i < count for i in found)
    except (TypeError, ValueError):
        found, sound = [], False
    if not sound:
        raise ArgumentError(
            f"{where}: sample is {which!r}; expected numbers from 0 to {count - 1}, one or several"
        )
    if most is not None and len(found) > most:
        raise ArgumentError(
            f"{where}: {len(found)} samples; expected at most {most}, one and {most - 1} ghosts"
        )
    return [i % count for i in found]


def _of(event: Crossings, pick: list[int]) -> Crossings:
    """Where an event happened in some samples, numbered anew."""
    own = [np.flatnonzero(event.sample == i) for i in pick]
    at = np.concatenate(own)
    number = np.repeat(np.arange(len(pick)), [len(x) for x in own])
    return Crossings(event.t[at], event.q[at], event.qd[at], number)
