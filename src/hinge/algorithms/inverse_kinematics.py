"""Inverse kinematics: a configuration in which frames are where tasks want them.  Paper F fig. 6.

From q, with errors e and Jacobians J of the tasks (`tasks.py`), lengths relative to those on the
way to the frame, so that units do not matter, a step is the bounded one of
`differential_kinematics.py`:

    Δ minimises |e + J Δ|² + μ² |Δ − z|²  with  lower ≤ q + Δ ≤ upper                           (1)
    μ² = λ ½|e|² + μ₀²                      damped as much as there is left to do               (2)
    q ← q ⊞ Δ                                                                                   (3)

The damping (2) needs no trial steps: far away it bounds Δ, near an answer it vanishes and steps are
Newton's (Sugihara, IEEE Trans. Robotics 27, 2011, whose damping this is).  z pulls towards a
preferred posture: it moves only what the tasks leave free.  Of several priorities each has its own
μ and what those before it leave.

A start that no longer improves is given up for the next one; after the last, steps go on from the
best configuration of all, to come as near as can be.  The starts of every sample are those
of the sequence u ← u + √p mod 1, p the primes, which fills the ranges of the joints evenly      (4)

All of it is straight-line code: a sample that is done stays where it is, so that the loop can be
run by a kernel, for many samples at once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from ..algebra.small import clip, less, sqrt, where
from ..model.joint import Joint
from ..model.mechanism import Mechanism
from .configuration import difference, integrate, limits
from .declare import algorithm
from .differential_kinematics import Level, bounded_step
from .tasks import Rows, Task, task_rows

__all__ = ["Rules", "Search", "approach", "improve", "inverse_kinematics", "new_search", "spread"]


class _Manner(NamedTuple):
    """λ of (2); a start is given up after so many steps that do not make the merit so much less."""

    damping: float
    patience: float
    better: float


# to get somewhere, and, after the last start, to get as near as can be from the best that was found
_QUICK, _CAREFUL = _Manner(0.2, 4, 0.8), _Manner(1.0, 8, 1 - 1e-6)
# what a priority counts beside the one before it, when configurations are compared
_LESS = 1e-8
# what a squared chord c² misses of the squared angle θ² ≤ c² + _CHORD c⁴, up to half a turn
_CHORD = (np.pi**2 / 4 - 1) / 4
# the longest pull towards a posture in a step, and the shortest that is worth another one
_PULL, _AT_REST = 0.3, 1e-4
# rad and m: a length in the place of infinity
_FAR = 1e30


class Rules(NamedTuple):
    """When a search ends: the tolerance of every task in rad and m, starts, steps of each start.

    damping: μ₀² of (2), what keeps K solvable where J has lost rank.
    """

    tolerance: Any
    most_starts: Any
    most_steps: Any
    damping: Any


class Search(NamedTuple):
    """Where a search is.

    q: this step's configuration; best, error, merit: the best so far, its errors in rad (as chords)
    and m, task after task, and how they compare; found: whether those are within the tolerance.
    least, stalled, age: of this start, the least merit, steps since it was that, all its steps.
    starts: how many, one more than allowed while the best of all is improved.
    spread: u of (4), (nv,); done: 1 where the search has ended.
    """

    q: Any
    best: Any
    error: Any
    merit: Any
    found: Any
    least: Any
    stalled: Any
    age: Any
    spread: Any
    starts: Any
    iterations: Any
    done: Any


def new_search(mech: Mechanism, tasks: Sequence[Task], q0: Any, u: Any) -> Search:
    """Before the first step; u: where the sequence of starts begins, (nv,)."""
    q = limits(mech).kept(q0)
    nothing = np.zeros(sum(task.rows for task in tasks))
    return Search(q, q, nothing, _FAR, 0.0, _FAR, 0.0, 0.0, u, 1.0, 0.0, 0.0)


class _Step(NamedTuple):
    """Where a step leads, how long it is, and what was there before it."""

    q: np.ndarray
    length2: Any
    error: np.ndarray
    merit: Any
    reached: Any


def improve(
    mech: Mechanism,
    tasks: Sequence[Task],
    s: Search,
    targets: Sequence[Any],
    rules: Rules,
    posture: Any = None,
    moving: Sequence[float] | None = None,
) -> Search:
    """One step of a search; moving: which DoF may move, 1 or 0 each, all if not given."""
    mask = np.ones(mech.nv) if moving is None else np.array(moving)
    ending = less(rules.most_starts + 0.5, s.starts)
    manner = _Manner(*(where(ending, a, b) for a, b in zip(_CAREFUL, _QUICK, strict=True)))
    step = _step(mech, tasks, s.q, targets, rules, manner, posture, mask)
    resting = 1.0 if posture is None else less(step.length2, _AT_REST**2)
    return _decided(mech, s, step, resting, rules, manner, mask)


def approach(
    mech: Mechanism,
    tasks: Sequence[Task],
    q: np.ndarray,
    targets: Sequence[Any],
    rules: Rules,
    posture: Any,
    moving: Sequence[float],
    last: Any,
) -> tuple[np.ndarray, np.ndarray, Any]:
    """A step towards targets that are near, none where they are reached or if it is the last.

    The new q, the errors at the old one, and whether they are within the tolerance.
    """
    step = _step(mech, tasks, q, targets, rules, _QUICK, posture, np.array(moving))
    stay = _either(last, step.reached if posture is None else 0.0)
    return where(stay, q, step.q), step.error, step.reached


def _step(
    mech: Mechanism,
    tasks: Sequence[Task],
    q: np.ndarray,
    targets: Sequence[Any],
    rules: Rules,
    manner: _Manner,
    posture: Any,
    mask: np.ndarray,
) -> _Step:
    bounds = limits(mech)
    rows = [task_rows(mech, q, task, x) for task, x in zip(tasks, targets, strict=True)]
    levels, merit = _levels(tasks, rows, manner.damping, rules.damping, mask)
    pull = np.zeros(mech.nv) if posture is None else mask * _pull(mech, q, posture)
    delta = bounded_step(levels, pull, *bounds.room(q), passes=1)  # (1)
    near = [_near(task, r.e, rules.tolerance) for task, r in zip(tasks, rows, strict=True)]
    error = np.concatenate([r.e for r in rows])
    new = bounds.kept(integrate(mech, q, delta))  # (3)
    return _Step(new, delta @ delta, error, merit, math.prod(near))


def _decided(
    mech: Mechanism,
    s: Search,
    step: _Step,
    resting: Any,
    rules: Rules,
    manner: _Manner,
    mask: np.ndarray,
) -> Search:
    """Whether to take a step, to start elsewhere, or to end."""
    reached, merit = step.reached, step.merit
    found = _either(reached, s.found)
    better = _either(reached, (1 - s.found) * less(merit, s.merit))
    last, ending = less(rules.most_starts - 0.5, s.starts), less(rules.most_starts + 0.5, s.starts)
    improved = less(merit, manner.better * s.least)
    stalled = where(improved, 0.0, s.stalled + 1)
    worn = less(rules.most_steps - 1.5, s.age)
    tired = (1 - found) * _either(less(manner.patience - 0.5, stalled), worn)
    again = tired * (1 - ending)
    u = _next(s.spread)
    new = Search(
        q=where(again, where(last, s.best, spread(mech, u, s.q, mask)), step.q),
        best=where(better, s.q, s.best),
        error=where(better, step.error, s.error),
        merit=where(better, merit, s.merit),
        found=found,
        least=where(again, _FAR, where(improved, merit, s.least)),
        stalled=where(again, 0.0, stalled),
        age=where(again, 0.0, s.age + 1),
        spread=where(again, u, s.spread),
        starts=s.starts + again,
        iterations=s.iterations + 1,
        done=where(found, _either(reached * resting, worn), tired * ending),
    )
    return Search(*(where(s.done, old, x) for old, x in zip(s, new, strict=True)))


def _either(a: Any, b: Any) -> Any:
    return where(a, 1.0, b)


def _levels(
    tasks: Sequence[Task], rows: Sequence[Rows], damping: Any, least: Any, mask: np.ndarray
) -> tuple[list[Level], Any]:
    """The rows of each priority, weighed and without units, and what configurations compare by."""
    levels, total, count = [], 0.0, 1.0
    pairs = sorted(zip(tasks, rows, strict=True), key=lambda pair: pair[0].priority)
    for _, group in groupby(pairs, key=lambda pair: pair[0].priority):
        scaled = [(math.sqrt(t.weight) / r.unit, r) for t, r in group]
        e = np.concatenate([w * r.e for w, r in scaled])
        J = np.concatenate([w[:, None] * r.J * mask for w, r in scaled])
        half = 0.5 * (e @ e)
        levels.append(Level(e, J, damping * half + least))  # (2)
        total, count = total + count * half, count * _LESS
    return levels, total


def _near(task: Task, e: np.ndarray, tolerance: Any) -> Any:
    """Whether a task's error is within the tolerance; never if the angle itself is not."""
    chord, shift = e[: task.angular], e[task.angular :]
    c = chord @ chord
    return less(c + _CHORD * c * c + shift @ shift, tolerance * tolerance)


