"""Plots of identifications, by matplotlib."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib import style
from matplotlib.figure import Figure

from ..viewer.output import write_figure
from .signals import joint_of

if TYPE_CHECKING:
    from .excitation import ExcitingTrajectory
    from .fit import Identification

__all__ = ["plot_excitation", "plot_identification"]

_MOST = 12


@style.context("hinge.look")
def plot_identification(found: Identification, path: str | Path | None = None) -> Figure:
    """Torques measured, explained and left over, a row for each of the first joints."""
    motion, robot = found.motion, found.robot
    shown = min(robot.nv, _MOST)
    t = np.arange(len(motion.tau)) if motion.t is None else motion.t
    figure = Figure(figsize=(9, 1.4 * shown + 1), layout="constrained")
    rows = figure.subplots(shown, 1, sharex=True, squeeze=False)[:, 0]
    for i, axes in enumerate(rows):
        tau, rest = motion.tau[:, i], found.residuals[:, i]
        axes.plot(t, tau, color="0.6", lw=1.5, label="measured")
        axes.plot(t, tau - rest, color="C0", lw=0.8, label="explained")
        axes.plot(t, rest, color="C3", lw=0.6, label="left over")
        axes.set_ylabel(joint_of(robot, i), fontsize="x-small")
    rows[0].set_title(f"{robot.name}: {100 * found.misfit:.2g} % of the torque left over")
    rows[0].legend(loc="upper right", fontsize="x-small", ncols=3)
    rows[-1].set_xlabel("sample" if motion.t is None else "time  [s]")
    if path is not None:
        write_figure(f"plot of an identification of {robot.name!r}", path, figure)
    return figure


@style.context("hinge.look")
def plot_excitation(motion: ExcitingTrajectory, path: str | Path | None = None) -> Figure:
    """Positions and rates of one period."""
    figure = Figure(figsize=(8, 5), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True)
    for axes, x, label in (
        (upper, motion.q, "q  [rad, m]"),
        (lower, motion.qd, "qd  [rad/s, m/s]"),
    ):
        axes.plot(motion.t, x, lw=1)
        axes.set_ylabel(label)
    upper.set_title(f"{motion.robot.name}: condition {motion.condition:.3g}")
    lower.set_xlabel("time  [s]")
    if path is not None:
        write_figure(f"plot of a motion of {motion.robot.name!r}", path, figure)
    return figure
