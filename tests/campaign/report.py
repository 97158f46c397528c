"""The page about a campaign."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING

import hinge
from hinge.runtime.target import host

if TYPE_CHECKING:
    from .command import Tally

__all__ = ["grouped", "page"]

HEAD = """# The campaign

What hinge is given here nobody should give it: states of any size with NaN among them, every
spelling of a call, files cut and twisted, a cache that strangers have been at, forks and interrupts
at the worst moment.
This page is written by `python -m tests.campaign --minutes N --seed S`, which ends with 1 if
anything failed.
Each line below is a check that is done again and again with other random numbers, in a process of
its own, so that a crash or a hang is a finding too; every round can be done again alone.
`tests/campaign/lines.py` has the table, to which a function adds a line.
A round of each is among the tests, some minutes of it among the long ones.
"""
COLUMNS = (
    "| line | what is checked | rounds | in all | worst | failed |",
    "|---|---|--:|--:|--:|--:|",
)


def page(tallies: Sequence[Tally], seed: int, minutes: float) -> str:
    """The text."""
    ended = "found nothing" if not any(t.failures for t in tallies) else "found what is below"
    lines = [HEAD, f"## Seed {seed}, {minutes:g} minutes: {ended}\n", _made_with(), ""]
    lines += [*COLUMNS, *map(_row, tallies)]
    for tally in tallies:
        for failure in tally.failures:
            lines += ["", f"**{tally.line.name}**: {failure['failed']}", ""]
            again = f"--line {tally.line.name} --seed {seed} --round {failure['round']}"
            lines += ["```", f"python -m tests.campaign {again}", "```"]
    return "\n".join(lines) + "\n"


def _made_with() -> str:
    """Everything that the numbers depend on."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "llvmlite"))
    lanes = ", ".join(f"{host().lanes(scalar)} of {scalar}" for scalar in ("double", "float"))
    system = f"{platform.system()} on {platform.machine()}, Python {platform.python_version()}"
    return f"hinge {hinge.__version__}, {system}, {packages}; a tile has {lanes}."


def _row(tally: Tally) -> str:
    line = tally.line
    worst = f"{tally.worst:.3g} {line.figure}" if line.figure else ""
    if tally.compared < tally.count:
        worst += f", of {tally.compared / tally.count:.0%}"
    done = f"{grouped(tally.rounds)} | {grouped(tally.count)} {line.unit}"
    return f"| {line.name} | {line.what} | {done} | {worst} | {len(tally.failures)} |"


def grouped(number: int) -> str:
    """Digits in threes."""
    return f"{number:,}".replace(",", "\u202f")
