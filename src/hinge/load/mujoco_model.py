"""A compiled MuJoCo model as a mechanism: bodies, joints, shapes and sites, with their names.

MuJoCo moves a body from its rest pose through its joints one after the other, each about an anchor
fixed to the body, by q − q_ref: in our terms, with T the translation to the anchor and J the joint,

    placement = X T,   offset = J(−q_ref) T⁻¹

with X the rest pose for the first joint and the identity for the others.  Every joint but the last
carries a body without mass, the last the body itself, in MuJoCo's own frame.  A free joint's q is
the pose in the world, whatever the rest pose.

Armature and friction loss of a free joint belong to MuJoCo's coordinates: they resist p̈ and ṗ along
the axes of the world, and ω̇ and ω along those of the body.  Such a joint is read as a translation
that carries a ball joint, whose coordinates are these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..algebra.rotation import quaternion_log, quaternion_matrix
from ..algebra.spatial import Inertia, Transform
from ..edit import weld
from ..errors import ModelError
from ..model.actuator import effort_limits
from ..model.builder import MechanismBuilder
from ..model.joints import Fixed, Free, Joint, Prismatic, Revolute, Spherical, Translation
from ..model.mechanism import GROUND, Mechanism
from .mujoco_actuators import actuators_of
from .mujoco_equality import Closing, Equalities, Loop, equalities
from .mujoco_shapes import MeshFile, body_shapes
from .mujoco_state import FREE_ORDER, ROOT_JOINT, SPLIT, joint_names, names_of, switched_off, unique

__all__ = ["closed_mechanism", "mechanism_from_model"]

_FREE, _BALL, _SLIDE, _HINGE = range(4)  # mjtJoint
_SAME, _SAME_AXES = 1, (1, 3)  # mjtSameFrame
MAX_SIZE = 1e12  # of any number, in SI units
_NO_LIMIT = 1e10  # mjMAXVAL: a range that goes so far has no end there
_NUMBERS = (
    *("body_pos", "body_quat", "body_mass", "body_inertia", "body_ipos", "body_iquat"),
    *("jnt_pos", "jnt_axis", "jnt_stiffness", "dof_armature", "dof_damping", "dof_frictionloss"),
    *("site_pos", "site_quat", "geom_pos", "geom_quat", "geom_size"),
    *("actuator_armature", "actuator_damping"),
)


def mechanism_from_model(
    model: Any,
    name: str,
    floating_base: bool = False,
    mesh_files: Mapping[str, MeshFile] | None = None,
) -> Mechanism:
    """The mechanism of an `mujoco.MjModel`; its constraints are left out.

    floating_base: let the base, a top-level body without joint, move freely by "root_joint".
    mesh_files: by the names under which MuJoCo read them, for shapes; other meshes have none.
    """
    return _Reader(model, name, floating_base, mesh_files or {}, Equalities()).read()[0]


def closed_mechanism(
    model: Any,
    name: str,
    floating_base: bool = False,
    mesh_files: Mapping[str, MeshFile] | None = None,
) -> tuple[Mechanism, tuple[Loop, ...]]:
    """The mechanism of an `mujoco.MjModel`, and what closes its loops."""
    return _Reader(model, name, floating_base, mesh_files or {}, equalities(model)).read()


class _Reader:
    """One reading: the model, the names its parts get, and the builder."""

    def __init__(
        self,
        model: Any,
        name: str,
        floating_base: bool,
        mesh_files: Mapping[str, MeshFile],
        closed: Equalities,
    ) -> None:
        self._model, self._closed = model, closed
        self._name = name
        self._bodies = names_of(model, "body", "body")
        self._joints = joint_names(model)
        self._base = self._floating_base() if floating_base else None
        self._shapes = body_shapes(model, mesh_files)
        self._frames = set(self._bodies)
        self._taken = set(self._joints)
        self._efforts = effort_limits(actuators_of(model))

    def read(self) -> tuple[Mechanism, tuple[Loop, ...]]:
        self._check_numbers()
        builder = MechanismBuilder(self._name, self._gravity(), nonphysical="warn")
        builder.dress_ground(*self._shapes[0])
        for b in range(1, self._model.nbody):
            self._add_body(builder, b)
        self._add_sites(builder)
        loops = [self._loop(builder, c) for c in self._closed.loops]
        mech = builder.build()
        for j, value in self._closed.held.items():
            mech = weld(mech, self._joints[j], value)
        for c, loop in zip(self._closed.loops, loops, strict=True):
            if mech.frame(loop.left).body == mech.frame(loop.right).body:
                raise ModelError(
                    f"equality {c.name!r} holds bodies together that cannot move against each "
                    f"other; take it out, or load without constraints=True"
                )
        return mech, tuple(loops)

    def _loop(self, builder: MechanismBuilder, c: Closing) -> Loop:
        """The frames of a loop, one on each side."""
        frames = []
        for (body, pose), side in zip(c.sides, ("left", "right"), strict=True):
            frames.append(unique(f"{c.name}/{side}", self._frames))
            builder.add_frame(frames[-1], self._bodies[body], pose)
        return Loop(frames[0], frames[1], c.axes, *c.gains)

    def _gravity(self) -> Sequence[float]:
        off = switched_off(self._model, "gravity")
        return (0.0, 0.0, 0.0) if off else self._model.opt.gravity.tolist()

    def _add_body(self, builder: MechanismBuilder, b: int) -> None:
        model, name = self._model, self._bodies[b]
        parent = self._bodies[model.body_parentid[b]]
        pose = _pose(model.body_pos[b], model.body_quat[b])
        visuals, collisions = self._shapes[b]
        *chain, (joint_name, joint, placement, offset) = self._chain(b, pose)
        for first_name, first, at, back in chain:
            between = unique(f"{name}/{first_name}", self._frames)
            builder.add(between, parent, first, first_name, at, offset=back)
            parent = between
        inertia = self._inertia(b)
        builder.add(
            name, parent, joint, joint_name, placement, inertia, offset, visuals, collisions
        )

    def _chain(self, b: int, pose: Transform) -> list[tuple[str, Joint, Transform, Transform]]:
        """Name, joint, placement and offset of every joint that carries a body."""
        first, count = self._model.body_jntadr[b], self._model.body_jntnum[b]
        if b == self._base:
            return [(unique(ROOT_JOINT, self._taken), Free(), Transform(), Transform())]
        if count == 0:
            name = unique(f"{self._bodies[b]}_joint", self._taken)
            return [(name, Fixed(), pose, Transform())]
        chain = []
        for j in range(first, first + count):
            joint = self._joint(j)
            if isinstance(joint, Free):
                return self._free(j, joint)
            anchor = Transform(translation=self._model.jnt_pos[j])
            chain.append((self._joints[j], joint, pose @ anchor, self._back(j, joint) @ anchor.inv))
            pose = Transform()
        return chain

    def _free(self, j: int, joint: Free) -> list[tuple[str, Joint, Transform, Transform]]:
        """A free joint, or, with armature or friction, the translation and the turn it is."""
        name, stay = self._joints[j], Transform()
        if not (np.any(joint.armature) or np.any(joint.friction)):
            return [(name, joint, stay, stay)]
        parts = (Translation, slice(3, 6)), (Spherical, slice(0, 3))
        return [
            (unique(name + suffix, self._taken), kind(**_some(joint, dofs)), stay, stay)
            for suffix, (kind, dofs) in zip(SPLIT, parts, strict=True)
        ]

    def _back(self, j: int, joint: Joint) -> Transform:
        """J(−q_ref): MuJoCo counts the coordinate of a hinge or slide from its reference."""
        if joint.nq > 1:
            return Transform()
        ref = self._model.qpos0[self._model.jnt_qposadr[j]]
        return Transform(*joint.pose(np.array([-ref])))

    def _joint(self, j: int) -> Joint:
        kind, axis = self._model.jnt_type[j], self._model.jnt_axis[j]
        try:
            if kind == _HINGE:
                return Revolute(tuple(axis), **self._data(j, 1))
            if kind == _SLIDE:
                return Prismatic(tuple(axis), **self._data(j, 1))
            return Spherical(**self._data(j, 3)) if kind == _BALL else Free(**self._data(j, 6))
        except ModelError as e:
            raise ModelError(f"joint {self._joints[j]!r}: {e}") from None

    def _data(self, j: int, nv: int) -> dict[str, Any]:
        """What a joint knows besides its axis."""
        model = self._model
        dofs = model.jnt_dofadr[j] + np.array(FREE_ORDER if nv == 6 else range(nv))
        armature, damping = _of_actuators(model, j)
        data: dict[str, Any] = {"armature": model.dof_armature[dofs] + armature}
        if not switched_off(model, "damper", "passive"):
            data["damping"] = model.dof_damping[dofs] + damping
        if not switched_off(model, "frictionloss", "constraint"):
            data["friction"] = model.dof_frictionloss[dofs]
        if model.jnt_stiffness[j] and not switched_off(model, "spring", "passive"):
            data["stiffness"], data["rest"] = float(model.jnt_stiffness[j]), self._rest(j, nv)
        if j in self._closed.mimics:
            data["mimic"] = self._closed.mimics[j]
        if nv == 1 and model.jnt_limited[j] and not switched_off(model, "limit", "constraint"):
            lower, upper = model.jnt_range[j].tolist()
            data["lower"] = lower if lower > -_NO_LIMIT else -np.inf
            data["upper"] = upper if upper < _NO_LIMIT else np.inf
        if nv == 1:
            limited = model.jnt_actfrclimited[j]
            most = float(np.abs(model.jnt_actfrcrange[j]).max()) if limited else np.inf
            data["effort_limit"] = min(most, self._efforts.get(self._joints[j], np.inf))
        return data

    def _rest(self, j: int, nv: int) -> Any:
        """Where the spring of a joint is slack, as a displacement of our joint."""
        at = self._model.jnt_qposadr[j]
        if nv == 1:
            return float(self._model.qpos_spring[at])
        turn = quaternion_log(self._model.qpos_spring[at + nv - 3 :][:4])
        return [*turn, *self._model.qpos_spring[at : at + nv - 3]]

    def _inertia(self, b: int) -> Inertia:
        R = quaternion_matrix(self._model.body_iquat[b])
        mass, com = float(self._model.body_mass[b]), self._model.body_ipos[b]
        # what is nearly the body's own frame MuJoCo takes for it
        same = self._model.body_sameframe[b]
        R, com = np.eye(3) if same in _SAME_AXES else R, com * (same != _SAME)
        about = R @ np.diag(self._model.body_inertia[b]) @ R.T
        return Inertia(mass, com, (about + about.T) / 2)

    def _add_sites(self, builder: MechanismBuilder) -> None:
        model = self._model
        names = names_of(model, "site", "site", self._frames)
        self._frames |= set(names)
        for s, name in enumerate(names):
            body = self._bodies[model.site_bodyid[s]]
            builder.add_frame(name, body, _pose(model.site_pos[s], model.site_quat[s]))

    def _floating_base(self) -> int | None:
        """The body to set free, or None if the base is free already.

        The base is the first top-level body with a joint somewhere, else the first of all.
        """
        model = self._model
        top = [b for b in range(1, model.nbody) if model.body_parentid[b] == 0]
        if not top:
            raise ModelError(f"floating_base needs a body; there is none besides the {GROUND}")
        moving = {model.body_rootid[b] for b in model.jnt_bodyid}
        base = next((b for b in top if b in moving), top[0])
        if model.body_jntnum[base] == 0:
            return base
        j = model.body_jntadr[base]
        if model.jnt_type[j] == _FREE:
            return None
        raise ModelError(
            f"floating_base needs a base that is fixed or free; {self._bodies[base]!r} hangs on "
            f"joint {self._joints[j]!r}: leave floating_base out, or remove the joint"
        )

    def _check_numbers(self) -> None:
        """Refuse what is not finite, or too large to calculate with."""
        model = self._model
        owners = {
            "body": self._bodies,
            "jnt": self._joints,
            "dof": [self._joints[j] for j in model.dof_jntid],
            "site": names_of(model, "site", "site"),
            "geom": names_of(model, "geom", "geom"),
            "actuator": names_of(model, "actuator", "actuator"),
        }
        for field in _NUMBERS:
            values = getattr(model, field, np.zeros(0))  # not all are in every MuJoCo
            fine = (np.abs(values) <= MAX_SIZE).all(axis=tuple(range(1, values.ndim)))
            kind, what = field.split("_")
            if what.endswith("quat"):
                fine &= np.abs(values).max(axis=1) > 0.4  # of a unit quaternion it is 0.5
            word = "joint" if kind in ("jnt", "dof") else kind
            for i in np.flatnonzero(~fine):
                raise _too_large(f"{word} {owners[kind][i]!r} has {what}", values[i])
        whole = {"gravity": model.opt.gravity, "qpos0": model.qpos0, "gear": model.actuator_gear}
        for what, values in whole.items():
            if not (np.abs(values) <= MAX_SIZE).all():
                raise _too_large(f"the model has {what}", values)


def _too_large(what: str, values: np.ndarray) -> ModelError:
    return ModelError(
        f"{what} {values.tolist()}; expected numbers of at most {MAX_SIZE:g} in size, "
        "and quaternions of unit length"
    )


def _pose(position: np.ndarray, quaternion: np.ndarray) -> Transform:
    return Transform(quaternion_matrix(quaternion), position)


def _some(joint: Joint, dofs: slice) -> dict[str, Any]:
    """What a joint knows of some of its degrees of freedom."""
    fields = ("armature", "damping", "friction", "stiffness", "rest")
    return {field: np.array(getattr(joint, field))[dofs] for field in fields}


def _of_actuators(model: Any, j: int) -> tuple[float, float]:
    """The armature and damping that actuators add to a joint, by the square of their gear."""
    none = np.zeros(len(model.actuator_trntype))  # MuJoCo 3.2 has neither
    on_joint = (model.actuator_trntype <= 1) & (model.actuator_trnid[:, 0] == j)
    # one actuator may have several outputs, each with a gear of its own; the first counts
    first = getattr(model, "actuator_outadr", np.arange(len(none)))[on_joint]
    gear = model.actuator_gear[first, 0] ** 2
    armature = getattr(model, "actuator_armature", none)[on_joint]
    damping = getattr(model, "actuator_damping", none)[on_joint]
    return float(gear @ armature), float(gear @ damping)
