"""Derivatives of the dynamics with respect to what its arguments are: numbers in arrays.

The recursions give the first ones along the joints, ∂f/∂δ of f(q ⊞ δ); and δ = T dq where q changes
by dq,

    T = ∂(x ⊟ q)/∂x at x = q        (nv, nq)

which is the identity but for joints whose coordinates do not change as they move: quaternions, of
any length, and planar joints.

Second ones of w · q̈ follow from those of the inverse dynamics τ = g(q, q̇, q̈), in which q̈ is linear.
With λ = M⁻¹ w, L = λ · g, and J = ∂q̈/∂(x, y), x and y being q or q̇,

    w · ∂²q̈/∂x∂y = −(∂²L/∂x∂y + Cₓᵀ J_y + Jₓᵀ C_y)        w · ∂²q̈/∂x∂τ = −Cₓᵀ M⁻¹        (1)

C = ∂²L/∂q̈∂x, which is zero for q̇.  That takes less than half of the operations that
differentiating the graph of q̈ twice does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import algorithms
from ..algorithms.declare import ALGORITHMS
from ..model.mechanism import Mechanism
from ..specialize.arrays import array_shape
from ..specialize.programs import is_long, robot_program
from .second_order import FORMS

if TYPE_CHECKING:
    from ..graph.program import Program

__all__ = ["known_hessian", "known_jacobian"]


def known_jacobian(
    mech: Mechanism, name: str, arrays: tuple[str, ...], static: Mapping[str, Any]
) -> Callable[[], Program] | None:
    """What makes the program of ∂f/∂x for each array x; None where no recursion gives it."""
    first = f"{ALGORITHMS[name].name}_derivatives"
    return (
        partial(_jacobian, mech, first, arrays) if _is_known(mech, first, arrays, static) else None
    )


def known_hessian(
    mech: Mechanism, name: str, arrays: tuple[str, ...], static: Mapping[str, Any]
) -> Callable[[], Program] | None:
    """What makes the program of ∂(∂(w · q̈)/∂x)/∂y for each array x, and y or the weights w."""
    first = f"{ALGORITHMS[name].name}_derivatives"
    known = first == "forward_dynamics_derivatives" and _is_known(mech, first, arrays, static)
    return partial(_hessian, mech, arrays) if known else None


def _is_known(
    mech: Mechanism, first: str, arrays: tuple[str, ...], static: Mapping[str, Any]
) -> bool:
    plain = len(arrays) == 3 and not static and bool({"qdd", "tau"} & set(arrays))
    return first in FORMS and plain and not is_long(mech)


def _jacobian(mech: Mechanism, first: str, arrays: tuple[str, ...]) -> Program:
    from ..functions.derivatives import jacobian
    from ..graph.program import applied, trace

    along: Any = robot_program(mech, first, arrays, {})
    to_tangent = jacobian(partial(algorithms.difference, mech), argnums=1)

    def blocks(*values: np.ndarray) -> tuple[np.ndarray, ...]:
        q = values[arrays.index("q")]
        dq, dqd, last = applied(along, q[0].graph, [np.asarray(x) for x in values])
        known = {"q": dq @ to_tangent(q, q), "qd": dqd}
        return tuple(known.get(a, last) for a in arrays)

    title = f"{first} of {mech.name!r} by coordinates"
    return trace(blocks, [array_shape(mech, a) for a in arrays], title)


def _hessian(mech: Mechanism, arrays: tuple[str, ...]) -> Program:
    from ..functions.derivatives import hessian
    from ..graph.program import applied, trace

    order = ("q", "qd", "tau")
    slopes: Any = _jacobian(mech, "forward_dynamics_derivatives", order)
    forward: Any = robot_program(mech, "forward_dynamics", order, {})
    inverse: Any = robot_program(mech, "inverse_dynamics", ("q", "qd", "qdd"), {})

    def blocks(*values: np.ndarray) -> tuple[np.ndarray, ...]:
        given, w = dict(zip(arrays, values[:-1], strict=True)), values[-1]
        graph, x = w[0].graph, [given[a] for a in order]
        (qdd,), (J_q, J_qd, M_inv) = applied(forward, graph, x), applied(slopes, graph, x)

        def felt(q: Any, qd: Any, qdd: Any, lam: Any) -> Any:
            return lam @ applied(inverse, graph, [q, qd, qdd])[0]

        L = hessian(felt, argnums=(0, 1, 2))(x[0], x[1], qdd, M_inv @ w)
        C = L[2][0]
        bent, none = C.T @ J_q, np.zeros((mech.nv, mech.nv))
        known = {  # (1)
            ("q", "q"): -(L[0][0] + bent + bent.T),
            ("q", "qd"): -(L[0][1] + C.T @ J_qd),
            ("q", "tau"): -(C.T @ M_inv),
            ("qd", "qd"): -L[1][1],
        }
        known |= {(b, a): H.T for (a, b), H in known.items() if a != b}
        by_w = {"q": J_q.T, "qd": J_qd.T, "tau": M_inv}
        rows = ((*(known.get((a, b), none) for b in arrays), by_w[a]) for a in arrays)
        return tuple(block for row in rows for block in row)

    shapes = [array_shape(mech, a) for a in arrays]
    return trace(blocks, [*shapes, (mech.nv,)], f"second order of w · q̈ of {mech.name!r}")
