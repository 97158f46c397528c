"""Timing: contestants take turns in many short rounds, after their results have been compared."""

from __future__ import annotations

import timeit
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

import hinge

from .others import Casadi, Frax, Mujoco, installed
from .peers import Contestant, Hinge, Peer, Pinocchio, cores
from .robots import Case, States, random_states

__all__ = ["Row", "Settings", "WrongResultError", "batches", "scaling", "singles"]

BATCH = 4096
# results are compared relative to the largest entry of their sample
TOLERANCE = 1e-9
# a batch of results is kept within so many bytes
_ROOM = 2**28
# beyond so many joints nobody evaluates states one by one
_LARGEST_SINGLE = 128
_LARGEST_MASS = 256
_LARGEST_PARALLEL = 256


class WrongResultError(Exception):
    """A contestant computed something else than we did."""


@dataclass(frozen=True)
class Settings:
    """How long to measure.

    seconds: for all rounds of one comparison; turn: of one contestant in one round.
    """

    seconds: float = 2.0
    turn: float = 0.004
    fewest: int = 5
    most: int = 100


@dataclass
class Row:
    """One comparison: seconds per state of everyone, all against hinge.

    ratio: the median over rounds of a peer's time over ours; difference: of results, relative.
    """

    case: Case
    quantity: str
    kind: str
    batch: int
    best: dict[str, float]
    median: dict[str, float]
    ratio: dict[str, float]
    difference: dict[str, float] = field(default_factory=dict)
    statements: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        case: Case,
        quantity: str,
        kind: str,
        batch: int,
        contestants: Sequence[Contestant],
        times: Mapping[str, np.ndarray],
        difference: dict[str, float],
    ) -> Row:
        """times: seconds per state of every contestant in every round."""
        return cls(
            case,
            quantity,
            kind,
            batch,
            {name: float(t.min()) for name, t in times.items()},
            {name: float(np.median(t)) for name, t in times.items()},
            {
                name: float(np.median(t / times["hinge"]))
                for name, t in times.items()
                if name != "hinge"
            },
            difference,
            {c.name: c.statement.strip() for c in contestants},
        )


def interleave(contestants: Sequence[Contestant], settings: Settings) -> dict[str, np.ndarray]:
    """Seconds per run of every contestant in every round; every other round goes backwards."""
    timers = {c.name: timeit.Timer(c.statement, globals=c.scope) for c in contestants}
    repeats = {name: _calibrated(timer, settings.turn) for name, timer in timers.items()}
    one_round = sum(seconds * n for n, seconds in repeats.values())
    rounds = int(np.clip(settings.seconds / one_round, settings.fewest, settings.most))
    times: dict[str, list[float]] = {name: [] for name in timers}
    order = list(timers)
    for i in range(rounds):
        for name in order if i % 2 == 0 else reversed(order):
            n = repeats[name][0]
            times[name].append(timers[name].timeit(n) / n)
    return {name: np.array(t) for name, t in times.items()}


def _calibrated(timer: timeit.Timer, turn: float) -> tuple[int, float]:
    """How many runs make a turn, and what one takes."""
    timer.timeit(1)
    n, seconds = 1, timer.timeit(1)
    while seconds < turn / 4:
        n *= 4
        seconds = timer.timeit(n)
    each = seconds / n
    return max(1, round(turn / each)), each


def compare(ours: Contestant, other: Contestant, robot: hinge.Robot, states: States) -> float:
    """The largest difference of two results, relative to the largest entry of each sample.

    Accelerations are compared by the forces that cause them: M (a − b), over the forces applied.
    """
    for c in (ours, other):
        timeit.Timer(c.statement, globals=c.scope).timeit(1)
    a, b = ours.result(), other.result()
    n = min(len(a), len(b), 256)
    a, b, s = a[:n], b[:n], states.head(n)
    if a.ndim == 2 and "forward_dynamics" in ours.statement:
        a, b = (robot.inverse_dynamics(s.q, s.qd, x) for x in (a, b))
    a, b = a.reshape(n, -1), b.reshape(n, -1)
    with np.errstate(invalid="ignore"):
        worst = float(np.max(np.abs(a - b).max(axis=1) / np.abs(b).max(axis=1)))
    # not finite is not right
    if not worst < TOLERANCE:
        raise WrongResultError(f"{ours.statement} and {other.statement} differ by {worst:.1e}")
    return worst


