"""Whose digits are counted: hinge, compiled and plain, Pinocchio and MuJoCo, on one mechanism."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

import hinge

from .others import installed, mujoco_model
from .peers import SWAP

__all__ = ["CONTESTANTS", "QUANTITIES", "Quantity", "contestants", "of_hinge"]


@dataclass(frozen=True)
class Quantity:
    """A result: the algorithm and what it takes, and which of its parts is looked at.

    largest: the most degrees of freedom for which 40 digits do not take minutes.
    """

    algorithm: str
    takes: tuple[str, ...]
    part: str = ""
    largest: int = 1000


QUANTITIES = {
    "inverse dynamics": Quantity("inverse_dynamics", ("q", "qd", "qdd")),
    "forward dynamics": Quantity("forward_dynamics", ("q", "qd", "tau")),
    "bias forces": Quantity("bias_forces", ("q", "qd"), largest=128),
    "mass matrix": Quantity("mass_matrix", ("q",), largest=128),
    "its inverse": Quantity("mass_matrix_inverse", ("q",), largest=64),
    "∂τ/∂q": Quantity("inverse_dynamics_derivatives", ("q", "qd", "qdd"), "dq", 16),
    "∂q̈/∂q": Quantity("forward_dynamics_derivatives", ("q", "qd", "tau"), "dq", 16),
    "hybrid dynamics": Quantity("hybrid_dynamics", ("q", "qd", "qdd", "tau"), "qdd", 128),
    "total rates": Quantity("total_rates", ("q", "qd"), largest=128),
    "Coriolis, total rates": Quantity("diagonal_coriolis", ("q", "qd"), largest=128),
    "Λ⁻¹ of the tip": Quantity("operational_space_inertia_inverse", ("q",), largest=128),
    "Jacobian of the tip": Quantity("jacobian", ("q",), largest=128),
    "centre of mass": Quantity("center_of_mass", ("q",), largest=128),
    "momentum": Quantity("momentum", ("q", "qd"), largest=128),
    "kinetic energy": Quantity("kinetic_energy", ("q", "qd"), largest=128),
    "potential energy": Quantity("potential_energy", ("q",), largest=128),
}


def _settings(mech: hinge.Mechanism, name: str) -> dict[str, Any]:
    """What an algorithm takes besides arrays."""
    if name == "hybrid_dynamics":
        return {"active": tuple(i % 2 == 0 for i in range(mech.nv))}
    tip = mech.body_names[-1]
    frames = {"jacobian": {"frame": tip}, "operational_space_inertia_inverse": {"frames": (tip,)}}
    return frames.get(name, {"about": "com"} if name == "momentum" else {})


def of_hinge(how: Any, mech: hinge.Mechanism, quantity: Quantity, s: Mapping[str, Any]) -> Any:
    """The result of hinge's function `how`, of a robot or of algorithms."""
    result = how(*(s[n] for n in quantity.takes), **_settings(mech, quantity.algorithm))
    return getattr(result, quantity.part) if quantity.part else result


class Compiled:
    """hinge as it is called."""

    def __init__(self, mech: hinge.Mechanism) -> None:
        self.mech, self.robot = mech, hinge.Robot(mech)

    def __call__(self, quantity: Quantity, s: Mapping[str, np.ndarray]) -> Any:
        return of_hinge(getattr(self.robot, quantity.algorithm), self.mech, quantity, s)


class Plain(Compiled):
    """hinge's generic code on floats."""

    def __call__(self, quantity: Quantity, s: Mapping[str, np.ndarray]) -> Any:
        return of_hinge(getattr(self.robot.alg, quantity.algorithm), self.mech, quantity, s)


