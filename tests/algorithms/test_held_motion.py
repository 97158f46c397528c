"""Impacts, driven joints, shared loads and friction cones of robots that are held."""

import numpy as np
import pytest

import hinge
from hinge import Contact, LoopConstraint, SingularError, zoo
from hinge.algebra.rotation import from_rpy
from mechanisms import EPS, ROBOTS, assert_close, random_state

FEET = tuple(Contact(f"{leg}_foot") for leg in ("FL", "FR", "RL", "RR"))
HELD = {
    "quadruped": FEET,
    "humanoid": (Contact("left_foot", "flat"), Contact("right_foot", "flat")),
    "tree1": (LoopConstraint("tip", "body4", (0, 1, 3, 4, 5)),),
    "gripper": (LoopConstraint("pad", "left", (5,)),),
}


@pytest.mark.parametrize("name", HELD)
def test_an_impact_keeps_momentum_and_takes_energy(name):
    """M (q̇⁺ − q̇) = Kᵀ Λ and K q̇⁺ = −e K q̇; what is lost is ½ (1 − e²) of what pushed."""
    robot, constraints = ROBOTS[name], HELD[name]
    s, e = random_state(robot, 1), 0.4
    back = np.full(len(constraints), e)
    hit = robot.alg.impulse_dynamics(s.q, s.qd, constraints, back)
    K, M = robot.alg.constraint_jacobian(s.q, constraints), robot.mass_matrix(s.q)
    scale = np.abs(M @ s.qd).max()
    assert_close(M @ (hit.qd_plus - s.qd), K.T @ hit.impulses, 1e4 * EPS, scale)
    assert_close(K @ hit.qd_plus, -e * K @ s.qd, 1e4 * EPS)
    lost = robot.kinetic_energy(s.q, s.qd) - robot.kinetic_energy(s.q, hit.qd_plus)
    pushed = np.linalg.lstsq(K @ np.linalg.solve(M, K.T), K @ s.qd, rcond=1e-12)[0]
    assert_close(lost, 0.5 * (1 - e * e) * (K @ s.qd) @ pushed, 1e5 * EPS, scale)


def test_impacts_in_a_batch_with_masks():
    robot = ROBOTS["quadruped"]
    s, masks = random_state(robot, 2), np.array([[1, 1, 0, 0], [0, 0, 0, 0]])
    found = robot.impulse_dynamics(s.q, s.qd, FEET, mask=masks)
    two = robot.alg.impulse_dynamics(s.q, s.qd, FEET[:2])
    assert_close(found.qd_plus[0], two.qd_plus, 1e3 * EPS)
    assert_close(found.impulses[0, :6], two.impulses, 1e3 * EPS)
    assert_close(found.qd_plus[1], s.qd, 10 * EPS)
    assert not found.impulses[1].any()


def test_one_foot_cannot_bounce_in_two_ways():
    robot = ROBOTS["quadruped"]
    s = random_state(robot, 2)
    twice = FEET[:1] * 2
    for call in (robot.impulse_dynamics, robot.alg.impulse_dynamics):
        with pytest.raises(SingularError, match="impulse_dynamics of .* no motion keeps 'FL_foot'"):
            call(s.q, s.qd, twice, np.array([0.0, 1.0]))
    either = robot.alg.impulse_dynamics(
        s.q, s.qd, twice, np.array([0.0, 1.0]), mask=np.array([1, 0])
    )
    first = robot.alg.impulse_dynamics(s.q, s.qd, FEET[:1])
    assert_close(either.qd_plus, first.qd_plus, 1e3 * EPS)
    same = robot.alg.impulse_dynamics(s.q, s.qd, twice, np.array([0.5, 0.5]))
    once = robot.alg.impulse_dynamics(s.q, s.qd, FEET[:1], np.array([0.5]))
    assert_close(same.qd_plus, once.qd_plus, 1e3 * EPS)


@pytest.mark.parametrize("name", HELD)
def test_driven_joints_move_as_told_and_the_rest_is_held(name):
    robot, constraints = ROBOTS[name], HELD[name]
    s, active = random_state(robot, 3), np.arange(robot.nv) % 4 == 3
    tau = np.cos(np.arange(robot.nv))
    found = robot.alg.constrained_hybrid_dynamics(
        s.q, s.qd, s.qdd, tau, constraints, active, s.f_ext
    )
    assert_close(found.qdd[active], s.qdd[active], 0.0)
    assert_close(found.tau[~active], tau[~active], 0.0)
    again = robot.alg.constrained_forward_dynamics(s.q, s.qd, found.tau, constraints, s.f_ext)
    assert_close(again.qdd, found.qdd, 1e6 * EPS)
    assert_close(again.forces, found.forces, 1e6 * EPS)


