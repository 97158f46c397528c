"""Paper D as sweeps, on every robot: multi-DoF joints, branches, armature, mimics.

The rates are checked against complex steps along the motion that forward dynamics gives: energy
balances hold for wrong roots as well (see the tests at the end), and for much else.
"""

import importlib
from dataclasses import replace

import numpy as np
import pytest

import hinge
from dense import condition
from hinge import ModelError, SingularError, zoo
from hinge.algebra.spatial import cross_force
from hinge.graph.interpret import interpret
from mechanisms import (
    EPS,
    ROBOTS,
    WITHOUT_FOLLOWERS,
    along,
    assert_close,
    complex_step,
    random_state,
)

SEEDS = (0, 1)
sweeps = importlib.import_module("hinge.algorithms.diagonalized.diagonal_dynamics")
every_robot = pytest.mark.parametrize(
    ("name", "seed"), [(name, seed) for name in ROBOTS for seed in SEEDS]
)
both = pytest.mark.parametrize("normalized", [True, False], ids=["nu", "xi"])


def case(name, seed):
    robot = ROBOTS[name]
    return robot.alg, robot, random_state(robot, seed)


def reversed_cholesky(M):
    return np.linalg.cholesky(M[::-1, ::-1])[::-1, ::-1] if M.size else M


def rate_along_the_motion(alg, robot, s, tau, normalized):
    """d(total rates)/dt where forward dynamics leads: nothing of the diagonal form is used."""
    qdd = alg.forward_dynamics(s.q, s.qd, tau, s.f_ext)
    path = along(robot, s.q, s.qd)
    return complex_step(lambda h: alg.total_rates(path(h), s.qd + h * qdd, normalized))


# the factor


@every_robot
def test_mass_factor_is_cholesky_from_the_tips(name, seed):
    alg, robot, s = case(name, seed)
    m, l = alg.mass_factor(s.q), alg.mass_factor_inverse(s.q)
    assert_close(m, reversed_cholesky(alg.mass_matrix(s.q)), 50 * EPS)
    assert (np.tril(m, -1) == 0).all() and (np.tril(l, -1) == 0).all()
    assert_close(l @ m, np.eye(robot.nv), 50 * EPS)


@pytest.mark.parametrize("name", ["quadruped", "humanoid", "tree0", "tree1"])
def test_mass_factor_is_zero_between_branches(name):
    alg, robot, s = case(name, 0)
    mech = robot.mechanism
    line = {k: {j for _, j in mech.ancestors(k)} for _, k in mech.outward()}
    apart = [(i, j) for i in line for j in line if i not in line[j] and j not in line[i]]
    assert apart
    for factor in (alg.mass_factor(s.q), alg.mass_factor_inverse(s.q)):
        for i, j in apart:
            rows, columns = (mech.v_slice(mech.bodies[k].joint_name) for k in (i, j))
            assert (factor[rows, columns] == 0).all()


@every_robot
def test_rate_of_the_mass_factor(name, seed):
    alg, robot, s = case(name, seed)
    path = along(robot, s.q, s.qd)
    expected = complex_step(lambda h: alg.mass_factor(path(h)))
    assert_close(alg.mass_factor_rate(s.q, s.qd), expected, 100 * EPS)


@every_robot
def test_rate_of_the_mass_matrix(name, seed):
    alg, robot, s = case(name, seed)
    path = along(robot, s.q, s.qd)
    expected = complex_step(lambda h: alg.mass_matrix(path(h)))
    assert_close(alg.mass_matrix_rate(s.q, s.qd), expected, 100 * EPS)


@every_robot
@pytest.mark.parametrize("form", ["body", "christoffel"])
def test_coriolis_matrix_splits_the_rate_of_the_mass_matrix(name, seed, form):
    alg, _, s = case(name, seed)
    C = alg.coriolis_matrix(s.q, s.qd, form)
    scale = max(1.0, np.abs(C).max(initial=0.0))
    assert_close(C + C.T, alg.mass_matrix_rate(s.q, s.qd), 200 * EPS, scale)
    bias = alg.bias_forces(s.q, s.qd) - alg.gravity_forces(s.q)
    assert_close(
        C @ s.qd, bias, 200 * EPS, max(scale, np.abs(alg.gravity_forces(s.q)).max(initial=0))
    )


IN_COORDINATES = [
    name for name, robot in ROBOTS.items() if all(b.joint.commuting for b in robot.mechanism.bodies)
]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", IN_COORDINATES)
def test_christoffel_form_is_made_of_christoffels_symbols(name, seed):
    alg, _, s = case(name, seed)
    dM = alg.mass_matrix_sensitivity(s.q)
    symbols = 0.5 * (dM + dM.transpose(0, 2, 1) - dM.transpose(2, 0, 1))
    expected = np.einsum("ijk,k->ij", symbols, s.qd)
    assert_close(alg.coriolis_matrix(s.q, s.qd, "christoffel"), expected, 200 * EPS)


