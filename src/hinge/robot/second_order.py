"""Second derivatives of the dynamics: the graphs of the first ones, differentiated once more.

Along joint tangents, f(q ⊞ δ) has the Hessian ½(T + Tᵀ) at δ = 0, where T(a, b) is the derivative
along b of the derivative along a.  So it is enough to differentiate ∂τ/∂q(q ⊞ δ), which Algorithm 2
gives, and ∂q̈/∂q, by Algorithm 4, with respect to δ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from .. import algorithms
from ..errors import ArgumentError
from ..model.mechanism import Mechanism
from ..model.parameters import PARAMETERS
from ..runtime.backend import Backend
from ..runtime.kernel import Kernel
from ..specialize.arrays import array_shape

__all__ = [
    "FORMS",
    "ForwardDynamicsSecondDerivatives",
    "InverseDynamicsSecondDerivatives",
    "second_order_kernel",
]


class InverseDynamicsSecondDerivatives(NamedTuple):
    """∂²τ_i/∂x_a∂y_b as [i, a, b], each (nv, nv, nv); those not here are zero.

    dq_dq is symmetric in a, b: the Hessian of τ(q ⊞ δ).  dq_dqdd is ∂M/∂q.
    """

    dq_dq: np.ndarray
    dq_dqd: np.ndarray
    dqd_dqd: np.ndarray
    dq_dqdd: np.ndarray


class ForwardDynamicsSecondDerivatives(NamedTuple):
    """∂²q̈_i/∂x_a∂y_b as [i, a, b], each (nv, nv, nv); those not here are zero.

    dq_dq is symmetric in a, b: the Hessian of q̈(q ⊞ δ).  dq_dtau is ∂M⁻¹/∂q.
    """

    dq_dq: np.ndarray
    dq_dqd: np.ndarray
    dqd_dqd: np.ndarray
    dq_dtau: np.ndarray


# by the name of the first derivatives
FORMS: dict[str, type] = {
    "inverse_dynamics_derivatives": InverseDynamicsSecondDerivatives,
    "forward_dynamics_derivatives": ForwardDynamicsSecondDerivatives,
}


def second_order_kernel(
    mech: Mechanism,
    name: str,
    arrays: tuple[str, ...],
    settings: Mapping[str, Any],
    dtype: Any,
    backend: Backend,
) -> Kernel:
    """Second derivatives from the first ones of that name, of arrays q, qd and so on."""
    _require_known(f"{name} of {mech.name!r}", arrays, settings)
    from ..functions.derivatives import jacobian
    from ..graph.program import trace
    from ..specialize.canonical import canonical

    form = canonical(mech)
    first: Callable[..., Any] = getattr(algorithms, name)
    if name == "forward_dynamics_derivatives":
        # fewer operations once differentiated
        first = partial(first, method="conventional")

    def matrices(delta: np.ndarray, qd: np.ndarray, q: np.ndarray, *rest: np.ndarray) -> Any:
        given = dict(zip(arrays[2:], rest, strict=True))
        if "f_ext" in given:
            given["f_ext"] = form.forces(given["f_ext"])
        return tuple(first(form.mechanism, algorithms.integrate(mech, q, delta), qd, **given))

    slopes = jacobian(matrices, argnums=(0, 1))

    def fn(*values: np.ndarray) -> tuple[np.ndarray, ...]:
        q, qd, *rest = values
        (B_q, _), (A_q, A_qd), (M_q, _) = slopes(np.zeros(mech.nv), qd, q, *rest)
        swapped = [x.transpose(0, 2, 1) for x in (B_q, A_q, M_q)]
        return 0.5 * (B_q + swapped[0]), swapped[1], A_qd, swapped[2]

    title = f"second order of {name} of {mech.name!r}"
    program = trace(fn, [array_shape(mech, a) for a in arrays], title)
    return Kernel(program, title, arrays, dtype, backend, strict=True)


def _require_known(where: str, arrays: tuple[str, ...], settings: Mapping[str, Any]) -> None:
    """Second derivatives of loads that turn are not known, nor those with open numbers."""
    load = settings.get("load", "body")
    if load != "body":
        raise ArgumentError(
            f"{where}: load is {load!r}; second derivatives know forces in body axes only: use "
            f"load='body', or hinge.hessian of a function of your own"
        )
    other = [a for a in arrays if a in ("points", *PARAMETERS)]
    if other or "method" in settings:
        what = " and ".join([*other, *(["method"] if "method" in settings else [])])
        raise ArgumentError(
            f"{where}: second derivatives take no {what}; leave it out, or use hinge.hessian of a "
            f"function of your own"
        )
