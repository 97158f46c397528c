"""Derivatives of the dynamics: hinge's against Pinocchio's analytic ones.

Pinocchio's are wrong for universal joints (by 0.2 to 2, against its own finite differences) and for
models whose joints are not added depth first; neither is in here.  Differences count relative to
the largest entry, in units that give each degree of freedom an inertia of one.
"""

import numpy as np
import pytest

from mechanisms import EPS
from oracle.agreement import assert_agrees, wild_state
from oracle.example_robots import CASES, MASSLESS_FINGERS, load
from oracle.pinocchio_bridge import PinocchioRobot, pin
from oracle.random_trees import KINDS, oracle_of, random_tree

# by what, before the condition of M counts.  Pinocchio sums ∂/∂q̇ in world axes, where a wrist of
# 4e-6 kg m² is good to the eps of a kilogram at a metre.
BOUNDS = {"dq": 500 * EPS, "dqd": 4e5 * EPS, "dqdd": 100 * EPS, "dtau": 100 * EPS}
GOOD = [kind for kind in KINDS if "universal" not in kind]


def inverse(oracle: PinocchioRobot, s):
    """∂τ/∂q, ∂τ/∂q̇, M."""
    state = oracle.configuration(s.q), oracle.G @ s.qd, oracle.G @ s.qdd
    pin.computeRNEADerivatives(oracle.model, oracle.data, *state, oracle.forces(s.f_ext))
    parts = oracle.data.dtau_dq, oracle.data.dtau_dv
    return [oracle.G.T @ x @ oracle.G for x in parts] + [oracle.mass_matrix(s.q)]


def forward(oracle: PinocchioRobot, s, tau):
    """∂q̈/∂q, ∂q̈/∂q̇, M⁻¹."""
    state = oracle.configuration(s.q), oracle.G @ s.qd, oracle.G @ tau
    pin.computeABADerivatives(oracle.model, oracle.data, *state, oracle.forces(s.f_ext))
    parts = oracle.data.ddq_dq, oracle.data.ddq_dv
    return [oracle.G.T @ x @ oracle.G for x in parts] + [oracle.mass_matrix_inverse(s.q)]


def agree(oracle: PinocchioRobot, seed: int, accelerations: bool = True) -> None:
    robot, s = oracle.robot, wild_state(oracle.robot, seed)
    u = np.sqrt(np.diag(oracle.mass_matrix(s.q)))
    u = np.where(u > 0, u, 1.0)
    force, motion = 1 / np.outer(u, u), np.outer(u, 1 / u)
    got = robot.inverse_dynamics_derivatives(s.q, s.qd, s.qdd, s.f_ext)
    for what, mine, theirs in zip(got._fields, got, inverse(oracle, s), strict=True):
        assert_agrees(f"∂τ {what}", force * mine, force * theirs, BOUNDS[what])
    if accelerations:
        tau = robot.inverse_dynamics(s.q, s.qd, s.qdd, s.f_ext)
        got = robot.forward_dynamics_derivatives(s.q, s.qd, tau, s.f_ext)
        # Pinocchio's M⁻¹ is good to about eps times the condition of M in these units
        lost = 200 * EPS * np.linalg.cond(got.dtau / force)
        units = (motion, motion, np.outer(u, u))
        for unit, what, mine, theirs in zip(
            units, got._fields, got, forward(oracle, s, tau), strict=True
        ):
            assert_agrees(f"∂q̈ {what}", unit * mine, unit * theirs, max(lost, BOUNDS[what]))


@pytest.mark.parametrize("seed", range(6))
def test_trees_of_every_kind(seed):
    kinds = ["free", *np.random.default_rng(seed).permutation(GOOD).tolist()]
    agree(oracle_of(random_tree(kinds, seed)), seed)


@pytest.mark.parametrize("kind", GOOD)
def test_three_joints_of_a_kind(kind):
    agree(oracle_of(random_tree([kind] * 3, 1)), 1)


@pytest.mark.parametrize(("name", "base"), CASES[::2])
def test_robots(name, base):
    oracle = load(name, base)
    sound = name not in MASSLESS_FINGERS and not oracle.followers
    agree(oracle, 0, accelerations=sound)
