"""`hinge cache info|clear`: compiled kernels on disk."""

from __future__ import annotations

import argparse
from typing import Any

from rich.console import Console

from ..runtime import cache
from .common import parser, say

__all__ = ["add", "run"]


def add(commands: Any) -> None:
    """Its parser."""
    kept = parser(commands, "cache", "compiled kernels on disk", "hinge cache info")
    kept.add_argument("action", choices=("info", "clear"), help="tell about them, or delete them")


def run(console: Console, given: argparse.Namespace) -> None:
    """Tell about them, or delete them."""
    place, count, size = cache.info()
    if place is None:
        text = "no cache: there is no folder that this user alone can write"
    elif given.action == "info":
        text = f"{place}: {count} kernels, {size / 1e6:.1f} of at most {cache.LIMIT / 1e6:.0f} MB"
    else:
        text = f"{place}: {cache.clear()} kernels deleted"
    say(console, text)
