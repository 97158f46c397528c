"""The command: every line for its share of the time, shown as it goes, and the page at the end."""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from .lines import Line, all_lines
from .report import grouped, page
from .worker import ROOT, rounds, work

__all__ = ["Tally", "main", "run"]

PAGE = ROOT / "docs" / "campaign.md"


@dataclass
class Tally:
    """What has become of a line so far."""

    line: Line
    rounds: int = 0
    count: int = 0
    compared: int = 0
    worst: float = 0.0
    seconds: float = 0.0
    failures: list[dict[str, Any]] = field(default_factory=list)

    def add(self, row: dict[str, Any]) -> None:
        """One more round."""
        self.rounds += 1
        if "failed" in row:
            self.failures.append(row)
        else:
            self.count += row["count"]
            self.compared += row["compared"]
            self.worst = max(self.worst, row["worst"])

    def __str__(self) -> str:
        worst = f", worst {self.worst:.3g} {self.line.figure}" if self.line.figure else ""
        bad = f", [red]{len(self.failures)} failed[/]" if self.failures else ""
        return f"{grouped(self.count)} {self.line.unit}{worst}{bad}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit status is 1 if anything failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaign", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="for all lines together")
    parser.add_argument("--jobs", type=int, default=1, help="how many lines at once")
    parser.add_argument("--seed", type=int, default=0, help="another seed, other rounds")
    parser.add_argument("--line", action="append", default=[], help="only this one (again: these)")
    parser.add_argument("--round", type=int, help="this round of the line alone, in this process")
    parser.add_argument("--report", type=Path, help="the page to write; docs/campaign.md if whole")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=float, default=0.0, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.work:
        work(given.work, given.seed, given.seconds)
        return 0
    known = all_lines()
    unknown = set(given.line) - set(known)
    if unknown or (given.round is not None and len(given.line) != 1):
        parser.error(f"lines are {', '.join(known)}; --round takes one of them")
    if given.round is not None:
        line = known[given.line[0]]
        print(line.round(line.rng(given.seed, given.round)))
        return 0
    chosen = [known[name] for name in given.line] or list(known.values())
    report = given.report or (None if given.line else PAGE)
    return run(chosen, given.seed, given.minutes, report, given.jobs)


def run(
    chosen: Sequence[Line], seed: int, minutes: float, report: Path | None, jobs: int = 1
) -> int:
    """Every line, so many at once, in processes of their own that share a new cache of kernels."""
    tallies = [Tally(line) for line in chosen]
    weights = sum(line.weight for line in chosen)
    shares = [60 * minutes * min(1, jobs * line.weight / weights) for line in chosen]
    before = os.environ.get("XDG_CACHE_HOME")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder
        try:
            _run_all(tallies, seed, shares, jobs)
        finally:
            os.environ.pop("XDG_CACHE_HOME")
            if before is not None:
                os.environ["XDG_CACHE_HOME"] = before
    _tell_failures(tallies, seed)
    if report is not None:
        report.write_text(page(tallies, seed, minutes), encoding="utf-8")
    return int(any(tally.failures for tally in tallies))


def _run_all(tallies: Sequence[Tally], seed: int, shares: Sequence[float], jobs: int) -> None:
    columns = TextColumn("{task.description:<20}"), BarColumn(20), TimeElapsedColumn()
    with Progress(*columns, TextColumn("{task.fields[told]}")) as progress:

        def run_line(tally: Tally, share: float) -> None:
            task = progress.add_task(tally.line.name, total=share, told="")
            start = time.monotonic()
            for row in rounds(tally.line, seed, share):
                tally.add(row)
                tally.seconds = time.monotonic() - start
                progress.update(task, completed=min(tally.seconds, share), told=str(tally))
            progress.update(task, completed=share)

        with ThreadPoolExecutor(jobs) as pool:
            # the longest first; the list raises what a line did
            longest = sorted(zip(tallies, shares, strict=True), key=lambda pair: -pair[1])
            list(pool.map(run_line, *zip(*longest, strict=True)))


def _tell_failures(tallies: Sequence[Tally], seed: int) -> None:
    console = Console()
    for tally in tallies:
        for failure in tally.failures:
            again = f"--line {tally.line.name} --seed {seed} --round {failure['round']}"
            console.print(f"python -m tests.campaign {again}", style="red", markup=False)
            console.print(f"    {failure['failed']}", markup=False, highlight=False)
            console.print(failure["trace"], style="dim", markup=False, highlight=False)
