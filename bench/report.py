"""The results as tables on the screen, as a page and as a picture."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import rich.box
import rich.table
from rich.console import Console

from .compiling import Compiled
from .measure import BATCH, TOLERANCE, Row
from .peers import cores
from .results import Results, targets
from .robots import make
from .rollouts import STEPS

__all__ = ["show", "write", "write_section"]

_PEERS = ("pin", "mujoco", "casadi", "frax", "plain", "fill", "without out", "with masks")
_NONE = "–"


@dataclass(frozen=True)
class Table:
    """Text in rows and columns; note: what the reader must know to read it."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""

    def markdown(self) -> str:
        """As on the page."""
        lines = [f"## {self.title}", ""]
        if self.note:
            lines += [self.note, ""]
        lines.append("| " + " | ".join(self.columns) + " |")
        lines.append("|" + "|".join(["---", *["---:"] * (len(self.columns) - 1)]) + "|")
        lines += ["| " + " | ".join(row) + " |" for row in self.rows]
        return "\n".join([*lines, ""])

    def rich(self) -> rich.table.Table:
        """As on the screen."""
        table = rich.table.Table(title=self.title, box=rich.box.SIMPLE, title_justify="left")
        for i, column in enumerate(self.columns):
            table.add_column(column, justify="left" if i == 0 else "right")
        for row in self.rows:
            table.add_row(*(_coloured(cell) for cell in row))
        return table


def _coloured(cell: str) -> str:
    colour = {"met": "green", "not met": "red", "not measured": "yellow"}.get(cell)
    return f"[{colour}]{cell}[/]" if colour else cell


def show(results: Results, console: Console) -> None:
    """Print everything."""
    for key, value in results.environment.items():
        console.print(f"[bold]{key}[/] {value}", highlight=False)
    for table in _tables(results):
        console.print(table.rich())
    for note in _notes(results):
        console.print(f"· {note}", highlight=False)


def write(results: Results, folder: Path) -> list[Path]:
    """The page and its picture."""
    folder.mkdir(parents=True, exist_ok=True)
    page, picture = folder / "benchmarks.md", folder / "benchmarks.svg"
    page.write_text(_page(results, picture.name))
    _plot(results, picture)
    return [page, picture]


def write_section(results: Results, folder: Path, section: str) -> Path:
    """The page that a section has of its own."""
    name, title, make_table = _PAGES[section]
    facts = [f"- {key}: {value}" for key, value in results.environment.items()]
    said = f"Made by `python -m bench --only {section}`, from the root of the repository.\n"
    parts = [f"# {title}\n", said, "\n".join(facts) + "\n", make_table(results).markdown()]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("\n".join(parts))
    return folder / name


def _page(results: Results, picture: str) -> str:
    facts = [f"- {key}: {value}" for key, value in results.environment.items()]
    parts = [
        "# Benchmarks\n",
        "Made by `python -m bench`, from the root of the repository; `--quick` takes a minute.\n",
        f"![Pinocchio's time over ours]({picture})\n",
        "\n".join(facts) + "\n",
        *(table.markdown() for table in _tables(results)),
        "## What is timed\n",
        _statements(results),
        "## Notes\n",
        "\n".join(f"- {note}" for note in _notes(results)) + "\n",
    ]
    return "\n".join(parts)


