"""Results that solve linear systems of the mass matrix, as `graph/systems.py` has them.

    M⁻¹, and of linearised forward dynamics −M⁻¹ B_D, −M⁻¹ A_D:  math §5, paper L, Algorithm 4

M = m mᵀ with the mass factor m, which has the zeros of M, as B_D and A_D have.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algorithms.declare import ALGORITHMS
from ..model.mechanism import Mechanism
from ..model.parameters import PARAMETERS
from .arrays import array_shape
from .programs import robot_program
from .routing import CODE_OF_A_CARD

if TYPE_CHECKING:
    from ..graph.program import Program
    from ..graph.systems import Stage, Systems

__all__ = ["robot_systems"]


def robot_systems(
    mech: Mechanism, name: str, arrays: tuple[str, ...], static: dict[str, Any]
) -> Systems:
    """The named algorithm on a mechanism: derivatives of forward dynamics, or M⁻¹."""
    from ..graph.systems import Systems

    inputs = tuple(array_shape(mech, a, static) for a in arrays)
    before, sides, right, known = None, (), (), arrays
    if ALGORITHMS[name].name == "forward_dynamics_derivatives":
        takes = tuple(a for a in arrays if a != "points")
        program = robot_program(mech, "forward_dynamics", takes, {}, climbs=False)
        before, known = _stage(program, takes, arrays), (*arrays, "qdd")
        sides, right = _sides(mech, known, static)
    factor, above = _factor(mech, known)
    outputs, form = ((mech.nv, mech.nv),) * (len(right) + 1), tuple if right else None
    return Systems(name, inputs, outputs, form, before, factor, above, sides, right)


def _factor(mech: Mechanism, known: Sequence[str]) -> tuple[Stage, tuple[tuple[int, ...], ...]]:
    """What gives the numbers of m, and where they are."""
    from ..graph.systems import factor_numbers

    takes = ("q", *(a for a in known if a in PARAMETERS))
    program = robot_program(mech, "mass_factor", takes, {}, climbs=False)
    numbers, above = factor_numbers(_matrices(program, mech.nv)[0])
    return _stage(_giving(program, numbers), takes, known), above


def _sides(
    mech: Mechanism, known: Sequence[str], static: dict[str, Any]
) -> tuple[tuple[Stage, ...], tuple[np.ndarray, ...]]:
    """What gives the numbers of B_D and A_D, and where they are."""
    from ..graph.systems import right_numbers

    takes = ("q", "qd", "qdd", *(a for a in known if a not in ("q", "qd", "tau", "qdd")))
    program = robot_program(mech, "inverse_dynamics_derivatives", takes, static, climbs=False)
    groups, right = right_numbers(_matrices(program, mech.nv)[:2], CODE_OF_A_CARD)
    return tuple(_stage(_giving(program, x), takes, known) for x in groups), right


def _matrices(program: Any, n: int) -> list[np.ndarray]:
    """The results of a program as arrays of nodes."""
    values = np.empty(len(program.values), dtype=object)
    values[:] = program.values
    return list(values.reshape(-1, n, n))


def _giving(program: Any, numbers: Sequence[Any]) -> Program:
    """A program that gives a vector of other numbers of its graph."""
    from ..graph.program import Program

    return Program(program.name, program.inputs, ((len(numbers),),), tuple(numbers))


def _stage(program: Any, takes: Sequence[str], known: Sequence[str]) -> Stage:
    from ..graph.systems import Stage

    return Stage(program, tuple(known.index(a) for a in takes))
