"""Robots read by Pinocchio, to hold what `hinge` reads from URDF against."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np

from hinge import algorithms as alg
from mechanisms import EPS, assert_close

# (angular; linear) to Pinocchio's (linear; angular) and back
SWAP = np.r_[3:6, 0:3]


class Pinocchio:
    """The same robot read by Pinocchio, with its followers as free joints, and states for both."""

    def __init__(self, pin, text, mech, floating_base=False, model=None):
        root = (pin.JointModelFreeFlyer(),) if floating_base else ()
        self.model = pin.buildModelFromXML(text, *root) if model is None else model
        self.pin, self.mech, self.data = pin, mech, self.model.createData()
        self.names = list(self.model.names)[1:]
        self.mimics = {}
        for joint in ET.fromstring(text).findall("joint"):
            mimic = joint.find("mimic")
            if mimic is not None and joint.get("type") != "fixed":
                numbers = float(mimic.get("multiplier", 1)), float(mimic.get("offset", 0))
                self.mimics[joint.get("name")] = (mimic.get("joint"), *numbers)

    def joint(self, name):
        return self.model.joints[self.model.getJointId(name)]

    def follow(self, name):
        """The leader of a joint, and its ratio and offset."""
        if name not in self.mimics:
            return name, 1.0, 0.0
        above, ratio, offset = self.mimics[name]
        leader, r, o = self.follow(above)
        return leader, ratio * r, ratio * o + offset

    def configuration(self, q):
        out = np.zeros(self.model.nq)
        for name in self.names:
            joint = self.joint(name)
            leader, ratio, offset = self.follow(name)
            x = ratio * q[self.mech.q_slice(leader)] + offset
            if joint.nq == 7:
                x = np.r_[x[:3], x[4:], x[3]]
            elif joint.nq == 4:
                x = np.r_[x[:2], np.cos(x[2]), np.sin(x[2])]
            elif joint.nq == 2:
                x = np.r_[np.cos(x), np.sin(x)]
            out[joint.idx_q : joint.idx_q + joint.nq] = x
        return out

    def rates(self, v):
        out = np.zeros(self.model.nv)
        for name in self.names:
            joint = self.joint(name)
            leader, ratio, _ = self.follow(name)
            x = ratio * v[self.mech.v_slice(leader)]
            out[joint.idx_v : joint.idx_v + joint.nv] = x[SWAP] if joint.nv == 6 else x
        return out

    def inverse_dynamics(self, q, qd, qdd):
        args = self.configuration(q), self.rates(qd), self.rates(qdd)
        forces = self.pin.rnea(self.model, self.data, *args)
        tau = np.zeros(self.mech.nv)
        for name in self.names:
            joint = self.joint(name)
            leader, ratio, _ = self.follow(name)
            x = forces[joint.idx_v : joint.idx_v + joint.nv]
            tau[self.mech.v_slice(leader)] += ratio * (x[SWAP] if joint.nv == 6 else x)
        return tau

    def link_poses(self, q):
        self.pin.framesForwardKinematics(self.model, self.data, self.configuration(q))
        frames = zip(self.model.frames, self.data.oMf, strict=True)
        links = {f.name: X.homogeneous for f, X in frames if f.type == self.pin.FrameType.BODY}
        return {name: X for name, X in links.items() if name != "universe"}


def assert_same_motion(oracle, mech, seed=0):
    """Names, link poses and inverse dynamics of one random state."""
    rng = np.random.default_rng(seed)
    q = alg.random_configuration(mech, rng)
    qd, qdd = rng.normal(size=(2, mech.nv))
    assert set(mech.joint_names) == set(oracle.names)
    poses = oracle.link_poses(q)
    assert set(mech.frame_names) == {"world", *poses}
    for name, X in poses.items():
        assert_close(alg.frame_pose(mech, q, name), X, 100 * EPS)
    tau = oracle.inverse_dynamics(q, qd, qdd)
    scale = np.abs(tau).max(initial=1e-3)
    assert_close(alg.inverse_dynamics(mech, q, qd, qdd), tau, 100 * EPS, scale)


def assert_same_numbers(oracle, mech):
    """Inertias of bodies, and limits, damping and friction of joints with one coordinate."""
    model = oracle.model
    for name in oracle.names:
        k, joint = mech.joint_index(name), oracle.joint(name)
        inertia = model.inertias[model.getJointId(name)].matrix()[np.ix_(SWAP, SWAP)]
        scale = np.abs(inertia).max(initial=1e-9)
        assert_close(mech.M[k].matrix, inertia, 10 * EPS, scale)
        mine = mech.bodies[k].joint
        assert mine.damping[0] == model.damping[joint.idx_v]
        assert mine.friction[0] == model.upperDryFrictionLimit[joint.idx_v]
        if joint.nv == 1:
            assert mine.velocity_limit[0] == model.upperVelocityLimit[joint.idx_v]
            assert mine.effort_limit[0] == model.upperEffortLimit[joint.idx_v]
        lower, upper = model.lowerPositionLimit[joint.idx_q], model.upperPositionLimit[joint.idx_q]
        if joint.nq == 1 and lower != upper and upper < 1e12:
            assert (mine.lower[0], mine.upper[0]) == (lower, upper)
