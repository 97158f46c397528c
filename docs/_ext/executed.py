"""The Python blocks of pages are run when the site is built, and what they give is shown.

On the pages these are plain fences; the rules are those of the tests (tests/pages.py).  Every page
is run in a process of its own, as many at once as there are processors.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging

from pages import blocks, missing

RUNNER = Path(__file__).with_name("run_blocks.py")
FRAME = '<iframe class="scene" src="{}" loading="lazy" title="{}"></iframe>'
PICTURE = '<img class="made" src="{}" alt="{}">'
log = logging.getLogger(__name__)


class Page(NamedTuple):
    """What became of the blocks of a page: results in order, or the packages that it lacks."""

    results: list[dict[str, Any]]
    lacks: list[str]


def run_pages(app: Sphinx, env: Any, docnames: list[str]) -> None:
    """Run the blocks of the pages that are read."""
    found = {name: Path(env.doc2path(name)) for name in docnames}
    found = {name: path for name, path in found.items() if path.suffix == ".md" and blocks(path)}
    log.info("running the blocks of %d pages", len(found))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        ran = pool.map(lambda item: run_page(*item, app.outdir / "_made"), found.items())
        app.executed = dict(zip(found, ran, strict=True))  # type: ignore[attr-defined]


def run_page(name: str, path: Path, made: Path) -> Page:
    """Run the blocks of a page; pictures and scenes come into a folder of its name."""
    code = blocks(path)
    if lacks := missing("\n".join(code)):
        return Page([], lacks)
    with tempfile.TemporaryDirectory() as folder:
        given, given_back = Path(folder, "blocks.json"), Path(folder, "results.json")
        given.write_text(json.dumps(code))
        here = Path(folder, "here")
        here.mkdir()
        command = [sys.executable, str(RUNNER), str(given), str(given_back)]
        started = time.perf_counter()
        ended = subprocess.run(command, cwd=here, capture_output=True, text=True)
        log.info("ran the blocks of %s: %.1f s", name, time.perf_counter() - started)
        if not given_back.exists():
            crash = f"the process ended with {ended.returncode}\n{ended.stderr[-2000:]}"
            return Page([{"printed": "", "shown": [], "raised": crash}], [])
        results = json.loads(given_back.read_text())
        for file in {file for result in results for file in result["shown"]}:
            (made / name).mkdir(parents=True, exist_ok=True)
            shutil.copyfile(here / file, made / name / file)
    return Page(results, [])


def show_results(app: Sphinx, doctree: nodes.document) -> None:
    """Put what the blocks of a page gave under them."""
    name = app.env.docname
    page: Page | None = app.executed.get(name)  # type: ignore[attr-defined]
    if page is None:
        return
    code = [n for n in doctree.findall(nodes.literal_block) if n.get("language") == "python"]
    # examples in the entries of the reference are repeated from the blocks
    cells = [node for node in code if "example" not in node["classes"]]
    if page.lacks:
        words = f"These blocks were not run when the site was built: it has no {page.lacks[0]}."
        cells[0].parent.insert(cells[0].parent.index(cells[0]), _remark(words))
        return
    if len(cells) != len(page.results) and not page.results[-1]["raised"]:
        log.warning(
            "%d blocks were run, %d are shown", len(page.results), len(cells), location=name
        )
    for number, (cell, result) in enumerate(zip(cells, page.results, strict=False), 1):
        if result["raised"]:
            log.warning("block %d raises\n%s", number, result["raised"], location=cell)
        cell.parent.insert(cell.parent.index(cell) + 1, list(_given(name, result)))


def _given(name: str, result: dict[str, Any]) -> Iterator[nodes.Node]:
    if text := result["printed"].rstrip():
        yield nodes.literal_block(text, text, language="text", classes=["printed"])
    for file in result["shown"]:
        address = f"{'../' * name.count('/')}_made/{name}/{file}"
        form = FRAME if file.endswith(".html") else PICTURE
        yield nodes.raw("", form.format(address, file), format="html")


def _remark(words: str) -> nodes.paragraph:
    return nodes.paragraph(words, words, classes=["remark"])


def setup(app: Sphinx) -> dict[str, Any]:
    """For Sphinx."""
    app.connect("env-before-read-docs", run_pages)
    app.connect("doctree-read", show_results)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
