"""Andrews' squeezing mechanism against its published solution."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import hinge
from literature.andrews import (
    END,
    END_RATES,
    FIRST_ACCELERATION,
    FIRST_FORCE,
    START,
    acting,
    squeezer,
)


def begin():
    robot, loops, places = squeezer()
    q = np.zeros(7)
    q[places] = START
    return robot, loops, places, q


def test_the_start_closes_the_loops():
    robot, loops, _, q = begin()
    assert np.abs(robot.alg.constraint_error(q, loops)).max() < 1e-17


def test_first_accelerations_and_forces():
    robot, loops, places, q = begin()
    still = np.zeros(7)
    found = robot.constrained_forward_dynamics(q, still, acting(robot)(0.0, q, still), loops)
    np.testing.assert_allclose(found.qdd[places], FIRST_ACCELERATION, rtol=1e-12, atol=2e-8)
    # the book's multipliers pull at the other end
    np.testing.assert_allclose(-found.forces[:2], FIRST_FORCE, rtol=1e-11)
    np.testing.assert_allclose(found.forces[2:], np.zeros(4), atol=1e-11)


def test_angles_and_rates_after_thirty_milliseconds():
    """Fifteen turns of the motor, in steps of a microsecond, no stabilisation."""
    robot, loops, places, q = begin()
    motion = hinge.simulate(
        robot, q, tau=acting(robot), duration=0.03, dt=2e-6, constraints=loops, every=15000
    )
    np.testing.assert_allclose(motion.q[-1][places], END, rtol=0, atol=1e-9)
    np.testing.assert_allclose(motion.qd[-1][places], END_RATES, rtol=0, atol=1e-6)
    assert np.abs(robot.alg.constraint_error(motion.q[-1], loops)).max() < 1e-12


@pytest.mark.long
def test_the_published_digits_are_those_of_another_integrator():
    """DOP853 of SciPy on the accelerations: an adaptive method of order 8."""
    robot, loops, places, q = begin()
    tau = acting(robot)

    def rate(t, y):
        force = tau(t, y[:7], y[7:])
        qdd = robot.constrained_forward_dynamics(y[:7], y[7:], force, loops).qdd
        return np.concatenate([y[7:], qdd])

    start = np.concatenate([q, np.zeros(7)])
    found = solve_ivp(rate, (0, 0.03), start, "DOP853", rtol=1e-13, atol=1e-13).y[:, -1]
    np.testing.assert_allclose(found[:7][places], END, rtol=0, atol=1e-9)
