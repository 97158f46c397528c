"""The trajectory that a simulation leaves: to be read, plotted, drawn and viewed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ArgumentError
from ..robot import Robot
from .dense import Crossings
from .ground import Ground

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..viewer.scene import Scene

__all__ = ["Trajectory"]

_LOOKS = 50  # configurations of a motion by which the camera is placed


@dataclass(frozen=True, eq=False)
class Trajectory:
    """What a simulation saw at each time: t (T,), q (T, …, nq), qd and tau (T, …, nv).

    events: where each that was asked for happened.  taken, rejected: how many steps of each sample
    an adaptive method took, and how many it took back.  On a ground: forces (T, …, points, 3) on
    its points in world axes, of a rigid one those of the step that led there; residual (T, …): by
    how much the solution of that step was still changing the velocity of a point, in m/s.
    kept: what was reduced over all steps, a named tuple of what was asked for.
    """

    robot: Robot
    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    tau: np.ndarray
    events: tuple[Crossings, ...] = ()
    taken: np.ndarray | None = None
    rejected: np.ndarray | None = None
    ground: Ground | None = None
    forces: np.ndarray | None = None
    residual: np.ndarray | None = None
    kept: Any = None

    @property
    def contact_positions(self) -> np.ndarray:
        """Where the points of the ground were nearest to it: (T, …, points, 3), world."""
        if self.ground is None:
            raise ArgumentError(
                f"contact_positions of a motion of {self.robot.name!r}: it had no ground"
            )
        return self.ground.positions(self.robot, self.q)

    @cached_property
    def kinetic_energy(self) -> np.ndarray:
        """(T, …), J."""
        return self.robot.kinetic_energy(self.q, self.qd)

    @cached_property
    def potential_energy(self) -> np.ndarray:
        """Of gravity and of the springs of joints: (T, …), J."""
        return self.robot.potential_energy(self.q) + self.robot.spring_energy(self.q)

    @property
    def energy(self) -> np.ndarray:
        """Kinetic plus potential: (T, …), J."""
        return self.kinetic_energy + self.potential_energy

    def frame_positions(self, frame: str) -> np.ndarray:
        """Where a frame's origin went: (T, …, 3), world."""
        return self.robot.frame_pose(self.q, frame)[..., :3, 3]

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw the motion and its energy; write it to the path (SVG, PNG, PDF) if one is given."""
        if self.q.ndim != 2:
            raise ArgumentError(
                f"plot draws one trajectory; this one is a batch of shape {self.q.shape[1:-1]}"
            )
        from .plotting import plot_trajectory

        return plot_trajectory(self, path)

    def draw(self, path: str | Path, size: tuple[int, int] = (800, 600)) -> None:
        """Write the motion as a film, GIF or MP4, or as an HTML page that plays it, by the ending.

        Of a batch all but the first are ghosts.  HTML needs `hinge[view]`.
        """
        from ..viewer.output import FILMS, PAGES, check_ending, film, write_film

        where = f"draw of a motion of {self.robot.name!r}"
        if check_ending(where, path, (*FILMS, *PAGES)) in PAGES:
            from ..viewer.page import write_page

            write_page(path, self.robot, self.t, self.q)
        else:
            write_film(path, film(self.robot, self.t, self.q, size))

    def view(
        self,
        host: str = "127.0.0.1",
        port: int = 8080,
        browser: bool = True,
        f_ext: ArrayLike | None = None,
        forces: Sequence[ArrayLike] | None = None,
    ) -> Scene:
        """Open a page that plays the motion, a batch as ghosts; needs `hinge[view]`.

        host, port, browser: as of `robot.view`.  Forces become arrows: f_ext on bodies in their
        axes, (n_bodies, 6) or (T, n_bodies, 6); forces: points and vectors, each (T, n, 3), world,
        those of the ground unless given.
        """
        from ..viewer.scene import Scene
        from .curves import curves

        if forces is None and self.ground is not None and self.forces is not None:
            first = (slice(None), *(0,) * (self.q.ndim - 2))
            forces = self.ground.positions(self.robot, self.q[first]), self.forces[first]
        some = self.q[:: -(-len(self.t) // _LOOKS)]
        scene = Scene(self.robot, self.q[(0,) * (self.q.ndim - 1)], host, port, browser, some)
        try:
            scene.play(self.t, self.q, curves(self), f_ext, forces)
        except ArgumentError:
            scene.close()
            raise
        return scene
