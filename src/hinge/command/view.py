"""`hinge view FILE…`: robots in the browser, or drawn into a file."""

from __future__ import annotations

import argparse
from typing import Any

from rich.console import Console

from ..errors import ArgumentError
from ..robot import load
from ..viewer.output import PAGES, PICTURES, check_ending
from .common import add_loading, concerns_told, parser, say

__all__ = ["add", "run"]


def add(commands: Any) -> None:
    """Its parser."""
    view = parser(
        commands,
        "view",
        "look at robots in the browser, or draw them into a file",
        "hinge view panda.urdf --package-dir src",
        "hinge view go2.xml --output go2.png",
    )
    view.add_argument("files", nargs="+", metavar="FILE", help="a URDF or MJCF file")
    view.add_argument("-o", "--output", help="write a PNG, SVG, PDF or HTML instead of a page")
    view.add_argument("--host", default="127.0.0.1", help='"0.0.0.0" lets other machines look')
    view.add_argument("--port", type=int, default=8080, help="or the next one that is free")
    view.add_argument("--no-browser", action="store_true", help="only say the address")
    add_loading(view)


def run(console: Console, given: argparse.Namespace) -> None:
    """Open a page for each robot, or write the picture."""
    if given.output and len(given.files) > 1:
        raise ArgumentError(f"--output takes one robot, got {len(given.files)} files")
    if given.output:
        check_ending("view", given.output, (*PICTURES, *PAGES))
    with concerns_told(console):
        robots = [load(file, given.floating_base, given.package_dir) for file in given.files]
        if given.output:
            robots[0].draw(path=given.output)
            say(console, f"wrote {given.output}")
            return
        scenes = [r.view(None, given.host, given.port, not given.no_browser) for r in robots]
    for scene in scenes:
        if given.no_browser:
            say(console, scene.address)
    say(console, "Ctrl-C ends it")
    for scene in scenes:
        scene.wait()
