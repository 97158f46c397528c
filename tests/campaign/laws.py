"""Functions and classes that others give, and objects that others still need."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from tempfile import TemporaryDirectory
from unittest import mock

import numpy as np

import hinge
from hinge import ArgumentError, HingeError, zoo
from hinge.graph.program import trace
from hinge.graph.scalar import Graph
from hinge.motion.integrators import METHODS, Integrator

from .lines import Outcome, line

EPS = np.finfo(float).eps
# statements of laws, in place and not
STATEMENTS = {
    "q -= goal": "q = q - goal",
    "qd *= gain": "qd = qd * gain",
    "q[:] = q[::-1]": "q = q[::-1]",
    "q += 0.1 * np.sin(qd)": "q = q + 0.1 * np.sin(qd)",
    "qd[0] = qd[0] * q[1]": "qd = np.array([qd[0] * q[1], *qd[1:]])",
    "np.multiply(q, gain, out=q)": "q = q * gain",
}


@line("laws", "eps of the largest entry")
def laws_that_write(rng: np.random.Generator) -> Outcome:
    """Laws of random statements that write into their arguments against the same that do not, in
    kernels and in Python, on one cache: the same motions, whichever came first."""
    chosen = rng.permutation(list(STATEMENTS))[: rng.integers(1, 4)]
    known = {"np": np, "goal": rng.normal(size=3), "gain": rng.uniform(0.5, 1.5)}
    laws = []
    for words in (chosen, [STATEMENTS[x] for x in chosen]):
        body = "\n    ".join([*words, "return -q - qd"])
        exec(f"def law(t, q, qd):\n    {body}", scope := dict(known))
        laws.append(scope["law"])
    method = str(rng.choice(["rk4", "semi_implicit_euler", "variational"]))
    given = {"duration": 0.02, "method": method, "limits": False}
    start, found = rng.normal(size=(2, 3)), []
    with TemporaryDirectory() as folder, mock.patch.dict(os.environ, XDG_CACHE_HOME=folder):
        for i in rng.permutation(4):
            robot, law, compiled = zoo.arm(3), laws[i % 2], (None, False)[i // 2]
            found.append(hinge.simulate(robot, *start, tau=law, compiled=compiled, **given).q)
    off = max(np.abs(x - found[0]).max() for x in found) / np.abs(found[0]).max()
    assert off < 1e4 * EPS, f"{chosen}, {method}: {off / EPS:.0f} eps"
    return Outcome(4, off / EPS)


def _reduced(p: float) -> float:
    class Weighted(hinge.Reduction):
        def start(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
            return np.zeros(shape, dtype)

        def update(self, total: object, value: object) -> object:
            return total + p * value  # type: ignore[operator]

    kept = {"x": Weighted(lambda t: 1.0 + 0.0 * t)}
    return float(hinge.simulate(zoo.pendulum(1), [0.1], duration=0.01, keep=kept).kept.x) / 10


def _integrated(p: float) -> float:
    def advance(system, t, h, q, qd, memory, stage):
        return system.move(q, h, qd), qd + p * h, ()

    with mock.patch.dict(METHODS, own=Integrator(advance)):
        run = hinge.simulate(zoo.pendulum(1), [0.1], duration=0.01, method="own")
    return float(run.qd[-1, 0]) / 0.01


@line("classes", "eps")
def stale_classes(rng: np.random.Generator) -> Outcome:
    """Reductions and integrators of one name and another content, one after the other on one cache:
    each does what it says."""
    worst, numbers = 0.0, rng.uniform(0.1, 2.0, size=3)
    with TemporaryDirectory() as folder, mock.patch.dict(os.environ, XDG_CACHE_HOME=folder):
        for measure in (_reduced, _integrated):
            for p in numbers:
                worst = max(worst, abs(measure(p) - p) / p / EPS)
    assert worst < 1e3, f"{worst:.0f} eps"
    return Outcome(2 * len(numbers), worst)


def entries() -> Iterator[tuple[str, Callable[[], object], list[object]]]:
    """Calls that take and give references, some of which fail, and objects that they meet."""
    robot, q = zoo.arm(3), np.ones(3)
    many, out, frame = np.ones((5, 3)), np.empty(3), "tool"
    kernel = hinge.compile(lambda x: np.sin(x), x=(3,))
    fall = hinge.rollout(lambda z, v: (z + v, v), ("z", "v"), z=(3,), v=(3,))
    wrong, stray = np.ones(4), Graph().input()

    def mixed() -> object:
        return trace(lambda x: np.array([[x[0], 1.0], [stray, 1.0]]) @ x[:2], [(3,)])

    def long() -> object:
        return trace(lambda x: np.outer(x, x) @ np.outer(x, x + 1.0) @ x, [(3,)], most=20)

    met = [q, many, out, frame, wrong, robot, kernel, stray]
    yield "a sample", lambda: robot.inverse_dynamics(q, q, q), met
    yield "by name, with out", lambda: robot.inverse_dynamics(q, qd=q, qdd=q, out=out), met
    yield "a batch", lambda: robot.inverse_dynamics(many, many, many), met
    yield "a list", lambda: robot.inverse_dynamics([1.0, 1.0, 1.0], q, q), met
    yield "a frame", lambda: robot.jacobian(q, frame), met
    yield "no such frame", lambda: robot.jacobian(q, "nose"), met
    yield "a wrong shape", lambda: robot.inverse_dynamics(wrong, q, q), met
    yield "a wrong out", lambda: robot.inverse_dynamics(q, q, q, out=wrong), met
    yield "a wrong word", lambda: robot.inverse_dynamics(q, q, acceleration=q), met
    yield "what is no number", lambda: robot.mass_matrix(q * np.nan), met
    yield "a kernel", lambda: kernel(q), met
    yield "a kernel with a wrong shape", lambda: kernel(wrong), met
    yield "a rollout", lambda: fall(q, q, steps=2), met
    yield "a rollout of no length", lambda: fall(q, q, steps=-1), met
    yield "two traces", mixed, met
    yield "a trace that is too long", long, met


def references(call: Callable[[], object], met: list[object], times: int) -> list[int]:
    """How many references to what a call meets are there more after so many calls."""
    watched = [None, True, False, 0, 1, (), "", np.float64, np.dtype(float), *met]

    def counts() -> list[int]:
        gc.collect()
        return list(map(sys.getrefcount, watched))

    def again(n: int) -> None:
        for _ in range(n):
            with suppress(HingeError, ArgumentError, TypeError, IndexError):
                call()

    again(20)
    before = counts()
    again(times)
    return [b - a for a, b in zip(before, counts(), strict=True)]


@line("calls")
def reference_counts(rng: np.random.Generator) -> Outcome:
    """Calls by every entry, with errors in their midst: as many references to their arguments, to
    None and to what all share afterwards as before."""
    times = int(rng.integers(200, 400))
    for name, call, met in entries():
        change = references(call, met, times)
        assert max(map(abs, change)) < times // 2, f"{name}: {change}"
    return Outcome(times * len(list(entries())))
