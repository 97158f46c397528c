"""Runs the blocks of one page, in a process of its own: what they print, and pictures they make.

    python run_blocks.py BLOCKS.json RESULTS.json

Pictures and scenes are the files with such endings that a block writes into the folder where it
runs, figures that it leaves open in pyplot, and a figure that is its last line.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import sys
import traceback
from pathlib import Path
from typing import Any

SHOWN = (".svg", ".png", ".gif", ".html")


def main(blocks_file: str, results_file: str) -> None:
    """Run the blocks until one raises; of that the traceback is kept."""
    scope: dict[str, Any] = {"__name__": "__main__"}
    results = []
    for number, code in enumerate(json.loads(Path(blocks_file).read_text()), 1):
        printed, before = io.StringIO(), _written()
        raised = None
        try:
            with contextlib.redirect_stdout(printed):
                last = _run(code, f"block {number}", scope)
                _save_figures(last, number)
        except BaseException:
            raised = traceback.format_exc()
        now = _written()
        shown = [name for name in now if now[name] != before.get(name)]
        results.append({"printed": printed.getvalue(), "shown": shown, "raised": raised})
        if raised:
            break
    Path(results_file).write_text(json.dumps(results))


def _run(code: str, title: str, scope: dict[str, Any]) -> Any:
    """The value of the last line, if that is an expression."""
    tree = ast.parse(code, title)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, title, "exec"), scope)
    if isinstance(last, ast.Expr):
        return eval(compile(ast.Expression(last.value), title, "eval"), scope)
    return None


def _written() -> dict[str, int]:
    """The pictures and scenes that are there, and when they were written; oldest first."""
    files = [path for path in Path().iterdir() if path.suffix in SHOWN]
    times = {path.name: path.stat().st_mtime_ns for path in files}
    return dict(sorted(times.items(), key=lambda item: item[1]))


def _save_figures(last: Any, number: int) -> None:
    if hasattr(last, "savefig"):
        last.savefig(f"figure_{number}.svg")
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        for figure in pyplot.get_fignums():
            pyplot.figure(figure).savefig(f"figure_{number}_{figure}.svg")
        pyplot.close("all")


if __name__ == "__main__":
    main(*sys.argv[1:])
