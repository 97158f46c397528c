"""The trajectory that a simulation leaves: to be read, plotted, drawn and viewed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ArgumentError
from ..robot import Robot
from .choice import chosen
from .dense import Crossings
from .ground import Ground
from .summary import in_a_line, in_words

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..viewer.scene import Scene

__all__ = ["Trajectory"]

_LOOKS = 50  # configurations of a motion by which the camera is placed


@dataclass(frozen=True, eq=False, repr=False)
class Trajectory:
    """What a simulation saw at each time: t (T,), q (T, …, nq), qd and tau (T, …, nv).

    tau: the joint forces that acted, cut off at the effort limits if limits acted.  events: where
    each that was asked for happened.  taken, rejected: how many steps of each sample an adaptive
    method took, and how many it took back.  On a ground: forces (T, …, points, 3) on its points in
    world axes, of a rigid one those of the step that led there; residual (T, …): by how much the
    solution of that step was still changing the velocity of a point, in m/s.  kept: what was
    reduced over all steps, a named tuple of what was asked for.
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

    def samples(self, which: int | Sequence[int]) -> Trajectory:
        """The motion of one sample of a batch, or of several, counted through all leading axes."""
        return chosen(self, f"samples of a motion of {self.robot.name!r}", which)

    def save(self, path: str | Path) -> None:
        """Write the motion as arrays (.npz), or one that is no batch as a table (.csv).

        Either has t, q, qd and tau; arrays also energies, contact forces and counts of steps.
        Neither has events, nor what was kept on the way.
        """
        from .storage import write_motion

        write_motion(self, path)

    @classmethod
    def load(cls, robot: Robot, path: str | Path) -> Trajectory:
        """The motion of a robot from a file that `save` wrote."""
        from .storage import read_motion

        t, rest = read_motion(robot, path)
        return cls(robot, t, **rest)

    def plot(self, path: str | Path | None = None, sample: int = 0) -> Figure:
        """Draw the motion and its energy; write it to the path (SVG, PNG, PDF) if one is given.

        sample: which of a batch.
        """
        from .plotting import plot_trajectory

        return plot_trajectory(self, path, sample)

    def draw(
        self,
        path: str | Path,
        size: tuple[int, int] = (800, 600),
        sample: int | Sequence[int] = 0,
    ) -> None:
        """Write the motion as a film, GIF or MP4, or as an HTML page that plays it, by the ending.

        sample: which of a batch is drawn; of several the first, and up to seven others as ghosts.
        HTML needs `hinge[view]`.
        """
        from ..viewer.actor import MOST_DRAWN
        from ..viewer.output import FILMS, PAGES, check_ending, film, write_film

        where = f"draw of a motion of {self.robot.name!r}"
        page = check_ending(where, path, (*FILMS, *PAGES)) in PAGES
        seen = chosen(self, where, sample, MOST_DRAWN)
        if page:
            from ..viewer.page import write_page

            write_page(where, path, seen.robot, seen.t, seen.q)
        else:
            write_film(where, path, film(seen.robot, seen.t, seen.q, size))

    def view(
        self,
        host: str = "127.0.0.1",
        port: int = 8080,
        browser: bool = True,
        f_ext: ArrayLike | None = None,
        forces: Sequence[ArrayLike] | None = None,
        sample: int | Sequence[int] | None = None,
    ) -> Scene:
        """Open a page that plays the motion; needs `hinge[view]`.

        host, port, browser: as of `robot.view`.  Forces become arrows: f_ext on bodies in their
        axes, (n_bodies, 6) or (T, n_bodies, 6); forces: points and vectors, each (T, n, 3), world,
        those of the ground unless given.  sample: which of a batch; of several the first, and up to
        seven others as ghosts; None for the first ones.
        """
        from ..viewer.actor import MOST_DRAWN
        from ..viewer.scene import Scene
        from .curves import curves

        count = prod(self.q.shape[1:-1])
        which = range(min(count, MOST_DRAWN)) if sample is None else sample
        seen = chosen(self, f"view of a motion of {self.robot.name!r}", which, MOST_DRAWN)
        first = seen if seen.q.ndim == 2 else seen.samples(0)
        if forces is None and first.ground is not None and first.forces is not None:
            forces = first.contact_positions, first.forces
        some = seen.q[:: -(-len(self.t) // _LOOKS)]
        scene = Scene(first.robot, first.q[0], host, port, browser, some)
        try:
            scene.play(seen.t, seen.q, curves(first), f_ext, forces)
        except ArgumentError:
            scene.close()
            raise
        return scene

    def __repr__(self) -> str:
        return in_a_line(self)

    def __str__(self) -> str:
        return in_words(self)
