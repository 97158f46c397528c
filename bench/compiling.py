"""How long the first call of every method takes on the robots of the tests, nothing cached.

Each call has a process of its own, forked before LLVM is loaded, and an empty cache: what is
measured begins with that import and ends with the result.  All modules are bytecode by then, as
those of an installed package are.
"""

from __future__ import annotations

import compileall
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import llvmlite
import numpy as np

import hinge
from hinge.robot.method import Method

from .robots import FEET, contacts, make

__all__ = ["ROBOTS", "Compiled", "compiled"]

ROBOTS = ("panda", "ur5", "anymal", "solo12", "talos")
# where one sample goes another way than a batch
_APART = ("forward_dynamics_derivatives", "constrained_forward_dynamics_derivatives")


@dataclass(frozen=True)
class Compiled:
    """Seconds of a first call, and of CPU time, over all threads; inf if it did not work."""

    case: str
    what: str
    wall: float
    cpu: float

    @property
    def bound(self) -> float:
        """The aim."""
        return 0.6 if self.case == "panda" else 2.0


def compiled(name: str) -> Iterator[Compiled]:
    """All methods of a robot that need arrays, a frame, a split or constraints."""
    _ = _bytecode()
    robot = hinge.Robot(make(name).mechanism)
    frame = robot.frame_names[-1]
    held = contacts(name) if name in FEET else (hinge.Contact(frame, "point"),)
    driven = np.arange(robot.nv) >= robot.nv // 2
    known = {"frame": frame, "active": driven, "constraints": held}
    for method in dict.fromkeys(_methods(type(robot))):
        settings = [p.name for p in method.parameters if not p.is_array and p.required]
        if set(settings) <= set(known):
            own = {n: known[n] for n in settings}
            yield _timed(name, method.name, _call(robot, method.name, own, single=True))
            if method.name in _APART:
                call = _call(robot, method.name, own, single=False)
                yield _timed(name, f"{method.name}, batch", call)
    yield _timed(name, "simulate", lambda: hinge.simulate(robot, robot.neutral(), duration=0.01))
    for way in ("forward", "adjoint"):
        yield _timed(name, f"trajectory_sensitivity, {way}", lambda way=way: _change(robot, way))


@cache
def _bytecode() -> tempfile.TemporaryDirectory[str]:
    """A folder with the bytecode of our modules and of LLVM's, from which they are imported."""
    folder = tempfile.TemporaryDirectory()
    sys.pycache_prefix = folder.name
    for package in (hinge, llvmlite):
        (place,) = package.__path__
        compileall.compile_dir(place, quiet=2)
    return folder


def _methods(kind: type) -> list[Method]:
    found = (x for base in reversed(kind.__mro__) for x in vars(base).values())
    return [x for x in found if isinstance(x, Method)]


def _call(
    robot: hinge.Robot, name: str, settings: dict[str, Any], single: bool
) -> Callable[[], Any]:
    return lambda: robot.precompile(name, single=single, batch=not single, processes=1, **settings)


def _change(robot: hinge.Robot, way: str) -> None:
    still = np.zeros(robot.nv)
    motion = hinge.trajectory_sensitivity(robot, robot.neutral(), still, np.zeros((2, robot.nv)))
    cost = np.zeros((3, robot.nv))
    _ = motion.forward(dq=still) if way == "forward" else motion.adjoint(cost, cost)


def _timed(case: str, what: str, call: Callable[[], Any]) -> Compiled:
    """A call in a process of its own."""
    reading, writing = os.pipe()
    with tempfile.TemporaryDirectory() as folder:
        child = os.fork()
        if not child:
            try:
                os.environ |= dict.fromkeys(("XDG_CACHE_HOME", "HOME"), folder)
                start, cpu = time.perf_counter(), time.process_time()
                call()
                took = time.perf_counter() - start, time.process_time() - cpu
                os.write(writing, json.dumps(took).encode())
            finally:
                os._exit(0)
        os.close(writing)
        os.waitpid(child, 0)
        with os.fdopen(reading) as said:
            text = said.read()
    return Compiled(case, what, *(json.loads(text) if text else (float("inf"),) * 2))
