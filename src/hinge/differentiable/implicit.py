"""Forward dynamics, differentiated as what inverse dynamics undoes.

q̈ = f(x, τ) is where τ = g(x, q̈) is, with g inverse dynamics and x all but the joint forces; the
derivative of g with respect to q̈ is M, of f with respect to τ therefore M⁻¹, symmetric:

    forward    δq̈ = M⁻¹ (δτ − ∂g/∂x δx)                                                        (1)
    backward   τ̄ = M⁻¹ q̈̄,   x̄ = −(∂g/∂x)ᵀ τ̄                                                    (2)

at the q̈ that is known already.  The graph of f along τ alone is M⁻¹ applied to a vector.
Operations of (2) for an arm of eight joints: 2500; of the adjoint of all of f 4100; of f 1560.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .rules import Arrays, Rule

if TYPE_CHECKING:
    from ..graph.program import Program

__all__ = ["forward_dynamics_rule"]


def forward_dynamics_rule(
    force: int, forward: Callable[[], Program], inverse: Callable[[], Program]
) -> Rule:
    """The rule of q̈; force: the place of τ among the arguments, and of q̈ among those of g."""
    from ..functions.derivatives import jvp, vjp
    from ..graph.program import running

    f, g = running(forward()), running(inverse())

    def solved(x: Arrays, w: Any) -> Any:
        """M⁻¹ w."""
        along: list[Any] = [None] * len(x)
        along[force] = w
        return jvp(f)(tuple(x), tuple(along))[0]

    def at(x: Arrays, y: Arrays) -> tuple[Any, ...]:
        return *x[:force], y[0], *x[force + 1 :]

    def push(x: Arrays, y: Arrays, dots: Arrays) -> Arrays:
        still = np.zeros(np.shape(dots[force]))
        rest = (*dots[:force], still, *dots[force + 1 :])
        return (solved(x, dots[force] - jvp(g)(at(x, y), rest)[0]),)  # (1)

    def pull(x: Arrays, y: Arrays, bars: Arrays) -> Arrays:
        force_bar = solved(x, bars[0])
        back = vjp(g)(at(x, y), (-force_bar,))
        return *back[:force], force_bar, *back[force + 1 :]  # (2)

    return Rule(push, pull)
