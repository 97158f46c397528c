"""Regressors against Pinocchio's, whose parameters come in the same order."""

import numpy as np
import pytest

from mechanisms import EPS, assert_close
from oracle.example_robots import load
from oracle.pinocchio_bridge import pin

CASES = [("panda", "fixed"), ("ur5", "fixed"), ("solo12", "floating"), ("tiago", "fixed")]


def columns(oracle):
    """Pinocchio's columns of each body, in the order of hinge's bodies."""
    numbers = [oracle.model.getJointId(name) for name in oracle.robot.joint_names]
    return np.concatenate([np.arange(10 * k - 10, 10 * k) for k in numbers])


@pytest.mark.parametrize(("name", "base"), CASES)
def test_regressors_are_pinocchios(name, base):
    oracle = load(name, base)
    robot, model, data = oracle.robot, oracle.model, oracle.data
    rng = np.random.default_rng(0)
    q = robot.random_configuration(rng)
    qd, qdd = rng.normal(size=(2, robot.nv))
    state = oracle.configuration(q), oracle.G @ qd, oracle.G @ qdd
    order = columns(oracle)
    Y = oracle.G.T @ pin.computeJointTorqueRegressor(model, data, *state)[:, order]
    assert_close(robot.torque_regressor(q, qd, qdd), Y, 200 * EPS)
    y = robot.energy_regressor(q, qd)
    kinetic = pin.computeKineticEnergyRegressor(model, data, *state[:2])
    assert_close(y.kinetic, np.ravel(kinetic)[order], 200 * EPS)
    potential = pin.computePotentialEnergyRegressor(model, data, state[0])
    assert_close(y.potential, np.ravel(potential)[order], 200 * EPS)
