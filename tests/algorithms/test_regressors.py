"""Regressors: forces, energies and momenta as products with the parameters, on every robot."""

import re
from dataclasses import replace

import numpy as np
import pytest

import hinge
from cost.general_chain import chain
from hinge import algorithms, zoo
from hinge.algorithms.regressors import JOINT_TERMS, linear_parameters
from hinge.graph.interpret import interpret
from hinge.model.parameters import parameters, with_parameters
from hinge.specialize.arrays import array_shape
from hinge.specialize.canonical import Reframed
from hinge.specialize.loops import trace_loops
from mechanisms import EPS, ROBOTS, assert_close, everything, gripper, random_state

ALL = {**ROBOTS, "everything": everything()}
SOME = [name for name in ALL if name != "empty"]


def physical(mech, seed):
    """The mechanism with other bodies, and springs, damping and friction on its joints."""
    rng = np.random.default_rng(seed)
    bodies = list(mech.bodies)
    for k in range(1, len(bodies)):
        joint = bodies[k].joint
        numbers = {term: rng.uniform(0.1, 1.0, size=joint.nv) for term in JOINT_TERMS}
        if joint.nq > joint.nv:
            numbers["stiffness"][:3] = 0.3
        points = rng.normal(size=(3, 5))
        about = np.trace(points @ points.T) * np.eye(3) - points @ points.T
        own = hinge.Inertia(rng.uniform(0.5, 3.0), rng.normal(size=3) * 0.3, about)
        bodies[k] = replace(bodies[k], joint=replace(joint, **numbers), inertia=own)
    return replace(mech, bodies=tuple(bodies))


@pytest.mark.parametrize("name", SOME)
def test_forces_are_regressor_times_parameters(name):
    """Whatever the masses are: those of which the regressor was made do not matter."""
    plain, s = ALL[name], random_state(ALL[name], 1)
    mech = physical(plain.mechanism, 2)
    other = hinge.Robot(mech)
    pi = linear_parameters(mech, JOINT_TERMS)
    Y = algorithms.torque_regressor(plain.mechanism, s.q, s.qd, s.qdd, JOINT_TERMS)
    assert Y.shape == (plain.nv, len(pi.names)) == (plain.nv, len(pi.values))
    tau = other.alg.inverse_dynamics(s.q, s.qd, s.qdd) - other.alg.passive_forces(s.q, s.qd)
    scale = (np.abs(Y) @ np.abs(pi.values)).max()
    assert_close(Y @ pi.values, tau, 20 * EPS, scale)


@pytest.mark.parametrize("name", SOME)
def test_energies_and_momentum_are_regressors_times_parameters(name):
    robot, s = ALL[name], random_state(ALL[name], 3)
    mech = physical(robot.mechanism, 4)
    still = hinge.Robot(_without_armature(mech)).alg
    pi = parameters(mech)["inertia"].ravel()
    y = robot.alg.energy_regressor(s.q, s.qd)
    assert_close(y.kinetic @ pi, still.kinetic_energy(s.q, s.qd), 50 * EPS)
    assert_close(y.potential @ pi, still.potential_energy(s.q), 50 * EPS)
    h = robot.alg.momentum_regressor(s.q, s.qd) @ pi
    assert_close(h, still.momentum(s.q, s.qd, "world"), 50 * EPS)


def _without_armature(mech):
    bodies = [replace(b, joint=replace(b.joint, armature=0.0)) for b in mech.bodies]
    return replace(mech, bodies=tuple(bodies))


@pytest.mark.parametrize("name", ["gripper", "everything"])
def test_methods_are_the_plain_code_in_batches(name):
    robot = ALL[name]
    states = [random_state(robot, seed) for seed in range(5)]
    q, qd, qdd = (np.array([getattr(s, n) for s in states]) for n in ("q", "qd", "qdd"))
    out = np.empty((5, robot.nv, len(robot.linear_parameters("armature").names)))
    assert robot.torque_regressor(q, qd, qdd, "armature", out=out) is out
    assert_close(out[3], robot.alg.torque_regressor(q[3], qd[3], qdd[3], ["armature"]), 50 * EPS)
    y, plain = robot.energy_regressor(q, qd), robot.alg.energy_regressor(q[2], qd[2])
    for got, expected in zip(y, plain, strict=True):
        assert_close(got[2], expected, 50 * EPS)
    expected = robot.alg.momentum_regressor(q[1], qd[1])
    assert_close(robot.momentum_regressor(q, qd)[1], expected, 50 * EPS)


