"""What commands share: parsers with an example, robots from files, warnings in lines."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console

from ..errors import ModelWarning
from ..robot import Robot, load

__all__ = ["add_loading", "add_robot", "concerns_told", "loaded", "parser", "say"]


def parser(commands: Any, name: str, what: str, *examples: str) -> argparse.ArgumentParser:
    """The parser of a command, whose help ends with examples."""
    lines = "\n  ".join(examples)
    return commands.add_parser(
        name,
        help=what,
        description=f"{what[0].upper()}{what[1:]}.",
        epilog=f"example: {lines}" if len(examples) == 1 else f"examples:\n  {lines}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def add_robot(command: argparse.ArgumentParser) -> None:
    """The arguments of a command about one robot."""
    command.add_argument("file", metavar="FILE", help="a URDF or MJCF file")
    add_loading(command)


def add_loading(command: argparse.ArgumentParser) -> None:
    """How files are read."""
    command.add_argument("--floating-base", action="store_true", help="let the root move freely")
    command.add_argument("--package-dir", action="append", default=[], help="where package:// is")


def loaded(console: Console, given: argparse.Namespace) -> Robot:
    """The robot of the file; what is odd about it is told in lines."""
    with concerns_told(console):
        return load(given.file, given.floating_base, given.package_dir)


@contextmanager
def concerns_told(console: Console) -> Iterator[list[str]]:
    """Tell each warning about a model once, in a line of its own, with those put on the list."""
    concerns: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ModelWarning)
        yield concerns
    told = [str(w.message) for w in caught if issubclass(w.category, ModelWarning)]
    for concern in dict.fromkeys(told + concerns):
        say(console, f"warning: {concern}", "yellow")


def say(console: Console, text: str, style: str | None = None) -> None:
    """Print a text as it is."""
    console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)
