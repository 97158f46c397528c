"""Programs with a time loop: one step, traced once and run many times in one kernel.

    (s, y)(i+1) = step(s(i), u(i), p)        i = 0 … steps − 1

with states s, inputs u of the step, parameters p that stay, and further results y.  A step may have
stages: then the program runs once for each row of a table of numbers, its last argument, and only
the last of these runs ends a step.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

from .arrays import Shape
from .operations import Operations
from .program import Program
from .relay import Relay

__all__ = ["Scan"]


@dataclass(frozen=True, eq=False)
class Scan:
    """A step and its loop.

    step: its arguments are states, inputs, parameters and, if there are stages, a row of them; its
    results are the new states, then others.  states, inputs: how many of each.
    recorded: the numbers of the results that are written down as the loop goes.
    until: the number of an entry of the states, counted through all of them; a step must leave a
    sample as it is where that is not 0, and the loop may end where no other is left.  It records
    nothing.
    """

    step: Program | Relay
    states: int
    inputs_per_step: int = 0
    stages: tuple[tuple[float, ...], ...] = ((),)
    recorded: tuple[int, ...] = ()
    until: int | None = None

    @property
    def name(self) -> str:
        """The name of the step."""
        return self.step.name

    @property
    def form(self) -> type | None:
        """The type that holds what is recorded, None for a single array."""
        return self.step.form

    @property
    def inputs(self) -> tuple[Shape, ...]:
        """The shapes of the arguments; the row of a stage is not among them."""
        return self.step.inputs[:-1] if self.staged else self.step.inputs

    @property
    def outputs(self) -> tuple[Shape, ...]:
        """The shapes of what is recorded."""
        return tuple(self.step.outputs[i] for i in self.recorded)

    @property
    def staged(self) -> bool:
        """Whether a step has stages."""
        return self.stages != ((),)

    @property
    def ops(self) -> Operations:
        """What one step costs, all its stages together."""
        return Operations(*(len(self.stages) * n for n in self.step.ops))

    @cached_property
    def digest(self) -> str:
        """The same for loops that compute the same in the same way, and for no others."""
        stages = [[x.hex() for x in row] for row in self.stages]
        parts = (self.step.digest, self.states, self.inputs_per_step, stages, self.recorded)
        parts = parts if self.until is None else (*parts, self.until)
        return hashlib.sha256(repr(parts).encode()).hexdigest()
