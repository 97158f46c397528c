"""Paper U equation by equation, as operators on trees (math "linearized" §7).

Splits run through joints of several DoF.  (4.1) to (4.3), (4.8) and the appendix are laws too
(`operators/test_laws.py`, for passive joints as for all); misprints: `test_paper_u_misprints.py`;
sweeps: `algorithms/test_underactuated.py`.  Where rotors of passive joints spoil an identity that
is shown, with what holds instead.
"""

import numpy as np
import pytest

import hinge
from hinge import zoo
from hinge.algebra.spatial import ForceTransfer, cross_force
from hinge.operators import Operators, simplify, split
from identities.paper_d_cases import TREES, near
from mechanisms import EPS, along, assert_close, complex_step, random_split, random_state

NAMES = [name for name, robot in TREES.items() if robot.nv > 1]
on_every_robot = pytest.mark.parametrize("name", NAMES)


class Case:
    """A robot at a state, split at random, with its operators and the blocks of its mass matrix."""

    def __init__(self, name, seed=0):
        self.robot = TREES[name]
        self.alg, self.s = self.robot.alg, random_state(self.robot, seed)
        self.a = a = random_split(self.robot, seed)
        self.p = ~a
        self.o = Operators(self.robot.mechanism, self.s.q, a)
        self.u, self.rotors = split(self.o), self.o.passive.has_armature
        M = self.alg.mass_matrix(self.s.q)
        self.M_aa, self.M_pp = M[np.ix_(a, a)], M[np.ix_(~a, ~a)]
        self.M_pa = M[np.ix_(~a, a)]
        self.S_ap = np.linalg.solve(self.M_pp, self.M_pa).T
        self.S_aa = self.M_aa - self.S_ap @ self.M_pa
        self.size = len(self.robot.body_names)

    def near(self, got, expected, scale=1.0):
        got, expected = (x.dense() if hasattr(x, "dense") else x for x in (got, expected))
        near(self, got, expected, scale)

    def lost_with_rotors(self, got, expected):
        """The identity holds exactly where no passive joint has a rotor."""
        if not self.rotors:
            return self.near(got, expected)
        assert np.abs((got - expected).dense()).max() > 1e-3

    def motion(self):
        """Conventional Coriolis accelerations with gravity at the roots, and forces b − f_ext."""
        o, s, mech = self.o, self.s, self.robot.mechanism
        V = [np.zeros(6), *o.body.split(o.phi.T @ (o.H.T @ s.qd))[1:]]
        a, b, f_ext = [], [], mech.wrenches(s.f_ext)
        qd, rate = mech.rates(s.qd), mech.H_rate(s.q, s.qd)
        for p, k in mech.outward():
            fall = o.phi_blocks[k].T @ -mech.free_fall if not p else 0
            acceleration = coriolis(o.phi_blocks[k], V[p], V[k], o.H_blocks[k].T @ qd[k])
            a.append(acceleration + rate[k].T @ qd[k] + fall)
            M, w = mech.M[k], V[k][:3]
            turned = [np.cross(w, M.J @ w), np.cross(w, np.cross(w, M.h))]
            b.append(np.concatenate(turned) - f_ext[k])
        return np.concatenate(a), np.concatenate(b)


def coriolis(phi, V_parent, V, W):
    """a = (ω×ω_rel; ω_λ×(v − v_λ) + ω×v_rel), in body axes."""
    R = phi.R.T
    w_parent, v_parent = R @ V_parent[:3], R @ V_parent[3:]
    linear = np.cross(w_parent, V[3:] - v_parent) + np.cross(V[:3], W[3:])
    return np.concatenate([np.cross(V[:3], W[:3]), linear])


# 3.1


