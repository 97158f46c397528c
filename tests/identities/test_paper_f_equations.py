"""Paper F equation by equation: spatial vectors, joints, trees (math "diagonalized" §0 to §3).

X is a motion transform and X* = X⁻ᵀ a force transform; φ(p,k) = Xᵀ.  Also tested elsewhere: the
Jacobi identity (`algebra/test_spatial.py`), J̇ q̇ and frames (`test_kinematics.py`), loop closure
(`algorithms/test_constraints.py`), each algorithm against Pinocchio (`oracle/`).
"""

import numpy as np
import pytest
from scipy.linalg import expm

import hinge
from dense import crf, crm
from hinge.algebra.rotation import from_rpy, skew
from hinge.algebra.spatial import ForceTransfer, Inertia, congruence, cross_force, cross_motion
from mechanisms import (
    EPS,
    JOINTS,
    ROBOTS,
    WITHOUT_FOLLOWERS,
    along,
    assert_close,
    complex_step,
    random_state,
)

on_every_robot = pytest.mark.parametrize("name", WITHOUT_FOLLOWERS)
RNG = np.random.default_rng(0)
R, P = from_rpy(0.3, -1.1, 2.0), np.array([0.4, -0.2, 0.9])
V, A = RNG.normal(size=(2, 6))
Z = np.zeros((3, 3))
MOMENTS = np.array([[0.4, 0.05, 0], [0.05, 0.3, -0.02], [0, -0.02, 0.5]])
BODY = Inertia(1.7, (0.3, -0.1, 0.2), MOMENTS)


def transform(R, p):
    """X for E = Rᵀ, r = p."""
    return np.block([[R.T, Z], [-R.T @ skew(p), R.T]])


def case(name, seed=0):
    robot = ROBOTS[name]
    return robot, robot.mechanism, random_state(robot, seed)


# 1: spatial algebra


def test_1_1_force_transforms_are_inverse_transposes():
    X = transform(R, P)
    force = np.block([[R.T, -R.T @ skew(P)], [Z, R.T]])
    assert_close(np.linalg.inv(X).T, force, 10 * EPS)
    assert_close(ForceTransfer(R, P) @ np.eye(6), X.T, 2 * EPS)
    assert_close(ForceTransfer(R, P).T @ np.eye(6), X, 2 * EPS)


def test_1_2_cross_operators_and_their_transformation():
    X = transform(R, P)
    X_inv = np.linalg.inv(X)
    for e in np.eye(6):
        assert_close(cross_motion(V, e), crm(V) @ e, EPS)
        assert_close(cross_force(V, e), crf(V) @ e, EPS)
    assert_close(crm(X @ V), X @ crm(V) @ X_inv, 20 * EPS)
    assert_close(crf(X @ V), X_inv.T @ crf(V) @ X.T, 20 * EPS)


def moved(s):
    """The inertia of a body that moves with V from the pose (R, P), in fixed axes."""
    w = skew(V[:3])
    pose = ForceTransfer(R + s * (w @ R), P + s * (V[3:] + w @ P))
    return congruence(BODY.spatial, pose).matrix


def test_1_4_inertias_and_the_equation_of_motion():
    c = skew(BODY.com)
    m = BODY.mass
    about = BODY.about_com + m * c @ c.T
    assert_close(BODY.spatial.matrix, np.block([[about, m * c], [m * c.T, m * np.eye(3)]]), EPS)
    X_inv = np.linalg.inv(transform(R, P))
    I = moved(0.0)
    X = transform(R, P)
    assert_close(X.T @ BODY.spatial.matrix @ X, I, 10 * EPS)
    assert_close(X_inv.T @ I @ X_inv, BODY.spatial.matrix, 20 * EPS)
    assert_close(complex_step(moved), crf(V) @ I - I @ crm(V), 20 * EPS)
    force = complex_step(lambda s: moved(s) @ (V + s * A))
    assert_close(force, I @ A + crf(V) @ I @ V, 20 * EPS)


