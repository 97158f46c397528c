"""The robots of the benchmark, and the random states that every contestant is given."""

from __future__ import annotations

import importlib.metadata
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import numpy as np

import hinge

__all__ = ["ARGUMENTS", "CASES", "CHAINS", "FEET", "HELD", "Case", "States"]
__all__ += ["HELD_DERIVATIVES"]
__all__ += ["chain", "contacts", "random_states"]

# what each quantity is a function of
ARGUMENTS = {
    "inverse_dynamics": ("q", "qd", "qdd"),
    "forward_dynamics": ("q", "qd", "tau"),
    "mass_matrix": ("q",),
    "torque_regressor": ("q", "qd", "qdd"),
}
# the same of robots on their feet
HELD = {
    "constrained_forward_dynamics": ("q", "qd", "tau"),
    "impulse_dynamics": ("q", "qd"),
}
HELD_DERIVATIVES = {f"{name}_derivatives": arguments for name, arguments in HELD.items()}
FEET: dict[str, tuple[Literal["point", "flat"], tuple[str, ...]]] = {
    "talos": ("flat", ("left_sole_link", "right_sole_link")),
    "solo12": ("point", ("FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT")),
}
CHAINS = (8, 16, 32, 64, 128, 256, 512, 1024)

# name → label, file of example-robot-data, floating base, joints that are welded
_FILES = {
    "panda": ("Panda", "panda_description/urdf/panda.urdf", False, ("panda_finger_joint",)),
    "ur5": ("UR5", "ur_description/urdf/ur5_robot.urdf", False, ()),
    "anymal": ("ANYmal", "anymal_b_simple_description/robots/anymal.urdf", True, ()),
    "talos": ("Talos", "talos_data/robots/talos_reduced.urdf", True, ()),
}


# those of some sections only
_MORE = {"solo12": ("Solo12", "solo_description/robots/solo12.urdf", True, ())}


@dataclass(frozen=True, eq=False)
class Case:
    """A robot of the benchmark.

    urdf: the text that every contestant reads, None for a robot made in code.
    """

    name: str
    label: str
    mechanism: hinge.Mechanism
    urdf: str | None = None
    floating: bool = False

    @property
    def nv(self) -> int:
        """The number of degrees of freedom."""
        return self.mechanism.nv


@dataclass(frozen=True)
class States:
    """B random states: q (B, nq); qd, qdd, tau (B, nv)."""

    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    tau: np.ndarray

    def arguments(self, quantity: str) -> list[np.ndarray]:
        """The arrays that a quantity is a function of."""
        return [getattr(self, name) for name in ARGUMENTS[quantity]]

    def head(self, count: int) -> States:
        """The first few."""
        return States(*(x[:count].copy() for x in (self.q, self.qd, self.qdd, self.tau)))


@cache
def make(name: str) -> Case:
    """The robot of that name: one of the files, or `chain` with a number."""
    if name.startswith("chain"):
        links = int(name.removeprefix("chain"))
        return Case(name, f"chain of {links}", chain(links))
    label, path, floating, welded = (_FILES | _MORE)[name]
    text = _welded(_folder().joinpath(path).read_text(), welded)
    with warnings.catch_warnings():
        # files with odd inertias: every contestant gets the same ones
        warnings.simplefilter("ignore", hinge.ModelWarning)
        mechanism = hinge.load(text, floating_base=floating, package_dirs=[_folder()]).mechanism
    return Case(name, label, mechanism, text, floating)


CASES = (*_FILES, *(f"chain{n}" for n in CHAINS))


def contacts(name: str) -> tuple[hinge.Contact, ...]:
    """The feet of a robot."""
    kind, frames = FEET[name]
    return tuple(hinge.Contact(frame, kind) for frame in frames)


def _folder() -> Path:
    """Where example-robot-data has its robots."""
    files = importlib.metadata.files("example-robot-data") or []
    path = _FILES["panda"][1]
    found = next(Path(str(f.locate())) for f in files if str(f).endswith(path))
    return found.parents[len(Path(path).parts) - 1]


def _welded(text: str, prefixes: Sequence[str]) -> str:
    """A URDF with the joints whose names begin so made fixed at zero."""
    root = ET.fromstring(text)
    for joint in root.findall("joint"):
        if prefixes and joint.get("name", "").startswith(tuple(prefixes)):
            joint.set("type", "fixed")
            for tag in ("axis", "limit", "mimic", "dynamics", "safety_controller"):
                for part in joint.findall(tag):
                    joint.remove(part)
    return ET.tostring(root, encoding="unicode")


def chain(links: int, seed: int = 0) -> hinge.Mechanism:
    """Links on hinges about z, every placement, mass, centre and inertia a general one."""
    rng = np.random.default_rng(seed)
    b = hinge.MechanismBuilder(f"chain{links}")
    parent = "world"
    for k in range(links):
        rotation = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        rotation *= np.sign(np.linalg.det(rotation))
        placement = hinge.Transform(rotation, tuple(rng.uniform(-0.2, 0.2, size=3)))
        points = rng.normal(size=(3, 4)) * 0.1
        # of mass points: physical whatever they are
        about_com = np.trace(points @ points.T) * np.eye(3) - points @ points.T
        inertia = hinge.Inertia(rng.uniform(0.5, 2.0), tuple(rng.normal(size=3) * 0.1), about_com)
        name = f"link{k + 1}"
        b.add(name, parent, hinge.Revolute((0, 0, 1)), f"joint{k + 1}", placement, inertia)
        parent = name
    return b.build()


def random_states(mechanism: hinge.Mechanism, count: int, seed: int = 0) -> States:
    """States with angles anywhere, and forces that accelerate the joints by about one."""
    rng = np.random.default_rng(seed)
    q = rng.uniform(-np.pi, np.pi, size=(count, mechanism.nq))
    for body in mechanism.bodies[1:]:
        if isinstance(body.joint, hinge.Free):
            at = mechanism.q_slice(body.joint_name)
            turn = rng.normal(size=(count, 4))
            q[:, at.start + 3 : at.stop] = turn / np.linalg.norm(turn, axis=1, keepdims=True)
    qd, qdd = rng.normal(size=(2, count, mechanism.nv))
    tau = hinge.Robot(mechanism).inverse_dynamics(q, qd, qdd)
    return States(q, qd, qdd, tau)
