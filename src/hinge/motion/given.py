"""What a simulation is given: arrays that fit together, and how many steps it takes."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ArgumentError
from ..robot import Robot
from ..runtime.arguments import broadcast, checked
from ..runtime.check import check_number

__all__ = ["refuse_a_series", "series_of", "step_count", "together"]

# of how many steps the rounding of a duration may make one more
_SAME = 1e-9
# steps, whose times alone fill 80 GB
_MOST = 1e10
# how many steps are looked at together
_LOOK = 1 << 16


def series_of(where: str, robot: Robot, taus: ArrayLike | None) -> np.ndarray | None:
    """The forces of each step, if there are any."""
    if taus is None:
        return None
    argument = robot._argument("tau", taus)._replace(name="taus")
    # as it is if it can be: it may be larger than memory, and mapped from a file
    (series,), _ = checked(where, [argument], robot.dtype)
    if series.ndim < 2 or not len(series):
        raise ArgumentError(
            f"{where}: taus has shape {series.shape}; expected (steps, …, {robot.nv}), joint "
            f"forces for each step"
        )
    return series


def refuse_a_series(
    where: str, robot: Robot, given: Mapping[str, Any], duration: float | None, steps: int
) -> None:
    """Forces of each step that are given as constant ones, as far as one can tell: of all that is
    given they alone have rows, and as many as there are steps, or nothing says how many those are.
    """
    own = {"q": 1, "qd": 1, "tau": 1, "f_ext": 2, "gravity": 1, "inertia": 2, "placement": 2}
    try:
        rows = [n for n, x in given.items() if np.ndim(x) > own[n]]
    except ValueError:  # ragged, which is said where arrays are checked
        return
    shape = np.shape(given["tau"]) if rows == ["tau"] else ()
    if len(shape) == 2 and shape[1] == robot.nv and (duration is None or shape[0] == steps):
        n = shape[0]
        raise ArgumentError(
            f"{where}: tau has shape {shape}, constant forces for {n} motions from one start; for "
            f"the forces of {n} steps give taus, for {n} motions a q of shape ({n}, {robot.nq}) too"
        )


def step_count(
    where: str, robot: Robot, dt: float, duration: float | None, series: np.ndarray | None
) -> tuple[int, float]:
    """How many steps there are, and how long the last is: the motion ends at the duration."""
    if duration is None and series is not None:
        return len(series), dt
    length = check_number(where, "duration", 1.0 if duration is None else duration, above=0)
    if not length / dt <= _MOST:
        raise ArgumentError(
            f"{where}: duration = {length:g} in steps of dt = {dt:g} are more than {_MOST:g} "
            f"steps; expected seconds of both"
        )
    steps, whole = ceil(length / dt), round(length / dt)
    # as many as there are but for rounding: 0.3 s are three steps of 0.1 s
    even = abs(length / dt - whole) <= _SAME * whole
    steps, last = (whole, dt) if even else (steps, length - (steps - 1) * dt)
    if series is not None and len(series) != steps:
        raise ArgumentError(
            f"{where}: taus has shape {series.shape}; expected ({steps}, …, {robot.nv}), joint "
            f"forces for each step of dt = {dt} in duration = {length}; leave out duration for as "
            f"many steps as there are taus"
        )
    return steps, last


def together(
    where: str, robot: Robot, given: Mapping[str, Any], series: np.ndarray | None
) -> dict[str, np.ndarray]:
    """The arguments, broadcast; the forces of each step along with those of the first."""
    arguments = [robot._argument(n, x) for n, x in given.items()]
    if series is None:
        return broadcast(where, arguments)
    first = robot._argument("tau", series[0])._replace(name="taus")
    found = broadcast(where, [*arguments, first])
    if found["q"].ndim == 1:
        _refuse_forces_that_are_not_finite(where, series)
    return {**found, "taus": series}


def _refuse_forces_that_are_not_finite(where: str, series: np.ndarray) -> None:
    """Of a single run: (steps, nv), so many of them at a time."""
    for begin in range(0, len(series), _LOOK):
        bad = np.argwhere(~np.isfinite(series[begin : begin + _LOOK]))
        if len(bad):
            step, entry = begin + bad[0, 0], bad[0, 1]
            raise ArgumentError(
                f"{where}: taus[{step}, {entry}] is {series[step, entry]}; expected finite numbers"
            )
