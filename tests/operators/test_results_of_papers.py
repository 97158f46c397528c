"""Results of papers L, U and D as operator expressions, against the sweeps and dense algebra."""

import numpy as np
import pytest

import hinge
from hinge.operators import (
    Operators,
    coriolis,
    decompose,
    derivative,
    linearized,
    simplify,
    split,
)
from mechanisms import (
    EPS,
    ROBOTS,
    WITHOUT_FOLLOWERS,
    assert_close,
    random_split,
    random_state,
)


def moving(name):
    """The operators of a robot split in two, and its state."""
    robot = ROBOTS[name]
    flags = random_split(robot)
    state = random_state(robot, 0)
    return robot, Operators(robot.mechanism, state.q, flags), state, flags


@pytest.mark.parametrize("load", ["body", "world", "dead"])
@pytest.mark.parametrize("name", WITHOUT_FOLLOWERS)
def test_lemmas_3_1_and_3_2(name, load):
    robot, o, s, _ = moving(name)
    given = {"f_ext": s.f_ext, "load": load}
    expected = robot.alg.inverse_dynamics_derivatives(s.q, s.qd, s.qdd, **given)
    for composite in (False, True):
        model = linearized(o, s.qd, s.qdd, **given, composite=composite)
        for A, B in zip((model.B_D, model.A_D, model.mass), expected, strict=True):
            assert_close(A.dense(), B, 300 * EPS)


@pytest.mark.parametrize("load", ["body", "world", "dead"])
@pytest.mark.parametrize("name", WITHOUT_FOLLOWERS)
def test_lemmas_4_6_and_4_7(name, load):
    robot, o, s, _ = moving(name)
    model = linearized(o, s.qd, s.qdd, s.f_ext, load=load)
    bound = 100 * EPS * np.linalg.cond(o.mass.dense()) if robot.nv else 0
    for conventional, direct in ((model.A_D, model.A_C), (model.B_D, model.B_C)):
        expected = np.linalg.solve(model.mass.dense(), conventional.dense())
        assert_close(direct.dense(), expected, bound)
    x = np.random.default_rng(1).normal(size=robot.nv)
    assert_close(model.A_C @ x, model.mass_inv @ (model.A_D @ x), bound)


@pytest.mark.parametrize("name", WITHOUT_FOLLOWERS)
def test_decompositions_A_4_and_A_5(name):
    _, o, _, _ = moving(name)
    for left in (o.phi, o.psi, o.psi_p):
        A = left.T @ o.P @ o.phi.T
        assert_close(decompose(A).dense(), A.dense(), 300 * EPS)
    with pytest.raises(hinge.ArgumentError, match="cannot decompose"):
        decompose(o.phi.T @ o.P @ o.psi.T)


@pytest.mark.parametrize("name", [name for name in WITHOUT_FOLLOWERS if ROBOTS[name].nv > 1])
def test_split_against_dense_schur_complements(name):
    robot, o, s, a = moving(name)
    M, p = robot.alg.mass_matrix(s.q), ~a
    Mpp, Mpa = M[np.ix_(p, p)], M[np.ix_(p, a)]
    u = split(o)
    bound = 100 * EPS * np.linalg.cond(Mpp)
    assert_close(u.S_pp.dense(), np.linalg.inv(Mpp), bound)
    assert_close(u.S_ap.dense(), np.linalg.solve(Mpp, Mpa).T, bound)
    assert_close(u.S_aa.dense(), M[np.ix_(a, a)] - Mpa.T @ np.linalg.solve(Mpp, Mpa), bound)
    assert_close(u.J_D.dense(), -np.linalg.solve(Mpp, Mpa), bound)
    B = o.B(robot.frame_names[-1])
    J = (B.T @ o.phi.T @ o.H.T).dense()
    assert_close(u.J_G(B).dense(), J[:, a] - J[:, p] @ np.linalg.solve(Mpp, Mpa), bound)


@pytest.mark.parametrize("name", WITHOUT_FOLLOWERS)
def test_projections_of_a_split(name):
    robot, o, _, a = moving(name)
    u = split(o)
    T, rest = u.passive_motion.dense(), u.active_motion.dense()
    moved = u.active_motion @ o.phi.T @ o.H_p.T
    if o.passive.has_armature:
        assert np.abs(T @ T - T).max() > 1e-4
        return
    size = max(1, len(robot.body_names)) ** 2
    assert_close(T @ T, T, 100 * EPS * size)
    assert_close(moved.dense(), np.zeros(moved.shape), 100 * EPS * size)
    if robot.nv:
        assert np.linalg.matrix_rank(T, tol=100 * EPS) == (~a).sum()
        assert np.linalg.matrix_rank(rest, tol=100 * EPS) == len(T) - (~a).sum()
        both = (u.active_motion @ o.phi.T @ o.H.T).dense()
        assert np.linalg.matrix_rank(both, tol=100 * EPS) == a.sum()
    assert str(simplify(u.passive_motion @ u.passive_motion)) == "Omega_p @ M"


@pytest.mark.parametrize("name", WITHOUT_FOLLOWERS)
def test_coriolis_is_skew_and_right(name):
    robot, o, s, _ = moving(name)
    nu = o.mass_factor.T @ s.qd
    assert_close(nu, robot.alg.total_rates(s.q, s.qd), 100 * EPS)
    if any(isinstance(b.joint, hinge.Universal) for b in robot.mechanism.bodies):
        with pytest.raises(hinge.ArgumentError, match="use robot.diagonal_coriolis"):
            coriolis(o, nu)
        return
    A = coriolis(o, nu)
    dense = A.dense()
    scale = max(1.0, np.abs(dense).max(initial=0))
    assert_close(dense, -dense.T, 300 * EPS, scale)
    assert_close(A @ nu, robot.alg.diagonal_coriolis(s.q, nu), 3000 * EPS)
    bias = robot.alg.bias_forces(s.q, s.qd) - robot.alg.gravity_forces(s.q)
    rate = derivative(o.mass_factor, s.qd)
    assert_close(A @ nu, o.mass_factor.inv @ bias - rate.T @ s.qd, 3000 * EPS)
