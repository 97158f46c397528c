"""Forces from hybrid dynamics, fed to Pinocchio's ABA, give the accelerations back."""

from __future__ import annotations

import numpy as np
import pytest

from mechanisms import EPS
from oracle.agreement import wild_state
from oracle.random_trees import KINDS, oracle_of, random_tree

BOUND = 1000 * EPS


@pytest.mark.parametrize("seed", range(8))
def test_aba_returns_the_accelerations(seed):
    rng = np.random.default_rng(seed)
    kinds = ["free", *rng.permutation([kind for kind in KINDS if kind != "free"]).tolist()]
    oracle = oracle_of(random_tree(kinds, seed, forest=bool(seed % 2)))
    robot, s = oracle.robot, wild_state(oracle.robot, seed)
    mask, tau = rng.random(robot.nv) < rng.uniform(0.2, 0.8), rng.normal(size=robot.nv)
    got = robot.hybrid_dynamics(s.q, s.qd, s.qdd, tau, mask, s.f_ext)
    np.testing.assert_array_equal(got.qdd[mask], s.qdd[mask])
    np.testing.assert_array_equal(got.tau[~mask], tau[~mask])
    again = oracle.forward_dynamics(s.q, s.qd, got.tau, s.f_ext)
    assert np.abs(again - got.qdd).max() <= BOUND * np.abs(got.qdd).max()
    M = oracle.mass_matrix(s.q)
    S_ap = np.linalg.solve(M[np.ix_(~mask, ~mask)], M[np.ix_(~mask, mask)]).T
    J_D = robot.disturbance_jacobian(s.q, mask)
    assert np.abs(J_D + S_ap.T).max() <= BOUND * max(1.0, np.abs(S_ap).max())
