"""First calls on mechanisms that nobody thought of."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import hinge
from fresh_process import run_python
from hinge.robot.method import methods_of

from .lines import Outcome, line

__all__ = ["first_calls"]

_TESTS = Path(__file__).parents[1]
# s of CPU time, on a machine that does other things too, and GB
_LONGEST, _MOST = 20.0, 2.0


@line("calls", figure="s of CPU time", limit=300.0)
def first_calls(rng: np.random.Generator) -> Outcome:
    """A method called for the first time, nothing cached, on many free bodies, long chains with
    mimic joints, or many arms on one hub: an answer or a HingeError, soon and in little memory."""
    code = f"from campaign.first_calls import call; call({int(rng.integers(1 << 30))})"
    path = os.pathsep.join([str(_TESTS), os.environ.get("PYTHONPATH", "")])
    with TemporaryDirectory() as folder:
        *what, seconds, memory = run_python(code, PYTHONPATH=path, XDG_CACHE_HOME=folder).split()
    assert float(seconds) < _LONGEST and float(memory) < _MOST, (what, seconds, memory)
    return Outcome(1, float(seconds))


def call(seed: int) -> None:
    """A random method on a random mechanism, in this process; prints what it was and took."""
    import resource
    import time
    import warnings

    warnings.simplefilter("ignore")
    rng = np.random.default_rng(seed)
    robot = _mechanism(rng)
    frame, driven = robot.frame_names[-1], np.arange(robot.nv) >= robot.nv // 2
    known = {"frame": frame, "frames": (frame,), "active": driven}
    known["constraints"] = (hinge.Contact(frame, "point"),)
    methods = list(methods_of(type(robot)))
    method = methods[rng.integers(len(methods))]
    settings = {p.name: known[p.name] for p in method.parameters if p.name in known and p.required}
    single, start = bool(rng.integers(2)), time.process_time()
    # a mechanism may have no answer
    with contextlib.suppress(hinge.HingeError):
        robot.precompile(method.name, single=single, batch=not single, processes=1, **settings)
    took = time.process_time() - start
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(robot.name, method.name, "one" if single else "batch", took, memory)


def _mechanism(rng: np.random.Generator) -> hinge.Robot:
    kind, n = rng.integers(3), int(rng.integers(10, 60))
    b, body = hinge.MechanismBuilder(f"{('free', 'mimics', 'hub')[kind]}{n}"), _rod(0.2)
    if kind == 0:
        for i in range(n // 2):
            b.add(f"b{i}", "world", hinge.Free(), f"j{i}", inertia=body)
    elif kind == 1:
        for i in range(4 * n):
            mimic = hinge.Mimic(f"j{i - 1}", 0.5) if i % 2 else None
            joint = hinge.Revolute(((0, 1, 0), (0, 0, 1))[i % 2], mimic=mimic)
            place = hinge.Transform(translation=(0.2, 0, 0))
            b.add(f"b{i}", f"b{i - 1}" if i else "world", joint, f"j{i}", place, body)
    else:
        b.add("hub", "world", hinge.Free(), inertia=body)
        for i in range(5 * n):
            place = hinge.Transform(translation=(0, 0.1 * i, 0))
            b.add(f"b{i}", "hub", hinge.Revolute((0, 1, 0)), f"j{i}", place, body)
    return hinge.Robot(b.build())


def _rod(length: float) -> hinge.Inertia:
    return hinge.Inertia(1.0, (length / 2, 0, 0), 0.01 * np.eye(3))
