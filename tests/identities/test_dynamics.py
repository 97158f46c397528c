"""Laws that inverse dynamics, forward dynamics and the mass matrix obey, on every robot.

Bounds are in eps, relative to the largest entry; c(M) is the condition number of the mass matrix.
"""

import numpy as np
import pytest

from dense import condition
from mechanisms import EPS, ROBOTS, along, assert_close, complex_step, random_state

SEEDS = (0, 1, 2)
pytestmark = pytest.mark.parametrize(
    ("name", "seed"), [(name, seed) for name in ROBOTS for seed in SEEDS]
)


def test_fd_undoes_id(name, seed):
    robot, s = ROBOTS[name], random_state(ROBOTS[name], seed)
    tau = robot.inverse_dynamics(s.q, s.qd, s.qdd, s.f_ext)
    qdd = robot.forward_dynamics(s.q, s.qd, tau, s.f_ext)
    assert_close(qdd, s.qdd, 20 * EPS * condition(robot.mass_matrix(s.q)))


def test_mass_matrix_columns_are_id_of_unit_accelerations(name, seed):
    robot, s = ROBOTS[name], random_state(ROBOTS[name], seed)
    bias = robot.bias_forces(s.q, s.qd, s.f_ext)
    M = robot.mass_matrix(s.q)
    columns = [robot.inverse_dynamics(s.q, s.qd, e, s.f_ext) - bias for e in np.eye(robot.nv)]
    scale = np.abs(M).max(initial=1.0) + np.abs(bias).max(initial=0.0)
    assert_close(np.array(columns).reshape(M.shape).T, M, 100 * EPS, scale)


def test_mass_matrix_is_symmetric_positive_definite(name, seed):
    robot, s = ROBOTS[name], random_state(ROBOTS[name], seed)
    M = robot.mass_matrix(s.q)
    assert_close(M, M.T, 0.0)
    assert (np.linalg.eigvalsh(M) > 0).all()


def test_inverse_mass_matrix(name, seed):
    robot, s = ROBOTS[name], random_state(ROBOTS[name], seed)
    M, M_inv = robot.mass_matrix(s.q), robot.mass_matrix_inverse(s.q)
    assert_close(M_inv @ M, np.eye(robot.nv), 20 * EPS * condition(M))
    assert_close(M_inv, M_inv.T, 20 * EPS * condition(M))


def test_kinetic_energy_is_half_qd_M_qd(name, seed):
    robot, s = ROBOTS[name], random_state(ROBOTS[name], seed)
    expected = 0.5 * s.qd @ robot.mass_matrix(s.q) @ s.qd
    assert_close(robot.kinetic_energy(s.q, s.qd), expected, 50 * EPS)


def test_gravity_forces_are_the_gradient_of_potential_energy(name, seed):
    robot, s = ROBOTS[name], random_state(ROBOTS[name], seed)
    gradient = [
        complex_step(lambda h, e=e: robot.alg.potential_energy(along(robot, s.q, e)(h)))
        for e in np.eye(robot.nv)
    ]
    assert_close(np.array(gradient), robot.gravity_forces(s.q), 100 * EPS)


def test_power_balance(name, seed):
    """d(KE + PE)/dt = τ·q̇ + Σ f_ext·V."""
    robot, s = ROBOTS[name], random_state(ROBOTS[name], seed)
    tau = robot.inverse_dynamics(s.q, s.qd, s.qdd, s.f_ext)

    def energy(h):
        q, qd = along(robot, s.q, s.qd)(h), s.qd + h * s.qdd
        return robot.alg.kinetic_energy(q, qd) + robot.alg.potential_energy(q)

    V = [robot.alg.frame_velocity(s.q, s.qd, body, "body") for body in robot.body_names]
    external = sum(f @ v for f, v in zip(s.f_ext, V, strict=True))
    power = np.array([tau @ s.qd, external, s.qdd @ robot.mass_matrix(s.q) @ s.qd])
    scale = max(1.0, np.abs(power).max(initial=0.0))
    assert_close(complex_step(energy), power[0] + power[1], 200 * EPS, scale)


def test_momentum_balance(name, seed):
    """The rate of momentum is the sum of Newton's and Euler's equations, body by body in 3-D."""
    robot, s = ROBOTS[name], random_state(ROBOTS[name], seed)
    rate = complex_step(
        lambda h: robot.alg.momentum(along(robot, s.q, s.qd)(h), s.qd + h * s.qdd, about="world")
    )
    total = np.zeros(6)
    for body in robot.body_names:
        X = robot.alg.frame_pose(s.q, body)
        inertia = robot.mechanism.bodies[robot.mechanism.body_index(body)].inertia
        a = robot.alg.frame_acceleration(s.q, s.qd, s.qdd, body)
        w = robot.alg.frame_velocity(s.q, s.qd, body)[:3]
        R, c = X[:3, :3], X[:3, :3] @ inertia.com
        I = R @ inertia.about_com @ R.T
        force = inertia.mass * (a[3:] + np.cross(a[:3], c) + np.cross(w, np.cross(w, c)))
        moment = I @ a[:3] + np.cross(w, I @ w)
        total += np.concatenate([moment + np.cross(X[:3, 3] + c, force), force])
    assert_close(rate, total, 200 * EPS, max(1.0, np.abs(total).max(initial=0.0)))


def test_bias_forces_are_quadratic_in_the_rates(name, seed):
    robot, s = ROBOTS[name], random_state(ROBOTS[name], seed)
    g = robot.gravity_forces(s.q)
    once, twice = (robot.bias_forces(s.q, k * s.qd) - g for k in (1, 2))
    scale = max(1.0, np.abs(twice).max(initial=0.0), np.abs(g).max(initial=0.0))
    assert_close(twice, 4 * once, 50 * EPS, scale)


def test_external_forces_act_through_the_jacobian(name, seed):
    robot, s = ROBOTS[name], random_state(ROBOTS[name], seed)
    loaded = robot.bias_forces(s.q, s.qd, s.f_ext) - robot.bias_forces(s.q, s.qd)
    expected = np.zeros(robot.nv)
    for body, f in zip(robot.body_names, s.f_ext, strict=True):
        expected -= robot.alg.jacobian(s.q, body, "body").T @ f
    assert_close(
        loaded, expected, 200 * EPS, max(1.0, np.abs(robot.bias_forces(s.q, s.qd)).max(initial=0))
    )
