"""Robots in motion for the tests of paper D: operators, velocities, momenta."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np

import hinge
from hinge.algebra.rotation import from_rpy
from hinge.operators import Operators, derivative
from mechanisms import EPS, JOINTS, ROBOTS, WITHOUT_FOLLOWERS, assert_close, random_state

__all__ = ["CONSTANT", "TREES", "moving", "near"]


def mixed(armature: float) -> hinge.Robot:
    """Every joint whose H is constant in the body, on two branches; rotors of different size."""
    rng = np.random.default_rng(3)
    b = hinge.MechanismBuilder(f"mixed {armature}", gravity=(1.0, -2.0, -9.0))
    parent, names = "world", [kind for kind in JOINTS if kind != "universal"]
    for i, kind in enumerate([*names, *names[:4]]):
        rotors = armature * rng.uniform(0.5, 1.5, size=JOINTS[kind].nv)
        place = hinge.Transform(from_rpy(*rng.normal(size=3)), 0.4 * rng.normal(size=3))
        moments = np.diag(rng.uniform(0.2, 0.3, size=3))
        body = hinge.Inertia(rng.uniform(0.5, 2), 0.3 * rng.normal(size=3), moments)
        b.add(f"body{i}", parent, replace(JOINTS[kind], armature=rotors), None, place, body)
        parent = "body1" if i == 5 else f"body{i}"
    return hinge.Robot(b.build())


TREES = {name: ROBOTS[name] for name in WITHOUT_FOLLOWERS}
TREES |= {"mixed": mixed(0.0), "mixed with rotors": mixed(0.4)}
# those whose axes do not move in their bodies
CONSTANT = [
    name
    for name, robot in TREES.items()
    if not any(isinstance(b.joint, hinge.Universal) for b in robot.mechanism.bodies)
]


def moving(name, seed=0):
    """Operators of a robot, its velocities v, vJ, v⁺, momenta h, and D^½ ≡ L and its rate."""
    robot = TREES[name]
    s = random_state(robot, seed)
    o = Operators(robot.mechanism, s.q)
    c = SimpleNamespace(robot=robot, alg=robot.alg, o=o, s=s, q=s.q, qd=s.qd, tau=s.qdd)
    c.vJ = o.H.T @ s.qd
    c.v = o.phi.T @ c.vJ
    c.v_plus = c.v - c.vJ
    c.h = o.phi @ (o.M @ c.v)
    c.m, c.l = o.mass_factor, o.mass_factor.inv
    c.nu, c.xi = c.m.T @ s.qd, o.factor.T @ s.qd
    c.L, c.L_rate = o.D_root, derivative(o.D_root, s.qd)
    c.size = len(robot.body_names)
    return c


def near(c, got, expected, scale=1.0):
    """|got − expected| within eps × N of the scale."""
    size = max(1.0, scale, np.abs(expected).max(initial=0))
    assert_close(got, expected, 20 * EPS * max(c.size, 1), size)
