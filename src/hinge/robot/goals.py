"""What inverse kinematics is asked: frames or tasks, their targets, and where to start, checked."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..algebra.small import is_masked
from ..algebra.spatial import Transform
from ..algorithms.tasks import KINDS, TARGETS, Task
from ..errors import ArgumentError
from ..runtime.arguments import Argument, checked
from ..runtime.check import check_choice

if TYPE_CHECKING:
    from .front import Front

__all__ = ["Question", "asked"]


class Question(NamedTuple):
    """Tasks, and arrays that are checked, of n samples each.

    arrays: targets (n, *shape), or (steps, n, *shape), of each task, then a posture if there is
    one; q0: (n, nq).  moving: which DoF may move, 1 or 0 each.  lead: the leading shape of the
    call, n their number; sound: which of the samples are finite, (n,), None if all are.
    """

    tasks: tuple[Task, ...]
    arrays: list[np.ndarray]
    q0: np.ndarray | None
    moving: tuple[float, ...]
    lead: tuple[int, ...]
    n: int
    sound: np.ndarray | None

    @property
    def with_posture(self) -> bool:
        """Whether a posture is among the arrays."""
        return len(self.arrays) > len(self.tasks)


def asked(
    robot: Front,
    where: str,
    frame: Any,
    target: Any,
    task: Any,
    q0: Any,
    posture: Any,
    hold: Any,
    timed: bool = False,
) -> Question:
    """The arguments of a call, checked; timed: targets have a dimension for time before all."""
    goals = _goals(robot, where, frame, target, task, timed)
    given = {n: x for n, x in (("posture", posture), ("q0", q0)) if x is not None}
    rest = [robot._argument("q0", x)._replace(name=n) for n, x in given.items()]
    arguments = [*(goal for _, goal in goals), *rest]
    arrays, lead = checked(where, arguments, robot.dtype, strict=True)
    n = math.prod(lead)
    flat = [_flat(x, a, lead, n) for x, a in zip(arrays, arguments, strict=True)]
    lengths = [len(x) for x in flat[: len(goals)]]
    if timed and len(set(lengths)) > 1:
        told = ", ".join(map(str, lengths))
        raise ArgumentError(f"{where}: targets have {told} steps; expected as many of each")
    moving = tuple((1 - robot.mechanism.driven(_names(hold))).tolist()) if len(hold) else ()
    start, count = (None, len(flat)) if q0 is None else (flat[-1], len(flat) - 1)
    tasks = tuple(goal for goal, _ in goals)
    sound = _sound(flat, arguments) if lead else None
    return Question(tasks, flat[:count], start, moving or (1.0,) * robot.nv, lead, n, sound)


def _sound(arrays: list[np.ndarray], arguments: list[Argument]) -> np.ndarray | None:
    """Which samples are finite, (n,); None if all are."""
    if all(np.isfinite(x).all() for x in arrays):
        return None
    marks = []
    for x, a in zip(arrays, arguments, strict=True):
        others = tuple(i for i in range(x.ndim) if i != int(a.timed))
        marks.append(np.isfinite(x).all(axis=others))
    return np.logical_and.reduce(marks)


def _names(hold: Any) -> Any:
    return (hold,) if isinstance(hold, str) else hold


def _flat(x: np.ndarray, a: Argument, lead: tuple[int, ...], n: int) -> np.ndarray:
    """An array with one leading dimension, after that of time."""
    if x.shape == lead + a.shape:
        return x.reshape(n, *a.shape)
    time = x.shape[: int(a.timed)]
    own = x.shape[len(time) : x.ndim - len(a.shape)]
    x = x.reshape(time + (1,) * (len(lead) - len(own)) + own + a.shape)
    return np.broadcast_to(x, time + lead + a.shape).reshape(*time, n, *a.shape)


def _goals(
    robot: Front, where: str, frame: Any, target: Any, task: Any, timed: bool
) -> list[tuple[Task, Argument]]:
    """Tasks and their targets."""
    if isinstance(frame, (str, Task)):
        return [_goal(robot, where, "target", frame, target, task, timed)]
    try:
        frames, targets = list(frame), list(target)
    except TypeError:
        raise ArgumentError(
            f"{where}: frame is {frame!r}, target {target!r}; expected a name or a hinge.Task and "
            f"its target, or a list of them and one of as many targets"
        ) from None
    if not frames or len(frames) != len(targets):
        raise ArgumentError(
            f"{where}: {len(frames)} frames and {len(targets)} targets; expected a target for each"
        )
    pairs = enumerate(zip(frames, targets, strict=True))
    return [_goal(robot, where, f"target[{i}]", f, x, task, timed) for i, (f, x) in pairs]


def _goal(
    robot: Front, where: str, name: str, frame: Any, target: Any, kind: Any, timed: bool
) -> tuple[Task, Argument]:
    x = _numbers(where, name, target)
    if not isinstance(frame, Task):
        if kind is None:
            kind = _assumed_kind(where, name, x)
        frame = Task(frame, check_choice(where, "task", kind, KINDS))
    if frame.frame is not None:
        robot.mechanism.frame(frame.frame)
    if x.shape[-2:] == (4, 4) and frame.kind in _PART:
        _check_rotations(where, name, frame.kind, x)
        x = x[_PART[frame.kind]]
    argument = Argument(name, x, TARGETS[frame.kind], _MEANING[frame.kind], timed=timed)
    if frame.kind in ("pose", "orientation"):
        _check_rotations(where, name, frame.kind, x)
    if frame.kind == "direction" and x.shape[-1:] == (3,):
        length = np.linalg.norm(x, axis=-1, keepdims=True)
        if (length == 0).any():
            raise ArgumentError(f"{where}: {name} has a direction (0, 0, 0); expected vectors")
        argument = argument._replace(value=x / length)
    return frame, argument


def _assumed_kind(where: str, name: str, x: np.ndarray) -> str:
    """What a target of that shape is, unless it could be two things."""
    if x.shape[-1:] != (3,):
        return "pose"
    if x.shape[-2:] == (3, 3) and np.isfinite(x).all() and not _wrong_rotations(x).any():
        raise ArgumentError(
            f"{where}: {name} has shape {x.shape}: a rotation, or three points? say "
            f'task="orientation" or task="position"'
        )
    return "position"


# what a task takes of a pose
_PART: dict[str, Any] = {
    "position": (..., slice(3), 3),
    "orientation": (..., slice(3), slice(3)),
}
_MEANING = {
    "pose": "a pose [R p; 0 0 0 1]",
    "position": "a point, or a pose",
    "orientation": "a rotation, or a pose",
    "direction": "a vector",
    "center_of_mass": "a point",
}


def _numbers(where: str, name: str, value: Any) -> np.ndarray:
    """Targets as an array; of Transforms their matrices."""
    if isinstance(value, Transform):
        value = value.matrix
    elif isinstance(value, (list, tuple)) and value and isinstance(value[0], Transform):
        value = [getattr(X, "matrix", X) for X in value]
    if is_masked(value):
        raise ArgumentError(f"{where}: {name} has masked entries; expected numbers throughout")
    try:
        return np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        told = "expected a pose (…, 4, 4), a point (…, 3) or a Transform"
        raise ArgumentError(f"{where}: {name} is {value!r}; {told}") from None


def _is_one_pose(x: np.ndarray) -> bool:
    """Whether it is a single one, looked at in Python: that is quicker."""
    if x.ndim > 2:
        return False
    a, b, c, *last = x.tolist()
    pairs = ((a, a, 1), (b, b, 1), (c, c, 1), (a, b, 0), (b, c, 0), (c, a, 0))
    off = max(abs(u[0] * v[0] + u[1] * v[1] + u[2] * v[2] - w) for u, v, w in pairs)
    right = a[0] * (b[1] * c[2] - b[2] * c[1]) + a[1] * (b[2] * c[0] - b[0] * c[2])
    right += a[2] * (b[0] * c[1] - b[1] * c[0])
    return off < 1e-6 and right > 0 and last in ([], [[0, 0, 0, 1]])


def _check_rotations(where: str, name: str, kind: str, x: np.ndarray) -> None:
    """Refuse matrices that are no poses or rotations; those with NaN in a batch come out as NaN."""
    n = x.shape[-1]
    if x.ndim < 2 or x.shape[-2:] != (n, n) or n not in (3, 4) or _is_one_pose(x):
        return
    wrong = _wrong_rotations(x[..., :3, :3])
    if n == 4:
        wrong |= (x[..., 3, :] != (0, 0, 0, 1)).any(axis=-1)
    wrong &= (np.isfinite(x).all(axis=(-1, -2))) | (x.ndim == 2)
    if wrong.any():
        at = tuple(int(i) for i in np.argwhere(wrong)[0])
        which = f"{name}[{', '.join(map(str, at))}]" if at else name
        form = "[R p; 0 0 0 1] with a rotation R" if n == 4 else "a rotation R"
        word = "pose" if n == 4 else "rotation"
        raise ArgumentError(
            f"{where}: {which} is not a {word}: expected {form}, got {x[at].tolist()}"
        )


def _wrong_rotations(R: np.ndarray) -> np.ndarray:
    """Which matrices (…, 3, 3) are no rotations: (…)."""
    with np.errstate(invalid="ignore", over="ignore"):
        off = np.abs(R @ R.swapaxes(-1, -2) - np.eye(3)).max(axis=(-1, -2))
        return (off > 1e-6) | (np.linalg.det(R) < 0)
