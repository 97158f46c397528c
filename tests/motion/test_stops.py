"""Stops at the limits of joints: they hold, give back what they should, however one steps."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import hinge
from hinge import simulate, zoo
from hinge.motion import stops
from hinge.motion.integrators import METHODS
from mechanisms import random_state

OMEGA = 150.0  # of stops, with steps of 1 ms


def weight(joint, inertia=0.1):
    """A body of 1 kg on a joint, without gravity."""
    b = hinge.MechanismBuilder("weight", gravity=(0, 0, 0))
    b.add("body", "world", joint, inertia=hinge.Inertia(1.0, (0, 0, 0), inertia * np.eye(3)))
    return hinge.Robot(b.build())


@pytest.mark.parametrize("method", METHODS)
def test_a_falling_arm_stays_within_its_limits(method):
    robot = zoo.arm(3)
    limits = np.array([2.8, 2.0, 2.8])
    run = simulate(robot, [2.7, 1.9, -2.7], [3.0, 2.0, -3.0], duration=1.0, method=method)
    free = simulate(robot, [2.7, 1.9, -2.7], [3.0, 2.0, -3.0], duration=1.0, limits=False)
    fastest = np.abs(run.qd).max(axis=0)
    assert np.all(np.abs(run.q).max(axis=0) < limits + 3 * fastest / OMEGA)
    assert np.abs(run.q).max() > 2.8
    assert np.all(np.abs(free.q).max(axis=0) > limits + 0.2)


@pytest.mark.parametrize("method", METHODS)
def test_called_step_by_step_it_is_the_same(method):
    robot = zoo.arm(2)
    runs = [
        simulate(robot, [2.79, -1.99], [2.0, -2.0], duration=0.05, method=method, compiled=c)
        for c in (True, False)
    ]
    assert np.abs(runs[0].q).max() > 2.8
    assert_allclose(runs[0].q, runs[1].q, rtol=1e-5 if method == "adaptive" else 1e-11)


@pytest.mark.parametrize("speed", [1e-2, 1.0, 1e2])
@pytest.mark.parametrize("restitution", [0.0, 0.3, 0.5, 0.9, 1.0])
def test_restitution_at_any_speed(restitution, speed):
    robot = weight(hinge.Revolute((0, 0, 1), upper=0.1, restitution=restitution))
    run = simulate(robot, [0.0], [speed], duration=0.1 / speed + 0.2)
    back = -run.qd[-1, 0] / speed
    assert abs(back - max(restitution, 0.092)) < 0.012
    assert run.q.max() - 0.1 < 1.01 * speed / OMEGA


def test_a_load_leans_on_its_stop():
    """The spring of a stop carries it: I ω² x = τ."""
    robot = weight(hinge.Prismatic((1, 0, 0), lower=-0.2))
    run = simulate(robot, [0.0], tau=[-5.0], duration=2.0)
    assert_allclose(run.q[-1, 0], -0.2 - 5.0 / OMEGA**2, rtol=1e-4)
    assert abs(run.qd[-1, 0]) < 1e-6


def test_a_start_beyond_a_limit_comes_back_slowly():
    robot = weight(hinge.Revolute((0, 0, 1), lower=0.5, upper=1.0))
    run = simulate(robot, [0.0], duration=0.5)
    assert run.q[-1, 0] > 0.499 and np.abs(run.qd).max() < 0.25 * OMEGA * 0.5


def test_walls_of_a_body_whose_axes_turn():
    """Where q̇ is in the axes of the body: only what hits is given back."""
    robot = weight(hinge.Planar(lower=(-1, -1, -9), upper=(1, 1, 9), restitution=1.0))
    turn = 1.0
    R = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    run = simulate(robot, [0, 0, turn], [*(R.T @ [2.0, 0.5]), 0.0], duration=1.0)
    assert_allclose(R @ run.qd[-1, :2], [-2.0, 0.5], rtol=2e-3)
    assert_allclose(run.qd[-1, 2], 0.0, atol=1e-12)


def test_the_limit_of_a_follower_stops_its_leader():
    b = hinge.MechanismBuilder("gripper", gravity=(0, 0, 0))
    body = hinge.Inertia(1.0, (0, 0, 0), np.eye(3))
    b.add("left", "world", hinge.Prismatic((0, 1, 0)), "slide", inertia=body)
    follows = hinge.Prismatic((0, 1, 0), upper=0.2, mimic=hinge.Mimic("slide", -2.0))
    b.add("right", "world", follows, "mirror", inertia=body)
    run = simulate(hinge.Robot(b.build()), [0.0], [-1.0], duration=0.4)
    assert -0.105 - 1 / OMEGA < run.q.min() < -0.1
    assert abs(run.qd[-1, 0]) < 0.1


def test_numbers_of_the_mechanism_may_differ_by_sample():
    robot = zoo.arm(2)
    gravity = np.array([[0, 0, -9.81], [9.81, 0, 0]])
    runs = [
        simulate(robot, [0.0, 1.9], duration=0.3, gravity=gravity, compiled=c, every=10)
        for c in (True, False)
    ]
    assert np.abs(runs[0].q[..., 1]).max() > 2.0
    assert_allclose(runs[0].q, runs[1].q, rtol=1e-9)


def test_no_limits_no_stops():
    """Nothing is traced for joints without limits."""
    robot = zoo.pendulum(2)
    run, free = (simulate(robot, [3.0, 4.0], duration=0.1, limits=x) for x in (True, False))
    assert np.array_equal(run.q, free.q)


def test_what_is_refused():
    with pytest.raises(hinge.ModelError, match="restitution is .* no more than 1"):
        hinge.Revolute(restitution=1.5)
    with pytest.raises(hinge.ArgumentError, match="limits is 'yes'; expected one of True, False"):
        simulate(zoo.pendulum(), [0.0], limits="yes")


def test_a_long_mechanism_feels_at_its_stops_what_a_short_one_does():
    """By a sweep instead of the mass matrix."""
    robot = zoo.snake(12)
    q = random_state(robot, 0).q
    assert_allclose(stops._swept(robot.mechanism, q), stops._dense(robot.mechanism, q), rtol=1e-5)
