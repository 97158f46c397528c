"""`hinge simulate FILE`: a motion, what it did in words, and files of it."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from rich.console import Console

from ..errors import ArgumentError
from ..model.mechanism import did_you_mean
from ..motion.integrators import METHODS
from ..motion.simulate import simulate
from ..motion.storage import DATA
from ..motion.summary import limits_met
from ..motion.trajectory import Trajectory
from ..robot import Robot
from ..viewer.output import FILMS, PAGES, PICTURES, check_ending
from .common import add_robot, concerns_told, loaded, parser, say

__all__ = ["add", "run"]

_MOST_STEPS = 10**8


def add(commands: Any) -> None:
    """Its parser."""
    command = parser(
        commands,
        "simulate",
        "let a robot move: it falls freely, or hovers with --hold",
        "hinge simulate panda.urdf --q panda_joint2=0.5 --duration 2 --output fall.gif",
        "hinge simulate go2.urdf --floating-base --output fall.npz --output fall.html",
    )
    add_robot(command)
    command.add_argument("--duration", type=float, default=1.0, help="seconds (1)")
    command.add_argument("--dt", type=float, default=1e-3, help="seconds of a step (0.001)")
    command.add_argument("--method", default="rk4", choices=tuple(METHODS), help="(rk4)")
    for name, what in (("q", "coordinates (neutral)"), ("qd", "velocities (0)")):
        told = f"{what} at the start: all of them, or JOINT=NUMBER for some"
        command.add_argument(f"--{name}", nargs="+", default=[], metavar="NUMBER", help=told)
    held = "forces at all joints, a free base included, carry the weight"
    command.add_argument("--hold", action="store_true", help=held)
    none = "no stops at the limits of joints, no cut at their effort limits"
    command.add_argument("--no-limits", action="store_true", help=none)
    endings = ", ".join(x[1:] for x in (*DATA, *PICTURES, *FILMS, *PAGES))
    told = f"what to write, by its ending: {endings}; may be repeated"
    command.add_argument("-o", "--output", action="append", default=[], help=told)


def run(console: Console, given: argparse.Namespace) -> None:
    """Simulate, tell, write."""
    for path in given.output:
        check_ending("simulate", path, (*DATA, *PICTURES, *FILMS, *PAGES))
    robot = loaded(console, given)
    q = _start("--q", given.q, robot.neutral(), robot, robot.q_slice)
    qd = _start("--qd", given.qd, np.zeros(robot.nv), robot, robot.v_slice)
    with concerns_told(console):
        motion, compiling, running = _timed(robot, q, qd, given)
    say(console, _told(motion, compiling, running, given))
    with concerns_told(console):
        for path in given.output:
            _write(motion, path)
            say(console, f"wrote {path}")


def _start(
    option: str, words: Sequence[str], own: np.ndarray, robot: Robot, at: Callable[[str], slice]
) -> np.ndarray:
    """Its own numbers, or those that the words say: all, or some by the names of joints."""
    words = [w for word in words for w in word.split(",") if w]
    if not words:
        return own
    if not any("=" in w for w in words):
        return np.array([_number(option, w) for w in words])
    for word in words:
        name, _, value = word.rpartition("=")
        if name not in robot.joint_names:
            hint = did_you_mean(name, robot.joint_names)
            raise ArgumentError(f"{option} {word}: {robot.name!r} has no joint {name!r}; {hint}")
        if at(name).stop - at(name).start != 1:
            raise ArgumentError(f"{option} {word}: joint {name!r} has several numbers; give all")
        own[at(name)] = _number(option, value)
    return own


def _number(option: str, word: str) -> float:
    try:
        return float(word)
    except ValueError:
        raise ArgumentError(f"{option}: {word!r} is not a number") from None


def _timed(
    robot: Robot, q: np.ndarray, qd: np.ndarray, given: argparse.Namespace
) -> tuple[Trajectory, float, float]:
    """The motion, and the seconds that a first step, which is compiled, and the whole took."""
    if given.dt > 0 and given.duration / given.dt > _MOST_STEPS:
        raise ArgumentError(
            f"--duration {given.duration:g} --dt {given.dt:g} are {given.duration / given.dt:.1e} "
            f"steps; expected at most {_MOST_STEPS:.0e}"
        )
    law = (lambda t, q, qd: robot.alg.gravity_forces(q)) if given.hold else None
    begun = perf_counter()
    step = min(given.dt, given.duration)
    ways = {"dt": given.dt, "method": given.method, "limits": not given.no_limits}
    simulate(robot, q, qd, law, step, **ways)
    ready = perf_counter()
    motion = simulate(robot, q, qd, law, given.duration, **ways)
    return motion, ready - begun, perf_counter() - ready


def _told(motion: Trajectory, compiling: float, running: float, given: argparse.Namespace) -> str:
    """What happened, in lines."""
    kinetic, energy, way = motion.kinetic_energy, motion.energy, "held" if given.hold else "falling"
    return "\n".join(
        [
            f"{motion.robot.name}, {way} for {motion.t[-1]:g} s in {len(motion.t) - 1} steps of "
            f"{given.method}: computed in {running:.2g} s, {_rounded(motion.t[-1] / running)} "
            f"times real time, after {compiling:.2g} s for the first step",
            f"energy: kinetic up to {kinetic.max():.4g} J, {kinetic[-1]:.4g} J at the end; total "
            f"changes by {energy[-1] - energy[0]:.2g} J",
            *_limit_lines(limits_met(motion), not given.no_limits),
        ]
    )


def _limit_lines(met: dict[str, str], acting: bool) -> list[str]:
    """Which limits were met, and what they did."""
    if not met:
        return ["limits: all joints stay within theirs"]
    does = {
        "position": "at which stops act, reached by",
        "speed": "which nothing enforces, exceeded by",
        "effort": "at which joint forces are cut off, reached by",
    }
    if not acting:
        does |= {"position": "which do not act, left by", "effort": "which do not act, reached by"}
    return [f"{what} limits, {does[what]}: {joints}" for what, joints in met.items()]


def _rounded(x: float) -> str:
    return f"{float(f'{x:.2g}'):g}"


def _write(motion: Trajectory, path: str) -> None:
    """In the format that the ending says."""
    ending = Path(path).suffix.lower()
    write = motion.save if ending in DATA else motion.plot if ending in PICTURES else motion.draw
    write(path)
