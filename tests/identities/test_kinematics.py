"""Laws of frames, velocities, accelerations and configurations."""

import numpy as np
import pytest

from mechanisms import EPS, JOINTS, ROBOTS, along, assert_close, complex_step, random_state

REFERENCES = ("aligned", "body", "world")
ON_EVERY_ROBOT = pytest.mark.parametrize(
    ("name", "seed"), [(name, seed) for name in ROBOTS for seed in (0, 1)]
)


def last_frame(robot):
    return robot.frame_names[-1]


@ON_EVERY_ROBOT
@pytest.mark.parametrize("reference", REFERENCES)
def test_velocity_is_jacobian_times_rates(name, seed, reference):
    robot, s = ROBOTS[name], random_state(ROBOTS[name], seed)
    frame = last_frame(robot)
    J = robot.jacobian(s.q, frame, reference)
    assert_close(robot.frame_velocity(s.q, s.qd, frame, reference), J @ s.qd, 50 * EPS)


@ON_EVERY_ROBOT
@pytest.mark.parametrize("reference", REFERENCES)
def test_acceleration_is_the_rate_of_velocity(name, seed, reference):
    robot, s = ROBOTS[name], random_state(ROBOTS[name], seed)
    frame = last_frame(robot)
    rate = complex_step(
        lambda h: robot.alg.frame_velocity(
            along(robot, s.q, s.qd)(h), s.qd + h * s.qdd, frame, reference
        )
    )
    a = robot.frame_acceleration(s.q, s.qd, s.qdd, frame, reference)
    assert_close(a, rate, 100 * EPS)
    product = robot.velocity_product_acceleration(s.q, s.qd, frame, reference)
    assert_close(robot.jacobian(s.q, frame, reference) @ s.qdd + product, rate, 100 * EPS)


@ON_EVERY_ROBOT
def test_aligned_velocity_is_the_rate_of_the_pose(name, seed):
    robot, s = ROBOTS[name], random_state(ROBOTS[name], seed)
    frame = last_frame(robot)
    X = robot.frame_pose(s.q, frame)
    rate = complex_step(lambda h: robot.alg.frame_pose(along(robot, s.q, s.qd)(h), frame))
    V = robot.frame_velocity(s.q, s.qd, frame)
    spin = rate[:3, :3] @ X[:3, :3].T
    assert_close(np.array([spin[2, 1], spin[0, 2], spin[1, 0]]), V[:3], 100 * EPS)
    assert_close(rate[:3, 3], V[3:], 100 * EPS)


@ON_EVERY_ROBOT
def test_poses_are_the_frame_poses_of_bodies(name, seed):
    robot, s = ROBOTS[name], random_state(ROBOTS[name], seed)
    expected = [robot.alg.frame_pose(s.q, body) for body in robot.body_names]
    assert_close(robot.poses(s.q), np.array(expected).reshape(-1, 4, 4), 20 * EPS)


@ON_EVERY_ROBOT
def test_center_of_mass_moves_with_the_momentum(name, seed):
    robot, s = ROBOTS[name], random_state(ROBOTS[name], seed)
    if robot.total_mass == 0:
        pytest.skip("no mass moves")
    rate = complex_step(lambda h: robot.alg.center_of_mass(along(robot, s.q, s.qd)(h)))
    h = robot.momentum(s.q, s.qd)
    assert_close(h[3:], robot.total_mass * rate, 100 * EPS)
    world = robot.momentum(s.q, s.qd, about="world")
    moved = h[:3] + np.cross(robot.center_of_mass(s.q), h[3:])
    assert_close(world, np.concatenate([moved, h[3:]]), 100 * EPS)


@ON_EVERY_ROBOT
def test_difference_undoes_integrate(name, seed):
    robot, s = ROBOTS[name], random_state(ROBOTS[name], seed)
    there = robot.integrate(s.q, s.qd)
    # rotations by less than half a turn are the shortest way
    small = s.qd / max(1.0, np.abs(s.qd).max(initial=0.0))
    assert_close(robot.difference(s.q, robot.integrate(s.q, small)), small, 50 * EPS)
    back = robot.integrate(s.q, robot.difference(s.q, there))
    assert_close(robot.poses(back), robot.poses(there), 200 * EPS)


@pytest.mark.parametrize("kind", JOINTS)
def test_hinge_map_is_the_rate_of_the_pose(kind):
    joint = JOINTS[kind]
    rng = np.random.default_rng(3)
    q, v = joint.random(rng), rng.normal(size=joint.nv)
    R, p = joint.pose(q)
    rate = [complex_step(lambda h, i=i: joint.pose(joint.integrate(q, h * v))[i]) for i in range(2)]
    spin = R.T @ rate[0]
    twist = np.array([spin[2, 1], spin[0, 2], spin[1, 0], *(R.T @ rate[1])])
    assert_close(joint.H(q).T @ v, twist, 20 * EPS)
    H_rate = complex_step(lambda h: joint.H(joint.integrate(q, h * v)))
    assert_close(joint.H_rate(q, v), H_rate, 20 * EPS)


@pytest.mark.parametrize("kind", JOINTS)
@pytest.mark.parametrize("size", [0.0, 1e-12, 1e-7, 1e-3, 1.0, 3.0])
def test_difference_undoes_integrate_at_every_size(kind, size):
    joint = JOINTS[kind]
    rng = np.random.default_rng(5)
    q, v = joint.random(rng), rng.normal(size=joint.nv)
    v = size * v / np.linalg.norm(v)
    got = joint.difference(q, joint.integrate(q, v))
    assert_close(got, v, 20 * EPS, scale=max(1.0, np.abs(q).max()))


@pytest.mark.parametrize("kind", ["spherical", "planar", "free"])
def test_tangent_rate_is_fourth_order(kind):
    """integrate(q, u(t)) moves with v if u̇ = tangent_rate(u, v): the defect falls as |u|⁴."""
    joint = JOINTS[kind]
    rng = np.random.default_rng(6)
    q, u, v = joint.random(rng), rng.normal(size=joint.nv), rng.normal(size=joint.nv)

    def defect(size):
        rate = joint.tangent_rate(size * u, v)
        here = joint.integrate(q, size * u)
        moved = complex_step(
            lambda h: joint.difference(here, joint.integrate(q, size * u + h * rate))
        )
        return np.abs(moved - v).max()

    assert 12 < defect(0.2) / defect(0.1) < 20


@pytest.mark.parametrize("kind", ["spherical", "free"])
def test_half_turns_are_not_lost(kind):
    joint = JOINTS[kind]
    q0, q1 = joint.neutral(), joint.neutral()
    q1[-4:] = (0, 0, 1, 0)
    turn = joint.difference(q0, q1)[:3]
    assert_close(np.linalg.norm(turn), np.pi, 4 * EPS)


@pytest.mark.parametrize("kind", ["spherical", "free"])
def test_quaternions_need_not_be_unit(kind):
    joint = JOINTS[kind]
    rng = np.random.default_rng(8)
    q = joint.random(rng)
    longer = q.copy()
    longer[-4:] *= 3.0
    for a, b in zip(joint.pose(q), joint.pose(longer), strict=True):
        assert_close(a, b, 10 * EPS)
