"""Between the steps of a motion: states at any time, and where functions of them cross zero.

A stretch from t to t + h is a quintic in u, q(t + s h) = q ⊞ u(s), which has the states and the
accelerations of both ends; its error is of order h⁶ in q and h⁵ in q̇, whatever made the steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from inspect import signature
from typing import Any

import numpy as np

from .. import algorithms
from ..algorithms.configuration import precise_rate, precise_velocity
from ..errors import ArgumentError
from ..functions.derivatives import jvp
from ..graph.program import trace
from ..model.mechanism import Mechanism
from ..robot import Robot
from ..runtime.kernel import Kernel

__all__ = [
    "Crossings",
    "EventFunction",
    "Stretches",
    "crossings",
    "end_of",
    "event_functions",
    "states",
]

# halvings that leave nothing of a stretch but rounding
_HALVINGS = 54


@dataclass(frozen=True)
class Stretches:
    """Pieces of motions, one after the other: each of a sample, from (q0, qd0, qdd0) at t on."""

    sample: np.ndarray
    t: np.ndarray
    h: np.ndarray
    q0: np.ndarray
    qd0: np.ndarray
    qdd0: np.ndarray
    q1: np.ndarray
    qd1: np.ndarray
    qdd1: np.ndarray

    def __getitem__(self, which: Any) -> Stretches:
        return Stretches(*(getattr(self, f.name)[which] for f in fields(self)))

    @classmethod
    def joined(cls, parts: Sequence[Stretches]) -> Stretches:
        """All of them, in order."""
        return cls(*(np.concatenate([getattr(x, f.name) for x in parts]) for f in fields(cls)))


@dataclass(frozen=True)
class Crossings:
    """Where an event happened: t (n,), q (n, nq), qd (n, nv); sample: (n,), which of a batch."""

    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    sample: np.ndarray

    def until(self, end: float) -> Crossings:
        """Those up to a time."""
        soon = self.t <= end
        return Crossings(self.t[soon], self.q[soon], self.qd[soon], self.sample[soon])


def states(robot: Robot, pieces: Stretches, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """q and q̇ a share s of the way along each stretch."""

    def between(
        s: Any, h: Any, q0: Any, qd0: Any, qdd0: Any, q1: Any, qd1: Any, qdd1: Any
    ) -> tuple[Any, Any]:
        return _between(robot.mechanism, s, h, (q0, qd0, qdd0), (q1, qd1, qdd1))

    rates = dict.fromkeys(("qd0", "qdd0", "qd1", "qdd1"), (robot.nv,))
    kernel = robot._keep("between steps", lambda: robot.compile(between, **rates))
    arrays = [getattr(pieces, f.name) for f in fields(pieces)[2:]]
    return kernel(s, *(x.astype(robot.dtype) for x in arrays))


def _between(mech: Mechanism, s: Any, h: Any, start: Any, end: Any) -> tuple[Any, Any]:
    (q0, v0, a0), (q1, v1, a1) = start, end
    u1 = algorithms.difference(mech, q0, q1)
    w1 = precise_rate(mech, u1, v1)
    b1 = jvp(lambda u, v: precise_rate(mech, u, v))((u1, v1), (w1, a1))
    parts = h * v0, h * h * a0, u1, h * w1, h * h * b1
    s2, s3, s4 = s * s, s * s * s, s * s * s * s
    s5 = s4 * s
    basis = (
        s - 6 * s3 + 8 * s4 - 3 * s5,
        0.5 * s2 - 1.5 * s3 + 1.5 * s4 - 0.5 * s5,
        10 * s3 - 15 * s4 + 6 * s5,
        -4 * s3 + 7 * s4 - 3 * s5,
        0.5 * s3 - s4 + 0.5 * s5,
    )
    slopes = (
        1 - 18 * s2 + 32 * s3 - 15 * s4,
        s - 4.5 * s2 + 6 * s3 - 2.5 * s4,
        30 * s2 - 60 * s3 + 30 * s4,
        -12 * s2 + 28 * s3 - 15 * s4,
        1.5 * s2 - 4 * s3 + 2.5 * s4,
    )
    still = np.zeros(mech.nv)
    u, du = (
        sum((c * x for c, x in zip(row, parts, strict=True)), still) for row in (basis, slopes)
    )
    return algorithms.integrate(mech, q0, u), precise_velocity(mech, u, du / h)


# events


@dataclass(frozen=True)
class EventFunction:
    """A function of (t, q, qd) of one sample whose zeros are asked for, and what it is called.

    direction: 1 where it grows, −1 where it falls, 0 both.  terminal: the motion ends there.
    """

    name: str
    values: Callable[..., np.ndarray]
    direction: float
    terminal: bool
    where: str = ""

    def at(self, t: np.ndarray, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """Its values, of states that are finite finite ones."""
        found = self.values(t, q, qd)
        sound = np.isfinite(q).all(axis=-1) & np.isfinite(qd).all(axis=-1)
        for i in np.flatnonzero(sound & ~np.isfinite(found)):
            raise ArgumentError(
                f"{self.where}: {self.name} gave {found[i]} at t = {t[i]:g}, q = {q[i]}; expected "
                f"one finite number: where it is none no zero of it can be found"
            )
        return found


def event_functions(
    where: str, robot: Robot, events: Any, batch: bool
) -> tuple[EventFunction, ...]:
    """Events as they are given, one or several functions, checked."""
    given = (events,) if callable(events) else tuple(events)
    return tuple(_event(where, robot, f, i, batch) for i, f in enumerate(given))


def _event(where: str, robot: Robot, fn: Any, i: int, batch: bool) -> EventFunction:
    name = f"event {i}"
    try:
        signature(fn).bind(0.0, None, None)
    except (TypeError, ValueError):
        raise ArgumentError(
            f"{where}: {name} is {fn!r}; expected a function of (t, q, qd) of one sample"
        ) from None
    direction, terminal = getattr(fn, "direction", 0), bool(getattr(fn, "terminal", False))
    if terminal and batch:
        raise ArgumentError(
            f"{where}: {name} is terminal, and ends one motion; this is a batch of them: leave "
            f"terminal out, and cut at the times that are found"
        )
    return EventFunction(name, _values(where, name, robot, fn), direction, terminal, where)


def _values(where: str, name: str, robot: Robot, fn: Any) -> Callable[..., np.ndarray]:
    """The function on arrays of samples: as a kernel if it can be traced, else called for each."""
    try:
        program = trace(lambda *x: np.asarray(fn(*x)), [(), (robot.nq,), (robot.nv,)], name)
        if program.outputs == ((),):
            return Kernel(program, name)
    except Exception:  # noqa: S110 (numbers may be fine where symbols are not)
        pass

    def called(t: np.ndarray, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        # the function may write into what it gets
        states = zip(t, q.copy(), qd.copy(), strict=True)
        return np.array([_number(where, name, fn(*x)) for x in states])

    return called


def _number(where: str, name: str, value: Any) -> float:
    x = np.asarray(value)
    if x.shape != () or x.dtype.kind not in "fiub" or not np.isfinite(x):
        raise ArgumentError(f"{where}: {name} gave {value!r}; expected one finite number")
    return float(x)


def crossings(robot: Robot, pieces: Stretches, event: EventFunction) -> Crossings:
    """Where an event happens: between the ends of a stretch where its function changes its sign."""
    first = event.at(pieces.t, pieces.q0, pieces.qd0)
    last = event.at(pieces.t + pieces.h, pieces.q1, pieces.qd1)
    up, down = (first < 0) & (last >= 0), (first > 0) & (last <= 0)
    which = np.flatnonzero((up & (event.direction >= 0)) | (down & (event.direction <= 0)))
    hit, sign = pieces[which], np.where(up, 1.0, -1.0)[which]
    low, high = np.zeros(len(which)), np.ones(len(which))
    for _ in range(_HALVINGS if len(which) else 0):
        middle = 0.5 * (low + high)
        beyond = sign * event.values(hit.t + middle * hit.h, *states(robot, hit, middle)) >= 0
        low, high = np.where(beyond, low, middle), np.where(beyond, middle, high)
    order = np.argsort(hit.t + high * hit.h, kind="stable")
    q, qd = states(robot, hit, high)
    return Crossings((hit.t + high * hit.h)[order], q[order], qd[order], hit.sample[order])


def end_of(
    found: Sequence[Crossings], events: Sequence[EventFunction]
) -> tuple[float, np.ndarray, np.ndarray] | None:
    """When and in which state the first of the terminal events ends the motion, if one does."""
    pairs = zip(found, events, strict=True)
    ends = [(c.t[0], c.q[0], c.qd[0]) for c, e in pairs if e.terminal and len(c.t)]
    return min(ends, key=lambda end: end[0], default=None)
