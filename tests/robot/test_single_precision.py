"""Solvers in single precision find what those in double precision find, to what it can tell."""

import numpy as np
import pytest

import hinge
from hinge import Contact, Robot, edit, zoo
from mechanisms import ROBOTS, assert_close

FEET = tuple(Contact(f"{leg}_foot") for leg in ("FL", "FR", "RL", "RR"))
SOLES = Contact("left_foot", "flat"), Contact("right_foot", "flat")
SINGLE = float(np.finfo(np.float32).eps)
# rows that depend on others, and what is solved for, in roundings
REDUNDANT = {
    "two contacts on a foot": (ROBOTS["quadruped"], (*FEET, *FEET[:2]), 1e2),
    "points on soles": (ROBOTS["humanoid"], (*SOLES, Contact("left_foot")), 1e4),
    "an arm of four at a pose": (zoo.arm(4), (Contact("tool", "weld"),), 1e4),
}


def states(robot, n, seed=0):
    rng = np.random.default_rng(seed)
    q = np.array([robot.random_configuration(rng) for _ in range(n)])
    return q, rng.normal(size=(n, robot.nv)), rng.normal(size=(n, robot.nv))


def in_single(x):
    return np.asarray(x).astype(np.float32)


@pytest.mark.parametrize("joints", [4, 6, 7])
def test_rates_of_a_frame_are_as_near_as_in_double_precision(joints):
    """Within limits, singular or not: what is missed is as little, to 1 % of what was wanted."""
    arm = zoo.arm(joints)
    single, (q, _, _) = Robot(arm.mechanism, "float32"), states(arm, 200)
    wanted = np.random.default_rng(1).normal(size=(200, 6))
    exact = arm.differential_inverse_kinematics(q, wanted, "tool")
    found = single.differential_inverse_kinematics(in_single(q), in_single(wanted), "tool")
    J = arm.jacobian(q, "tool")
    missed = [np.linalg.norm(J @ x[..., None] - wanted[..., None], axis=1) for x in (exact, found)]
    assert (missed[1] <= missed[0] + 0.01 * np.linalg.norm(wanted, axis=1)[:, None]).all()
    for row in range(20):
        alone = single.differential_inverse_kinematics(
            in_single(q[row]), in_single(wanted[row]), "tool"
        )
        assert_close(alone, found[row], 1e4 * SINGLE)


def test_rates_of_a_frame_in_millimetres():
    """J Jᵀ has entries of 1e6 there, beside which a damping of 1e-8 is rounding."""
    arm = zoo.arm(7)
    small = edit.rescale(arm, length=1e3)
    q, _, _ = states(arm, 100)
    wanted = np.random.default_rng(1).normal(size=(100, 6))
    for robot in (small, Robot(small.mechanism, "float32")):
        found = robot.differential_inverse_kinematics(
            q.astype(robot.dtype), (wanted * ([1] * 3 + [1e3] * 3)).astype(robot.dtype), "tool"
        )
        assert np.isfinite(found).all()
        assert (np.abs(found) <= arm.velocity_limit * (1 + 1e-6)).all()


@pytest.mark.parametrize("which", REDUNDANT)
def test_redundant_rows_hold_in_single_precision(which):
    robot, held, most = REDUNDANT[which]
    single, (q, qd, tau) = Robot(robot.mechanism, "float32"), states(robot, 30)
    still = 0 * qd
    for name, given in {
        "constrained_forward_dynamics": (q, still, tau),
        "impulse_dynamics": (q, qd),
        "constrained_hybrid_dynamics": (q, still, still, tau),
    }.items():
        more = {"active": (False,) * robot.nv} if name == "constrained_hybrid_dynamics" else {}
        exact = getattr(robot, name)(*given, constraints=held, **more)
        found = getattr(single, name)(*map(in_single, given), constraints=held, **more)
        of = 1 if more else 0
        scale = np.abs(exact[of]).max(axis=1, keepdims=True) + 1
        assert_close(found[of] / scale, exact[of] / scale, most * SINGLE, what=name)


@pytest.mark.parametrize("which", ["two contacts on a foot", "points on soles"])
def test_changes_of_redundant_rows_in_single_precision(which):
    robot, held, _ = REDUNDANT[which]
    single, (q, qd, tau) = Robot(robot.mechanism, "float32"), states(robot, 20)
    for name, given in {
        "constrained_forward_dynamics_derivatives": (q, 0 * qd, tau),
        "impulse_dynamics_derivatives": (q, qd),
    }.items():
        exact = getattr(robot, name)(*given, constraints=held)
        found = getattr(single, name)(*map(in_single, given), constraints=held)
        for x, y in list(zip(found, exact, strict=True))[:2]:
            scale = np.abs(y).max(axis=(1, 2), keepdims=True) + 1
            assert_close(x / scale, y / scale, 2e-3, what=name)


def test_contradictions_are_seen_in_single_precision():
    """Every leg is driven while its foot is to stay."""
    robot = Robot(ROBOTS["quadruped"].mechanism, "float32")
    q, qd, tau = map(in_single, states(robot, 30))
    driven = tuple(i >= 6 for i in range(robot.nv))
    batch = robot.constrained_hybrid_dynamics(q, 0 * qd, tau, tau, (*FEET, FEET[0]), driven)
    assert np.isnan(batch.qdd).all()
    with pytest.raises(hinge.SingularError, match="no motion keeps"):
        robot.constrained_hybrid_dynamics(q[0], 0 * qd[0], tau[0], tau[0], FEET, driven)