def _tables(results: Results) -> list[Table]:
    made = [
        _targets(results),
        _contest(results, "one thread", f"Batches of {BATCH} on one thread", robots=True),
        _contest(results, "one thread", "Chains, batches on one thread", robots=False),
        _contest(results, "all threads", f"Batches on all {cores()} cores"),
        _contest(results, "single", "One state, one call from Python"),
        _contest(results, "spelling", "Every spelling of a call, one state"),
        _contest(results, "frames", "Frames and momentum, one call from Python"),
        _contest(results, "spatial", "Rotations and poses, one call from Python"),
        _contest(results, "operators", "Operators, another configuration in every call"),
        _contest(results, "fresh", f"Batches of {BATCH} with out= and without"),
        _contest(results, "rollout", f"Rollouts of {STEPS} steps, per step and sample, one thread"),
        _contest(results, "ground", "Steps on rigid ground, per step and sample, one thread"),
        _contest(results, "total rates", f"Total rates, batches of {BATCH} on one thread"),
        _contest(results, "hybrid", "Hybrid dynamics, batches on one thread"),
        _contest(results, "derivatives", "Derivatives, a megabyte of results, one thread"),
        _contest(results, "many derivatives", f"Derivatives, batches up to {BATCH} on one thread"),
        _contest(results, "one derivative", "Derivatives, one state, one call from Python"),
        _contest(results, "held", "Feet on the ground, batches on one thread"),
        _contest(results, "one held", "Feet on the ground, one call from Python"),
        _contest(results, "held derivatives", "Derivatives on feet, batches on one thread"),
        _contest(results, "one held derivative", "Derivatives on feet, one call from Python"),
        _contest(results, "masks", "Feet on the ground, with masks and without"),
        _reached(results),
        _contest(results, "regressor", "Regressors, a megabyte of results, one thread"),
        _contest(results, "many regressors", "Regressors, 128 megabytes of results, one thread"),
        _contest(results, "one regressor", "Regressors, one state, one call from Python"),
        _scaling(results),
        _first_calls(results),
        _all_first_calls(results),
        _long(results),
        _imports(results),
    ]
    return [table for table in made if table.rows]


def _targets(results: Results) -> Table:
    rows = []
    for t in targets(results):
        bound = f"{'≥' if t.at_least else '≤'} {_quantity(t.bound, t.unit)}"
        said = {True: "met", False: "not met", None: "not measured"}[t.met]
        value = _NONE if t.value is None else _quantity(t.value, t.unit)
        rows.append([t.what, bound, value, said])
    note = (
        "float64, public calls on arrays [B, n]; unless said otherwise one thread, B = "
        f"{BATCH}, and so many that their results stay in a core's cache for batches of "
        "derivatives. Ratios are those of the tables below."
    )
    return Table("Targets", ["target", "aim", "measured", ""], rows, note)


def _contest(results: Results, kind: str, title: str, robots: bool | None = None) -> Table:
    rows = results.of_kind(kind)
    if robots is not None:
        rows = [r for r in rows if (r.case.urdf is not None) == robots]
    present = [p for p in _PEERS if any(p in r.ratio for r in rows)]
    columns = ["robot", "quantity", "B", "hinge"]
    for peer in present:
        columns += [peer, f"× {peer}"]
    lines = [_contest_row(row, present) for row in rows]
    note = (
        "Best time per state; × is a peer's time over ours, the median over rounds in which all "
        "take turns. "
        "Difference: the largest of any peer's result or the generic code's from ours."
    )
    if kind == "single":
        lines = [[*line[:2], *line[3:]] for line in lines]
        columns.remove("B")
    return Table(title, [*columns, "difference"], lines, note)


def _contest_row(row: Row, present: Sequence[str]) -> list[str]:
    label = f"{row.case.label} (nv {row.case.nv})" if row.case.urdf else row.case.label
    cells = [label, row.quantity.replace("_", " "), str(row.batch), _time(row.best["hinge"])]
    for peer in present:
        there = peer in row.ratio
        cells += [_time(row.best[peer]), _ratio(row.ratio[peer])] if there else [_NONE] * 2
    return [*cells, f"{max(row.difference.values(), default=0.0):.0e}"]


def _reached(results: Results) -> Table:
    rows = [
        [r.case.label, r.start, r.who, str(r.targets), f"{100 * r.found:.1f} %", _time(r.seconds)]
        for r in results.reached
    ]
    note = (
        "Poses of random configurations within the limits: of Talos, on the loose, both hands and "
        "feet. Found: to 1e-6 rad and m by our forward kinematics, and within the limits. One "
        "thread. TRAC-IK has 5 ms for a target, and starts at random where there is no start; "
        "pink takes 100 steps at most from there, without restarts: it is made for control loops."
    )
    columns = ["robot", "start", "", "targets", "found", "a target"]
    return Table("Inverse kinematics", columns, rows, note)


def _scaling(results: Results) -> Table:
    rows = [
        [case, quantity.replace("_", " "), str(batch), f"{value:.2f} ×"]
        for (case, quantity, batch), value in results.scaling.items()
    ]
    note = f"Idle cores before the run: {results.idle:.1f}; two are needed to see a factor of two."
    return Table("Two threads over one", ["robot", "quantity", "B", "speedup"], rows, note)


