"""Paper U: identities of under-actuated mechanisms, and what its misprints do to them.

Dense operators in body axes on a tree with every kind of joint, split at random within joints too;
H has a column per DoF here, as in paper U.  Each erratum (math §9, 13 – 21) is a formula as it is
printed, which must fail by far more than rounding, beside the right one, which must hold.
"""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from dense import block_diagonal, one_hop
from hinge import zoo
from hinge.algebra.spatial import ForceTransfer, carried_acceleration, cross_force
from mechanisms import EPS, Generic, assert_close, complex_step, random_mask, random_state

FAR = 1e-3
I3 = np.eye(3)


def without_armature(mech):
    bodies = [replace(b, joint=replace(b.joint, armature=0.0)) for b in mech.bodies]
    return replace(mech, bodies=tuple(bodies))


ROBOT = type(zoo.arm(1))(without_armature(zoo.tree(1, 10).mechanism))


def matrix(phi):
    return np.column_stack([phi @ e for e in np.eye(6)])


def operators(robot, q, mask, swapped=False):
    """φ, ψ, M, P, D, K, Ω, …; swapped: erratum 13, the active DoF taken for the passive ones."""
    mech = robot.mechanism
    n, N = mech.n_bodies, 6 * mech.n_bodies
    phi_k, H_k = mech.phi(q), mech.H(q)
    free = mask if swapped else ~mask
    P_k = [M.matrix for M in mech.M]
    G_k, D_k = [], []
    for p, k in mech.inward():
        own = free[mech.v_slice(mech.bodies[k].joint_name)]
        H_p = H_k[k][own].T
        D = H_p.T @ P_k[k] @ H_p
        G = P_k[k] @ H_p @ np.linalg.inv(D)
        G_k.insert(0, G)
        D_k.insert(0, D)
        F = matrix(phi_k[k])
        P_k[p] = P_k[p] + F @ (P_k[k] - G @ H_p.T @ P_k[k]) @ F.T
    E_phi = one_hop(mech, phi_k)
    o = SimpleNamespace(I=np.eye(N), n=n, E_phi=E_phi)
    H = block_diagonal([h.T for h in H_k[1:]])
    o.H, o.H_a, o.H_p = H, H[:, mask], H[:, ~mask]
    o.M, o.P = block_diagonal([M.matrix for M in mech.M[1:]]), block_diagonal(P_k[1:])
    o.D, o.G = block_diagonal(D_k), block_diagonal(G_k)
    o.tau_bar = o.I - o.G @ H[:, free].T
    o.phi, o.psi = (np.linalg.inv(o.I - E) for E in (E_phi, E_phi @ o.tau_bar))
    o.E_psi, o.K = E_phi @ o.tau_bar, E_phi @ o.G
    o.D_inv = np.linalg.inv(o.D)
    o.L = np.eye(free.sum()) - H[:, free].T @ o.psi @ o.K
    o.Omega = o.psi.T @ H[:, free] @ o.D_inv @ H[:, free].T @ o.psi
    o.mass = H.T @ o.phi @ o.M @ o.phi.T @ H
    return o


@pytest.fixture(scope="module")
def case():
    s = random_state(ROBOT, 1)
    mask = random_mask(ROBOT, 5)
    o = operators(ROBOT, s.q, mask)
    o.s, o.mask = s, mask
    assert_close(o.mass, Generic(ROBOT).mass_matrix(s.q), 100 * EPS)
    o.pp, o.pa = o.mass[np.ix_(~mask, ~mask)], o.mass[np.ix_(~mask, mask)]
    o.S_ap = np.linalg.solve(o.pp, o.pa).T
    o.S_aa = o.mass[np.ix_(mask, mask)] - o.S_ap @ o.pa
    return o


def holds(left, right):
    assert_close(left, right, 100 * EPS)


def fails(left, right):
    assert np.abs(left - right).max() > FAR * np.abs(right).max()


