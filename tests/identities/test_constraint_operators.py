"""Constraints as operators: the projection on what they leave free, and the inertia of frames."""

import numpy as np
import pytest

import hinge
from algorithms.test_constraints import REDUNDANT, four_bar, frames
from hinge import LoopConstraint
from hinge.operators import Operators, constrained, derivative, describe, simplify
from mechanisms import EPS, ROBOTS, assert_close, random_state

NAMES = ["tree0", "tree1", "humanoid", "quadruped"]


def loops(robot):
    """A ball joint between branches, and a frame that is held against the world."""
    left, right = frames(robot)
    return LoopConstraint(left, right, (3, 4, 5)), hinge.Contact(right, "line")


def matrices(robot, q, held):
    """K, 𝓜 and A as matrices, made without operators."""
    K, M = robot.alg.constraint_jacobian(q, held), robot.mass_matrix(q)
    return K, M, K @ np.linalg.solve(M, K.T)


@pytest.fixture(params=NAMES)
def case(request):
    robot = ROBOTS[request.param]
    q, held = random_state(robot, 4).q, loops(robot)
    return robot, q, held, constrained(Operators(robot.mechanism, q), held)


def test_every_operator_is_its_matrix(case):
    robot, q, held, c = case
    K, M, A = matrices(robot, q, held)
    bound = 100 * EPS * np.linalg.cond(M) * np.linalg.cond(A)
    assert_close(c.jacobian.dense(), K, 100 * EPS)
    assert_close(c.C.T.dense() @ np.eye(c.C.out.dim), c.C.dense().T, 10 * EPS)
    assert_close(c.response.dense(), A, bound)
    assert_close(c.inertia.dense(), np.linalg.inv(A), bound)
    P = np.eye(robot.nv) - np.linalg.solve(M, K.T) @ np.linalg.solve(A, K)
    assert_close(c.free_motion.dense(), P, bound)
    assert_close(c.free_force.dense(), P.T, bound)


def test_the_projection_is_one(case):
    """P² = P, K P = 0, P 𝓜⁻¹ K* = 0, 𝓜 P = P* 𝓜, and A A⁻ = I."""
    robot, q, held, c = case
    o, P, K, x = c.C.at, c.free_motion, c.jacobian, np.linspace(-1, 1, robot.nv)
    _, M, A = matrices(robot, q, held)
    bound = 100 * EPS * np.linalg.cond(M) * np.linalg.cond(A)
    assert_close(P @ (P @ x), P @ x, bound)
    assert_close(K @ (P @ x), np.zeros(8), bound)
    forces = np.linspace(1, 2, 8)
    assert_close(P @ (o.mass.inv @ (K.T @ forces)), np.zeros(robot.nv), bound)
    assert_close(o.mass @ (P @ x), c.free_force @ (o.mass @ x), bound)
    assert_close(c.response @ (c.inertia @ forces), forces, bound)
    assert c.free_force @ x == pytest.approx(x @ P, abs=1e-9)


def test_what_the_constraints_feel_is_found_by_the_laws(case):
    *_, c = case
    o = c.C.at
    found = simplify(c.jacobian @ o.mass.inv @ c.jacobian.T)
    assert str(found) == str(c.response) and str(c.inertia.inv) == str(c.response)


def test_redundant_constraints_leave_the_same_free():
    robot, q = four_bar(), np.array([0.4, -0.4, 0.4])
    o = Operators(robot.mechanism, q)
    lean, rich = (constrained(o, LoopConstraint(*s, a)) for s, a in SIDES)
    assert_close(rich.free_motion.dense(), lean.free_motion.dense(), 1e-12)
    assert np.linalg.matrix_rank(lean.free_motion.dense(), 1e-9) == 1


SIDES = [(("bar_end", "right_tip"), (3, 5)), (("bar_end", "right_tip"), REDUNDANT.axes)]


def test_velocities_after_an_impulse_are_those_of_assemble():
    robot, q, qd = four_bar(), np.array([0.4, -0.4, 0.4]), np.array([1.0, 0.5, -0.3])
    P = constrained(robot.operators(q), REDUNDANT).free_motion
    assert_close(P @ qd, robot.assemble(q, REDUNDANT, qd).qd, 1e-12)


def test_several_frames_have_one_inertia():
    robot = ROBOTS["humanoid"]
    q = random_state(robot, 2).q
    o = Operators(robot.mechanism, q)
    B = o.B("left_hand", "right_sole")
    Lambda = o.Lambda("left_hand", "right_sole")
    expected = robot.operational_space_inertia(q, ("left_hand", "right_sole"))
    assert_close(Lambda.dense(), expected, 1e-11, np.abs(expected).max())
    assert (B.T @ o.Omega @ B).inv.symbol is Lambda.symbol and str(Lambda) == LAMBDA
    assert str(Lambda.inv) == str(B.T @ o.Omega @ B)
    x = np.linspace(0, 1, 12)
    assert_close(Lambda @ (B.T @ o.Omega @ B @ x), x, 1e-9)


LAMBDA = "Lambda('left_hand', 'right_sole')"


def test_batches_are_compiled():
    robot = ROBOTS["quadruped"]
    q = np.array([random_state(robot, i).q for i in range(3)])
    held = loops(robot)
    o = robot.operators(q)
    P, x = constrained(o, held).free_motion, np.ones(robot.nv)
    for i in range(3):
        one = constrained(Operators(robot.mechanism, q[i]), held)
        assert_close((P @ x)[i], one.free_motion @ x, 1e-9)
    assert P.dense().shape == (3, robot.nv, robot.nv)


def test_how_they_read():
    robot, q = four_bar(), np.array([0.4, -0.4, 0.4])
    c = constrained(Operators(robot.mechanism, q), REDUNDANT)
    assert str(c.jacobian) == "C('bar_end').T @ phi.T @ H.T"
    assert "A_inv('bar_end') v3; v5 = C('bar_end') v4" in describe(c.free_motion)
    with pytest.raises(hinge.ArgumentError, match=r"no rule differentiates C\('bar_end'\)"):
        derivative(c.jacobian, np.ones(3))
    with pytest.raises(hinge.ArgumentError, match="is not a hinge.LoopConstraint"):
        constrained(Operators(robot.mechanism, q), ["bar"])
