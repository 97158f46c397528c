"""Plots of motions, by matplotlib."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import style
from matplotlib.figure import Figure

from .curves import labels

if TYPE_CHECKING:
    from .trajectory import Trajectory

__all__ = ["plot_trajectory"]

_MOST_LABELS = 12


@style.context("hinge.look")
def plot_trajectory(trajectory: Trajectory, path: str | Path | None = None) -> Figure:
    """Coordinates, rates and energies over time, one above the other."""
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
    upper.set(title=robot.name, ylabel="q  [rad, m]")
    middle.set(ylabel="qd  [rad/s, m/s]")
    lower.set(xlabel="time  [s]", ylabel="energy  [J]")
    for axes in (upper, middle, lower):
        if axes.get_legend_handles_labels()[0]:
            axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize="small")
    if path is not None:
        figure.savefig(path)
    return figure


def _curves(axes: Any, t: np.ndarray, values: np.ndarray, labels: list[str]) -> None:
    for i, label in enumerate(labels):
        axes.plot(t, values[:, i], label=label if len(labels) <= _MOST_LABELS else None)
