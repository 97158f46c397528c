"""`python -m bench.gpu`: robots on a card, measured, and the tables of docs/gpu.md.

Arrays are PyTorch's and stay on the card; times are those of the card's own clock.  Robots whose
files are not installed are left out, and so is frax, with JAX, where it is not.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import hinge
from hinge.motion.steps import motion_kernel
from hinge.runtime.driver import driver

from .others import Frax, installed
from .robots import make, random_states

PAGE = Path(__file__).parent.parent / "docs" / "gpu.md"
BEGIN, END = "<!-- bench.gpu -->", "<!-- end -->"
DTYPES = ("float32", "float64")
STEPS, DT = 1000, 1e-3
# different states, repeated to fill a batch
_STATES = 1 << 14


class Case(NamedTuple):
    """What is measured; samples: in a batch; aim: G/s in float32 and float64."""

    robot: str
    method: str
    takes: tuple[str, ...]
    samples: int
    aim: tuple[float, float] | None = None


_MOTION, _FORCES = ("q", "qd", "qdd"), ("q", "qd", "tau")
CASES = (
    Case("panda", "inverse_dynamics", _MOTION, 1 << 22, (34, 17)),
    Case("panda", "forward_dynamics", _FORCES, 1 << 22, (24, 10)),
    Case("panda", "mass_matrix", ("q",), 1 << 22),
    Case("panda", "inverse_dynamics_derivatives", _MOTION, 1 << 20, (6, 2)),
    Case("panda", "forward_dynamics_derivatives", _FORCES, 1 << 20, (3.5, 1)),
    Case("talos", "inverse_dynamics", _MOTION, 1 << 22, (5.5, 1.8)),
    Case("talos", "forward_dynamics", _FORCES, 1 << 22, (3, 0.8)),
    Case("talos", "mass_matrix", ("q",), 1 << 20),
    Case("talos", "forward_dynamics_derivatives", _FORCES, 1 << 17, (0.1, 0.03)),
    Case("chain1000", "inverse_dynamics", _MOTION, 1 << 15),
    Case("chain1000", "forward_dynamics", _FORCES, 1 << 15),
)


class Found(NamedTuple):
    """A measurement: results a second, share of the copy bandwidth, what a thread has."""

    rate: float
    share: float
    registers: int
    local_bytes: int


class Bench:
    """The card, and how it is timed."""

    def __init__(self, seconds: float) -> None:
        import torch

        self.torch, self.seconds = torch, seconds
        self.bandwidth = self._bandwidth()

    def timed(self, run: Callable[[], Any]) -> float:
        """Seconds of a run, the least of three times as many as fit."""
        cuda = self.torch.cuda
        run()
        once = self._together(run, 1)
        count = max(1, min(200, int(self.seconds / 3 / max(once, 1e-6))))
        cuda.synchronize()
        return min(self._together(run, count) for _ in range(3))

    def _together(self, run: Callable[[], Any], count: int) -> float:
        start, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(count):
            run()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) / 1e3 / count

    def _bandwidth(self) -> float:
        """Bytes read and written a second, by a copy of 1 GiB."""
        a = self.torch.zeros(1 << 28, dtype=self.torch.float32, device="cuda")
        b = self.torch.empty_like(a)
        return 2 * a.nbytes / self.timed(lambda: b.copy_(a))

    def arrays(self, mechanism: hinge.Mechanism, takes: Sequence[str], n: int, dtype: str) -> list:
        """Arguments of n samples on the card."""
        states = random_states(mechanism, min(n, _STATES))
        found = []
        for name in takes:
            x = self.torch.as_tensor(getattr(states, name).astype(dtype), device="cuda")
            found.append(x.repeat(n // len(x), 1))
        return found

    def case(self, case: Case, dtype: str) -> Found:
        """One cell of the table."""
        mechanism = make(case.robot).mechanism
        robot = hinge.Robot(mechanism, dtype, device="cuda")
        arrays = self.arrays(mechanism, case.takes, case.samples, dtype)
        call = getattr(robot, case.method)
        out = call(*arrays)
        seconds = self.timed(lambda: call(*arrays, out=out))
        results = out if isinstance(out, tuple) else (out,)
        size = sum(x.nbytes for x in (*arrays, *results))
        function = robot.kernel(case.method, *case.takes).caller.launcher().function
        share = size / seconds / self.bandwidth
        return Found(case.samples / seconds, share, function.registers, function.local_bytes)

    def rollout(self, dtype: str, samples: int) -> float:
        """Steps a second of the Panda by RK4, all of them in the kernel of `hinge.simulate`."""
        mechanism = make("panda").mechanism
        robot = hinge.Robot(mechanism, dtype, device="cuda")
        kernel = motion_kernel(robot, "rk4", ["tau"], None, ())
        q, qd, tau = self.arrays(mechanism, _FORCES, samples, dtype)
        given = {"q": q, "qd": qd, "tau": 0 * tau, "dt": np.array(DT), "t": DT * np.arange(STEPS)}
        given |= {n: 0 * qd for n in kernel.shapes if n.startswith("memory")}
        arrays = [given[n] for n in kernel.shapes]
        t = self.torch.as_tensor(given["t"].astype(dtype), device="cuda")
        arrays[list(kernel.shapes).index("t")] = t
        seconds = self.timed(lambda: kernel(*arrays, steps=STEPS, every=STEPS))
        return samples * STEPS / seconds

    def call(self, robot: str, with_out: bool, samples: int = 4096) -> float:
        """Seconds until a call of inverse dynamics comes back."""
        mechanism = make(robot).mechanism
        there = hinge.Robot(mechanism, "float32", device="cuda")
        arrays = self.arrays(mechanism, _MOTION, samples, "float32")
        out = {"out": there.inverse_dynamics(*arrays)} if with_out else {}
        there.inverse_dynamics(*arrays, **out)
        best = float("inf")
        for _ in range(50):
            self.torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(100):
                there.inverse_dynamics(*arrays, **out)
            best = min(best, (time.perf_counter() - start) / 100)
        return best

    def frax(self, case: Case) -> float | None:
        """Results a second of frax, in float32; None where it does not know the robot."""
        import jax

        try:
            peer = Frax(make(case.robot))
            function = jax.jit(jax.vmap(peer._function(case.method)))
        except (KeyError, RuntimeError):
            return None
        mechanism, n = make(case.robot).mechanism, min(case.samples, 1 << 20)
        states = random_states(mechanism, min(n, _STATES))
        arrays = [
            jax.numpy.tile(
                jax.numpy.asarray(getattr(states, x), dtype="float32"), (n // _STATES, 1)
            )
            for x in case.takes
        ]
        function(*arrays).block_until_ready()
        best = float("inf")
        for _ in range(5):
            start = time.perf_counter()
            function(*arrays).block_until_ready()
            best = min(best, time.perf_counter() - start)
        return n / best


def there(names: Sequence[str]) -> list[str]:
    """The robots that can be made here."""
    found = []
    for name in names:
        try:
            make(name)
        except (StopIteration, importlib.metadata.PackageNotFoundError):
            print(f"{name} is left out: example-robot-data is not installed", flush=True)
        else:
            found.append(name)
    return found


def rows(bench: Bench, cases: Sequence[Case], with_frax: bool) -> Iterator[str]:
    """The table of rates, a line each."""
    columns = ["", "float32 G/s", "float64 G/s", "of the bandwidth", "registers, local bytes"]
    columns += ["frax G/s"] if with_frax else []
    yield f"| {' | '.join(columns)} |"
    yield f"|---{'|---:' * (len(columns) - 1)}|"
    for case in cases:
        found = []
        for dtype, aim in zip(DTYPES, case.aim or (None, None), strict=True):
            f = bench.case(case, dtype)
            found.append(f)
            print(case.robot, case.method, dtype, f, f"aim {aim}", flush=True)
            bench.torch.cuda.empty_cache()
        rates = [_rate(f.rate, aim) for f, aim in zip(found, case.aim or (None,) * 2, strict=True)]
        cells = [f"{case.robot} {case.method.replace('_', ' ')}", *rates]
        cells.append(" / ".join(f"{f.share:.0%}" for f in found))
        cells.append(" / ".join(f"{f.registers}, {f.local_bytes}" for f in found))
        if with_frax:
            frax = bench.frax(case)
            cells.append("–" if frax is None else f"{frax / 1e9:.4f}")
        yield f"| {' | '.join(cells)} |"


def _rate(rate: float, aim: float | None) -> str:
    told = f"{rate / 1e9:.3g}"
    return told if aim is None else f"{told} (aim {aim:g})"


def page(bench: Bench, cases: Sequence[Case], rolled: int, with_frax: bool) -> str:
    """What goes on the page."""
    card, torch = driver().card(0), bench.torch
    lines = [
        f"{card.name}, driver for CUDA {driver().version // 1000}."
        f"{driver().version % 1000 // 10}, PyTorch {torch.__version__}, hinge "
        f"{hinge.__version__}; a copy of 1 GiB reads and writes "
        f"{bench.bandwidth / 1e12:.2f} TB/s in the same run.",
        "",
        *rows(bench, cases, with_frax),
        "",
    ]
    if any(case.robot == "panda" for case in cases):
        steps = [bench.rollout(dtype, rolled) for dtype in DTYPES]
        both = " / ".join(f"{s / 1e9:.3g}" for s in steps)
        lines.append(
            f"RK4 rollouts of the Panda, {STEPS} steps, {rolled} samples: {both} G steps/s."
        )
    robot = cases[0].robot
    call, into = (1e6 * bench.call(robot, with_out) for with_out in (False, True))
    lines.append(
        f"A call of inverse dynamics with 4096 samples comes back after {call:.1f} µs, with "
        f"`out=` after {into:.1f} µs."
    )
    return "\n".join(lines)


def main() -> None:
    """Measure, print, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m bench.gpu", description=__doc__)
    parser.add_argument("--robots", nargs="+", default=["panda", "talos", "chain1000"])
    parser.add_argument("--methods", nargs="+", help="of these methods alone")
    parser.add_argument("--without", nargs="+", default=[], help="of these methods none of Talos")
    parser.add_argument("--quick", action="store_true", help="a tenth of the samples, no frax")
    parser.add_argument("--page", type=Path, default=PAGE, help="the page to be written")
    options = parser.parse_args()
    robots = there(options.robots)
    cases = [c for c in CASES if c.robot in robots]
    if options.methods:
        cases = [c for c in cases if c.method in options.methods]
    cases = [c for c in cases if c.robot != "talos" or c.method not in options.without]
    if options.quick:
        cases = [c._replace(samples=c.samples // 8) for c in cases]
    bench = Bench(0.1 if options.quick else 0.3)
    print(f"copy {bench.bandwidth / 1e12:.2f} TB/s", flush=True)
    with_frax = not options.quick and all(map(installed, Frax.needs))
    found = page(bench, cases, 1 << (16 if options.quick else 18), with_frax)
    print(found)
    if not options.quick:
        text = options.page.read_text() if options.page.exists() else f"{BEGIN}\n{END}\n"
        before, _, rest = text.partition(BEGIN)
        options.page.write_text(f"{before}{BEGIN}\n{found}\n{END}{rest.partition(END)[2]}")


if __name__ == "__main__":
    main()
