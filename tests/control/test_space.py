"""Free flight: momentum, centre of mass, reaction mode, trajectories, the base's dead band."""

import numpy as np
import pytest

import hinge
from hinge import ArgumentError, simulate, zoo
from hinge.algebra.small import sin
from hinge.control import space
from mechanisms import EPS, assert_close, random_state

ROBOT = zoo.space_arm(7)
ARM = ROBOT.joint_names[1:]
DT = 1e-3
DRIFT = 50 * DT**4  # of rk4 in a minute
DAMPED = 1e-7  # of a task, what the damping leaves undone, which is 1e-4 of its size, squared


def shaking(t, q, qd):
    """Joint forces that keep the arm moving, none on the base."""
    inner = [0.3 * sin((0.5 + 0.1 * i) * t + i) for i in range(7)]
    return np.concatenate([np.zeros(6), np.array(inner) - 0.2 * qd[6:] - 0.3 * q[7:]])


@pytest.fixture(scope="module")
def flight():
    """A minute of free flight, turning and drifting, the arm in motion."""
    qd = np.concatenate([[0.02, -0.03, 0.05], [0.1, 0.2, -0.05], np.zeros(7)])
    ways = {"every": 2000, "compiled": True, "limits": False}
    return simulate(ROBOT, ROBOT.neutral(), qd, shaking, 60.0, DT, **ways)


def test_momentum_is_conserved_for_a_minute(flight):
    h = ROBOT.momentum(flight.q, flight.qd, about="world")
    assert np.abs(flight.qd[:, 6:]).max() > 0.5
    assert_close(h, np.tile(h[0], (len(h), 1)), DRIFT)
    moved = space.momentum_after(ROBOT, h[0], flight.t, flight.q, flight.tau)
    assert_close(moved, h, DRIFT)


def test_the_centre_of_mass_goes_straight(flight):
    c = ROBOT.center_of_mass(flight.q)
    v = ROBOT.momentum(flight.q[0], flight.qd[0])[3:] / ROBOT.total_mass
    assert_close(c, c[0] + flight.t[:, None] * v, DRIFT)


def test_from_rest_the_centre_of_mass_stays_put():
    motion = simulate(ROBOT, ROBOT.neutral(), None, shaking, 10.0, DT, every=1000, limits=False)
    c = ROBOT.center_of_mass(motion.q)
    assert np.abs(motion.q[:, :3]).max() > 1e-2
    assert_close(c, np.tile(c[0], (len(c), 1)), DRIFT)
    # with no momentum the base follows the arm by the disturbance Jacobian
    assert_close(ROBOT.complete_motion(motion.q, motion.qd, ARM), motion.qd, DRIFT)
    tool = ROBOT.frame_velocity(motion.q, motion.qd, "tool")
    assert_close(ROBOT.generalized_motion(motion.q, motion.qd, "tool", ARM), tool, DRIFT)


def test_momentum_is_the_integral_of_thrust_and_weight():
    mech = ROBOT.mechanism
    heavy = hinge.Robot(type(mech)("heavy", mech.bodies, mech.frames, (0.1, 0.0, -0.3)))

    def thrust(t, q, qd):
        push = np.array([0.3, -0.2 * t, 0.1, 1.0, 0.5 * t, -2.0])
        return np.concatenate([push, shaking(t, q, qd)[6:]])

    dt = 2e-3
    motion = simulate(heavy, heavy.neutral(), None, thrust, 2.0, dt)
    h = heavy.momentum(motion.q, motion.qd, about="world")
    expected = space.momentum_after(heavy, h[0], motion.t, motion.q, motion.tau)
    assert np.abs(h[-1]).max() > 1
    assert_close(h, expected, 0.01 * dt**2)  # trapezoids
    s = random_state(heavy, 0)
    rate = space.momentum_rate(heavy, s.q, s.qdd)
    assert_close(
        rate[3:],
        (s.qdd[3:6] @ heavy.frame_pose(s.q, "base")[:3, :3].T)
        + heavy.total_mass * np.array([0.1, 0.0, -0.3]),
        10 * EPS,
    )


