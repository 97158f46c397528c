"""`python -m tests.corpus`: every robot file of installed packages, and a page about them.

Install what is in tests/corpus/packages.txt with `pip install --no-deps`, into an environment of
its own (only files are wanted, and the packages' requirements contradict one another), and name its
folder of packages with --site.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from rich.console import Console
from rich.progress import track

sys.path.insert(0, str(Path(__file__).parents[1]))

from corpus.files import files_below, robot_files  # noqa: E402
from corpus.page import write  # noqa: E402
from corpus.refusals import Refusals  # noqa: E402
from corpus.verdicts import Judge, Verdict  # noqa: E402


def main() -> int:
    """Exit with 1 if a file differs, crashes a reader, or is refused for no known reason."""
    options = _options()
    files = files_below(options.folder) if options.folder else robot_files(site=options.site)
    files = [file for file in files if re.search(options.only, str(file))]
    judge, console, listed = Judge(options.seed), Console(stderr=True), Refusals.read()
    verdicts: list[Verdict] = []
    for file in track(files, "files", console=console):
        verdicts.append(verdict := judge(file))
        if listed.surprises([verdict]):
            console.print(f"{file}: {verdict.outcome}: {verdict.detail}", markup=False)
    judge.dismiss()
    stale = listed.stale(verdicts) + ([] if options.only else listed.idle(verdicts))
    for line in stale:
        console.print(line, markup=False)
    if options.page:
        write(options.page, verdicts, listed)
    return bool(listed.surprises(verdicts) or stale)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.corpus", description=__doc__)
    parser.add_argument("--site", help="the folder of packages, where it is not this Python's own")
    parser.add_argument("--folder", type=Path, help="files below this folder, not of packages")
    parser.add_argument("--only", default="", help="files in whose name this expression is found")
    parser.add_argument("--seed", type=int, default=0, help="of the states that are compared")
    parser.add_argument("--page", type=Path, help="where to write the page, such as docs/corpus.md")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
