"""Pinocchio and MuJoCo beside hinge: their own reading of a file, the same states and results.

Conversions of states and of results are never part of what is timed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..errors import ArgumentError
from ..load.mujoco_state import FREE_ORDER, MujocoState
from ..robot import Robot

__all__ = ["ARGUMENTS", "Calls", "Peer", "States", "peer_of"]

_THREE, _DRIVEN = ("q", "qd", "qdd"), ("q", "qd", "tau")
ARGUMENTS = {
    "inverse_dynamics": _THREE,
    "forward_dynamics": _DRIVEN,
    "mass_matrix": ("q",),
    "inverse_dynamics_derivatives": _THREE,
    "forward_dynamics_derivatives": _DRIVEN,
}

# beyond so many degrees of freedom Pinocchio's memory, which grows with the cube, is too much
_LARGEST = 128


class States(NamedTuple):
    """States and forces to compute with, (count, nq) and (count, nv)."""

    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    tau: np.ndarray


class Calls(NamedTuple):
    """What is timed, for the first state and for all, and the results for the first state."""

    one: Callable[[], Any]
    many: Callable[[], Any]
    first: Callable[[], tuple[np.ndarray, ...]]


class Peer(Protocol):
    """A library that has read the robot's file."""

    name: str
    batches: str

    def calls(self, quantity: str, states: States) -> Calls | None:
        """How it computes a quantity; None where it does not."""
        ...


def peer_of(robot: Robot, file: str, floating_base: bool) -> tuple[Peer | None, str]:
    """The library that reads this file, if it is installed and sees the same robot, or why not."""
    kind = Mujoco if "<mujoco" in Path(file).read_text(errors="replace") else Pinocchio
    if find_spec(kind.module) is None:
        return None, f"{kind.name} is not installed: nothing to compare with"
    if robot.nv > _LARGEST:
        return None, f"{kind.name} is left out beyond {_LARGEST} degrees of freedom"
    try:
        return kind(robot, file, floating_base), ""
    except (ArgumentError, RuntimeError, ValueError, KeyError) as reason:
        return None, f"{kind.name} is left out: {reason}"


class Pinocchio:
    """Batches of inverse and forward dynamics by its parallel functions, others in a loop."""

    name, module = "Pinocchio", "pinocchio"
    batches = "rneaInParallel and abaInParallel on one thread, otherwise calls in a loop"

    def __init__(self, robot: Robot, file: str, floating_base: bool) -> None:
        self.pin = import_module("pinocchio")
        base = (self.pin.JointModelFreeFlyer(),) if floating_base else ()
        mimic = {"mimic": True} if robot.mechanism.has_followers else {}
        self.model, self.robot = self.pin.buildModelFromUrdf(file, *base, **mimic), robot
        self.data = self.pin.Data(self.model)
        pairs = zip(self.model.names, self.model.joints, strict=True)
        self.joints = {name: joint for name, joint in pairs if name != "universe" and joint.nv}
        if self.model.nv != robot.nv:
            raise ArgumentError(f"it has nv = {self.model.nv}, this robot {robot.nv}")
        # which of our rates are its, in its order
        self.there = np.zeros(robot.nv, dtype=int)
        for name, joint in self.joints.items():
            at = robot.v_slice(name)
            own = np.arange(at.start, at.stop)
            own = own[FREE_ORDER] if joint.nv == 6 else own
            self.there[joint.idx_v : joint.idx_v + joint.nv] = own
        self.back = np.argsort(self.there)

    def calls(self, quantity: str, states: States) -> Calls | None:
        """One call; a parallel function, or a loop."""
        name, parallel, fields = _PINOCCHIO[quantity]
        rates = [getattr(states, n)[:, self.there] for n in ARGUMENTS[quantity][1:]]
        rows = list(zip(self._coordinates(states.q), *rates, strict=True))
        call = partial(getattr(self.pin, name), self.model, self.data)
        many = partial(_each, call, rows)
        if parallel and hasattr(self.pin, parallel):
            pool = self.pin.ModelPool(self.model, 1)
            columns = [np.asfortranarray(np.array(x).T) for x in zip(*rows, strict=True)]
            out = np.zeros_like(columns[1], order="F")
            many = partial(getattr(self.pin, parallel), 1, pool, *columns, out)
        return Calls(partial(call, *rows[0]), many, partial(self._first, call, rows[0], fields))

    def _first(
        self, call: Callable[..., Any], row: tuple[np.ndarray, ...], fields: tuple[str, ...]
    ) -> tuple[np.ndarray, ...]:
        call(*row)
        found = [np.array(getattr(self.data, name)) for name in fields]
        if fields == ("M",):
            # only its upper triangle is promised
            found = [np.triu(M) + np.triu(M, 1).T for M in found]
        return tuple(x[np.ix_(*[self.back] * x.ndim)] for x in found)

    def _coordinates(self, q: np.ndarray) -> np.ndarray:
        """Quaternions scalar last, angles without limits as (cos, sin)."""
        out = np.zeros((len(q), self.model.nq))
        for name, joint in self.joints.items():
            x = q[:, self.robot.q_slice(name)]
            if joint.nq == 7:
                x = x[:, [0, 1, 2, 4, 5, 6, 3]]
            elif (joint.nq, joint.nv) == (2, 1):
                x = np.concatenate([np.cos(x), np.sin(x)], axis=1)
            out[:, joint.idx_q : joint.idx_q + joint.nq] = x
        return out