@on_every_robot
def test_3_1_newton_euler_in_conventional_accelerations(name):
    """τ = Hφ(Mα + b) + Jν̇, α = φ*(H*ν̇ + a), gravity in a at the roots."""
    c = Case(name)
    o, s = c.o, c.s
    a, b = c.motion()
    alpha = o.phi.T @ (o.H.T @ s.qdd + a)
    tau = o.H @ (o.phi @ (o.M @ alpha + b)) + o.J @ s.qdd
    c.near(tau, c.alg.inverse_dynamics(s.q, s.qd, s.qdd, s.f_ext))
    # conventional and spatial accelerations differ by (0; ω×v), in any axes
    V = (o.phi.T @ (o.H.T @ s.qd)).reshape(-1, 6)
    spatial = alpha.reshape(-1, 6).copy()
    spatial[:, 3:] -= np.cross(V[:, :3], V[:, 3:])
    expected = [c.alg.frame_acceleration(s.q, s.qd, s.qdd, x) for x in c.robot.body_names]
    R = c.alg.poses(s.q)[:, :3, :3]
    turned = np.concatenate([R @ alpha.reshape(-1, 2, 3)[:, i, :, None] for i in (0, 1)], axis=1)
    true = turned[..., 0] + c.robot.mechanism.free_fall
    c.near(true, np.array(expected))
    rate = complex_step(
        lambda h: body_velocities(c, along(c.robot, s.q, s.qd)(h), s.qd + h * s.qdd)
    )
    falling = np.einsum("kji,j->ki", R, c.robot.mechanism.gravity)
    spatial[:, 3:] += falling
    c.near(spatial, rate)


def body_velocities(c, q, qd):
    return np.array([c.alg.frame_velocity(q, qd, x, "body") for x in c.robot.body_names])


# 4, 5: Schur blocks


@on_every_robot
def test_4_4_mixed_form_of_the_equations_of_motion(name):
    c = Case(name)
    s, u, a, p = c.s, c.u, c.a, c.p
    tau = c.alg.inverse_dynamics(s.q, s.qd, s.qdd, s.f_ext)
    C = c.alg.bias_forces(s.q, s.qd, s.f_ext)
    tau_a = u.S_aa @ s.qdd[a] + u.S_ap @ (tau[p] - C[p]) + C[a]
    scale = np.abs(C).max() + np.abs(tau).max()
    c.near(tau_a, tau[a], scale)
    c.near(u.S_pp @ (tau[p] - C[p]) - u.S_ap.T @ s.qdd[a], s.qdd[p], scale)


@on_every_robot
def test_5_1_b_both_forms_of_S_ap(name):
    c = Case(name)
    o = c.o
    L, D_inv = o.innovations_p, o.D_p.inv
    first = o.H_a @ (o.psi_p @ o.K_p + o.P_p @ o.psi_p.T @ o.H_p.T @ D_inv @ L)
    second = o.H_a @ ((o.psi_p - o.P_p @ o.Omega_p) @ o.K_p + o.P_p @ o.psi_p.T @ o.H_p.T @ D_inv)
    c.near(first, c.S_ap)
    c.near(second, c.S_ap)


@on_every_robot
def test_5_1_c_both_forms_of_S_aa(name):
    """ψMψ* − PΩP only without rotors on passive joints: with them ψKJK*ψ* is missing."""
    c = Case(name)
    o = c.o
    rest = o.psi_p - o.P_p @ o.Omega_p
    second = o.H_a @ (rest @ o.P_p + o.P_p @ (o.psi_p.T - o.I)) @ o.H_a.T + o.J_a
    c.near(second, c.S_aa)
    inner = o.psi_p @ o.M @ o.psi_p.T - o.P_p @ o.Omega_p @ o.P_p
    first = o.H_a @ inner @ o.H_a.T + o.J_a
    rotors = o.psi_p @ o.K_p @ o.J_p @ o.K_p.T @ o.psi_p.T
    c.near(first + o.H_a @ rotors @ o.H_a.T, c.S_aa)
    if not c.rotors:
        c.near(first, c.S_aa)
    elif name in ("arm", "mixed with rotors"):
        assert np.abs(first.dense() - c.S_aa).max() > 1e-3