def _first_calls(results: Results) -> Table:
    rows = []
    for c in results.first_calls:
        counts = [str(c.operations[k]) for k in ("multiplications", "additions")]
        counts += [str(c.operations[k]) for k in ("divisions", "sincos", "others")]
        gcc = results.foreign.get((c.case, c.quantity))
        times = [_time(c.cold), _time(c.cached), _NONE if gcc is None else _time(gcc)]
        what = [make(c.case).label, c.quantity.replace("_", " ")]
        rows.append([*what, *counts, *times, f"{c.memory:.0f} MB"])
    columns = ["robot", "quantity", "×", "+", "÷", "sincos", "other", "cold", "cached"]
    note = (
        "Operations of one evaluation. Cold: the first call of a new process with an empty cache, "
        "loading LLVM, tracing and compiling included; cached: the same in the next process. "
        "casadi: generating C and compiling it with gcc. Memory: what the cold process grew by."
    )
    return Table("First calls", [*columns, "casadi", "memory"], rows, note)


def _all_first_calls(results: Results) -> Table:
    """A row for each method, a column for each robot, the slowest first."""
    robots = list(dict.fromkeys(c.case for c in results.compiled))
    found = {(c.what, c.case): c for c in results.compiled}
    worst: dict[str, float] = {}
    for c in results.compiled:
        worst[c.what] = max(worst.get(c.what, 0.0), c.wall if c.wall < math.inf else 0.0)
    rows = []
    for what in sorted(worst, key=lambda what: -worst[what]):
        cells = [_compiled(found.get((what, robot))) for robot in robots]
        rows.append([what.replace("_", " "), *cells])
    late = sum(c.bound < c.wall < math.inf for c in results.compiled)
    note = (
        "A new process, nothing cached, LLVM loaded in it: seconds, and those of CPU time over all "
        f"threads. Aims: 2 s, Panda 0.6 s; {late} of {len(results.compiled)} calls take longer, in "
        "bold. A dash: the method has no answer for this robot."
    )
    return Table("First calls of all methods", ["", *(make(n).label for n in robots)], rows, note)


def _compiled(c: Compiled | None) -> str:
    if c is None or c.wall == math.inf:
        return _NONE
    mark = "**" if c.wall > c.bound else ""
    return f"{mark}{c.wall:.2f}{mark} ({c.cpu:.2f})"


def _long(results: Results) -> Table:
    """A row for each number of links and quantity."""
    least: dict[str, list[float]] = {}
    for x in results.long:
        own = least.setdefault(x.quantity, [math.inf, math.inf])
        least[x.quantity] = [min(own[0], x.batch), min(own[1], x.single)]
    rows = []
    for x in results.long:
        over = [
            f"{x.batch / least[x.quantity][0]:.1f} ×",
            f"{x.single / least[x.quantity][1]:.1f} ×",
        ]
        state = _time(x.batch * x.links)
        cells = [_time(x.batch), over[0], state, _time(x.single), over[1], f"{x.first:.2f} s"]
        rows.append([x.quantity.replace("_", " "), str(x.links), *cells])
    columns = ["", "links", "a body in a batch", "over the least", "a state in a batch"]
    columns += ["a body in one call", "over the least", "first call"]
    note = (
        "`zoo.snake(N)`, one thread, CPU time. Aims: within 1.5 × of the least from 64 to 16 384 "
        "links; forward dynamics of 4096 links 110 µs a state in batches. First call: one state, "
        "nothing cached; what all methods share, frames and the key of the mechanism, is made at "
        "the first of them, inverse dynamics."
    )
    return Table("Long mechanisms", columns, rows, note)


def _imports(results: Results) -> Table:
    rows = [[f"import {name}", _time(t)] for name, t in results.imports.items()]
    note = "In a new process with bytecode, the start of the interpreter off; llvmlite with numpy."
    return Table("Imports", ["", "time"], rows, note)


def _statements(results: Results) -> str:
    """Every statement that was timed, once."""
    lines: dict[str, None] = {}
    for row in results.rows:
        how = {"rollout": "rollout"}.get(row.kind, "one call" if row.batch == 1 else "batch")
        for name, statement in row.statements.items():
            shown = "; ".join(statement.splitlines())
            lines[f"- {row.quantity.replace('_', ' ')}, {how}, {name}: `{shown}`"] = None
    return "\n".join(sorted(lines)) + "\n"


