"""The command `hinge`: it hands over to the module of each command in `command/`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from rich.console import Console

from . import __version__
from .command import bench, cache, codegen, demo, info, simulate, view
from .command import compile as compile_methods
from .command.common import say
from .errors import HingeError

__all__ = ["main"]

_COMMANDS = {
    "demo": demo,
    "info": info,
    "view": view,
    "simulate": simulate,
    "bench": bench,
    "codegen": codegen,
    "compile": compile_methods,
    "cache": cache,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit status is 0, or 1 if hinge had to say no."""
    parser = argparse.ArgumentParser(
        prog="hinge",
        description="Dynamics of articulated mechanisms.",
        epilog="example: hinge demo",
    )
    parser.add_argument("--version", action="version", version=f"hinge {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in _COMMANDS.values():
        command.add(commands)
    given = parser.parse_args(arguments)
    try:
        _COMMANDS[given.command].run(Console(), given)
    except (HingeError, OSError, MemoryError, KeyboardInterrupt) as error:
        say(Console(stderr=True), f"hinge: {_words(error)}", "red")
        return 1
    return 0


def _words(error: BaseException) -> str:
    """What happened, in a sentence."""
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{str(error.filename)!r}: {error.strerror}"
    return f"out of memory: {error}" if isinstance(error, MemoryError) else str(error)
