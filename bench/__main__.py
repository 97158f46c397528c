"""`python -m bench`: measure, print, and write docs/benchmarks.md and docs/benchmarks.svg."""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from .calls import ROBOTS as CALLED
from .calls import calls
from .compiling import ROBOTS as COMPILED
from .compiling import compiled
from .contact import held, held_derivatives
from .fresh import first_call, import_times
from .ground import grounds
from .hybrid import LINKS, hybrids
from .linearized import ROBOTS as LINEARIZED
from .linearized import linearized
from .long import LINKS as LONG
from .long import longs
from .measure import (
    BATCH,
    Settings,
    WrongResultError,
    batches,
    peers_of,
    quantities,
    scaling,
    singles,
)
from .others import Casadi
from .peers import cores
from .reach import FRAMES, reach
from .regressors import ROBOTS as REGRESSED
from .regressors import regressors
from .report import show, write, write_section
from .results import Results, environment
from .robots import CASES, FEET, HELD, HELD_DERIVATIVES, Case, make
from .rollouts import ROBOTS, rollouts
from .total_rates import ROBOTS as RATED
from .total_rates import total_rates

SECTIONS = (
    "batch",
    "threads",
    "single",
    "calls",
    "rollout",
    "rates",
    "hybrid",
    "linearized",
    "contact",
    "reach",
    "identify",
    "compile",
    "long",
    "import",
)
_QUICK_ROBOTS = ("panda", "talos", "chain8", "chain32")


@dataclass(frozen=True)
class Plan:
    """What to measure, and how thoroughly."""

    robots: Sequence[str]
    sections: Sequence[str]
    quick: bool

    @property
    def complete(self) -> bool:
        """Whether the run is worth a page."""
        whole = set(self.robots) == set(CASES) and set(self.sections) == set(SECTIONS)
        return whole and not self.quick

    @property
    def pages(self) -> list[str]:
        """Sections that are whole and have a page of their own."""
        whole = not self.quick and set(self.robots) == set(CASES)
        return [s for s in ("compile", "long") if whole and s in self.sections]

    @property
    def settings(self) -> Settings:
        """How long each comparison takes."""
        return Settings(seconds=0.2, turn=0.002) if self.quick else Settings()

    def peers(self, case: Case) -> Sequence[str]:
        """Who takes part; waiting for gcc is not quick."""
        return ("pin",) if self.quick and case.name != "panda" else ("pin", "mujoco", *_SLOW)