@on_every_robot
def test_5_3_generalised_dynamics_as_operators(name):
    c = Case(name)
    o, s, a_, p_ = c.o, c.s, c.a, c.p
    a, b = c.motion()
    tau = c.alg.inverse_dynamics(s.q, s.qd, s.qdd, s.f_ext)
    given = o.H_a.T @ s.qdd[a_] + a
    z = o.psi_p @ (o.K_p @ tau[p_] + b + o.P_p @ given)
    mu = o.D_p.inv @ (tau[p_] - o.H_p @ z)
    alpha = o.psi_p.T @ (o.H_p.T @ mu + given)
    scale = np.abs(z).max() + np.abs(mu).max(initial=0) + np.abs(alpha).max()
    c.near(alpha, o.phi.T @ (o.H.T @ s.qdd + a), scale)
    c.near(o.innovations_p.T @ mu - o.K_p.T @ (o.psi_p.T @ given), s.qdd[p_], scale)
    c.near(mu - o.K_p.T @ alpha, s.qdd[p_], scale)
    held = o.psi_p.T @ (o.H_p.T @ mu) + (o.psi_p.T - o.I) @ given
    driven = o.J_a @ s.qdd[a_]
    c.near(o.H_a @ (z + o.P_p @ held) + driven, tau[a_], scale)
    c.near(o.H_a @ (z + o.P_p @ (alpha - given)) + driven, tau[a_], scale)


@on_every_robot
def test_5_4_sweeps_of_generalised_dynamics(name):
    """H_pν̇_p in f belongs to joints that are driven in part, and is missed there."""
    c = Case(name)
    tau = c.alg.inverse_dynamics(c.s.q, c.s.qd, c.s.qdd, c.s.f_ext)
    tau_a, qdd_p = sweeps(c, tau)
    scale = np.abs(tau).max()
    c.near(qdd_p, c.s.qdd[c.p], scale)
    c.near(tau_a, tau[c.a], scale)
    mixed = any(0 < x.sum() < len(x) for x in c.robot.mechanism.rates(c.a))
    without = sweeps(c, tau, own=0.0)[0]
    assert (np.abs(without - tau[c.a]).max() > 1e-3) == mixed


def sweeps(c, tau, own=1.0):
    """τ_a and ν̇_p by (5.4); own: of H_pν̇_p in f."""
    o, mech = c.o, c.robot.mechanism
    a, b = (x.reshape(-1, 6) for x in c.motion())
    H_a, H_p, P, G = o.H_a.values, o.H_p.values, o.P_p.values, o.G_p.values
    qdd, tau = (mech.rates(x) for x in (c.s.qdd, tau))
    flags, phi = mech.rates(c.a), o.phi_blocks
    z, eps = [np.zeros(6), *b], [None] * len(flags)
    for p, k in mech.inward():
        z[k] = z[k] + P[k] @ (H_a[k].T @ qdd[k][flags[k]] + a[k - 1])
        eps[k] = tau[k][~flags[k]] - H_p[k] @ z[k]
        z[p] = z[p] + phi[k] @ (z[k] + G[k] @ eps[k])
    alpha, tau_a, qdd_p = [np.zeros(6), *[None] * len(b)], [], []
    rotors = mech.rates(np.concatenate(mech.armature))
    for p, k in mech.outward():
        plus = phi[k].T @ alpha[p]
        moved = np.linalg.solve(o.D_p.values[k], eps[k]) - G[k].T @ plus
        f = P[k] @ (plus + own * (H_p[k].T @ moved)) + z[k]
        given = qdd[k][flags[k]]
        tau_a.append(H_a[k] @ f + rotors[k][flags[k]] * given)
        qdd_p.append(moved)
        alpha[k] = plus + H_a[k].T @ given + H_p[k].T @ moved + a[k - 1]
    return np.concatenate(tau_a), np.concatenate(qdd_p)


# appendix, 6: projections


