"""Motions between configurations: smooth, at rest at their ends, as quick as the limits allow."""

from dataclasses import replace

import numpy as np
import pytest

import hinge
from hinge import ArgumentError, control, zoo
from mechanisms import EPS, assert_close

ARM = zoo.arm(7)
START, END = np.zeros(7), np.array([0.3, 0.7, -0.2, 1.1, 0.4, 0.6, 0.1])


def limited(velocity=np.inf, effort=np.inf, gravity=0.0):
    """One revolute joint with a unit of inertia about a vertical or horizontal axis."""
    builder = hinge.MechanismBuilder("wheel")
    joint = hinge.Revolute((0, 1, 0), velocity_limit=velocity, effort_limit=effort)
    inertia = hinge.Inertia(1.0, (0.0, 0.0, 0.0), np.eye(3))
    if gravity:
        inertia = hinge.Inertia(1.0, (1.0, 0.0, 0.0), np.diag([1.0, 1.0, 1.0]))
    builder.add("disc", joint=joint, inertia=inertia)
    return hinge.Robot(replace(builder.build(), gravity=(0.0, 0.0, -gravity)))


@pytest.mark.parametrize("robot", [ARM, zoo.space_arm(3)], ids=["arm", "free"])
def test_quintic_is_its_own_derivative(robot):
    q0, q1 = robot.random_configuration(0), robot.random_configuration(1)
    motion, h = control.quintic(robot, q0, q1, duration=1.5), 1e-4
    for t in (0.2, 0.75, 1.3):
        before, now, after = motion(t - h), motion(t), motion(t + h)
        rate = robot.difference(before.q, after.q) / (2 * h)
        assert_close(rate, now.qd, 1e-5)
        assert_close((after.qd - before.qd) / (2 * h), now.qdd, 1e-5)
    for t, q in ((-1.0, q0), (0.0, q0), (1.5, q1), (9.0, q1)):
        assert_close(robot.difference(q, motion(t).q), np.zeros(robot.nv), 1e3 * EPS)
        assert not motion(t).qd.any() and not motion(t).qdd.any()


def test_quintic_takes_as_long_as_its_limits_say():
    fast = control.quintic(limited(velocity=2.0), [0.0], [3.0])
    assert_close(fast.duration, 1.875 * 3 / 2, EPS)
    # 10/√3 (q₁ − q₀)/T² is the largest acceleration
    strong = control.quintic(limited(effort=4.0), [0.0], [3.0])
    assert_close(strong.duration, np.sqrt(10 / np.sqrt(3) * 3 / 4), 1e-3)


def test_time_optimal_of_one_joint_is_bang_bang():
    motion = control.time_optimal(limited(effort=4.0), [[0.0], [3.0]], points=401)
    assert_close(motion.duration, 2 * np.sqrt(3 / 4), 1e-3)
    assert_close(np.abs(motion.tau[1:-1]).min(), 4.0, 1e-2)
    # with a speed limit: up, along, down
    motion = control.time_optimal(limited(effort=4.0, velocity=2.0), [[0.0], [3.0]], points=801)
    assert_close(motion.duration, 3 / 2 + 2 / 4, 2e-3)


def test_time_optimal_keeps_every_limit():
    robot = hinge.Robot(hinge.edit.with_gravity(ARM.mechanism, (0.0, 0.0, -9.81)))
    middle = np.array([0.5, 0.2, 0.5, -0.3, 0.5, 0.3, -0.7])
    motion = control.time_optimal(robot, [START, END, middle], acceleration=15.0)
    most = robot.effort_limit
    fastest = robot.velocity_limit
    assert (np.abs(motion.tau) <= most * (1 + 1e-6)).all()
    assert (np.abs(motion.qd) <= fastest * (1 + 1e-6)).all()
    assert np.abs(motion.qdd).max() <= 15.0 * (1 + 1e-6)
    # something is at its limit nearly always
    share = np.maximum(np.abs(motion.qdd) / 15.0, np.abs(motion.qd) / fastest)
    share = np.maximum(share, np.abs(motion.tau) / most).max(axis=1)
    assert np.median(share) > 0.999
    assert_close(motion.q[[0, -1]], np.array([START, middle]), 10 * EPS)
    i = len(motion.t) // 3
    assert_close(motion(motion.t[i]).q, motion.q[i], 10 * EPS)
    assert not motion(motion.duration + 1).qd.any()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: control.quintic(ARM, START, END, duration=0.0), "duration is 0.0"),
        (lambda: control.quintic(ARM, [START] * 2, END), "expected one"),
        (lambda: control.quintic(limited(), [0.0], [1.0]), "no limit says"),
        (
            lambda: control.quintic(limited(effort=3.0, gravity=9.81), [0.0], [1.0]),
            "cannot carry 9.81",
        ),
        (lambda: control.time_optimal(ARM, START), "two or more"),
        (lambda: control.time_optimal(zoo.space_arm(3), [zoo.space_arm(3).neutral()] * 3), "two"),
        (lambda: control.time_optimal(limited(), [[0.0], [1.0]]), "nothing bounds"),
        (lambda: control.time_optimal(ARM, [START, END], acceleration=-1.0), "acceleration is"),
        (
            lambda: control.time_optimal(limited(effort=3.0, gravity=9.81), [[0.0], [1.0]]),
            "cannot carry",
        ),
    ],
)
def test_wrong_arguments_are_named(call, words):
    with pytest.raises(ArgumentError, match=words):
        call()


def test_quaternions_have_paths_of_two():
    robot = zoo.space_arm(3)
    path = [robot.random_configuration(i) for i in range(3)]
    with pytest.raises(ArgumentError, match="quaternions"):
        control.time_optimal(robot, path)
    motion = control.time_optimal(robot, path[:2], acceleration=1.0)
    assert_close(robot.difference(motion.q[-1], path[1]), np.zeros(robot.nv), 1e3 * EPS)


def test_ways_beyond_limits_of_position_are_refused():
    robot = limited_slider()
    with pytest.raises(hinge.ArgumentError, match="DoF 0 would be at 50 at 100% of the way; its"):
        control.time_optimal(robot, [[0.0], [50.0]])
    with pytest.raises(hinge.ArgumentError, match="DoF 0 would be at 50 at 100% of the way; its"):
        control.quintic(robot, [0.0], [50.0], 1.0)
    # between configurations within the limits a spline may leave them
    with pytest.raises(hinge.ArgumentError, match="time_optimal .* its limits are -1 and 1: go"):
        control.time_optimal(robot, [[-1.0], [0.95], [1.0], [-1.0]])
    control.time_optimal(robot, [[-1.0], [1.0]])


def limited_slider():
    b = hinge.MechanismBuilder("slider")
    joint = hinge.Prismatic((1, 0, 0), lower=-1.0, upper=1.0, velocity_limit=2.0, effort_limit=10.0)
    return hinge.Robot(b.add("cart", "world", joint, inertia=hinge.Inertia(1.0)).build())