def _notes(results: Results) -> list[str]:
    busy = [
        f"The machine was busy, with {results.idle:.1f} of {cores()} cores idle before the run: "
        "times are longer than they need be, and threads gain less than they could."
    ]
    return [
        *(busy if results.idle < 0.9 * cores() else []),
        "Everyone gets the same random states, in the layout it likes best; conversions are not "
        "timed. Batches write to arrays that exist.",
        "pin is its wheel, reading the same files; chains have its cheapest joint. Its Data grow "
        "with the cube of nv, so that it is left out where memory does not suffice.",
        "mujoco runs without contacts and constraints, the ant on its ground apart. A batch of "
        "forward dynamics is a rollout of one Euler step; it has no batch of the others.",
        "Rollouts: pin is a loop in Python over aba and integrate, mujoco its own rollout; their "
        "batches are loops over samples, of which a few are timed. hinge keeps every tenth state "
        "of a batch.",
        "Hybrid dynamics: a base that floats with the arm driven; snakes on the loose with every "
        "third joint driven. pin is a loop in Python over crba and nonLinearEffects with NumPy's "
        "Schur complement.",
        "casadi runs hinge's generic code as SX, generated as C, gcc -O3 -march=native, with its "
        "arrays bound beforehand; batches are its map.",
        "frax runs with the settings that it recommends, on one thread, compiled by JAX, with its "
        "arrays made beforehand.",
        f"Results must agree to {TOLERANCE:.0e} of the largest entry of a sample, accelerations "
        "by the forces that cause them; otherwise the run stops.",
        *sorted(results.notes),
    ]


def _ratio(value: float) -> str:
    return f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def _time(seconds: float) -> str:
    for unit, size in (("ns", 1e-9), ("µs", 1e-6), ("ms", 1e-3)):
        if seconds < 999.5 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"


def _quantity(value: float, unit: str) -> str:
    if unit == "s":
        return _time(value)
    return f"{value:.3g} {unit}".strip() if unit else f"{value:.0f}"


def _plot(results: Results, path: Path) -> None:
    """Pinocchio's time over ours: robots as bars, chains as lines."""
    from matplotlib import style
    from matplotlib.figure import Figure

    rows = [r for r in results.of_kind("one thread") if "pin" in r.ratio]
    derivatives = [r for r in results.of_kind("derivatives") if "pin" in r.ratio]
    with style.context("hinge.look"):
        figure = Figure(figsize=(10, 4), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=(3, 2))
        _bars(left, [r for r in (*rows, *derivatives) if r.case.urdf])
        _lines(right, [r for r in rows if not r.case.urdf])
        left.set(ylabel="pin's time / ours, one thread", title="robots, batches")
        right.set(xlabel="links", title="chains")
        handles = left.get_legend_handles_labels()
        figure.legend(*handles, loc="outside lower center", ncols=5, fontsize="small")
        figure.savefig(path, metadata={"Date": None})


def _bars(axes: Any, rows: Sequence[Row]) -> None:
    robots = list(dict.fromkeys(r.case.label for r in rows))
    quantities = list(dict.fromkeys(r.quantity for r in rows))
    width = 0.85 / max(1, len(quantities))
    for i, quantity in enumerate(quantities):
        found = {r.case.label: r.ratio["pin"] for r in rows if r.quantity == quantity}
        middle = i - (len(quantities) - 1) / 2
        at = [k + width * middle for k, name in enumerate(robots) if name in found]
        values = [found[name] for name in robots if name in found]
        bars = axes.bar(at, values, 0.93 * width, label=quantity.replace("_", " "))
        axes.bar_label(bars, fmt="%.0f", fontsize="small")
    axes.set_xticks(range(len(robots)), robots)
    axes.grid(axis="y", alpha=0.3)


def _lines(axes: Any, rows: Sequence[Row]) -> None:
    for quantity in dict.fromkeys(r.quantity for r in rows):
        points = sorted((r.case.nv, r.ratio["pin"]) for r in rows if r.quantity == quantity)
        axes.plot(*zip(*points, strict=True), "o-", label=quantity.replace("_", " "))
    axes.set_xscale("log", base=2)
    links = sorted({r.case.nv for r in rows})
    axes.set_xticks(links, [str(n) for n in links])
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)


# sections with a page of their own: its file, its title, its table
_PAGES = {
    "compile": ("first_calls.md", "First calls", _all_first_calls),
    "long": ("long_mechanisms.md", "Long mechanisms", _long),
}