def _pull(mech: Mechanism, q: np.ndarray, posture: np.ndarray) -> np.ndarray:
    """z: towards a posture, not too far at once."""
    z = difference(mech, q, posture)
    return z * np.array([clip(_PULL / sqrt(z @ z + 1 / _FAR), 0.0, 1.0)])


def _next(u: np.ndarray) -> np.ndarray:
    """(4)."""
    ahead = [x + a for x, a in zip(u, _irrational(len(u)), strict=True)]
    return np.array([where(less(x, 1.0), x, x - 1) for x in ahead])


@cache
def _irrational(n: int) -> tuple[float, ...]:
    """√p mod 1 of the first n primes."""
    primes: list[int] = []
    candidate = 2
    while len(primes) < n:
        if all(candidate % p for p in primes):
            primes.append(candidate)
        candidate += 1
    return tuple(math.sqrt(p) % 1 for p in primes)


def spread(mech: Mechanism, u: np.ndarray, q: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """The start that u, (nv,) in 0 … 1, stands for; DoF that may not move are where q has them."""
    bounds, parts = limits(mech), [np.zeros(0)]
    for b in mech.bodies[1:]:
        if b.joint.mimic is None:
            at, dof = mech.q_slice(b.joint_name), mech.v_slice(b.joint_name)
            ends = bounds.lower[dof], bounds.upper[dof]
            parts.append(_somewhere(b.joint, u[dof], *ends) if mask[dof].all() else q[at])
    return bounds.kept(np.concatenate(parts))


def _somewhere(joint: Joint, u: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Coordinates of a joint within its range and the limits."""
    if joint.nq != joint.nv:
        return joint.integrate(joint.neutral(), joint.reach * (2 * u - 1))
    low, high = joint.range()
    low, high = np.maximum(low, lower), np.minimum(high, upper)
    return low + (high - low) * u


@algorithm()
def inverse_kinematics(
    mech: Mechanism,
    q0: np.ndarray,
    tasks: Sequence[Task],
    targets: Sequence[np.ndarray],
    tolerance: float = 1e-9,
    starts: int = 1,
    iterations: int = 100,
    posture: np.ndarray | None = None,
) -> Search:
    """The search from q0 to its end, on plain numbers; `Robot.inverse_kinematics` compiles it."""
    rules = Rules(tolerance, starts, iterations, np.finfo(float).eps ** 0.75)
    s = new_search(mech, tasks, q0, np.full(mech.nv, 0.5))
    while not s.done:
        s = improve(mech, tasks, s, targets, rules, posture)
    return s
