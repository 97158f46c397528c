"""MJCF, read through MuJoCo itself: defaults, units and inertias from geoms are its business."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from ..errors import ModelError, warn_of_model
from ..model.actuator import acting_on
from ..model.mechanism import Mechanism
from .limits import MAX_MEMORY, MAX_SECONDS
from .loaded import Loaded
from .mjcf_source import MjcfSource
from .mujoco_actuators import actuators_of
from .mujoco_compile import compile_apart, compile_here
from .mujoco_left_out import left_out, listed
from .mujoco_model import closed_mechanism, mechanism_from_model
from .mujoco_state import ROOT_JOINT, MujocoState, joint_names
from .paths import PathLike

__all__ = ["MujocoState", "left_out", "mechanism_from_model", "read_closed_mjcf", "read_mjcf"]


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
    place = floating_base, folder, package_dirs
    return read_closed_mjcf(text, source, *place, *limits, False).mechanism


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
) -> Loaded:
    """The mechanism that an MJCF text describes, what closes its loops and drives its joints.

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
        lines, actuators = left_out(model, constraints), actuators_of(model)
    except ModelError as e:
        raise ModelError(f"{source}: {e}") from None
    except nonsense as e:
        raise ModelError(f"{source}: MuJoCo's compiler answered nonsense ({e})") from None
    if files.unknown:
        strange = listed([f"{what} ({where})" for what, where in files.unknown.items()])
        lines.append(f"what this version of hinge does not know, but MuJoCo does: {strange}")
    if floating_base and ROOT_JOINT in joint_names(model):
        base = mechanism.joint_names[0]
        said.append(f"{ROOT_JOINT!r} is a joint of the file; the floating base has {base!r}")
    if lines:
        said.insert(0, f"left out: {'; '.join(lines)}")
    if said:
        warn_of_model(f"{source}: {'. '.join(said)}")
    return Loaded(mechanism, loops, acting_on(mechanism, actuators))


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
