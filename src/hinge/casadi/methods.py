"""A robot's methods on symbols of CasADi."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, final

from ..algorithms.declare import ALGORITHMS
from ..errors import ArgumentError
from ..model.mechanism import did_you_mean
from ..robot import Robot
from ..robot.settings import settled
from ..specialize.arrays import array_shape, is_array
from .function import function
from .package import casadi_package
from .pieces import as_matrix

__all__ = ["Methods", "robot"]


def robot(robot: Robot) -> Methods:
    """The methods of a robot as functions of `casadi.MX` and `DM`, with derivatives.

    dyn = hinge.casadi.robot(robot)
    qdd = dyn.forward_dynamics(q, qd, tau)

    A sample is a column; several side by side are worked on at once.
    """
    if not isinstance(robot, Robot):
        raise ArgumentError(
            f"casadi.robot: got a {type(robot).__name__}; expected a Robot, for a kernel use "
            f"hinge.casadi.function"
        )
    return Methods(robot)


@final
class Methods:
    """The algorithms of a robot by name; frames and other settings are given as to the robot."""

    def __init__(self, robot: Robot) -> None:
        self._robot, self._functions = robot, {}

    def __repr__(self) -> str:
        return f"<methods of {self._robot.name!r} for CasADi>"

    def __dir__(self) -> list[str]:
        return sorted(ALGORITHMS)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in ALGORITHMS:
            hint = did_you_mean(name, ALGORITHMS)
            raise AttributeError(f"casadi.robot of {self._robot.name!r}: no method {name}; {hint}")
        return partial(self._call, name)

    def _call(self, name: str, *arguments: Any, **named: Any) -> Any:
        mech, where = self._robot.mechanism, f"{name} of {self._robot.name!r}"
        given = self._bound(name, where, arguments, named)
        arrays = {n: _matrix(where, n, x) for n, x in given.items() if is_array(n)}
        static = {
            n: settled(mech, where, n, x, split_per_sample=False)
            for n, x in given.items()
            if n not in arrays
        }
        shapes = {n: array_shape(mech, n, static) for n in arrays}
        counts = {n: _samples(where, n, x, shapes[n]) for n, x in arrays.items()}
        samples = max(counts.values(), default=1)
        for n in (n for n, count in counts.items() if count not in (1, samples)):
            raise ArgumentError(
                f"{where}: {n} has shape {arrays[n].shape}, {counts[n]} samples side by side, "
                f"others have {samples}; give as many, or one"
            )
        asked = name, tuple(arrays), tuple(sorted(static.items())), samples
        if asked not in self._functions:
            kernel = self._robot.kernel(name, *arrays, **static)
            self._functions[asked] = function(kernel, samples)
        repeat = casadi_package().repmat
        return self._functions[asked](
            *(repeat(x, 1, samples // counts[n]) for n, x in arrays.items())
        )

    def _bound(
        self, name: str, where: str, arguments: tuple[Any, ...], named: dict[str, Any]
    ) -> dict[str, Any]:
        """The arguments that are given, by name."""
        takes = [*ALGORITHMS[name].parameters, *self._robot.parameters]
        given = dict(zip(takes, arguments, strict=False))
        if len(arguments) > len(takes) or given.keys() & named.keys() or named.keys() - {*takes}:
            raise ArgumentError(f"{where} takes {', '.join(takes)}, each once, and no more")
        return {n: x for n, x in (given | named).items() if x is not None}


def _matrix(where: str, name: str, x: Any) -> Any:
    """As a matrix of CasADi: numbers become one of numbers."""
    casadi = casadi_package()
    if isinstance(x, casadi.SX):
        raise ArgumentError(
            f"{where}: {name} has symbols of casadi.SX, which cannot meet compiled code; use "
            f"casadi.MX, or robot.alg.{where.partition(' ')[0]} for SX"
        )
    return x if isinstance(x, casadi.MX) else casadi.DM(x)


def _samples(where: str, name: str, x: Any, shape: tuple[int, ...]) -> int:
    """How many samples are side by side."""
    rows, columns = as_matrix(shape)
    if x.shape[0] != rows or x.shape[1] % columns or not x.shape[1]:
        raise ArgumentError(
            f"{where}: {name} has shape {x.shape}; expected ({rows}, {columns}), or several such "
            f"matrices side by side"
        )
    return x.shape[1] // columns
