"""Which `raise` statements of the library ran: each is made to leave a mark when it is imported."""

from __future__ import annotations

import ast
import importlib.machinery
import importlib.util
import sys
from pathlib import Path

MARKS: set[str] = set()
_MARK = "__mark_raise__"


def raises_in(path: Path) -> list[str]:
    """Every raise statement of a file, as "package/file.py:line"."""
    tree = ast.parse(path.read_text())
    return [_place(path, node) for node in ast.walk(tree) if isinstance(node, ast.Raise)]


def install() -> None:
    """Make every later import of hinge leave marks."""
    sys.meta_path.insert(0, _Finder())


class _Finder(importlib.machinery.PathFinder):
    @classmethod
    def find_spec(cls, fullname, path=None, target=None):
        if fullname.partition(".")[0] != "hinge":
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec and spec.origin and isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


class _Loader(importlib.machinery.SourceFileLoader):
    def get_code(self, fullname):
        path = Path(self.path)
        tree = ast.parse(path.read_text())
        _mark(tree, path)
        return compile(tree, self.path, "exec", dont_inherit=True)

    def exec_module(self, module):
        module.__dict__[_MARK] = MARKS.add
        super().exec_module(module)


def _mark(node: ast.AST, path: Path) -> None:
    """Put a mark before each raise within a node: only lists of statements have any."""
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        inside = getattr(node, field, None)
        if isinstance(inside, list):
            for child in inside:
                _mark(child, path)
            setattr(node, field, [x for child in inside for x in (*_marks(child, path), child)])


def _marks(node: ast.AST, path: Path) -> list[ast.AST]:
    if not isinstance(node, ast.Raise):
        return []
    (mark,) = ast.parse(f"{_MARK}({_place(path, node)!r})").body
    return [ast.copy_location(mark, node)]


def _place(path: Path, node: ast.Raise) -> str:
    parts = path.parts
    return f"{'/'.join(parts[parts.index('hinge') + 1 :])}:{node.lineno}"
