"""MuJoCo's state and ours: the same motion in two orders and, for free joints, in two sets of axes.

A free joint moves with (v; ω) in MuJoCo, v in world axes and ω in body axes, and with (ω; v) here,
both in body axes; forces likewise.  With R the body's orientation

    v_ours = Rᵀ v_mujoco,   f_ours = Rᵀ f_mujoco,   a_ours = Rᵀ a_mujoco − ω × v_ours

the last because MuJoCo's acceleration is that of the origin, ours the rate of the components.  All
other joints have the same coordinates in both, also the two that a free joint with armature is read
as; joints are matched by name.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Any

import numpy as np

from ..algebra.rotation import quaternion_matrix
from ..errors import ArgumentError
from ..model.mechanism import Mechanism

__all__ = [
    "FREE_ORDER",
    "ROOT_JOINT",
    "SPLIT",
    "MujocoState",
    "joint_names",
    "names_of",
    "switched_off",
    "unique",
]

# of mjtJoint: free, ball, slide, hinge
_NQ, _NV = (7, 4, 1, 1), (6, 3, 1, 1)

# (ω; v) out of (v; ω)
FREE_ORDER = [3, 4, 5, 0, 1, 2]

# the joint of a base that is set free
ROOT_JOINT = "root_joint"

# a free joint that is read as two is called by its name with these
SPLIT = "/position", "/orientation"


def switched_off(model: Any, *names: str) -> bool:
    """Whether one of the flags of a model's <option> is "disable"."""
    bits = import_module("mujoco").mjtDisableBit
    return any(model.opt.disableflags & getattr(bits, f"mjDSBL_{n.upper()}", 0) for n in names)


def unique(name: str, taken: set[str]) -> str:
    """The name with as many underscores as it needs to be a new one, which is taken from now on."""
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def names_of(model: Any, field: str, kind: str, others: Iterable[str] = ()) -> list[str]:
    """Unique names of an MjModel's parts of a kind, which MuJoCo abbreviates to field.

    A part without name is called by its kind and number; none has a name that others have.
    """
    stored, others = model.names, set(others)
    starts = getattr(model, f"name_{field}adr").tolist()
    given = [stored[start : stored.index(b"\0", start)].decode() for start in starts]
    taken = {name for name in given if name} | others
    fresh = [not name or name in others for name in given]
    return [
        unique(name or f"{kind}{i}", taken) if new else name
        for i, (name, new) in enumerate(zip(given, fresh, strict=True))
    ]


def joint_names(model: Any) -> list[str]:
    """The names that the joints of an MjModel have in a mechanism."""
    return names_of(model, "jnt", "joint")


