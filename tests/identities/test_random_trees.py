"""Properties of random trees of all joint types, of large mechanisms, and far from the origin.

Random trees run through the generic algorithms: it is those that are looked at here.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hinge
from hinge import zoo
from mechanisms import EPS, assert_close, random_state

TREES = settings(max_examples=25, deadline=None, derandomize=True)


@TREES
@given(seed=st.integers(0, 10**6), n=st.integers(1, 12))
def test_forward_and_inverse_dynamics_and_mass_matrix_agree(seed, n):
    robot = zoo.tree(seed, n)
    s, alg = random_state(robot, seed), robot.alg
    M = alg.mass_matrix(s.q)
    bias = alg.bias_forces(s.q, s.qd, s.f_ext)
    tau = alg.inverse_dynamics(s.q, s.qd, s.qdd, s.f_ext)
    assert_close(tau, M @ s.qdd + bias, 200 * EPS, max(1.0, np.abs(bias).max(), np.abs(M).max()))
    bound = 50 * EPS * np.linalg.cond(M)
    assert_close(alg.forward_dynamics(s.q, s.qd, tau, s.f_ext), s.qdd, bound)
    assert_close(alg.mass_matrix_inverse(s.q) @ M, np.eye(robot.nv), bound)


@TREES
@given(seed=st.integers(0, 10**6), n=st.integers(1, 8))
def test_virtual_work(seed, n):
    """Kane's equations in 3-D vectors: τ = Σ J_ωᵀ (İω + ω×Iω) + J_cᵀ m (c̈ − g) + armature q̈."""
    robot = zoo.tree(seed, n)
    s, alg = random_state(robot, seed), robot.alg
    expected = np.zeros(robot.nv)
    for body in robot.mechanism.bodies[1:]:
        J = alg.jacobian(s.q, body.name)
        a = alg.frame_acceleration(s.q, s.qd, s.qdd, body.name)
        w = alg.frame_velocity(s.q, s.qd, body.name)[:3]
        R = alg.frame_pose(s.q, body.name)[:3, :3]
        c, I = R @ body.inertia.com, R @ body.inertia.about_com @ R.T
        force = a[3:] + np.cross(a[:3], c) + np.cross(w, np.cross(w, c)) - robot.mechanism.gravity
        J_c = J[3:] + np.cross(J[:3].T, c).T
        expected += J[:3].T @ (I @ a[:3] + np.cross(w, I @ w)) + body.inertia.mass * J_c.T @ force
        v = robot.v_slice(body.joint_name)
        expected[v] += np.array(body.joint.armature) * s.qdd[v]
    tau = alg.inverse_dynamics(s.q, s.qd, s.qdd)
    assert_close(tau, expected, 500 * EPS, max(1.0, np.abs(expected).max()))


@TREES
@given(seed=st.integers(0, 10**6), n=st.integers(2, 12))
def test_branches_do_not_meet_in_the_mass_matrix(seed, n):
    robot = zoo.tree(seed, n)
    mech = robot.mechanism
    M = robot.alg.mass_matrix(random_state(robot, seed).q)
    above = {k: {j for _, j in mech.ancestors(k)} for _, k in mech.outward()}
    for i in above:
        for j in above:
            if i not in above[j] and j not in above[i]:
                rows = mech.v_slice(mech.bodies[i].joint_name)
                columns = mech.v_slice(mech.bodies[j].joint_name)
                assert not M[rows, columns].any()


@pytest.mark.parametrize("seed", [0, 1])
def test_two_hundred_bodies(seed):
    robot = zoo.tree(seed, 200)
    s, alg = random_state(robot, seed), robot.alg
    M = alg.mass_matrix(s.q)
    tau = alg.inverse_dynamics(s.q, s.qd, s.qdd, s.f_ext)
    scale = max(np.abs(tau).max(), np.abs(M).max())
    assert_close(tau, M @ s.qdd + alg.bias_forces(s.q, s.qd, s.f_ext), 200 * EPS, scale)
    # the right measure of forward dynamics on an ill-conditioned M is the residual force
    qdd = alg.forward_dynamics(s.q, s.qd, tau, s.f_ext)
    again = alg.inverse_dynamics(s.q, s.qd, qdd, s.f_ext)
    assert_close(again, tau, 200 * 50 * EPS, scale)


@pytest.mark.parametrize("name", ["quadruped", "humanoid", "space_arm"])
def test_ten_kilometres_away(name):
    """A floating robot does the same anywhere: nothing in the sweeps is taken about the origin."""
    robot = getattr(zoo, name)()
    s = random_state(robot, 4)
    far = s.q.copy()
    far[:3] += (1e4, -1e4, 1e4)
    # gravity does not depend on the place, so every joint-level result must be the same
    for run in (robot, robot.alg):
        tau = run.inverse_dynamics(s.q, s.qd, s.qdd, s.f_ext)
        assert_close(run.inverse_dynamics(far, s.qd, s.qdd, s.f_ext), tau, 10 * EPS)
        qdd = run.forward_dynamics(s.q, s.qd, tau, s.f_ext)
        assert_close(run.forward_dynamics(far, s.qd, tau, s.f_ext), qdd, 10 * EPS)
        assert_close(run.mass_matrix(far), run.mass_matrix(s.q), 10 * EPS)
        frame = robot.frame_names[-1]
        for reference in ("aligned", "body"):
            near = run.jacobian(s.q, frame, reference=reference)
            assert_close(run.jacobian(far, frame, reference=reference), near, 10 * EPS)
        energy = run.kinetic_energy(s.q, s.qd)
        assert_close(run.kinetic_energy(far, s.qd), energy, 10 * EPS)
        momentum = run.momentum(s.q, s.qd)
        # the centre of mass itself is only known to eps × 10 km
        assert_close(run.momentum(far, s.qd), momentum, 20 * EPS * 1e4)


def test_far_along_a_rail():
    """A fixed-base robot whose tree is far from the origin: the placement carries the distance."""
    arm = zoo.arm(5).mechanism
    ground = hinge.MechanismBuilder("ground").build()
    place = hinge.Transform(translation=(1e4, 1e4, 0.0))
    far = hinge.Robot(hinge.edit.attach(ground, arm, placement=place))
    near = zoo.arm(5)
    s = random_state(near, 1)
    tau = near.inverse_dynamics(s.q, s.qd, s.qdd)
    assert_close(far.inverse_dynamics(s.q, s.qd, s.qdd), tau, 4 * EPS)
    assert_close(far.forward_dynamics(s.q, s.qd, tau), s.qdd, 1000 * EPS)
