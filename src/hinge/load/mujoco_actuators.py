"""The actuators of a MuJoCo model, as far as they are motors and servos."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..model.actuator import Actuator
from .mujoco_state import joint_names, names_of, switched_off

__all__ = ["actuators_of"]

Range = tuple[float, float]
_EVERY: Range = (-np.inf, np.inf)
# mjtTrn
_JOINT, _JOINT_IN_PARENT, _TENDON, _ORIENTATION = 0, 1, 3, 6
_TARGETS = {2: "site", 4: "site", 5: "body", 6: "site"}
# mjtDyn; filters differ in how they are integrated
_DYNAMICS = {0: "", 1: "integrator", 2: "filter", 3: "filter", 4: "muscle", 5: "motor", 6: "pid"}
_FIXED, _AFFINE = 0, 1  # mjtGain, and mjtBias with none for fixed
_ONE_DOF = 2  # mjtJoint from here on
_WRAP_JOINT = 1  # mjtWrap


def actuators_of(model: Any) -> tuple[Actuator, ...]:
    """Those that act, in the model's order."""
    if switched_off(model, "actuation"):
        return ()
    names = names_of(model, "actuator", "actuator")
    groups = np.asarray(model.actuator_group)
    off = int(getattr(model.opt, "disableactuator", 0))
    acting = [i for i, g in enumerate(groups.tolist()) if not (0 <= g < 31 and off >> g & 1)]
    return tuple(_actuator(model, i, names[i]) for i in acting)


def _actuator(model: Any, i: int, name: str) -> Actuator:
    joints, gears, target, bound = _driven(model, i)
    gain, bias = model.actuator_gaintype[i], model.actuator_biastype[i]
    c, b = (x[i, :3].tolist() for x in (model.actuator_gainprm, model.actuator_biasprm))
    c, b = [c[0], *(x * (gain == _AFFINE) for x in c[1:])], [x * (bias == _AFFINE) for x in b]
    dynamics = _dynamics(model, i)
    low, high = _range(model, "force", i)
    free = switched_off(model, "clampctrl")
    control = _EVERY if free else _range(model, "ctrl", _first(model, "ctrl", i))
    return Actuator(
        *(name, _type(model, i, c, b, dynamics), joints, gears, control),
        force_range=(max(low, bound[0]), min(high, bound[1])),
        gain=(c[0], c[1], c[2]),
        bias=(b[0], b[1], b[2]),
        target=target,
        dynamics=dynamics,
    )


def _driven(model: Any, i: int) -> tuple[tuple[str, ...], tuple[float, ...], str, Range]:
    """The joints that an actuator drives, their gears, else what it acts on, and what bounds it."""
    kind, what = int(model.actuator_trntype[i]), int(model.actuator_trnid[i, 0])
    gear = float(model.actuator_gear[_first(model, "out", i), 0])
    joints = joint_names(model)
    turns_joint = kind == _ORIENTATION and model.actuator_trnid[i, 1] < 0
    if kind in (_JOINT, _JOINT_IN_PARENT) or turns_joint:
        one = model.jnt_type[what] >= _ONE_DOF
        return (joints[what],), (gear,) if one else (), "", _EVERY
    if kind != _TENDON:
        field = _TARGETS.get(kind, "site")
        return (), (), names_of(model, field, field)[what], _EVERY
    wraps = model.tendon_adr[what] + np.arange(model.tendon_num[what])
    if (model.wrap_type[wraps] != _WRAP_JOINT).any():
        return (), (), names_of(model, "tendon", "tendon")[what], _EVERY
    named = tuple(joints[j] for j in model.wrap_objid[wraps])
    limited = gear and getattr(model, "tendon_actfrclimited", np.zeros(what + 1, bool))[what]
    ends = sorted((model.tendon_actfrcrange[what] / gear).tolist()) if limited else _EVERY
    return named, tuple((gear * model.wrap_prm[wraps]).tolist()), "", (ends[0], ends[1])


def _dynamics(model: Any, i: int) -> str:
    """What lies between control and force; an actuator with other than one of each is one, too."""
    for field in ("ctrl", "out"):
        if getattr(model, f"actuator_{field}num", np.ones(i + 1, int))[i] != 1:
            return "several controls"
    if getattr(model, "actuator_delay", np.zeros(i + 1))[i]:
        return "delay"
    if model.actuator_plugin[i] >= 0:
        return "plugin"
    known = model.actuator_gaintype[i] <= _AFFINE and model.actuator_biastype[i] <= _AFFINE
    return _DYNAMICS.get(int(model.actuator_dyntype[i]), "user") or ("" if known else "user")


def _type(model: Any, i: int, c: list[float], b: list[float], dynamics: str) -> str:
    """What a file calls such an actuator: its shortcuts are gone once it is compiled."""
    if dynamics == "muscle" or model.actuator_trntype[i] == 5:
        return "muscle" if dynamics == "muscle" else "adhesion"
    if dynamics not in ("", "filter", "integrator"):
        return "general"
    if not any((*c[1:], *b)) and dynamics != "integrator":
        return "motor"
    if not any((*c[1:], b[0])) and b[1] == -c[0]:
        return "intvelocity" if dynamics == "integrator" else "position"
    if not any((*c[1:], b[0], b[1])) and b[2] == -c[0] and not dynamics:
        return "velocity"
    return "general" if any((c[0], c[1], *b)) else "damper"


def _range(model: Any, what: str, at: int) -> Range:
    if not getattr(model, f"actuator_{what}limited")[at]:
        return _EVERY
    low, high = getattr(model, f"actuator_{what}range")[at].tolist()
    return low, high


def _first(model: Any, what: str, i: int) -> int:
    """Where the first control or output of an actuator is; before MuJoCo 4 each has one."""
    starts = getattr(model, f"actuator_{what}adr", None)
    return i if starts is None else int(starts[i])