def test_reaction_mode_with_joints_to_spare_leaves_the_base_alone():
    """12 joints or more: the tool accelerates as it is told, the base not at all."""
    robot = zoo.space_arm(14)
    s, wanted = random_state(robot, 1), np.array([0.1, -0.2, 0.3, 0.5, 0.4, -0.6])
    motion = space.reaction_control(robot, s.q, 0.2 * s.qd, "tool", wanted, robot.joint_names[1:])
    assert_close(motion.qdd[:6], np.zeros(6), DAMPED)
    tool = robot.frame_acceleration(s.q, 0.2 * s.qd, motion.qdd, "tool")
    assert_close(tool, wanted, DAMPED)
    # and the forces make that motion, none of them on the base
    assert_close(motion.tau[:6], np.zeros(6), 0)
    again = robot.forward_dynamics(s.q, 0.2 * s.qd, motion.tau)
    assert_close(again, motion.qdd, 20 * EPS)


def test_reaction_mode_prefers_the_tool_and_then_the_base():
    s, wanted = random_state(ROBOT, 2), np.array([0.1, 0.2, -0.1, 0.3, 0.1, 0.2])
    rate = 0.1 * s.qd
    motion = space.reaction_control(ROBOT, s.q, rate, "tool", wanted, ARM)
    tool = ROBOT.frame_acceleration(s.q, rate, motion.qdd, "tool")
    assert_close(tool, wanted, DAMPED)
    plain = space.follow(
        ROBOT, s.q, rate, "tool", space.Target(np.eye(4), acceleration=wanted), ARM
    )
    assert np.linalg.norm(motion.qdd[:6]) < np.linalg.norm(plain.qdd[:6])
    # of all motions that move the tool so, none moves the base less
    J_G = ROBOT.generalized_jacobian(s.q, "tool", ARM)
    nothing = np.linalg.svd(J_G)[2][-1]
    moved = ROBOT.disturbance_jacobian(s.q, ARM) @ nothing
    assert abs(moved @ motion.qdd[:6]) < DAMPED * np.linalg.norm(moved)


@pytest.mark.parametrize("way", ["reaction_control", "follow"])
def test_thrusters_may_fire_meanwhile(way):
    """Whatever the force on the base, the tool moves as told, but for what damping leaves."""
    s, wanted = random_state(ROBOT, 3), np.array([0.1, 0.2, -0.1, 0.3, 0.1, 0.2])
    task = wanted if way == "reaction_control" else space.Target(np.eye(4), acceleration=wanted)
    still = np.zeros(ROBOT.nv)
    motion = getattr(space, way)(ROBOT, s.q, still, "tool", task, ARM, tau_passive=s.qdd)
    assert_close(motion.tau[:6], s.qdd[:6], 0)
    assert_close(ROBOT.frame_acceleration(s.q, still, motion.qdd, "tool"), wanted, DAMPED)
    assert_close(ROBOT.forward_dynamics(s.q, still, motion.tau), motion.qdd, 20 * EPS)


def test_the_null_space_is_left_to_a_wish():
    rng = np.random.default_rng(0)
    A, b, wish = rng.normal(size=(3, 7)), rng.normal(size=3), rng.normal(size=7)
    x = space.prioritized([(A, b)], wish)
    assert_close(A @ x, b, 20 * EPS)
    assert_close(x, wish + np.linalg.pinv(A) @ (b - A @ wish), 20 * EPS)
    # a second task that contradicts the first is met as far as it can be
    B = np.vstack([A[:1], rng.normal(size=(1, 7))])
    x = space.prioritized([(A, b), (B, np.array([b[0] + 1.0, 2.0]))], wish)
    assert_close(A @ x, b, DAMPED)
    assert_close(B[1] @ x, 2.0, DAMPED)


