"""Factors of M and of the Coriolis forces that Pinocchio has too: M = U D Uᵀ, c = C q̇."""

import numpy as np
import pytest

from mechanisms import EPS, assert_close
from oracle.pinocchio_bridge import PinocchioRobot, pin
from oracle.random_trees import model_of, random_tree, robot_of

KINDS = ("revolute", "prismatic", "helical", "revolute", "prismatic", "revolute", "helical")


@pytest.mark.parametrize("seed", range(6))
def test_mass_factor_is_pinocchios_decomposition(seed):
    parts = random_tree(KINDS, seed, forest=True)
    oracle = PinocchioRobot(robot_of(parts), model_of(parts))
    robot = oracle.robot
    q = robot.random_configuration(seed)
    pin.crba(oracle.model, oracle.data, oracle.configuration(q), pin.Convention.WORLD)
    pin.cholesky.decompose(oracle.model, oracle.data)
    assert_close(oracle.G, np.eye(robot.nv), 0.0)
    m, D = robot.alg.mass_factor(q), robot.alg.innovations(q, np.zeros(robot.nv)).covariance
    assert_close(np.diag(D), oracle.data.D, 100 * EPS)
    assert_close(m / np.diag(m), oracle.data.U, 100 * EPS)


# of universal joints, Pinocchio's C q̇ is not its bias; those it composes of two it treats otherwise
SYMBOLS = ("revolute", "free", "prismatic", "spherical", "helical", "planar", "translation")


@pytest.mark.parametrize("seed", range(6))
def test_coriolis_matrix_of_christoffels_symbols_is_pinocchios(seed):
    parts = random_tree(SYMBOLS, seed, forest=True)
    oracle = PinocchioRobot(robot_of(parts), model_of(parts))
    robot = oracle.robot
    q, qd = robot.random_configuration(seed), np.random.default_rng(seed).normal(size=robot.nv)
    C = pin.computeCoriolisMatrix(oracle.model, oracle.data, oracle.configuration(q), oracle.G @ qd)
    assert_close(
        robot.coriolis_matrix(q, qd, form="christoffel"), oracle.G.T @ C @ oracle.G, 100 * EPS
    )
