"""Names of files: where a mesh is, and how a file that nobody trusts is read.

A mesh is kept by name: `package://`, `file://`, absolute and relative names become paths, wherever
they lead.  Nothing but a package.xml is opened for that; folders and files are only asked whether
they exist.
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

__all__ = [
    "PathLike",
    "package_folders",
    "packages_given",
    "read_bounded",
    "resolve_mesh",
    "tried_folders",
]

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
    package_dirs: as of `package_folders`.  A package that is nowhere keeps its URI.
    """
    if match := _PACKAGE.fullmatch(name):
        return _in_package(name, match[1], match[2], package_dirs, folder)
    if name.startswith("file:///"):
        path = unquote(name[len("file://") :])
        # a drive comes after the slash
        return os.path.normpath(path[1:] if os.path.splitdrive(path[1:])[0] else path)
    if _SCHEME.match(name) and not os.path.splitdrive(name)[0]:
        return name
    if folder is None or os.path.isabs(name):
        return os.path.normpath(name)
    return os.path.normpath(os.path.join(os.path.abspath(folder), name))


def _in_package(
    uri: str,
    package: str,
    rest: str,
    package_dirs: Sequence[PathLike],
    folder: PathLike | None,
) -> str:
    """The file of a package:// URI, the first that exists, or would in the first such package."""
    if package in (os.curdir, os.pardir):
        return uri
    roots = package_folders(package, package_dirs, folder)
    paths = [os.path.normpath(os.path.join(root, rest)) for root in roots]
    return next((path for path in paths if os.path.exists(path)), paths[0] if paths else uri)


def package_folders(
    package: str, package_dirs: Sequence[PathLike], folder: PathLike | None
) -> list[str]:
    """The folders that are a package's, those that are looked at first coming first.

    package_dirs: folders that contain packages, or are packages, by their own name or by that in
    their package.xml; then come those of ROS_PACKAGE_PATH and AMENT_PREFIX_PATH, then folders
    around the file.
    """
    found = [root for root in tried_folders(package, package_dirs, folder) if os.path.isdir(root)]
    return list(dict.fromkeys(found))


def tried_folders(
    package: str, package_dirs: Sequence[PathLike], folder: PathLike | None
) -> Iterator[str]:
    """Every folder that may be the package's."""
    around = [] if folder is None else folders_above(Path(os.path.abspath(folder)))
    for place in [*packages_given(package_dirs), *map(str, around)]:
        if _is_called(place, package):
            yield place
        yield os.path.join(place, package)


def _is_called(folder: str, package: str) -> bool:
    """Whether a folder is a package of that name."""
    if Path(folder).name == package:
        return True
    try:
        manifest = read_bounded(os.path.join(folder, "package.xml"), _MANIFEST)
    except OSError:
        return False
    name = _NAME.search(manifest.decode("utf-8", "ignore"))
    return name is not None and name[1] == package


_MANIFEST = 1_000_000
_NAME = re.compile(r"<name>\s*([^<\s]+)\s*</name>")


def packages_given(package_dirs: Sequence[PathLike]) -> list[str]:
    """The folders in which the user keeps packages: those that he gives, and those of ROS."""
    prefixes = _search_path("AMENT_PREFIX_PATH")
    given = [os.path.abspath(folder) for folder in package_dirs]
    return given + _search_path("ROS_PACKAGE_PATH") + [os.path.join(p, "share") for p in prefixes]


def _search_path(variable: str) -> list[str]:
    folders = os.environ.get(variable, "").split(os.pathsep)
    return [os.path.abspath(folder) for folder in folders if folder]
