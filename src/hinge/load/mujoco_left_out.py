"""What would change the motion of a MuJoCo model and is not in its mechanism, by name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from . import mjcf_table as table
from .mujoco_equality import active
from .mujoco_state import joint_names, names_of, switched_off

__all__ = ["left_out", "listed"]

_TENDON = 3  # mjtTrn


def left_out(model: Any, constraints: bool = False) -> list[str]:
    """A line for each kind of what is left out; `mjcf_table` says which attributes that comes from.

    Plain motors are not listed: they are forces that the user applies, within limits that are read
    (`mujoco_actuators`); nor are contacts of moving bodies with each other, unless they are named
    pairs.  constraints: whether those are read.
    """
    bodies = names_of(model, "body", "body")
    equalities = active(model) & (not constraints)
    lists = {
        **_of_joints(model),
        **_of_actuators(model),
        table.EQUALITIES: _where(names_of(model, "eq", "equality"), equalities),
        table.CONTACTS: _touching(model),
        table.PAIRS: _pairs(model),
        table.TENDONS: _where(names_of(model, "tendon", "tendon"), _pulling(model)),
        table.GRAVITY: _where(bodies, model.body_gravcomp),
        table.PLUGINS: _where(bodies, np.asarray(model.body_plugin) >= 0),
        table.FLEXES: names_of(model, "flex", "flex"),
        table.SKINS: names_of(model, "skin", "skin"),
    }
    lines = [f"{what} {listed(names)}" for what, names in lists.items() if names]
    if model.opt.density or model.opt.viscosity:
        fluid = f"density {model.opt.density:g}, viscosity {model.opt.viscosity:g}"
        lines.append(f"{table.FLUID} ({fluid})")
    return lines


def _of_joints(model: Any) -> dict[str, list[str]]:
    joints = joint_names(model)
    springs = not switched_off(model, "spring", "passive")
    pulling = _any(model, "jnt_stiffness", "jnt_stiffnesspoly")
    yielding = _any(model, "jnt_springyield")
    yielding = yielding & pulling & springs if len(yielding) else yielding
    limits = not switched_off(model, "limit", "constraint")
    balls = (model.jnt_type == 1) & (model.jnt_limited != 0)
    dampers = _dofs(model, joints, _any(model, "dof_dampingpoly"))
    return {
        table.SPRINGS: _where(joints, _any(model, "jnt_stiffnesspoly") & springs),
        table.YIELDING: _where(joints, yielding),
        table.BALLS: _where(joints, balls & limits),
        table.DAMPING: [] if switched_off(model, "damper", "passive") else dampers,
    }


def _of_actuators(model: Any) -> dict[str, list[str]]:
    names = names_of(model, "actuator", "actuator")
    acting = not switched_off(model, "actuation")
    adding = _any(model, "actuator_armature", "actuator_damping")
    on_tendons = adding & (model.actuator_trntype == _TENDON) if len(adding) else adding
    return {
        table.MOTOR_DAMPING: _where(names, _any(model, "actuator_dampingpoly")),
        table.TENDON_DRIVES: _where(names, on_tendons),
        table.ACTING_PLUGINS: _where(names, (np.asarray(model.actuator_plugin) >= 0) & acting),
        table.SERVOS: _where(names, model.actuator_biastype * acting),
    }


def _touching(model: Any) -> list[str]:
    """Geoms on bodies that move which MuJoCo would let collide with those of the ground."""
    if switched_off(model, "contact", "constraint"):
        return []
    still = model.body_weldid[model.geom_bodyid] == 0
    kinds, wanted = model.geom_contype, model.geom_conaffinity
    ground = zip(wanted[still], kinds[still], strict=True)
    hit = sum(((kinds & a) | (b & wanted) for a, b in ground), np.zeros_like(kinds))
    return _where(names_of(model, "geom", "geom"), ~still & (hit != 0))


def _pairs(model: Any) -> list[str]:
    off = switched_off(model, "contact", "constraint")
    return [] if off else names_of(model, "pair", "pair")


def _any(model: Any, *fields: str) -> np.ndarray:
    """Where one of the fields, those that this version of MuJoCo has, is not zero."""
    known = [np.asarray(getattr(model, field, ())) for field in fields]
    flat = [x.any(axis=tuple(range(1, x.ndim))) for x in known if len(x)]
    return np.any(flat, axis=0) if flat else np.zeros(0, dtype=bool)


def _pulling(model: Any) -> np.ndarray:
    fields = ("stiffness", "stiffnesspoly", "damping", "dampingpoly", "frictionloss", "armature")
    return _any(model, "tendon_limited", *(f"tendon_{field}" for field in fields))


def _dofs(model: Any, joints: list[str], chosen: np.ndarray) -> list[str]:
    return list(dict.fromkeys(_where([joints[j] for j in model.dof_jntid], chosen)))


def _where(names: Iterable[str], chosen: Any) -> list[str]:
    return [name for name, yes in zip(names, chosen, strict=False) if yes]


def listed(names: list[str]) -> str:
    """The first names of a list, and how many more there are."""
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
