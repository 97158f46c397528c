"""Derivatives of robots on their feet, as Pinocchio has them."""

from __future__ import annotations

import numpy as np
import pytest

from hinge import Contact
from mechanisms import EPS, assert_close
from oracle.agreement import wild_state
from oracle.example_robots import load
from oracle.pinocchio_bridge import SWAP, pin
from oracle.test_pinocchio_contact import FEET, held_by_pinocchio


def rows_of(contacts):
    """Where Pinocchio has our rows: linear ones first in each contact."""
    rows, start = [], 0
    for c in contacts:
        own = SWAP if len(c.axes) == 6 else range(3)
        rows += [start + i for i in own]
        start += len(c.axes)
    return rows


@pytest.mark.parametrize("reference", ["aligned", "body"])
@pytest.mark.parametrize("name", FEET)
def test_derivatives_on_feet_are_pinocchios(name, reference):
    kind, frames = FEET[name]
    oracle = load(name, "floating")
    robot, s = oracle.robot, wild_state(oracle.robot, 1)
    contacts = [Contact(frame, kind, reference=reference) for frame in frames]
    tau = robot.inverse_dynamics(s.q, s.qd, s.qdd)
    got = robot.alg.constrained_forward_dynamics_derivatives(s.q, s.qd, tau, contacts)
    data, models, datas = held_by_pinocchio(oracle, contacts)
    state = oracle.configuration(s.q), oracle.G @ s.qd, oracle.G @ tau
    steps = pin.ProximalSettings(1e-12, 1e-12, 10)
    model, G, rows = oracle.model, oracle.G, rows_of(contacts)
    pin.constraintDynamics(model, data, *state, models, datas, steps)
    pin.computeConstraintDynamicsDerivatives(model, data, models, datas, steps)
    for ours, theirs in (("dq", "ddq_dq"), ("dqd", "ddq_dv"), ("dtau", "ddq_dtau")):
        assert_close(getattr(got, ours), G.T @ getattr(data, theirs) @ G, 1e6 * EPS, what=ours)
    for ours, theirs in (("dq", "dlambda_dq"), ("dqd", "dlambda_dv"), ("dtau", "dlambda_dtau")):
        expected = getattr(data, theirs)[rows] @ G
        assert_close(getattr(got, f"forces_{ours}"), expected, 1e6 * EPS, what=f"forces_{ours}")


@pytest.mark.parametrize("name", FEET)
def test_derivatives_of_impacts_are_pinocchios(name):
    """Pinocchio's are of the jump q̇⁺ − q̇."""
    kind, frames = FEET[name]
    oracle = load(name, "floating")
    robot, s = oracle.robot, wild_state(oracle.robot, 2)
    contacts = [Contact(frame, kind, reference="body") for frame in frames]
    back = np.full(len(contacts), 0.3)
    got = robot.alg.impulse_dynamics_derivatives(s.q, s.qd, contacts, back)
    data, models, datas = held_by_pinocchio(oracle, contacts)
    steps = pin.ProximalSettings(1e-12, 0.0, 1)
    model, G, rows = oracle.model, oracle.G, rows_of(contacts)
    state = oracle.configuration(s.q), G @ s.qd
    pin.impulseDynamics(model, data, *state, models, datas, 0.3, steps)
    pin.computeImpulseDynamicsDerivatives(model, data, models, datas, 0.3, steps)
    assert_close(got.dq, G.T @ data.ddq_dq @ G, 1e5 * EPS)
    assert_close(got.dqd - np.eye(robot.nv), G.T @ data.ddq_dv @ G, 1e5 * EPS)
    assert_close(got.impulses_dq, data.dlambda_dq[rows] @ G, 1e5 * EPS)
    assert_close(got.impulses_dqd, data.dlambda_dv[rows] @ G, 1e5 * EPS)
