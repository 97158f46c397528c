"""Paper L: inverse dynamics against complex steps, and against its misprints."""

from functools import cache

import numpy as np
import pytest

import hinge
from hinge import algorithms, zoo
from hinge.algebra.spatial import cross_force, cross_motion
from hinge.algorithms.linearized.gyroscopic import gyroscopic
from hinge.model.ground_axes import InGroundAxes
from hinge.specialize.canonical import canonical
from identities.paper_l_cases import (
    EPS,
    TREES,
    loads,
    mutated,
    random_state,
    reference_inverse,
    worst,
)
from mechanisms import JOINTS, assert_close, complex_step

AXES = ("body", "ground")


@cache
def known(name):
    """A robot, a state of it, and its derivatives by complex steps."""
    robot = TREES[name]
    s = random_state(robot, 1)
    return robot, s, reference_inverse(robot, s)


@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize("name", TREES)
def test_derivatives_are_those_of_complex_steps(name, axes):
    robot, s, expected = known(name)
    got = robot.alg.inverse_dynamics_derivatives(s.q, s.qd, s.qdd, s.f_ext, axes=axes)
    assert worst(got, expected) < 100 * EPS
    d = np.random.default_rng(2).normal(size=(3, robot.nv))
    change = robot.alg.inverse_dynamics_jvp(s.q, s.qd, s.qdd, *d, s.f_ext, axes=axes)
    assert (
        worst([change], [expected[0] @ d[0] + expected[1] @ d[1] + expected[2] @ d[2]]) < 100 * EPS
    )


@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize("load", ["body", "world", "dead"])
@pytest.mark.parametrize("name", ["arm", "everything", "gripper", "tree1"])
def test_each_kind_of_load_has_its_own_derivative(name, load, axes):
    robot = TREES[name]
    s = random_state(robot, 4)
    points = np.random.default_rng(5).normal(size=(len(robot.body_names), 3))
    force = loads(robot, s.q, s.f_ext, points, load)
    assert_close(force(s.q), s.f_ext, 50 * EPS)
    B, A, M = reference_inverse(robot, s, force)
    at = (s.q, s.qd, s.qdd)
    given = (s.f_ext, points, load, axes)
    assert worst(robot.alg.inverse_dynamics_derivatives(*at, *given), (B, A, M)) < 500 * EPS
    d = np.random.default_rng(2).normal(size=(3, robot.nv))
    change = robot.alg.inverse_dynamics_jvp(*at, *d, *given)
    assert worst([change], [B @ d[0] + A @ d[1] + M @ d[2]]) < 500 * EPS


def test_a_dead_load_acts_at_the_origin_unless_a_point_is_given():
    robot = TREES["tree0"]
    s = random_state(robot, 0)
    at, origins = (s.q, s.qd, s.qdd, s.f_ext), np.zeros((len(robot.body_names), 3))
    plain = robot.alg.inverse_dynamics_derivatives(*at, load="dead")
    assert np.array_equal(plain.dq, robot.alg.inverse_dynamics_derivatives(*at, origins, "dead").dq)
    with pytest.raises(hinge.ArgumentError, match="load is 'heavy'; expected one of 'body', "):
        robot.alg.inverse_dynamics_derivatives(*at, load="heavy")


def test_branches_do_not_meet():
    robot = TREES["everything"]
    s = random_state(robot, 0)
    left = [robot.v_slice(n) for n in robot.joint_names if n.startswith("left")]
    right = [robot.v_slice(n) for n in robot.joint_names if n.startswith("right")]
    for matrix in robot.alg.inverse_dynamics_derivatives(s.q, s.qd, s.qdd):
        for a in left:
            for b in right:
                assert not matrix[a, b].any() and not matrix[b, a].any()


def test_nothing_is_lost_far_away():
    robot = zoo.humanoid()
    s = random_state(robot, 4)
    far = s.q.copy()
    far[:3] += (1e4, -1e4, 1e4)
    for axes in AXES:
        near, away = (
            robot.alg.inverse_dynamics_derivatives(q, s.qd, s.qdd, s.f_ext, axes=axes)
            for q in (s.q, far)
        )
        assert worst(away, near) < 20 * EPS


@pytest.mark.parametrize("name", ["tree0", "everything", "gripper"])
def test_the_lean_mechanism_and_ground_axes_change_nothing(name):
    robot = TREES[name]
    s, form = random_state(robot, 3), canonical(robot.mechanism)
    expected = robot.alg.inverse_dynamics_derivatives(s.q, s.qd, s.qdd, s.f_ext)
    thin = algorithms.inverse_dynamics_derivatives(
        form.mechanism, s.q, s.qd, s.qdd, form.forces(s.f_ext)
    )
    assert worst(thin, expected) < 500 * EPS
    seen = InGroundAxes(robot.mechanism, s.q)
    tau = algorithms.inverse_dynamics(seen, s.q, s.qd, s.qdd, s.f_ext)
    assert_close(tau, robot.alg.inverse_dynamics(s.q, s.qd, s.qdd, s.f_ext), 100 * EPS)
    M = algorithms.mass_matrix(seen, s.q)
    assert_close(M, robot.alg.mass_matrix(s.q), 100 * EPS)