def test_a_robot_without_bodies_has_no_columns():
    robot, nothing = ALL["empty"], np.zeros(0)
    assert robot.torque_regressor(nothing, nothing, nothing).shape == (0, 0)
    assert robot.momentum_regressor(nothing, nothing).shape == (6, 0)
    assert robot.energy_regressor(nothing, nothing).kinetic.shape == (0,)


def test_long_robots_come_row_by_row():
    robot = zoo.snake(41)
    q, qd, qdd = np.random.default_rng(0).normal(size=(3, 2, robot.nv))
    q = np.array([robot.random_configuration(seed) for seed in range(2)])
    Y = robot.torque_regressor(q, qd, qdd, ("friction", "stiffness"))
    plain = robot.alg.torque_regressor(q[1], qd[1], qdd[1], ("friction", "stiffness"))
    assert_close(Y[1], plain, 100 * EPS)
    assert "row by row, from torque_regressor_row" in robot.explain("torque_regressor")
    assert_close(robot.torque_regressor(q, qd, qdd)[1], plain[:, : 10 * 41], 100 * EPS)
    q[0, 3] = np.nan
    broken = robot.torque_regressor(q, qd, qdd)
    assert np.isnan(broken[0]).all() and np.isfinite(broken[1]).all()


@pytest.mark.parametrize("name", ["torque_regressor_row", "energy_regressor", "momentum_regressor"])
def test_loops_know_bodies_that_are_offset(name):
    mech, s = ALL["everything"].mechanism, random_state(ALL["everything"], 5)
    given = {"q": s.q, "qd": s.qd, "qdd": s.qdd, "v": s.qdd + s.qd}
    if "row" not in name:
        given = {"q": s.q, "qd": s.qd}
    shapes = {n: array_shape(mech, n) for n in given}
    program = trace_loops(getattr(algorithms, name), Reframed.same(mech), shapes, name)
    got = interpret(program, list(given.values()))
    expected = getattr(algorithms, name)(mech, *given.values())
    for a, b in zip(got, _parts(expected), strict=True):
        assert_close(a, b, 100 * EPS)


def _parts(result):
    return result if isinstance(result, (list, tuple)) else [result]


def test_parameters_have_names():
    names, values = gripper().linear_parameters(("damping", "armature"))
    assert names[:5] == ("wrist.m", "wrist.mx", "wrist.my", "wrist.mz", "wrist.Jxx")
    assert names[50:57] == (
        *(f"{body}_joint.damping" for body in ("wrist", "left", "right", "tip", "pad")),
        "wrist_joint.armature",
        "left_joint.armature",
    )
    assert values[56] == 0.1 and len(values) == len(names) == 60
    assert ALL["everything"].linear_parameters("armature").names[190] == "base_joint.armature[0]"


def test_numbers_of_the_mechanism_may_be_open():
    mech = zoo.arm(3).mechanism
    robot = hinge.Robot(mech, parameters=("gravity",))
    q, qd, qdd = np.random.default_rng(1).normal(size=(3, 3))
    Y = robot.torque_regressor(q, qd, qdd, gravity=(0.0, 1.0, 2.0))
    other = with_parameters(mech, gravity=(0.0, 1.0, 2.0))
    assert_close(Y, algorithms.torque_regressor(other, q, qd, qdd), 20 * EPS)


def test_unknown_terms_are_refused():
    robot, still = zoo.arm(2), np.zeros(2)
    with pytest.raises(hinge.ArgumentError, match="no term 'dampin'; did you mean 'damping'"):
        robot.torque_regressor(still, still, still, joint_terms="dampin")
    with pytest.raises(hinge.ArgumentError, match=re.escape("damping, damping: name each once")):
        robot.linear_parameters(("damping", "damping"))


def test_the_cost_is_that_of_pairs_of_bodies():
    """At any angles: what each body costs by itself, and each pair of a body and a joint before."""
    counts = {n: _operations(n) for n in (4, 8, 12)}
    own, pair = np.round(
        np.linalg.solve([[n, n * (n - 1) / 2] for n in (8, 12)], [counts[8], counts[12]])
    )
    assert counts[4] == pytest.approx(4 * own + 6 * pair, rel=0.1)
    assert own <= 185 and pair <= 103


def _operations(n):
    mech = chain(n)
    kernel = hinge.Robot(mech).kernel("torque_regressor", "q", "qd", "qdd")
    return sum(kernel.ops[:2])
