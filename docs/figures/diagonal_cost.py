"""What diagonal_dynamics costs beside forward_dynamics, n = 2 … 32: operations of the kernels."""

from __future__ import annotations

import numpy as np
from common import panels, save

import hinge
from hinge import Inertia, MechanismBuilder, Revolute, Transform
from hinge.algebra.rotation import from_rpy

ARRAYS = {
    "forward_dynamics": ("q", "qd", "tau"),
    "diagonal_dynamics": ("q", "nu", "tau"),
    "total_rates": ("q", "qd"),
}
SIZES = (2, 4, 7, 8, 12, 16, 24, 32)


def chain(n: int) -> hinge.Robot:
    """n times the same link on a hinge, its axis, placement and inertia general ones."""
    b = MechanismBuilder(f"chain{n}")
    placement = Transform(from_rpy(0.3, -0.7, 0.5), (0.1, -0.2, 0.3))
    moments = [[0.3, 0.02, -0.03], [0.02, 0.4, 0.05], [-0.03, 0.05, 0.35]]
    parent = "world"
    for i in range(n):
        body = Inertia(1.5, (0.1, 0.2, -0.15), moments)
        b.add(f"link{i}", parent, Revolute((1, 2, -3)), f"joint{i}", placement, body)
        parent = f"link{i}"
    return hinge.Robot(b.build())


def operations(robot: hinge.Robot, name: str) -> tuple[int, int]:
    ops = robot.kernel(name, *ARRAYS[name]).ops
    return ops.multiplications, ops.additions


def main() -> None:
    counts = {name: np.array([operations(chain(n), name) for n in SIZES]) for name in ARRAYS}
    print("| n | forward_dynamics × + | diagonal_dynamics × + | ratio | total_rates × + |")
    print("|---|---|---|---|---|")
    for i, n in enumerate(SIZES):
        fd, dd, tr = (counts[name][i] for name in ARRAYS)
        ratio = dd.sum() / fd.sum()
        print(f"| {n} | {fd[0]} {fd[1]} | {dd[0]} {dd[1]} | {ratio:.2f} | {tr[0]} {tr[1]} |")
    figure, (left, right) = panels(2)
    for name, values in counts.items():
        left.plot(SIZES, values.sum(axis=1), "o-", label=name)
    left.set(xlabel="joints", ylabel="multiplications and additions")
    left.legend()
    fd = counts["forward_dynamics"].sum(axis=1)
    for name in ("diagonal_dynamics", "total_rates"):
        right.plot(SIZES, counts[name].sum(axis=1) / fd, "o-", label=name)
    right.set(xlabel="joints", ylabel="operations over forward_dynamics", ylim=(0, 2.5))
    right.legend()
    save(figure, "diagonal_cost")


if __name__ == "__main__":
    main()
