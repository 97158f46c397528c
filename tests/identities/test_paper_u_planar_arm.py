"""Paper U: a planar arm on a floating base against its solution by hand (docs/underactuated).

Barycentric vectors: relative to the centre of mass of all, the centre of body k is Σ_i R(φ_i) v_ik
with constant v_ik; so is the tip's, k = E.  Momentum and Jacobians follow in closed form.
"""

import numpy as np
import pytest

import hinge
from mechanisms import EPS, assert_close

MASS = np.array([40.0, 4.0, 3.0])
TURN = np.array([6.0, 0.4, 0.25])  # about each centre of mass
SHOULDER = np.array([0.5, 0.1])  # on the base, from its centre of mass
CENTRE = np.array([[0.0, 0.0], [0.45, 0.02], [0.35, -0.03]])  # of each link, from its joint
LENGTH = np.array([[0.0, 0.0], [1.0, 0.0], [0.8, 0.0]])  # of each link, from its joint to the next


def planar_arm():
    b = hinge.MechanismBuilder("planar", gravity=(0, 0, 0))
    shape = [t * np.eye(3) for t in TURN]
    base = hinge.Inertia(MASS[0], (0, 0, 0), shape[0])
    b.add("base", "world", hinge.Free(), "float", inertia=base)
    parent, at = "base", (*SHOULDER, 0.0)
    for i in (1, 2):
        inertia = hinge.Inertia(MASS[i], (*CENTRE[i], 0.0), shape[i])
        place = hinge.Transform(translation=at)
        b.add(f"link{i}", parent, hinge.Revolute((0, 0, 1)), f"q{i}", place, inertia)
        parent, at = f"link{i}", (*LENGTH[i], 0.0)
    b.add_frame("tip", parent, hinge.Transform(translation=at))
    return hinge.Robot(b.build())


ROBOT = planar_arm()


def barycentric():
    """v[i, k]: what body i adds to the place of body k (k = 3: the tip) from the common centre."""
    whole = MASS.sum()
    to_joint = [SHOULDER, LENGTH[1], LENGTH[2]]
    v = np.zeros((3, 4, 2))
    for i in range(3):
        # along the arm: bodies before i get nothing, i its centre, those beyond all of it
        path = np.array([CENTRE[i] if k == i else to_joint[i] * (k > i) for k in range(4)])
        v[i] = path - MASS @ path[:3] / whole
    return v


def turned(angle, x):
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s], [s, c]]) @ x


def on_paper(phi, q1, q2):
    """J_D of the base's turn and J_G of the tip (angle, x, y), each with columns q̇1, q̇2."""
    angle = np.array([phi, phi + q1, phi + q2 + q1])
    v = barycentric()
    arms = np.array([[turned(angle[i], v[i, k]) for k in range(4)] for i in range(3)])
    d = np.diag(TURN) + np.einsum("k,ikx,jkx->ij", MASS, arms[:, :3], arms[:, :3])
    D = d.sum(axis=0)
    drive = np.array([[0, 0], [1, 0], [1, 1]])  # φ̇ = φ̇0 + drive q̇
    base = -(D @ drive) / D.sum()
    rates = base + drive
    across = np.array([[-a[1], a[0]] for a in arms[:, 3]])
    return base, np.vstack([rates[2], across.T @ rates])


@pytest.mark.parametrize("seed", range(4))
def test_jacobians_are_those_on_paper(seed):
    phi, q1, q2 = np.random.default_rng(seed).uniform(-2, 2, size=3)
    q = np.array([0.3, -0.2, 0, np.cos(phi / 2), 0, 0, np.sin(phi / 2), q1, q2])
    base, tip = on_paper(phi, q1, q2)
    assert_close(ROBOT.alg.disturbance_jacobian(q, ("q1", "q2"))[2], base, 20 * EPS)
    J_G = ROBOT.alg.generalized_jacobian(q, "tip", ("q1", "q2"))
    assert_close(J_G[[2, 3, 4]], tip, 20 * EPS)
    assert_close(J_G[[0, 1, 5]], np.zeros((3, 2)), 20 * EPS)


def test_a_numeric_example():
    """The numbers of the page, to the digits printed: φ = 0, q = (π/4, −π/2)."""
    base, tip = on_paper(0.0, np.pi / 4, -np.pi / 2)
    assert_close(base, np.array([-0.391213, -0.047365]), 5e-7)
    expected = [[0.608787, 0.952635], [-0.018546, 0.556599], [0.556362, 0.474849]]
    assert_close(tip, np.array(expected), 5e-7)


def test_two_bodies_turn_by_the_ratio_of_their_inertias():
    """A link on a hinge at the base's centre: φ = −I′/(I₀ + I′) q for good, I′ = I₁ + μ c²."""
    b = hinge.MechanismBuilder("two", gravity=(0, 0, 0))
    b.add("base", "world", hinge.Free(), inertia=hinge.Inertia(10.0, (0, 0, 0), 2 * np.eye(3)))
    link = hinge.Inertia(5.0, (0.6, 0, 0), 0.3 * np.eye(3))
    b.add("link", "base", hinge.Revolute((0, 0, 1)), "q1", inertia=link)
    robot = hinge.Robot(b.build())
    felt = 0.3 + 10.0 * 5.0 / 15.0 * 0.36
    motion = hinge.simulate(robot, robot.neutral(), tau=[0] * 6 + [0.5], duration=4.0, dt=5e-3)
    phi = 2 * np.unwrap(np.arctan2(motion.q[:, 6], motion.q[:, 3]), period=np.pi)
    assert motion.q[-1, 7] > 4
    assert_close(phi, -felt / (2.0 + felt) * motion.q[:, 7], 1000 * EPS)
    inertia = robot.active_inertia(robot.neutral(), "q1")
    assert_close(inertia, np.array([[2.0 * felt / (2.0 + felt)]]), 10 * EPS)