class Pinocchio:
    """The same mechanism in Pinocchio, results in hinge's conventions."""

    def __init__(self, mech: hinge.Mechanism) -> None:
        import pinocchio as pin

        self.pin, self.mech, self.model = pin, mech, pin.Model()
        self.model.gravity.linear = np.array(mech.gravity)
        for k, b in enumerate(mech.bodies[1:], 1):
            place = pin.SE3(np.array(b.placement.rotation), np.array(b.placement.translation))
            self.model.addJoint(b.parent, self._joint(b.joint), place, b.joint_name)
            own = b.inertia
            inertia = pin.Inertia(own.mass, np.array(own.com), np.array(own.about_com))
            self.model.appendBodyToJoint(k, inertia, pin.SE3.Identity())

    def _joint(self, joint: Any) -> Any:
        if isinstance(joint, hinge.Free):
            return self.pin.JointModelFreeFlyer()
        axis = tuple(np.abs(joint.axis))
        plain = joint.axis == axis and axis in ((1, 0, 0), (0, 1, 0), (0, 0, 1))
        if plain:
            return getattr(self.pin, f"JointModelR{'XYZ'[axis.index(1)]}")()
        return self.pin.JointModelRevoluteUnaligned(np.array(joint.axis))

    @cached_property
    def data(self) -> Any:
        """Its workspace."""
        return self.pin.Data(self.model)

    @cached_property
    def order(self) -> np.ndarray:
        """Where hinge's rates are among Pinocchio's: linear ones first there."""
        order = np.arange(self.mech.nv)
        if isinstance(self.mech.bodies[1].joint, hinge.Free):
            order[:6] = order[SWAP]
        return order

    def __call__(self, quantity: Quantity, s: Mapping[str, np.ndarray]) -> Any:
        call = _PIN.get(quantity.algorithm)
        if call is None:
            return None
        q = s["q"].copy()
        if isinstance(self.mech.bodies[1].joint, hinge.Free):
            q[3:7] = np.roll(q[3:7], -1)
        rates = {n: x[self.order] for n, x in s.items() if n != "q"}
        result = np.array(call(self.pin, self.model, self.data, q, rates))
        if quantity.algorithm == "momentum":
            return result[SWAP]
        if quantity.algorithm == "jacobian":
            return result[SWAP][:, self.order]
        if result.shape == (3,) or result.ndim == 0:
            return result
        return result[np.ix_(*[self.order] * result.ndim)]


def _upper(A: np.ndarray) -> np.ndarray:
    return np.triu(A) + np.triu(A, 1).T


def _pin_jacobian(pin: Any, m: Any, d: Any, q: np.ndarray) -> np.ndarray:
    pin.computeJointJacobians(m, d, q)
    return pin.getJointJacobian(m, d, m.njoints - 1, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED)


_PIN: dict[str, Callable[..., Any]] = {
    "inverse_dynamics": lambda p, m, d, q, s: p.rnea(m, d, q, s["qd"], s["qdd"]),
    "forward_dynamics": lambda p, m, d, q, s: p.aba(m, d, q, s["qd"], s["tau"]),
    "bias_forces": lambda p, m, d, q, s: p.nonLinearEffects(m, d, q, s["qd"]),
    "mass_matrix": lambda p, m, d, q, s: _upper(p.crba(m, d, q)),
    "mass_matrix_inverse": lambda p, m, d, q, s: _upper(p.computeMinverse(m, d, q)),
    "inverse_dynamics_derivatives": lambda p, m, d, q, s: p.computeRNEADerivatives(
        m, d, q, s["qd"], s["qdd"]
    )[0],
    "forward_dynamics_derivatives": lambda p, m, d, q, s: p.computeABADerivatives(
        m, d, q, s["qd"], s["tau"]
    )[0],
    "jacobian": lambda p, m, d, q, s: _pin_jacobian(p, m, d, q),
    "center_of_mass": lambda p, m, d, q, s: p.centerOfMass(m, d, q),
    "momentum": lambda p, m, d, q, s: p.computeCentroidalMomentum(m, d, q, s["qd"]).vector,
    "kinetic_energy": lambda p, m, d, q, s: p.computeKineticEnergy(m, d, q, s["qd"]),
    "potential_energy": lambda p, m, d, q, s: p.computePotentialEnergy(m, d, q),
}


