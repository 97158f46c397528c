"""`hinge info FILE`: what is in a robot file."""

from __future__ import annotations

import argparse
from typing import Any

from rich.console import Console

from ..robot import load
from ..robot.report import concerns, described, tree
from .common import add_robot, concerns_told, parser, say

__all__ = ["add", "run"]


def add(commands: Any) -> None:
    """Its parser."""
    what = "print a robot: tree, joints, masses, limits, warnings"
    add_robot(parser(commands, "info", what, "hinge info panda.urdf"))


def run(console: Console, given: argparse.Namespace) -> None:
    """Print it."""
    with concerns_told(console) as told:
        robot = load(given.file, given.floating_base, given.package_dir)
        heading, _, joints = described(robot.mechanism).partition("\n\n")
        say(console, heading, "bold")
        for part in (tree(robot.mechanism), joints):
            say(console, f"\n{part}")
        told += concerns(robot.mechanism)
