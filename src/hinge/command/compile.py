"""`hinge compile FILE`: methods compiled before a program calls them."""

from __future__ import annotations

import argparse
import time
from typing import Any

from rich.console import Console

from ..robot import Robot
from .common import add_robot, loaded, parser, say

__all__ = ["add", "run"]


def add(commands: Any) -> None:
    """Its parser."""
    command = parser(
        commands,
        "compile",
        "compile methods of this robot and keep the code on disk",
        "hinge compile panda.urdf --methods forward_dynamics inverse_dynamics",
        "hinge compile panda.urdf --methods jacobian --frame panda_hand --dtype float32",
    )
    add_robot(command)
    command.add_argument(
        "--methods", nargs="+", default=[], help="by default all that need nothing but arrays"
    )
    command.add_argument("--frame", help="for methods of a frame, its name")
    command.add_argument("--dtype", default="float64", help="float64 (the default) or float32")
    command.add_argument("--processes", type=int, help="how many share the work, one per core")


def run(console: Console, given: argparse.Namespace) -> None:
    """Compile them, and tell how long each took."""
    start = time.perf_counter()
    robot = Robot(loaded(Console(stderr=True), given).mechanism, dtype=given.dtype)
    settings = {} if given.frame is None else {"frame": given.frame}
    took = robot.precompile(*given.methods, processes=given.processes, **settings)
    for name, seconds in sorted(took.items(), key=lambda item: -item[1]):
        say(console, f"{seconds:8.2f} s  {name}")
    whole = time.perf_counter() - start
    say(console, f"{len(took)} methods of {robot.name!r} in {given.dtype}, ready in {whole:.1f} s")
