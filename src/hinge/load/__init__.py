"""From files to mechanisms: URDF, xacro through ROS's package, MJCF through `mujoco`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import ArgumentError, ModelError
from ..model.mechanism import Mechanism
from .limits import MAX_MEMORY, MAX_SECONDS

if TYPE_CHECKING:
    from .loaded import Loaded

__all__ = ["MAX_MEMORY", "MAX_SECONDS", "load_closed", "load_mechanism"]


def load_mechanism(
    path_or_text: str | Path,
    floating_base: bool = False,
    package_dirs: Sequence[str | Path] = (),
    isolate: bool = False,
    max_memory: int = MAX_MEMORY,
    max_seconds: float = MAX_SECONDS,
    lenient: bool = False,
    xacro_args: Mapping[str, Any] | None = None,
) -> Mechanism:
    """The mechanism in a URDF, xacro or MJCF file, or in the text; constraints are left out."""
    limits = isolate, max_memory, max_seconds
    faults = False, lenient, xacro_args
    return load_closed(path_or_text, floating_base, package_dirs, *limits, *faults).mechanism


def load_closed(
    path_or_text: str | Path,
    floating_base: bool,
    package_dirs: Sequence[str | Path],
    isolate: bool,
    max_memory: int,
    max_seconds: float,
    constraints: bool,
    lenient: bool = False,
    xacro_args: Mapping[str, Any] | None = None,
) -> Loaded:
    """What is in a URDF, xacro or MJCF file, or in the text of one (which begins with "<").

    constraints: of an MJCF file what closes its loops, too; a URDF has none.
    isolate, max_memory, max_seconds: of MuJoCo's compiler (`read_closed_mjcf`); no foreign code
    reads a URDF, and no file that it names is opened.  lenient: as of `read_urdf`.
    xacro_args: arguments of a xacro file, which is expanded if it is called so (.xacro) or if there
    are some; it is a program, and is not read with `isolate`.
    """
    # a program that loads no file need not wait for the readers
    from .mjcf import read_closed_mjcf
    from .urdf import loaded_urdf
    from .xacro import expanded
    from .xml import parse

    if not isinstance(path_or_text, (str, os.PathLike)):
        raise ModelError(
            f"load needs the path of a URDF or MJCF file, or its text, got {path_or_text!r}"
        )
    if isinstance(path_or_text, str) and path_or_text.lstrip(" \t\r\n\ufeff").startswith("<"):
        text, source, folder = path_or_text, "<text>", None
    else:
        path = Path(path_or_text)
        text, source, folder = _read(path), str(path), path.resolve().parent
    for name, limit in (("max_memory", max_memory), ("max_seconds", max_seconds)):
        if not (isinstance(limit, (int, float)) and limit > 0):
            raise ArgumentError(f"{name} is {limit!r}; give a positive number")
    root = parse(text, source)
    if folder is not None and (source.lower().endswith(".xacro") or xacro_args is not None):
        if isolate:
            raise ModelError(
                f"{source}: is a xacro file, which runs Python; it is not read with isolate=True: "
                f"expand it yourself, or trust it"
            )
        root = parse(expanded(source, xacro_args, package_dirs, folder), source)
    if root.tag == "robot":
        return loaded_urdf(root, floating_base, package_dirs, folder, lenient)
    if root.tag in ("mujoco", "mujocoinclude"):
        limits = isolate, int(max_memory), float(max_seconds)
        place = floating_base, folder, package_dirs
        return read_closed_mjcf(text, source, *place, *limits, bool(constraints))
    sdf = "; SDF is not read, since no package on PyPI resolves its frames: convert it to URDF"
    raise ModelError(
        f"{source}:{root.line}: the root element is <{root.tag[:60]}>; expected <robot> (URDF) or "
        f"<mujoco> (MJCF){sdf if root.tag == 'sdf' else ''}"
    )


def _read(path: Path) -> bytes:
    from .paths import read_bounded
    from .xml import MAX_BYTES, shortened

    try:
        return read_bounded(path, MAX_BYTES)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ModelError(
            f"cannot read {shortened(str(path), 200)}: {reason}; give the path of a URDF or MJCF "
            f"file, or its text"
        ) from None
