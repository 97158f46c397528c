"""Torque regressors: ours for batches and for one state, against a loop of Pinocchio's.

Results are large and mostly zeros: `fill` is how long it takes to write as many of them, which no
regressor of a batch can be faster than.  Pinocchio writes into the same matrix again and again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import hinge

from .measure import TOLERANCE, Row, Settings, WrongResultError, interleave
from .others import installed
from .peers import Contestant, Pinocchio
from .robots import Case, States, random_states

__all__ = ["ROBOTS", "regressors"]

ROBOTS = ("panda", "ur5", "anymal", "talos")
# bytes of results that a core's own cache holds, and of a large batch
_NEAR, _FAR = 2**20, 2**27
_NAME, _ARRAYS = "torque_regressor", ("q", "qd", "qdd")


def regressors(case: Case, settings: Settings) -> Iterator[Row]:
    """Batches on one thread, near and far, and one state."""
    robot = hinge.Robot(case.mechanism, threads=1)
    row = 80 * len(robot.body_names) * case.nv
    for kind, room in (("regressor", _NEAR), ("many regressors", _FAR), ("one regressor", 0)):
        count = max(8, room // row // 8 * 8) if room else 1
        states = random_states(case.mechanism, count)
        ours, got = _hinge(robot, states, count)
        contestants, differences = [ours], {"generic": _off(got, _generic(robot, states))}
        if count > 1:
            blank = {"out": np.empty_like(ours.scope["out"])}
            contestants.append(Contestant("fill", "out.fill(0.0)", blank, blank["out"].copy))
        if installed("pinocchio"):
            peer, theirs = _pin(case, states, count)
            contestants.append(peer)
            differences["pin"] = _off(got, theirs)
        for name, worst in differences.items():
            if not worst < TOLERANCE:
                raise WrongResultError(f"{_NAME} of {name} differs by {worst:.1e}")
        times = {k: t / count for k, t in interleave(contestants, settings).items()}
        yield Row.of(case, _NAME, kind, count, contestants, times, differences)


def _off(got: np.ndarray, expected: np.ndarray) -> float:
    return float(np.abs(got - expected).max() / max(1.0, np.abs(expected).max()))


def _hinge(robot: hinge.Robot, states: States, count: int) -> tuple[Contestant, np.ndarray]:
    """The call, and its result for the first state."""
    given = [getattr(states, n)[:count] if count > 1 else getattr(states, n)[0] for n in _ARRAYS]
    out = robot.torque_regressor(*given)
    scope: dict[str, Any] = {"robot": robot, "out": out, **dict(zip(_ARRAYS, given, strict=True))}
    statement = f"robot.{_NAME}(q, qd, qdd{', out=out' if count > 1 else ''})"
    first = (out[0] if count > 1 else out).copy()
    return Contestant("hinge", statement, scope, lambda: first), first


def _generic(robot: hinge.Robot, states: States) -> np.ndarray:
    return robot.alg.torque_regressor(*(getattr(states, n)[0] for n in _ARRAYS))


def _pin(case: Case, states: States, count: int) -> tuple[Contestant, np.ndarray]:
    """The loop, and its result for the first state, joints in hinge's order."""
    peer, few = Pinocchio(case), min(count, 256)
    columns = peer._state("inverse_dynamics", states.head(few)).values()
    rows = [np.ascontiguousarray(x.T) for x in columns]
    scope: dict[str, Any] = {"pin": peer.pin, "model": peer.model, "data": peer.data}
    scope |= {n: x[0] for n, x in zip("qva", rows, strict=True)}
    scope["states"] = list(zip(*rows, strict=True)) * (count // few)
    call = "pin.computeJointTorqueRegressor(model, data, q, v, a)"
    statement = call if count == 1 else f"for q, v, a in states: {call}"
    exec(call, scope)
    numbers = [peer.model.getJointId(b.joint_name) for b in case.mechanism.bodies[1:]]
    order = np.concatenate([np.arange(10 * k - 10, 10 * k) for k in numbers])
    first = np.array(peer.data.jointTorqueRegressor)[peer._back][:, order]
    return Contestant("pin", statement, scope, lambda: first), first