def test_13_active_hinges_are_the_ones_that_do_not_give_way(case):
    o = case
    root = np.eye(len(o.D)) + o.H_p.T @ o.phi @ o.K
    holds(root @ o.D @ root.T, o.pp)
    holds(o.M, o.P - o.E_psi @ o.P @ o.E_psi.T)
    P = operators(ROBOT, o.s.q, o.mask, swapped=True).P
    D = o.H_p.T @ P @ o.H_p
    root = np.eye(len(D)) + o.H_p.T @ o.phi @ o.E_phi @ P @ o.H_p @ np.linalg.inv(D)
    fails(root @ D @ root.T, o.pp)
    J_D = -(o.L.T @ o.D_inv @ o.H_p.T @ o.psi @ o.P @ o.H_a) - o.K.T @ o.psi.T @ o.H_a
    holds(J_D, -o.S_ap.T)
    holds(ROBOT.alg.disturbance_jacobian(o.s.q, o.mask), J_D)
    fails(ROBOT.alg.disturbance_jacobian(o.s.q, ~o.mask).T, J_D)


def chain_forces(mech, q, at_the_child):
    """Joint forces of gravity on a chain; erratum 14: which φ takes f(k−1) to body k."""
    phi, H, M = mech.phi(q), mech.H(q), mech.M
    alpha = [-mech.free_fall]
    for p, k in mech.outward():
        alpha.append(phi[k].T @ alpha[p])
    f = [M[k] @ alpha[k] for k in range(len(M))]
    tau = []
    for p, k in mech.inward():
        tau.insert(0, H[k] @ f[k])
        f[p] = f[p] + (phi[k] if at_the_child else phi[max(p, 1)]) @ f[k]
    return np.concatenate(tau)


def test_14_forces_cross_the_joint_that_they_come_through():
    robot, q = zoo.arm(5), random_state(zoo.arm(5), 0).q
    holds(chain_forces(robot.mechanism, q, True), Generic(robot).gravity_forces(q))
    fails(chain_forces(robot.mechanism, q, False), Generic(robot).gravity_forces(q))


@pytest.mark.parametrize("sliding", [False, True])
def test_15_a_sliding_joint_has_two_coriolis_accelerations(sliding):
    """a = (ω×w; ω×(ω×p) + 2 ω×s + w×s): printed with ω×s once, and w×s nowhere."""
    rng = np.random.default_rng(0)
    w0, w = rng.normal(size=(2, 3))
    slide = rng.normal(size=3) if sliding else np.zeros(3)
    p = rng.normal(size=3)
    got = carried_acceleration(
        ForceTransfer(I3, p), np.array([*w0, 0, 0, 0]), np.zeros(6), np.array([*w, *slide])
    )
    turned = np.cross(w0, w)
    around = np.cross(w0, np.cross(w0, p))
    right = np.array([*turned, *(around + 2 * np.cross(w0, slide) + np.cross(w, slide))])
    printed = np.array([*turned, *(around + np.cross(w0, slide))])
    holds(got, right)
    (fails if sliding else holds)(printed, right)


def test_16_ranks_of_the_projections(case):
    o = case
    T = o.Omega @ o.M
    T_bar = o.I - T
    holds(T @ T, T)
    holds(T_bar @ T_bar, T_bar)
    rank = np.linalg.matrix_rank
    assert rank(T) == (~o.mask).sum()
    assert rank(T_bar) == 6 * o.n - (~o.mask).sum() != o.mask.sum()
    assert rank(T_bar @ o.phi.T @ o.H) == o.mask.sum()
    padded = np.zeros((ROBOT.nv, ROBOT.nv))
    padded[np.ix_(o.mask, o.mask)] = o.S_aa
    holds(o.H.T @ o.phi @ T_bar.T @ o.M @ T_bar @ o.phi.T @ o.H, padded)
    holds(o.H_a.T @ o.phi @ T_bar.T @ o.M @ T_bar @ o.phi.T @ o.H_a, o.S_aa)


