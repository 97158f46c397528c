"""Rows of parallelograms, which move as one pendulum, and that pendulum."""

import numpy as np

import hinge
from hinge import Inertia, LoopConstraint, MechanismBuilder, Revolute, Transform

AXIS = Revolute((0, 1, 0))
PLANE, REDUNDANT = (3, 5), (0, 2, 3, 4, 5)


def rod(mass, length):
    """A slender one along x, from its joint."""
    return Inertia(mass, (length / 2, 0, 0), np.diag([0.0, 1.0, 1.0]) * (mass * length**2 / 12))


def along(length, angle=0.0):
    c, s = np.cos(angle), np.sin(angle)
    return Transform(np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]]), (length, 0, 0))


def row_of_bars(n, axes=PLANE, cranks=None, couplers=None, turned=0.0):
    """N + 1 cranks of 1 m and N couplers; turned: the axes in which loops are written."""
    cranks, couplers = cranks or [1.0] * (n + 1), couplers or [1.0] * n
    b = MechanismBuilder(f"bars {n}")
    for i in range(n + 1):
        crank = rod(cranks[i], 1.0)
        b.add(f"crank{i}", "world", AXIS, f"crank{i}", placement=along(float(i)), inertia=crank)
        b.add_frame(f"tip{i}", f"crank{i}", along(1.0, turned))
        if i < n:
            bar, name = rod(couplers[i], 1.0), f"coupler{i}"
            b.add(name, f"crank{i}", AXIS, name, placement=along(1.0), inertia=bar)
            b.add_frame(f"end{i}", name, along(1.0, turned))
    loops = [LoopConstraint(f"end{i}", f"tip{i + 1}", axes) for i in range(n)]
    return hinge.Robot(b.build(), constraints=loops)


def pendulum(cranks, couplers):
    """The same motion with one joint."""
    mass, J = sum(cranks) + sum(couplers), sum(cranks) / 3 + sum(couplers)
    d = (sum(cranks) / 2 + sum(couplers)) / mass
    b = MechanismBuilder("pendulum")
    spread = np.diag([0.0, 1.0, 1.0]) * (J - mass * d * d)
    b.add("bob", "world", AXIS, "bob", inertia=Inertia(mass, (d, 0, 0), spread))
    return hinge.Robot(b.build())


def angles(robot, theta):
    """θ of cranks, −θ of couplers, which follow them."""
    return np.array([theta if "crank" in name else -theta for name in robot.joint_names])
