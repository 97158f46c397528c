"""A motion on the page: play, pause, scrub, speed, loop; a batch as ghosts; numbers over time."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..errors import ArgumentError
from .actor import MOST_DRAWN, all_poses
from .arrows import Arrows, check_arrows, of_bodies
from .puppet import Puppet

if TYPE_CHECKING:
    from .scene import Scene

__all__ = ["Curves", "Player"]

_RATE = 60.0
_MOST_POINTS = 500  # of a curve
_STEP = 1e-3  # s, of the slider
_PLOT = 0.15  # s between two marks of the time in a plot
_SPEEDS = {"0.1 ×": 0.1, "0.25 ×": 0.25, "0.5 ×": 0.5, "1 ×": 1.0, "2 ×": 2.0}
_COLORS = ("#f26b21", "#2563eb", "#16a34a", "#9333ea", "#dc2626", "#0891b2", "#ca8a04", "#64748b")


class Curves(NamedTuple):
    """Numbers over time, (T, n), and what each is called."""

    names: list[str]
    values: np.ndarray


def _each_time(scene: Scene, f_ext: Any, count: int) -> np.ndarray:
    """Forces on bodies for each of so many times: (T, n_bodies, 6)."""
    rows = scene.push.shape
    if np.shape(f_ext) not in (rows, (count, *rows)):
        raise ArgumentError(
            f"motion of {scene.actor.name!r}: f_ext has shape {np.shape(f_ext)}; expected {rows} "
            f"or {(count, *rows)}"
        )
    return np.broadcast_to(np.asarray(f_ext, dtype=float), (count, *rows))


class Player:
    """The clock of a motion: t (T,), q (T, …, nq), and what can be plotted of it."""

    def __init__(
        self,
        scene: Scene,
        t: np.ndarray,
        q: np.ndarray,
        curves: Mapping[str, Curves],
        f_ext: Any = None,
        forces: Any = None,
    ) -> None:
        self.scene, self.t = scene, t - t[0]
        self.f_ext = f_ext if f_ext is None else _each_time(scene, f_ext, len(t))
        where = f"motion of {scene.actor.name!r}"
        self.forces = check_arrows(where, forces, (len(t),))
        self.q = q.reshape(len(t), -1, q.shape[-1])[:, :MOST_DRAWN]
        self.poses = all_poses(scene.actor, self.q)
        self.curves = curves
        self.now, self.index, self._plotted = 0.0, -1, 0.0
        # held by whoever sets the time: the thread that lets it run, or a hand on the page
        self._clock = threading.RLock()
        mech, size = scene.actor.mechanism, scene.place.size
        self.ghosts = [
            Puppet(scene.server, mech, scene.look, size, f"ghost{i}")
            for i in range(1, self.q.shape[1])
        ]
        self._add_controls()
        self.seek(0.0)
        threading.Thread(target=self._run, daemon=True).start()

    @property
    def arrows(self) -> Arrows:
        """The forces on the first sample at all times, points and vectors (T, n, 3)."""
        if self.f_ext is None:
            return self.forces
        size = self.scene.place.size
        times = zip(self.poses[:, 0, 1:], self.f_ext, strict=True)
        points, vectors = zip(*(of_bodies(X, f, size) for X, f in times), strict=True)
        return Arrows(
            np.concatenate([points, self.forces.points], axis=1),
            np.concatenate([vectors, self.forces.vectors], axis=1),
        )

    def explain(self, caption: str) -> None:
        """Write above the controls what is to be seen."""
        with self.folder:
            self.scene.server.gui.add_markdown(caption, order=-1)

    def seek(self, now: float) -> None:
        """Show the motion at a time, s from its start."""
        with self._clock:
            self._put(now)
            self._mark()

    def _put(self, now: float) -> None:
        if now < self.now:
            self.scene.forget()
        self.now = float(np.clip(now, 0.0, self.t[-1]))
        index = int(np.searchsorted(self.t, self.now + 1e-9, side="right")) - 1
        if index != self.index:
            self.index = index
            if np.isfinite(self.poses[index, 0]).all():
                self.scene.show(
                    self.q[index, 0],
                    None if self.f_ext is None else self.f_ext[index],
                    [part[index] for part in self.forces],
                )
            for ghost, X in zip(self.ghosts, self.poses[index, 1:], strict=True):
                ghost.pose(X)

    def _add_controls(self) -> None:
        gui, end = self.scene.server.gui, float(max(self.t[-1], 1e-6))
        self.folder = gui.add_folder("Motion", order=-1)
        with self.folder:
            self.button = gui.add_button("Pause")
            self.slider = gui.add_slider("Time", 0.0, end, min(_STEP, end), 0.0)
            self.speed = gui.add_dropdown("Speed", tuple(_SPEEDS), initial_value="1 ×")
            self.loop = gui.add_checkbox("Loop", True)
            self.choice = gui.add_dropdown("Plot", ("nothing", *self.curves))
            self.plot: Any = None
        self.playing = True
        self.button.on_click(lambda _: self.play(not self.playing))
        self.slider.on_update(self._scrubbed)
        self.choice.on_update(lambda _: self._choose())

    def play(self, on: bool) -> None:
        """Let the time run, or hold it; at the end it starts again."""
        with self._clock:
            if on and self.now >= self.t[-1]:
                self.seek(0.0)
            self.playing = on
            self.button.label = "Pause" if on else "Play"

    def _scrubbed(self, event: Any) -> None:
        if event.client is not None:
            with self._clock:
                self.play(False)
                self.seek(event.target.value)

    def _run(self) -> None:
        last = time.monotonic()
        while self.scene.running:
            time.sleep(1 / _RATE)
            passed, last = time.monotonic() - last, time.monotonic()
            with self._clock:
                if self.playing:
                    self._advance(passed * _SPEEDS[self.speed.value])

    def _advance(self, passed: float) -> None:
        now = self.now + passed
        if now > self.t[-1] and self.loop.value:
            now = 0.0
        self._put(now)
        if now > self.t[-1]:
            self.play(False)
        if time.monotonic() - self._plotted > _PLOT:
            self._mark()

    # plots

    def _choose(self) -> None:
        if self.plot is not None:
            self.plot.remove()
            self.plot = None
        if self.choice.value in self.curves:
            series: list[dict[str, Any]] = [{"label": "t"}]
            for i, name in enumerate(self.curves[self.choice.value].names):
                series.append({"label": name, "stroke": _COLORS[i % len(_COLORS)], "width": 2})
            now = {"label": "now", "stroke": "#111827", "points": {"show": True, "size": 9}}
            values = self.curves[self.choice.value].values
            margin = 0.05 * np.ptp(values) + 1e-6
            y = {"range": (float(values.min() - margin), float(values.max() + margin))}
            gui: Any = self.scene.server.gui
            with self.folder:
                self.plot = gui.add_uplot(
                    self._data(), (*series, now), aspect=1.4, scales={"x": {"time": False}, "y": y}
                )

    def _mark(self) -> None:
        self._plotted = time.monotonic()
        self.slider.value = round(self.now, 3)
        if self.plot is not None:
            self.plot.data = self._data()

    def _data(self) -> tuple[np.ndarray, ...]:
        """Times, curves, and a point on the first curve where the time is."""
        _, values = self.curves[self.choice.value]
        every = -(-len(self.t) // _MOST_POINTS)
        t, values = self.t[::every], values[::every]
        now = np.full(len(t), np.nan)
        now[np.abs(t - self.now).argmin()] = values[np.abs(t - self.now).argmin(), 0]
        return (t, *np.ascontiguousarray(values.T), now)
