"""Hybrid dynamics and generalized Jacobians against dense algebra, motion and momentum."""

from dataclasses import replace

import numpy as np
import pytest

from dense import condition
from hinge import ArgumentError, Robot, zoo
from hinge.algebra.spatial import cross_force
from mechanisms import (
    EPS,
    ROBOTS,
    Generic,
    along,
    assert_close,
    complex_step,
    random_mask,
    random_state,
)

SEEDS = (0, 1, 2)


def dense(robot, q, mask):
    """S_aa, S_ap, S_pp from the mass matrix."""
    M = Generic(robot).mass_matrix(q)
    a, p = mask, ~mask
    S_pp = np.linalg.inv(M[np.ix_(p, p)])
    S_ap = M[np.ix_(a, p)] @ S_pp
    return M[np.ix_(a, a)] - S_ap @ M[np.ix_(p, a)], S_ap, S_pp


def conditioning(robot, q):
    """How much of eps the solution of M x = b may lose."""
    return condition(Generic(robot).mass_matrix(q))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", ROBOTS)
def test_hybrid_dynamics_is_the_schur_complement(name, seed):
    robot, s = ROBOTS[name], random_state(ROBOTS[name], seed)
    mask, given = random_mask(robot, 1000 + seed), np.random.default_rng(seed).normal(size=robot.nv)
    bias = Generic(robot).bias_forces(s.q, s.qd, s.f_ext)
    S_aa, S_ap, S_pp = dense(robot, s.q, mask)
    pushed = given[~mask] - bias[~mask]
    qdd, tau = s.qdd.copy(), given.copy()
    qdd[~mask] = -S_ap.T @ s.qdd[mask] + S_pp @ pushed
    tau[mask] = S_aa @ s.qdd[mask] + S_ap @ pushed + bias[mask]
    got = robot.alg.hybrid_dynamics(s.q, s.qd, s.qdd, given, mask, s.f_ext)
    bound = 20 * EPS * conditioning(robot, s.q)
    assert_close(got.qdd, qdd, bound)
    assert_close(got.tau, tau, bound)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", ROBOTS)
def test_blocks_are_the_dense_ones(name, seed):
    robot, q = ROBOTS[name], random_state(ROBOTS[name], seed).q
    mask = random_mask(robot, 1000 + seed)
    S_aa, S_ap, S_pp = dense(robot, q, mask)
    bound = 20 * EPS * conditioning(robot, q)
    blocks = robot.alg.schur_blocks(q, mask)
    assert_close(blocks.aa, S_aa, bound)
    assert_close(blocks.ap, S_ap, bound)
    assert_close(blocks.pp, S_pp, bound)
    assert_close(robot.alg.active_inertia(q, mask), S_aa, bound)
    assert_close(robot.alg.disturbance_jacobian(q, mask), -S_ap.T, bound)
    frame, J = robot.frame_names[-1], Generic(robot).jacobian(q, robot.frame_names[-1])
    J_G = robot.alg.generalized_jacobian(q, frame, mask)
    assert_close(J_G, J[:, mask] - J[:, ~mask] @ S_ap.T, bound)
    assert np.linalg.eigvalsh(np.array(blocks.aa)).min(initial=1.0) > 0


@pytest.mark.parametrize("name", ROBOTS)
def test_accelerations_are_jacobians_and_biases(name):
    robot, s = ROBOTS[name], random_state(ROBOTS[name], 3)
    mask, frame = random_mask(robot, 1003), robot.frame_names[-1]
    tau = np.random.default_rng(3).normal(size=robot.nv)
    motion = robot.alg.hybrid_dynamics(s.q, s.qd, s.qdd, tau, mask, s.f_ext)
    bound = 20 * EPS * conditioning(robot, s.q)
    bias_p = robot.alg.disturbance_bias(s.q, s.qd, tau, mask, s.f_ext)
    J_D = robot.alg.disturbance_jacobian(s.q, mask)
    assert_close(J_D @ s.qdd[mask] + bias_p, motion.qdd[~mask], bound)
    for reference in ("aligned", "body", "world"):
        J_G = robot.alg.generalized_jacobian(s.q, frame, mask, reference)
        bias = robot.alg.generalized_bias(s.q, s.qd, tau, frame, mask, reference, s.f_ext)
        expected = Generic(robot).frame_acceleration(s.q, s.qd, motion.qdd, frame, reference)
        assert_close(J_G @ s.qdd[mask] + bias, expected, bound)


