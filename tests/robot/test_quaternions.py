"""Quaternions of any length: normalised in one sample, never silently wrong in a batch."""

import numpy as np
import pytest

import hinge
from hinge.algebra.rotation import quaternion_log, quaternion_matrix, safe_to_square
from hinge.graph.interpret import interpret
from mechanisms import BODY, EPS, assert_close, complex_step, random_state


@pytest.fixture(scope="module")
def robot():
    b = hinge.MechanismBuilder("tumbler")
    b.add("base", "world", hinge.Free(), inertia=BODY)
    b.add("ball", "base", hinge.Spherical(), inertia=BODY)
    return hinge.Robot(b.build())


LENGTHS = [1e-300, 1e-200, 1e-160, 1e-154, 1e-79, 1e-8, 1e8, 1e80, 1e150, 1e155, 1e200, 1e307]


def stretched(q, length):
    """q with both quaternions that long."""
    return np.concatenate([q[..., :3], length * q[..., 3:]], axis=-1)


@pytest.mark.parametrize("length", LENGTHS)
def test_one_sample_is_that_of_the_unit_quaternion(robot, length):
    s, other = random_state(robot, 0), random_state(robot, 1)
    q, q1 = stretched(s.q, length), stretched(other.q, length)
    for who in (robot, robot.alg):
        # at the third call a door is open
        for _ in range(3):
            got = who.inverse_dynamics(q, s.qd, s.qdd)
            assert_close(got, robot.inverse_dynamics(s.q, s.qd, s.qdd), 20 * EPS)
            assert_close(who.difference(q, q1), robot.difference(s.q, other.q), 20 * EPS)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("mostly", [0, 1, 2, 3])
def test_a_batch_is_right_or_nan(robot, length, mostly):
    """Whichever component is too large to be squared: the others may well be small enough."""
    s = random_state(robot, 2)
    q = s.q.copy()
    q[3:7] = 0.3
    q[3 + mostly] = 1.0
    batch = np.array([q, stretched(q, length), q])
    qd, qdd = np.array([s.qd] * 3), np.array([s.qdd] * 3)
    got = robot.inverse_dynamics(batch, qd, qdd)
    expected = robot.alg.inverse_dynamics(q, s.qd, s.qdd)
    assert_close(got[[0, 2]], np.array([expected] * 2), 20 * EPS)
    if np.isnan(got[1]).any():
        assert np.isnan(got[1]).all() and not 1e-150 < length < 1e150
    else:
        assert_close(got[1], expected, 20 * EPS)


def test_what_cannot_be_squared_is_nan_to_every_target(robot):
    q = np.array([[1e155, 1e152, 1e152, 1e152], [1e-170, 1e-170, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]])
    for f in (quaternion_matrix, quaternion_log):
        program = hinge.compile(f, quat=(4,)).program
        with np.errstate(all="ignore"):
            (got,) = interpret(program, [q])
        assert np.isnan(got[0]).any() and np.isnan(got[1]).any() and np.isfinite(got[2]).all()


def test_lengths_beyond_single_precision(robot):
    single, s = hinge.Robot(robot.mechanism, dtype=np.float32), random_state(robot, 3)
    expected = robot.inverse_dynamics(s.q, s.qd, s.qdd)
    for length in (1e-200, 1e-25, 1e25, 1e200):
        got = single.inverse_dynamics(stretched(s.q, length), s.qd, s.qdd)
        assert_close(got, expected, 20 * np.finfo(np.float32).eps)


def test_what_is_scaled():
    quat = np.array([3e200, 1e199, 0.0, -1e200])
    scaled = safe_to_square(quat)
    assert 0.5 <= np.abs(scaled).max() <= 1
    assert np.array_equal(np.frexp(scaled)[0], np.frexp(quat)[0])
    ordinary = np.array([1e-20, 0.0, 3.0, 1e20])
    assert safe_to_square(ordinary) is ordinary
    assert safe_to_square([1.0, 0.0, 0.0, 0.0]) == [1.0, 0.0, 0.0, 0.0]
    columns = safe_to_square(np.array([[1.0, 1e200], [0.0, 1e200]]))
    assert np.array_equal(columns[:, 0], [1.0, 0.0]) and columns[:, 1].max() < 1


def test_complex_steps_pass_through_the_scaling():
    quat, step = np.array([1.0, 0.3, -0.2, 0.5]), np.array([0.1, -0.4, 0.2, 0.3])
    expected = complex_step(lambda h: quaternion_matrix(quat + h * step))
    far = complex_step(lambda h: quaternion_matrix(1e200 * (quat + h * step)))
    assert_close(far, expected, 20 * EPS)
