"""Joint rates that move frames as wanted, within limits: damped least squares in a box.

Of steps x, those with the least |e + J x|² + μ² |x − x₀|² are

    x = x₀ − N Jᵀ K⁻¹ (e + J x₀),     K = J N Jᵀ + μ² 1                                         (1)

with N = 1.  Whatever N₁ = N − N Jᵀ K⁻¹ J N lets through is left free by these rows, up to μ²: tasks
of lower priority take (1) from there, with N₁ in the place of N                                (2)

Within a box l ≤ x ≤ h some entries lie on a side of it and (1) is solved for the others.  From x in
the box one goes towards that solution as far as the box allows, which puts one more entry onto a
side; if all the way, the entry is let go whose slope r = Jᵀ(e + J x) + μ²(x − x₀) leads most into
the box.  So the sum of squares falls with every pass, to its least after a few                 (3)
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from ..algebra.small import clip, less, solve_spd, where
from ..model.mechanism import Mechanism
from .configuration import limits
from .declare import algorithm
from .kinematics import Reference, jacobian
from .tasks import Task

__all__ = ["Level", "bounded_step", "differential_inverse_kinematics"]

# how often the sides of the box are looked at again
_PASSES = 10
# roundings of the entries of J Jᵀ, relative to the square of the lengths in it, that μ² is above
_ROUNDINGS = 32


class Level(NamedTuple):
    """Rows e + J x of one priority, and the square of their damping."""

    e: np.ndarray
    J: np.ndarray
    mu2: Any


def bounded_step(
    levels: Sequence[Level], x0: np.ndarray, low: np.ndarray, high: np.ndarray, passes: int
) -> np.ndarray:
    """x of (1) to (3); low and high may be infinite numbers where nothing bounds."""
    y = _damped(levels, x0, np.ones(len(x0)))
    x, side = _within(y, low, high), _beyond(y, low, high)
    for left in reversed(range(passes)):
        free = 1 - side * side
        start = np.array([where(f, a, b) for f, a, b in zip(free, x0, x, strict=True)])
        y = _damped(levels, start, free)
        parts, over = _parts(x, y, low, high), _beyond(y, low, high)
        part = reduce(_least, parts, 1.0)
        x = _within(x + np.array([part]) * (y - x), low, high)
        if left:
            side = _let_go(levels, x0, x, side, part)
            met = [less(a, 1.0) * (1 - less(part, a)) for a in parts]
            side = np.array([where(m, o, s) for m, o, s in zip(met, over, side, strict=True)])
    return x


def _damped(levels: Sequence[Level], x: np.ndarray, free: np.ndarray) -> np.ndarray:
    """(1) and (2) along the entries that are free."""
    N: Any = None
    for level in levels:
        JN = level.J * free if N is None else level.J @ N
        K = JN @ level.J.T + np.diag([level.mu2] * len(level.e))
        x = x - JN.T @ solve_spd(K, level.e + level.J @ x)  # (1)
        if level is not levels[-1]:
            N = (np.diag(free) if N is None else N) - JN.T @ solve_spd(K, JN)  # (2)
    return x


def _beyond(y: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """−1 and 1 for entries below and above the box, 0 for those inside."""
    ends = zip(y, low, high, strict=True)
    return np.array([_more(x, b) - _more(-x, -a) for x, a, b in ends])


def _more(x: Any, bound: Any) -> Any:
    return 0.0 if _endless(bound) else less(bound, x)


def _endless(bound: Any) -> bool:
    return isinstance(bound, float) and bound == np.inf


def _parts(x: np.ndarray, y: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """How much of the way from x to y each entry may go, 1 at most."""
    out = []
    for a, b, l, h in zip(x, y, low, high, strict=True):
        bounded = not (_endless(-l) and _endless(h))
        out.append(_part(b - a, a - l, h - a) if bounded else 1.0)
    return np.array(out)


def _part(way: Any, below: Any, above: Any) -> Any:
    """What part of a way there is room for, below or above."""
    room, length = where(less(way, 0.0), below, above), abs(way)
    short = less(room, length)
    return where(short, room / where(short, length, 1.0), 1.0)


def _least(a: Any, b: Any) -> Any:
    return where(less(b, a), b, a)


def _let_go(
    levels: Sequence[Level], x0: np.ndarray, x: np.ndarray, side: np.ndarray, part: Any
) -> np.ndarray:
    """Sides without the entry that leads most into the box, if x went all the way (3)."""
    r = sum(level.J.T @ (level.e + level.J @ x) + level.mu2 * (x - x0) for level in levels)
    inward = side * r
    most = -reduce(_least, -inward, 0.0)
    whole = 1 - less(part, 1.0)
    gone = [whole * less(0.0, a) * (1 - less(a, most)) for a in inward]
    return np.array([where(g, 0.0, s) for g, s in zip(gone, side, strict=True)])


def _within(x: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    ends = zip(x, low, high, strict=True)
    known = [_endless(-a) and _endless(b) for a, b in zip(low, high, strict=True)]
    return np.array([y if k else clip(y, a, b) for (y, a, b), k in zip(ends, known, strict=True)])


@algorithm()
def differential_inverse_kinematics(
    mech: Mechanism,
    q: np.ndarray,
    velocity: np.ndarray,
    frame: str,
    qd: np.ndarray | None = None,
    dt: float = 0.01,
    reference: Reference = "aligned",
    damping: float = 1e-4,
    rounding: float = float(np.finfo(np.float64).eps),
) -> np.ndarray:
    """Joint rates (nv,) with which a frame moves with (ω; v), as nearly as the limits allow.

    qd: rates that are wanted besides, where they do not change the frame's velocity.
    dt: for how long they will be kept: no joint passes a limit of position in that time.
    damping: μ; lengths count as in the Jacobian, in m.  It is no less than keeps K from being lost
    to the rounding of its entries, which are as large as the way to the frame is long.
    """
    J = jacobian(mech, q, frame, reference)
    bounds = limits(mech)
    low, high = bounds.rates(q, dt)
    wish = np.zeros(mech.nv) if qd is None else qd
    size = 1 + Task(frame).length(mech) ** 2
    mu2 = max(damping * damping, _ROUNDINGS * rounding * size)
    return bounded_step([Level(-velocity, J, mu2)], wish, low, high, _PASSES)
