"""`hinge codegen FILE`: an algorithm for one robot as source code."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from rich.console import Console

from ..algorithms.declare import ALGORITHMS
from ..errors import ArgumentError
from ..model.mechanism import did_you_mean
from ..robot import Robot
from ..runtime.progress import during
from ..specialize.arrays import PER_DOF, is_array
from ..write.whole import check_place, written_whole
from .common import add_robot, loaded, parser, say

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
        "hinge codegen panda.urdf --prefix left_ --output left.c",
    )
    add_robot(codegen)
    codegen.add_argument("--function", default="inverse_dynamics", help="name of an algorithm")
    codegen.add_argument("--frame", help="for functions of a frame, its name")
    codegen.add_argument("--language", default="c", help="c (the default), cuda or llvm")
    codegen.add_argument("--dtype", default="float64", help="float64 (the default) or float32")
    codegen.add_argument(
        "--prefix",
        help="of the function's name, in C and CUDA; by default the robot's name, '' for none",
    )
    codegen.add_argument(
        "-o",
        "--output",
        help="a file; C gets a header beside it; without --output the code is printed",
    )


def run(console: Console, given: argparse.Namespace) -> None:
    """Write the code, or print it; everything else that is said is kept apart from it."""
    aside = Console(stderr=True)
    if given.language not in _LANGUAGES:
        raise ArgumentError(f"--language {given.language}; expected {', '.join(_LANGUAGES)}")
    if given.output:
        check_place("codegen", given.output)
        if given.language == "c":
            check_place("codegen", _header(given.output))
    arrays, static = _arguments(given.function, given.frame)
    robot = Robot(loaded(aside, given).mechanism, dtype=given.dtype)
    with during(f"writing {given.function} of {robot.name}"):
        kernel = robot.kernel(given.function, *arrays, **static)
        words = {
            "prefix": f"{robot.name}_" if given.prefix is None else given.prefix,
            "about": "\n".join(_orders(robot, arrays)),
        }
        files = {given.output: kernel.source(given.language, **words)}
        if given.language == "c" and given.output:
            files[str(_header(given.output))] = kernel.source("header", **words)
        operations = sum(kernel.program.ops)
    if not given.output:
        sys.stdout.write(files[None])
        return
    for name, code in files.items():
        with written_whole("codegen", name) as beside:
            beside.write_text(code, encoding="utf-8")
    say(
        console,
        f"wrote {given.function}({', '.join([*arrays, *static])}) of {robot.name!r}, "
        f"{operations} operations in {given.dtype}, to {' and '.join(files)}",
    )


def _header(output: str) -> Path:
    """Where the header of a file of C goes."""
    header = Path(output).with_suffix(".h")
    if header == Path(output):
        raise ArgumentError(f"--output {output}: its header has this name; expected a name in .c")
    if header.exists() and "made by hinge" not in header.read_text("utf-8", errors="replace"):
        raise ArgumentError(
            f"--output {output}: {header}, where its header goes, is not of hinge; give another "
            f"name, or move it away"
        )
    return header


def _orders(robot: Robot, arrays: Iterable[str]) -> Iterator[str]:
    """What stands where in arrays with a number for each degree of freedom or body."""
    yield f"Robot {robot.name}, in SI units and radians."
    if "q" in arrays:
        yield f"  Entries of q: {_slices(robot.joint_names, robot.q_slice)}."
    if any(name in PER_DOF for name in arrays):
        yield f"  Entries of velocities and forces: {_slices(robot.joint_names, robot.v_slice)}."
    if "f_ext" in arrays:
        yield f"  Rows of f_ext, (moment; force) in body axes: {', '.join(robot.body_names)}."


def _slices(names: Iterable[str], of: Callable[[str], slice]) -> str:
    """Joints with their entries, those of no degree of freedom left out."""
    entries = {name: of(name) for name in names}
    return ", ".join(
        f"{name}[{s.start}]" if s.stop == s.start + 1 else f"{name}[{s.start}:{s.stop}]"
        for name, s in entries.items()
        if s.stop > s.start
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