def test_1_5_spatial_acceleration():
    """The rate of V = (ω; u) is (ω̇; r̈ − ω×ṙ) at any point r of the body, and transforms as V."""
    r = P

    def velocity(r, V):
        return V[3:] + np.cross(V[:3], r)

    r_d = velocity(r, V)
    r_dd = complex_step(lambda s: velocity(r + s * r_d, V + s * A))
    at_r = transform(np.eye(3), r)
    assert_close(at_r @ V, np.concatenate([V[:3], r_d]), 10 * EPS)
    expected = np.concatenate([A[:3], r_dd - np.cross(V[:3], r_d)])
    assert_close(at_r @ A, expected, 10 * EPS)


def screw(X):
    """XtoV."""
    X = np.vstack([np.zeros((1, 7)), np.hstack([np.zeros((6, 1)), X])])  # from 1
    rotation = [X[2, 3] - X[3, 2], X[3, 1] - X[1, 3], X[1, 2] - X[2, 1]]
    return 0.5 * np.array([*rotation, X[5, 3] - X[6, 2], X[6, 1] - X[4, 3], X[4, 2] - X[5, 1]])


def test_1_6_screw_of_a_displacement():
    X = transform(R, P)
    assert_close(X @ screw(X), screw(X), 10 * EPS)
    errors = [np.abs(screw(expm(-crm(h * V))) - h * V).max() for h in (0.04, 0.02, 0.01)]
    assert all(7.5 < a / b < 8.5 for a, b in zip(errors, errors[1:], strict=False))


@on_every_robot
def test_1_7_columns_of_the_jacobian(name):
    robot, mech, s = case(name)
    for _, k in mech.outward():
        J = np.zeros((6, robot.nv))
        for _, i in mech.ancestors(k):
            X = robot.alg.poses(s.q)[i - 1]
            there = np.linalg.inv(transform(X[:3, :3], X[:3, 3]))
            J[:, mech.v_slice(mech.bodies[i].joint_name)] = there @ mech.H(s.q)[i].T
        body = mech.bodies[k].name
        assert_close(robot.alg.jacobian(s.q, body, "world"), J, 50 * EPS)
        tool = robot.alg.poses(s.q)[k - 1][:3, 3]
        aligned = transform(np.eye(3), tool) @ J
        assert_close(robot.alg.jacobian(s.q, body, "aligned"), aligned, 50 * EPS)


# 0, 2: joints


@on_every_robot
def test_0_rate_of_the_transforms(name):
    """Ẋ = −vJ× X, that is φ̇ = φ vJ×*, also for quaternions and universal joints."""
    robot, mech, s = case(name)
    path = along(robot, s.q, s.qd)
    rates, H = mech.rates(s.qd), mech.H(s.q)
    for _, k in mech.outward():
        X = mech.phi(s.q)[k].T @ np.eye(6)
        rate = complex_step(lambda h, k=k: mech.phi(path(h))[k].T @ np.eye(6))
        assert_close(rate, -crm(H[k].T @ rates[k]) @ X, 20 * EPS)


CLOSED = set(JOINTS) - {"universal"}
COMMUTING = {"revolute", "prismatic", "helical", "cylindrical", "translation"}


@pytest.mark.parametrize("kind", JOINTS)
def test_2_closed_and_commuting_joints(kind):
    joint = JOINTS[kind]
    S = joint.H(joint.random(np.random.default_rng(1))).T
    brackets = np.column_stack([cross_motion(a, b) for a in S.T for b in S.T])
    outside = brackets - S @ np.linalg.lstsq(S, brackets, rcond=None)[0]
    for matrix, small in ((outside, kind in CLOSED), (brackets, kind in COMMUTING)):
        size = np.abs(matrix).max()
        assert size < 10 * EPS if small else size > 1e-3


@pytest.mark.parametrize("kind", ["spherical", "free"])
def test_2_rate_of_quaternions(kind):
    """d quat/dt = ½ quat ⊗ (0, ω), ω in body axes, scalars first."""
    joint, rng = JOINTS[kind], np.random.default_rng(1)
    q, v = joint.random(rng), rng.normal(size=joint.nv)
    rate = complex_step(lambda h: joint.integrate(q, h * v))[-4:]
    (w, *xyz), omega = q[-4:], v[:3]
    product = [-np.dot(xyz, omega), *(w * omega + np.cross(xyz, omega))]
    assert_close(rate, 0.5 * np.array(product), 10 * EPS)


# 3: trees


