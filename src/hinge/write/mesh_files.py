"""Mesh files of a robot that is saved: named relative to its file, those from elsewhere copied.

Copies lie in meshes/FOLDER/ beside the file, FOLDER being what the folder of a mesh is called, so
that what a mesh names in turn (textures, materials, buffers of its own folder) keeps its name.  A
file that is there already and differs is never written over: FOLDER gets a number.  A file that the
robot's own file may not read is not copied, since that would bring it to where it is read.
"""

from __future__ import annotations

import filecmp
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from urllib.parse import unquote

from ..load.paths import read_bounded
from ..model.shapes import Shape
from .losses import Losses

__all__ = ["MeshFiles"]

_COPIES = "meshes"
_STAYS = "meshes that stay where they are, for package_dirs of hinge.load, in"
_LARGEST = 200_000_000  # bytes of a file that is searched for names of others
# files that name others, and the names: textures, materials, buffers
_NAMING = (".obj", ".mtl", ".dae", ".gltf")
_ENDINGS = rb"\.(?:mtl|bin|png|jpe?g|bmp|tga|tiff?|webp)\b"
_NAMED = re.compile(rb"[^\s\"'<>=]{1,255}" + _ENDINGS, re.IGNORECASE)


class MeshFiles:
    """The meshes that a file in a folder names; copy: bring those from elsewhere there."""

    def __init__(self, folder: Path, copy: bool, losses: Losses) -> None:
        self._folder, self._copy, self._losses = folder, copy, losses
        self._homes: dict[Path, Path] = {}
        self._copies: dict[Path, Path] = {}

    def name(self, shape: Shape) -> str:
        """How the file names the mesh of a shape: relative, where it lies or will lie below."""
        path = shape.mesh or ""
        if "://" in path or not os.path.isabs(path):
            return path
        if Path(os.path.realpath(path)).is_relative_to(os.path.realpath(self._folder)):
            return Path(os.path.relpath(path, self._folder)).as_posix()
        if self._copy and shape.may_read and os.path.isfile(path):
            return self._copied(Path(path)).relative_to(self._folder).as_posix()
        self._losses.leave_out(_STAYS, os.path.dirname(path))
        return path

    @contextmanager
    def copied(self) -> Iterator[None]:
        """Copy what was named; an error in the block takes the copies away again."""
        made: list[Path] = []
        try:
            for source, copy in self._copies.items():
                if not copy.exists():
                    missing = [p for p in copy.parents if not p.exists()]
                    copy.parent.mkdir(parents=True, exist_ok=True)
                    made += missing[::-1]
                    with open(source, "rb") as old, open(copy, "xb") as new:
                        made.append(copy)
                        shutil.copyfileobj(old, new)
            yield
        except BaseException:
            for path in reversed(made):
                path.rmdir() if path.is_dir() else path.unlink()
            raise

    def _copied(self, path: Path) -> Path:
        """Where the copy of a file will be, and of those that it names."""
        source = path.parent
        home = self._homes.get(source) or self._homes.setdefault(source, self._home(source))
        if path not in self._copies:
            self._copies[path] = home / path.name
            waiting = [path]
            for file in waiting:
                fresh = [other for other in _named_in(file, source) if other not in self._copies]
                self._copies |= {other: home / other.relative_to(source) for other in fresh}
                waiting += fresh
        return self._copies[path]

    def _home(self, source: Path) -> Path:
        """A folder for the copies of a folder's files, which has no others of their names."""
        name, taken = source.name or "root", self._homes.values()
        homes = (self._folder / _COPIES / (f"{name}_{i}" if i > 1 else name) for i in count(1))
        return next(home for home in homes if home not in taken and _agree(source, home))


def _agree(source: Path, home: Path) -> bool:
    """Whether files of the same name in both folders are the same."""
    if not home.is_dir():
        return not os.path.lexists(home)
    pairs = ((source / file.relative_to(home), file) for file in home.rglob("*"))
    return all(
        filecmp.cmp(old, new, shallow=False) for old, new in pairs if old.is_file() and new.exists()
    )


def _named_in(file: Path, folder: Path) -> list[Path]:
    """The files that a mesh or material names, as far as they lie in the mesh's folder or below."""
    if file.suffix.lower() not in _NAMING:
        return []
    try:
        found = set(_NAMED.findall(read_bounded(file, _LARGEST)))
    except OSError:
        return []
    home, inner = Path(os.path.realpath(folder)), []
    for name in sorted(found):
        path = Path(os.path.normpath(folder / unquote(name.decode("utf-8", "replace"))))
        if path.is_file() and path.is_relative_to(folder):
            inner.append(path)
    return [path for path in inner if Path(os.path.realpath(path)).is_relative_to(home)]
