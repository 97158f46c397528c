"""Threads, forks, interrupts and leaks."""

from __future__ import annotations

import gc
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import pairwise
from typing import Any

import numpy as np

import hinge
from fresh_process import run_python
from hinge.errors import HingeError
from mechanisms import assert_same_bits

from .lines import Outcome, line
from .pool import Task, random_task, robot, tame

SETTINGS = [{"frame": f, "reference": r} for f in ("tip", "base") for r in ("world", "body")]


@line("calls", weight=2)
def threads(rng: np.random.Generator) -> Outcome:
    """Six threads at one robot at once, each with other settings, sizes and spellings of the same
    methods, while another collects garbage and makes, uses and drops robots of its own: what one
    thread alone gets."""
    one = hinge.Robot(robot("spherical").mechanism)
    n = [int(x) for x in rng.integers(1, 600, size=6)]
    q = [np.array([one.random_configuration(rng) for _ in range(k)]) for k in n]
    qd = [rng.normal(size=(k, one.nv)) for k in n]
    alone = hinge.Robot(one.mechanism)
    expected = [_several(alone, q[i], qd[i], SETTINGS[i % 4]) for i in range(6)]
    stop, gate = threading.Event(), threading.Barrier(6)

    def user(i: int) -> int:
        gate.wait()
        for _ in range(10):
            got = _several(one, q[i], qd[i], SETTINGS[i % 4])
            for a, b in zip(got, expected[i], strict=True):
                assert_same_bits(a, b, f"thread {i}, {SETTINGS[i % 4]}, {n[i]} samples")
        return 10 * len(expected[i])

    def disturb() -> None:
        while not stop.is_set():
            other = hinge.Robot(one.mechanism)
            other.inverse_dynamics(q[0], qd[0], qd[0])
            other.jacobian(q[0], "tip")
            del other
            gc.collect()

    helper = threading.Thread(target=disturb)
    helper.start()
    try:
        with ThreadPoolExecutor(6) as pool:
            return Outcome(sum(pool.map(user, range(6))))
    finally:
        stop.set()
        helper.join()


def _several(one: hinge.Robot, q: np.ndarray, qd: np.ndarray, setting: dict) -> list[np.ndarray]:
    """One sample and many, by place and by name, with settings and without."""
    return [
        one.jacobian(q, **setting),
        one.jacobian(q[0], setting["frame"], setting["reference"]),
        one.inverse_dynamics(q, qd, qd),
        one.inverse_dynamics(q=q[0], qd=qd[0], qdd=qd[0]),
        one.frame_velocity(q, qd, setting["frame"], reference=setting["reference"]),
        one.mass_matrix(q, out=np.empty((len(q), one.nv, one.nv))),
    ]


@line("forks", weight=1)
def forks(rng: np.random.Generator) -> Outcome:
    """Forks while other threads compile, run batches and take large results: the child compiles,
    runs and leaves, with the numbers of its parent."""
    if not hasattr(os, "fork"):
        return Outcome(0)
    seed, count = int(rng.integers(1 << 30)), 4
    said = run_python(_FORKS.format(seed=seed, count=count)).split()
    assert said == ["0"] * count, f"children ended with {said}"
    return Outcome(count)


_FORKS = """
import os, signal, threading, time, warnings
import numpy as np
import hinge
from hinge import zoo
warnings.simplefilter("ignore")
rng, stop = np.random.default_rng({seed}), threading.Event()
arm = zoo.arm(5)
q = rng.normal(size=(30_000, 5))
expected = arm.mass_matrix(q)

def compiling():
    k = 0
    while not stop.is_set():
        k += 1
        hinge.compile(lambda x: np.sin((k + {seed}) * x) @ np.cos(x), x=(30,))(np.ones(30))

def running():
    while not stop.is_set():
        arm.mass_matrix(q)
        arm.inverse_dynamics(q, q, q)

others = [threading.Thread(target=f) for f in (compiling, running)]
for other in others:
    other.start()
for i in range({count}):
    time.sleep(rng.uniform(0, 0.3))
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        good = np.array_equal(arm.mass_matrix(q), expected)
        made = hinge.compile(lambda x: (i + {seed}) * x, x=(3,))(np.ones((50_000, 3)))
        os._exit(0 if good and (made == i + {seed}).all() else 1)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
stop.set()
for other in others:
    other.join()
"""


@line("interrupts", weight=1)
def interrupts(rng: np.random.Generator) -> Outcome:
    """Ctrl-C at any moment of tracing, compiling, keeping, loading, running batches and time loops:
    KeyboardInterrupt and nothing else, and whatever is called afterwards is right."""
    count = 3
    waits = rng.uniform(0.0, 0.4, size=count)
    code = _INTERRUPTS.format(waits=waits.tolist(), salt=int(rng.integers(1 << 30)))
    said = run_python(code).split()
    assert said == ["right"], f"said {said}"
    return Outcome(count)


_INTERRUPTS = """
import signal, sys
import numpy as np
import hinge
from hinge import zoo

# one that comes while something is being deleted Python only tells of
sys.unraisablehook = lambda told: None if told.exc_type is KeyboardInterrupt else print(told)

def work(salt):
    robot = zoo.arm(3)
    q = np.full((20_000, 3), 0.3)
    for k in range(3):
        robot.inverse_dynamics(q, q, q)
        robot.jacobian(q[0], "tool", reference="body")
    motion = hinge.simulate(robot, q[:64], q[:64], duration=0.05, dt=1e-3)
    own = hinge.compile(lambda x: np.sin(salt * x) + x, x=(3,))(q)
    return [robot.inverse_dynamics(q, q, q)[0], motion.q[-1][0], own[0] - np.sin(salt * q[0])]

expected = work({salt})
for i, wait in enumerate({waits}):
    signal.setitimer(signal.ITIMER_REAL, 0.001 + wait)
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        for k in range(1000):
            work({salt} + 1 + k + 1000 * i)
    except KeyboardInterrupt:
        pass
    signal.setitimer(signal.ITIMER_REAL, 0)
    got = work({salt})
    assert all(np.allclose(a, b, rtol=1e-12) for a, b in zip(got, expected)), (i, got, expected)
print("right")
"""


@line("calls", weight=1)
def leaks(rng: np.random.Generator) -> Outcome:
    """Thousands of calls of every kind, right and wrong: as many blocks of memory and references
    afterwards as before."""
    task = random_task(rng, most=1500)
    states = [x[0] for x in tame(task, rng, 1)]
    batch = tame(task, rng, 50)
    _calls(task, states, batch, 200)
    counts = []
    for _ in range(4):
        gc.collect()
        counts.append(sys.getallocatedblocks())
        _calls(task, states, batch, 500)
    grown = [b - a for a, b in pairwise(counts)]
    # a leak of one object each time would be hundreds
    assert min(grown) < 100, f"{task}: {grown} blocks more each time"
    held = [sys.getrefcount(x) for x in (*states, *batch)]
    assert len(set(held)) == 1, f"{task}: references {held}"
    return Outcome(2200 * 3)


def _calls(task: Task, states: Any, batch: Any, count: int) -> None:
    wrong = [np.zeros(99), *states[1:]]
    for _ in range(count):
        task.kernel(*states)
        with suppress(HingeError):
            task.method(*batch)
        with suppress(HingeError):
            task.method(*wrong)