def test_form_of_the_coriolis_matrix_is_a_word():
    arm = zoo.arm(2)
    with pytest.raises(hinge.ArgumentError, match="form is 'skew'.*'body'.*'christoffel'"):
        arm.coriolis_matrix(arm.neutral(), np.ones(2), form="skew")


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", WITHOUT_FOLLOWERS)
def test_articulated_rates(name, seed):
    alg, robot, s = case(name, seed)
    path = along(robot, s.q, s.qd)
    rates = alg.articulated_rates(s.q, s.qd)
    moved = [complex_step(lambda h, i=i: alg.articulated_rates(path(h), s.qd)[i]) for i in (0, 2)]
    assert_close(rates.P_rate, moved[0], 200 * EPS)
    assert_close(rates.D_rate, moved[1], 200 * EPS)


# rates and forces


@every_robot
def test_total_rates_carry_the_kinetic_energy(name, seed):
    alg, _, s = case(name, seed)
    nu, xi = alg.total_rates(s.q, s.qd), alg.total_rates(s.q, s.qd, normalized=False)
    assert_close(nu, alg.mass_factor(s.q).T @ s.qd, 50 * EPS)
    assert_close(0.5 * nu @ nu, alg.kinetic_energy(s.q, s.qd), 50 * EPS)
    D = alg.innovations(s.q, s.qd).covariance
    assert_close(0.5 * xi @ D @ xi, alg.kinetic_energy(s.q, s.qd), 50 * EPS)


@both
@every_robot
def test_joint_rates_undo_total_rates(name, seed, normalized):
    alg, _, s = case(name, seed)
    nu = alg.total_rates(s.q, s.qd, normalized)
    bound = 20 * EPS * condition(alg.mass_factor(s.q))
    assert_close(alg.joint_rates(s.q, nu, normalized), s.qd, bound)


@both
@every_robot
def test_joint_forces_undo_working_forces(name, seed, normalized):
    alg, _, s = case(name, seed)
    eps = alg.working_forces(s.q, s.qdd, normalized=normalized)
    bound = 20 * EPS * condition(alg.mass_factor(s.q))
    assert_close(alg.joint_forces(s.q, eps, normalized), s.qdd, bound)


@both
@every_robot
def test_power_is_that_of_the_joints(name, seed, normalized):
    alg, _, s = case(name, seed)
    nu = alg.total_rates(s.q, s.qd, normalized)
    eps = alg.working_forces(s.q, s.qdd, normalized=normalized)
    assert_close(nu @ eps, s.qd @ s.qdd, 50 * EPS, max(1.0, np.abs(nu) @ np.abs(eps)))


@every_robot
def test_gravity_and_external_forces_in_working_form(name, seed):
    alg, robot, s = case(name, seed)
    l = alg.mass_factor_inverse(s.q)
    g = alg.gravity_forces(s.q)
    scale = max(1.0, np.abs(l).max(initial=0.0) * np.abs(g).max(initial=0.0))
    assert_close(alg.working_gravity(s.q), -l @ g, 100 * EPS, scale)
    external = np.zeros(robot.nv)
    for body, f in zip(robot.body_names, s.f_ext, strict=True):
        external += alg.jacobian(s.q, body, "body").T @ f
    expected = l @ (s.qdd + external)
    scale = max(1.0, np.abs(l).max(initial=0.0) * (np.abs(external) + np.abs(s.qdd)).max(initial=0))
    assert_close(alg.working_forces(s.q, s.qdd, s.f_ext), expected, 100 * EPS, scale)


@every_robot
def test_innovations_are_what_the_filter_says(name, seed):
    alg, _, s = case(name, seed)
    found = alg.innovations(s.q, s.qdd)
    m = alg.mass_factor(s.q)
    assert_close(
        found.predicted + found.innovation,
        s.qdd,
        10 * EPS,
        1 + np.abs(found.predicted).max(initial=0),
    )
    assert_close(m @ found.whitened, s.qdd, 50 * EPS * condition(m))
    energy = found.innovation @ np.linalg.solve(found.covariance, found.innovation)
    assert_close(energy, found.whitened @ found.whitened, 100 * EPS * condition(m))


# motion