@on_every_robot
def test_appendix_second_form_of_omega_M_phi(name):
    """φ*H_p*[K*(ψ* − ΩP) + D⁻¹H_pψP] = φ* − (ψ* − ΩP) = ΩMφ*."""
    c = Case(name)
    s = c.o.passive
    rest = s.psi.T - s.Omega @ s.P
    inner = s.K.T @ rest + s.D.inv @ s.H @ s.psi @ s.P
    c.near(s.phi.T @ s.H.T @ inner, s.phi.T - rest)
    c.near(s.Omega @ s.M @ s.phi.T, s.phi.T - rest)


@on_every_robot
def test_appendix_what_omega_leaves(name):
    """(ψ − PΩ)Mφ* = (ψ − PΩ)P + Pψ~*, and ψMψ* − PΩP, with ψKJK*ψ* of the rotors."""
    c = Case(name)
    s, I = c.o.passive, c.o.I
    left = (s.psi - s.P @ s.Omega) @ s.M @ s.phi.T
    c.near(left, (s.psi - s.P @ s.Omega) @ s.P + s.P @ (s.psi.T - I))
    third = s.psi @ s.M @ s.psi.T - s.P @ s.Omega @ s.P
    c.near(left, third + s.psi @ s.K @ s.J @ s.K.T @ s.psi.T)
    c.lost_with_rotors(left, third)


@on_every_robot
def test_6_projections(name):
    """𝒯̄φ* = ψ* − ΩP always; 𝒯̄ψ* = ψ* − ΩP and 𝒯̄² = 𝒯̄ without rotors."""
    c = Case(name)
    s, T, rest = c.o.passive, c.u.passive_motion, c.u.active_motion
    c.near(rest @ s.phi.T, s.psi.T - s.Omega @ s.P)
    c.lost_with_rotors(rest @ s.psi.T, s.psi.T - s.Omega @ s.P)
    c.lost_with_rotors(rest @ rest, rest)
    c.lost_with_rotors(T @ T, T)
    rotors = s.Omega - s.Omega @ s.M @ s.Omega
    c.near(rest @ rest, rest - rotors @ s.M)


@on_every_robot
def test_6_8_active_inertia_between_projections(name):
    """S_aa = H_aφM𝒯̄φ*H_a* + J_a always; H_aφ𝒯̄*M𝒯̄φ*H_a* without rotors on passive joints."""
    c = Case(name)
    o, rest = c.o, c.u.active_motion
    once = o.phi @ o.M @ rest @ o.phi.T
    c.near(o.H_a @ once @ o.H_a.T + o.J_a, c.S_aa)
    twice = o.phi @ rest.T @ o.M @ rest @ o.phi.T
    padded = np.zeros((c.robot.nv,) * 2)
    padded[np.ix_(c.a, c.a)] = c.S_aa - o.J_a.dense()
    if not c.rotors:
        c.near(o.H_a @ twice @ o.H_a.T + o.J_a, c.S_aa)
        c.near(o.H @ twice @ o.H.T, padded)
    elif name in ("arm", "mixed with rotors"):
        assert np.abs((o.H @ twice @ o.H.T).dense() - padded).max() > 1e-3
        kept = (o.H_a @ twice @ o.H_a.T + o.J_a).dense()
        assert np.abs(kept - c.S_aa).max() > 1e-3


@on_every_robot
def test_6_generalised_jacobians_in_every_form(name):
    c = Case(name)
    o, s = c.o, c.o.passive
    B = o.B(c.robot.frame_names[-1])
    J = (B.T @ o.phi.T @ o.H.T).dense()
    expected = J[:, c.a] - J[:, c.p] @ c.S_ap.T
    c.near(B.T @ (s.psi.T - s.Omega @ s.P) @ o.H_a.T, expected)
    c.near(B.T @ c.u.active_motion @ o.phi.T @ o.H_a.T, expected)
    J_D = -(s.innovations.T @ s.D.inv @ s.H @ s.psi @ s.P) - s.K.T @ s.psi.T
    c.near(J_D @ o.H_a.T, -c.S_ap.T)
    assert str(simplify(s.innovations @ s.H @ s.phi)) == "H_p @ psi_p"


