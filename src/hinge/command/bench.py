"""`hinge bench FILE`: how long this robot's dynamics take, beside Pinocchio or MuJoCo."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from timeit import Timer
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

from ..errors import SingularError
from ..robot import Robot
from ..runtime.progress import progress
from .common import add_robot, loaded, parser, say
from .peers import ARGUMENTS, Compared, Peer, States, compared, own_calls, peer_of

__all__ = ["add", "run"]

_SECONDS = 0.2  # for one comparison
_TURN = 0.004  # of one contestant in a round
_FEWEST, _MOST = 3, 50  # rounds
_PARTS = 3  # of the work for a quantity
_BATCH, _ENTRIES = 1024, 2_000_000  # states of a batch, and entries of its matrices


def add(commands: Any) -> None:
    """Its parser."""
    what = "time this robot's dynamics, beside Pinocchio (URDF) or MuJoCo (MJCF) if installed"
    add_robot(parser(commands, "bench", what, "hinge bench panda.urdf"))


def run(console: Console, given: argparse.Namespace) -> None:
    """Compare results, take turns, print a table."""
    robot = Robot(loaded(console, given).mechanism, threads=1)
    peer, said = peer_of(robot, given.file, given.floating_base)
    states = _states(robot)
    bar = progress(range(_PARTS * len(ARGUMENTS)), "benchmarking")
    rows = [_row(robot, peer, quantity, states, bar) for quantity in ARGUMENTS]
    # what was singular is done too
    list(bar)
    for title, kind in (("one call", "one"), ("in a batch, per state", "many")):
        names = ["hinge", *([peer.name, "ratio"] if peer else [])]
        table = Table(title, *names)
        for row in rows:
            table.add_row(row.quantity, *getattr(row, kind))
        console.print(table)
    say(console, f"one thread, float64, {len(states.q)} states in a batch")
    agreed = [row.difference for row in rows if row.difference is not None]
    if peer and agreed:
        say(console, f"{peer.name} in a batch: {peer.batches}")
        say(console, f"what is compared agrees to {max(agreed):.0e} with {peer.name}'s results")
    for note in dict.fromkeys([*said, *(row.note for row in rows)]):
        if note:
            say(console, note)


def _states(robot: Robot) -> States:
    """As many random ones as a batch has."""
    rng = np.random.default_rng(0)
    count = int(np.clip(_ENTRIES // max(robot.nv, 1) ** 2, 16, _BATCH))
    q = np.array([robot.random_configuration(rng) for _ in range(count)])
    return States(q, *(rng.uniform(-1, 1, (count, robot.nv)) for _ in range(3)))


class _Row(NamedTuple):
    """Of one quantity the cells for one call and in a batch, how well results agree, and why not.

    The cells are hinge's time and, with a peer, the peer's time and the ratio of both.
    """

    quantity: str
    one: list[str]
    many: list[str]
    difference: float | None = None
    note: str = ""


def _row(
    robot: Robot, peer: Peer | None, quantity: str, states: States, bar: Iterator[int]
) -> _Row:
    """Compile and compare, time one call, time a batch: each moves the bar."""
    try:
        ours = own_calls(robot, quantity, states)
    except SingularError as error:
        dashes = ["–"] * (3 if peer else 1)
        return _Row(quantity, dashes, dashes, note=str(error))
    theirs, difference, note = (
        compared(peer, quantity, states, ours.first()) if peer else Compared(None)
    )
    next(bar, None)
    cells = {}
    for kind, count in (("one", 1), ("many", len(states.q))):
        times = _interleaved([getattr(calls, kind) for calls in (ours, theirs) if calls])
        cells[kind] = [_in_words(seconds / count) for seconds in times]
        if theirs:
            cells[kind].append(f"{times[1] / times[0]:.3g}")
        elif peer:
            cells[kind] += ["–", "–"]
        next(bar, None)
    return _Row(quantity, cells["one"], cells["many"], difference, note)


def _interleaved(calls: Sequence[Callable[[], Any]]) -> list[float]:
    """Seconds of each call, the least of rounds, every other of which goes backwards."""
    timers = [Timer(call) for call in calls]
    repeats = [_repeats(timer) for timer in timers]
    one_round = sum(n * seconds for n, seconds in repeats)
    rounds = int(np.clip(_SECONDS / one_round, _FEWEST, _MOST))
    times = [np.inf] * len(calls)
    for i in range(rounds):
        for k in range(len(calls))[:: 1 if i % 2 == 0 else -1]:
            n = repeats[k][0]
            times[k] = min(times[k], timers[k].timeit(n) / n)
    return times


def _repeats(timer: Timer) -> tuple[int, float]:
    """How many calls make a turn, and what one takes."""
    n, seconds = 1, timer.timeit(1)
    while seconds < _TURN / 4:
        n *= 4
        seconds = timer.timeit(n)
    return max(1, round(_TURN * n / seconds)), seconds / n


def _in_words(seconds: float) -> str:
    return f"{1e6 * seconds:.3g} µs" if seconds < 1e-3 else f"{1e3 * seconds:.3g} ms"
