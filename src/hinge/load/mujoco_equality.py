"""MuJoCo's equality constraints: loops to close, joints that follow others, joints that are held.

connect holds a point of one body on a point of another, weld a pose on a pose, both given on bodies
or by sites.  joint couples coordinates counted from the reference: y − y₀ = a₀ + a₁ (x − x₀), which
is a mimic, exact and without a row; without another joint y stays at y₀ + a₀.  MuJoCo's constraints
give way like springs with a time constant; here they hold, and what an error dies out by follows:

    ë + 2/T ė + e/(T ζ)² = 0   of solref = (T, ζ),   ë + b ė + k e = 0   of solref = (−k, −b)
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..algebra.rotation import quaternion_matrix
from ..algebra.spatial import Transform
from ..errors import ModelError
from ..model.joint import Mimic
from .mujoco_state import joint_names, names_of, switched_off

__all__ = ["Closing", "Equalities", "Loop", "active", "equalities"]

# mjtEq and mjtObj
_CONNECT, _WELD, _JOINT = range(3)
_KINDS = "connect", "weld", "joint", "tendon", "flex", "flexvert", "flexstrain"
_SITE = 6
_LARGEST = 1e12
_POINT, _POSE = (3, 4, 5), (0, 1, 2, 3, 4, 5)


class Loop(NamedTuple):
    """Frame `left` is held on frame `right` along axes of it, with these gains."""

    left: str
    right: str
    axes: tuple[int, ...]
    stiffness: float
    damping: float


class Closing(NamedTuple):
    """A loop whose frames are still to be made: (body, pose) of each."""

    name: str
    sides: tuple[tuple[int, Transform], tuple[int, Transform]]
    axes: tuple[int, ...]
    gains: tuple[float, float]


class Equalities(NamedTuple):
    """What an MjModel's constraints are: loops, and by joint what it follows or where it is."""

    loops: tuple[Closing, ...] = ()
    mimics: dict[int, Mimic] = {}
    held: dict[int, float] = {}


def active(model: Any) -> np.ndarray:
    """Which of a model's equality constraints act."""
    return model.eq_active0 * (not switched_off(model, "equality", "constraint")) != 0


def equalities(model: Any) -> Equalities:
    """Those of a model that act; what no mechanism can have is refused by its name."""
    names = names_of(model, "eq", "equality")
    loops, mimics, held = [], {}, {}
    for i in np.flatnonzero(active(model)).tolist():
        kind, name = model.eq_type[i], names[i]
        if not (np.abs(model.eq_data[i]) <= _LARGEST).all():
            raise ModelError(
                f"equality {name!r} has data {model.eq_data[i].tolist()}; expected numbers of at "
                f"most {_LARGEST:g} in size"
            )
        if kind in (_CONNECT, _WELD):
            loops.append(_closing(model, i, name))
        elif kind == _JOINT:
            _couple(model, i, name, mimics, held)
        else:
            raise ModelError(
                f"equality {name!r} is of kind {dict(enumerate(_KINDS)).get(kind, kind)}; connect, "
                f"weld and joint can be read: take it out, or load without constraints=True"
            )
    return Equalities(tuple(loops), mimics, held)


def _couple(
    model: Any, i: int, name: str, mimics: dict[int, Mimic], held: dict[int, float]
) -> None:
    """What a constraint says of a joint, to be added."""
    joints, (a0, a1, *more) = joint_names(model), model.eq_data[i, :5].tolist()
    one, other = int(model.eq_obj1id[i]), int(model.eq_obj2id[i])
    if any(more):
        raise ModelError(
            f"equality {name!r} couples joint {joints[one]!r} by a polynomial of a higher degree, "
            f"polycoef {[a0, a1, *more]}; a linear one can be read: take it out, or load without "
            f"constraints=True"
        )
    if one in mimics or one in held:
        raise ModelError(f"equality {name!r} is the second that couples joint {joints[one]!r}")
    y = float(model.qpos0[model.jnt_qposadr[one]] + a0)
    if other < 0 or not a1:
        held[one] = y
    else:
        x = float(model.qpos0[model.jnt_qposadr[other]])
        mimics[one] = Mimic(joints[other], a1, y - a1 * x)


def _closing(model: Any, i: int, name: str) -> Closing:
    ids, data = (int(model.eq_obj1id[i]), int(model.eq_obj2id[i])), model.eq_data[i]
    weld, straight = model.eq_type[i] == _WELD, np.array([1.0, 0, 0, 0])
    if model.eq_objtype[i] == _SITE:
        pose = [_pose(model.site_pos[s], model.site_quat[s]) for s in ids]
        ids = tuple(model.site_bodyid[list(ids)].tolist())
    elif weld:
        # the point on the second body comes first, and the orientation is on the first
        pose = [_pose(data[3:6], data[6:10]), _pose(data[:3], straight)]
    else:
        pose = [_pose(data[:3], straight), _pose(data[3:6], straight)]
    sides = (ids[0], pose[0]), (ids[1], pose[1])
    return Closing(name, sides, _POSE if weld else _POINT, _gains(model.eq_solref[i]))


def _gains(solref: np.ndarray) -> tuple[float, float]:
    """Stiffness and damping of the stabilisation."""
    first, second = (float(x) for x in solref)
    if first <= 0:
        return -first, max(0.0, -second)
    return 1 / (first * max(second, 1e-3)) ** 2, 2 / first


def _pose(position: np.ndarray, quaternion: np.ndarray) -> Transform:
    return Transform(quaternion_matrix(quaternion), position)
