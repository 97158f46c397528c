"""Plots of motions, by matplotlib."""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import style
from matplotlib.figure import Figure

from ..errors import ArgumentError
from ..viewer.output import write_figure
from .choice import chosen
from .curves import labels

if TYPE_CHECKING:
    from .trajectory import Trajectory

__all__ = ["plot_trajectory"]

_MOST_LABELS = 12


@style.context("hinge.look")
def plot_trajectory(motion: Trajectory, path: str | Path | None, sample: int) -> Figure:
    """Coordinates, rates and energies of a sample over time, one above the other."""
    where, count = f"plot of a motion of {motion.robot.name!r}", prod(motion.q.shape[1:-1])
    if not isinstance(sample, (int, np.integer)):
        raise ArgumentError(f"{where}: sample is {sample!r}; expected a number, of one sample")
    trajectory = chosen(motion, where, sample)
    robot, t = trajectory.robot, trajectory.t
    figure = Figure(figsize=(8, 8), layout="constrained")
    upper, middle, lower = figure.subplots(3, 1, sharex=True)
    _curves(upper, t, trajectory.q, labels(robot, robot.q_slice))
    _curves(middle, t, trajectory.qd, labels(robot, robot.v_slice))
    # the height of the origin means nothing, and would hide the exchange of energy
    start = trajectory.potential_energy[0]
    lower.plot(t, trajectory.kinetic_energy, label="kinetic")
    lower.plot(t, trajectory.potential_energy - start, label="potential, from the start")
    lower.plot(t, trajectory.energy - start, "--", color="0.5", label="total")
    title = robot.name if motion.q.ndim == 2 else f"{robot.name}, sample {sample} of {count}"
    upper.set(title=title, ylabel="q  [rad, m]")
    middle.set(ylabel="qd  [rad/s, m/s]")
    lower.set(xlabel="time  [s]", ylabel="energy  [J]")
    for axes in (upper, middle, lower):
        if axes.get_legend_handles_labels()[0]:
            axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize="small")
    if path is not None:
        write_figure(where, path, figure)
    return figure


def _curves(axes: Any, t: np.ndarray, values: np.ndarray, labels: list[str]) -> None:
    for i, label in enumerate(labels):
        axes.plot(t, values[:, i], label=label if len(labels) <= _MOST_LABELS else None)
