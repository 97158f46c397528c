"""An arm, another that is wrong, and measured motion of the first."""

from dataclasses import dataclass, replace
from functools import cache

import numpy as np

import hinge
from hinge import zoo


@dataclass(frozen=True)
class Measured:
    """A motion, with torques that have noise on them."""

    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    tau: np.ndarray
    noisy: np.ndarray

    @property
    def given(self):
        return self.q, self.qd, self.noisy, self.qdd


@cache
def arm():
    """Three joints with damping, friction and armature; no armature in the wrong one."""
    mech = zoo.arm(3).mechanism
    bodies = [
        b if not k else replace(b, joint=_worn(b.joint, k)) for k, b in enumerate(mech.bodies)
    ]
    return hinge.Robot(replace(mech, bodies=tuple(bodies)))


def _worn(joint, k):
    return replace(joint, damping=0.2 * k, friction=0.3, armature=0.05)


@cache
def wrong():
    """Every body off by up to a third, and nothing known of the joints."""
    rng, bodies = np.random.default_rng(7), list(arm().mechanism.bodies)
    for k in range(1, len(bodies)):
        own, factor = bodies[k].inertia, rng.uniform(0.7, 1.3)
        other = hinge.Inertia(
            own.mass * factor, own.com * rng.uniform(0.8, 1.2), own.about_com * factor
        )
        joint = replace(bodies[k].joint, damping=0.0, friction=0.0, armature=0.0)
        bodies[k] = replace(bodies[k], inertia=other, joint=joint)
    return hinge.Robot(replace(arm().mechanism, bodies=tuple(bodies)))


@cache
def measured(noise=0.05, n=1000, seed=0):
    """Ten seconds of several sines."""
    rng, t = np.random.default_rng(seed), np.linspace(0.0, 10.0, n)
    q, qd, qdd = np.zeros((3, n, 3))
    for i in range(1, 5):
        w, (a, b) = 0.2 * np.pi * i, rng.normal(size=(2, 3)) * 0.4
        s, c = np.sin(w * t)[:, None], np.cos(w * t)[:, None]
        q, qd, qdd = q + a * s + b * c, qd + w * (a * c - b * s), qdd - w * w * (a * s + b * c)
    tau = arm().inverse_dynamics(q, qd, qdd) - arm().passive_forces(q, qd)
    return Measured(t, q, qd, qdd, tau, tau + noise * tau.std(axis=0) * rng.normal(size=tau.shape))
