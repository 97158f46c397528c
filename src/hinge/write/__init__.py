"""From mechanisms to files: URDF and MJCF, such that reading them gives the same dynamics."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ..edit.rebuild import mechanism_in
from ..errors import ArgumentError, ModelError
from ..model.actuator import Actuator
from ..model.mechanism import Mechanism
from .losses import Losses
from .mesh_files import MeshFiles
from .whole import check_place, written_whole

__all__ = ["save"]

_FORMATS = {".urdf": "URDF", ".xml": "MJCF", ".mjcf": "MJCF"}


def save(
    robot: Any,
    path: str | Path,
    *,
    overwrite: bool = False,
    lenient: bool = False,
    copy_meshes: bool = True,
) -> Path:
    """Write a robot or a mechanism into a file, `.urdf` or `.xml` (MJCF), whole or not at all.

    What the format cannot hold and the dynamics needs is refused by name; with `lenient` it is left
    out with a `ModelWarning`, as shapes and limits that it cannot hold always are.
    overwrite: replace a file that is there already, which is refused otherwise; its mode stays, and
    of a link what it leads to is replaced.
    copy_meshes: copy meshes that lie elsewhere into `meshes` beside the file, so that the folder
    can be moved; else the file names them where they are, which a warning says.
    """
    mech = mechanism_in("save", robot)
    place = _place(path, overwrite)
    losses = Losses(mech.name, _FORMATS[place.suffix.lower()], lenient)
    meshes = MeshFiles(place.absolute().parent, copy_meshes, losses)
    for c in getattr(robot, "constraints", ()):
        losses.lose("constraints that close loops", f"{c.left} to {c.right}")
    text = _text(mech, getattr(robot, "actuators", ()), meshes, losses)
    try:
        with meshes.copied(), written_whole("save", place, overwrite) as beside:
            beside.write_text(text, encoding="utf-8")
    except OSError as problem:
        raise ArgumentError(f"cannot write {str(place)!r}: {problem.strerror or problem}") from None
    return place


def _place(path: Any, overwrite: bool) -> Path:
    """The path of a file that may be written."""
    if not isinstance(path, (str, os.PathLike)):
        raise ArgumentError(f"save needs a path that ends in .urdf or .xml, got {path!r}")
    place = Path(path)
    if place.suffix.lower() not in _FORMATS:
        raise ArgumentError(
            f"cannot save as {place.name!r}: its ending says no format; known are .urdf, and .xml "
            f"or .mjcf for MJCF"
        )
    check_place("save", place)
    if place.exists() and not overwrite:
        raise ArgumentError(
            f"{str(place)!r} is there already; save with overwrite=True, or under another name"
        )
    return place


def _text(
    mech: Mechanism, actuators: tuple[Actuator, ...], meshes: MeshFiles, losses: Losses
) -> str:
    from .mjcf import mjcf_text
    from .urdf import urdf_text

    _check_names(mech)
    text = (urdf_text if losses.kind == "URDF" else mjcf_text)(mech, actuators, meshes, losses)
    losses.tell()
    return text


def _check_names(mech: Mechanism) -> None:
    """Refuse names that XML cannot hold, or that do not come back as they are."""
    for name in (*mech.frame_names, *mech.joint_names):
        if not name or name != name.strip() or not name.isprintable():
            raise ModelError(
                f"cannot save {mech.name!r}: the name {name!r} does not fit into a file; names are "
                f"not empty, printable, and without space around them"
            )
