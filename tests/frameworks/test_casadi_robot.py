"""A robot's methods on symbols of CasADi."""

import numpy as np
import pytest

import hinge
from hinge import zoo
from hinge.errors import ArgumentError

casadi = pytest.importorskip("casadi", reason="hinge.casadi needs casadi")


@pytest.fixture(scope="module")
def robot():
    """An arm, whose frames and settings are asked for."""
    return zoo.arm(3)


@pytest.fixture(scope="module")
def dyn(robot):
    """Its methods."""
    return hinge.casadi.robot(robot)


def test_methods_take_symbols_and_numbers_in_every_spelling(robot, dyn):
    q, qd, tau = np.random.default_rng(0).normal(size=(3, 3))
    x = casadi.MX.sym("x", 3)
    wanted = robot.forward_dynamics(q, qd, tau)
    fn = casadi.Function("fn", [x], [dyn.forward_dynamics(q, qd, x)])
    for found in (fn(tau), dyn.aba(q, qd, tau=tau), dyn.forward_dynamics(q=q, tau=tau, qd=qd)):
        assert np.array_equal(found.full().ravel(), wanted)
    pose = robot.frame_pose(q, "tool")
    assert np.array_equal(np.array(dyn.frame_pose(q, "tool")), pose)
    J = robot.jacobian(q, frame="tool", reference="body")
    assert np.array_equal(np.array(dyn.jacobian(q, frame="tool", reference="body")), J)
    loads = np.random.default_rng(1).normal(size=(3, 6))
    found = dyn.inverse_dynamics(q, qd, tau, f_ext=loads)
    assert np.array_equal(found.full().ravel(), robot.inverse_dynamics(q, qd, tau, f_ext=loads))


def test_columns_are_samples_and_one_serves_all(robot, dyn):
    q, qd, qdd = np.random.default_rng(0).normal(size=(3, 3, 5))
    found = np.array(dyn.inverse_dynamics(q, qd[:, 0], qdd))
    wanted = robot.inverse_dynamics(q.T, qd[:, 0], qdd.T)
    assert np.array_equal(found.T, wanted)
    loads = np.random.default_rng(1).normal(size=(3, 6))
    found = np.array(dyn.inverse_dynamics(q, qd, qdd, f_ext=loads)).T
    assert np.array_equal(found, robot.inverse_dynamics(q.T, qd.T, qdd.T, f_ext=loads))


def test_open_numbers_are_arguments():
    robot = hinge.Robot(zoo.arm(2).mechanism, parameters="gravity")
    q, gravity = np.array([0.3, -0.8]), np.array([1.0, 2.0, 3.0])
    found = hinge.casadi.robot(robot).gravity_forces(q, gravity=gravity)
    assert np.array_equal(found.full().ravel(), robot.gravity_forces(q, gravity=gravity))


def test_what_makes_no_sense_is_refused(robot, dyn):
    q = np.zeros(3)
    assert "inverse_dynamics" in dir(dyn) and repr(dyn) == "<methods of 'arm3' for CasADi>"
    with pytest.raises(AttributeError, match="no method invers_dynamics; did you mean"):
        dyn.invers_dynamics  # noqa: B018
    with pytest.raises(ArgumentError, match="got a Mechanism; expected a Robot"):
        hinge.casadi.robot(robot.mechanism)
    for given, named in (((q, q, q, q, q, q, q), {}), ((q,), {"q": q}), ((q,), {"nothing": q})):
        with pytest.raises(ArgumentError, match="mass_matrix of 'arm3' takes q, axes, each once"):
            dyn.mass_matrix(*given, **named)
    with pytest.raises(ArgumentError, match="q has shape"):
        dyn.mass_matrix(np.zeros(4))
    with pytest.raises(ArgumentError, match="qd has shape"):
        dyn.bias_forces(np.zeros((3, 4)), np.zeros((3, 3)))
    with pytest.raises(ArgumentError, match="symbols of casadi.SX"):
        dyn.mass_matrix(casadi.SX.sym("q", 3))
