"""The numbers of a robot's joints as arrays: `lower` and `upper` over q, all others over v."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..model.actuator import Actuator
from ..model.joints import Free, Joint, Spherical, Translation
from ..model.mechanism import Mechanism

__all__ = ["JointData"]


class JointData:
    """What each coordinate and each degree of freedom has, in their order, read-only.

    A joint that mimics another has none of its own: its numbers are those of `mechanism`, and what
    is here is its leader's.
    """

    _mechanism: Mechanism
    _actuators: tuple[Actuator, ...]
    _kept: dict[Any, Any]

    @property
    def n_bodies(self) -> int:
        """How many bodies move."""
        return self._mechanism.n_bodies

    @property
    def actuated(self) -> tuple[str, ...]:
        """Joints that can be driven: those of its actuators, if it has some; else all but a
        floating base, those that mimic others and those whose effort limit is 0.
        """
        if "actuated" not in self._kept:
            self._kept["actuated"] = _driven(self._mechanism, self._actuators)
        return self._kept["actuated"]

    @property
    def lower(self) -> np.ndarray:
        """The least value of each coordinate: (nq,); −∞ where there is none."""
        return self._of_joints("lower")

    @property
    def upper(self) -> np.ndarray:
        """The greatest value of each coordinate: (nq,); ∞ where there is none."""
        return self._of_joints("upper")

    @property
    def velocity_limit(self) -> np.ndarray:
        """The greatest size of each entry of qd: (nv,); ∞ where there is none."""
        return self._of_joints("velocity_limit")

    @property
    def effort_limit(self) -> np.ndarray:
        """The greatest size of each entry of tau: (nv,); ∞ where there is none."""
        return self._of_joints("effort_limit")

    @property
    def armature(self) -> np.ndarray:
        """The reflected rotor inertia of each DoF, kg m² or kg: (nv,)."""
        return self._of_joints("armature")

    @property
    def damping(self) -> np.ndarray:
        """The viscous coefficient of each DoF, N m s/rad or N s/m: (nv,)."""
        return self._of_joints("damping")

    @property
    def friction(self) -> np.ndarray:
        """The Coulomb friction of each DoF, N m or N: (nv,)."""
        return self._of_joints("friction")

    @property
    def stiffness(self) -> np.ndarray:
        """The stiffness of the spring on each DoF, N m/rad or N/m: (nv,)."""
        return self._of_joints("stiffness")

    @property
    def rest(self) -> np.ndarray:
        """Where the spring on each DoF is slack, as a displacement from neutral: (nv,)."""
        return self._of_joints("rest")

    def _of_joints(self, name: str) -> np.ndarray:
        """A datum of all joints that lead, one after the other."""
        key = "joint data", name
        if key not in self._kept:
            joints = (b.joint for b in self._mechanism.bodies if b.joint.mimic is None)
            found = np.concatenate([_datum(joint, name) for joint in joints])
            found.setflags(write=False)
            self._kept[key] = found
        return self._kept[key]


def _floating(mech: Mechanism) -> set[int]:
    """Bodies that a floating base moves by: `Free`, or a translation of the ground with a ball."""
    bodies, found = mech.bodies, set()
    for p, k in mech.outward():
        if isinstance(bodies[k].joint, Free):
            found.add(k)
        on_ground = isinstance(bodies[p].joint, Translation) and bodies[p].parent == 0
        if on_ground and isinstance(bodies[k].joint, Spherical):
            found |= {p, k}
    return found


def _driven(mech: Mechanism, actuators: tuple[Actuator, ...]) -> tuple[str, ...]:
    """Joints that something can drive; a force on a follower drives its leader."""
    floating, moving = _floating(mech), enumerate(mech.bodies[1:], 1)
    own = (b for k, b in moving if k not in floating and b.joint.mimic is None)
    bodies = [mech.bodies[mech.joint_index(name)] for a in actuators for name in a.joints]
    driven = {b.joint.mimic.joint if b.joint.mimic else b.joint_name for b in bodies}
    return tuple(
        b.joint_name
        for b in own
        if np.any(b.joint.effort_limit) and (not actuators or b.joint_name in driven)
    )


def _datum(joint: Joint, name: str) -> np.ndarray:
    """A datum of one joint; no limit bounds the entries of a quaternion."""
    values = np.array(getattr(joint, name))
    if name in ("lower", "upper") and joint.nq != joint.nv:
        return np.full(joint.nq, -np.inf if name == "lower" else np.inf)
    return values