@pytest.mark.parametrize("name", ROBOTS)
def test_velocities_from_active_rates_and_momentum(name):
    robot, s = ROBOTS[name], random_state(ROBOTS[name], 4)
    mask, frame = random_mask(robot, 1004), robot.frame_names[-1]
    h = robot.alg.generalized_momentum(s.q, s.qd)
    assert_close(h, Generic(robot).mass_matrix(s.q) @ s.qd, 100 * EPS)
    bound = 20 * EPS * conditioning(robot, s.q)
    nonsense = np.where(mask, s.qd, 7.0)
    assert_close(robot.alg.complete_motion(s.q, nonsense, mask, h), s.qd, bound)
    V = Generic(robot).frame_velocity(s.q, s.qd, frame)
    assert_close(robot.alg.generalized_motion(s.q, nonsense, frame, mask, h), V, bound)
    # without momentum: J_D and J_G times a vector
    qd = robot.alg.complete_motion(s.q, nonsense, mask)
    assert_close(qd[~mask], robot.alg.disturbance_jacobian(s.q, mask) @ s.qd[mask], bound)
    J_G = robot.alg.generalized_jacobian(s.q, frame, mask)
    V = robot.alg.generalized_motion(s.q, nonsense, frame, mask)
    assert_close(V, J_G @ s.qd[mask], bound)


@pytest.mark.parametrize("name", ROBOTS)
def test_all_active_and_all_passive_are_the_dedicated_algorithms(name):
    robot, s = ROBOTS[name], random_state(ROBOTS[name], 5)
    generic, everything = Generic(robot), np.ones(robot.nv, dtype=bool)
    bound = 20 * EPS * conditioning(robot, s.q)
    got = robot.alg.hybrid_dynamics(s.q, s.qd, s.qdd, s.qd, everything, s.f_ext)
    assert_close(got.tau, generic.inverse_dynamics(s.q, s.qd, s.qdd, s.f_ext), 20 * EPS)
    assert_close(got.qdd, s.qdd, 0)
    got = robot.alg.hybrid_dynamics(s.q, s.qd, s.qdd, s.qd, ~everything, s.f_ext)
    assert_close(got.qdd, generic.forward_dynamics(s.q, s.qd, s.qd, s.f_ext), bound)
    assert_close(got.tau, s.qd, 0)


@pytest.mark.parametrize("name", ["tree0", "tree1", "snake", "gripper", "acrobot"])
def test_derivatives_are_those_of_complex_steps(name):
    robot, s = ROBOTS[name], random_state(ROBOTS[name], 8)
    mask, given = random_mask(robot, 1008), np.random.default_rng(8).normal(size=robot.nv)

    def found(q, qd, x):
        tau, qdd = robot.alg.hybrid_dynamics(q, qd, x, x, mask, s.f_ext)
        return np.where(mask, tau, qdd)

    steps = {
        "dq": lambda e: lambda h: found(along(robot, s.q, e)(h), s.qd, given),
        "dqd": lambda e: lambda h: found(s.q, s.qd + h * e, given),
        "dgiven": lambda e: lambda h: found(s.q, s.qd, given + h * e),
    }
    got = robot.alg.hybrid_dynamics_derivatives(s.q, s.qd, given, given, mask, s.f_ext)
    for part, step in steps.items():
        expected = np.array([complex_step(step(e)) for e in np.eye(robot.nv)]).T
        assert_close(getattr(got, part), expected, 100 * EPS * conditioning(robot, s.q))
    d = np.random.default_rng(9).normal(size=(3, robot.nv))
    change = robot.alg.hybrid_dynamics_jvp(s.q, s.qd, given, given, *d, mask, s.f_ext)
    along_d = complex_step(
        lambda h: found(along(robot, s.q, d[0])(h), s.qd + h * d[1], given + h * d[2])
    )
    assert_close(change, along_d, 100 * EPS * conditioning(robot, s.q))


def test_derivatives_through_the_front_door():
    robot, s = zoo.space_arm(2), random_state(zoo.space_arm(2), 0)
    mask, given = random_mask(robot, 1000), (s.q, s.qd, s.qdd, s.qd)
    expected = robot.alg.hybrid_dynamics_derivatives(*given, mask, s.f_ext)
    fixed = robot.hybrid_dynamics_derivatives(*given, mask, s.f_ext)
    blended = robot.hybrid_dynamics_derivatives(*given, mask[None], s.f_ext)
    for part in ("dq", "dqd", "dgiven"):
        assert_close(getattr(fixed, part), getattr(expected, part), 20 * EPS)
        assert_close(getattr(blended, part)[0], getattr(expected, part), 20 * EPS)


