"""Derivatives that the library's recursions give as matrices, by the algorithm they are of.

Those matrices are along the joints' tangents; JAX differentiates along coordinates.  Between the
two is a linear map that depends on q, here the change of q ⊟ q₀ at q₀ = q:

    δ = N(q) dq,   of a quaternion c:   δ = 2 Im(c* dc) / |c|²
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import algorithms
from ..functions.derivatives import jvp
from ..graph.program import Program, trace
from ..model.mechanism import Mechanism
from ..robot.answers import known_key
from ..runtime.kernel import Kernel
from .operation import Matrices, Operation

if TYPE_CHECKING:
    from .methods import Dynamics

__all__ = ["matrices_of"]

# the algorithm of the derivatives, the arguments they are along, and for each result the fields
_KNOWN: dict[str, tuple[str, tuple[str, ...], tuple[tuple[str, ...], ...]]] = {
    "inverse_dynamics": (
        "inverse_dynamics_derivatives",
        ("q", "qd", "qdd"),
        (("dq", "dqd", "dqdd"),),
    ),
    "forward_dynamics": (
        "forward_dynamics_derivatives",
        ("q", "qd", "tau"),
        (("dq", "dqd", "dtau"),),
    ),
    "constrained_forward_dynamics": (
        "constrained_forward_dynamics_derivatives",
        ("q", "qd", "tau"),
        (("dq", "dqd", "dtau"), ("forces_dq", "forces_dqd", "forces_dtau")),
    ),
    "impulse_dynamics": (
        "impulse_dynamics_derivatives",
        ("q", "qd"),
        (("dq", "dqd"), ("impulses_dq", "impulses_dqd")),
    ),
}
# a program that chooses among redundant constraints is not differentiated
_ALONE = ("constrained_forward_dynamics", "impulse_dynamics")


def matrices_of(
    dyn: Dynamics, name: str, arrays: tuple[str, ...], static: Mapping[str, Any]
) -> Matrices | None:
    """The derivatives of an algorithm, if a recursion gives them."""
    if name not in _KNOWN:
        return None
    derivatives, along, fields = _KNOWN[name]

    def of(*values: Any) -> dict[tuple[int, int], Any]:
        given = dict(zip(arrays, values, strict=True))
        found = getattr(dyn, derivatives)(**given, **static)
        return {
            (k, arrays.index(argument)): getattr(found, field)
            for k, row in enumerate(fields)
            for argument, field in zip(along, row, strict=True)
        }

    numbers = tuple(arrays.index(argument) for argument in along)
    return Matrices(of, numbers, _tangents(dyn, arrays), alone=name in _ALONE)


def _tangents(dyn: Dynamics, arrays: tuple[str, ...]) -> dict[int, Operation]:
    """The map of q, where coordinates are not along tangents."""
    robot = dyn.robot
    if all(_flat(body.joint) for body in robot.mechanism.bodies[1:]):
        return {}
    make = partial(_operation, robot.mechanism, robot.dtype, robot._backend)
    return {arrays.index("q"): robot._keep("tangent of coordinates", make)}


def _flat(joint: Any) -> bool:
    """Whether the coordinates of a joint are the integrals of its rates."""
    if joint.nq != joint.nv:
        return False
    somewhere = joint.integrate(joint.neutral(), np.full(joint.nv, 0.5))
    return bool((joint.coordinate_rates(somewhere) == np.eye(joint.nv)).all())


def _operation(mech: Mechanism, dtype: Any, backend: Any) -> Operation:
    title = f"tangent of coordinates of {mech.name!r}"
    key = known_key(mech, "tangent of coordinates")
    kernel = Kernel(partial(_program, mech, title), title, ("q", "dq"), dtype, backend, key, True)
    return Operation(kernel, linear=(1,))


def _program(mech: Mechanism, title: str) -> Program:
    apart = jvp(partial(algorithms.difference, mech))

    def fn(q: np.ndarray, dq: np.ndarray) -> np.ndarray:
        return apart((q, q), (None, dq))

    return trace(fn, [(mech.nq,), (mech.nq,)], title)
