"""Nothing is read or written outside of arrays, and no number is too large to count samples."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

import hinge
from fences import fenced
from hinge import Kernel, zoo
from hinge.graph.interpret import interpret
from hinge.runtime import cpu
from hinge.runtime.cpu import Cpu
from hinge.runtime.target import host
from mechanisms import assert_same_bits
from sanitized import can_sanitize, run_sanitized

from .lines import Outcome, line
from .pool import Task, random_task, robot, tame


@line("calls", weight=2)
def guard_pages(rng: np.random.Generator) -> Outcome:
    """Arguments and results between pages that must not be touched: every algorithm, as a method
    and as a kernel, one sample, batches of 1 to two tiles and one more, alone and with a helper,
    contiguous and with gaps; the same bits as elsewhere."""
    task = random_task(rng)
    lanes = host().lanes("double" if task.robot.dtype == np.float64 else "float")
    return Outcome(sum(fenced_calls(task, n, rng) for n in rng.integers(1, 2 * lanes + 2, size=3)))


def fenced_calls(task: Task, n: int, rng: np.random.Generator) -> int:
    """A batch of n and one sample, in every way; how many calls that were."""
    states, calls = tame(task, rng, n), 0
    for at_end in (False, True):
        for arrays in (states, [x[0] for x in states]):
            for way in ways(task):
                _fenced_call(task, way, arrays, at_end)
                calls += 1
        gaps = [fenced_rows(x, at_end) for x in states]
        assert_all_same(task, task.kernel(*gaps), task.kernel(*states))
    return calls + 2


def ways(task: Task) -> list[Callable[..., Any]]:
    """As a kernel, with two threads, as a method, which becomes a door with its third call."""
    return [task.kernel, task.kernel.call, two_threads(task), *[task.method] * 3]


def _fenced_call(task: Task, way: Any, arrays: list[np.ndarray], at_end: bool) -> None:
    expected = as_list(way(*arrays))
    given = [fenced(x, at_end) for x in arrays]
    out = [fenced(np.zeros_like(x), at_end) for x in expected]
    way(*given, out=out if len(out) > 1 else out[0])
    assert_all_same(task, tuple(out), tuple(expected))


def fenced_rows(x: np.ndarray, at_end: bool) -> np.ndarray:
    """Samples with gaps between them, the first or the last of them at a fence."""
    wide = np.zeros((2 * len(x) - 1, *x.shape[1:]), x.dtype)
    wide[::2] = x
    return fenced(wide, at_end)[::2]


def as_list(results: Any) -> list[np.ndarray]:
    return list(results) if isinstance(results, tuple) else [results]


def assert_all_same(task: Task, got: Any, expected: Any) -> None:
    for a, b in zip(as_list(got), as_list(expected), strict=True):
        assert_same_bits(a, b, str(task))


@contextmanager
def cheap_helpers():
    """Small batches are shared out as well."""
    with mock.patch.object(cpu, "_WORK_PER_HELPER", 1000):
        yield


@lru_cache(maxsize=256)
def _two_threads(kernel: Kernel) -> Kernel:
    with cheap_helpers():
        other = Kernel(kernel.program, dtype=kernel.dtype, backend=Cpu(threads=2), strict=True)
        other.call  # noqa: B018
    return other


def two_threads(task: Task) -> Kernel:
    """The kernel with a helper for every few samples."""
    return _two_threads(task.kernel)


@line("steps", weight=0.5)
def guard_pages_of_rollouts(rng: np.random.Generator) -> Outcome:
    """Time loops with states, inputs and records between pages that must not be touched."""
    one = robot(
        str(rng.choice(["arm", "free", "gripper"])), str(rng.choice(["float64", "float32"]))
    )
    roll = _rollout(one)
    lanes = host().lanes("double" if one.dtype == np.float64 else "float")
    n, steps = int(rng.integers(1, 2 * lanes + 2)), int(rng.integers(1, 6))
    every, at_end = int(rng.integers(1, steps + 1)), bool(rng.random() < 0.5)
    q = np.array([one.random_configuration(rng) for _ in range(n)], one.dtype)
    qd = rng.normal(size=(n, one.nv)).astype(one.dtype)
    tau = rng.normal(size=(steps, n, one.nv)).astype(one.dtype)
    expected = roll(q, qd, tau, every=every)
    given = [fenced(x, at_end) for x in (q, qd, tau)]
    out = [fenced(np.zeros_like(x), at_end) for x in expected]
    roll.fill(out, given, (n,), steps, every)
    for a, b in zip(out, expected, strict=True):
        assert_same_bits(a, b, f"{n} samples, {steps} steps, every {every}")
    return Outcome(n * steps)


@lru_cache(maxsize=8)
def _rollout(one: hinge.Robot) -> Any:
    def step(q, qd, tau):
        qd = qd + 1e-3 * one.alg.forward_dynamics(q, qd, tau)
        return one.alg.integrate(q, 1e-3 * qd), qd

    return one.rollout(step, inputs=("tau",))


@line("samples", "eps", weight=1)
def sanitizers(rng: np.random.Generator) -> Outcome:
    """Emitted C compiled with the address and undefined-behaviour sanitizers and run, every array
    in memory of its own: no complaint, and the numbers of the definition."""
    if not can_sanitize():
        return Outcome(0)
    # how far a matrix is from singular is no number to compare, where it is
    task = random_task(rng, most=1500, but="operational_space_inertia_margin")
    program, scalar = task.kernel.program, "float" if task.robot.dtype == np.float32 else "double"
    states = tame(task, rng, 3)
    samples = [[x[k] for x in states] for k in range(3)]
    with TemporaryDirectory() as folder:
        got = run_sanitized(program, scalar, samples, Path(folder), names=task.arrays)
    expected, worst = interpret(program, states), 0.0
    for k in range(3):
        for a, x in zip(got[k], expected, strict=True):
            scale = 1 + np.abs(x[k]).max(initial=0.0)
            off = np.abs(a - x[k]).max(initial=0.0) / (np.finfo(a.dtype).eps * scale)
            worst = max(worst, float(off))
    assert worst <= 1e4, f"{task}: {worst:.3g} eps"
    return Outcome(3, worst)


@line("samples", weight=0.5, limit=600, rounds=1)
def huge_batches(rng: np.random.Generator) -> Outcome:
    """A batch of more than 2³¹ bytes, written over its own argument, and one of more than 2³¹
    numbers, in rows that overlap: right at both ends and at a thousand places between."""
    if not _has_memory(5 << 30):
        return Outcome(0)
    table = rng.normal(size=1009).astype(np.float32)
    n = (1 << 29) + 3
    pendulum = hinge.Robot(zoo.pendulum(1).mechanism, dtype=np.float32)
    weight = np.resize(table, n)[:, None]
    pendulum.gravity_forces(weight, out=weight)
    places = _places(rng, n)
    expected = pendulum.gravity_forces(table[places % len(table)][:, None])
    assert_same_bits(weight[places], expected, "weight")
    del weight
    arm = hinge.Robot(zoo.arm(7).mechanism, dtype=np.float32)
    m = (1 << 31) // 7 + 3
    rates = sliding_window_view(np.resize(table, m + 6), 7)
    energy = arm.kinetic_energy(arm.neutral().astype(np.float32), rates)
    places = _places(rng, m)
    expected = arm.kinetic_energy(arm.neutral().astype(np.float32), rates[places])
    assert_same_bits(energy[places], expected, "kinetic energy")
    return Outcome(n + m)


def _places(rng: np.random.Generator, n: int) -> np.ndarray:
    ends = np.arange(40)
    return np.concatenate([ends, rng.integers(n, size=1000), n - 1 - ends])


def _has_memory(size: int) -> bool:
    """Whether the system has so much to give."""
    try:
        text = Path("/proc/meminfo").read_text()
    except OSError:
        return False
    return int(text.split("MemAvailable:")[1].split()[0]) * 1024 > size and os.name == "posix"
