"""Pinocchio and MuJoCo beside hinge: the same robot, states and results.

They read the robot's file themselves; a robot without one is built in Pinocchio, joint by joint.
Conversions of states and of results are never part of what is timed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..algebra.spatial import Transform
from ..errors import ArgumentError
from ..load.mujoco_state import FREE_ORDER, MujocoState
from ..model.joint import Joint
from ..model.joints import Free, Prismatic, Revolute, Spherical, Translation, Universal
from ..model.mechanism import Mechanism
from ..robot import Robot

__all__ = ["ARGUMENTS", "Calls", "Compared", "Peer", "States", "compared", "own_calls", "peer_of"]

_THREE, _DRIVEN = ("q", "qd", "qdd"), ("q", "qd", "tau")
ARGUMENTS = {
    "inverse_dynamics": _THREE,
    "forward_dynamics": _DRIVEN,
    "mass_matrix": ("q",),
    "inverse_dynamics_derivatives": _THREE,
    "forward_dynamics_derivatives": _DRIVEN,
}

_SAME = 1e-6  # difference of results, of their largest entry

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


def peer_of(robot: Robot, file: str | None, floating_base: bool) -> tuple[Peer | None, list[str]]:
    """The library that sees the same robot, if it is installed; and what there is to say of it."""
    is_mjcf = file is not None and "<mujoco" in Path(file).read_text(errors="replace")
    kind = Mujoco if is_mjcf else Pinocchio
    if find_spec(kind.module) is None:
        return None, [f"{kind.name} is not installed: nothing to compare with"]
    if robot.nv > _LARGEST:
        return None, [f"{kind.name} is left out beyond {_LARGEST} degrees of freedom"]
    with _standard_error() as said:
        try:
            peer, left_out = kind(robot, file, floating_base), []
        except (ArgumentError, RuntimeError, ValueError, KeyError) as reason:
            peer, left_out = None, [f"{kind.name} is left out: {reason}"]
    more = f" (and {len(said) - 1} lines more)" if len(said) > 1 else ""
    complaints = [f"{kind.name} says of the file: {said[0]}{more}"] if said else []
    return peer, left_out + complaints


@contextmanager
def _standard_error() -> Iterator[list[str]]:
    """Lines that libraries write to standard error meanwhile, past Python."""
    said: list[str] = []
    with TemporaryFile() as file:
        own = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            yield said
        finally:
            os.dup2(own, 2)
            os.close(own)
            file.seek(0)
            lines = file.read().decode(errors="replace").splitlines()
            said += [line.strip() for line in lines if line.strip()]


def own_calls(robot: Robot, quantity: str, states: States) -> Calls:
    """Ours, as a user calls them; SingularError if the robot has no answer."""
    given = [getattr(states, n) for n in ARGUMENTS[quantity]]
    first = [x[0].copy() for x in given]

    def result() -> tuple[np.ndarray, ...]:
        found = getattr(robot, quantity)(*first)
        return found[:2] if isinstance(found, tuple) else (found,)

    # from the third call on a method is quicker
    for _ in range(3):
        result()
        getattr(robot, quantity)(*given)
    method = getattr(robot, quantity)
    return Calls(partial(method, *first), partial(method, *given), result)


class Compared(NamedTuple):
    """The calls of a peer whose results are ours, and how far they differ; or a note why not."""

    calls: Calls | None
    difference: float | None = None
    note: str = ""


def compared(peer: Peer, quantity: str, states: States, ours: Sequence[np.ndarray]) -> Compared:
    """How a peer computes a quantity, if it comes to our results for the first state."""
    try:
        theirs = peer.calls(quantity, states)
        if theirs is None:
            return Compared(None, note=f"{peer.name} has no {quantity}")
        worst = _difference(theirs.first(), ours)
    except (RuntimeError, ValueError) as error:
        return Compared(None, note=f"{peer.name}, {quantity}: {error}")
    if not worst < _SAME:
        note = f"{quantity} of {peer.name} differs by {worst:.0e}: not compared"
        return Compared(None, note=note)
    return Compared(theirs, worst)


def _difference(found: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> float:
    """The largest one, over the largest entry."""
    pairs = zip(found, expected, strict=True)
    return float(
        np.max([np.abs(a - b).max(initial=0) / np.abs(b).max(initial=1) for a, b in pairs])
    )


class Pinocchio:
    """Batches of inverse and forward dynamics by its parallel functions, others in a loop."""

    name, module = "Pinocchio", "pinocchio"
    batches = "rneaInParallel and abaInParallel on one thread, otherwise calls in a loop"

    def __init__(self, robot: Robot, file: str | None, floating_base: bool) -> None:
        self.pin, self.robot = import_module("pinocchio"), robot
        if file is None:
            self.model = _built(self.pin, robot.mechanism)
        else:
            base = (self.pin.JointModelFreeFlyer(),) if floating_base else ()
            mimic = {"mimic": True} if robot.mechanism.has_followers else {}
            self.model = self.pin.buildModelFromUrdf(file, *base, **mimic)
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
            if joint.nq in (4, 7):
                x = np.concatenate([x[:, :-4], np.roll(x[:, -4:], -1, axis=1)], axis=1)
            elif (joint.nq, joint.nv) == (2, 1):
                x = np.concatenate([np.cos(x), np.sin(x)], axis=1)
            out[:, joint.idx_q : joint.idx_q + joint.nq] = x
        return out


def _built(pin: Any, mech: Mechanism) -> Any:
    """A model of it, body by body."""
    model, numbers = pin.Model(), [0]
    model.gravity.linear = np.asarray(mech.gravity)
    for body in mech.bodies[1:]:
        place = _pose(pin, mech.bodies[body.parent].offset) * _pose(pin, body.placement)
        joint = _joint(pin, body.joint)
        number = model.addJoint(numbers[body.parent], joint, place, body.joint_name)
        own = body.inertia
        inertia = pin.Inertia(own.mass, np.asarray(own.com), np.asarray(own.about_com))
        model.appendBodyToJoint(number, inertia, _pose(pin, body.offset))
        model.armature[model.idx_vs[number] :] = body.joint.armature
        numbers.append(number)
    return model


def _pose(pin: Any, X: Transform) -> Any:
    return pin.SE3(np.asarray(X.rotation), np.asarray(X.translation))


def _joint(pin: Any, joint: Joint) -> Any:
    """The cheapest joint it has for one."""
    whole = {Free: "FreeFlyer", Spherical: "Spherical", Translation: "Translation"}
    if type(joint) in whole:
        return getattr(pin, f"JointModel{whole[type(joint)]}")()
    if isinstance(joint, Universal):
        return pin.JointModelUniversal(np.array(joint.axis1), np.array(joint.axis2))
    if joint.mimic is not None or not isinstance(joint, Revolute | Prismatic):
        raise ArgumentError(f"joint {joint} is not built there")
    kind, slides = ("P", "Prismatic") if isinstance(joint, Prismatic) else ("R", "Revolute")
    for letter, axis in zip("XYZ", np.eye(3), strict=True):
        if np.array_equal(joint.axis, axis):
            return getattr(pin, f"JointModel{kind}{letter}")()
    return getattr(pin, f"JointModel{slides}Unaligned")(np.array(joint.axis))


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

    def __init__(self, robot: Robot, file: str | None, floating_base: bool) -> None:
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
