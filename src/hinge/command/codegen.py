"""`hinge codegen FILE`: an algorithm for one robot as source code."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from rich.console import Console

from ..algorithms.declare import ALGORITHMS
from ..errors import ArgumentError
from ..model.mechanism import did_you_mean
from ..robot import Robot
from ..runtime.progress import during
from ..specialize.arrays import is_array
from .common import add_robot, check_folder, loaded, parser, say

__all__ = ["add", "run"]

_LANGUAGES = ("c", "cuda", "llvm")


def add(commands: Any) -> None:
    """Its parser."""
    codegen = parser(
        commands,
        "codegen",
        "write an algorithm for this robot as source code",
        "hinge codegen panda.urdf --function forward_dynamics --output panda.c",
        "hinge codegen panda.urdf --function jacobian --frame panda_hand --dtype float32",
    )
    add_robot(codegen)
    codegen.add_argument("--function", default="inverse_dynamics", help="name of an algorithm")
    codegen.add_argument("--frame", help="for functions of a frame, its name")
    codegen.add_argument("--language", default="c", help="c (the default), cuda or llvm")
    codegen.add_argument("--dtype", default="float64", help="float64 (the default) or float32")
    codegen.add_argument("-o", "--output", help="a file; without it the code is printed")


def run(console: Console, given: argparse.Namespace) -> None:
    """Write the code, or print it; everything else that is said is kept apart from it."""
    aside = Console(stderr=True)
    if given.language not in _LANGUAGES:
        raise ArgumentError(f"--language {given.language}; expected {', '.join(_LANGUAGES)}")
    if given.output:
        check_folder(given.output)
    arrays, static = _arguments(given.function, given.frame)
    robot = Robot(loaded(aside, given).mechanism, dtype=given.dtype)
    with during(f"writing {given.function} of {robot.name}"):
        kernel = robot.kernel(given.function, *arrays, **static)
        code, operations = kernel.source(given.language), sum(kernel.program.ops)
    if not given.output:
        sys.stdout.write(code)
        return
    Path(given.output).write_text(code, encoding="utf-8")
    say(
        console,
        f"wrote {given.function}({', '.join([*arrays, *static])}) of {robot.name!r}, "
        f"{operations} operations in {given.dtype}, to {given.output}",
    )


def _arguments(function: str, frame: str | None) -> tuple[list[str], dict[str, Any]]:
    """The arrays that a function needs, and its frame if it takes one."""
    if function not in ALGORITHMS:
        hint = did_you_mean(function, ALGORITHMS)
        raise ArgumentError(f"--function {function}: no algorithm is called so; {hint}")
    parameters = ALGORITHMS[function].parameters.values()
    needed = [p.name for p in parameters if p.default is p.empty]
    others = [n for n in needed if not is_array(n) and n != "frame"]
    if others:
        raise ArgumentError(
            f"--function {function} needs {' and '.join(others)}, which a command line cannot "
            f"give; in Python, robot.kernel({function!r}, …).source('c') does it"
        )
    if ("frame" in needed) != (frame is not None):
        why = f"needs the name of a frame: --frame {frame or 'NAME'}"
        raise ArgumentError(f"--function {function} {why if frame is None else 'takes no --frame'}")
    return [n for n in needed if is_array(n)], {} if frame is None else {"frame": frame}
