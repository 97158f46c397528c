"""Robots by name, through the `robot_descriptions` package, which fetches their files."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any, NamedTuple

from ..errors import ModelError
from ..model.mechanism import did_you_mean

__all__ = ["Description", "description"]


class Description(NamedTuple):
    """The file of a robot, the folders of its packages, and values for its xacro arguments."""

    path: str
    package_dirs: tuple[str, ...]
    xacro_args: dict[str, str]


def description(name: str) -> Description:
    """The description of that name, "panda_description" or "panda"; fetched if it is not there."""
    try:
        known = import_module("robot_descriptions").DESCRIPTIONS
    except ImportError:
        raise ModelError(
            f"robots by name, such as {name!r}, come through robot_descriptions, which is missing; "
            f'pip install "hinge-dynamics[descriptions]"'
        ) from None
    called = next((n for n in (name, f"{name}_description") if n in known), None)
    if called is None:
        hint = did_you_mean(str(name), known)
        raise ModelError(f"robot_descriptions has no {name!r}; {hint}")
    try:
        module = import_module(f"robot_descriptions.{called}")
    except Exception as problem:  # git, the network, the disk
        raise ModelError(
            f"{called} could not be fetched: {type(problem).__name__}: {problem}"
        ) from None
    path = next((getattr(module, n) for n in _PATHS if hasattr(module, n)), None)
    if path is None:
        raise ModelError(f"{called} has no file; expected one of {', '.join(_PATHS)}")
    return Description(path, _folders(module), dict(getattr(module, "XACRO_ARGS", {})))


_PATHS = ("URDF_PATH", "MJCF_PATH", "XACRO_PATH")


def _folders(module: Any) -> tuple[str, ...]:
    """Folders that are the description's packages, or hold them."""
    own = [getattr(module, n, "") for n in ("PACKAGE_PATH", "REPOSITORY_PATH")]
    named = getattr(module, "XACRO_PACKAGE_PATHS", {}).values()
    places = [path for path in (*own, *named) if path]
    return tuple(dict.fromkeys([*places, *map(os.path.dirname, places)]))