_SLOW = ("casadi", "frax")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; 1 if a contestant computed something else."""
    options = _parser().parse_args(arguments)
    robots = options.robots or (_QUICK_ROBOTS if options.quick else CASES)
    plan = Plan(robots, options.only or SECTIONS, options.quick)
    console = Console(width=None if sys.stdout.isatty() else 160)
    results = Results(*environment())
    try:
        with console.status("measuring") as status:
            for doing in _run(plan, results):
                status.update(doing)
                if options.verbose:
                    console.print(doing, style="dim")
    except WrongResultError as error:
        console.print(f"[red]wrong result[/]: {error}")
        return 1
    show(results, console)
    folder = options.out or (Path("docs") if plan.complete else None)
    if folder:
        for path in write(results, folder):
            console.print(f"wrote {path}")
    for section in plan.pages:
        console.print(f"wrote {write_section(results, options.out or Path('docs'), section)}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="less of everything, in a minute")
    parser.add_argument("--only", nargs="+", choices=SECTIONS, help="sections to run")
    parser.add_argument("--robots", nargs="+", choices=CASES, help="robots to run on")
    parser.add_argument("--verbose", action="store_true", help="say what is being measured")
    parser.add_argument(
        "--out", type=Path, help="folder of the page; complete runs write to docs, others nowhere"
    )
    return parser


def _run(plan: Plan, results: Results) -> Iterator[str]:
    """Measure one thing after the other, saying what is next."""
    if "import" in plan.sections:
        yield "imports"
        results.imports = import_times(3 if plan.quick else 15)
    if "compile" in plan.sections:
        yield from _first_calls(plan, results)
    for name in plan.robots if {"batch", "threads", "single"} & set(plan.sections) else ():
        yield name
        yield from _contests(plan, results, make(name))
        # the workspaces of large models are gigabytes
        gc.collect()
    if "calls" in plan.sections:
        for name in (None, *(n for n in plan.robots if n in CALLED)):
            for row in calls(make(name) if name else None, plan.settings):
                results.rows.append(row)
                yield f"{row.quantity} of {row.case.label}"
    if "rollout" in plan.sections:
        for name in (n for n in plan.robots if n in ROBOTS):
            for row in rollouts(make(name), plan.settings):
                results.rows.append(row)
                yield f"rollouts of {name}, batch {row.batch}"
    if "rates" in plan.sections:
        for name in (n for n in plan.robots if n in RATED):
            for row in total_rates(make(name), plan.settings):
                results.rows.append(row)
                yield f"{row.quantity} of {name}"
    if "hybrid" in plan.sections:
        for row in hybrids(plan.settings, (10, 50) if plan.quick else LINKS):
            results.rows.append(row)
            yield f"hybrid dynamics of {row.case.name}"
    if "linearized" in plan.sections:
        for name in (n for n in plan.robots if n in LINEARIZED):
            for row in linearized(make(name), plan.settings):
                results.rows.append(row)
                yield f"{row.quantity} of {name}"
    if "contact" in plan.sections:
        yield from _contacts(plan, results)
        for row in grounds(plan.settings):
            results.rows.append(row)
            yield f"{row.quantity} of {row.case.label}"
    if "reach" in plan.sections:
        for name in (n for n in plan.robots if n in FRAMES):
            for found in reach(make(name), plan.quick):
                results.reached.append(found)
                yield f"inverse kinematics of {name} by {found.who}"
    if "identify" in plan.sections:
        for name in (n for n in plan.robots if n in REGRESSED):
            for row in regressors(make(name), plan.settings):
                results.rows.append(row)
                yield f"{row.quantity} of {name}"
            yield f"first call, {name}, torque_regressor"
            repeats = 1 if plan.quick else 5
            results.first_calls.append(first_call(name, "torque_regressor", repeats))
    if "long" in plan.sections:
        for links in LONG[:2] if plan.quick else LONG:
            for found in longs(links, 0.1 if plan.quick else 1.0):
                results.long.append(found)
                yield f"{found.quantity} of a snake of {links}"
    if "threads" in plan.sections and cores() > 1:
        yield from _scaling(plan, results)


def _contacts(plan: Plan, results: Results) -> Iterator[str]:
    for name in FEET:
        for row in held(make(name), plan.settings):
            results.rows.append(row)
            yield f"{row.quantity} of {name}, {row.kind}"
        for row in held_derivatives(make(name), plan.settings):
            results.rows.append(row)
            yield f"{row.quantity} of {name}, {row.kind}"
        for quantity in HELD | HELD_DERIVATIVES:
            yield f"first call, {name}, {quantity}"
            results.first_calls.append(first_call(name, quantity, 1 if plan.quick else 3))


def _first_calls(plan: Plan, results: Results) -> Iterator[str]:
    for name in plan.robots:
        case = make(name)
        for quantity in ("inverse_dynamics",) if plan.quick else quantities(case):
            yield f"first call, {name}, {quantity}"
            repeats = 1 if plan.quick or case.nv > 64 else 5
            results.first_calls.append(first_call(name, quantity, repeats))
    for name in ("panda",) if plan.quick else COMPILED:
        if name in plan.robots or name not in CASES:
            for found in compiled(name):
                results.compiled.append(found)
                yield f"first call, {name}, {found.what}"


def _contests(plan: Plan, results: Results, case: Case) -> Iterator[str]:
    peers = peers_of(case, plan.peers(case), results.notes)
    runs = []
    if "batch" in plan.sections:
        runs.append(batches(case, peers, "one thread", plan.settings))
    if "threads" in plan.sections and cores() > 1:
        runs.append(batches(case, peers, "all threads", plan.settings))
    if "single" in plan.sections:
        runs.append(singles(case, peers, plan.settings))
    for run in runs:
        for row in run:
            results.rows.append(row)
            ratios = ", ".join(f"{k} {v:.1f}" for k, v in row.ratio.items())
            yield f"{case.name}, {row.quantity}, {row.kind}: {ratios}"
    for peer in peers:
        if isinstance(peer, Casadi):
            found = {(case.name, q): s for q, s in peer.seconds.items()}
            results.foreign.update(found)


def _scaling(plan: Plan, results: Results) -> Iterator[str]:
    for name in ("panda", "talos"):
        if name not in plan.robots:
            continue
        for quantity in ("inverse_dynamics", "forward_dynamics"):
            for batch in (BATCH,) if plan.quick else (BATCH, 65536):
                yield f"two threads, {name}, {quantity}, {batch}"
                value = scaling(make(name), quantity, batch, plan.settings)
                results.scaling[make(name).label, quantity, batch] = value


if __name__ == "__main__":
    sys.exit(main())
