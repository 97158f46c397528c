"""What moves a MuJoCo model and has no place in a mechanism: constraints, servos, fluids."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from .mujoco_state import joint_names, names_of

__all__ = ["left_out"]


def left_out(model: Any) -> list[str]:
    """What would change the motion of a model and is not in its mechanism, one line a kind.

    Contacts and plain motors are not listed: they are forces that the user applies.
    """
    joints = joint_names(model)
    bodies = names_of(model, "body", "body")
    servos = model.actuator_biastype
    lists = {
        "polynomial springs of joints": _where(joints, _any(model, "jnt_stiffnesspoly")),
        "limits of ball joints": _where(joints, (model.jnt_type == 1) & (model.jnt_limited != 0)),
        "polynomial damping of joints": _dofs(model, joints, _any(model, "dof_dampingpoly")),
        "equality constraints": _where(names_of(model, "eq", "equality"), model.eq_active0),
        "tendons": _where(names_of(model, "tendon", "tendon"), _pulling(model)),
        "gravity compensation of bodies": _where(bodies, model.body_gravcomp),
        "plugins of bodies": _where(bodies, np.asarray(model.body_plugin) >= 0),
        "servos": _where(names_of(model, "actuator", "actuator"), servos),
        "Coriolis forces of the armature of free joints": _free_armature(model, joints),
        "flexes": names_of(model, "flex", "flex"),
        "skins": names_of(model, "skin", "skin"),
    }
    lines = [f"{what} {_listed(names)}" for what, names in lists.items() if names]
    if model.opt.density or model.opt.viscosity:
        fluid = f"density {model.opt.density:g}, viscosity {model.opt.viscosity:g}"
        lines.append(f"the fluid ({fluid})")
    return lines


def _any(model: Any, *fields: str) -> np.ndarray:
    """Where one of the fields, those that this version of MuJoCo has, is not zero."""
    known = [np.asarray(getattr(model, field, ())) for field in fields]
    flat = [x.any(axis=tuple(range(1, x.ndim))) for x in known if len(x)]
    return np.any(flat, axis=0) if flat else np.zeros(0, dtype=bool)


def _pulling(model: Any) -> np.ndarray:
    fields = ("stiffness", "stiffnesspoly", "damping", "dampingpoly", "frictionloss", "armature")
    return _any(model, "tendon_limited", *(f"tendon_{field}" for field in fields))


def _free_armature(model: Any, joints: list[str]) -> list[str]:
    """Free joints with armature: MuJoCo's resists p̈, ours the rate of the velocity in body axes."""
    free = model.jnt_type == 0
    return _where(joints, free & (model.dof_armature[model.jnt_dofadr] > 0))


def _dofs(model: Any, joints: list[str], chosen: np.ndarray) -> list[str]:
    return list(dict.fromkeys(_where([joints[j] for j in model.dof_jntid], chosen)))


def _where(names: Iterable[str], chosen: Any) -> list[str]:
    return [name for name, yes in zip(names, chosen, strict=False) if yes]


def _listed(names: list[str]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
