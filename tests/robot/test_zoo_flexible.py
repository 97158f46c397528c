"""Lumped flexibility: beams bend and ring as beams do; fuel sloshes and leaves the whole alone."""

import numpy as np
import pytest

from hinge import ArgumentError, simulate, zoo
from mechanisms import EPS, assert_close


def frequencies(robot):
    """Natural frequencies of the passive joints, the driven ones held, rad/s."""
    mech = robot.mechanism
    stiffness = mech.join([np.array(body.joint.stiffness) for body in mech.bodies])
    soft = stiffness > 0
    mobility = robot.alg.schur_blocks(robot.neutral(), ~soft).pp
    root = np.sqrt(stiffness[soft])
    return np.sqrt(np.linalg.eigvalsh(root[:, None] * mobility * root))


def test_a_flexible_link_rings_like_a_cantilever():
    """β L = 1.8751, 4.6941 of Euler and Bernoulli; the error falls with the square of the cut."""
    exact = np.array([1.875104, 4.694091]) ** 2 * np.sqrt(20.0 / 1.0)
    off = []
    for segments in (6, 12, 24):
        found = frequencies(zoo.flexible_arm(1, segments))[:2]
        off.append(np.abs(found / exact - 1))
    assert (off[2] < 0.01).all()
    assert (off[0] > 3 * off[1]).all() and (off[1] > 3 * off[2]).all()


def test_a_flexible_link_bends_like_a_cantilever():
    """A force across the tip moves it by F L³ / 3 EI."""
    robot = zoo.flexible_arm(1, 16)
    q, force = robot.neutral(), np.array([0, 0, 0, 0, 1e-3, 0])
    for _ in range(5):
        load = robot.jacobian(q, "tip").T @ force
        stiffness = robot.passive_forces(np.ones(robot.nv), np.zeros(robot.nv))
        q = np.where(stiffness < 0, load / -np.where(stiffness < 0, stiffness, -1.0), 0.0)
    assert_close(robot.frame_pose(q, "tip")[1, 3], 1e-3 / 60, 2e-3, 1e-3 / 60)


def test_driven_hinges_and_passive_springs_in_one_call():
    robot = zoo.flexible_arm(2, 3)
    driven = [name for name in robot.joint_names if name.startswith("joint")]
    assert len(driven) == 2 and robot.nv == 8
    rng = np.random.default_rng(0)
    q, qd = 0.1 * rng.normal(size=(2, robot.nv))
    tau = robot.passive_forces(q, qd)
    motion = robot.hybrid_dynamics(q, qd, np.ones(robot.nv), tau, driven)
    assert_close(motion.qdd[robot.mechanism.driven(driven) == 1], np.ones(2), 0)
    assert_close(robot.forward_dynamics(q, qd, motion.tau), motion.qdd, 20 * EPS)


def test_sloshing_fuel_turns_the_hull_but_not_the_whole():
    robot = zoo.slosh(3)
    assert_close(frequencies(zoo.slosh(1)), np.full(3, 2 * np.pi * 0.2), 10 * EPS)
    start, dt = robot.neutral(), 1e-2
    start[robot.q_slice("slosh1")] = [0.0, 0.05, 0.0]
    motion = simulate(robot, start, duration=20.0, dt=dt, every=10)
    h = robot.momentum(motion.q, motion.qd)
    assert_close(h, np.zeros_like(h), 5e-3 * dt**4)
    c = robot.center_of_mass(motion.q)
    assert_close(c, np.tile(c[0], (len(c), 1)), 1e-4 * dt**4)
    assert np.abs(motion.q[:, 3:7] - motion.q[0, 3:7]).max() > 1e-4
    assert motion.energy[-1] < 0.8 * motion.energy[0]
    assert (np.diff(motion.energy) < 0).all()


def test_sizes_are_checked():
    with pytest.raises(ArgumentError, match="zoo.flexible_arm: n is 0; expected a whole number"):
        zoo.flexible_arm(0)
    with pytest.raises(ArgumentError, match="zoo.flexible_arm: segments is 2.5; expected a whole"):
        zoo.flexible_arm(1, 2.5)
    with pytest.raises(ArgumentError, match="zoo.slosh: tanks is 0; expected a whole number"):
        zoo.slosh(0)
