"""What frames are asked to do: the error of a task, and how it moves with the joints.

A task has an error e and a Jacobian J with ė = J q̇.  Of frame F, whose body Jacobian is (J_ω; J_v),
in F's own axes:

    orientation      e = 2 v,  (w, v) the quaternion of R_tᵀ R_F, w ≥ 0     J = J_ω              (1)
    position         e = R_Fᵀ (p_F − p_t)                                   J = J_v              (2)
    direction        e = a − c,  c = R_Fᵀ d, axis a along d                 J = −c× J_ω          (3)
    center_of_mass   e = c(q) − c_t, in world axes                          J = ∂c/∂q            (4)

A pose is (1) and (2).  The lengths of (1) and (3) are chords 2 sin θ/2 of the angle θ that is left:
a half turn is the largest error, not none.  In (1) J is exact but for factors that leave Jᵀe a
gradient, that of 4 (1 − w), and in (2) but for the turning of F, which adds nothing to Jᵀe.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np

from ..algebra.rotation import quaternion_from_matrix, skew
from ..errors import ArgumentError
from ..model.mechanism import Mechanism
from .energy import center_of_mass, center_of_mass_jacobian
from .kinematics import frame_pose, jacobian

__all__ = ["KINDS", "TARGETS", "Kind", "Rows", "Task", "task_rows"]

Kind = Literal["pose", "position", "orientation", "direction", "center_of_mass"]
KINDS: tuple[Kind, ...] = get_args(Kind)
# the shape of one target
TARGETS: dict[str, tuple[int, ...]] = {
    "pose": (4, 4),
    "position": (3,),
    "orientation": (3, 3),
    "direction": (3,),
    "center_of_mass": (3,),
}


@dataclass(frozen=True)
class Task:
    """What a frame, or the centre of mass, is to do.

    kind: "pose", "position", "orientation", "direction" (the frame's axis points along a vector),
    or "center_of_mass", which has no frame.
    weight: of its squared error beside those of tasks of the same priority.
    priority: 0 first; a task of a higher number moves what those before it leave free.
    """

    frame: str | None = None
    kind: Kind = "pose"
    weight: float = 1.0
    priority: int = 0
    axis: tuple[float, float, float] = (0.0, 0.0, 1.0)

    def __post_init__(self) -> None:
        told = f"the task {self.kind!r} of frame {self.frame!r}"
        if self.kind not in KINDS:
            raise ArgumentError(f"{told}: expected one of {', '.join(map(repr, KINDS))}")
        if (self.frame is None) != (self.kind == "center_of_mass"):
            raise ArgumentError(f"{told}: the centre of mass has no frame, other tasks have one")
        if not isinstance(self.weight, (int, float)) or not 0 < self.weight < np.inf:
            raise ArgumentError(f"{told}: weight is {self.weight!r}; expected a number above 0")
        if not isinstance(self.priority, int) or self.priority < 0:
            raise ArgumentError(f"{told}: priority is {self.priority!r}; expected 0, 1, 2, …")
        try:
            axis = np.asarray(self.axis, dtype=float)
            length = float(np.linalg.norm(axis))
        except (TypeError, ValueError):
            axis, length = np.zeros(0), 0.0
        if axis.shape != (3,) or not 0 < length < np.inf:
            raise ArgumentError(f"{told}: axis is {self.axis!r}; expected three numbers, not all 0")
        object.__setattr__(self, "axis", tuple((axis / length).tolist()))

    @property
    def rows(self) -> int:
        """How many numbers its error has."""
        return 6 if self.kind == "pose" else 3

    @property
    def angular(self) -> int:
        """How many of them, the first ones, are chords of angles."""
        return 0 if self.kind in ("position", "center_of_mass") else 3

    def length(self, mech: Mechanism) -> float:
        """What counts as much as a radian: the lengths on the way to the frame, in m.

        Those that come with the samples are not known: a metre stands for each.
        """
        if self.frame is None:
            way, tip = mech.bodies[1:], np.zeros(3)
        else:
            F = mech.frame(self.frame)
            way = [mech.bodies[j] for _, j in mech.climb(F.body)]
            tip = np.asarray(F.placement.translation)
        lengths = [X.translation for b in way for X in (b.placement, b.offset)]
        lengths = [np.asarray(p) for p in (*lengths, tip)]
        return sum(1.0 if p.dtype == object else float(np.linalg.norm(p)) for p in lengths) or 1.0


class Rows(NamedTuple):
    """The error of a task in rad (as chords) and m, its Jacobian, and what counts as 1 in each."""

    e: np.ndarray
    J: np.ndarray
    unit: np.ndarray


def task_rows(mech: Mechanism, q: np.ndarray, task: Task, target: np.ndarray) -> Rows:
    """e and J of a task at q."""
    turn, shift = np.ones(3), np.full(3, task.length(mech))
    if task.frame is None:
        return Rows(
            center_of_mass(mech, q) - target, center_of_mass_jacobian(mech, q), shift
        )  # (4)
    X = frame_pose(mech, q, task.frame)
    R, p, J = X[:3, :3], X[:3, 3], jacobian(mech, q, task.frame, "body")
    if task.kind == "orientation":
        return Rows(_turned(R, target), J[:3], turn)
    if task.kind == "position":
        return Rows(R.T @ (p - target), J[3:], shift)  # (2)
    if task.kind == "direction":
        c = R.T @ target
        return Rows(np.array(task.axis) - c, -(skew(c) @ J[:3]), turn)  # (3)
    e = np.concatenate([_turned(R, target[:3, :3]), R.T @ (p - target[:3, 3])])
    return Rows(e, J, np.concatenate([turn, shift]))


def _turned(R: np.ndarray, R_t: np.ndarray) -> np.ndarray:
    return 2 * quaternion_from_matrix(R_t.T @ R)[1:]  # (1)
