"""`hinge demo`: a robot that does something, computed, timed and shown."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from timeit import Timer
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

from ..errors import SingularError
from ..motion.trajectory import Trajectory
from ..robot import Robot
from ..runtime.progress import during
from ..viewer.output import (
    FILMS,
    PAGES,
    PICTURES,
    check_ending,
    film,
    picture,
    write_film,
    write_picture,
)
from ..viewer.page import write_page
from ..viewer.server import is_local
from .common import add_loading, concerns_told, loaded, parser, say
from .motions import FORCE, pushed, through_its_ranges
from .peers import Compared, States, compared, own_calls, peer_of

__all__ = ["add", "run"]

_BATCH = 1024
_SECONDS = 0.01  # for one measurement


def add(commands: Any) -> None:
    """Its parser."""
    what = "a robot that does something, computed, timed and shown; or your own"
    examples = "hinge demo", "hinge demo panda.urdf --output panda.html"
    demo = parser(commands, "demo", what, *examples)
    demo.add_argument("file", metavar="FILE", nargs="?", help="a URDF or MJCF file to move")
    endings = ", ".join((*PAGES, *PICTURES, *FILMS))
    demo.add_argument("-o", "--output", help=f"write it instead of a page: {endings}")
    add_loading(demo)


def run(console: Console, given: argparse.Namespace) -> None:
    """Compute, tell, show."""
    if given.output:
        check_ending("demo", given.output, (*PAGES, *PICTURES, *FILMS))
    shown = _toured(console, given) if given.file else _pushed(console)
    _times(console, shown.motion, given)
    with concerns_told(console):
        _show(console, shown, given.output)


class Demonstration(NamedTuple):
    """A motion, the forces that are drawn with it, and what is written above it."""

    motion: Trajectory
    forces: Any
    caption: str


def _pushed(console: Console) -> Demonstration:
    """The quadruped, and what became of it."""
    with during("compiling the quadruped and the ground below it"):
        motion, forces, steps, cold, again = pushed()
    _introduce(console, motion.robot)
    sway = np.abs(motion.q[:, 1])
    say(
        console,
        f"its feet pinned to the ground, pushed sideways by {FORCE:g} N, it sways "
        f"{1e2 * sway.max():.1f} cm and comes back to {1e3 * sway[-1]:.1f} mm",
    )
    say(
        console,
        f"{steps} steps in {1e3 * again:.1f} ms, {steps * 1e-3 / again:.0f} times as fast as the "
        f"robot itself; with compilation {cold:.2f} s",
    )
    caption = f"Pushed sideways by {FORCE:g} N (the arrow), its motors bring it back."
    return Demonstration(motion, forces, caption)


def _toured(console: Console, given: argparse.Namespace) -> Demonstration:
    """The robot of the file, and what its joints have to do."""
    robot = loaded(console, given)
    began = time.perf_counter()
    with during(f"moving {robot.name}"):
        motion = through_its_ranges(robot)
    took = time.perf_counter() - began
    _introduce(console, robot)
    say(
        console,
        f"through its ranges within limits for {motion.t[-1]:.1f} s; poses, rates and the joint "
        f"forces for {len(motion.t)} of them in {took:.2f} s, compilation included",
    )
    if needs := _greatest_effort(motion):
        say(console, needs)
    return Demonstration(motion, None, f"{robot.name} through its ranges, within limits.")


def _introduce(console: Console, robot: Robot) -> None:
    say(
        console,
        f"{robot.name}: {len(robot.body_names)} bodies, {robot.nv} degrees of freedom, "
        f"{robot.total_mass:.4g} kg",
    )


def _greatest_effort(motion: Trajectory) -> str:
    """Which joint comes nearest to its limit of force, or goes beyond it."""
    mech, found = motion.robot.mechanism, []
    for body in mech.bodies[1:]:
        limit = np.array(body.joint.effort_limit)
        if body.joint.mimic is None and np.all(limit > 0) and np.isfinite(limit).all():
            tau = motion.tau[:, mech.v_slice(body.joint_name)]
            found.append((np.max(np.abs(tau) / limit), body.joint_name))
    if not found:
        return ""
    share, name = max(found)
    return f"most is asked of joint {name!r}: {share:.0%} of the force that it may have"


def _times(console: Console, motion: Trajectory, given: argparse.Namespace) -> None:
    """How long the dynamics of the robot take, beside another library whose results agree."""
    peer, notes = peer_of(motion.robot, given.file, given.floating_base)
    states, agreed = _states(motion), []
    heads = "one call", f"each of {_BATCH}", *([f"one call of {peer.name}"] if peer else [])
    table = Table("", *heads)
    for function in _FUNCTIONS:
        try:
            ours = own_calls(motion.robot, function, states)
        except SingularError:
            table.add_row(function, *(["singular"] * len(heads)))
            continue
        theirs = compared(peer, function, states, ours.first()) if peer else Compared(None)
        times = [_seconds(ours.one), _seconds(ours.many) / _BATCH]
        times += [_seconds(theirs.calls.one)] if theirs.calls else []
        cells = [_shown(x) for x in times] + ["–"] * (len(heads) - len(times))
        table.add_row(function.replace("_", " "), *cells)
        notes += [theirs.note] if theirs.note else []
        agreed += [theirs.difference] if theirs.difference is not None else []
    console.print(table)
    if peer and agreed:
        notes.insert(0, f"{peer.name}'s results are the same to {max(agreed):.0e}")
    for note in notes:
        say(console, note)


_FUNCTIONS = ("inverse_dynamics", "forward_dynamics", "mass_matrix")


def _states(motion: Trajectory) -> States:
    """As many as a batch has, all over the motion; the first is in the middle."""
    rows = np.roll(np.linspace(0, len(motion.t) - 1, _BATCH).astype(int), _BATCH // 2)
    qd = motion.qd[rows]
    return States(motion.q[rows], qd, np.zeros_like(qd), motion.tau[rows])


def _seconds(call: Callable[[], Any]) -> float:
    """Of one call, the least of three measurements."""
    timer = Timer(call)
    count = max(1, int(_SECONDS / max(min(timer.repeat(5, 1)), 1e-7)))
    return min(timer.repeat(3, count)) / count


def _shown(seconds: float) -> str:
    return f"{1e9 * seconds:.0f} ns" if seconds < 1e-6 else f"{1e6 * seconds:.2f} µs"


def _show(console: Console, shown: Demonstration, output: str | None) -> None:
    """In the browser where somebody sits in front of one, else in files."""
    viser = find_spec("viser") is not None
    if output:
        _write(console, shown, output)
    elif viser and sys.stdout.isatty() and is_local():
        scene = shown.motion.view(forces=shown.forces)
        scene.player.explain(shown.caption)
        say(console, "Ctrl-C ends it")
        scene.wait()
    else:
        for ending in (".html", ".png") if viser else (".png",):
            _write(console, shown, f"hinge_demo{ending}")
        if not viser:
            say(console, 'to see it move: pip install "hinge-dynamics[view]", or --output x.gif')


def _write(console: Console, shown: Demonstration, path: str) -> None:
    motion, forces, caption = shown
    robot, ending = motion.robot, check_ending("demo", path, (*PAGES, *PICTURES, *FILMS))
    if ending in PAGES:
        write_page("demo", path, robot, motion.t, motion.q, forces, caption)
    elif ending in FILMS:
        write_film("demo", path, film(robot, motion.t, motion.q, forces=forces))
    else:
        i = _most_to_see(shown)
        now = None if forces is None else [part[i] for part in forces]
        write_picture("demo", path, picture(robot, motion.q[i], forces=now))
    say(console, f"wrote {path}")


def _most_to_see(shown: Demonstration) -> int:
    """The time of the greatest force, or else of the pose that is farthest from the first."""
    if shown.forces is not None:
        return int(np.linalg.norm(shown.forces[1], axis=(1, 2)).argmax())
    q = shown.motion.q
    return int(np.linalg.norm(shown.motion.robot.difference(q[0], q), axis=-1).argmax())
