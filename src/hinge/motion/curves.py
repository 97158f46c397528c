"""The numbers of a motion over time, by name, to be plotted."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..viewer.player import Curves

if TYPE_CHECKING:
    from .trajectory import Trajectory

__all__ = ["curves", "labels"]


def curves(trajectory: Trajectory) -> dict[str, Curves]:
    """Coordinates, rates, forces, energies, contacts, of a batch those of the first."""
    robot, first = trajectory.robot, (slice(None), *(0,) * (trajectory.q.ndim - 2))
    rates = labels(robot, robot.v_slice)
    kinetic, potential = trajectory.kinetic_energy[first], trajectory.potential_energy[first]
    # the height of the origin means nothing, and would hide the exchange of energy
    potential = potential - potential[0]
    energies = np.stack([kinetic, potential, kinetic + potential], axis=-1)
    found = {
        "q": Curves(labels(robot, robot.q_slice), trajectory.q[first]),
        "qd": Curves(rates, trajectory.qd[first]),
        "tau": Curves(rates, trajectory.tau[first]),
        "energy": Curves(["kinetic", "potential, from the start", "total"], energies),
    }
    if trajectory.ground is not None and trajectory.forces is not None:
        names = [point.frame for point in trajectory.ground.points]
        found["ground"] = Curves(names, np.linalg.norm(trajectory.forces[first], axis=-1))
    return found


def labels(robot: Any, slice_of: Callable[[str], slice]) -> list[str]:
    """What each entry of q, or of qd, is called."""
    named: dict[int, str] = {}
    for body in robot.mechanism.bodies[1:]:
        if body.joint.mimic is None:
            at = slice_of(body.joint_name)
            several = at.stop - at.start > 1
            for i in range(at.start, at.stop):
                named[i] = f"{body.joint_name}[{i - at.start}]" if several else body.joint_name
    return [named[i] for i in sorted(named)]
