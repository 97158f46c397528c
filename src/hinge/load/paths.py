"""Names of files: where a mesh is, and how a file that nobody trusts is read.

A mesh is kept by name: `package://`, `file://`, absolute and relative names become paths, wherever
they lead.  Nothing is opened for that; folders and files are only asked whether they exist.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import unquote

from .project import folders_above

__all__ = ["PathLike", "packages_given", "read_bounded", "resolve_mesh"]

PathLike = str | os.PathLike[str]

_PACKAGE = re.compile(r"(?:package|model):/*([^/]+)/*(.*)", re.DOTALL)
_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+:")


def read_bounded(path: PathLike, limit: int) -> bytes:
    """The contents of a file of at most `limit` bytes; an OSError says why there are none.

    Size and kind are known before anything is read: a pipe does not hang, a device does not fill
    the memory.
    """
    # opening a pipe that nobody writes to waits for ever, unless told not to
    number = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        status = os.fstat(number)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        # what the system makes up while it is read has no size
        size, data = status.st_size, b""
        if size <= limit:
            with open(number, "rb", closefd=False) as file:
                data = file.read(limit + 1)
        if max(size, len(data)) > limit:
            raise OSError(errno.EFBIG, f"it has more than {limit} bytes")
        return data
    finally:
        os.close(number)


def resolve_mesh(name: str, folder: PathLike | None, package_dirs: Sequence[PathLike]) -> str:
    """The path of a mesh that a robot file names.

    folder: of the file that names it; None for a text without one: relative names are kept.
    package_dirs: folders that contain packages, or are packages; then come those of
    ROS_PACKAGE_PATH and AMENT_PREFIX_PATH, then folders around the file that have the package's
    name, or contain it.  A package in none of them keeps its URI.
    """
    if match := _PACKAGE.fullmatch(name):
        around = () if folder is None else folders_above(Path(os.path.abspath(folder)))
        return _in_package(name, match[1], match[2], [*packages_given(package_dirs), *around])
    if name.startswith("file:///"):
        path = unquote(name[len("file://") :])
        # a drive comes after the slash
        return os.path.normpath(path[1:] if os.path.splitdrive(path[1:])[0] else path)
    if _SCHEME.match(name) and not os.path.splitdrive(name)[0]:
        return name
    if folder is None or os.path.isabs(name):
        return os.path.normpath(name)
    return os.path.normpath(os.path.join(os.path.abspath(folder), name))


def _in_package(uri: str, package: str, rest: str, folders: Sequence[PathLike]) -> str:
    """The file of a package:// URI, the first that exists, or would in the first such package."""
    if package in (os.curdir, os.pardir):
        return uri
    roots = [root for root in _package_roots(package, folders) if os.path.isdir(root)]
    paths = [os.path.normpath(os.path.join(root, rest)) for root in roots]
    return next((path for path in paths if os.path.exists(path)), paths[0] if paths else uri)


def _package_roots(package: str, folders: Sequence[PathLike]) -> Iterator[str]:
    """Every folder that may be the package's."""
    for folder in folders:
        if Path(folder).name == package:
            yield str(folder)
        yield os.path.join(folder, package)


def packages_given(package_dirs: Sequence[PathLike]) -> list[str]:
    """The folders in which the user keeps packages: those that he gives, and those of ROS."""
    prefixes = _search_path("AMENT_PREFIX_PATH")
    given = [os.path.abspath(folder) for folder in package_dirs]
    return given + _search_path("ROS_PACKAGE_PATH") + [os.path.join(p, "share") for p in prefixes]


def _search_path(variable: str) -> list[str]:
    folders = os.environ.get(variable, "").split(os.pathsep)
    return [os.path.abspath(folder) for folder in folders if folder]
