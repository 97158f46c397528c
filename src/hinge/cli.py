"""The command `hinge`: a demonstration, a look at robot files, the cache of kernels."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from . import __version__
from .errors import ArgumentError, HingeError, ModelWarning
from .motion.simulate import simulate
from .robot import Robot, load, zoo
from .robot.report import concerns, joint_table, tree
from .runtime import cache

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit status is 0, or 1 if hinge had to say no."""
    parser = argparse.ArgumentParser(
        prog="hinge", description="Dynamics of articulated mechanisms."
    )
    parser.add_argument("--version", action="version", version=f"hinge {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    demo = commands.add_parser("demo", help="compute and draw the motion of a robot made in code")
    demo.add_argument("--output", default="hinge_demo.svg", help="the plot to write (SVG or PNG)")
    info = commands.add_parser("info", help="print a robot: tree, joints, masses, limits, warnings")
    info.add_argument("file", help="a URDF or MJCF file")
    _add_view(commands)
    for command in (info, commands.choices["view"]):
        _add_loading(command)
    kept = commands.add_parser("cache", help="compiled kernels on disk")
    kept.add_argument("action", choices=("info", "clear"), help="tell about them, or delete them")
    given = parser.parse_args(arguments)
    console = Console()
    try:
        if given.command == "demo":
            _demo(console, Path(given.output))
        elif given.command == "cache":
            _cache(console, given.action)
        elif given.command == "view":
            _view(console, given)
        else:
            _info(console, given.file, given.floating_base, given.package_dir)
    except (HingeError, OSError) as error:
        Console(stderr=True).print(f"hinge: {error}", style="red", markup=False, highlight=False)
        return 1
    return 0


def _add_loading(command: argparse.ArgumentParser) -> None:
    command.add_argument("--floating-base", action="store_true", help="let the root move freely")
    command.add_argument("--package-dir", action="append", default=[], help="where package:// is")


def _add_view(commands: Any) -> None:
    view = commands.add_parser(
        "view",
        help="look at robots in the browser, or draw them into a file",
        epilog="example: hinge view panda.urdf --package-dir src",
    )
    view.add_argument("files", nargs="+", metavar="FILE", help="a URDF or MJCF file")
    view.add_argument("-o", "--output", help="write a PNG, SVG, PDF or HTML instead of a page")
    view.add_argument("--host", default="127.0.0.1", help='"0.0.0.0" lets other machines look')
    view.add_argument("--port", type=int, default=8080, help="or the next one that is free")
    view.add_argument("--no-browser", action="store_true", help="only say the address")


def _view(console: Console, given: argparse.Namespace) -> None:
    if given.output and len(given.files) > 1:
        raise ArgumentError(f"--output takes one robot, got {len(given.files)} files")
    with _concerns_told(console):
        robots = [load(file, given.floating_base, given.package_dir) for file in given.files]
        if given.output:
            robots[0].draw(path=given.output)
            console.print(f"wrote {given.output}", markup=False, highlight=False)
            return
        scenes = [r.view(None, given.host, given.port, not given.no_browser) for r in robots]
    for scene in scenes:
        if given.no_browser:
            console.print(scene.address, markup=False, highlight=False)
    console.print("Ctrl-C ends it")
    for scene in scenes:
        scene.wait()


def _demo(console: Console, output: Path) -> None:
    robot = zoo.arm(7)
    rng = np.random.default_rng(7)
    q, qd, qdd = robot.random_configuration(rng), rng.normal(size=7), rng.normal(size=7)
    tau = robot.inverse_dynamics(q, qd, qdd)
    table = Table("joint", "q", "qd", "qdd", "tau = ID(q, qd, qdd)", "FD(q, qd, tau) − qdd")
    residual = robot.forward_dynamics(q, qd, tau) - qdd
    for i, name in enumerate(robot.joint_names):
        numbers = (f"{x[i]:9.4f}" for x in (q, qd, qdd, tau))
        table.add_row(name, *numbers, f"{residual[i]:.1e}")
    console.print(
        f"[bold]{robot.name}[/]: {len(robot.body_names)} bodies, {robot.total_mass:.2f} kg"
    )
    console.print(table)
    console.print(_facts(robot, q, qd))
    motion = simulate(robot, q, np.zeros(7), duration=1.5, dt=1e-3)
    drift = np.ptp(motion.energy) / np.ptp(motion.kinetic_energy)
    console.print(
        f"falling freely for {motion.t[-1]:g} s: kinetic energy up to "
        f"{motion.kinetic_energy.max():.1f} J, total energy constant to {drift:.1e} of that"
    )
    motion.plot(output)
    console.print(f"wrote the motion and its energy to {output}")


def _facts(robot: Robot, q: np.ndarray, qd: np.ndarray) -> Table:
    M = robot.mass_matrix(q)
    identity = robot.mass_matrix_inverse(q) @ M - np.eye(robot.nv)
    table = Table("quantity", "value")
    table.add_row("eigenvalues of M, least and greatest", f"{_ends(np.linalg.eigvalsh(M))} kg m²")
    table.add_row("|M⁻¹ M − 1|", f"{np.abs(identity).max():.1e}")
    table.add_row("kinetic energy", f"{robot.kinetic_energy(q, qd):.4f} J")
    table.add_row("potential energy", f"{robot.potential_energy(q):.4f} J")
    table.add_row("centre of mass", f"{np.array2string(robot.center_of_mass(q), precision=4)} m")
    tool = robot.frame_pose(q, "tool")[:3, 3]
    table.add_row("tool", f"{np.array2string(tool, precision=4)} m")
    return table


def _ends(values: np.ndarray) -> str:
    return f"{values[0]:.4g}, {values[-1]:.4g}"


@contextmanager
def _concerns_told(console: Console) -> Iterator[list[str]]:
    """Tell each warning about a model once, in a line of its own, with those put on the list."""
    concerns: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ModelWarning)
        yield concerns
    told = [str(w.message) for w in caught if issubclass(w.category, ModelWarning)]
    for concern in dict.fromkeys(told + concerns):
        console.print(f"warning: {concern}", style="yellow", markup=False, highlight=False)


def _info(console: Console, file: str, floating_base: bool, package_dirs: list[str]) -> None:
    with _concerns_told(console) as told:
        robot = load(file, floating_base, package_dirs)
        console.print(
            f"[bold]{robot.name}[/]: {len(robot.body_names)} moving bodies, "
            f"{len(robot.frame_names)} frames, nq = {robot.nq}, nv = {robot.nv}, "
            f"{robot.total_mass:.4g} kg"
        )
        console.print(tree(robot.mechanism))
        console.print(joint_table(robot.mechanism))
        told += concerns(robot.mechanism)


def _cache(console: Console, action: str) -> None:
    place, count, size = cache.info()
    if place is None:
        text = "no cache: there is no folder that this user alone can write"
    elif action == "info":
        text = f"{place}: {count} kernels, {size / 1e6:.1f} of at most {cache.LIMIT / 1e6:.0f} MB"
    else:
        text = f"{place}: {cache.clear()} kernels deleted"
    console.print(text, markup=False, highlight=False, soft_wrap=True)