class Mujoco:
    """The same mechanism in MuJoCo; states and results are turned by hinge where axes differ."""

    def __init__(self, mech: hinge.Mechanism) -> None:
        import mujoco

        from hinge.load.mjcf import MujocoState

        self.mj, self.mech, self.model = mujoco, mech, mujoco_model(mujoco, mech)
        self.data, self.convert = mujoco.MjData(self.model), MujocoState(self.model, mech)

    def __call__(self, quantity: Quantity, s: Mapping[str, np.ndarray]) -> Any:
        call = _MUJOCO.get(quantity.algorithm)
        if call is None:
            return None
        d, c = self.data, self.convert
        d.qpos[:], d.qvel[:] = c.qpos(s["q"]), c.qvel(s["q"], s["qd"])
        d.qfrc_applied[:] = c.qfrc(s["q"], s["tau"])
        for stage in ("kinematics", "comPos", "comVel"):
            getattr(self.mj, f"mj_{stage}")(self.model, d)
        return call(self, s)

    def forces(self, s: Mapping[str, np.ndarray], qdd: np.ndarray) -> np.ndarray:
        """mj_rne; the rates of a free body are others there, and so is what leaves them alone."""
        out = np.zeros(self.model.nv)
        self.data.qacc[:] = self.convert.qacc(s["q"], s["qd"], qdd)
        self.mj.mj_rne(self.model, self.data, 1, out)
        return self.convert.tau(self.data.qpos, out)

    def acceleration(self) -> np.ndarray:
        """mj_forward."""
        self.mj.mj_forward(self.model, self.data)
        return self.convert.a(self.data.qpos, self.data.qvel, self.data.qacc)

    def mass(self, s: Mapping[str, np.ndarray]) -> np.ndarray:
        """mj_crb, in hinge's rates."""
        M = np.zeros((self.model.nv,) * 2)
        self.mj.mj_crb(self.model, self.data)
        self.mj.mj_fullM(self.model, self.data, M)
        T = np.array([self.convert.qvel(s["q"], e) for e in np.eye(len(M))]).T
        return T.T @ M @ T

    def energy(self, which: int) -> float:
        """0: potential, 1: kinetic."""
        self.mj.mj_energyPos(self.model, self.data)
        self.mj.mj_energyVel(self.model, self.data)
        return self.data.energy[which]


_MUJOCO: dict[str, Callable[[Mujoco, Mapping[str, np.ndarray]], Any]] = {
    "inverse_dynamics": lambda m, s: m.forces(s, s["qdd"]),
    "forward_dynamics": lambda m, s: m.acceleration(),
    "bias_forces": lambda m, s: m.forces(s, 0 * s["qdd"]),
    "mass_matrix": lambda m, s: m.mass(s),
    "center_of_mass": lambda m, s: m.data.subtree_com[0],
    "potential_energy": lambda m, s: m.energy(0),
}

CONTESTANTS: dict[str, Callable[[hinge.Mechanism], Any]] = {
    "hinge": Compiled,
    "hinge, plain": Plain,
    "Pinocchio": Pinocchio,
    "MuJoCo": Mujoco,
}
_NEEDS = {"Pinocchio": "pinocchio", "MuJoCo": "mujoco"}
# a Data of Pinocchio grows with the cube of the joints: 33 GB for 1000
_LARGEST = {"Pinocchio": 256}


def contestants(mech: hinge.Mechanism) -> dict[str, Any]:
    """Those that are installed and take the mechanism."""
    out = {}
    for name, kind in CONTESTANTS.items():
        there = name not in _NEEDS or installed(_NEEDS[name])
        if there and mech.nv <= _LARGEST.get(name, mech.nv):
            # MuJoCo refuses inertias below 1e-15 kg m²
            with suppress(ValueError):
                out[name] = kind(mech)
    return out