def test_a_split_of_none_is_forward_dynamics():
    robot = ROBOTS["quadruped"]
    s = random_state(robot, 3)
    found = robot.constrained_hybrid_dynamics(s.q, s.qd, s.qdd, s.qdd, FEET, ())
    plain = robot.constrained_forward_dynamics(s.q, s.qd, s.qdd, FEET)
    assert_close(found.qdd, plain.qdd, 1e3 * EPS)


LEGS = tuple(n for n in ROBOTS["quadruped"].joint_names if n[:2] in ("FL", "FR", "RL", "RR"))


def test_who_carries_what():
    """The forces found are those of the motion; with other weights others carry more."""
    robot = ROBOTS["quadruped"]
    s = random_state(robot, 4)
    motion = robot.constrained_forward_dynamics(s.q, s.qd, np.r_[np.zeros(6), s.qdd[6:]], FEET)
    M, bias = robot.mass_matrix(s.q), robot.bias_forces(s.q, s.qd)
    K = robot.alg.constraint_jacobian(s.q, FEET)
    needed = M @ motion.qdd + bias
    given = s.q, s.qd, motion.qdd, FEET, LEGS
    plain = robot.constrained_inverse_dynamics(*given)
    soft = robot.constrained_inverse_dynamics(
        *given, tau_weights=np.full(robot.nv, 1e-3), force_weights=np.ones(12)
    )
    for found in (plain, soft):
        assert_close(found.tau + K.T @ found.forces, needed, 1e5 * EPS)
        assert not found.tau[:6].any()
    assert np.linalg.norm(plain.tau) < np.linalg.norm(soft.tau)
    assert np.linalg.norm(soft.forces) < np.linalg.norm(plain.forces)
    # the least of all: no change along what is free makes it less
    B = K[:, :6].T
    free = np.linalg.svd(B)[2][6:]
    slope = 1e-4 * plain.forces - K[:, 6:] @ plain.tau[6:]
    assert_close(free @ slope, np.zeros(len(free)), 1e5 * EPS, np.abs(needed).max())


def test_feet_that_do_not_act_carry_nothing():
    robot, still = ROBOTS["quadruped"], np.zeros(18)
    q = robot.neutral()
    found = robot.constrained_inverse_dynamics(q, still, still, FEET, LEGS, mask=[1, 1, 1, 0])
    assert_close(found.forces.reshape(4, 3).sum(axis=0)[2], 9.81 * robot.total_mass, 1e4 * EPS)
    assert not found.forces[9:].any()
    # nothing else holds it up
    for call in (robot.constrained_inverse_dynamics, robot.alg.constrained_inverse_dynamics):
        with pytest.raises(SingularError, match="can give the passive joint .* the force that"):
            call(q, still, still, FEET, LEGS, mask=np.zeros(4))


@pytest.mark.parametrize("active", [np.ones(7), np.arange(7) < 6])
def test_a_hand_that_is_driven_cannot_be_held(active):
    """Rows that no passive joint moves: λ is known to be 0, whatever the hand does."""
    arm, still = zoo.arm(7), np.zeros(7)
    q = arm.random_configuration(0)
    given = q, still, np.ones(7), still, (Contact("tool"),), active
    for call in (arm.constrained_hybrid_dynamics, arm.alg.constrained_hybrid_dynamics):
        with pytest.raises(SingularError, match="no motion keeps 'tool' on 'world'"):
            call(*given)
    batch = arm.constrained_hybrid_dynamics(np.array([q, q]), *given[1:])
    assert all(np.isnan(x).all() for x in batch)


def tilted(turn):
    """A turntable with an arm on it, and a gantry, all on a foot that stands obliquely or not."""
    b = hinge.MechanismBuilder("tilted", gravity=turn.rotation @ (0, 0, -9.8))
    solid = hinge.Inertia(1.0, (0.1, 0, 0), 0.1 * np.eye(3))
    b.add("x", "world", hinge.Prismatic((1, 0, 0)), placement=turn, inertia=solid)
    b.add("y", "x", hinge.Prismatic((0, 1, 0)), inertia=solid)
    b.add_frame("tip", "y")
    b.add_frame("foot", "world", turn)
    b.add("table", "world", hinge.Revolute((0, 0, 1)), placement=turn, inertia=solid)
    b.add("arm", "table", hinge.Revolute((0, 1, 0)), inertia=solid)
    return hinge.Robot(b.build())


@pytest.mark.parametrize("turn", [(0, 0, 0), (0.3, -0.4, 0.7), (1.0, 2.0, 3.0)])
def test_who_carries_what_is_not_left_to_rounding(turn):
    """Of what cannot push, and of what need not, only rounding is left."""
    robot = tilted(hinge.Transform(from_rpy(*turn)))
    hold, still = LoopConstraint("tip", "foot", (3,)), np.zeros(4)
    q = np.array([0.1, 0.2, 0.3, 0.4])
    for call in (robot.constrained_inverse_dynamics, robot.alg.constrained_inverse_dynamics):
        # nothing needs a force but the arm; what holds x is not driven, and need not be
        found = call(q, still, still, (hold,), ("arm_joint",))
        assert_close(found.tau, robot.inverse_dynamics(q, still, still), 1e3 * EPS)
        with pytest.raises(SingularError, match="can give the passive joint 'y_joint'"):
            call(q, still, np.array([0.0, 1.0, 0.0, 0.0]), (hold,), ("x_joint", "arm_joint"))


