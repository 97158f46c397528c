"""Where paper D's own recursions hold: the reason why hinge runs more general ones (math §8).

In body axes, with Λ = Ṗ + W ×* P − P W ×:

    (6.5)    Ṗ(p) = Ṗ(p) + φ τ̄ Λ τ̄* φ*
    (7.10)   y(p) = y(p) + φ τ̄ y,   y(k) = … + Λ H* ξ + (V ×* M − W ×* P) V,   C_ξ = H y
    (7.2)    y(p) = y(p) + φ τ̄ (y + Λ V),   y(k) = … + (2 V ×* M − X + X*) V − Λ τ̄* V⁺,
             X = W ×* P,   C = ½ L⁻¹ H y
"""

from dataclasses import replace

import numpy as np
import pytest

import hinge
from hinge.algebra.rotation import from_rpy
from hinge.algebra.spatial import congruence, cross_force
from hinge.algorithms.diagonalized.mass_factor import riccati
from hinge.operators import Operators, derivative
from mechanisms import EPS, JOINTS, random_state

HINGES = ("revolute", "prismatic", "helical")
SEVERAL = ("cylindrical", "translation")
TURNING = ("spherical", "planar", "free")


def chain(kind, armature):
    """Three bodies, turned, on joints of one kind, with a different armature for each DoF."""
    rng = np.random.default_rng(3)
    b = hinge.MechanismBuilder(kind)
    for i in range(3):
        different = armature * (1.0 + np.arange(JOINTS[kind].nv))
        joint = replace(JOINTS[kind], armature=different)
        place = hinge.Transform(from_rpy(*rng.normal(size=3)), 0.5 * rng.normal(size=3))
        moments = np.diag(rng.uniform(0.2, 0.3, size=3))
        body = hinge.Inertia(rng.uniform(0.5, 2), 0.3 * rng.normal(size=3), moments)
        b.add(f"body{i}", f"body{i - 1}" if i else "world", joint, None, place, body)
    return hinge.Robot(b.build())


def errors(kind, armature):
    """Of (6.5) and of (7.10), against the general sweeps."""
    robot = chain(kind, armature)
    s, mech = random_state(robot, 0), robot.mechanism
    H, phi, qd = mech.H(s.q), mech.phi(s.q), mech.rates(s.qd)
    known = riccati(mech, H, phi)
    xi_all = robot.alg.total_rates(s.q, s.qd, normalized=False)
    xi = mech.rates(xi_all)
    P_rate = [np.zeros((6, 6)) for _ in mech.bodies]
    V, y, C = mech.slots(3)
    for p, k in mech.outward():
        V[k], y[k] = phi[k].T @ V[p] + H[k].T @ qd[k], np.zeros(6)
    for p, k in mech.inward():
        W, P = H[k].T @ qd[k], known.P[k]
        tau_bar = np.eye(6) - known.G[k] @ H[k]
        twist = cross_force(W, P)
        Lambda = P_rate[k] + twist + twist.T
        gyroscopic = cross_force(V[k], mech.M[k] @ V[k]) - twist @ V[k]
        own = y[k] + Lambda @ H[k].T @ xi[k] + gyroscopic
        C[k] = H[k] @ own
        y[p] = y[p] + phi[k] @ (tau_bar @ own)
        P_rate[p] = P_rate[p] + congruence(tau_bar @ Lambda @ tau_bar.T, phi[k])
    expected = robot.alg.articulated_rates(s.q, s.qd).P_rate
    coriolis = robot.alg.diagonal_coriolis(s.q, xi_all, normalized=False)
    return np.abs(np.array(P_rate[1:]) - expected).max(), np.abs(mech.join(C) - coriolis).max()


@pytest.mark.parametrize("armature", [0.0, 0.4])
@pytest.mark.parametrize("kind", HINGES + SEVERAL)
def test_paper_recursions_hold_for_joints_that_commute(kind, armature):
    assert max(errors(kind, armature)) < 100 * EPS


@pytest.mark.parametrize("kind", TURNING)
def test_rate_of_the_articulated_inertia_holds_for_others_without_armature(kind):
    assert errors(kind, 0.0)[0] < 20 * EPS


@pytest.mark.parametrize("kind", ["spherical", "planar"])
def test_paper_recursions_fail_for_joints_that_do_not_commute(kind):
    assert errors(kind, 0.4)[0] > 0.01
    assert errors(kind, 0.0)[1] > 0.1


def errors_of_algorithm_7_1(kind, armature):
    """Of C, as printed with L̇ = ½ Ḋ L⁻*, and with the rate of the root put right."""
    robot = chain(kind, armature)
    s, mech = random_state(robot, 0), robot.mechanism
    o = Operators(robot.mechanism, s.q)
    H, phi, qd, P, G = o.H_blocks, o.phi_blocks, mech.rates(s.qd), o.P.values, o.G.values
    V = [np.zeros(6), *o.body.split(o.phi.T @ (o.H.T @ s.qd))[1:]]
    y = [np.zeros(6)] * len(V)
    Lambda, C = [np.zeros((6, 6))] * len(V), mech.slots(1)[0]
    for p, k in mech.inward():
        tau_bar, X = np.eye(6) - G[k] @ H[k], cross_force(H[k].T @ qd[k], P[k])
        V_plus = phi[k].T @ V[p]
        Lambda[k] = Lambda[k] + X + X.T
        gyroscopic = 2 * cross_force(V[k], mech.M[k] @ V[k]) - (X - X.T) @ V[k]
        y[k] = y[k] + gyroscopic - Lambda[k] @ tau_bar.T @ V_plus
        C[k] = 0.5 * H[k] @ y[k]
        y[p] = y[p] + phi[k] @ (tau_bar @ (y[k] + Lambda[k] @ V[k]))
        Lambda[p] = Lambda[p] + congruence(tau_bar @ Lambda[k] @ tau_bar.T, phi[k])
    nu, xi = o.mass_factor.T @ s.qd, o.factor.T @ s.qd
    printed = o.D_root.inv @ mech.join(C)
    half = 0.5 * (o.D_root.inv @ (derivative(o.D, s.qd) @ xi))
    righted = printed + half - derivative(o.D_root, s.qd).T @ xi
    expected = robot.alg.diagonal_coriolis(s.q, nu)
    return np.abs(printed - expected).max(), np.abs(righted - expected).max()


@pytest.mark.parametrize("armature", [0.0, 0.4])
def test_algorithm_7_1_holds_for_one_dof_and_with_another_root_for_joints_that_commute(armature):
    for kind in HINGES:
        assert max(errors_of_algorithm_7_1(kind, armature)) < 20 * EPS
    printed, righted = errors_of_algorithm_7_1("cylindrical", armature)
    assert printed > 1e-3 and righted < 100 * EPS
    for kind in ("spherical", "planar"):
        assert min(errors_of_algorithm_7_1(kind, armature)) > 0.1
