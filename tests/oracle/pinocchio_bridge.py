"""A robot of hinge as Pinocchio has it: the same methods, hinge's conventions in and out.

Joints, links and degrees of freedom are matched by name.  Pinocchio keeps its own order, puts
linear parts first, quaternions scalar last and unbounded angles as (cos, sin).  Its model has every
joint that follows another as a free one; G takes hinge's rates to Pinocchio's, so that forces come
back with Gᵀ and the mass matrix as Gᵀ M G.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pytest

import hinge

pin = pytest.importorskip("pinocchio")

# (angular; linear) to (linear; angular) and back
SWAP = np.r_[3:6, 0:3]

REFERENCES = {
    "aligned": pin.ReferenceFrame.LOCAL_WORLD_ALIGNED,
    "body": pin.ReferenceFrame.LOCAL,
    "world": pin.ReferenceFrame.WORLD,
}


@dataclass(frozen=True)
class PinocchioRobot:
    """A robot and Pinocchio's model of it; every result is Pinocchio's, as hinge would give it.

    followers: name → (leader, ratio, offset) of each joint that follows another, chains allowed.
    """

    robot: hinge.Robot
    model: Any
    followers: Mapping[str, tuple[str, float, float]] = field(default_factory=dict)

    # names

    @cached_property
    def data(self) -> Any:
        return self.model.createData()

    @cached_property
    def joints(self) -> dict[str, Any]:
        """Pinocchio's joints that have degrees of freedom of their own, by name."""
        joints = zip(self.model.names, self.model.joints, strict=True)
        return {name: joint for name, joint in joints if name != "universe" and joint.nv}

    @cached_property
    def links(self) -> dict[str, int]:
        """Pinocchio's numbers of the frames that are links, by name."""
        frames = enumerate(self.model.frames)
        links = {f.name: k for k, f in frames if f.type == pin.FrameType.BODY}
        return {name: k for name, k in links.items() if name != "universe"}

    def leader(self, name: str) -> tuple[str, float, float]:
        """The joint that a joint follows in the end, or itself; ratio and offset."""
        if name not in self.followers:
            return name, 1.0, 0.0
        above, ratio, offset = self.followers[name]
        first, r, o = self.leader(above)
        return first, ratio * r, ratio * o + offset

    # states there and back

    @cached_property
    def G(self) -> np.ndarray:
        """(Pinocchio's nv, hinge's nv): v = G qd, tau = Gᵀ τ."""
        G = np.zeros((self.model.nv, self.robot.nv))
        for name, joint in self.joints.items():
            leader, ratio, _ = self.leader(name)
            block = ratio * np.eye(joint.nv)
            rows = slice(joint.idx_v, joint.idx_v + joint.nv)
            G[rows, self.robot.v_slice(leader)] = block[SWAP] if joint.nv == 6 else block
        return G

    def configuration(self, q: np.ndarray) -> np.ndarray:
        """Pinocchio's coordinates of the configuration q."""
        out = np.zeros(self.model.nq)
        for name, joint in self.joints.items():
            leader, ratio, offset = self.leader(name)
            x = q[self.robot.q_slice(leader)]
            x = x if name == leader else ratio * x + offset
            out[joint.idx_q : joint.idx_q + joint.nq] = _coordinates(joint.shortname(), x)
        return out

    def forces(self, f_ext: np.ndarray | None) -> Any:
        """Pinocchio's external forces, one per joint in the joint's frame."""
        forces = [pin.Force.Zero() for _ in range(self.model.njoints)]
        rows = np.zeros((len(self.robot.body_names), 6)) if f_ext is None else f_ext
        for body, row in zip(self.robot.body_names, rows, strict=True):
            frame = self.model.frames[self.links[body]]
            forces[frame.parentJoint] += frame.placement.act(pin.Force(row[SWAP]))
        return forces

    def missed(self, q: np.ndarray, dv: np.ndarray, q1: np.ndarray) -> np.ndarray:
        """What q1 lacks to be q ⊞ dv, over Pinocchio's degrees of freedom."""
        goal = pin.integrate(self.model, self.configuration(q), self.G @ dv)
        return pin.difference(self.model, self.configuration(q1), goal)

    def difference(self, q0: np.ndarray, q1: np.ndarray) -> np.ndarray:
        """q1 ⊟ q0 over Pinocchio's degrees of freedom; unbounded angles the shorter way."""
        return pin.difference(self.model, self.configuration(q0), self.configuration(q1))

    # kinematics

    def frame_pose(self, q: np.ndarray, frame: str) -> np.ndarray:
        pin.framesForwardKinematics(self.model, self.data, self.configuration(q))
        return self.data.oMf[self.links[frame]].homogeneous

    def poses(self, q: np.ndarray) -> np.ndarray:
        return np.array([self.frame_pose(q, body) for body in self.robot.body_names])

    def jacobian(self, q: np.ndarray, frame: str, reference: str) -> np.ndarray:
        where = self.links[frame], REFERENCES[reference]
        J = pin.computeFrameJacobian(self.model, self.data, self.configuration(q), *where)
        return J[SWAP] @ self.G

    def frame_velocity(
        self, q: np.ndarray, qd: np.ndarray, frame: str, reference: str
    ) -> np.ndarray:
        self._move(q, qd, np.zeros(self.robot.nv))
        where = self.links[frame], REFERENCES[reference]
        return pin.getFrameVelocity(self.model, self.data, *where).vector[SWAP]

    def frame_acceleration(
        self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray, frame: str, reference: str
    ) -> np.ndarray:
        """Of the point where hinge says so ("aligned"), the spatial acceleration elsewhere."""
        self._move(q, qd, qdd)
        classical = reference == "aligned"
        get = pin.getFrameClassicalAcceleration if classical else pin.getFrameAcceleration
        where = self.links[frame], REFERENCES[reference]
        return get(self.model, self.data, *where).vector[SWAP]

    def velocity_product_acceleration(
        self, q: np.ndarray, qd: np.ndarray, frame: str, reference: str
    ) -> np.ndarray:
        return self.frame_acceleration(q, qd, np.zeros(self.robot.nv), frame, reference)

    def _move(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> None:
        state = self.configuration(q), self.G @ qd, self.G @ qdd
        pin.forwardKinematics(self.model, self.data, *state)
        pin.updateFramePlacements(self.model, self.data)

    # energy and momentum

    @property
    def total_mass(self) -> float:
        return pin.computeTotalMass(self.model)

    def center_of_mass(self, q: np.ndarray) -> np.ndarray:
        return pin.centerOfMass(self.model, self.data, self.configuration(q)).copy()

    def momentum(self, q: np.ndarray, qd: np.ndarray, about: str) -> np.ndarray:
        self._move(q, qd, np.zeros(self.robot.nv))
        if about == "com":
            h = pin.computeCentroidalMomentum(self.model, self.data)
        else:
            bodies = zip(self.data.oMi, self.model.inertias, self.data.v, strict=True)
            parts = [X.act(inertia * v) for X, inertia, v in bodies][1:]
            h = sum(parts, pin.Force.Zero())
        return h.vector[SWAP]

    def kinetic_energy(self, q: np.ndarray, qd: np.ndarray) -> float:
        """Pinocchio leaves the armature out for some joints; here it is added for all of them."""
        bare, v = self.model.copy(), self.G @ qd
        bare.armature = np.zeros(bare.nv)
        bodies = pin.computeKineticEnergy(bare, bare.createData(), self.configuration(q), v)
        return bodies + 0.5 * v @ (self.model.armature * v)

    def potential_energy(self, q: np.ndarray) -> float:
        return pin.computePotentialEnergy(self.model, self.data, self.configuration(q))

    # dynamics

    def inverse_dynamics(
        self,
        q: np.ndarray,
        qd: np.ndarray,
        qdd: np.ndarray,
        f_ext: np.ndarray | None = None,
    ) -> np.ndarray:
        state = self.configuration(q), self.G @ qd, self.G @ qdd
        return self.G.T @ pin.rnea(self.model, self.data, *state, self.forces(f_ext))

    def bias_forces(
        self, q: np.ndarray, qd: np.ndarray, f_ext: np.ndarray | None = None
    ) -> np.ndarray:
        if f_ext is not None:
            return self.inverse_dynamics(q, qd, np.zeros(self.robot.nv), f_ext)
        state = self.configuration(q), self.G @ qd
        return self.G.T @ pin.nonLinearEffects(self.model, self.data, *state)

    def gravity_forces(self, q: np.ndarray) -> np.ndarray:
        state = self.configuration(q)
        return self.G.T @ pin.computeGeneralizedGravity(self.model, self.data, state)

    def mass_matrix(self, q: np.ndarray) -> np.ndarray:
        if self.model.nvExtended > self.model.nv:
            return self._mass_matrix_columns(q)
        M = pin.crba(self.model, self.data, self.configuration(q))
        return self.G.T @ _mirror_upper(M) @ self.G

    def _mass_matrix_columns(self, q: np.ndarray) -> np.ndarray:
        """M by inverse dynamics: crba errs if a ball joint lies between follower and leader."""
        bare, still = self.model.copy(), np.zeros(self.model.nv)
        bare.gravity = pin.Motion.Zero()
        data, q = bare.createData(), self.configuration(q)
        columns = [self.G.T @ pin.rnea(bare, data, q, still, e) for e in self.G.T]
        return np.array(columns).T

    def mass_matrix_inverse(self, q: np.ndarray) -> np.ndarray:
        if self.followers:
            return np.linalg.inv(self.mass_matrix(q))
        M_inv = pin.computeMinverse(self.model, self.data, self.configuration(q))
        X = self.G.T @ _mirror_upper(M_inv) @ self.G
        # computeMinverse sums in world axes, which costs iCub 8 digits; a Newton step restores them
        return X @ (2 * np.eye(self.robot.nv) - self.mass_matrix(q) @ X)

    def forward_dynamics(
        self,
        q: np.ndarray,
        qd: np.ndarray,
        tau: np.ndarray,
        f_ext: np.ndarray | None = None,
    ) -> np.ndarray:
        if self.followers:
            return np.linalg.solve(self.mass_matrix(q), tau - self.bias_forces(q, qd, f_ext))
        state = self.configuration(q), self.G @ qd, self.G @ tau
        return self.G.T @ pin.aba(self.model, self.data, *state, self.forces(f_ext))


def followers(text: str) -> dict[str, tuple[str, float, float]]:
    """The joints of a URDF that follow others: leader, ratio and offset."""
    out = {}
    for joint in ET.fromstring(text).findall("joint"):
        mimic = joint.find("mimic")
        if mimic is not None and joint.get("type") != "fixed":
            ratio, offset = float(mimic.get("multiplier", 1)), float(mimic.get("offset", 0))
            out[joint.get("name")] = (mimic.get("joint"), ratio, offset)
    return out


def _coordinates(kind: str, x: np.ndarray) -> np.ndarray:
    """hinge's coordinates of one joint as Pinocchio's joint of that kind has them."""
    if kind == "JointModelFreeFlyer":
        return np.concatenate([x[:3], x[4:], x[3:4]])
    if kind == "JointModelSpherical":
        return np.concatenate([x[1:], x[:1]])
    if kind == "JointModelPlanar":
        return np.concatenate([x[:2], np.cos(x[2:]), np.sin(x[2:])])
    if kind.startswith(("JointModelRUB", "JointModelRevoluteUnbounded")):
        return np.concatenate([np.cos(x), np.sin(x)])
    return x


def _mirror_upper(A: np.ndarray) -> np.ndarray:
    """The symmetric matrix with the upper triangle of A, the only one that Pinocchio promises."""
    return np.triu(A) + np.triu(A, 1).T
