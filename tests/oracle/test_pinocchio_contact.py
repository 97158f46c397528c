"""Feet on the ground as Pinocchio has them: accelerations and forces of robots that move."""

from __future__ import annotations

import numpy as np
import pytest

from hinge import Contact
from mechanisms import EPS, assert_close
from oracle.agreement import wild_state
from oracle.example_robots import load
from oracle.pinocchio_bridge import REFERENCES, SWAP, pin

FEET = {
    "talos": ("flat", ("left_sole_link", "right_sole_link")),
    "solo12": ("point", ("FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT")),
}


def held_by_pinocchio(oracle, contacts):
    """Pinocchio's data, its models of the contacts, and theirs.

    Data of their own: what contacts leave there would change derivatives that come later.
    """
    models, datas = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    for c in contacts:
        frame = oracle.model.frames[oracle.links[c.frame]]
        kind = pin.ContactType.CONTACT_3D if c.kind == "point" else pin.ContactType.CONTACT_6D
        place = frame.parentJoint, frame.placement, REFERENCES[c.reference]
        models.append(pin.RigidConstraintModel(kind, oracle.model, *place))
        datas.append(models[-1].createData())
    data = oracle.model.createData()
    pin.initConstraintDynamics(oracle.model, data, models, datas)
    return data, models, datas


def forces_of(contacts, datas):
    parts = zip(contacts, datas, strict=True)
    return np.concatenate([d.contact_force.vector[SWAP][list(c.axes)] for c, d in parts])


@pytest.mark.parametrize("reference", ["aligned", "body"])
@pytest.mark.parametrize("name", FEET)
def test_feet_that_move_are_held_as_pinocchio_holds_them(name, reference):
    kind, frames = FEET[name]
    oracle = load(name, "floating")
    robot, s = oracle.robot, wild_state(oracle.robot, 1)
    contacts = [Contact(frame, kind, reference=reference) for frame in frames]
    tau = robot.inverse_dynamics(s.q, s.qd, s.qdd)
    motion = robot.alg.constrained_forward_dynamics(s.q, s.qd, tau, contacts)
    data, models, datas = held_by_pinocchio(oracle, contacts)
    state = oracle.configuration(s.q), oracle.G @ s.qd, oracle.G @ tau
    steps = pin.ProximalSettings(1e-12, 1e-12, 10)
    a = pin.constraintDynamics(oracle.model, data, *state, models, datas, steps)
    assert_close(motion.qdd, oracle.G.T @ a, 2e4 * EPS)
    assert_close(motion.forces, forces_of(contacts, datas), 2e4 * EPS)


@pytest.mark.parametrize("name", FEET)
def test_impacts_are_pinocchios(name):
    kind, frames = FEET[name]
    oracle = load(name, "floating")
    robot, s = oracle.robot, wild_state(oracle.robot, 2)
    contacts = [Contact(frame, kind) for frame in frames]
    back = np.full(len(contacts), 0.3)
    impact = robot.alg.impulse_dynamics(s.q, s.qd, contacts, back)
    data, models, datas = held_by_pinocchio(oracle, contacts)
    state = oracle.configuration(s.q), oracle.G @ s.qd
    # it makes one step only, which μ would leave behind
    steps = pin.ProximalSettings(1e-12, 0.0, 10)
    v = pin.impulseDynamics(oracle.model, data, *state, models, datas, 0.3, steps)
    assert_close(impact.qd_plus, oracle.G.T @ v, 2e4 * EPS)
    assert_close(impact.impulses, forces_of(contacts, datas), 2e4 * EPS)
