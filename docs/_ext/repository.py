"""Pages as they are in the repository become pages of the site.

Links to files that are no pages lead to the repository, those that name a function to its line;
the contents are put behind the first page, and formulas become MathML, which browsers draw by
themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.utils.math import latex2mathml
from sphinx.application import Sphinx

LINK = re.compile(r"(\]\()(?!\w+:|#)([^)#\s]+)")
NAMED = re.compile(r"(\[`(\w+)`[^\]]*\]\((?!\w+:)([^)#\s]+\.py))\)")
FENCE = re.compile(r"^( *```.*?^ *```)", re.S | re.M)
PICTURES = (".svg", ".gif", ".png")


def own_links(app: Sphinx, docname: str, source: list[str]) -> None:
    """Links to files of the repository, where those are no pages, become addresses."""
    page, docs = Path(app.env.doc2path(docname)), Path(app.srcdir)

    def led(match: re.Match[str]) -> str:
        target = (page.parent / match[2]).resolve()
        inside = target.is_relative_to(docs) and target.suffix in (".md", *PICTURES)
        if inside or not target.exists():
            # what is not there is for the parser to complain of
            return match[0]
        kind = "tree" if target.is_dir() else "blob"
        return f"{match[1]}{app.config.repository}/{kind}/main/{target.relative_to(docs.parent)}"

    parts = FENCE.split(source[0])
    for i in range(0, len(parts), 2):
        with_lines = NAMED.sub(lambda match: _at_line(page, *match.groups()), parts[i])
        parts[i] = LINK.sub(led, with_lines)
    source[0] = "".join(parts)


def _at_line(page: Path, link: str, name: str, target: str) -> str:
    """A link to a source file, with the line where what it names first is defined."""
    lines = (page.parent / target).read_text().splitlines()
    found = (n for n, line in enumerate(lines, 1) if re.match(rf"(def|class) {name}\b", line))
    line = next(found, None)
    return f"{link}#L{line})" if line else f"{link})"


def contents(app: Sphinx, docname: str, source: list[str]) -> None:
    """Put the table of contents behind the first page."""
    if docname == app.config.root_doc:
        source[0] += "\n" + "\n".join(_toctrees(app.config.navigation))


def _toctrees(navigation: dict[str, list[str]]) -> Iterator[str]:
    for caption, pages in navigation.items():
        listed = "\n".join(pages)
        yield f"```{{toctree}}\n:hidden:\n:glob:\n:caption: {caption}\n\n{listed}\n```\n"


def draw_formula(translator: Any, node: nodes.math) -> None:
    """A formula in a line."""
    translator.body.append(_mathml(node, display=False))
    raise nodes.SkipNode


def draw_formula_block(translator: Any, node: nodes.math_block) -> None:
    """A formula in a line of its own."""
    translator.body.append(f'<div class="formula">{_mathml(node, display=True)}</div>')
    raise nodes.SkipNode


def _mathml(node: nodes.Element, display: bool) -> str:
    text = node.astext()
    if display and re.search(r"\\\\|&", text) and r"\begin" not in text:
        text = rf"\begin{{aligned}}{text}\end{{aligned}}"
    tree = latex2mathml.tex2mathml(text, as_block=display)
    return tree if isinstance(tree, str) else tree.toxml()


def setup(app: Sphinx) -> dict[str, Any]:
    """For Sphinx."""
    app.add_config_value("repository", "", "env")
    app.add_config_value("navigation", {}, "env")
    app.connect("source-read", own_links)
    app.connect("source-read", contents)
    app.add_html_math_renderer("mathml", (draw_formula, None), (draw_formula_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
