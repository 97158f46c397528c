"""Snakes of 64 to 16 384 links: what a body costs, in batches and in one call, and first calls.

Times are CPU time of one thread, so that a busy machine shows little; the least of several.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import hinge
from hinge import zoo

__all__ = ["LINKS", "Long", "longs"]

LINKS = (64, 256, 1024, 4096, 16384)
# states of all bodies together in a batch
_BODIES = 1 << 18
_DRIVEN = 2
_ARRAYS = {
    "inverse_dynamics": ("q", "qd", "qdd"),
    "forward_dynamics": ("q", "qd", "tau"),
    "hybrid_dynamics": ("q", "qd", "qdd_active", "tau_passive"),
    "total_rates": ("q", "qd"),
    "diagonal_dynamics": ("q", "nu", "tau"),
}


@dataclass(frozen=True)
class Long:
    """Seconds for one body: of a state in a batch, of one call; of the first call, all bodies."""

    links: int
    quantity: str
    batch: float
    single: float
    first: float


def longs(links: int, seconds: float) -> Iterator[Long]:
    """A snake of so many links; seconds: how long each figure is looked for."""
    with tempfile.TemporaryDirectory() as folder:
        kept = dict(os.environ)
        os.environ["XDG_CACHE_HOME"] = folder
        try:
            yield from _measured(links, seconds)
        finally:
            os.environ.clear()
            os.environ.update(kept)


def _measured(links: int, seconds: float) -> Iterator[Long]:
    robot = hinge.Robot(zoo.snake(links).mechanism, threads=1)
    rng, many = np.random.default_rng(0), max(16, _BODIES // links)
    q, other = robot.random_configuration(rng, (many,)), rng.uniform(-1, 1, (many, robot.nv))
    split = {"active": tuple(k % _DRIVEN == 0 for k in range(robot.nv))}
    for quantity, names in _ARRAYS.items():
        settings = split if quantity == "hybrid_dynamics" else {}
        batch = [q if name == "q" else other for name in names]
        one = [np.ascontiguousarray(x[0]) for x in batch]

        def call(given: list[Any], q: str = quantity, own: dict[str, Any] = settings) -> Any:
            return getattr(robot, q)(*given, **own)

        first = _cpu(call, one)
        call(one)
        each = _least(call, batch, seconds) / many / links, _least(call, one, seconds) / links
        yield Long(links, quantity, *each, first)


def _cpu(call: Callable[..., Any], given: list[Any]) -> float:
    start = time.process_time()
    call(given)
    return time.process_time() - start


def _least(call: Callable[..., Any], given: list[Any], seconds: float) -> float:
    """Of calls one after the other for so long, at least five."""
    _cpu(call, given)
    found, end = [], time.process_time() + seconds
    while len(found) < 5 or time.process_time() < end:
        found.append(_cpu(call, given))
    return min(found)
