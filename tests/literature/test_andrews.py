"""Andrews' squeezing mechanism against its published solution, and against the book's equations."""

import numpy as np
from scipy.integrate import solve_ivp

import hinge
from literature.andrews import (
    END,
    END_RATES,
    FIRST_ACCELERATION,
    FIRST_FORCE,
    START,
    accelerations_by_the_book,
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
    assert np.abs(robot.alg.constraint_error(q, loops)).max() < 1e-16


def test_first_accelerations_and_forces():
    robot, loops, places, q = begin()
    still = np.zeros(7)
    found = robot.constrained_forward_dynamics(q, still, acting(robot)(0.0, q, still), loops)
    np.testing.assert_allclose(found.qdd[places], FIRST_ACCELERATION, rtol=1e-12, atol=1e-8)
    # the book's multipliers are the forces on the other end, in the axes of the ground
    turn = robot.frame_pose(q, "F3")[:2, :2]
    np.testing.assert_allclose(-turn @ found.forces[:2], FIRST_FORCE, rtol=1e-11)
    np.testing.assert_allclose(found.forces[2:], np.zeros(4), atol=1e-11)


def test_accelerations_are_those_of_the_book_at_any_state_that_closes_the_loops():
    robot, loops, places, q = begin()
    K = robot.alg.constraint_jacobian(q, loops)
    qd = 300 * np.linalg.svd(K)[2][-1]
    tau = acting(robot)(0.0, q, qd)
    found = robot.constrained_forward_dynamics(q, qd, tau, loops).qdd[places]
    expected = accelerations_by_the_book(q[places], qd[places])
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * np.abs(expected).max())


def test_angles_and_rates_after_thirty_milliseconds():
    """Fifteen radians of the motor, in steps of two microseconds, no stabilisation.

    The book's equations, integrated by a method of order 8, end 1.1e-9 from the published digits,
    where hinge ends too.
    """
    robot, loops, places, q = begin()
    motion = hinge.simulate(
        robot, q, tau=acting(robot), duration=0.03, dt=2e-6, constraints=loops, every=15000
    )
    angles, rates = motion.q[-1][places], motion.qd[-1][places]
    np.testing.assert_allclose(angles, END, rtol=0, atol=2e-9)
    np.testing.assert_allclose(rates, END_RATES, rtol=0, atol=2e-6)
    assert np.abs(robot.alg.constraint_error(motion.q[-1], loops)).max() < 1e-13

    def rate(t, y):
        return np.concatenate([y[7:], accelerations_by_the_book(y[:7], y[7:])])

    start = np.concatenate([START, np.zeros(7)])
    book = solve_ivp(rate, (0, 0.03), start, "DOP853", rtol=1e-13, atol=1e-13).y[:, -1]
    np.testing.assert_allclose(angles, book[:7], rtol=0, atol=5e-11)
    np.testing.assert_allclose(rates, book[7:], rtol=0, atol=5e-8)
