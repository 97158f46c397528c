"""Where a mesh is: `package://`, `file://`, absolute and relative names made into paths.

Nothing is opened; folders and files are only asked whether they exist.  A name may not lead out of
the folder it starts from, unless it ends in one of the folders that the user gave.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import unquote

from ..errors import ModelError
from .xml import shortened

__all__ = ["PathLike", "resolve_mesh"]

PathLike = str | os.PathLike[str]

_PACKAGE = re.compile(r"(?:package|model):/*([^/]+)/*(.*)", re.DOTALL)
_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+:")


def resolve_mesh(
    name: str, folder: PathLike | None, package_dirs: Sequence[PathLike], where: str
) -> str:
    """The path of a mesh that a robot file names.

    folder: of the file that names it; None for a text without one: relative names are kept.
    package_dirs: folders that contain packages, or are packages; then come those of
    ROS_PACKAGE_PATH and AMENT_PREFIX_PATH.  A package in none of them keeps its URI.
    where: "file:line", for the error about a name that climbs out.
    """
    given = [os.path.abspath(d) for d in package_dirs]
    if match := _PACKAGE.fullmatch(name):
        return _in_package(name, match[1], match[2], given, where)
    if name.startswith("file:///"):
        path = unquote(name[len("file://") :])
        # a drive comes after the slash
        return os.path.normpath(path[1:] if os.path.splitdrive(path[1:])[0] else path)
    if _SCHEME.match(name) and not os.path.splitdrive(name)[0]:
        return name
    if os.path.isabs(name):
        return os.path.normpath(name)
    if folder is None:
        return _inside(os.curdir, name, [], name, where)
    return _inside(os.path.abspath(folder), name, given, name, where)


def _in_package(uri: str, package: str, rest: str, given: list[str], where: str) -> str:
    """The file of a package:// URI, the first that exists, or would in the first such package."""
    if package in (os.curdir, os.pardir):
        raise _climbs(uri, where)
    roots = [root for root in _package_roots(package, given) if os.path.isdir(root)]
    if not roots:
        _inside(package, rest, [], uri, where)
        return uri
    paths = [_inside(root, rest, given, uri, where) for root in roots]
    return next((path for path in paths if os.path.exists(path)), paths[0])


def _package_roots(package: str, given: list[str]) -> Iterator[str]:
    """Every folder that may be the package's."""
    for folder in given:
        if Path(folder).name == package:
            yield folder
        yield os.path.join(folder, package)
    for folder in _search_path("ROS_PACKAGE_PATH"):
        if Path(folder).name == package:
            yield folder
        yield os.path.join(folder, package)
    for folder in _search_path("AMENT_PREFIX_PATH"):
        yield os.path.join(folder, "share", package)


def _search_path(variable: str) -> list[str]:
    folders = os.environ.get(variable, "").split(os.pathsep)
    return [os.path.abspath(folder) for folder in folders if folder]


def _inside(folder: str, name: str, given: list[str], written: str, where: str) -> str:
    """folder/name, which must not lead out of the folder but into one of the given ones."""
    path = os.path.normpath(os.path.join(folder, name))
    if not any(_contains(root, path) for root in (os.path.normpath(folder), *given)):
        raise _climbs(written, where)
    return path


def _contains(folder: str, path: str) -> bool:
    if _drive(folder) != _drive(path):
        return False
    relative = os.path.relpath(path, folder)
    return relative != os.pardir and not relative.startswith(os.pardir + os.sep)


def _drive(path: str) -> str:
    return os.path.splitdrive(path)[0].lower()


def _climbs(name: str, where: str) -> ModelError:
    return ModelError(
        f"{where}: mesh {shortened(name, 200)} leads out of its folder; move the mesh, or pass the "
        "folder that holds it in package_dirs"
    )