def test_17_the_bias_is_taken_away():
    robot = zoo.space_arm(12)
    s, arm = random_state(robot, 3), zoo.space_arm(12).joint_names[1:]
    tau, wanted = np.zeros(robot.nv), np.random.default_rng(3).normal(size=12)
    J = np.vstack(
        [
            robot.alg.generalized_jacobian(s.q, "tool", arm),
            robot.alg.disturbance_jacobian(s.q, arm),
        ]
    )
    bias = np.concatenate(
        [
            robot.alg.generalized_bias(s.q, s.qd, tau, "tool", arm),
            robot.alg.disturbance_bias(s.q, s.qd, tau, arm),
        ]
    )

    def reached(right_hand_side):
        qdd = np.concatenate([np.zeros(6), np.linalg.solve(J, right_hand_side)])
        motion = robot.alg.hybrid_dynamics(s.q, s.qd, qdd, tau, arm)
        tool = Generic(robot).frame_acceleration(s.q, s.qd, motion.qdd, "tool")
        return np.concatenate([tool, motion.qdd[:6]])

    assert_close(reached(wanted - bias), wanted, 5 * EPS * np.linalg.cond(J))
    fails(reached(wanted), wanted)
    fails(reached(wanted + bias), wanted)


def test_18_momentum_in_base_axes_turns_with_the_base():
    robot, arm = zoo.space_arm(3), zoo.space_arm(3).joint_names[1:]
    s, tau = random_state(robot, 2), np.random.default_rng(2).normal(size=9)
    qdd = robot.alg.hybrid_dynamics(s.q, s.qd, s.qdd, tau, arm).qdd

    def momentum(t):
        q = robot.alg.integrate(s.q, t * s.qd + 0.5 * t * t * qdd)
        return robot.alg.generalized_momentum(q, s.qd + t * qdd)[:6]

    rate = complex_step(momentum)
    assert_close(rate, tau[:6] - cross_force(s.qd[:6], momentum(0.0)), 10 * EPS)
    fails(rate, tau[:6])


def test_19_accelerations_of_the_passive_joints(case):
    o, rng = case, np.random.default_rng(4)
    assert len(o.pp) == (~o.mask).sum()
    tau_p, qdd_a = rng.normal(size=len(o.pp)), rng.normal(size=o.mask.sum())
    z = o.psi @ (o.K @ tau_p + o.P @ o.H_a @ qdd_a)
    mu = o.D_inv @ (tau_p - o.H_p.T @ z)
    carried = o.K.T @ o.psi.T @ (o.H_a @ qdd_a)
    expected = np.linalg.solve(o.pp, tau_p - o.pa @ qdd_a)
    holds(o.L.T @ mu - carried, expected)
    fails(o.L @ mu - carried, expected)
    inner = (o.psi - o.P @ o.Omega) @ o.K
    holds(o.H_a.T @ (inner + o.P @ o.psi.T @ o.H_p @ o.D_inv), o.S_ap)


def test_20_the_end_frame_moves_with_B_star(case):
    o = case
    frame = ROBOT.mechanism.frame("tip")
    B = np.zeros((6 * o.n, 6))
    B[6 * frame.body - 6 : 6 * frame.body] = matrix(frame.transfer)
    J = B.T @ o.phi.T @ o.H
    holds(J, Generic(ROBOT).jacobian(o.s.q, "tip", "body"))
    fails(B.T @ o.phi @ o.H, J)
    J_G = B.T @ (o.psi.T - o.Omega @ o.P) @ o.H_a
    holds(ROBOT.alg.generalized_jacobian(o.s.q, "tip", o.mask, "body"), J_G)
    assert J_G.shape == (6, o.mask.sum())


def test_21_lost_factors_of_the_appendix(case):
    o = case
    psi_, phi_ = o.psi - o.I, o.phi - o.I
    holds(o.psi @ o.M @ o.psi.T, psi_ @ o.P + o.P @ o.psi.T)
    holds(o.phi @ o.M @ o.psi.T, phi_ @ o.P + o.P @ o.psi.T)
    fails(psi_ @ o.P + o.P, o.psi @ o.M @ o.psi.T)
    fails(phi_ @ o.P + o.P, o.phi @ o.M @ o.psi.T)
    holds(o.phi @ o.M @ o.Omega, o.phi - (o.psi - o.P @ o.Omega))
    T = o.Omega @ o.M
    reached = o.phi.T @ o.H_p
    holds((o.I - T) @ reached, 0 * o.H_p)
    fails((o.I - T) @ reached, reached)
    holds((o.I - T) @ o.phi.T, o.psi.T - o.Omega @ o.P)