@both
@every_robot
def test_motion_in_total_rates_is_forward_dynamics(name, seed, normalized):
    alg, robot, s = case(name, seed)
    nu = alg.total_rates(s.q, s.qd, normalized)
    got = alg.diagonal_dynamics(s.q, nu, s.qdd, s.f_ext, normalized)
    bound = 20 * EPS * condition(alg.mass_factor(s.q))
    assert_close(got, rate_along_the_motion(alg, robot, s, s.qdd, normalized), bound)


@every_robot
def test_coriolis_force_does_no_work(name, seed):
    alg, _, s = case(name, seed)
    nu = alg.total_rates(s.q, s.qd)
    C = alg.diagonal_coriolis(s.q, nu)
    assert abs(nu @ C) <= 50 * EPS * max(1.0, np.linalg.norm(nu) * np.linalg.norm(C))


@every_robot
def test_unnormalised_coriolis_force_works_on_the_joint_inertias(name, seed):
    alg, robot, s = case(name, seed)
    xi = alg.total_rates(s.q, s.qd, normalized=False)
    C = alg.diagonal_coriolis(s.q, xi, normalized=False)
    path = along(robot, s.q, s.qd)
    D_rate = complex_step(lambda h: alg.innovations(path(h), s.qd).covariance)
    assert_close(xi @ C, 0.5 * xi @ D_rate @ xi, 100 * EPS, max(1.0, np.abs(xi) @ np.abs(C)))


@both
@every_robot
def test_balance_of_forces(name, seed, normalized):
    """D ξ̇ or ν̇ = working forces + gravity − C."""
    alg, _, s = case(name, seed)
    nu = alg.total_rates(s.q, s.qd, normalized)
    parts = [
        alg.working_forces(s.q, s.qdd, s.f_ext, normalized),
        alg.working_gravity(s.q, normalized),
        -alg.diagonal_coriolis(s.q, nu, normalized),
    ]
    rate = alg.diagonal_dynamics(s.q, nu, s.qdd, s.f_ext, normalized)
    if not normalized:
        rate = alg.innovations(s.q, s.qd).covariance @ rate
    scale = max(1.0, np.abs(parts).max(initial=0.0))
    assert_close(rate, sum(parts), 50 * EPS * condition(alg.mass_factor(s.q)), scale)


@every_robot
def test_coriolis_matrix_of_total_rates_is_skew(name, seed):
    alg, _, s = case(name, seed)
    nu = alg.total_rates(s.q, s.qd)
    A = alg.diagonal_coriolis_matrix(s.q, nu)
    scale = max(1.0, np.abs(A).max(initial=0.0))
    assert_close(A, -A.T, 200 * EPS, scale)
    assert_close(
        A @ nu, alg.diagonal_coriolis(s.q, nu), 200 * EPS, scale * max(1.0, np.abs(nu).sum())
    )
    # from the Coriolis matrix of joint rates: A = ℓ C ℓᵀ − ṁᵀ ℓᵀ
    l, m_rate = alg.mass_factor_inverse(s.q), alg.mass_factor_rate(s.q, s.qd)
    expected = l @ alg.coriolis_matrix(s.q, s.qd) @ l.T - m_rate.T @ l.T
    assert_close(A, expected, 200 * EPS * condition(l), scale)


def test_articulated_rates_need_a_tree():
    robot = ROBOTS["gripper"]
    with pytest.raises(ModelError, match="mimic others: it has no articulated inertias"):
        robot.articulated_rates(robot.neutral(), np.zeros(robot.nv))


# what the tests above would catch


def errors(name, seed=0):
    """Of ν̇, and of νᵀC relative to its terms."""
    alg, robot, s = case(name, seed)
    nu = alg.total_rates(s.q, s.qd)
    C = alg.diagonal_coriolis(s.q, nu)
    got = alg.diagonal_dynamics(s.q, nu, s.qdd, s.f_ext)
    motion = np.abs(got - rate_along_the_motion(alg, robot, s, s.qdd, True)).max()
    return motion, abs(nu @ C) / (np.linalg.norm(nu) * np.linalg.norm(C))


@pytest.mark.parametrize("name", ["tree0", "tree1", "humanoid", "snake"])
def test_the_scalar_rule_for_block_roots_is_caught_though_energy_balances(name, monkeypatch):
    """L̇ = ½ Ḋ L⁻ᵀ, that is L⁻¹ L̇ = ½ L⁻¹ Ḋ L⁻ᵀ: the error is skew and does no work."""
    monkeypatch.setattr(sweeps, "half_upper", lambda A: 0.5 * A)
    motion, work = errors(name)
    assert motion > 1e-3
    assert work < 50 * EPS


@pytest.mark.parametrize("name", ["arm", "cartpole"])
def test_the_scalar_rule_is_right_for_joints_of_one_dof(name, monkeypatch):
    monkeypatch.setattr(sweeps, "half_upper", lambda A: 0.5 * A)
    assert errors(name)[0] < 300 * EPS


