"""Effort limits: what motors cannot do does not happen, and is said."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

import hinge
from hinge import simulate, zoo
from hinge.control import GravityCompensation
from hinge.motion.integrators import METHODS
from mechanisms import ROBOTS

MOST = 100.0  # of every joint of `zoo.arm`
ASKED = np.array([1e6, 40.0, -1e6])
CUT = np.array([MOST, 40.0, -MOST])
EPS = np.finfo(float).eps


def plain(t, q, qd):
    return ASKED


def by_a_list(t, q, qd):
    """Not to be traced."""
    return np.broadcast_to([float(f"{x}") for x in ASKED], np.shape(qd))


def quiet(robot, *args, **keywords):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hinge.ModelWarning)
        return simulate(robot, *args, **keywords)


GIVEN = {
    "tau": dict(tau=ASKED),
    "taus": dict(taus=np.tile(ASKED, (20, 1))),
    "together": dict(tau=2 * ASKED, taus=np.tile(-ASKED, (20, 1))),
    "a law": dict(tau=plain),
    "a law in Python": dict(tau=by_a_list, compiled=False),
    "a law and more": dict(tau=lambda t, q, qd: -ASKED, taus=np.tile(2 * ASKED, (20, 1))),
}


@pytest.mark.parametrize("lead", [(), (9,)])
@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("method", METHODS)
def test_forces_beyond_what_motors_can_do_are_those_at_the_limit(method, given, lead):
    if method == "adaptive" and "taus" in GIVEN[given]:
        pytest.skip("steps of any length take no forces of each step")
    robot = zoo.arm(3)
    setting = dict(duration=0.02, dt=1e-3, method=method)
    q = np.full((*lead, 3), 0.3)
    run = quiet(robot, q, **GIVEN[given], **setting)
    wanted = simulate(robot, q, tau=CUT, **setting)
    assert np.array_equal(run.tau, np.broadcast_to(CUT, run.tau.shape))
    # single runs and calls have code of their own
    assert_allclose(run.q, wanted.q, rtol=1e-8 if method == "adaptive" else 1e3 * EPS)


def test_no_limits_no_cuts():
    free = simulate(zoo.arm(3), [0.3] * 3, tau=ASKED, limits=False, duration=1e-4, dt=1e-5)
    cut = quiet(zoo.arm(3), [0.3] * 3, tau=ASKED, duration=1e-4, dt=1e-5)
    assert np.array_equal(free.tau[-1], ASKED)
    assert np.abs(free.qd[-1]).max() > 1e3 * np.abs(cut.qd[-1]).max()


def test_within_the_limits_nothing_changes_and_nothing_is_said():
    robot = zoo.arm(3)
    runs = [simulate(robot, [0.3] * 3, tau=CUT, limits=x, duration=0.02) for x in (True, False)]
    assert_allclose(runs[0].q, runs[1].q, rtol=1e3 * EPS)
    law = GravityCompensation(robot)
    simulate(robot, [0.3] * 3, tau=law, duration=0.05)


def test_it_is_said_once_and_names_the_joints():
    robot = zoo.arm(3)
    with pytest.warns(
        hinge.ModelWarning, match=r"effort limits, of joint1 \(100\), joint3 \(100\);"
    ):
        simulate(robot, [0.3] * 3, tau=ASKED, duration=0.01)
    simulate(robot, [0.3] * 3, tau=ASKED, duration=0.01)
    arm = zoo.arm(7)
    with pytest.warns(hinge.ModelWarning, match=r"joint4 \(100\) and 3 more; limits=False leaves"):
        simulate(arm, arm.neutral(), tau=np.full(7, 1e3), duration=0.01)


def test_what_is_not_finite_stays_so():
    """A force of ±∞ or NaN is no force at the limit."""
    robot, tau = zoo.arm(3), np.zeros((4, 3))
    tau[1, 0], tau[2, 1], tau[3, 2] = np.inf, -np.inf, np.nan
    for dtype in (float, np.float32):
        arm = hinge.Robot(robot.mechanism, dtype)
        for given in (dict(tau=tau), dict(taus=np.tile(tau, (5, 1, 1)))):
            run = quiet(arm, np.zeros(3), **given, duration=0.005)
            assert np.isfinite(run.qd[:, 0]).all() and np.isnan(run.qd[-1, 1:]).all()
    with pytest.raises(hinge.ArgumentError, match=r"tau\[0\] is inf at t = 0"):
        quiet(robot, np.zeros(3), tau=lambda t, q, qd: 1e308 * (1e308 + qd), duration=0.01)


def test_joints_that_nothing_drives_are_not_driven():
    robot = zoo.acrobot()
    run = quiet(robot, [0.3, 0.2], tau=[5.0, 1.0], duration=0.1)
    assert_allclose(run.q, simulate(robot, [0.3, 0.2], tau=[0.0, 1.0], duration=0.1).q, rtol=1e-14)
    assert not run.tau[:, 0].any()


def test_single_precision_is_not_beyond_by_rounding():
    joint = hinge.edit.with_joint
    robot = hinge.Robot(joint(zoo.arm(3).mechanism, "joint1", effort_limit=87.3), np.float32)
    run = simulate(robot, np.zeros(3), tau=[87.3, 0, 0], duration=0.01)
    assert run.tau[0, 0] == np.float32(87.3)


def test_of_a_long_mechanism_too():
    """Loops over bodies, the same source."""
    mech = zoo.snake(48).mechanism
    bodies = [
        replace(b, joint=replace(b.joint, effort_limit=0.5)) if i else b
        for i, b in enumerate(mech.bodies)
    ]
    robot = hinge.Robot(replace(mech, bodies=tuple(bodies)))
    asked = np.random.default_rng(0).normal(size=robot.nv)
    run = quiet(robot, robot.neutral(), tau=asked, duration=0.01)
    wanted = simulate(robot, robot.neutral(), tau=np.clip(asked, -0.5, 0.5), duration=0.01)
    assert_allclose(run.q, wanted.q, rtol=1e-13)


def test_on_the_ground_and_at_events():
    """Rigid steps, and the accelerations by which events are found."""
    robot = hinge.Robot(
        hinge.edit.with_joint(zoo.quadruped().mechanism, "FL_knee", effort_limit=3.0)
    )
    at, tau = robot.v_slice("FL_knee"), np.zeros(robot.nv)
    tau[at] = 50.0
    for law in ("rigid", "compliant"):
        ground = hinge.Ground(["FL_foot", "FR_foot"], law=law)
        setting = dict(duration=0.02, ground=ground)
        run = quiet(robot, robot.neutral(), tau=tau, **setting)
        wanted = simulate(robot, robot.neutral(), tau=np.clip(tau, -3, 3), **setting)
        assert_allclose(run.q, wanted.q, rtol=1e-14)
    slide = hinge.MechanismBuilder("slide", gravity=(0, 0, 0))
    joint = hinge.Prismatic((1, 0, 0), effort_limit=2.0)
    slide.add("body", "world", joint, inertia=hinge.Inertia(1.0, about_com=np.eye(3)))
    robot = hinge.Robot(slide.build())
    run = quiet(robot, [0.0], tau=[1e3], dt=0.1, events=lambda t, q, qd: q[0] - 0.55)
    assert_allclose(run.events[0].t, np.sqrt(0.55), rtol=1e-12)


def test_robots_without_effort_limits_have_the_kernel_they_had():
    robot = ROBOTS["pendulum"]
    assert not np.isfinite(robot.effort_limit).any()
    ran = simulate(robot, robot.neutral(), tau=np.full(robot.nv, 1e6), duration=1e-3)
    assert (ran.tau == 1e6).all()
