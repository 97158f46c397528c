"""`hinge demo`: the motion of a robot made in code, computed and drawn."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from ..motion.simulate import simulate
from ..robot import Robot, zoo
from ..viewer.output import PICTURES, check_ending
from .common import check_folder, parser, say

__all__ = ["add", "run"]


def add(commands: Any) -> None:
    """Its parser."""
    what = "compute and draw the motion of a robot made in code"
    demo = parser(commands, "demo", what, "hinge demo --output motion.png")
    demo.add_argument("-o", "--output", default="hinge_demo.svg", help="an SVG, PNG or PDF")


def run(console: Console, given: argparse.Namespace) -> None:
    """Compute, print, draw."""
    check_ending("demo", given.output, PICTURES)
    check_folder(given.output)
    robot = zoo.arm(7)
    rng = np.random.default_rng(7)
    q, qd, qdd = robot.random_configuration(rng), rng.normal(size=7), rng.normal(size=7)
    tau = robot.inverse_dynamics(q, qd, qdd)
    table = Table("joint", "q", "qd", "qdd", "tau = ID(q, qd, qdd)", "FD(q, qd, tau) − qdd")
    residual = robot.forward_dynamics(q, qd, tau) - qdd
    for i, name in enumerate(robot.joint_names):
        numbers = (f"{x[i]:9.4f}" for x in (q, qd, qdd, tau))
        table.add_row(name, *numbers, f"{residual[i]:.1e}")
    console.print(
        f"[bold]{robot.name}[/]: {len(robot.body_names)} bodies, {robot.total_mass:.2f} kg"
    )
    console.print(table)
    console.print(_facts(robot, q, qd))
    motion = simulate(robot, q, np.zeros(7), duration=1.5, dt=1e-3)
    drift = np.ptp(motion.energy) / np.ptp(motion.kinetic_energy)
    console.print(
        f"falling freely for {motion.t[-1]:g} s: kinetic energy up to "
        f"{motion.kinetic_energy.max():.1f} J, total energy constant to {drift:.1e} of that"
    )
    motion.plot(given.output)
    say(console, f"wrote the motion and its energy to {given.output}")


def _facts(robot: Robot, q: np.ndarray, qd: np.ndarray) -> Table:
    M = robot.mass_matrix(q)
    identity = robot.mass_matrix_inverse(q) @ M - np.eye(robot.nv)
    table = Table("quantity", "value")
    table.add_row("eigenvalues of M, least and greatest", f"{_ends(np.linalg.eigvalsh(M))} kg m²")
    table.add_row("|M⁻¹ M − 1|", f"{np.abs(identity).max():.1e}")
    table.add_row("kinetic energy", f"{robot.kinetic_energy(q, qd):.4f} J")
    table.add_row("potential energy", f"{robot.potential_energy(q):.4f} J")
    table.add_row("centre of mass", f"{np.array2string(robot.center_of_mass(q), precision=4)} m")
    tool = robot.frame_pose(q, "tool")[:3, 3]
    table.add_row("tool", f"{np.array2string(tool, precision=4)} m")
    return table


def _ends(values: np.ndarray) -> str:
    return f"{values[0]:.4g}, {values[-1]:.4g}"
