"""The robot files in installed packages, found in what pip wrote down about each of them."""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

# the first element of a document, after declarations and comments
_ROOT = re.compile(rb"(?:(?><\?.*?\?>|<!--.*?-->|<![^>]*>|[^<]))*+<([\w:]+)", re.DOTALL)
SUFFIXES = (".urdf", ".xml", ".mjcf")
_KINDS = {b"robot": "urdf", b"mujoco": "mjcf"}


@dataclass(frozen=True)
class Found:
    """A robot file: the package and version that brought it, its name there, and its kind."""

    package: str
    version: str
    name: str
    path: Path
    kind: str

    def __str__(self) -> str:
        return f"{self.package}: {self.name}"


def robot_files(packages: Iterable[str] = (), site: str | None = None) -> list[Found]:
    """Those of the named packages, or of all that are installed, sorted.

    site: a folder of packages to look in, where it is not this Python's own.
    """
    wanted = {_canonical(name) for name in packages}
    where = {} if site is None else {"path": [site]}
    found = {}
    for dist in importlib.metadata.distributions(**where):
        package = _canonical(dist.metadata["Name"])
        if not wanted or package in wanted:
            found |= {str(file.path): file for file in _of(dist, package)}
    return sorted(found.values(), key=str)


def files_below(folder: Path) -> list[Found]:
    """Those below a folder; the first part of a file's name stands for its package."""
    found = []
    for path in sorted(folder.rglob("*")):
        if path.suffix.lower() in SUFFIXES and path.is_file() and (kind := kind_of(path)):
            name = path.relative_to(folder)
            found.append(Found(name.parts[0], "", name.as_posix(), path, kind))
    return found


def _of(dist: importlib.metadata.Distribution, package: str) -> Iterator[Found]:
    for file in dist.files or ():
        if file.suffix.lower() in SUFFIXES:
            path = Path(str(file.locate())).resolve()
            if path.is_file() and (kind := kind_of(path)):
                name = "/".join(part for part in file.parts if part != "..")
                yield Found(package, dist.version, name, path, kind)


def kind_of(path: Path) -> str | None:
    """By the root element; files that are only parts of others (`mujocoinclude`) have none."""
    match = _ROOT.match(path.read_bytes())
    return _KINDS.get(match[1]) if match else None


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
