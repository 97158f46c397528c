"""The robots that tests run on: every joint type, branches, floating bases, armature, mimics."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

import hinge
from hinge import zoo
from hinge.algebra.rotation import from_rpy

EPS = np.finfo(float).eps

# no axis of symmetry anywhere
BODY = hinge.Inertia(
    1.3, (0.1, -0.2, 0.15), [[0.2, 0.01, -0.02], [0.01, 0.3, 0.03], [-0.02, 0.03, 0.25]]
)

JOINTS = {
    "revolute": hinge.Revolute((1.0, -2.0, 0.5)),
    "prismatic": hinge.Prismatic((0.3, 1.0, 2.0)),
    "helical": hinge.Helical((1.0, 1.0, -1.0), 0.4),
    "cylindrical": hinge.Cylindrical((0.2, -1.0, 0.7)),
    "translation": hinge.Translation(),
    "spherical": hinge.Spherical(),
    "planar": hinge.Planar(),
    "universal": hinge.Universal((1.0, 0.2, 0.0), (0.1, 1.0, 0.6)),
    "free": hinge.Free(),
}


def empty() -> hinge.Robot:
    """No body moves."""
    return hinge.Robot(hinge.MechanismBuilder("empty").add("post", "world").build())


def gripper() -> hinge.Robot:
    """Two fingers on a wrist; the second mimics the first, a third mimics the second."""
    b = hinge.MechanismBuilder("gripper")
    body = hinge.Inertia(1.0, (0.1, 0.2, -0.1), np.diag([0.1, 0.12, 0.09]))
    turn = hinge.Transform(from_rpy(0.3, -0.4, 1.0), (0.1, 0.0, 0.2))
    b.add("wrist", "world", hinge.Revolute((0, 1, 0)), placement=turn, inertia=body)
    b.add("left", "wrist", hinge.Prismatic((1, 0, 1), armature=0.1), placement=turn, inertia=body)
    follow = hinge.Prismatic(
        (1, 1, 0), armature=0.3, mimic=hinge.Mimic("left_joint", ratio=-0.7, offset=0.1)
    )
    b.add("right", "wrist", follow, placement=turn, inertia=body)
    curl = hinge.Revolute((0, 0, 1), mimic=hinge.Mimic("right_joint", ratio=2.0, offset=-0.3))
    b.add("tip", "right", curl, placement=turn, inertia=body)
    b.add("pad", "tip", hinge.Revolute((1, 0, 0)), placement=turn, inertia=body)
    return hinge.Robot(b.build())


def everything() -> hinge.Robot:
    """Every joint type twice, on a floating base with two branches, with offsets and armature."""
    rng = np.random.default_rng(3)
    b = hinge.MechanismBuilder("everything", gravity=(1.0, -2.0, -9.0))
    b.add("base", "world", hinge.Free(), inertia=BODY)
    for side in ("left", "right"):
        parent = "base"
        for i, (kind, joint) in enumerate(JOINTS.items()):
            place = hinge.Transform(from_rpy(*rng.normal(size=3)), rng.normal(size=3) * 0.3)
            offset = hinge.Transform(from_rpy(*rng.normal(size=3)), rng.normal(size=3) * 0.1)
            joint = replace(joint, armature=rng.uniform(0, 0.3, size=joint.nv))
            name = f"{side}_{kind}"
            b.add(name, parent, joint, f"{name}_joint", place, BODY, offset)
            parent = name if i % 3 else parent
    return hinge.Robot(b.build())


def random_chain(n: int, rng: np.random.Generator) -> hinge.Robot:
    """Hinges in random directions, no gravity, no armature."""
    b = hinge.MechanismBuilder("chain", gravity=(0, 0, 0))
    for i in range(n):
        place = hinge.Transform(translation=0.5 * rng.normal(size=3))
        body = hinge.Inertia(rng.uniform(0.5, 2), 0.3 * rng.normal(size=3), 0.2 * np.eye(3))
        parent = f"body{i - 1}" if i else "world"
        b.add(f"body{i}", parent, hinge.Revolute(rng.normal(size=3)), None, place, body)
    return hinge.Robot(b.build())


ROBOTS = {
    "pendulum": zoo.pendulum(2),
    "arm": zoo.arm(7),
    "snake": zoo.snake(5),
    "cartpole": zoo.cartpole(),
    "acrobot": zoo.acrobot(),
    "quadruped": zoo.quadruped(),
    "humanoid": zoo.humanoid(),
    "space_arm": zoo.space_arm(4),
    "tree0": zoo.tree(0, 12),
    "tree1": zoo.tree(1, 14),
    "gripper": gripper(),
    "empty": empty(),
}


# those in which no joint mimics another
WITHOUT_FOLLOWERS = [name for name, robot in ROBOTS.items() if not robot.mechanism.has_followers]


@dataclass(frozen=True)
class State:
    """A random state of a robot, with accelerations and external forces."""

    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    f_ext: np.ndarray


def random_state(robot: hinge.Robot, seed: int) -> State:
    """The same state for the same seed."""
    rng = np.random.default_rng(seed)
    return State(
        robot.random_configuration(rng),
        rng.normal(size=robot.nv),
        rng.normal(size=robot.nv),
        rng.normal(size=(len(robot.body_names), 6)),
    )


def random_mask(robot: hinge.Robot, seed: int) -> np.ndarray:
    """Some of the degrees of freedom: joints of several are cut anywhere."""
    return np.random.default_rng(seed).random(robot.nv) < 0.5


def random_split(robot: hinge.Robot, seed: int = 0) -> np.ndarray:
    """Some of the degrees of freedom, among them the first and not the last."""
    flags = random_mask(robot, seed)
    flags[:1], flags[-1:] = True, False
    return flags


class Generic:
    """A robot whose algorithms run as plain Python: nothing is compiled, nothing checked."""

    def __init__(self, robot: hinge.Robot) -> None:
        self._robot = robot

    def __getattr__(self, name: str):
        generic = name in hinge.algorithms.__all__ and name not in ("total_mass", "neutral")
        own = generic and name != "random_configuration"
        return getattr(self._robot.alg if own else self._robot, name)


def complex_step(fn, h: float = 1e-30):
    """d fn(s)/ds at s = 0, exact to rounding."""
    return np.imag(fn(1j * h)) / h


def complex_jacobian(fn, x, h: float = 1e-30):
    """∂fn/∂x at x, exact to rounding: a column for each entry of x."""
    columns = [complex_step(lambda s, e=e: fn(x + s * e), h) for e in np.eye(len(x))]
    return np.array(columns).reshape(len(x), np.size(fn(x))).T


def along(robot: hinge.Robot, q: np.ndarray, v: np.ndarray):
    """The configuration s ↦ q ⊞ s v, for any scalar s."""
    return lambda s: robot.alg.integrate(q, s * v)


def assert_close(got, expected, bound: float, scale=None, what: str = "result") -> None:
    """|got − expected| ≤ bound · scale, the scale being the largest expected magnitude, or 1."""
    got, expected = np.asarray(got), np.asarray(expected)
    assert got.shape == expected.shape, f"{what}: {got.shape}, not {expected.shape}"
    if scale is None:
        scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
    worst = float(np.abs(got - expected).max(initial=0.0))
    assert worst <= bound * scale, (
        f"{what} is off by {worst:.2e}; the bound is {bound / EPS:.0f} eps of {scale:.3g}"
    )


def assert_same_bits(got, expected, what: str = "result") -> None:
    """Equal to the bit, signs of zeros included; any NaN is as good as another."""
    assert got.dtype == expected.dtype and got.shape == expected.shape, what
    same = (got == expected) & (np.signbit(got) == np.signbit(expected))
    wrong = ~(same | (np.isnan(got) & np.isnan(expected)))
    assert not wrong.any(), f"{what}: got {got[wrong][:3]}, expected {expected[wrong][:3]}"