# the front door

LONG = zoo.snake(45)  # in loops
DOORS = {"tree": zoo.tree(3, 6), "gripper": ROBOTS["gripper"], "long": LONG}


@pytest.mark.parametrize("name", DOORS)
def test_compiled_splits_agree_with_the_generic_code(name):
    robot, s = DOORS[name], random_state(DOORS[name], 6)
    mask = random_mask(robot, 1006)
    tau = np.random.default_rng(6).normal(size=robot.nv)
    given = (s.q, s.qd, s.qdd, tau)
    expected = robot.alg.hybrid_dynamics(*given, mask, s.f_ext)
    bound = 20 * EPS * conditioning(robot, s.q)
    for got in (
        robot.hybrid_dynamics(*given, mask, s.f_ext),
        robot.hybrid_dynamics(*given, mask.tolist(), f_ext=s.f_ext),
        [x[0] for x in robot.hybrid_dynamics(*given, mask[None], s.f_ext)],
    ):
        assert_close(got[0], expected.tau, bound)
        assert_close(got[1], expected.qdd, bound)


@pytest.mark.parametrize("name", DOORS)
def test_changes_in_one_direction_are_compiled(name):
    robot, s = DOORS[name], random_state(DOORS[name], 7)
    mask, d = random_mask(robot, 1007), np.random.default_rng(7).normal(size=(4, robot.nv))
    given = (s.q, s.qd, s.qdd, d[0])
    expected = robot.alg.hybrid_dynamics_jvp(*given, *d[1:], mask, s.f_ext)
    bound = 50 * EPS * conditioning(robot, s.q)
    assert_close(robot.hybrid_dynamics_jvp(*given, *d[1:], mask, s.f_ext), expected, bound)
    blended = robot.hybrid_dynamics_jvp(*given, *d[1:], mask[None], s.f_ext)
    assert_close(blended[0], expected, bound)


def test_matrices_of_a_long_split_come_by_columns():
    """Batches, one sample, a sample that is not finite, out, every spelling of the split."""
    robot, rng = LONG, np.random.default_rng(11)
    mask, frame = random_mask(robot, 1011).astype(bool), LONG.frame_names[-1]
    q, (qd, x) = robot.random_configuration(rng, (3,)), rng.normal(size=(2, 3, robot.nv))
    joints = [b.joint_name for b in robot.mechanism.bodies[1:]]
    named = [n for n in joints if robot.v_slice(n).stop - robot.v_slice(n).start == 1][::2]
    asked = [
        ("active_inertia", (q,), {"active": mask}),
        ("disturbance_jacobian", (q,), {"active": mask.tolist()}),
        ("generalized_jacobian", (q,), {"active": named, "frame": frame, "reference": "body"}),
        ("hybrid_dynamics_derivatives", (q, qd, x, x), {"active": mask}),
    ]
    for name, arrays, split in asked:
        assert "column by column" in robot.explain(name, **split)
        call, plain = getattr(robot, name), getattr(robot.alg, name)
        got = as_tuple(call(*arrays, **split))
        one = as_tuple(call(*(a[1] for a in arrays), **split))
        expected = as_tuple(plain(*(a[1] for a in arrays), **split))
        for a, b, c in zip(got, one, expected, strict=True):
            assert_close(a[1], c, 50 * EPS * conditioning(robot, q[1]))
            assert_close(b, c, 50 * EPS * conditioning(robot, q[1]))
        out = tuple(np.empty_like(a) for a in got)
        call(*arrays, **split, out=out if len(out) > 1 else out[0])
        np.testing.assert_equal(out, got)
        spoiled = q.copy()
        spoiled[0, 9] = np.nan
        for a, b in zip(as_tuple(call(spoiled, *arrays[1:], **split)), got, strict=True):
            assert np.isnan(a[0]).all() and np.array_equal(a[1:], b[1:])
        with pytest.raises(ArgumentError, match=rf"{name} of .* q\[9\] is nan"):
            call(spoiled[0], *(a[0] for a in arrays[1:]), **split)


def as_tuple(x):
    return x if isinstance(x, tuple) else (x,)