def test_6_2_end_frame_trajectory():
    """ν̇_a = J_G⁺(α_des − bias): the demand is met, and forward dynamics agrees."""
    robot = zoo.space_arm(7)
    s, arm, alg = random_state(robot, 3), robot.joint_names[1:], robot.alg
    tau, wanted = np.zeros(robot.nv), np.random.default_rng(3).normal(size=6)
    J_G = alg.generalized_jacobian(s.q, "tool", arm)
    bias = alg.generalized_bias(s.q, s.qd, tau, "tool", arm)
    qdd = np.concatenate([np.zeros(6), np.linalg.pinv(J_G) @ (wanted - bias)])
    motion = alg.hybrid_dynamics(s.q, s.qd, qdd, tau, arm)
    bound = 1000 * EPS
    assert_close(alg.frame_acceleration(s.q, s.qd, motion.qdd, "tool"), wanted, bound)
    assert_close(alg.forward_dynamics(s.q, s.qd, motion.tau), motion.qdd, bound)


# 7: free flight


@pytest.mark.parametrize("name", ["space_arm", "quadruped", "humanoid"])
def test_7_momentum_about_a_fixed_point(name):
    """h_I = φ(I,base) h of a free base changes with φ(I,base) τ_p and the weight alone; h itself
    with τ_p − V×*h and the weight: the paper's (7.3) needs twists about a fixed point."""
    robot = TREES[name]
    alg, s = robot.alg, random_state(robot, 2)
    tau = np.random.default_rng(2).normal(size=robot.nv)
    qdd = alg.forward_dynamics(s.q, s.qd, tau)
    path = along(robot, s.q, s.qd)

    def base(h):
        X = alg.poses(path(h))[0]
        momentum = alg.mass_matrix(path(h)) @ (s.qd + h * qdd)
        return momentum[:6], ForceTransfer(X[:3, :3], X[:3, 3])

    weight = -alg.gravity_forces(s.q)[:6]
    h, there = base(0.0)
    fixed = complex_step(lambda t: base(t)[1] @ base(t)[0])
    scale = np.abs(weight).max() + np.abs(h).max()
    bound = 20 * EPS * len(robot.body_names)
    assert_close(fixed, there @ (tau[:6] + weight), bound, scale)
    moving = complex_step(lambda t: base(t)[0])
    assert_close(moving, tau[:6] + weight - cross_force(s.qd[:6], h), bound, scale)
    assert np.abs(moving - tau[:6] - weight).max() > 1e-3
    total = alg.momentum(s.q, s.qd, about="world")
    assert_close(there @ h, total, bound, scale)


def test_7_momentum_of_passive_hinges_is_not_conserved():
    """M_pa ν_a + M_pp ν_p of hinges inside a chain changes though τ_p = 0 and nothing falls."""
    b = hinge.MechanismBuilder("chain", gravity=(0, 0, 0))
    parent = "world"
    for i in range(3):
        place = hinge.Transform(translation=(0.5, 0, 0))
        body = hinge.Inertia(1.0, (0.2, 0.1, 0), 0.1 * np.eye(3))
        b.add(f"body{i}", parent, hinge.Revolute((0, 0, 1)), None, place, body)
        parent = f"body{i}"
    robot = hinge.Robot(b.build())
    s = random_state(robot, 0)
    motion = robot.alg.hybrid_dynamics(s.q, s.qd, s.qdd, np.zeros(3), [True, False, True])
    path = along(robot, s.q, s.qd)
    rate = complex_step(lambda h: robot.alg.mass_matrix(path(h)) @ (s.qd + h * motion.qdd))
    assert abs(motion.tau[1]) == 0 and abs(rate[1]) > 1e-3