def test_the_angular_part_of_the_joint_motion_is_not_enough(monkeypatch):
    """Only the rotation of a joint in the rate of P: right for hinges, wrong for sliders."""

    def angular(W, f):
        return (
            cross_force(np.concatenate([W[:3], 0 * W[3:]]), f) if f.ndim == 2 else cross_force(W, f)
        )

    monkeypatch.setattr(sweeps, "cross_force", angular)
    assert errors("arm")[0] < 300 * EPS
    assert errors("tree0")[0] > 0.1


# compiled

FRONT_DOOR = {
    "total_rates": "q qd",
    "joint_rates": "q nu",
    "working_forces": "q tau f_ext",
    "working_gravity": "q",
    "joint_forces": "q eps",
    "diagonal_coriolis": "q nu",
    "diagonal_dynamics": "q nu tau f_ext",
}
MATRICES = {
    "diagonal_coriolis_matrix": "q nu",
    "mass_factor": "q",
    "mass_factor_inverse": "q",
    "mass_factor_rate": "q qd",
    "mass_matrix_rate": "q qd",
    "coriolis_matrix": "q qd",
}


def arguments(names, s):
    return [getattr(s, {"nu": "qd", "eps": "qd", "tau": "qdd"}.get(n, n)) for n in names.split()]


@pytest.mark.parametrize("robot", [zoo.tree(6, 9), ROBOTS["gripper"]], ids=lambda r: r.name)
def test_regrouped_inertias_in_other_frames_give_the_same(robot):
    """Kernels are traced in canonical frames: what is joint-level does not notice."""
    s = random_state(robot, 5)
    for function, names in {**FRONT_DOOR, **MATRICES}.items():
        for static in ({}, {"normalized": False}) if function in FRONT_DOOR else ({},):
            given = arguments(names, s)
            program = robot.kernel(function, *names.split(), **static).program
            expected = getattr(robot.alg, function)(*given, **static)
            assert_close(interpret(program, given)[0], expected, 3000 * EPS)


def test_front_door():
    robot = zoo.arm(2)
    s = random_state(robot, 5)
    for name, names in {**FRONT_DOOR, **MATRICES}.items():
        given = arguments(names, s)
        assert_close(getattr(robot, name)(*given), getattr(robot.alg, name)(*given), 100 * EPS)
    given = (s.q, s.qd)
    for name in ("innovations", "articulated_rates"):
        got, expected = getattr(robot, name)(*given), getattr(robot.alg, name)(*given)
        assert type(got) is type(expected)
        for a, b in zip(got, expected, strict=True):
            assert_close(a, b, 100 * EPS)
    xi = robot.alg.total_rates(s.q, s.qd, normalized=False)
    assert_close(robot.total_rates(s.q, s.qd, normalized=False), xi, 100 * EPS)


@pytest.mark.parametrize("static", [{}, {"normalized": False}], ids=["nu", "xi"])
def test_loops_agree_with_the_generic_code(static):
    robot = zoo.snake(41)
    s = random_state(robot, 0)
    names = FRONT_DOOR["diagonal_dynamics"]
    expected = robot.alg.diagonal_dynamics(*arguments(names, s), **static)
    assert_close(robot.diagonal_dynamics(*arguments(names, s), **static), expected, 1e4 * EPS)


def test_a_massless_tip_has_no_total_rates_until_it_has_armature():
    b = hinge.MechanismBuilder("light")
    b.add("link", "world", hinge.Revolute(), inertia=hinge.Inertia(1.0, (0.1, 0, 0), np.eye(3)))
    heavy = b.add("tip", "link", hinge.Revolute((0, 1, 0), armature=0.1)).build()
    tip = replace(heavy.bodies[2], joint=hinge.Revolute((0, 1, 0)))
    light = replace(heavy, bodies=(*heavy.bodies[:2], tip))
    with pytest.raises(SingularError, match="joint 'tip_joint' moves no inertia here"):
        hinge.Robot(light).total_rates([0.1, 0.2], [1.0, 2.0])
    nu = hinge.Robot(heavy).total_rates([0.1, 0.2], [1.0, 2.0])
    assert_close(nu[1], np.sqrt(0.1) * 2.0, 10 * EPS)


def test_single_precision():
    robot = hinge.Robot(zoo.arm(3).mechanism, dtype=np.float32)
    s = random_state(robot, 0)
    nu = robot.total_rates(s.q, s.qd)
    assert nu.dtype == np.float32
    assert_close(nu, robot.alg.total_rates(s.q, s.qd), 4 * np.finfo(nu.dtype).eps)
