"""Stick figures that move: what the examples draw with."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib.style
import numpy as np

matplotlib.use("Agg")
matplotlib.style.use("hinge.look")

import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.animation import FuncAnimation, PillowWriter  # noqa: E402

__all__ = ["animate", "options", "save", "skeleton"]

# links and joints, as in pictures of robots
INK, ACCENT = "#333842", "#f26b21"


def options(about: str | None, arguments: Sequence[str] | None) -> argparse.Namespace:
    """--quick: a short run, few pictures; --out: the folder for pictures, here by default."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--quick", action="store_true", help="a short run with few pictures")
    parser.add_argument("--out", type=Path, default=Path("."), help="folder for the pictures")
    return parser.parse_args(arguments)


def skeleton(robot: Any, q: np.ndarray, tip: str) -> np.ndarray:
    """The origins of a chain's bodies and its tip: (T, bodies + 1, 3)."""
    bodies = robot.poses(q)[..., :3, 3]
    end = robot.frame_pose(q, tip)[..., None, :3, 3]
    return np.concatenate([bodies, end], axis=-2)


def animate(
    path: Path,
    chains: dict[str, np.ndarray],
    dress: Callable[[Any], None] = lambda axes: None,
    view: tuple[float, float] = (25.0, -60.0),
    zoom: float = 1.5,
) -> None:
    """Chains of points (T, n, 3) by title, side by side, as a GIF; dress: draws what is still.

    zoom: above 1.2 the corners of the box are cut off, for chains that keep away from them.
    """
    size, paper = (3.2 * len(chains), 3.2), "#f4f5f8"
    figure = plt.figure(figsize=size, dpi=100, facecolor=paper, layout="constrained")
    low = np.min([c.min(axis=(0, 1)) for c in chains.values()], axis=0)
    high = np.max([c.max(axis=(0, 1)) for c in chains.values()], axis=0)
    middle, reach = (low + high) / 2, (high - low).max() / 2 + 1e-3
    lines = []
    for i, (title, chain) in enumerate(chains.items()):
        axes = figure.add_subplot(1, len(chains), i + 1, projection="3d")
        axes.set(title=title, xlim=(middle[0] - reach, middle[0] + reach))
        axes.set(ylim=(middle[1] - reach, middle[1] + reach))
        axes.set(zlim=(middle[2] - reach, middle[2] + reach))
        axes.set_axis_off()
        axes.set_box_aspect(None, zoom=zoom)
        axes.view_init(*view)
        dress(axes)
        (line,) = axes.plot(*chain[0].T, "o-", color=INK, ms=6, lw=3.5, mfc=ACCENT, mew=0)
        (trace,) = axes.plot(*chain[:1, -1].T, color=ACCENT, lw=1.4, alpha=0.8)
        lines.append((line, trace, chain))

    def show(k: int) -> list[Any]:
        for line, trace, chain in lines:
            line.set_data_3d(*chain[k].T)
            trace.set_data_3d(*chain[: k + 1, -1].T)
        return []

    frames = len(next(iter(chains.values())))
    film, kept = FuncAnimation(figure, show, frames), {"facecolor": paper}
    film.save(path, PillowWriter(fps=12), savefig_kwargs=kept)
    plt.close(figure)
    print(f"wrote {path}")


def save(figure: Any, path: Path) -> None:
    """Write a figure and say so."""
    for axes in figure.axes:
        if axes.get_legend_handles_labels()[0]:
            axes.legend()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
    print(f"wrote {path}")
