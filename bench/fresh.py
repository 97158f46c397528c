"""What only a new process can tell: import time, first calls with and without the cache, memory."""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

__all__ = ["FirstCall", "first_call", "import_times"]

_ROOT = Path(__file__).parent.parent
# everywhere that a cache folder may be
_CACHES = ("XDG_CACHE_HOME", "HOME", "LOCALAPPDATA")


@dataclass(frozen=True)
class FirstCall:
    """A quantity of a robot asked for the first time in a process.

    cold: seconds with an empty cache, tracing included; cached: the same in the next process.
    memory: MB that the process grew by; operations: of one evaluation, by kind.
    """

    case: str
    quantity: str
    cold: float
    cached: float
    memory: float
    operations: dict[str, int]


def first_call(case: str, quantity: str, repeats: int) -> FirstCall:
    """Medians over new processes; every cold one has a cache folder of its own.

    One before them, which is not counted, leaves the bytecode of all modules.
    """
    cold, cached = [], []
    with tempfile.TemporaryDirectory() as folder:
        _child(folder, case, quantity)
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as folder:
            cold.append(_child(folder, case, quantity))
            cached.append(_child(folder, case, quantity))
    memory = statistics.median(c["memory"] for c in cold)
    seconds = [statistics.median(c["seconds"] for c in runs) for runs in (cold, cached)]
    return FirstCall(case, quantity, *seconds, memory, cold[0]["operations"])


def _child(folder: str, case: str, quantity: str) -> dict:
    environment = _environment() | dict.fromkeys(_CACHES, folder)
    command = [sys.executable, "-m", "bench.fresh", case, quantity]
    done = subprocess.run(
        command, env=environment, cwd=_ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"first call of {quantity}, {case}: {done.stderr.strip()[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def _environment() -> dict[str, str]:
    """Modules are kept as bytecode, as those of an installed package are."""
    own = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return own | {"PYTHONPYCACHEPREFIX": _bytecode().name}


@cache
def _bytecode() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory()


def import_times(repeats: int) -> dict[str, float]:
    """Seconds that imports take in a new process, the start of the interpreter taken off."""
    programs = {"": "pass", "numpy": "import numpy", "hinge": "import hinge"}
    programs["llvmlite"] = "import numpy, llvmlite.binding"
    times: dict[str, list[float]] = {name: [] for name in programs}
    environment = _environment()
    for _ in range(1 + repeats):
        for name, program in programs.items():
            start = time.perf_counter()
            command = [sys.executable, "-c", program]
            subprocess.run(command, check=True, cwd=_ROOT, env=environment)
            times[name].append(time.perf_counter() - start)
    typical = {name: statistics.median(t[1:]) for name, t in times.items()}
    bare = typical.pop("")
    return {name: t - bare for name, t in typical.items()}


def _resident() -> float:
    """The most memory that this process has had, MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _main(case_name: str, quantity: str) -> None:
    import hinge

    from .robots import ARGUMENTS, HELD, HELD_DERIVATIVES, contacts, make

    mechanism = make(case_name).mechanism
    feet = HELD | HELD_DERIVATIVES
    names = (ARGUMENTS | feet)[quantity]
    settings = {"constraints": contacts(case_name)} if quantity in feet else {}
    q = np.linspace(0.1, 1.0, mechanism.nq)
    given = dict(zip(names, [q, *np.full((2, mechanism.nv), 0.5)], strict=False))
    before, start = _resident(), time.perf_counter()
    robot = hinge.Robot(mechanism)
    getattr(robot, quantity)(**given, **settings)
    seconds, memory = time.perf_counter() - start, _resident() - before
    operations = robot.kernel(quantity, *names, **settings).ops._asdict()
    print(json.dumps({"seconds": seconds, "memory": memory, "operations": operations}))


if __name__ == "__main__":
    _main(*sys.argv[1:])