def recursions(robot, s):
    """X, S, vJ, v, c = v×vJ + S°q̇, p = v×*Iv − f_ext of every body."""
    mech = robot.mechanism
    phi, H, rate = mech.phi(s.q), mech.H(s.q), mech.H_rate(s.q, s.qd)
    qd, f_ext = mech.rates(s.qd), mech.wrenches(s.f_ext)
    X, S, vJ, v, c, p = ([np.zeros(6)] * len(mech.bodies) for _ in range(6))
    for parent, k in mech.outward():
        X[k], S[k] = phi[k].T @ np.eye(6), H[k].T
        vJ[k] = S[k] @ qd[k]
        v[k] = X[k] @ v[parent] + vJ[k]
        c[k] = crm(v[k]) @ vJ[k] + rate[k].T @ qd[k]
        p[k] = crf(v[k]) @ (mech.M[k] @ v[k]) - f_ext[k]
    return X, S, v, c, p


@on_every_robot
def test_3_newton_euler_in_spatial_accelerations(name):
    robot, mech, s = case(name)
    X, S, _, c, f = recursions(robot, s)
    qdd, a = mech.rates(s.qdd), [-mech.free_fall, *[None] * mech.n_bodies]
    for p, k in mech.outward():
        a[k] = X[k] @ a[p] + S[k] @ qdd[k] + c[k]
        f[k] = f[k] + mech.M[k] @ a[k]
    tau = [None] * len(mech.bodies)
    for p, k in mech.inward():
        tau[k] = S[k].T @ f[k] + mech.armature[k] * qdd[k]
        f[p] = f[p] + X[k].T @ f[k]
    expected = robot.alg.inverse_dynamics(s.q, s.qd, s.qdd, s.f_ext)
    assert_close(mech.join(tau), expected, 100 * EPS)


@on_every_robot
def test_3_articulated_bodies_in_spatial_accelerations(name):
    robot, mech, s = case(name)
    X, S, _, c, p_A = recursions(robot, s)
    tau, I_A = mech.rates(s.qdd), [M.matrix for M in mech.M]
    U, d, u = ([None] * len(mech.bodies) for _ in range(3))
    for p, k in mech.inward():
        U[k] = I_A[k] @ S[k]
        d[k] = S[k].T @ U[k] + np.diag(mech.armature[k])
        u[k] = tau[k] - S[k].T @ p_A[k]
        I_a = I_A[k] - U[k] @ np.linalg.solve(d[k], U[k].T)
        p_a = p_A[k] + I_a @ c[k] + U[k] @ np.linalg.solve(d[k], u[k])
        I_A[p], p_A[p] = I_A[p] + X[k].T @ I_a @ X[k], p_A[p] + X[k].T @ p_a
    a, qdd = [-mech.free_fall, *[None] * mech.n_bodies], [None] * len(mech.bodies)
    for p, k in mech.outward():
        carried = X[k] @ a[p] + c[k]
        qdd[k] = np.linalg.solve(d[k], u[k] - U[k].T @ carried)
        a[k] = carried + S[k] @ qdd[k]
    expected = robot.alg.forward_dynamics(s.q, s.qd, s.qdd, s.f_ext)
    assert_close(mech.join(qdd), expected, 20 * EPS * max(mech.n_bodies, 1))


@on_every_robot
def test_3_mass_matrix_is_a_sum_over_bodies(name):
    """M = Σ J_kᵀ I_k J_k, and M_ij the part of it of the bodies beyond both joints."""
    robot, mech, s = case(name)
    total = np.diag(np.concatenate([np.zeros(0), *mech.armature]))
    for body, M in zip(mech.bodies[1:], mech.M[1:], strict=True):
        J = robot.alg.jacobian(s.q, body.name, "body")
        total = total + J.T @ (M @ J)
    assert_close(robot.operators(s.q).mass.dense(), total, 50 * EPS)


