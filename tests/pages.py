"""The README and the documentation: what their Python blocks are, and what these need."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
# what pages may need that not every environment has
OPTIONAL = ("casadi", "dask", "jax", "mujoco", "pinocchio", "sympy", "torch")


def blocks(page: Path) -> list[str]:
    """The Python blocks of a page that are run: those marked `python`; `py` is only shown."""
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), flags=re.S | re.M)


def called(page: Path) -> str:
    """A page by its place in the documentation: several are called index.md."""
    return str(page.relative_to(DOCS) if DOCS in page.parents else page.name)


def targets(page: Path) -> list[str]:
    """Where the links of a page lead, and where its pictures are."""
    return re.findall(r"\]\(([^)#]+)", page.read_text())


def missing(code: str) -> list[str]:
    """The packages among the optional ones that code imports and that are not installed."""
    named = set(re.findall(r"^(?:import|from) (\w+)", code, flags=re.M))
    return [name for name in OPTIONAL if name in named and not _installed(name)]


def _installed(name: str) -> bool:
    found = find_spec(name)
    # a folder of tests of that name is no package
    return found is not None and found.origin is not None
