"""A kernel as a function of CasADi."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from ..errors import ArgumentError
from ..graph.program import Program
from ..runtime.cpu import Cpu
from ..runtime.kernel import Kernel
from .called import callback
from .library import external
from .package import casadi_package
from .pieces import whole

__all__ = ["function"]

# CasADi may call them for as long as the process lives, so that none is made twice
_MADE: dict[tuple[Kernel, int, str], Any] = {}


def function(kernel: Kernel, samples: int = 1, name: str | None = None) -> Any:
    """A `casadi.Function` around a compiled kernel, with its derivatives of two orders.

    f = hinge.casadi.function(robot.kernel("forward_dynamics", "q", "qd", "tau"))

    samples: columns of every argument that are worked on at once, as in `f.map(samples)`.
    name: of the function, by default that of the kernel.
    """
    where = "casadi.function"
    if not isinstance(kernel, Kernel):
        raise ArgumentError(
            f"{where}: got a {type(kernel).__name__}; expected a kernel, such as "
            f'robot.kernel("forward_dynamics", "q", "qd", "tau") or what robot.compile gives'
        )
    if not isinstance(samples, (int, np.integer)) or samples < 1:
        raise ArgumentError(f"{where}: samples is {samples!r}; expected a whole number above 0")
    if kernel.dtype != np.float64:
        raise ArgumentError(
            f"{where}: {kernel.name} computes in {kernel.dtype}, CasADi in float64; make the robot "
            f"or the kernel with dtype=numpy.float64"
        )
    if not isinstance(kernel.backend, Cpu):
        raise ArgumentError(
            f"{where}: {kernel.name} is not for a CPU, on which CasADi computes; take one of a "
            f"robot that is on one"
        )
    name = name_of(kernel) if name is None else name
    if not casadi_package().Function.check_name(name):
        raise ArgumentError(
            f"{where}: name is {name!r}; expected letters, digits and single underscores, a letter "
            f"first"
        )
    asked = kernel, int(samples), name
    if asked not in _MADE:
        piece = whole(name, kernel, int(samples))
        orders = 2 if isinstance(kernel.program, Program) else 0
        _MADE[asked] = external(piece, orders) or callback(piece, orders)
    return _MADE[asked]


def name_of(kernel: Kernel) -> str:
    """What CasADi may call it: "forward_dynamics of 'panda'" is forward_dynamics."""
    return re.sub(r"[\W_]+", "_", kernel.name.partition(" of ")[0]).strip("_") or "kernel"
