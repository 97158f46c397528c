"""Which folders a model may read from.

A model reads its own folder, those that the user gave, and of its project the files that models are
made of.  The project is the nearest folder above that looks like one: it holds a `.git`, a
`pyproject.toml` or such, or is a Python package; where none does, it is the folder above the
model's own.  It never is the home folder, the folder for temporary files, the one that packages are
installed in, or one that contains these.  Links count as where they lead to.

A URDF's meshes are opened when it is looked at, from the same folders and from packages that lie
beside its own (they hold a `package.xml`).  What lies in a folder that the user gave is read as he
sees it there, links included: a workspace may be made of links.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

__all__ = ["MeshReach", "Reach", "folders_above"]

_MANIFEST = "package.xml"
_MARKS = (".git", ".hg", "pyproject.toml", "setup.py", "setup.cfg", _MANIFEST)
_PACKAGE = "__init__.py"
_INSTALLED = ("site-packages", "dist-packages")
# what a model is made of; nothing else is read from around its folder
_MESHES = {".stl", ".obj", ".msh", ".dae", ".gltf", ".glb", ".ply", ".off", ".vtk", ".gmsh"}
_KINDS = {".xml", ".mjcf", ".urdf"} | _MESHES


class Reach:
    """The folders that a model may read: `roots` whole, of `project` what models are made of."""

    def __init__(self, folder: str | None, given: Sequence[str], only_own: bool = False) -> None:
        self.roots = list(given) if folder is None else [folder, *given]
        self.project = None if folder is None or only_own else _project(Path(folder))

    def holds(self, path: str) -> bool:
        """Whether a file may be read; the path has no links in it."""
        if any(Path(path).is_relative_to(root) for root in self.roots):
            return True
        if self.project is None or not Path(path).is_relative_to(self.project):
            return False
        return _is_of_model(Path(path).relative_to(self.project), _KINDS)

    def __str__(self) -> str:
        project = f", nor a mesh or model of {str(self.project)!r}" if self.project else ""
        return ", ".join(map(repr, self.roots)) + project


class MeshReach:
    """The meshes that a URDF in a folder may name; given: where the user keeps packages."""

    def __init__(self, folder: str | os.PathLike[str] | None, given: Sequence[str]) -> None:
        own = None if folder is None else os.path.realpath(folder)
        self.given, self.reach = given, Reach(own, [])
        self.above = [] if own is None else folders_above(Path(own))

    def holds(self, path: str) -> bool:
        """Whether a mesh may be read."""
        if any(Path(os.path.abspath(path)).is_relative_to(root) for root in self.given):
            return True
        real = os.path.realpath(path)
        return self.reach.holds(real) or any(_is_beside(folder, real) for folder in self.above)


def _is_beside(folder: Path, path: str) -> bool:
    """Whether a file is a mesh of one of the packages in a folder."""
    inner = Path(path).relative_to(folder) if Path(path).is_relative_to(folder) else Path()
    return _is_of_model(inner, _MESHES) and (folder / inner.parts[0] / _MANIFEST).is_file()


def _is_of_model(inner: Path, kinds: set[str]) -> bool:
    """Whether a file is of a kind that models are made of, and nothing on the way is hidden."""
    return inner.suffix.lower() in kinds and not any(part.startswith(".") for part in inner.parts)


def folders_above(folder: Path) -> list[Path]:
    """The folder and those around it, up to one that is everybody's or a person's."""
    above = []
    for candidate in (folder, *folder.parents):
        if _is_shared(candidate):
            break
        above.append(candidate)
    return above


def _project(folder: Path) -> Path | None:
    """The project that a folder belongs to."""
    above = folders_above(folder)
    for i, candidate in enumerate(above):
        if (candidate / _PACKAGE).is_file():
            return _outermost_package(above[i:])
        if any((candidate / mark).exists() for mark in _MARKS):
            return candidate
    return above[1] if len(above) > 1 else None


def _outermost_package(above: list[Path]) -> Path:
    inside = [(folder / _PACKAGE).is_file() for folder in above]
    return above[(inside + [False]).index(False) - 1]


def _is_shared(folder: Path) -> bool:
    """Whether a folder is no model's, but everybody's or a person's."""
    common = [os.path.realpath(f) for f in (os.path.expanduser("~"), tempfile.gettempdir())]
    holds = any(Path(f).is_relative_to(folder) for f in common)
    return holds or folder.parent == folder or folder.name in _INSTALLED
