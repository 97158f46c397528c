"""Xacro: files of macros, expanded into URDF by the `xacro` package of ROS.

Expressions in such a file are Python, and it reads other files: it is a program, to be trusted.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from ..errors import ModelError
from .paths import PathLike, package_folders, tried_folders

__all__ = ["expanded"]

# the package keeps what it does in globals
_ONE_AT_A_TIME = threading.Lock()


def expanded(
    path: PathLike,
    arguments: Mapping[str, Any] | None,
    package_dirs: Sequence[PathLike],
    folder: PathLike,
) -> str:
    """The URDF text of a xacro file.

    arguments: values of its <xacro:arg>; package_dirs: where $(find …) leads, as `package_folders`.
    """
    try:
        xacro = import_module("xacro")
    except ImportError:
        raise ModelError(
            f"{path}: xacro files are expanded by the xacro package, which is missing; "
            f'pip install "hinge-dynamics[xacro]"'
        ) from None
    mappings = {name: str(value) for name, value in (arguments or {}).items()}
    try:
        with _ONE_AT_A_TIME, _finding(package_dirs, folder):
            return xacro.process_file(str(path), mappings=mappings).toxml()
    except ModelError as problem:
        raise ModelError(f"{path}: {problem}") from None
    except Exception as problem:  # expressions of the file may raise anything
        told = _innermost(problem)
        if isinstance(told, ModelError):
            raise ModelError(f"{path}: {told}") from None
        raise ModelError(f"{path}: xacro refuses it: {type(told).__name__}: {problem}") from None


def _innermost(problem: BaseException) -> BaseException:
    """What was raised first; xacro wraps it."""
    while isinstance(inner := getattr(problem, "exc", None), BaseException):
        problem = inner
    return problem


@contextmanager
def _finding(package_dirs: Sequence[PathLike], folder: PathLike) -> Iterator[None]:
    """Let $(find …) look where meshes are looked for, without ROS."""
    words: Any = import_module("xacro.substitution_args")

    def find(package: str) -> str:
        found = package_folders(package, package_dirs, folder)
        if not found:
            tried = ", ".join(dict.fromkeys(tried_folders(package, package_dirs, folder)))
            raise ModelError(
                f"there is no package {package!r}; pass the folder that holds it in package_dirs "
                f"(tried: {tried})"
            )
        return found[0]

    before = words._eval_find, words._eval_dict["find"]
    words._eval_find = words._eval_dict["find"] = find
    try:
        yield
    finally:
        words._eval_find, words._eval_dict["find"] = before
