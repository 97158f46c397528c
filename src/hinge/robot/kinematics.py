"""Poses, velocities, accelerations, energy and momentum of a robot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Unpack

import numpy as np
from numpy.typing import ArrayLike

from ..runtime.arguments import single
from ..runtime.check import check_choice, check_number, check_pose, check_whole
from .front import Front
from .method import Numbers, compiled

if TYPE_CHECKING:
    from ..algorithms.inverse_kinematics import InverseKinematics, Task
    from ..algorithms.kinematics import Reference

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

    def inverse_kinematics(
        self,
        frame: str,
        target: ArrayLike,
        q0: ArrayLike | None = None,
        task: Task = "pose",
        tolerance: float = 1e-9,
        max_iterations: int = 200,
        restarts: int = 20,
        rng: np.random.Generator | int | None = 0,
        **numbers: Unpack[Numbers],
    ) -> InverseKinematics:
        """A configuration within the limits that brings a frame to the target pose (4, 4).

        task: "pose", "position" or "orientation".  The result says how it ended in `.status`:
        "reached", "unreachable", "singular" or "unfinished".
        """
        where = f"inverse_kinematics of {self.name!r}"
        self._refuse(where, numbers)
        start = self._argument("q0", self.neutral() if q0 is None else q0)
        return self.alg.inverse_kinematics(
            **single(where, [start]),
            frame=frame,
            target=check_pose(where, "target", target),
            task=check_choice(where, "task", task, ("pose", "position", "orientation")),
            tolerance=check_number(where, "tolerance", tolerance, above=0),
            max_iterations=check_whole(where, "max_iterations", max_iterations),
            restarts=check_whole(where, "restarts", restarts, above=-1),
            rng=np.random.default_rng(rng),
        )

    # energy and momentum

    @compiled()
    def center_of_mass(
        self, q: ArrayLike, out: np.ndarray | None = None, **numbers: Unpack[Numbers]
    ) -> np.ndarray:
        """The centre of mass in the world: (…, 3)."""
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