class MujocoState:
    """Turns vectors of an `MjModel` into those of the mechanism made from it, and back.

    Positions qpos ↔ q, velocities qvel ↔ v, forces qfrc ↔ tau, accelerations qacc ↔ a; every vector
    may have leading dimensions.  Power is the same in both: tau · v = qfrc · qvel.
    """

    def __init__(self, model: Any, mechanism: Mechanism) -> None:
        self._q = np.zeros(mechanism.nq, dtype=int)
        self._v = np.zeros(mechanism.nv, dtype=int)
        self._free: list[tuple[slice, slice, slice]] = []
        if (model.nq, model.nv) != (mechanism.nq, mechanism.nv):
            raise ArgumentError(
                f"the MuJoCo model has nq = {model.nq}, nv = {model.nv}; {mechanism.name!r} has "
                f"nq = {mechanism.nq}, nv = {mechanism.nv}; both must come from the same file"
            )
        for j, name in enumerate(joint_names(model)):
            nq, nv = _NQ[model.jnt_type[j]], _NV[model.jnt_type[j]]
            qpos, dof = model.jnt_qposadr[j], model.jnt_dofadr[j]
            if nv == 6 and name + SPLIT[0] in mechanism.joint_names:
                self._match(mechanism, name + SPLIT[0], 3, 3, qpos, dof)
                self._match(mechanism, name + SPLIT[1], 4, 3, qpos + 3, dof + 3)
            else:
                self._match(mechanism, name, nq, nv, qpos, dof)

    def _match(
        self, mechanism: Mechanism, name: str, nq: int, nv: int, qpos: int, dof: int
    ) -> None:
        q, v = mechanism.q_slice(name), mechanism.v_slice(name)
        if (q.stop - q.start, v.stop - v.start) != (nq, nv):
            raise ArgumentError(
                f"joint {name!r} has {nv} DoF in the MuJoCo model and {v.stop - v.start} in "
                f"{mechanism.name!r}; both must come from the same file"
            )
        self._q[q] = np.arange(qpos, qpos + nq)
        self._v[v] = np.arange(dof, dof + nv)
        if nv == 6:
            self._v[v] = self._v[v][FREE_ORDER]
            quaternion, angular = slice(q.start + 3, q.stop), slice(v.start, v.start + 3)
            self._free.append((quaternion, angular, slice(v.start + 3, v.stop)))

    def q(self, qpos: Any) -> np.ndarray:
        """q (…, nq) of qpos (…, nq)."""
        return _vector("qpos", qpos, self._q)[..., self._q]

    def qpos(self, q: Any) -> np.ndarray:
        """qpos (…, nq) of q (…, nq)."""
        return _scatter(_vector("q", q, self._q), self._q)

    def v(self, qpos: Any, qvel: Any) -> np.ndarray:
        """qd (…, nv) of qvel (…, nv)."""
        return self._to_body(qpos, _vector("qvel", qvel, self._v))

    def qvel(self, q: Any, v: Any) -> np.ndarray:
        """qvel (…, nv) of qd (…, nv)."""
        return self._to_world(q, _vector("v", v, self._v))

    def tau(self, qpos: Any, qfrc: Any) -> np.ndarray:
        """tau (…, nv) of generalised forces qfrc (…, nv)."""
        return self._to_body(qpos, _vector("qfrc", qfrc, self._v))

    def qfrc(self, q: Any, tau: Any) -> np.ndarray:
        """Generalised forces (…, nv) of MuJoCo's of tau (…, nv)."""
        return self._to_world(q, _vector("tau", tau, self._v))

    def a(self, qpos: Any, qvel: Any, qacc: Any) -> np.ndarray:
        """qdd (…, nv) of qacc (…, nv)."""
        a = self._to_body(qpos, _vector("qacc", qacc, self._v))
        return self._turning(self.v(qpos, qvel), a, -1)

    def qacc(self, q: Any, v: Any, a: Any) -> np.ndarray:
        """qacc (…, nv) of qdd (…, nv)."""
        a = self._turning(_vector("v", v, self._v), _vector("a", a, self._v), 1)
        return self._to_world(q, a)

    def _to_body(self, qpos: Any, x: np.ndarray) -> np.ndarray:
        q, x = self.q(qpos), x[..., self._v]
        return self._turned(q, x, "...ji,...j->...i")

    def _to_world(self, q: Any, x: np.ndarray) -> np.ndarray:
        return _scatter(self._turned(_vector("q", q, self._q), x, "...ij,...j->...i"), self._v)

    def _turned(self, q: np.ndarray, x: np.ndarray, product: str) -> np.ndarray:
        """x with the linear part of every free joint turned by its R or Rᵀ."""
        x = np.array(
            np.broadcast_to(x, (*np.broadcast_shapes(q.shape[:-1], x.shape[:-1]), x.shape[-1]))
        )
        for quaternion, _, linear in self._free:
            R = quaternion_matrix(np.moveaxis(q[..., quaternion], -1, 0))
            R = np.moveaxis(R, (0, 1), (-2, -1))
            x[..., linear] = np.einsum(product, R, x[..., linear])
        return x

    def _turning(self, v: np.ndarray, a: np.ndarray, sign: int) -> np.ndarray:
        """a with sign · ω × v added to the linear part of every free joint."""
        a = np.array(np.broadcast_to(a, np.broadcast_shapes(a.shape, v.shape)))
        for _, angular, linear in self._free:
            a[..., linear] += sign * np.cross(v[..., angular], v[..., linear])
        return a


def _vector(name: str, x: Any, like: np.ndarray) -> np.ndarray:
    x = np.asarray(x, dtype=float)
    if x.ndim == 0 or x.shape[-1] != len(like):
        raise ArgumentError(f"{name} has shape {x.shape}; the last dimension must be {len(like)}")
    return x


def _scatter(x: np.ndarray, index: np.ndarray) -> np.ndarray:
    out = np.empty_like(x)
    out[..., index] = x
    return out
