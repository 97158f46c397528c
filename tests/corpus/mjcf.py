"""An MJCF file as hinge and as MuJoCo read it.

In MuJoCo only that is switched off which hinge's warning says is left out, and what is no part of a
mechanism: constraints (contacts, limits, dry friction) and motors.  So what is lost in silence
shows.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

import hinge
from corpus.compare import (
    TOLERANCE,
    DiffersError,
    PeerRefusesError,
    agree,
    of_accelerations,
    poses,
    units,
)
from hinge import algorithms as alg
from hinge.load.mjcf import MujocoState
from hinge.load.mujoco_state import joint_names

_TENDONS = ("stiffness", "stiffnesspoly", "damping", "dampingpoly", "armature")
_FLEXES = ("stiffness", "damping", "edgestiffness", "edgedamping", "bending")
# what a warning may name, and the numbers of an MjModel that make it
LEFT_OUT = {
    "polynomial springs": ["jnt_stiffnesspoly"],
    "polynomial damping": ["dof_dampingpoly"],
    "tendons": [f"tendon_{name}" for name in _TENDONS],
    "gravity compensation": ["body_gravcomp"],
    "flexes": [f"flex_{name}" for name in _FLEXES],
}
MOST_FOR_A_MATRIX = 300


def compare_mjcf(path: Path, seed: int = 0) -> int:
    """The degrees of freedom that were compared; raises if the two differ or one refuses."""
    try:
        model = mujoco.MjModel.from_xml_path(str(path))
    except ValueError as e:
        raise PeerRefusesError(" ".join(str(e).split())) from None
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", hinge.ModelWarning)
        mech = hinge.load(path).mechanism
    if (model.nq, model.nv) != (mech.nq, mech.nv):
        raise DiffersError(f"nq, nv are {mech.nq, mech.nv} here, {model.nq, model.nv} there")
    _switch_off(model, " ".join(str(w.message) for w in said))
    states = [_State(model, mech, seed) for seed in (seed, seed + 1)]
    potentials = np.array([state.compare() for state in states])
    size = np.abs(potentials).max()
    agree("potential energy", *np.diff(potentials.T), least=size, tolerance=states[0].tolerance)
    return model.nv


def _switch_off(model: Any, warned: str) -> None:
    """Switch off in MuJoCo what the warning names, and all that is no part of a mechanism."""
    for words, fields in LEFT_OUT.items():
        for field in fields if words in warned else ():
            getattr(model, field, np.zeros(0))[:] = 0
    if "the fluid" in warned:
        model.opt.density = model.opt.viscosity = 0
    if model.eq_active0.any() and "equality constraints" not in warned:
        raise DiffersError("equality constraints are left out in silence")
    off, on = mujoco.mjtDisableBit, mujoco.mjtEnableBit
    if model.opt.disableflags & int(off.mjDSBL_FRICTIONLOSS | off.mjDSBL_CONSTRAINT):
        model.dof_frictionloss[:] = 0
    model.opt.disableflags |= int(off.mjDSBL_CONSTRAINT)
    if "servos" in warned:
        model.opt.disableflags |= int(off.mjDSBL_ACTUATION)
    model.opt.enableflags |= int(on.mjENBL_ENERGY)


class _State:
    """A random state of both, and MuJoCo's results in it."""

    def __init__(self, model: Any, mech: hinge.Mechanism, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.model, self.mech, self.state = model, mech, MujocoState(model, mech)
        self.q, self.v = alg.random_configuration(mech, rng), rng.normal(size=mech.nv)
        # faster than what sticks: dry friction is all there
        self.v += np.copysign(0.1, self.v)
        self.tau, self.a = rng.normal(size=(2, mech.nv))
        self.qpos, self.qvel = self.state.qpos(self.q), self.state.qvel(self.q, self.v)
        self.data = mujoco.MjData(model)
        self.data.qpos, self.data.qvel = self.qpos, self.qvel
        self.data.qfrc_applied = self.state.qfrc(self.q, self.tau)
        mujoco.mj_forward(model, self.data)

    def compare(self) -> tuple[float, float]:
        """Potential energies, here and there: they may differ by what never moves."""
        self.poses()
        self.limits()
        small = 0 < self.model.nv <= MOST_FOR_A_MATRIX
        M = self.mass_matrix() if small else None
        if self.model.nv:
            self.forces()
            energy = alg.kinetic_energy(self.mech, self.q, self.v)
            agree("kinetic energy", energy, self.data.energy[1], tolerance=self.tolerance)
        if M is not None:
            self.accelerations(M)
        springs = alg.spring_energy(self.mech, self.q)
        return alg.potential_energy(self.mech, self.q) + springs, self.data.energy[0]

    @property
    def tolerance(self) -> float:
        """1e-9, or a thousand times what MuJoCo rounds off: it takes an inertial frame for the
        body's where they are within 1e-6."""
        same = self.model.body_sameframe == 1
        rounded = [*self.model.body_ipos[same].flat, *self.model.body_iquat[same][:, 1:].flat]
        return max(TOLERANCE, 1000 * np.abs(rounded).max(initial=0.0))

    def poses(self) -> None:
        named = {self.model.body(b).name: b for b in range(1, self.model.nbody)}
        named.pop("", None)
        ours, at = poses(self.mech, self.q, named), list(named.values())
        agree("orientations", ours[:, :3, :3], self.data.xmat[at].reshape(-1, 3, 3))
        agree("positions", ours[:, :3, 3], self.data.xpos[at], least=1e-3)

    def limits(self) -> None:
        """Of hinges and slides."""
        joints = {body.joint_name: body.joint for body in self.mech.bodies}
        for j, name in enumerate(joint_names(self.model)):
            if self.model.jnt_type[j] >= int(mujoco.mjtJoint.mjJNT_SLIDE):
                limited, joint = self.model.jnt_limited[j], joints[name]
                theirs = self.model.jnt_range[j].tolist() if limited else [-np.inf, np.inf]
                if [*joint.lower, *joint.upper] != theirs:
                    raise DiffersError(f"limits of {name}: not {theirs}")

    def mass_matrix(self) -> np.ndarray:
        model, M = self.model, np.zeros((self.model.nv, self.model.nv))
        for column, unit in zip(M, np.eye(model.nv), strict=True):
            mujoco.mj_mulM(model, self.data, column, unit)
        # rows of T: v for every unit qvel
        T = self.state.v(np.broadcast_to(self.qpos, (model.nv, model.nq)), np.eye(model.nv))
        ours, u = T @ alg.mass_matrix(self.mech, self.q) @ T.T, units(M)
        agree("mass matrix", ours, M, 1 / np.outer(u, u), tolerance=self.tolerance)
        return M

    def forces(self) -> None:
        model, u = self.model, np.sqrt(np.maximum(self.model.dof_M0, 1e-12))
        least = np.abs(u * self.qvel).max() * np.abs(self.qvel).max()
        kept = {"unit": 1 / u, "least": least, "tolerance": self.tolerance}
        for what, qacc, theirs in (
            ("bias forces", np.zeros(model.nv), self.data.qfrc_bias),
            ("inverse dynamics", self.a, self._inverse(self.a)),
        ):
            a = self.state.a(self.qpos, self.qvel, qacc)
            ours = alg.inverse_dynamics(self.mech, self.q, self.v, a)
            agree(what, self.state.qfrc(self.q, ours), theirs, **kept)
        springs = self.state.qfrc(self.q, self.springs())
        agree("springs and damping", springs, self.data.qfrc_passive, **kept)
        unturned = self.state.qpos(alg.neutral(self.mech))
        agree("friction", self.friction(), self.state.tau(unturned, model.dof_frictionloss))

    def accelerations(self, M: np.ndarray) -> None:
        """Those of the state, if the mass matrix has an inverse."""
        u = units(M)
        if tolerance := of_accelerations(M, u):
            a = alg.forward_dynamics(self.mech, self.q, self.v, self.tau + self.springs())
            ours, tolerance = self.state.qacc(self.q, self.v, a), max(tolerance, self.tolerance)
            agree("accelerations", ours, self.data.qacc, u, tolerance=tolerance)

    def _inverse(self, qacc: np.ndarray) -> np.ndarray:
        """M q̈ + bias."""
        out = np.zeros(self.model.nv)
        mujoco.mj_mulM(self.model, self.data, out, qacc)
        return out + self.data.qfrc_bias

    def springs(self) -> np.ndarray:
        """What joints exert by themselves, but for dry friction."""
        passive = alg.passive_forces(self.mech, self.q, self.v)
        return passive + self.friction() * np.sign(self.v)

    def friction(self) -> np.ndarray:
        return self.mech.join([np.array(b.joint.friction) for b in self.mech.bodies])
