"""Arithmetic on configurations: q lives on a manifold, its differences are vectors over nv."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..model.joint import Joint
from ..model.mechanism import Mechanism
from .declare import algorithm

__all__ = ["difference", "integrate", "neutral", "random_configuration", "tangent_rate"]


@algorithm()
def neutral(mech: Mechanism) -> np.ndarray:
    """The configuration (nq,) in which every body's frame is at its placement."""
    return _leaders(mech, lambda joint: joint.neutral())


@algorithm()
def random_configuration(mech: Mechanism, rng: np.random.Generator) -> np.ndarray:
    """A random configuration (nq,) within the joint limits."""
    return _leaders(mech, lambda joint: joint.random(rng))


@algorithm()
def integrate(mech: Mechanism, q: np.ndarray, dv: np.ndarray) -> np.ndarray:
    """q ⊞ dv: the configuration after moving with the constant velocity dv for a unit of time."""
    return _leaders(mech, lambda joint, qk, dvk: joint.integrate(qk, dvk), (q, "q"), (dv, "v"))


@algorithm()
def difference(mech: Mechanism, q0: np.ndarray, q1: np.ndarray) -> np.ndarray:
    """q1 ⊟ q0: the velocity (nv,) that leads from q0 to q1 in a unit of time."""
    return _leaders(mech, lambda joint, a, b: joint.difference(a, b), (q0, "q"), (q1, "q"))


@algorithm()
def tangent_rate(mech: Mechanism, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """The rate of u at which q ⊞ u moves with velocity v, to O(u⁴); for integrators."""
    return _leaders(mech, lambda joint, a, b: joint.tangent_rate(a, b), (u, "v"), (v, "v"))


def _leaders(
    mech: Mechanism, fn: Callable[..., np.ndarray], *vectors: tuple[np.ndarray, str]
) -> np.ndarray:
    """fn of each joint that leads and of its share of the vectors, one after the other."""
    parts: list[np.ndarray] = [np.zeros(0)]
    joints: list[tuple[Joint, dict[str, slice]]] = [
        (b.joint, {"q": mech.q_slice(b.joint_name), "v": mech.v_slice(b.joint_name)})
        for b in mech.bodies[1:]
        if b.joint.mimic is None
    ]
    for joint, share in joints:
        parts.append(fn(joint, *(np.asarray(x)[share[kind]] for x, kind in vectors)))
    return np.concatenate(parts)
