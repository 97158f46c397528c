"""`python -m bench.streaming`: what blocks and reductions cost beside the same work without them.

All that is compared takes turns, on one thread; times are those of the CPU's clock.
"""

from __future__ import annotations

import tempfile
import time
import tracemalloc
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import hinge

__all__ = ["blocks", "main", "reductions"]

SAMPLES, BATCH, STEPS, ROUNDS = 1_000_000, 1024, 400, 25

Calls = Mapping[str, Callable[[], Any]]


def interleaved(calls: Calls, rounds: int) -> dict[str, float]:
    """The best time of each, in seconds."""
    best = dict.fromkeys(calls, np.inf)
    for call in calls.values():
        call()
    for _ in range(rounds):
        for name, call in calls.items():
            begin = time.process_time()
            call()
            best[name] = min(best[name], time.process_time() - begin)
    return best


def allocated(call: Callable[[], Any]) -> int:
    """The most bytes that a call had at a time."""
    tracemalloc.start()
    call()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


def blocks(folder: Path) -> None:
    """Inverse dynamics from files to a file, at once and in blocks."""
    robot = hinge.Robot(hinge.zoo.arm(7).mechanism, threads=1)
    rng = np.random.default_rng(0)

    def mapped(name: str, dtype: str) -> np.ndarray:
        made = np.memmap(folder / name, dtype, "w+", shape=(SAMPLES, 7))
        made[:] = rng.normal(size=made.shape)
        return made

    out, method = mapped("out", "f8"), robot.inverse_dynamics
    for dtype in ("f8", "f4", ">f8"):
        given = [mapped(f"{name}{dtype}", dtype) for name in ("q", "qd", "qdd")]
        calls: Calls = {
            "one call": lambda given=given: method(*given, out=out),
            "blocks": lambda given=given: hinge.in_blocks(method, *given, out=out),
        }
        times = interleaved(calls, 7)
        for name, call in calls.items():
            peak = allocated(call) / 1e6
            print(f"{dtype:>4} {name:10} {1e3 * times[name]:8.1f} ms {peak:8.1f} MB")
    one = np.zeros((1, 7))
    many = 20_000
    part = [np.zeros((many, 7))] * 3
    times = interleaved(
        {
            "call": lambda: [method(one, one, one) for _ in range(many)],
            "stream": lambda: [0 for _ in hinge.stream(method, ((one,) * 3 for _ in range(many)))],
            "in_blocks": lambda: hinge.in_blocks(method, *part, block=1),
        },
        5,
    )
    for name in ("stream", "in_blocks"):
        print(f"{name}: {1e6 * (times[name] - times['call']) / many:.1f} µs a block")


def reductions() -> None:
    """Rollouts that reduce beside those that only compute, and those that do neither."""
    robot = hinge.Robot(hinge.zoo.arm(7).mechanism, threads=1)
    q, qd = np.random.default_rng(0).normal(size=(2, BATCH, 7))

    def step(q: Any, qd: Any, dt: Any) -> Any:
        qd = qd + dt * robot.alg.forward_dynamics(q, qd, np.zeros(7))
        return robot.alg.integrate(q, dt * qd), qd

    def height(q: Any, qd: Any) -> Any:
        return robot.alg.frame_pose(q, "tool")[2, 3]

    def square(q: Any, qd: Any) -> Any:
        return qd @ qd

    plain = robot.rollout(step)
    calls: dict[str, Callable[[], Any]] = {
        "nothing besides": lambda: plain(q, qd, 1e-4, steps=STEPS, every=None)
    }
    bins = np.linspace(0, 2, 21)
    cases = ((square, [hinge.Sum, hinge.Max]), (height, [hinge.Mean, _histogram(bins)]))
    for fn, kinds in cases:
        run = robot.rollout(_with_value(step, fn))
        calls[f"{fn.__name__}"] = lambda run=run: run(q, qd, 1e-4, steps=STEPS, every=None)
        for kind in kinds:
            run = robot.rollout(step, keep={"kept": kind(fn)})
            name = f"{fn.__name__}, {kind.__name__}"
            calls[name] = lambda run=run: run(q, qd, 1e-4, steps=STEPS)
    report(calls)
    given: dict[str, Any] = {"duration": STEPS * 1e-4, "dt": 1e-4, "limits": False}
    keep = {"kept": hinge.Sum(square)}, {"kept": hinge.Mean(height)}
    report(
        {
            "simulate, RK4": lambda: hinge.simulate(robot, q, qd, every=STEPS, **given),
            "square, Sum": lambda: hinge.simulate(robot, q, qd, keep=keep[0], **given),
            "height, Mean": lambda: hinge.simulate(robot, q, qd, keep=keep[1], **given),
        }
    )


def _with_value(step: Callable[..., Any], fn: Callable[..., Any]) -> Callable[..., Any]:
    def both(q: Any, qd: Any, dt: Any) -> Any:
        q, qd = step(q, qd, dt)
        return q, qd, fn(q, qd)

    return both


def _histogram(edges: np.ndarray) -> Any:
    def histogram(fn: Any) -> hinge.Histogram:
        return hinge.Histogram(fn, edges)

    return histogram


def report(calls: Calls) -> None:
    """Time of a step and sample, by the CPU's clock, and beside that of the first."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()
    for _ in range(ROUNDS):
        for name, call in calls.items():
            begin = time.process_time()
            call()
            times[name].append(time.process_time() - begin)
    first = np.array(next(iter(times.values())))
    for name, seconds in times.items():
        ratio, each = np.median(np.array(seconds) / first), min(seconds) / STEPS / BATCH
        print(f"{name:20} {1e9 * each:8.1f} ns a step and sample {ratio:8.3f}")


def main() -> None:
    """Measure and print."""
    reductions()
    with tempfile.TemporaryDirectory() as folder:
        blocks(Path(folder))


if __name__ == "__main__":
    main()
