"""Products with derivatives of the dynamics of long mechanisms by coordinates, as loops.

The recursions give them along the joints, δ = T dq where coordinates change by dq:

    push    f_jvp of T dq, dqd, …        pull    Tᵀ dq, dqd, … of f_vjp

T = ∂(x ⊟ q)/∂x at x = q of a joint, (nv, nq), is the identity but for quaternions and planar
joints.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ..algorithms.declare import ALGORITHMS
from ..model.mechanism import Mechanism
from ..model.protocol import PerBody
from .routing import whole

if TYPE_CHECKING:
    from ..graph.loop import LoopProgram
    from .loop_mechanism import LoopMechanism

__all__ = ["looped_product"]

# Bodies from which on they are loops.  Straight-line code takes fewer operations, and batches of it
# two thirds of the time, but it takes as long to compile at 80 bodies and longer beyond (gradients
# of forward dynamics of snakes, seconds of CPU time, straight and in loops: of 120 bodies 1.1 and
# 0.8, of 200 bodies 1.6 and 0.8), and past that size it has no code for single calls (200 bodies:
# 71 and 17 µs).
LEAST_BODIES = 160

# what has such products, and its third array
_THIRD = {"inverse_dynamics": "qdd", "forward_dynamics": "tau"}
# what gives changes, the last of its results
_ALONG = {
    "inverse_dynamics": "inverse_dynamics_jvp",
    "forward_dynamics": "forward_dynamics_change",
}


def looped_product(
    mech: Mechanism,
    name: str,
    arrays: tuple[str, ...],
    kind: Literal["jvp", "vjp"],
    wrt: Sequence[int],
) -> Callable[[dict[str, tuple[int, ...]], str], LoopProgram] | None:
    """What makes the program, of arrays by name and a title; None where it would be no loops.

    arrays: those of the function; wrt: the numbers of those that change, or whose gradients are
    asked for.
    """
    third = _THIRD.get(name, "")
    chosen = tuple(arrays[i] for i in wrt)
    own = "q", "qd", third
    known = set(own) <= set(arrays) <= {*own, "f_ext"} and set(chosen) <= set(own)
    if not known or mech.n_bodies < LEAST_BODIES or whole(mech, name, (), {}).plan != "loops":
        return None
    return partial(_program, mech, partial(_push if kind == "jvp" else _pull, name, own, chosen))


def _program(
    mech: Mechanism,
    product: Callable[..., Any],
    shapes: dict[str, tuple[int, ...]],
    title: str,
) -> LoopProgram:
    from .canonical import canonical
    from .loops import trace_loops

    return trace_loops(product, canonical(mech), shapes, title)


def _push(
    name: str, own: tuple[str, ...], chosen: tuple[str, ...], tree: LoopMechanism, **given: Any
) -> tuple[Any, ...]:
    dots: dict[str, Any] = {a: np.zeros(tree.nv) for a in own}
    dots |= {a: given[f"d({a})"] for a in chosen}
    if "q" in chosen:
        T, dq, (delta,) = _tangents(tree, given["q"]), tree.coordinates(dots["q"]), tree.slots(1)
        for _, k in tree.outward():
            delta[k] = T[k] @ dq[k]
        dots["q"] = tree.join(delta)
    state = (given[a] for a in own)
    function = ALGORITHMS[_ALONG[name]].function
    found = function(tree, *state, *dots.values(), given.get("f_ext"))
    return (found[-1] if isinstance(found, tuple) else found,)


def _pull(
    name: str, own: tuple[str, ...], chosen: tuple[str, ...], tree: LoopMechanism, **given: Any
) -> tuple[Any, ...]:
    state = (given[a] for a in own)
    function = ALGORITHMS[f"{name}_vjp"].function
    found = dict(zip(own, function(tree, *state, given["bar(0)"], given.get("f_ext")), strict=True))
    if "q" in chosen:
        T, delta, (bar,) = _tangents(tree, given["q"]), tree.rates(found["q"]), tree.slots(1)
        for _, k in tree.outward():
            bar[k] = T[k].T @ delta[k]
        found["q"] = tree.join_coordinates(bar)
    return tuple(found[a] for a in chosen)


def _tangents(tree: LoopMechanism, q: Any) -> PerBody:
    """T of every joint, (nv, nq)."""
    from ..graph.autodiff import jacobian_nodes, on_new_leaves

    own = tree.coordinates(q)

    def make(k: Any) -> np.ndarray:
        joint, here = tree.body.joint, own[k]
        apart = partial(joint.difference, here)
        inside = on_new_leaves(apart, here[0].graph, [here], [0], "the tangents of a joint")
        slopes = jacobian_nodes(inside.values, inside.leaves).ravel()
        return np.array(inside.on_arguments(slopes)).reshape(joint.nv, joint.nq)

    return tree.each(make)
