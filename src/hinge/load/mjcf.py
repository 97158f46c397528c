"""MJCF, read through MuJoCo itself: defaults, units and inertias from geoms are its business."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from ..errors import ModelError, warn_of_model
from ..model.mechanism import Mechanism
from .limits import MAX_MEMORY, MAX_SECONDS
from .mjcf_source import MjcfSource
from .mujoco_compile import compile_apart, compile_here
from .mujoco_equality import Loop, active
from .mujoco_model import closed_mechanism, mechanism_from_model
from .mujoco_state import MujocoState, joint_names, names_of, switched_off
from .paths import PathLike

__all__ = ["MujocoState", "left_out", "mechanism_from_model", "read_closed_mjcf", "read_mjcf"]

_TENDON = 3  # mjtTrn


def read_mjcf(
    text: str | bytes,
    source: str,
    floating_base: bool = False,
    folder: PathLike | None = None,
    package_dirs: Sequence[PathLike] = (),
    isolate: bool = False,
    max_memory: int = MAX_MEMORY,
    max_seconds: float = MAX_SECONDS,
) -> Mechanism:
    """The mechanism that an MJCF text describes; needs the extra `hinge-dynamics[mjcf]`.

    The arguments are those of `read_closed_mjcf`, whose constraints are left out.
    """
    limits = isolate, max_memory, max_seconds
    return read_closed_mjcf(text, source, floating_base, folder, package_dirs, *limits, False)[0]


def read_closed_mjcf(
    text: str | bytes,
    source: str,
    floating_base: bool,
    folder: PathLike | None,
    package_dirs: Sequence[PathLike],
    isolate: bool,
    max_memory: int,
    max_seconds: float,
    constraints: bool,
) -> tuple[Mechanism, tuple[Loop, ...]]:
    """The mechanism that an MJCF text describes, and what closes its loops.

    source: the file's name, for messages and, if the model has none, for the mechanism's name.
    floating_base: let the base move freely by a joint "root_joint", unless it is free already.
    folder: of the file; what it includes and names must lie there, in its project, or in one of
    `package_dirs`.
    isolate: run MuJoCo's compiler in a process of its own, and read nothing of the project.
    max_memory, max_seconds: the bytes that the file may ask for, and the time that the process has.
    constraints: read equality constraints; else there are no loops.

    Contacts, servos and all else that a mechanism cannot hold is left out with a ModelWarning.
    """
    files = MjcfSource(text, source, folder, package_dirs, max_memory, isolate)
    model, said = _compile(files, source, (max_memory, max_seconds) if isolate else None)
    nonsense = (LookupError, ValueError, TypeError) if isolate else ()
    try:
        name = files.root.get("model") or Path(source).stem
        ways = model, name, floating_base, files.meshes
        mechanism, loops = (
            closed_mechanism(*ways) if constraints else (mechanism_from_model(*ways), ())
        )
        lines = left_out(model, constraints)
    except ModelError as e:
        raise ModelError(f"{source}: {e}") from None
    except nonsense as e:
        raise ModelError(f"{source}: MuJoCo's compiler answered nonsense ({e})") from None
    if lines:
        said.insert(0, f"left out: {'; '.join(lines)}")
    if said:
        warn_of_model(f"{source}: {'. '.join(said)}")
    return mechanism, loops


def _mujoco(source: str) -> ModuleType:
    try:
        return import_module("mujoco")
    except ImportError:
        raise ModelError(
            f"{source}: MJCF is read through MuJoCo, which is missing; "
            f'pip install "hinge-dynamics[mjcf]"'
        ) from None


def _compile(
    files: MjcfSource, source: str, apart: tuple[int, float] | None
) -> tuple[Any, list[str]]:
    """The compiled model and MuJoCo's warnings; what it objects to becomes one ModelError."""
    mujoco = _mujoco(source)
    try:
        made = (
            compile_here(mujoco, files.text, files.files)
            if apart is None
            else compile_apart(files.text, files.files, *apart)
        )
    except ModelError as e:
        raise ModelError(f"{source}: {e}") from None
    if isinstance(made, str):
        raise ModelError(_translated(made, files, source))
    model, said = made
    if any("NaN" in message for message in said):
        raise ModelError(f"{_where_nan(files, source)}: a number is NaN; give a finite one")
    return model, [f"MuJoCo warns: {message.strip()}" for message in dict.fromkeys(said)]


def _translated(message: str, files: MjcfSource, source: str) -> str:
    """MuJoCo's message with the file and line it is about, and the names that the user knows."""
    # an error in a model to attach comes first, then where it is attached
    lines = [int(line) for line in re.findall(r"\bline (\d+)", message)]
    where = next((files.origins[n - 1].where for n in lines if 0 < n <= len(files.origins)), source)
    for name, path in files.paths.items():
        message = message.replace(name, Path(path).name)
    message = re.sub(r"\bElement (?:name )?'([^']*)'.*", r"('\1')", message).replace("('')", "")
    message = re.sub(r"\b(?:XML )?Error: ", "", message)
    return f"{where}: MuJoCo refuses it: {' '.join(message.split()) or 'no reason given'}"


def _where_nan(files: MjcfSource, source: str) -> str:
    """The place of the first NaN that is not a name."""
    for element in files.origins:
        values = [value for name, value in element.attributes.items() if name != "name"]
        if "nan" in " ".join(values).lower().split():
            return element.where
    return source


def left_out(model: Any, constraints: bool = False) -> list[str]:
    """What would change the motion of a model and is not in its mechanism, one line a kind.

    Plain motors are not listed: they are forces that the user applies; nor are contacts of moving
    bodies with each other, unless they are named pairs.  constraints: whether those are read.
    """
    joints = joint_names(model)
    bodies = names_of(model, "body", "body")
    actuators = names_of(model, "actuator", "actuator")
    servos = model.actuator_biastype * (not switched_off(model, "actuation"))
    equalities = active(model) & (not constraints)
    adding = _any(model, "actuator_armature", "actuator_damping")
    on_tendons = adding & (model.actuator_trntype == _TENDON) if len(adding) else adding
    lists = {
        "polynomial springs of joints": _where(joints, _any(model, "jnt_stiffnesspoly")),
        "limits of ball joints": _where(joints, (model.jnt_type == 1) & (model.jnt_limited != 0)),
        "polynomial damping of joints": _dofs(model, joints, _any(model, "dof_dampingpoly")),
        "polynomial damping of actuators": _where(actuators, _any(model, "actuator_dampingpoly")),
        "armature and damping of tendons by actuators": _where(actuators, on_tendons),
        "equality constraints": _where(names_of(model, "eq", "equality"), equalities),
        "contacts with the ground of": _touching(model),
        "contact pairs": _pairs(model),
        "tendons": _where(names_of(model, "tendon", "tendon"), _pulling(model)),
        "gravity compensation of bodies": _where(bodies, model.body_gravcomp),
        "plugins of bodies": _where(bodies, np.asarray(model.body_plugin) >= 0),
        "servos": _where(actuators, servos),
        "flexes": names_of(model, "flex", "flex"),
        "skins": names_of(model, "skin", "skin"),
    }
    lines = [f"{what} {_listed(names)}" for what, names in lists.items() if names]
    if model.opt.density or model.opt.viscosity:
        fluid = f"density {model.opt.density:g}, viscosity {model.opt.viscosity:g}"
        lines.append(f"the fluid ({fluid})")
    return lines


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


def _listed(names: list[str]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
