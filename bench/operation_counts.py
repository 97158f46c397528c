"""`python -m bench.operation_counts`: Algorithms 1 to 6 beside the paper's formulas.

Multiplications and additions of the traced sweeps on chains of n general hinges, in the cheaper of
body and ground axes, the accelerations of the nominal motion given; printed as a table, drawn to
docs/linearized.svg.  Divisions (one per pivot) and sincos (one per joint) are not counted, nor are
they in the formulas.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from hinge import algorithms
from hinge.algorithms.linearized.articulated import articulated
from hinge.algorithms.linearized.conventional import conventional_derivatives, conventional_jvp
from hinge.algorithms.linearized.forward_derivatives import all_directions, one_direction
from hinge.algorithms.linearized.inverse_derivatives import seen_in
from hinge.algorithms.linearized.nominal import nominal
from hinge.graph.program import trace
from hinge.specialize.canonical import canonical

from .robots import chain

__all__ = ["NAMES", "PAPER", "count", "crossover"]

NAMES = {
    1: "δτ",
    2: "∂τ, M",
    3: "δq̈, conventional",
    4: "∂q̈, M⁻¹, conventional",
    5: "δq̈",
    6: "∂q̈, M⁻¹",
}
# multiplications and additions, by the paper
PAPER: dict[int, tuple[Callable[[int], float], Callable[[int], float]]] = {
    1: (lambda n: 320 * n - 159, lambda n: 303 * n - 149),
    2: (lambda n: 21 * n**2 + 333 * n - 132, lambda n: 47 * n**2 / 2 + 605 * n / 2 - 145),
    3: (
        lambda n: n**3 / 6 + 3 * n**2 / 2 + 952 * n / 3 - 153,
        lambda n: n**3 / 6 + n**2 + 1805 * n / 6 - 147,
    ),
    4: (
        lambda n: 17 * n**3 / 6 + 43 * n**2 / 2 + 998 * n / 3 - 132,
        lambda n: 17 * n**3 / 6 + 20 * n**2 + 1819 * n / 6 - 145,
    ),
    5: (lambda n: 259 * n - 129, lambda n: 232 * n - 123),
    6: (lambda n: 36 * n**2 + 781 * n - 225, lambda n: 33 * n**2 + 773 * n - 255),
}
SIZES = (2, 3, 4, 6, 8, 10, 12, 14, 16, 20, 24, 28, 32)


def _articulated(mech: Any, axes: Any, q: Any, qd: Any, qdd: Any) -> tuple[Any, Any, Any]:
    seen = seen_in(axes, mech, q)
    n = nominal(seen, q, qd, qdd, None)
    return seen, n, articulated(seen, n, [np.zeros((6, 6))] * len(mech.bodies))


def _run(number: int, mech: Any, axes: Any, x: list[Any]) -> Any:
    """An algorithm on (q, qd, qdd) and, for the odd ones, a direction."""
    if number == 1:
        return algorithms.inverse_dynamics_jvp(mech, *x, axes=axes)
    if number == 2:
        return tuple(algorithms.inverse_dynamics_derivatives(mech, *x, axes=axes))
    if number == 3:
        return conventional_jvp(mech, *x, axes=axes)
    if number == 4:
        return conventional_derivatives(mech, *x, axes=axes)
    parts = _articulated(mech, axes, *x[:3])
    return one_direction(*parts, tuple(x[3:])) if number == 5 else all_directions(*parts)


@cache
def count(number: int, n: int) -> tuple[int, int]:
    """Multiplications and additions of an algorithm on a chain of n hinges, cheaper axes taken."""
    mech = canonical(chain(n)).mechanism
    shapes = [(n,)] * (6 if number % 2 else 3)
    programs = [
        trace(lambda *x, axes=axes: _run(number, mech, axes, list(x)), shapes)
        for axes in ("body", "ground")
    ]
    ops = min((p.ops for p in programs), key=sum)
    return ops.multiplications, ops.additions


def crossover(counts: Callable[[int, int], float]) -> int:
    """The first n of a chain on which Algorithm 6 costs less than Algorithm 4."""
    return next(n for n in range(2, 100) if counts(6, n) < counts(4, n))


def main() -> int:
    """Print the table and draw it."""
    for number, name in NAMES.items():
        print(f"\nAlgorithm {number}: {name}\n\n| n | × | paper | + | paper |")
        print("|---:|---:|---:|---:|---:|")
        for n in SIZES:
            ours, paper = count(number, n), [round(f(n)) for f in PAPER[number]]
            print(f"| {n} | {ours[0]} | {paper[0]} | {ours[1]} | {paper[1]} |")
    ours = crossover(lambda k, n: sum(count(k, n)))
    paper = crossover(lambda k, n: sum(f(n) for f in PAPER[k]))
    print(
        f"\nAlgorithm 6 costs less than 4 from n = {ours} on; by the paper's formulas from {paper}"
    )
    print(f"wrote {_plot(Path('docs') / 'linearized.svg')}")
    return 0


def _plot(path: Path) -> Path:
    import matplotlib.style

    matplotlib.use("svg")
    matplotlib.style.use("hinge.look")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
    for at, numbers, title in (
        (axes[0], (1, 3, 5), "one direction"),
        (axes[1], (2, 4, 6), "matrices"),
    ):
        for i, number in enumerate(numbers):
            sizes = np.array(SIZES)
            ours = [sum(count(number, int(n))) / n for n in sizes]
            paper = [sum(f(n) for f in PAPER[number]) / n for n in sizes]
            at.plot(sizes, ours, "o-", color=f"C{i}", ms=3, label=f"{number}: {NAMES[number]}")
            at.plot(sizes, paper, "--", color=f"C{i}", lw=1)
        at.set(title=title, xlabel="hinges n", ylabel="(× and +) / n")
        at.legend(fontsize=8)
        at.grid(alpha=0.3)
    figure.suptitle("operations per joint; dashed: the paper's formulas", fontsize=10)
    figure.savefig(path, metadata={"Date": None})
    return path


if __name__ == "__main__":
    sys.exit(main())