def test_gyroscopic_matrix_is_half_the_change_of_the_gyroscopic_force():
    """M̂ = ½(V×* M − M V× − Q[MV]); (2.6), (2.7) and the closed form of paper L."""
    rng = np.random.default_rng(0)
    M = hinge.Inertia(1.3, rng.normal(size=3), np.diag([0.2, 0.3, 0.25])).spatial
    V, dV = rng.normal(size=(2, 6))
    M_hat = np.hstack([gyroscopic(M, V).left, np.zeros((6, 3))])
    one = np.eye(6)
    S = np.array([cross_force(V, e) for e in one]).T
    Q = -np.array([cross_force(e, M.matrix @ V) for e in one]).T
    assert_close(M_hat, 0.5 * (S @ M.matrix + M.matrix @ S.T - Q), 10 * EPS)
    assert_close(M_hat @ V, cross_force(V, M.matrix @ V), 10 * EPS)
    change = complex_step(lambda s: cross_force(V + s * dV, M.matrix @ (V + s * dV)))
    assert_close(2 * M_hat @ dV, change + M.matrix @ cross_motion(dV, V), 10 * EPS)


@pytest.mark.parametrize("kind", ["universal", "spherical", "free", "planar", "helical"])
def test_slopes_of_the_hinge_map_are_its_derivatives(kind):
    joint, rng = JOINTS[kind], np.random.default_rng(1)
    q, qd = joint.random(rng), rng.normal(size=joint.nv)
    for b, e in enumerate(np.eye(joint.nv)):
        slope = complex_step(lambda s, e=e: joint.H(joint.integrate(q, s * e)))
        rate = complex_step(lambda s, e=e: joint.H_rate(joint.integrate(q, s * e), qd))
        assert_close(joint.H_slope(q)[b], slope, 10 * EPS)
        assert_close(joint.H_rate_slope(q, qd)[b], rate, 10 * EPS)
    assert_close(joint.H_rate(q, qd), np.tensordot(qd, joint.H_slope(q), 1), 10 * EPS)


# what paper L prints, and what it must be: erratum → changed lines, algorithms that notice
NOMINAL, INVERSE = "linearized.nominal", "linearized.inverse_derivatives"
MISPRINTS = {
    "1: the force term transposed": {
        NOMINAL: {
            "-np.concatenate([n @ H[:3] + g @ H[3:], g @ H[:3]])": (
                "np.concatenate([n @ H[:3], n @ H[3:] + g @ H[:3]])"
            )
        }
    },
    "2: M̂ϑ without its factor 2": {
        INVERSE: {
            "M_hat = gyroscopic(M[k], n.V[k] + n.V[k])": "M_hat = gyroscopic(M[k], n.V[k])",
            "k: gyroscopic(M[k], n.V[k] + n.V[k])": "k: gyroscopic(M[k], n.V[k])",
        }
    },
    "2: the force term without its δq": {
        INVERSE: {
            "+ n.F[k] @ dq_[k]": "+ n.F[k].sum(axis=1)",
            "+ turned + n.F[k]": "+ turned",
        }
    },
    "3: the sign of the upper left of M̂": {
        "linearized.gyroscopic": {"A = skew(w) @ lifted": "A = -skew(w) @ lifted"}
    },
    "9: composites of one body's own inertia": {
        INVERSE: {
            "congruence(crb[k], phi[k])": "congruence(mech_.M[k], phi[k])",
            "+ phi[k] @ rho[k]": "+ phi[k] @ (M[k] @ eta[k])",
        }
    },
    "12: Ḣ for H′": {NOMINAL: {"= turn + slope": "= turn + joint[k].spin.T"}},
    "12: 2Ḣ for Ḣ + H′": {NOMINAL: {"joint[k].spin.T + slope": "2 * joint[k].spin.T"}},
    "12: Ḧ for H″": {
        NOMINAL: {"_carried_twice(V_plus, alpha_plus,": "_carried_twice(V[k], alpha[k],"}
    },
    "12: the force term on the joint itself": {
        NOMINAL: {"E[k] = joint[k].bracket @ f[k]": "E[k] = 0 * joint[k].bracket @ f[k]"}
    },
    "gravity left out of H″": {
        NOMINAL: {
            "_carried_twice(V_plus, alpha_plus,": "_carried_twice(V_plus, alpha_plus * (p > 0),"
        }
    },
}


@pytest.mark.parametrize("misprint", MISPRINTS)
def test_a_misprint_put_back_is_noticed(misprint):
    """Algorithm 1 and Algorithm 2, run from their own source with the misprint in it."""
    robot, s, (B, A, M) = known("everything")
    at = (s.q, s.qd, s.qdd)
    wrong = mutated(INVERSE, MISPRINTS[misprint])
    d = np.random.default_rng(2).normal(size=(3, robot.nv))
    matrices = wrong.inverse_dynamics_derivatives(robot.mechanism, *at, s.f_ext)
    assert worst(matrices, (B, A, M)) > 1e-3
    change = wrong.inverse_dynamics_jvp(robot.mechanism, *at, *d, s.f_ext)
    assert worst([change], [B @ d[0] + A @ d[1] + M @ d[2]]) > 1e-3


def test_the_source_without_misprints_is_right():
    robot, s, expected = known("everything")
    same = mutated(INVERSE, {"linearized.gyroscopic": {}, NOMINAL: {}})
    got = same.inverse_dynamics_derivatives(robot.mechanism, s.q, s.qd, s.qdd, s.f_ext)
    assert worst(got, expected) < 100 * EPS