def test_every_sample_may_have_its_own_split():
    robot = zoo.space_arm(3)
    states = [random_state(robot, i) for i in range(5)]
    q, qd, qdd = (np.array([getattr(s, n) for s in states]) for n in ("q", "qd", "qdd"))
    tau, masks = robot.inverse_dynamics(q, qd, qdd), np.random.default_rng(0).random(qd.shape) < 0.7
    for i, got in enumerate(zip(*robot.hybrid_dynamics(q, qd, qdd, tau, masks), strict=True)):
        assert_close(got[0], tau[i], 20 * EPS)
        assert_close(got[1], qdd[i], 100 * EPS)
        one = robot.hybrid_dynamics(q[i], qd[i], qdd[i], tau[i], masks[i])
        assert_close(one.qdd, qdd[i], 100 * EPS)
    motion = robot.complete_motion(q, qd, masks, robot.generalized_momentum(q, qd))
    assert_close(motion, qd, 20 * EPS)
    V = robot.generalized_motion(q, qd, "tool", masks, robot.generalized_momentum(q, qd))
    assert_close(V, robot.frame_velocity(q, qd, "tool"), 20 * EPS)
    bias = robot.generalized_bias(q, qd, tau, "tool", masks)
    still = robot.hybrid_dynamics(q, qd, 0 * qdd, tau, masks)
    assert_close(bias, robot.frame_acceleration(q, qd, still.qdd, "tool"), 20 * EPS)


def test_matrices_through_the_front_door():
    robot, frame = zoo.space_arm(4), "tool"
    states = [random_state(robot, i) for i in range(3)]
    q, qd = (np.array([getattr(s, n) for s in states]) for n in ("q", "qd"))
    arm = robot.joint_names[1:]
    mask = robot.mechanism.driven(arm) == 1
    J_G, J_D = robot.generalized_jacobian(q, frame, arm), robot.disturbance_jacobian(q, arm)
    blocks, inertia = robot.schur_blocks(q, arm), robot.active_inertia(q, arm)
    bias = robot.disturbance_bias(q, qd, np.zeros(robot.nv), arm)
    assert J_G.shape == (3, 6, 4) and J_D.shape == (3, 6, 4)
    for i in range(3):
        S_aa, S_ap, S_pp = dense(robot, q[i], mask)
        J = robot.jacobian(q[i], frame)
        assert_close(J_G[i], J[:, mask] - J[:, ~mask] @ S_ap.T, 10 * EPS)
        assert_close(J_D[i], -S_ap.T, 10 * EPS)
        assert_close(inertia[i], S_aa, 10 * EPS)
        assert_close(blocks.aa[i], S_aa, 10 * EPS)
        assert_close(blocks.ap[i], S_ap, 10 * EPS)
        assert_close(blocks.pp[i], S_pp, 10 * EPS)
        assert_close(bias[i], -S_pp @ robot.bias_forces(q[i], qd[i])[~mask], 10 * EPS)


def test_numbers_of_the_mechanism_may_come_with_the_call():
    s, arm = random_state(zoo.space_arm(2), 0), ("joint1", "joint2")
    robot = Robot(zoo.space_arm(2).mechanism, parameters=("gravity",))
    given = (s.q, s.qd, s.qdd, s.qd, arm)
    adrift, pulled = (
        robot.hybrid_dynamics(*given),
        robot.hybrid_dynamics(*given, gravity=(0, 0, -5)),
    )
    heavy = Robot(replace(robot.mechanism, gravity=(0.0, 0.0, -5.0)))
    assert_close(pulled.tau, heavy.hybrid_dynamics(*given).tau, 10 * EPS)
    assert_close(pulled.qdd, heavy.hybrid_dynamics(*given).qdd, 10 * EPS)
    assert np.abs(pulled.qdd - adrift.qdd).max() > 1


def test_wrong_splits_say_so():
    robot = zoo.space_arm(3)
    s = random_state(robot, 0)
    given = (s.q, s.qd, s.qdd, s.qdd)
    with pytest.raises(ArgumentError, match="no joint 'joint9'; did you mean 'joint"):
        robot.hybrid_dynamics(*given, ["joint9"])
    with pytest.raises(ArgumentError, match=r"active has shape \(3,\).*nv = 9 DoF"):
        robot.hybrid_dynamics(*given, [True, False, True])
    used_up = (name for name in robot.joint_names)
    tuple(used_up)
    with pytest.raises(ArgumentError, match="active is a generator that gives nothing"):
        robot.hybrid_dynamics(*given, used_up)
    with pytest.raises(ArgumentError, match="expected true or false for each DoF"):
        robot.hybrid_dynamics(*given, np.full(9, 0.5))
    with pytest.raises(ArgumentError, match=r"other than true \(1\) and false \(0\)"):
        robot.hybrid_dynamics(*given, np.full((1, 9), 0.5))
    with pytest.raises(ArgumentError, match=r"active has shape \(1, 9\)"):
        robot.generalized_jacobian(s.q, "tool", np.ones((1, 9)))
    with pytest.raises(ArgumentError, match="cannot be traced"):
        robot.compile(lambda q, active: robot.alg.active_inertia(q, active))
    for wrong in (None, 1, [None] * 9, [[True], [True, False]]):
        with pytest.raises(ArgumentError, match="active is .*expected names of joints, or a mask"):
            robot.hybrid_dynamics(*given, wrong)
        with pytest.raises(ArgumentError, match="active is .*expected names of joints, or a mask"):
            robot.active_inertia(s.q, wrong)
    one = robot.hybrid_dynamics(*given, "joint2")
    assert_close(one.qdd[7], s.qdd[7], 0)