# the call, its parallel form, and where the results are
_PINOCCHIO = {
    "inverse_dynamics": ("rnea", "rneaInParallel", ("tau",)),
    "forward_dynamics": ("aba", "abaInParallel", ("ddq",)),
    "mass_matrix": ("crba", None, ("M",)),
    "inverse_dynamics_derivatives": ("computeRNEADerivatives", None, ("dtau_dq", "dtau_dv")),
    "forward_dynamics_derivatives": ("computeABADerivatives", None, ("ddq_dq", "ddq_dv")),
}


class Mujoco:
    """Without contacts, constraints, passive forces, actuators and sensors; batches in a loop."""

    name, module, batches = "MuJoCo", "mujoco", "calls in a loop"

    def __init__(self, robot: Robot, file: str, floating_base: bool) -> None:
        self.mujoco, self.robot = import_module("mujoco"), robot
        m = self.model = self.mujoco.MjModel.from_xml_path(file)
        bits = self.mujoco.mjtDisableBit
        for flag in ("CONSTRAINT", "SPRING", "DAMPER", "PASSIVE", "ACTUATION", "SENSOR"):
            m.opt.disableflags |= int(getattr(bits, f"mjDSBL_{flag}", 0))
        m.opt.density = m.opt.viscosity = 0.0
        m.body_gravcomp[:] = 0.0
        self.data, self.states = self.mujoco.MjData(m), MujocoState(m, robot.mechanism)

    def calls(self, quantity: str, states: States) -> Calls | None:
        """One call; a loop of them."""
        ways = {
            "inverse_dynamics": self._inverse,
            "forward_dynamics": self._forward,
            "mass_matrix": self._mass,
        }
        if quantity not in ways:
            return None
        there = self.states
        names = {
            "q": lambda: there.qpos(states.q),
            "qd": lambda: there.qvel(states.q, states.qd),
            "qdd": lambda: there.qacc(states.q, states.qd, states.qdd),
            "tau": lambda: there.qfrc(states.q, states.tau),
        }
        rows = list(zip(*(names[n]() for n in ARGUMENTS[quantity]), strict=True))
        call = ways[quantity]
        first = partial(self._first, quantity, call, rows[0])
        return Calls(partial(call, *rows[0]), partial(_each, call, rows), first)

    def _inverse(self, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
        m, d, mujoco = self.model, self.data, self.mujoco
        d.qpos[:], d.qvel[:], d.qacc[:] = q, v, a
        mujoco.mj_kinematics(m, d)
        mujoco.mj_comPos(m, d)
        mujoco.mj_comVel(m, d)
        mujoco.mj_rne(m, d, 1, d.qfrc_inverse)
        d.qfrc_inverse += m.dof_armature * a
        return d.qfrc_inverse

    def _forward(self, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> np.ndarray:
        d = self.data
        d.qpos[:], d.qvel[:], d.qfrc_applied[:] = q, v, tau
        self.mujoco.mj_forward(self.model, d)
        return d.qacc

    def _mass(self, q: np.ndarray) -> np.ndarray:
        m, d, mujoco = self.model, self.data, self.mujoco
        d.qpos[:] = q
        mujoco.mj_kinematics(m, d)
        mujoco.mj_comPos(m, d)
        mujoco.mj_crb(m, d)
        M = np.zeros((m.nv, m.nv))
        mujoco.mj_fullM(m, d, M)
        return M

    def _first(
        self, quantity: str, call: Callable[..., Any], row: tuple[np.ndarray, ...]
    ) -> tuple[np.ndarray, ...]:
        there, found = self.states, call(*row).copy()
        if quantity == "inverse_dynamics":
            return (there.tau(row[0], found),)
        if quantity == "forward_dynamics":
            return (there.a(row[0], row[1], found),)
        # q̇_mujoco = T q̇, M = Tᵀ M_mujoco T
        T = there.qvel(there.q(row[0]), np.eye(len(found))).T
        return (T.T @ found @ T,)


def _each(call: Callable[..., Any], rows: list[tuple[np.ndarray, ...]]) -> None:
    for row in rows:
        call(*row)
