"""Gradients of μ·τ and μ·q̈ and changes of q̈: against complex steps, matrices and one another."""

from functools import cache

import numpy as np
import pytest

from identities.paper_l_cases import (
    EPS,
    TREES,
    loads,
    random_state,
    reference_forward,
    reference_inverse,
    worst,
)
from mechanisms import ROBOTS, assert_close

AXES = ("body", "ground")


def products(matrices, mu):
    return [x.T @ mu for x in matrices]


@cache
def known(name):
    """A robot, a state, weights, and derivatives by complex steps: of τ, and of q̈ with its τ."""
    robot = TREES[name]
    s, mu = random_state(robot, 1), np.random.default_rng(2).normal(size=robot.nv)
    *forward, tau = reference_forward(robot, s)
    return robot, s, tau, mu, reference_inverse(robot, s), forward


@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize("name", TREES)
def test_gradients_are_those_of_complex_steps(name, axes):
    robot, s, tau, mu, inverse, forward = known(name)
    got = robot.alg.inverse_dynamics_vjp(s.q, s.qd, s.qdd, mu, s.f_ext, axes=axes)
    assert worst(got, products(inverse, mu)) < 100 * EPS
    condition = np.linalg.cond(forward[2]) if robot.nv else 1.0
    got = robot.alg.forward_dynamics_vjp(s.q, s.qd, tau, mu, s.f_ext, axes=axes)
    assert worst(got, products(forward, mu)) < EPS * min(max(100, condition), 4000)


@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize("load", ["world", "dead"])
@pytest.mark.parametrize("name", ["everything", "gripper", "tree1"])
def test_each_kind_of_load_has_its_own_gradient(name, load, axes):
    robot = TREES[name]
    s, rng = random_state(robot, 4), np.random.default_rng(5)
    points, mu = rng.normal(size=(robot.n_bodies, 3)), rng.normal(size=robot.nv)
    force = loads(robot, s.q, s.f_ext, points, load)
    given = (mu, s.f_ext, points, load, axes)
    got = robot.alg.inverse_dynamics_vjp(s.q, s.qd, s.qdd, *given)
    assert worst(got, products(reference_inverse(robot, s, force), mu)) < 500 * EPS
    *expected, tau = reference_forward(robot, s, force)
    got = robot.alg.forward_dynamics_vjp(s.q, s.qd, tau, *given)
    assert worst(got, products(expected, mu)) < 500 * EPS


@pytest.mark.parametrize("name", ROBOTS)
def test_products_from_the_left_and_from_the_right_meet(name):
    """μ·δτ and μ·δq̈, by kernels, with forces, for batches."""
    robot, rng = ROBOTS[name], np.random.default_rng(3)
    lead = (3,)
    q, f_ext = robot.random_configuration(rng, lead), rng.normal(size=(*lead, robot.n_bodies, 6))
    qd, x, mu, *d = rng.normal(size=(6, *lead, robot.nv))
    for kind in ("inverse", "forward"):
        pull = getattr(robot, f"{kind}_dynamics_vjp")(q, qd, x, mu, f_ext)
        push = getattr(robot, f"{kind}_dynamics_jvp")(q, qd, x, *d, f_ext)
        parts = np.array([a * b for a, b in zip(pull, d, strict=True)])
        size = np.abs(mu * push).sum() + np.abs(parts).sum()
        assert abs((mu * push).sum() - parts.sum()) <= 1000 * EPS * size


@pytest.mark.parametrize("name", TREES)
def test_a_change_of_forward_dynamics_comes_with_it(name):
    robot, s, tau, _, _, expected = known(name)
    d = np.random.default_rng(6).normal(size=(3, robot.nv))
    got = robot.alg.forward_dynamics_change(s.q, s.qd, tau, *d, s.f_ext)
    condition = np.linalg.cond(expected[2]) if robot.nv else 1.0
    bound = EPS * min(max(200, condition), 4000)
    assert worst([got.qdd], [s.qdd]) < bound
    assert worst([got.dqdd], [sum(x @ y for x, y in zip(expected, d, strict=True))]) < bound


@pytest.mark.parametrize("name", ROBOTS)
def test_gradients_are_products_with_the_matrices(name):
    robot, rng = ROBOTS[name], np.random.default_rng(4)
    q, (qd, x, mu) = robot.random_configuration(rng), rng.normal(size=(3, robot.nv))
    for kind in ("inverse", "forward"):
        pull = getattr(robot, f"{kind}_dynamics_vjp")(q, qd, x, mu)
        matrices = getattr(robot, f"{kind}_dynamics_derivatives")(q, qd, x)
        assert pull._fields == matrices._fields
        for got, matrix in zip(pull, matrices, strict=True):
            assert_close(got, matrix.T @ mu, 2e4 * EPS)
