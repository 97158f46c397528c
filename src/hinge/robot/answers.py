"""What answers a call: a kernel, or something made of several, for certain arrays and settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, final

import numpy as np

from ..runtime.arguments import Argument
from ..runtime.entry import Entry
from ..runtime.kernel import Kernel
from ..specialize.routing import Route, route
from .columns import as_results, by_columns
from .second_order import FORMS, second_order_kernel

if TYPE_CHECKING:
    from .front import Front

__all__ = ["Answer", "answer_of"]


class Answer(Protocol):
    """Results for arrays that are not checked yet."""

    arrays: tuple[str, ...]

    def __call__(self, where: str, given: Sequence[Argument], out: Any) -> Any:
        """The results, checked, in new arrays or in those of out."""
        ...

    def entry(self, otherwise: Callable[..., Any]) -> Entry | None:
        """The machine code that gives the same, if there is any."""
        ...


def answer_of(
    robot: Front, name: str, arrays: tuple[str, ...], static: dict[str, Any], form: type
) -> Answer:
    """What answers calls of an algorithm with these arrays and settings."""
    if static.get("order", 1) == 2:
        return _second_order(robot, name, arrays, static)
    static = {n: x for n, x in static.items() if n != "order"}
    many, one = (route(robot.mechanism, name, arrays, static, n) for n in (None, 1))
    if many.plan == "columns":
        return ByColumns(robot, many, arrays, static, form)
    kernel = ByKernel(robot.kernel(name, *arrays, **static), arrays, form)
    return ByParts(robot, kernel, static) if one.plan == "parts" else kernel


@final
class ByKernel:
    """One kernel."""

    def __init__(self, kernel: Kernel, arrays: tuple[str, ...], form: type, least: int = 0) -> None:
        self.kernel, self.arrays, self.form, self.least = kernel, arrays, form, least

    def __call__(self, where: str, given: Sequence[Argument], out: Any) -> Any:
        result = self.kernel.evaluate(where, given, out)
        return self.form(*result) if self.form is not tuple else result

    def entry(self, otherwise: Callable[..., Any]) -> Entry | None:
        """The kernel's own function."""
        return self.kernel.entry(otherwise, self.form, self.least)


@final
class ByColumns:
    """Matrices of long mechanisms."""

    def __init__(
        self,
        robot: Front,
        way: Route,
        arrays: tuple[str, ...],
        static: dict[str, Any],
        form: type,
    ) -> None:
        self.robot, self.way, self.arrays = robot, way, arrays
        self.static, self.form = static, form

    def __call__(self, where: str, given: Sequence[Argument], out: Any) -> Any:
        parts = by_columns(self.robot, where, self.way.pieces, self.static, given, out)
        return parts[0] if len(parts) == 1 else self.form(*parts)

    def entry(self, otherwise: Callable[..., Any]) -> Entry | None:
        """Columns are put together in Python."""
        return None


@final
class ByParts:
    """∂q̈ of a large robot: one sample from three kernels and two products, more from one kernel."""

    def __init__(self, robot: Front, kernel: ByKernel, static: dict[str, Any]) -> None:
        self.robot, self.kernel, self.static = robot, kernel, static
        self.arrays, kernel.least = kernel.arrays, 2

    def __call__(self, where: str, given: Sequence[Argument], out: Any) -> Any:
        values = {a.name: np.asarray(a.value) for a in given}
        leads = [values[a.name].shape[: values[a.name].ndim - len(a.shape)] for a in given]
        if any(n != 1 for lead in leads for n in lead):
            return self.kernel(where, given, out)
        return self._parts(where, values, out)

    def _parts(self, where: str, x: dict[str, Any], out: Any) -> Any:
        robot: Any = self.robot
        forces = {"f_ext": x["f_ext"]} if "f_ext" in x else {}
        loads = {**forces, **self.static, **({"points": x["points"]} if "points" in x else {})}
        numbers = {n: x[n] for n in robot.parameters if n in x}
        qdd = robot.forward_dynamics(x["q"], x["qd"], x["tau"], **forces, **numbers)
        d = robot.inverse_dynamics_derivatives(x["q"], x["qd"], qdd, **loads, **numbers)
        M_inv = robot.mass_matrix_inverse(x["q"], **numbers)
        parts = (-M_inv @ d.dq, -M_inv @ d.dqd, M_inv)
        if out is not None:
            parts = as_results(robot, where, parts, out)
        return self.kernel.form(*parts)

    def entry(self, otherwise: Callable[..., Any]) -> Entry | None:
        """The kernel's, for batches."""
        return self.kernel.entry(otherwise)


def _second_order(
    robot: Front, name: str, arrays: tuple[str, ...], static: dict[str, Any]
) -> Answer:
    kernel = second_order_kernel(robot.mechanism, name, arrays, static, robot.dtype, robot._backend)
    return ByKernel(kernel, arrays, FORMS[name])
