"""From files to mechanisms: URDF, and MJCF through the `mujoco` package."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from ..errors import ModelError
from ..model.mechanism import Mechanism

__all__ = ["load_mechanism"]


def load_mechanism(
    path_or_text: str | Path,
    floating_base: bool = False,
    package_dirs: Sequence[str | Path] = (),
) -> Mechanism:
    """The mechanism in a URDF or MJCF file, or in the text of one (which begins with "<")."""
    # a program that loads no file need not wait for the readers
    from .mjcf import read_mjcf
    from .urdf import mechanism_of
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
    root = parse(text, source)
    if root.tag == "robot":
        return mechanism_of(root, floating_base, package_dirs, folder)
    if root.tag in ("mujoco", "mujocoinclude"):
        return read_mjcf(
            text, source, floating_base=floating_base, folder=folder, package_dirs=package_dirs
        )
    raise ModelError(
        f"{source}:{root.line}: the root element is <{root.tag[:60]}>; expected <robot> (URDF) or "
        f"<mujoco> (MJCF)"
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
