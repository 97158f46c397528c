"""The reference: behind the examples of each of its pages, every public name of the chapter.

Signature and words come from the source, shapes from the declarations of arrays, counts of
operations from the kernels themselves, examples from the blocks of the page.
"""

from __future__ import annotations

import contextlib
import inspect
import re
from collections.abc import Iterator
from functools import cache
from types import SimpleNamespace
from typing import Any

from sphinx.application import Sphinx
from sphinx.util import logging

import hinge
from hinge.model.parameters import PARAMETERS
from hinge.robot.method import Method
from hinge.specialize.arrays import PER_CONSTRAINT, PER_DOF, PER_ROW, array_shape
from public import CHAPTERS, Entry, entries, example, members
from units import MEANINGS, RESULTS, UNITS

log = logging.getLogger(__name__)

# what settings are when operations are counted
CHOSEN = {
    "frame": "tool",
    "frames": ("tool",),
    "active": (1, 1, 1, 0, 0, 0, 0),
    "constraints": (hinge.Contact("tool"),),
}
# statements of an example that are shown
MOST = 3
SYMBOLIC: Any = SimpleNamespace(nq="nq", nv="nv", n_bodies="n_bodies")


def put_behind(app: Sphinx, docname: str, source: list[str]) -> None:
    """Put the entries of a chapter behind its examples."""
    folder, _, page = docname.partition("/")
    if folder == "reference" and page in CHAPTERS:
        text = "\n".join(line for entry in entries(page) for line in described(page, entry))
        source[0] += f"\n````{{eval-rst}}\n{text}\n````\n"


def described(page: str, entry: Entry) -> Iterator[str]:
    """An entry, as reStructuredText."""
    if not entry.doc:
        log.warning("%s has no docstring", entry.full_name)
    # methods of robots are called on one: the others by their whole name
    own = entry.full_name.startswith("hinge.Robot.")
    yield from headed(entry, entry.full_name.removeprefix("hinge.") if own else entry.full_name)
    if entry.method:
        yield from indented(arguments(entry.method), 3)
        yield from indented(["", operations(entry.method.name), ""], 3)
    if shown := example(page, entry.name)[:MOST]:
        fence = ["", ".. code-block:: python", "   :class: example", ""]
        yield from indented([*fence, *indented(shown, 3), ""], 3)
    for member in members(entry):
        yield from indented(headed(member, member.name), 3)


def headed(entry: Entry, shown: str) -> Iterator[str]:
    """The signature and the docstring."""
    yield f".. py:{kind_of(entry)}:: {shown}{signature(entry)}"
    yield ""
    yield from indented(words(entry.doc, known_names(entry.thing)), 3)


def kind_of(entry: Entry) -> str:
    """What Sphinx calls it."""
    if inspect.isclass(entry.thing):
        return "exception" if issubclass(entry.thing, Exception) else "class"
    of_class = entry.full_name.count(".") > 1 and entry.full_name.split(".")[-2][0].isupper()
    if inspect.isroutine(entry.thing):
        return "method" if of_class else "function"
    return "attribute" if of_class else "data"


def signature(entry: Entry) -> str:
    """Names and defaults; for numbers of the mechanism see the page of robots."""
    if not callable(entry.thing) or kind_of(entry) == "exception":
        return ""
    try:
        given = inspect.signature(entry.thing).parameters.values()
    except ValueError:
        return "()"
    shown = [
        p for p in given if p.name != "self" and not (entry.method and p.kind is p.VAR_KEYWORD)
    ]
    return f"({', '.join(_parameter(p) for p in shown)})"


def _parameter(p: inspect.Parameter) -> str:
    stars = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
    if p.default is p.empty:
        return stars + p.name
    default = getattr(p.default, "__name__", None) or repr(p.default)
    return f"{p.name}={default if '<' not in default else '…'}"


def words(doc: str, known: set[str]) -> Iterator[str]:
    """A docstring: paragraphs, lines that explain a known name, and what is indented as it is."""
    for part in re.split(r"\n\s*\n", doc):
        if part.startswith(">>> "):
            yield from (part, "")
        elif part.startswith("    "):
            yield from ("::", "", part, "")
        else:
            yield from (line for piece in _pieces(part, known) for line in (piece, ""))


def _pieces(part: str, known: set[str]) -> Iterator[str]:
    pieces = [""]
    for line in part.splitlines():
        named, _, rest = line.partition(": ")
        if rest and set(named.split(", ")) <= known:
            pieces += [f"**{named}**: {_escaped(rest)}"]
        else:
            pieces[-1] += f" {_escaped(line.strip())}"
    yield from (piece.strip() for piece in pieces if piece)


def _escaped(text: str) -> str:
    """As it is, but that what stands in backticks is code."""
    parts = re.split(r"`([^`]+)`", text)
    parts[::2] = [re.sub(r"([\\*_|`])", r"\\\1", part) for part in parts[::2]]
    parts[1::2] = [f"\\ ``{part}``\\ " for part in parts[1::2]]
    return "".join(parts)


def known_names(thing: Any) -> set[str]:
    """Arguments of a function, attributes of a class."""
    named = set(getattr(thing, "__annotations__", {}))
    with contextlib.suppress(TypeError, ValueError):
        named |= set(inspect.signature(thing).parameters)
    return named


def arguments(method: Method) -> Iterator[str]:
    """The arrays that a method takes, as a table."""
    rows = [row(p.name) for p in method.parameters if p.is_array and p.name != "out"]
    yield from (".. list-table::", "   :class: arguments", "")
    for name, shape, unit, meaning in rows:
        yield f"   * - ``{name}``"
        yield from (f"     - {shape}", f"     - {meaning}", f"     - {unit}")
    yield "   * - result"
    yield from ("     -", "     -", f"     - {RESULTS[method.name]}")
    yield ""


def row(name: str) -> tuple[str, str, str, str]:
    """Name, shape, unit and meaning of an array."""
    held = {**PER_CONSTRAINT, **PER_ROW}
    count = (
        "contacts, 4, 4"
        if name == "anchors"
        else "constraints"
        if name in PER_CONSTRAINT
        else "rows"
    )
    inner = (
        count
        if name in held or name == "anchors"
        else ", ".join(map(str, array_shape(SYMBOLIC, name)))
    )
    of_mechanism = f"the {name} of the mechanism" if name in PARAMETERS else ""
    meaning = {**PER_DOF, **held, **MEANINGS}.get(name, of_mechanism or "coordinates")
    return name, f"(…, {inner})" if inner else "(…)", UNITS.get(name, ""), meaning


@cache
def operations(name: str) -> str:
    """What one sample of a seven-jointed arm takes."""
    robot = hinge.zoo.arm(7)
    method: Method = inspect.getattr_static(hinge.Robot, name)
    needed = [p for p in method.parameters if p.required]
    static = {p.name: CHOSEN[p.name] for p in needed if not p.is_array}
    ops = robot.kernel(name, *(p.name for p in needed if p.is_array), **static).ops
    counts = [f"{n} {word}" for n, word in zip(ops, ops._fields, strict=True) if n]
    return f"One sample of ``zoo.arm(7)``: {', '.join(counts) or 'no operation'}."


def indented(lines: Iterator[str] | list[str], by: int) -> Iterator[str]:
    """Lines further to the right."""
    for text in lines:
        yield from ((" " * by + line).rstrip() for line in text.split("\n"))


def setup(app: Sphinx) -> dict[str, Any]:
    """For Sphinx."""
    app.connect("source-read", put_behind)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