def test_the_tool_follows_its_trajectory_from_a_floating_base():
    """Paper U §6.2 in one kernel: off by no more than the steps are coarse."""
    start = ROBOT.integrate(ROBOT.neutral(), np.r_[np.zeros(6), 0.3, 1.0, 0.5, 1.2, 0.4, 1.0, 0.2])
    home = ROBOT.frame_pose(start, "tool")

    def circle(t):
        pose = np.array(home, dtype=object)
        pose[0, 3] = home[0, 3] + 0.03 * (1 - sin(t + np.pi / 2))
        pose[1, 3] = home[1, 3] + 0.03 * sin(t)
        velocity = np.array([0, 0, 0, 0.03 * sin(t), 0.03 * sin(t + np.pi / 2), 0])
        acceleration = np.array([0, 0, 0, 0.03 * sin(t + np.pi / 2), -0.03 * sin(t), 0])
        return space.Target(pose, velocity, acceleration)

    @ROBOT.rollout(state=("q", "qd", "t"))
    def run(q, qd, t, dt):
        calm = -2.0 * qd[6:]
        found = space.follow(ROBOT, q, qd, "tool", circle(t), ARM, 25.0, 10.0, wish=calm)
        qd = qd + dt * found.qdd
        return ROBOT.alg.integrate(q, dt * qd), qd, t + dt, found.tau

    target = ROBOT.compile(lambda t: circle(t).pose, t=())
    off = []
    for dt in (0.02, 0.01):
        qd = ROBOT.complete_motion(start, np.zeros(13), ARM)
        q, qd, t, tau = run(start, qd, 0.0, dt, steps=round(3.0 / dt))
        late = t > 2.0
        tool = ROBOT.frame_pose(q, "tool")[late, :3, 3]
        off.append(np.abs(tool - target(t)[late, :3, 3]).max())
        assert_close(tau[:, :6], np.zeros_like(tau[:, :6]), 0)
        # from rest and without thrust: no momentum but that of the integrator's error
        assert np.abs(ROBOT.momentum(q, qd)).max() < 0.2 * dt
    assert off[1] < 0.6 * off[0] < 1e-3


def test_the_base_is_held_outside_the_dead_band_only():
    pose, gains = np.eye(4), {"stiffness": (50.0, 80.0), "damping": (60.0, 120.0)}
    band = (0.05, 0.02)
    q = ROBOT.neutral()
    for offset, on in ((0.01, False), (0.03, True)):
        q[:3] = [offset, 0, 0]
        tau = space.base_control(ROBOT, q, np.zeros(13), pose, **gains, dead_band=band)
        expected = np.zeros(13)
        expected[3] = -80.0 * offset if on else 0.0
        assert_close(tau, expected, 10 * EPS)

    def law(t, q, qd):
        held = space.base_control(ROBOT, q, qd, pose, **gains, dead_band=band)
        return held + shaking(t, q, qd)

    start = ROBOT.integrate(ROBOT.neutral(), np.r_[0.3, 0, 0, 0.2, 0, 0, np.zeros(7)])
    motion = simulate(ROBOT, start, None, law, 20.0, 5e-3, every=20, compiled=True)
    away = np.linalg.norm(motion.q[motion.t > 10, :3], axis=1)
    assert away.max() < 0.15
    off = motion.tau[:, 3:6] == 0
    assert off.all(axis=1).any() and not off.all(axis=1).all()


def test_a_robot_that_is_fixed_has_no_base_to_control():
    with pytest.raises(ArgumentError, match="no base that floats"):
        space.momentum_rate(zoo.arm(2), np.zeros(2), np.zeros(2))


def test_arrays_of_another_shape_are_refused():
    q, qd, still = ROBOT.neutral(), np.zeros(ROBOT.nv), np.zeros(6)
    longer = np.zeros(ROBOT.nv + 1)
    calls = {
        "acceleration": lambda: space.reaction_control(ROBOT, q, qd, "tool", still[:3], ARM),
        "qd": lambda: space.reaction_control(ROBOT, q, longer, "tool", still, ARM),
        "q": lambda: space.follow(ROBOT, np.stack([q, q]), qd, "tool", np.eye(4), ARM),
        "pose": lambda: space.follow(ROBOT, q, qd, "tool", np.eye(3), ARM),
        "tau": lambda: space.momentum_rate(ROBOT, q, longer),
    }
    for name, call in calls.items():
        with pytest.raises(ArgumentError, match=f": {name} has shape .*one sample: robot.compile"):
            call()
    with pytest.raises(ArgumentError, match=r"A of shape \(2, 3\) and b of shape \(3,\)"):
        space.prioritized([(np.ones((2, 3)), np.ones(3))], np.zeros(3))
    with pytest.raises(ArgumentError, match="the wish has 9 entries"):
        space.reaction_control(ROBOT, q, qd, "tool", still, ARM, wish=np.zeros(9))


def test_a_pose_is_a_target_that_stays():
    s = random_state(ROBOT, 0)
    goal = ROBOT.frame_pose(s.q, "tool")
    given = (ROBOT, s.q, s.qd, "tool")
    one = space.follow(*given, goal, ARM, 4.0, 2.0)
    assert_close(one.tau, space.follow(*given, space.Target(goal), ARM, 4.0, 2.0).tau, 0.0)