def test_cones_know_when_feet_slide_tip_or_twist():
    robot = zoo.quadruped()
    feet = [
        Contact("FL_foot", friction=0.5),
        Contact("FR_foot", "flat", friction=0.5, extent=(0.2, 0.1)),
        Contact("RL_foot", "line", friction=0.5, extent=(0.2, 0.1)),
        Contact("RR_foot", "weld"),
    ]
    forces = np.array([3, 4, 10.0, 0.5, -1, 0.2, 1, 0, 10.0, 0.5, 0.2, 1, 0, 10.0, *range(6)])
    got = robot.friction_residuals(forces, feet)
    point, flat, line = got[:2], got[2:8], got[8:]
    assert_close(point, [10.0, 0.0], EPS, 10.0)
    # |m_y| of 2, |m_x| of 1; yaw between −1.5 + |0.1 − 0.25| + 0.5 and 1.5 − |0.1 + 0.25| − 0.5
    expected = [10.0, 4.0, 1.0, 0.5, 0.2 + 0.85, 0.65 - 0.2]
    assert_close(flat, expected, 10 * EPS)
    assert_close(line, [10.0, 4.0, 0.5, 0.2 + 0.35, 0.15 - 0.2], 10 * EPS)
    assert_close(robot.friction_residuals(np.array([forces, forces]), feet)[1], got, 0.0)


def test_the_yaw_that_a_rectangle_can_hold_is_that_of_its_corners():
    """Forces of corners, each in its cone, are in the cone of the whole; and its edge is met."""
    X, Y, mu = 0.2, 0.1, 0.6
    foot = Contact("tip", "flat", friction=mu, extent=(X, Y))
    robot, rng = zoo.arm(3), np.random.default_rng(0)
    corners = np.array([(x, y, 0.0) for x in (-X, X) for y in (-Y, Y)])
    least = np.inf
    for _ in range(200):
        push = rng.uniform(0, 1, 4)
        aside = rng.uniform(-1, 1, (4, 2)) * mu * push[:, None] / np.sqrt(2)
        f = np.column_stack([aside, push])
        wrench = np.r_[np.cross(corners, f).sum(axis=0), f.sum(axis=0)]
        left = robot.alg.friction_residuals(wrench, [foot])
        assert left.min() > -1e-12
        least = min(least, left[4:].min())
    # all corners pushed round as hard as the inner pyramid allows
    f = np.column_stack([mu * -np.sign(corners[:, 1]), mu * np.sign(corners[:, 0]), np.ones(4)])
    wrench = np.r_[np.cross(corners, f).sum(axis=0), f.sum(axis=0)]
    assert_close(robot.alg.friction_residuals(wrench, [foot])[5], 0.0, 20 * EPS, 1.0)
    assert least > 0


def test_a_mask_says_yes_or_no():
    robot = ROBOTS["quadruped"]
    s, half = random_state(robot, 1), np.array([1, 0.5, 1, 1])
    calls = [
        lambda m: robot.constrained_forward_dynamics(s.q, s.qd, s.qdd, FEET, mask=m),
        lambda m: robot.impulse_dynamics(s.q, s.qd, FEET, mask=m),
        lambda m: robot.constrained_inverse_dynamics(s.q, s.qd, s.qdd, FEET, LEGS, mask=m),
    ]
    for call in calls:
        with pytest.raises(
            hinge.ArgumentError, match=r"mask is \[1.0, 0.5, 1.0, 1.0\]; expected 1"
        ):
            call(half)
        batch = call(np.array([half, np.ones(4)]))
        assert all(np.isnan(x[0]).all() and np.isfinite(x[1]).all() for x in batch)


def test_what_is_given_per_constraint_has_its_length():
    robot = zoo.arm(3)
    x, c = np.ones(3), [LoopConstraint("tool", "world", (3,))]
    with pytest.raises(hinge.ArgumentError, match=r"mask has shape \(2,\); expected shape \(…, 1"):
        robot.constrained_forward_dynamics(x, x, x, c, mask=[1, 1])
    with pytest.raises(hinge.ArgumentError, match=r"restitution has shape \(\); expected shape"):
        robot.impulse_dynamics(x, x, c, 0.5)
    with pytest.raises(
        hinge.ArgumentError, match=r"forces has shape \(2,\); expected shape \(…, 1"
    ):
        robot.friction_residuals([1, 2], c)