def test_a_split_is_the_same_however_it_is_said():
    """Names in anything that gives names, once too; marks as an array, a list, nested lists."""
    names = ("joint2", "joint3")
    marks = np.array([0] * 7 + [1, 1])
    kinds = {
        "generator": lambda: (n for n in names),
        "list": lambda: list(names),
        "set": lambda: set(names),
        "strings of numpy": lambda: np.array(names),
        "objects": lambda: np.array(names, dtype=object),
        "marks": lambda: marks,
        "list of marks": lambda: marks.tolist(),
        "flags": lambda: [bool(m) for m in marks],
        "tuple of numpy's flags": lambda: tuple(marks == 1),
    }
    mechanism = zoo.space_arm(3).mechanism
    s = random_state(Robot(mechanism), 0)
    given = (s.q, s.qd, s.qdd, s.qdd)
    expected = Robot(mechanism).hybrid_dynamics(*given, names)
    for kind, make in kinds.items():
        robot = Robot(mechanism)
        for _ in range(2):
            found = robot.hybrid_dynamics(*given, make())
            assert np.array_equal(found.qdd, expected.qdd), kind
        assert robot.operators(s.q, active=make()).H_a.shape == (2, 24), kind
        assert robot.disturbance_jacobian(s.q, make()).shape == (7, 2), kind
    batch = Robot(mechanism).hybrid_dynamics(*given, [marks.tolist()] * 2)
    assert_close(batch.qdd, [expected.qdd] * 2, 1e3 * EPS)


# free flight


def test_momentum_of_a_base_changes_as_it_must():
    """ḣ = τ_p − V ×* h in base axes, gravity absent (math §7): by a complex step."""
    robot, arm = zoo.space_arm(4), zoo.space_arm(4).joint_names[1:]
    s, rng = random_state(robot, 2), np.random.default_rng(2)
    tau = rng.normal(size=robot.nv)
    motion = robot.hybrid_dynamics(s.q, s.qd, s.qdd, tau, arm)

    def momentum(t):
        q = robot.alg.integrate(s.q, t * s.qd + 0.5 * t * t * motion.qdd)
        return robot.alg.generalized_momentum(q, s.qd + t * motion.qdd)[:6]

    expected = tau[:6] - cross_force(s.qd[:6], momentum(0.0))
    assert_close(complex_step(momentum), expected, 20 * EPS)


@pytest.mark.parametrize("name", ["space_arm", "quadruped", "tree0"])
def test_jacobians_are_slopes_of_motion(name):
    """Under hybrid dynamics the frame and the passive joints accelerate by J_G, J_D and biases."""
    robot, s = ROBOTS[name], random_state(ROBOTS[name], 7)
    mask, frame = random_mask(robot, 1007), robot.frame_names[-1]
    tau = np.zeros(robot.nv)
    qdd = robot.alg.hybrid_dynamics(s.q, s.qd, s.qdd, tau, mask).qdd
    path = along(robot, s.q, s.qd)
    rate = complex_step(lambda t: Generic(robot).frame_velocity(path(t), s.qd + t * qdd, frame))
    J_G = robot.alg.generalized_jacobian(s.q, frame, mask)
    J_D = robot.alg.disturbance_jacobian(s.q, mask)
    bias = robot.alg.generalized_bias(s.q, s.qd, tau, frame, mask)
    bias_p = robot.alg.disturbance_bias(s.q, s.qd, tau, mask)
    assert_close(rate, J_G @ s.qdd[mask] + bias, 50 * EPS)
    assert_close(qdd[~mask], J_D @ s.qdd[mask] + bias_p, 50 * EPS)
