"""docs/accuracy.md and docs/accuracy.svg, from what was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from .accuracy_peers import CONTESTANTS

__all__ = ["DRAWN", "Found", "draw", "page"]

# errors by quantity and contestant, one for each state
Found = dict[str, dict[str, list[float]]]
# what is drawn over the length of chains
DRAWN = ("inverse dynamics", "forward dynamics", "mass matrix")

_INTRODUCTION = """# Accuracy

Made by `python -m bench.accuracy`, from the root of the repository.

![Errors of long chains](accuracy.svg)

Every number below is an error in units of eps = 2⁻⁵² ≈ 2.2e-16: the largest difference of an entry
from the exact result, over the largest entry of that; median / largest over some random states.
The exact result is that of the plain algorithm in arithmetic of 40 digits (mpmath), on a mechanism
whose rotations are exact; its numbers, rounded to float64, are what everybody gets.
A test compares the algorithm in 60 digits with Lagrange's equations, made from poses alone.
Accelerations are forces over inertias: they lose the digits by which the mass matrix is
ill-conditioned, whoever computes them. Compare along a row, not down a column.
*hinge* is the compiled call, *plain* the same source on NumPy's floats (`robot.alg`).
A dash: there is no such function, or the library does not take the mechanism."""

_LONG = """General links and angles, from 4 to 1000 in a row.
Pinocchio's workspace for 1000 joints would take 33 GB."""

_REMARKS = """## What is seen

- Compiled code is as exact as plain code, now a little more, now a little less: canonical frames
  leave less to round, but put heavy bodies' masses to light ones.
- Bodies are referred to their own frames, so that distance from the origin costs no digits.
  In Pinocchio the inverse mass matrix, derivatives and Jacobians are summed in world axes about the
  origin, and lose the digits of the distance once or twice; MuJoCo's positions are those in the
  world less that of the robot's centre of mass, and have lost them once.
- Units do not matter: powers of 2 as units give the same bits."""


def page(
    tables: Mapping[tuple[str, str], Found], chains: Mapping[int, Found], functions: Sequence[str]
) -> str:
    """docs/accuracy.md; functions: the section on them, line by line."""
    lines = [_INTRODUCTION, *_table("Long chains", _LONG, _by_length(chains))]
    for (title, why), found in tables.items():
        lines += _table(title, why, found)
    return "\n".join([*lines, *functions, "", _REMARKS, ""])


def _by_length(chains: Mapping[int, Found]) -> Found:
    return {
        f"{name}, {n} links": found[name]
        for name in DRAWN
        for n, found in chains.items()
        if name in found
    }


def _table(title: str, why: str, found: Found) -> list[str]:
    lines = ["", f"## {title}", "", why, "", f"| | {' | '.join(CONTESTANTS)} |"]
    lines.append("|---|" + "---:|" * len(CONTESTANTS))
    for name, row in found.items():
        lines.append(f"| {name} | {' | '.join(_cell(row.get(who)) for who in CONTESTANTS)} |")
    return lines


def _cell(values: Sequence[float] | None) -> str:
    if not values:
        return "–"
    return f"{_number(float(np.median(values)))} / {_number(max(values))}"


def _number(x: float) -> str:
    """Two digits, or all before the point."""
    if x < 1e5:
        return f"{x:.1f}" if x < 10 else f"{x:.0f}"
    digit, power = f"{x:.0e}".split("e")
    return f"{digit}e{int(power)}"


def draw(chains: Mapping[int, Found], path: Path) -> None:
    """Errors over the length of chains."""
    from matplotlib import style
    from matplotlib.figure import Figure

    with style.context("hinge.look"):
        figure = Figure(figsize=(10, 3.6), layout="constrained")
        for axes, name in zip(figure.subplots(1, len(DRAWN)), DRAWN, strict=True):
            for who in CONTESTANTS:
                rows = [(n, f[name][who]) for n, f in chains.items() if f.get(name, {}).get(who)]
                if rows:
                    axes.loglog([n for n, _ in rows], [np.median(e) for _, e in rows], "o-",
                                ms=4, label=who)  # fmt: skip
            axes.set(title=name, xlabel="links")
            axes.grid(alpha=0.3)
        figure.axes[0].set_ylabel("error / eps")
        handles = figure.axes[0].get_legend_handles_labels()
        figure.legend(*handles, loc="outside lower center", ncols=4, fontsize="small")
        figure.savefig(path, metadata={"Date": None})
