"""What a run found, and how it compares with what was aimed at."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from .calls import LEAST, MOST_FRESH, aims
from .compiling import Compiled
from .contact import AIMS, DERIVATIVE_AIMS, MOST_MASKED, Aims
from .fresh import FirstCall
from .long import Long
from .measure import Row
from .operators import AIM as OPERATORS
from .peers import cores
from .reach import Reached
from .robots import HELD, HELD_DERIVATIVES

__all__ = ["Results", "Target", "environment", "targets"]

_VERSIONS = ("numpy", "llvmlite", "pin", "mujoco", "casadi", "jax", "frax", "pytracik", "pin-pink")


@dataclass
class Results:
    """Everything that was measured.

    scaling: (robot, quantity, batch) → two threads over one; foreign: (robot, quantity) → seconds
    that casadi and gcc took.
    """

    environment: dict[str, str]
    idle: float
    rows: list[Row] = field(default_factory=list)
    first_calls: list[FirstCall] = field(default_factory=list)
    compiled: list[Compiled] = field(default_factory=list)
    long: list[Long] = field(default_factory=list)
    imports: dict[str, float] = field(default_factory=dict)
    scaling: dict[tuple[str, str, int], float] = field(default_factory=dict)
    foreign: dict[tuple[str, str], float] = field(default_factory=dict)
    notes: set[str] = field(default_factory=set)
    reached: list[Reached] = field(default_factory=list)

    def of_kind(self, kind: str) -> list[Row]:
        """The comparisons of one kind: "one thread", "all threads" or "single"."""
        return [row for row in self.rows if row.kind == kind]

    def row(self, kind: str, case: str, quantity: str) -> Row | None:
        """One comparison, if it was made."""
        rows = self.of_kind(kind)
        return next((r for r in rows if (r.case.name, r.quantity) == (case, quantity)), None)

    def first_call(self, case: str, quantity: str) -> FirstCall | None:
        """The first call of a quantity, if it was measured."""
        calls = self.first_calls
        return next((c for c in calls if (c.case, c.quantity) == (case, quantity)), None)


@dataclass(frozen=True)
class Target:
    """An aim: at least (or at most) so much; value: what was measured, None if it was not."""

    what: str
    bound: float
    at_least: bool
    unit: str
    value: float | None

    @property
    def met(self) -> bool | None:
        """Whether it is reached; None if nothing was measured."""
        if self.value is None:
            return None
        return self.value >= self.bound if self.at_least else self.value <= self.bound


_RATIOS = (
    ("inverse dynamics against rneaInParallel", "one thread", "inverse_dynamics", 35.0, 25.0),
    ("forward dynamics against abaInParallel", "one thread", "forward_dynamics", 35.0, 26.0),
    ("mass matrix against a loop of pin.crba", "one thread", "mass_matrix", 40.0, 15.0),
    ("total rates against NumPy's Cholesky of pin.crba", "total rates", "total_rates", 50.0, 50.0),
    ("∂τ against computeRNEADerivatives", "derivatives", "inverse_dynamics_derivatives", 35.0, 9.0),
    ("∂q̈ against computeABADerivatives", "derivatives", "forward_dynamics_derivatives", 35.0, 9.0),
    ("∂τ, the same, B = 4096", "many derivatives", "inverse_dynamics_derivatives", 35.0, 9.0),
    ("∂q̈, the same, B = 4096", "many derivatives", "forward_dynamics_derivatives", 35.0, 9.0),
    ("one call of ∂τ", "one derivative", "inverse_dynamics_derivatives", 4.0, 1.2),
    ("one call of ∂q̈", "one derivative", "forward_dynamics_derivatives", 4.0, 1.2),
    ("Y against computeJointTorqueRegressor", "regressor", "torque_regressor", 30.0, 30.0),
    ("one call of inverse dynamics against pin.rnea", "single", "inverse_dynamics", 5.0, 4.5),
)


def targets(results: Results) -> list[Target]:
    """Every aim with what this run has to say about it."""
    return [
        *_speed(results),
        *_calls(results),
        *_starts(results),
        *_threads(results),
        *_long_chain(results),
        *_hybrid(results),
        *_held(results),
        *_reach(results),
    ]


def _speed(results: Results) -> Iterator[Target]:
    for what, kind, quantity, panda, talos in _RATIOS:
        for case, label, bound in (("panda", "Panda", panda), ("talos", "Talos", talos)):
            row = results.row(kind, case, quantity)
            ratio = row.ratio.get("pin") if row else None
            yield Target(f"{label}: {what}", bound, True, "×", ratio)


def _calls(results: Results) -> Iterator[Target]:
    for name, most in aims().items():
        row = results.row("spelling", "arm", name)
        yield Target(f"arm of 7: one call, {name}", most, False, "s", row and row.best["hinge"])
    for row in results.of_kind("operators"):
        what = f"arm of 7: operators(q).{row.quantity}"
        yield Target(what, OPERATORS, False, "s", row.best["hinge"])
    for row in results.of_kind("frames"):
        what = f"{row.case.label}: one call of {row.quantity}, Pinocchio's time over ours"
        yield Target(what, LEAST, True, "×", row.ratio["pin"])
    for row in results.of_kind("spatial"):
        what = f"one call of spatial.{row.quantity}, Pinocchio's time over ours"
        yield Target(what, 1.0, True, "×", row.ratio["pin"])
    for row in results.of_kind("fresh"):
        what = f"{row.case.label}: {row.quantity.replace('_', ' ')}, B = {row.batch}, without out="
        yield Target(f"{what} over with it", MOST_FRESH, False, "×", row.ratio["without out"])


def _starts(results: Results) -> Iterator[Target]:
    for case, label, cold, cached in (
        ("panda", "Panda", 0.3, 0.030),
        ("talos", "Talos", 1.0, 0.05),
    ):
        call = results.first_call(case, "inverse_dynamics")
        what = f"{label}: first inverse dynamics of a process,"
        yield Target(f"{what} nothing cached", cold, False, "s", call and call.cold)
        yield Target(f"{what} cached", cached, False, "s", call and call.cached)
    for case, label in (("panda", "Panda"), ("talos", "Talos")):
        call = results.first_call(case, "torque_regressor")
        what = f"{label}: first torque regressor of a process, nothing cached"
        yield Target(what, 2.0, False, "s", call and call.cold)
    yield Target("import hinge", 0.2, False, "s", results.imports.get("hinge"))
    panda = results.first_call("panda", "inverse_dynamics")
    for kind in ("multiplications", "additions"):
        count = panda and panda.operations[kind]
        yield Target(f"Panda: inverse dynamics, {kind}", 320, False, "", count)


def _threads(results: Results) -> Iterator[Target]:
    for (case, quantity, batch), value in results.scaling.items():
        what = f"{case}: two threads over one, {quantity.replace('_', ' ')}, B = {batch}"
        yield Target(what, 1.7, True, "×", value)


# kind, links, quantity, against whom, how many times faster at least
_LONG = (
    ("one thread", 256, "mass_matrix", "pin", 3.0),
    ("single", 128, "mass_matrix", "mujoco", 1.0),
    ("many derivatives", 256, "forward_dynamics_derivatives", "pin", 5.0),
)


def _long_chain(results: Results) -> Iterator[Target]:
    for kind, links, quantity, peer, least in _LONG:
        row = results.row(kind, f"chain{links}", quantity)
        what = f"chain of {links}: {quantity.replace('_', ' ')}, {kind}, {peer}'s time over ours"
        yield Target(what, least, True, "×", row and row.ratio.get(peer))
    for quantity, bound in (("inverse_dynamics", 15e-6), ("forward_dynamics", 50e-6)):
        row = results.row("one thread", "chain1024", quantity)
        call = results.first_call("chain1024", quantity)
        what = f"chain of 1024: {quantity.replace('_', ' ')}"
        yield Target(f"{what}, per state", bound, False, "s", row and row.best["hinge"])
        yield Target(f"{what}, first call, nothing cached", 1.0, False, "s", call and call.cold)


def _hybrid(results: Results) -> Iterator[Target]:
    row = results.row("hybrid", "space_arm7", "hybrid_dynamics")
    what = "free-flying arm: hybrid dynamics against crba and NumPy's Schur complement"
    yield Target(what, 20.0, True, "×", row and row.ratio.get("pin"))


_LABELS = {"talos": "Talos on two flat feet", "solo12": "Solo12 on four points"}


def _held(results: Results) -> Iterator[Target]:
    for case, aim in AIMS.items():
        for quantity in HELD:
            what = f"{_LABELS[case]}: {quantity.replace('_', ' ')}"
            yield from _on_feet(results, case, quantity, aim, ("held", "one held"))
            masks = results.row("masks", case, quantity)
            over = masks and masks.ratio["with masks"]
            yield Target(f"{what}, masks over none", MOST_MASKED, False, "×", over)
        for quantity in HELD_DERIVATIVES:
            kinds = "held derivatives", "one held derivative"
            yield from _on_feet(results, case, quantity, DERIVATIVE_AIMS[case], kinds)


def _on_feet(
    results: Results, case: str, quantity: str, aim: Aims, kinds: tuple[str, str]
) -> Iterator[Target]:
    what = f"{_LABELS[case]}: {quantity.replace('_', ' ')}"
    batch, one = (results.row(kind, case, quantity) for kind in kinds)
    first = results.first_call(case, quantity)
    yield Target(f"{what}, batch", aim.batch, False, "s", batch and batch.best["hinge"])
    ratio = batch.ratio.get("pin") if batch else None
    yield Target(f"{what}, batch against Pinocchio's", aim.ratio, True, "×", ratio)
    yield Target(f"{what}, one call", aim.call, False, "s", one and one.best["hinge"])
    yield Target(f"{what}, first call", aim.first, False, "s", first and first.cold)


# start, who → of the Panda and the UR5 the least part found, and the most seconds for a target
_REACH = {
    ("none", "hinge"): (0.995, 60e-6),
    ("none", "hinge, one by one"): (0.995, 1e-3),
    ("nearby", "hinge"): (0.995, 10e-6),
}


def _reach(results: Results) -> Iterator[Target]:
    for r in results.reached:
        what = f"{r.case.label}: inverse kinematics, start {r.start}, {r.who}"
        if r.case.name == "talos" and (r.start, r.who) == ("none", "hinge"):
            yield Target(f"{what}, found", 98.0, True, "%", 100 * r.found)
        elif r.case.name != "talos" and (r.start, r.who) in _REACH:
            least, most = _REACH[r.start, r.who]
            yield Target(f"{what}, found", 100 * least, True, "%", 100 * r.found)
            yield Target(f"{what}, a target", most, False, "s", r.seconds)


def environment() -> tuple[dict[str, str], float]:
    """The machine without its name, versions, and how many cores are idle."""
    idle = _idle_cores()
    name, width = _processor()
    facts = {"CPU": f"{name}, {cores()} cores, SIMD {width} bits"}
    facts["idle before the run"] = f"{idle:.1f} of {os.cpu_count()} cores"
    facts["Python"] = f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    for package in _VERSIONS:
        try:
            facts[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            facts[package] = "not installed"
    return facts, idle


def _processor() -> tuple[str, int]:
    """The model of the CPU, and the bits of its vectors."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor() or platform.machine(), 128
    facts = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    facts = {key.strip(): value.strip() for key, value in facts.items()}
    flags = facts.get("flags", "").split()
    width = 512 if "avx512f" in flags else 256 if "avx2" in flags else 128
    numbers = ", ".join(f"{k} {facts[k]}" for k in ("cpu family", "model") if k in facts)
    return f"{facts.get('model name', platform.machine())} ({numbers})", width


def _idle_cores(seconds: float = 1.0) -> float:
    """How many cores had nothing to do for a moment."""
    try:
        first = _jiffies()
        time.sleep(seconds)
        second = _jiffies()
    except (OSError, ValueError):
        return float("nan")
    total = sum(second) - sum(first)
    return (second[3] - first[3]) / max(total, 1) * (os.cpu_count() or 1)


def _jiffies() -> list[int]:
    with open("/proc/stat") as lines:
        return [int(x) for x in lines.readline().split()[1:9]]
