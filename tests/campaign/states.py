"""States that nobody should be in, through every algorithm."""

from __future__ import annotations

from typing import Any

import numpy as np

from hinge.runtime.target import host
from mechanisms import assert_same_bits

from .error_bounds import with_bounds
from .lines import Outcome, line
from .pool import Task, adversarial, random_task

# values that are worked on at once
_ROOM = 4_000_000
# constants of canonical frames, which robots of the size of 1 have, in units of eps
_OF_CONSTANTS = 16.0


@line("states", "of the bound", weight=14)
def adversarial_states(rng: np.random.Generator) -> Outcome:
    """Every algorithm on every joint type, float64 and float32, states from the least denormal to
    the largest number: within the rounding errors of the plain code and of the compiled program
    (running error bounds, where these are finite), whatever the size of the batch; NaN or infinity
    in some samples spoils these wholly and no bit of the others."""
    task = random_task(rng)
    kernel, plain = task.kernel, task.plain()
    scalar = "double" if task.robot.dtype == np.float64 else "float"
    most = max(50, min(8000, _ROOM // (1 + len(plain.nodes) + len(kernel.program.nodes))))
    around_tiles = rng.integers(1, 2 * host().lanes(scalar) + 2, size=4)
    count, known, worst = 0, 0, 0.0
    for n in (*around_tiles, most, most, most, most):
        states = adversarial(task, rng, n)
        results = called(task, states)
        compared, off = within_bounds(task, states, results, plain)
        known, worst = known + compared, max(worst, off)
        parts_are_the_whole(task, states, results, rng)
        bad_samples_stay_alone(task, states, results, rng)
        count += n
    return Outcome(count, worst, known)


def called(task: Task, states: list[np.ndarray]) -> list[np.ndarray]:
    """The results as a list."""
    out = task.kernel(*states)
    return list(out) if isinstance(out, tuple) else [out]


def within_bounds(
    task: Task, states: Any, results: list[np.ndarray], plain: Any
) -> tuple[int, float]:
    """The worst distance from the plain code, in units of what rounding explains.

    And of how many samples: where the bound overflows, or the result may by rounding, or a number
    that it is divided by may be zero, nothing is known.
    """
    n = len(states[0])
    got = np.concatenate([x.reshape(n, -1) for x in results], axis=1)
    there = with_bounds(plain, states, _OF_CONSTANTS)
    here = with_bounds(task.kernel.program, states, _OF_CONSTANTS)
    known = np.ones(n, bool)
    with np.errstate(over="ignore"):
        for (x, a), (_, b) in zip(there, here, strict=True):
            known &= np.isfinite(np.abs(x) + (a + b))
    worst = 0.0
    for i, ((x, a), (_, b)) in enumerate(zip(there, here, strict=True)):
        off, bound = np.abs(got[known, i] - x[known]), a[known] + b[known]
        off = np.divide(off, bound, out=off, where=off != 0)
        assert not np.isnan(off).any(), f"{task}: entry {i} is NaN where the plain code is finite"
        worst = max(worst, float(off.max(initial=0.0)))
    assert worst <= 1, f"{task}: {worst:.3g} times as far from the plain code as rounding explains"
    return int(known.sum()), worst


def parts_are_the_whole(task: Task, states: Any, results: Any, rng: np.random.Generator) -> None:
    """A sample gives the same bits wherever it is in a batch of whatever size."""
    n = len(states[0])
    begin = int(rng.integers(n))
    end = int(min(n, begin + rng.integers(1, 40)))
    for whole, part in zip(results, called(task, [x[begin:end] for x in states]), strict=True):
        assert_same_bits(part, whole[begin:end], f"{task}, samples {begin} to {end} of {n}")


def bad_samples_stay_alone(task: Task, states: Any, results: Any, rng: np.random.Generator) -> None:
    """One entry that is not finite: the whole sample is NaN, and every other one as before."""
    n = len(states[0])
    bad = rng.random(n) < rng.choice([1 / n, 0.1, 0.9])
    states = [x.copy() for x in states]
    given = [x for x in states if x.size]
    for k in np.flatnonzero(bad):
        x = given[rng.integers(len(given))].reshape(n, -1)
        x[k, rng.integers(x.shape[1])] = rng.choice([np.nan, np.inf, -np.inf])
    for before, now in zip(results, called(task, states), strict=True):
        assert np.isnan(now[bad]).all(), f"{task}: a sample that is not finite gave a number"
        assert_same_bits(now[~bad], before[~bad], f"{task}, beside bad samples")