def contest(
    case: Case, quantity: str, kind: str, states: States, all_: Sequence[Contestant], s: Settings
) -> Row:
    """Compare results, then time."""
    ours, *others = all_
    robot, count = hinge.Robot(case.mechanism), len(states.q) if kind != "single" else 1
    difference = {c.name: compare(ours, c, robot, states) for c in others}
    difference["generic"] = compare(ours, generic(case, quantity, states), robot, states)
    times = {name: t / count for name, t in interleave(all_, s).items()}
    return Row.of(case, quantity, kind, count, all_, times, difference)


def generic(case: Case, quantity: str, states: States) -> Contestant:
    """The plain code on the first state: what every kernel must agree with."""
    given = [x[0] for x in states.arguments(quantity)]
    function = getattr(hinge.algorithms, quantity)
    return Contestant("generic", "pass", {}, lambda: function(case.mechanism, *given)[None])


def peers_of(case: Case, wanted: Sequence[str], notes: set[str]) -> list[Peer]:
    """Everyone who is installed and can deal with the robot."""
    found: list[Peer] = []
    if "pin" in wanted and installed("pinocchio"):
        found.append(Pinocchio(case))
    for kind in (Mujoco, Casadi, Frax):
        if kind.name not in wanted or case.nv > kind.largest:
            continue
        if not all(installed(name) for name in kind.needs):
            notes.add(f"{kind.name} is not installed: left out.")
            continue
        try:
            found.append(kind(case))
        except RuntimeError as reason:
            notes.add(f"{kind.name} is left out of some: {reason}.")
    return found


def quantities(case: Case) -> Iterator[str]:
    """What is measured on a robot."""
    yield "inverse_dynamics"
    yield "forward_dynamics"
    if case.nv <= _LARGEST_MASS:
        yield "mass_matrix"


def batches(case: Case, peers: Sequence[Peer], kind: str, s: Settings) -> Iterator[Row]:
    """All quantities of a robot for a batch of states, on one thread or on all."""
    threads = 1 if kind == "one thread" else cores()
    if threads > 1 and case.nv > _LARGEST_PARALLEL:
        return
    for quantity in quantities(case):
        width = case.nv**2 if quantity == "mass_matrix" else case.nv
        states = random_states(case.mechanism, min(BATCH, _ROOM // (8 * width)))
        found = [entry.batch(quantity, states, threads) for entry in (Hinge(case), *peers)]
        all_ = [c for c in found if c]
        # how fast we are on one thread is of interest even alone
        if threads == 1 or len(all_) > 1:
            yield contest(case, quantity, kind, states, all_, s)


def singles(case: Case, peers: Sequence[Peer], s: Settings) -> Iterator[Row]:
    """All quantities of a robot for one state in one call from Python."""
    if case.nv > _LARGEST_SINGLE:
        return
    states = random_states(case.mechanism, 1)
    for quantity in quantities(case):
        found = [entry.single(quantity, states) for entry in (Hinge(case), *peers)]
        yield contest(case, quantity, "single", states, [c for c in found if c], s)


def scaling(case: Case, quantity: str, batch: int, s: Settings) -> float:
    """How many times faster two threads are than one."""
    states, entry = random_states(case.mechanism, batch), Hinge(case)
    pair = []
    for threads in (1, 2):
        c = entry.batch(quantity, states, threads)
        pair.append(Contestant(str(threads), c.statement, c.scope, c.result))
    times = interleave(pair, s)
    return float(np.median(times["1"] / times["2"]))
