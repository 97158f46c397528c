"""Derivatives of the dynamics: ours for a batch and for one state, against loops of Pinocchio's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import hinge

from .measure import BATCH, TOLERANCE, Row, Settings, WrongResultError, interleave
from .others import installed
from .peers import Contestant, Pinocchio
from .robots import Case, States, random_states

__all__ = ["ROBOTS", "linearized"]

ROBOTS = ("panda", "ur5", "anymal", "talos", "chain64", "chain256")

# quantity → its arguments, Pinocchio's name for it, what Pinocchio's Data holds then
_QUANTITIES = {
    "inverse_dynamics_derivatives": (
        ("q", "qd", "qdd"),
        "computeRNEADerivatives",
        ("dtau_dq", "dtau_dv"),
    ),
    "forward_dynamics_derivatives": (
        ("q", "qd", "tau"),
        "computeABADerivatives",
        ("ddq_dq", "ddq_dv"),
    ),
}


# bytes of results that a core's own cache holds, and that are many
_NEAR, _MANY = 2**20, 2**28


def linearized(case: Case, settings: Settings) -> Iterator[Row]:
    """Both quantities of a robot, of batches on one thread and of one state."""
    robot = hinge.Robot(case.mechanism, threads=1)
    near, many = (min(BATCH, max(8, x // (24 * case.nv**2) // 8 * 8)) for x in (_NEAR, _MANY))
    states = random_states(case.mechanism, many)
    for quantity in _QUANTITIES:
        for kind, count in (
            ("derivatives", near),
            ("many derivatives", many),
            ("one derivative", 1),
        ):
            ours, got = _hinge(robot, quantity, states, count)
            contestants = [ours]
            differences = {"generic": _difference(got, _generic(robot, quantity, states))}
            if installed("pinocchio"):
                peer, theirs = _pin(case, quantity, states, count)
                contestants.append(peer)
                differences["pin"] = _difference(got[:2], theirs)
            for name, worst in differences.items():
                if not worst < TOLERANCE:
                    raise WrongResultError(f"{quantity} of {name} differs by {worst:.1e}")
            times = {k: t / count for k, t in interleave(contestants, settings).items()}
            yield Row.of(case, quantity, kind, count, contestants, times, differences)


def _difference(got: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> float:
    """The largest one on the first state, relative to the largest entry."""
    parts = zip(got, expected, strict=True)
    return max(float(np.abs(a - b).max() / max(1.0, np.abs(b).max())) for a, b in parts)


def _hinge(
    robot: hinge.Robot, quantity: str, states: States, count: int
) -> tuple[Contestant, list[np.ndarray]]:
    """The call, and its results for the first state."""
    names = _QUANTITIES[quantity][0]
    given = [getattr(states, n)[:count] if count > 1 else getattr(states, n)[0] for n in names]
    result = getattr(robot, quantity)(*given)
    scope: dict[str, Any] = {"robot": robot, **dict(zip(names, given, strict=True))}
    scope["out"] = tuple(np.empty_like(x) for x in result)
    where = ", out=out" if count > 1 else ""
    statement = f"robot.{quantity}({', '.join(names)}{where})"
    first = [x[0] if count > 1 else x for x in result]
    return Contestant("hinge", statement, scope, lambda: first[0]), first


def _generic(robot: hinge.Robot, quantity: str, states: States) -> Sequence[np.ndarray]:
    given = [getattr(states, n)[0] for n in _QUANTITIES[quantity][0]]
    return getattr(robot.alg, quantity)(*given)


def _pin(
    case: Case, quantity: str, states: States, count: int
) -> tuple[Contestant, list[np.ndarray]]:
    """The loop, and its results for the first state."""
    peer = Pinocchio(case)
    names, call, fields = _QUANTITIES[quantity]
    base = quantity.removesuffix("_derivatives")
    columns = list(peer._state(base, states.head(count)).values())
    rows = [np.ascontiguousarray(x.T) for x in columns]
    scope: dict[str, Any] = {"pin": peer.pin, "model": peer.model, "data": peer.data}
    scope["states"] = list(zip(*rows, strict=True))
    scope |= {n: x[0] for n, x in zip("qva", rows, strict=True)}
    statement = f"for q, v, a in states: pin.{call}(model, data, q, v, a)"
    if count == 1:
        statement = f"pin.{call}(model, data, q, v, a)"
    exec(f"pin.{call}(model, data, *states[0])", scope)
    back = np.ix_(peer._back, peer._back)
    parts = [np.array(getattr(peer.data, name))[back] for name in fields]
    return Contestant("pin", statement, scope, lambda: parts[0]), parts
