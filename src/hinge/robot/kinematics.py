"""Poses, velocities, accelerations, energy and momentum of a robot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, Unpack

import numpy as np
from numpy.typing import ArrayLike

from ..algorithms.inverse_kinematics import Rules
from ..runtime.check import check_number, check_whole
from .front import Front
from .goals import asked
from .method import Numbers, compiled
from .through_host import through_host

if TYPE_CHECKING:
    from ..algebra.spatial import Transform
    from ..algorithms.kinematics import Reference
    from ..algorithms.tasks import Kind, Task
    from .inverse_kinematics import InverseKinematics

__all__ = ["Kinematics"]


class Kinematics(Front):
    """How a robot moves, and the energy and momentum it then has."""

    @compiled()
    def poses(
        self, q: ArrayLike, out: np.ndarray | None = None, **numbers: Unpack[Numbers]
    ) -> np.ndarray:
        """X_WB of every body: (…, n_bodies, 4, 4)."""
        ...

    @compiled()
    def frame_pose(
        self, q: ArrayLike, frame: str, out: np.ndarray | None = None, **numbers: Unpack[Numbers]
    ) -> np.ndarray:
        """X_WF of a frame: (…, 4, 4)."""
        ...

    @compiled()
    def jacobian(
        self,
        q: ArrayLike,
        frame: str,
        reference: Reference = "aligned",
        out: np.ndarray | None = None,
        **numbers: Unpack[Numbers],
    ) -> np.ndarray:
        """J with J q̇ = (ω; v) of a frame: (…, 6, nv)."""
        ...

    @compiled()
    def frame_velocity(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        frame: str,
        reference: Reference = "aligned",
        out: np.ndarray | None = None,
        **numbers: Unpack[Numbers],
    ) -> np.ndarray:
        """The velocity (ω; v) of a frame: (…, 6)."""
        ...

    @compiled()
    def frame_acceleration(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        frame: str,
        reference: Reference = "aligned",
        out: np.ndarray | None = None,
        **numbers: Unpack[Numbers],
    ) -> np.ndarray:
        """J q̈ + J̇ q̇, the rate of `frame_velocity` in the same reference: (…, 6)."""
        ...

    @compiled()
    def velocity_product_acceleration(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        frame: str,
        reference: Reference = "aligned",
        out: np.ndarray | None = None,
        **numbers: Unpack[Numbers],
    ) -> np.ndarray:
        """J̇ q̇, the acceleration of a frame at q̈ = 0: (…, 6)."""
        ...

    @through_host
    def inverse_kinematics(
        self,
        frame: str | Task | Sequence[str | Task],
        target: ArrayLike | Transform | Sequence[ArrayLike | Transform],
        q0: ArrayLike | None = None,
        task: Kind | None = None,
        tolerance: float | None = None,
        starts: int = 100,
        iterations: int = 100,
        posture: ArrayLike | None = None,
        hold: Sequence[str] = (),
        seed: int = 0,
        **numbers: Unpack[Numbers],
    ) -> InverseKinematics:
        """Configurations within the limits that bring frames to targets: (…, nq).

        frame, target: a frame and its pose (…, 4, 4) or point (…, 3); with task="orientation",
        "direction" or "position" a rotation (…, 3, 3), a vector (…, 3) that the frame's z axis is
        to point along, or a pose of which only the place counts.  Or lists of frames, or of
        `hinge.Task`, and of as many targets.
        q0: where to start, (…, nq); if nothing is found from there, or without it, from `starts`
        places at most, the same for the same seed, `iterations` steps from each at most.
        tolerance: of each task, in rad and m; 1e-9, in single precision 1e-4.
        posture: q that is preferred where the tasks leave a choice; hold: joints that stay.
        The result says how it ended in `.status`: "reached", "not found" or "unreachable".
        """
        from .inverse_kinematics import searched

        where = f"inverse_kinematics of {self.name!r}"
        self._refuse(where, numbers)
        ask = asked(self, where, frame, target, task, q0, posture, hold)
        rules = self._rules(where, tolerance, starts, iterations)
        return searched(self, ask, rules, check_whole(where, "seed", seed, above=-1))

    @through_host
    def follow(
        self,
        frame: str | Task | Sequence[str | Task],
        target: ArrayLike | Sequence[ArrayLike],
        q0: ArrayLike | None = None,
        task: Kind | None = None,
        tolerance: float | None = None,
        iterations: int = 8,
        posture: ArrayLike | None = None,
        hold: Sequence[str] = (),
        **numbers: Unpack[Numbers],
    ) -> InverseKinematics:
        """Configurations along paths, each near the last: (steps, …, nq), in one kernel.

        As `inverse_kinematics`, with targets (steps, …, 4, 4) or (steps, …, 3).  From q0, or from
        an answer for the first target, every target is approached from the answer before it, in
        `iterations` steps at most: where one cannot be followed, the status of that step says so.
        """
        from .inverse_kinematics import followed, searched

        where = f"follow of {self.name!r}"
        self._refuse(where, numbers)
        ask = asked(self, where, frame, target, task, q0, posture, hold, timed=True)
        rules = self._rules(where, tolerance, 100, iterations)
        if ask.q0 is None:
            n = len(ask.tasks)
            first = ask._replace(arrays=[x[0] for x in ask.arrays[:n]] + ask.arrays[n:])
            start = searched(self, first, rules._replace(most_steps=100), 0)
            return followed(self, ask, rules, start.q.reshape(-1, self.nq))
        return followed(self, ask, rules, ask.q0)

    def _rules(self, where: str, tolerance: Any, starts: Any, iterations: Any) -> Rules:
        """When searches end."""
        single = self.dtype == np.float32
        if tolerance is None:
            tolerance = 1e-4 if single else 1e-9
        return Rules(
            check_number(where, "tolerance", tolerance, above=0),
            check_whole(where, "starts", starts),
            check_whole(where, "iterations", iterations),
            float(np.finfo(self.dtype).eps) ** 0.75,
        )

    @compiled()
    def differential_inverse_kinematics(
        self,
        q: ArrayLike,
        velocity: ArrayLike,
        frame: str,
        qd: ArrayLike | None = None,
        dt: float = 0.01,
        reference: Reference = "aligned",
        damping: float = 1e-4,
        out: np.ndarray | None = None,
        **numbers: Unpack[Numbers],
    ) -> np.ndarray:
        """Joint rates with which a frame moves with (ω; v), within the limits: (…, nv).

        velocity: (…, 6), in the reference; qd: rates wanted besides, where they do not disturb it.
        No rate exceeds its limit, and no joint passes a limit of position in a time dt.
        """
        ...

    # energy and momentum

    @compiled()
    def center_of_mass(
        self, q: ArrayLike, out: np.ndarray | None = None, **numbers: Unpack[Numbers]
    ) -> np.ndarray:
        """The centre of mass in the world: (…, 3)."""
        ...

    @compiled()
    def center_of_mass_jacobian(
        self, q: ArrayLike, out: np.ndarray | None = None, **numbers: Unpack[Numbers]
    ) -> np.ndarray:
        """J with J q̇ = ċ, the velocity of the centre of mass in world axes: (…, 3, nv)."""
        ...

    @compiled()
    def momentum(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        about: Literal["com", "world"] = "com",
        out: np.ndarray | None = None,
        **numbers: Unpack[Numbers],
    ) -> np.ndarray:
        """The momentum (angular; linear) in world axes: (…, 6); about: "com" or "world"."""
        ...

    @compiled()
    def generalized_momentum(
        self, q: ArrayLike, qd: ArrayLike, out: np.ndarray | None = None, **numbers: Unpack[Numbers]
    ) -> np.ndarray:
        """M(q) q̇, armature included, without forming M: (…, nv)."""
        ...

    @compiled()
    def kinetic_energy(
        self, q: ArrayLike, qd: ArrayLike, out: np.ndarray | None = None, **numbers: Unpack[Numbers]
    ) -> np.ndarray:
        """½ q̇ᵀ M(q) q̇, armature included: (…)."""
        ...

    @compiled()
    def potential_energy(
        self, q: ArrayLike, out: np.ndarray | None = None, **numbers: Unpack[Numbers]
    ) -> np.ndarray:
        """−Σ m g·c: (…)."""
        ...

    @compiled()
    def spring_energy(
        self, q: ArrayLike, out: np.ndarray | None = None, **numbers: Unpack[Numbers]
    ) -> np.ndarray:
        """½ Σ stiffness (q ⊟ rest)² of the springs of joints: (…)."""
        ...