def test_3_steps_of_inverse_kinematics():
    """Δq = Jᵀ(JJᵀ)⁻¹ XtoV(ᵈX_0 ⁰X_b) converges fast; quaternions step by their exponential."""
    for name in ("arm", "space_arm"):
        robot, _, s = case(name)
        target = robot.alg.frame_pose(along(robot, s.q, 0.3 * s.qd)(1.0), "tool")
        wanted, q, errors = transform(target[:3, :3], target[:3, 3]), s.q, []
        for _ in range(8):
            pose = robot.alg.frame_pose(q, "tool")
            here = transform(pose[:3, :3], pose[:3, 3])
            step = screw(wanted @ np.linalg.inv(here))
            J = robot.alg.jacobian(q, "tool", "body")
            q = robot.alg.integrate(q, J.T @ np.linalg.solve(J @ J.T, step))
            errors.append(np.abs(step).max())
        assert errors[0] > 0.05 and errors[-1] < 20 * EPS


def two_bodies():
    b = hinge.MechanismBuilder("two", gravity=(0, 0, 0))
    b.add("one", "world", hinge.Free(), inertia=BODY)
    elbow = hinge.Transform(R, P)
    b.add("two", "one", hinge.Revolute((1, 2, -1)), placement=elbow, inertia=BODY)
    return hinge.Robot(b.build())


@pytest.mark.parametrize("moving", [False, True])
def test_3_two_bodies_and_a_hinge(moving):
    """a₁ = (I₁ + I₂ − I₂ssᵀI₂/d)⁻¹ (f − p₁ − p^a), also with the hinge driven."""
    robot = two_bodies()
    mech, s = robot.mechanism, random_state(robot, 1)
    X = mech.phi(s.q)[2].T @ np.eye(6)
    I_1, I_2 = BODY.spatial.matrix, X.T @ BODY.spatial.matrix @ X
    axis = np.linalg.solve(X, mech.H(s.q)[2][0])
    qd = s.qd * moving
    f, tau = s.f_ext[0], s.qdd[6] * moving
    d = axis @ I_2 @ axis
    I_a = I_2 - np.outer(I_2 @ axis, axis @ I_2) / d
    v_1, v_2 = qd[:6], qd[:6] + axis * qd[6]
    p_1, p_2 = (crf(v) @ I @ v for v, I in ((v_1, I_1), (v_2, I_2)))
    p_a = p_2 + I_a @ crm(v_2) @ axis * qd[6] + I_2 @ axis * (tau - axis @ p_2) / d
    expected = np.linalg.solve(I_1 + I_a, f - p_1 - p_a)
    assert np.linalg.eigvalsh(I_1 + I_a).min() > 0
    f_ext = np.array([f, np.zeros(6)])
    got = robot.alg.forward_dynamics(s.q, qd, np.array([*np.zeros(6), tau]), f_ext)
    assert_close(got[:6], expected, 200 * EPS)
    if not moving:
        assert_close(accelerations_in_three_dimensions(robot, s.q, f), expected, 200 * EPS)


def accelerations_in_three_dimensions(robot, q, f):
    """Of body one in its axes, at rest: Newton and Euler for both bodies, the hinge's force λ and
    couple μ ⟂ s, and equal accelerations at the hinge; unknowns ω̇₁, c̈₁, ω̇₂, c̈₂, λ, μ."""
    X = robot.mechanism.phi(q)[2]
    turn, axis = X.R, X.R @ robot.mechanism.H(q)[2][0][:3]
    c_1, c_2 = np.array(BODY.com), X.p + turn @ BODY.com
    across = np.linalg.svd(axis[None])[2][1:]
    one, m = np.eye(3), BODY.mass
    to_hinge_1, to_hinge_2 = skew(X.p - c_1), skew(X.p - c_2)
    none = np.zeros((3, 2))
    rows = [
        [MOMENTS, Z, Z, Z, -to_hinge_1, -across.T],
        [Z, m * one, Z, Z, -one, none],
        [Z, Z, turn @ MOMENTS @ turn.T, Z, to_hinge_2, across.T],
        [Z, Z, Z, m * one, one, none],
        [-to_hinge_1, one, to_hinge_2, -one, Z, none],
        [across, none.T, -across, none.T, none.T, np.zeros((2, 2))],
    ]
    given = np.concatenate([f[:3] - np.cross(c_1, f[3:]), f[3:], np.zeros(11)])
    turned, moved = np.split(np.linalg.solve(np.block(rows), given)[:6], 2)
    return np.concatenate([turned, moved - np.cross(turned, c_1)])
