"""Sweeps over a mechanism as programs that relays call, with those that say how results change.

Those of forward dynamics are along the joints, δ = T dq where coordinates change by dq, with the T
of `slopes.py`:

    push    q̈, δq̈ by `forward_dynamics_change` of T dq, dqd, dtau                               (1)
    pull    Tᵀ δ, dqd, dtau of `forward_dynamics_vjp`                                           (2)

External forces are given and do not change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import algorithms
from ..functions.derivatives import jvp, vjp
from ..model.mechanism import Mechanism
from ..specialize.programs import robot_program

if TYPE_CHECKING:
    from ..graph.loop import LoopProgram
    from ..graph.program import Program
    from ..graph.relay import Call

__all__ = ["Sweep", "Sweeps"]


class Sweeps:
    """The programs of what is traced at one time, each made once."""

    def __init__(self) -> None:
        self._made: dict[Any, Program | LoopProgram] = {}

    def of(
        self,
        mech: Mechanism,
        name: str,
        arrays: tuple[str, ...],
        static: Mapping[str, Any] = MappingProxyType({}),
    ) -> Sweep:
        """An algorithm of a mechanism, on arrays of these names; static: its other arguments."""
        return Sweep(self, mech, name, arrays, tuple(static.items()))

    def program(
        self,
        mech: Mechanism,
        name: str,
        arrays: tuple[str, ...],
        static: tuple[tuple[str, Any], ...] = (),
    ) -> Program | LoopProgram:
        """The program of an algorithm."""
        key = mech, name, arrays, static
        if key not in self._made:
            self._made[key] = robot_program(mech, name, arrays, dict(static))
        return self._made[key]


@dataclass(frozen=True)
class Sweep:
    """An algorithm of a mechanism, as `functions.through_sweeps` differentiates it."""

    sweeps: Sweeps
    mech: Mechanism
    name: str
    arrays: tuple[str, ...]
    static: tuple[tuple[str, Any], ...] = ()

    @property
    def program(self) -> Program | LoopProgram:
        """As in `through_sweeps.Sweep`."""
        return self.sweeps.program(self.mech, self.name, self.arrays, self.static)

    def push(
        self, call: Call, x: Sequence[np.ndarray], dots: Sequence[np.ndarray]
    ) -> tuple[Sequence[np.ndarray], Sequence[np.ndarray]]:
        """As in `through_sweeps.Sweep`."""
        (q, *_), (dq, dqd, dtau, *_) = x, dots
        delta = jvp(partial(algorithms.difference, self.mech, q))((q,), (dq,))
        names = (*self.arrays[:3], "dq", "dqd", "dtau", *self.arrays[3:])
        program = self.sweeps.program(self.mech, f"{self.name}_change", names)
        qdd, dqdd = call(program, *x[:3], delta, dqd, dtau, *x[3:])  # (1)
        return (qdd,), (dqdd,)

    def pull(
        self, call: Call, x: Sequence[np.ndarray], bars: Sequence[np.ndarray]
    ) -> Sequence[np.ndarray]:
        """As in `through_sweeps.Sweep`."""
        names = (*self.arrays[:3], "cotangent", *self.arrays[3:])
        program = self.sweeps.program(self.mech, f"{self.name}_vjp", names)
        delta, *rest = call(program, *x[:3], *bars, *x[3:])
        back = vjp(partial(algorithms.difference, self.mech, x[0]))((x[0],), delta)  # (2)
        return *back, *rest, *(np.zeros(a.shape) for a in x[3:])
