"""Poses, velocities, accelerations, energy and momentum of a robot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike

from ..runtime.call import single
from ..runtime.check import check_choice, check_number, check_pose, check_whole
from .front import Front

if TYPE_CHECKING:
    from ..algorithms.inverse_kinematics import InverseKinematics, Task
    from ..algorithms.kinematics import Reference

__all__ = ["Kinematics"]


class Kinematics(Front):
    """How a robot moves, and the energy and momentum it then has."""

    def poses(self, q: ArrayLike) -> np.ndarray:
        """X_WB of every body: (…, n_bodies, 4, 4)."""
        return self._call("poses", q=q)

    def frame_pose(self, q: ArrayLike, frame: str) -> np.ndarray:
        """X_WF of a frame: (…, 4, 4)."""
        return self._call("frame_pose", {"frame": frame}, q=q)

    def jacobian(self, q: ArrayLike, frame: str, reference: Reference = "aligned") -> np.ndarray:
        """J with J q̇ = (ω; v) of a frame: (…, 6, nv)."""
        return self._call("jacobian", {"frame": frame, "reference": reference}, q=q)

    def frame_velocity(
        self, q: ArrayLike, qd: ArrayLike, frame: str, reference: Reference = "aligned"
    ) -> np.ndarray:
        """The velocity (ω; v) of a frame: (…, 6)."""
        return self._call("frame_velocity", {"frame": frame, "reference": reference}, q=q, qd=qd)

    def frame_acceleration(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        frame: str,
        reference: Reference = "aligned",
    ) -> np.ndarray:
        """J q̈ + J̇ q̇, the rate of `frame_velocity` in the same reference: (…, 6)."""
        static = {"frame": frame, "reference": reference}
        return self._call("frame_acceleration", static, q=q, qd=qd, qdd=qdd)

    def velocity_product_acceleration(
        self, q: ArrayLike, qd: ArrayLike, frame: str, reference: Reference = "aligned"
    ) -> np.ndarray:
        """J̇ q̇, the acceleration of a frame at q̈ = 0: (…, 6)."""
        static = {"frame": frame, "reference": reference}
        return self._call("velocity_product_acceleration", static, q=q, qd=qd)

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
    ) -> InverseKinematics:
        """A configuration within the limits that brings a frame to the target pose (4, 4).

        task: "pose", "position" or "orientation".  The result says how it ended in `.status`:
        "reached", "unreachable", "singular" or "unfinished".
        """
        where = f"inverse_kinematics of {self.name!r}"
        start = self.argument("q0", self.neutral() if q0 is None else q0)
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

    def center_of_mass(self, q: ArrayLike) -> np.ndarray:
        """The centre of mass in the world: (…, 3)."""
        return self._call("center_of_mass", q=q)

    def momentum(
        self, q: ArrayLike, qd: ArrayLike, about: Literal["com", "world"] = "com"
    ) -> np.ndarray:
        """The momentum (angular; linear) in world axes: (…, 6); about: "com" or "world"."""
        return self._call("momentum", {"about": about}, q=q, qd=qd)

    def generalized_momentum(self, q: ArrayLike, qd: ArrayLike) -> np.ndarray:
        """M(q) q̇, armature included, without forming M: (…, nv)."""
        return self._call("generalized_momentum", q=q, qd=qd)

    def kinetic_energy(self, q: ArrayLike, qd: ArrayLike) -> np.ndarray:
        """½ q̇ᵀ M(q) q̇, armature included: (…)."""
        return self._call("kinetic_energy", q=q, qd=qd)

    def potential_energy(self, q: ArrayLike) -> np.ndarray:
        """−Σ m g·c: (…)."""
        return self._call("potential_energy", q=q)

    def spring_energy(self, q: ArrayLike) -> np.ndarray:
        """½ Σ stiffness (q ⊟ rest)² of the springs of joints: (…)."""
        return self._call("spring_energy", q=q)
