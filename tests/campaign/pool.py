"""Robots, algorithms and states that lines draw from."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from inspect import getattr_static
from typing import Any, NamedTuple

import numpy as np

import hinge
from hinge import zoo
from hinge.algebra.rotation import from_rpy
from hinge.errors import HingeError
from hinge.graph.program import trace
from hinge.robot.method import Method
from hinge.specialize.arrays import array_shape
from mechanisms import BODY, JOINTS, gripper
from same_kernels import QUARTIC, signature

__all__ = [
    "ALGORITHMS",
    "ROBOTS",
    "Task",
    "adversarial",
    "is_possible",
    "random_task",
    "robot",
    "tame",
    "task_of",
]

CONFIGURATIONS = ("q", "q0", "q1")
# those that give the same under another name, and those that take no arrays
_LEFT_OUT = {"aba", "rnea", "crba", "neutral", "total_mass", "random_configuration", "is_flat"}


def pair(kind: str) -> hinge.Robot:
    """A body on a joint of that kind, and another on a hinge beyond it."""
    b = hinge.MechanismBuilder(kind, gravity=(1.0, -2.0, -9.0))
    turn = hinge.Transform(from_rpy(0.3, -0.4, 1.0), (0.1, -0.3, 0.2))
    joint = replace(JOINTS[kind], armature=(0.1,) * JOINTS[kind].nv)
    b.add("base", "world", joint, placement=turn, inertia=BODY)
    b.add("tip", "base", hinge.Revolute((0.2, 1.0, 0.3)), placement=turn, inertia=BODY)
    return hinge.Robot(b.build())


ROBOTS = {
    **{kind: lambda kind=kind: pair(kind) for kind in JOINTS},
    "gripper": gripper,
    "arm": lambda: zoo.arm(4),
    "tree": lambda: zoo.tree(2, 9),
    "space_arm": lambda: zoo.space_arm(2),
}
ALGORITHMS = sorted(set(hinge.algorithms.__all__) - _LEFT_OUT)


@lru_cache
def robot(name: str, dtype: str = "float64") -> hinge.Robot:
    """A robot of the pool."""
    return hinge.Robot(ROBOTS[name]().mechanism, dtype=dtype)


class Task(NamedTuple):
    """An algorithm of a robot, with the arrays and the settings that it is called with."""

    robot: hinge.Robot
    name: str
    arrays: tuple[str, ...]
    static: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.name}({', '.join(self.arrays)}) of {self.robot.name} {self.robot.dtype}"

    @property
    def kernel(self) -> Any:
        """It as a kernel."""
        return self.robot.kernel(self.name, *self.arrays, **self.static)

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """Of one sample of each array."""
        return [array_shape(self.robot.mechanism, n) for n in self.arrays]

    def method(self, *arrays: Any, **out: Any) -> Any:
        """It as a method, arrays by name, if it is a compiled one; else as a kernel."""
        if not isinstance(getattr_static(type(self.robot), self.name, None), Method):
            return self.kernel(*arrays, **out)
        named = dict(zip(self.arrays, arrays, strict=True))
        return getattr(self.robot, self.name)(**named, **self.static, **out)

    def plain(self) -> Any:
        """The generic code, traced as it is: in no other frames, nothing regrouped."""
        return _plain(self.robot.mechanism, self.name, self.arrays, tuple(self.static.items()))


@lru_cache(maxsize=64)
def _plain(mech: Any, name: str, arrays: tuple[str, ...], static: tuple[Any, ...]) -> Any:
    algorithm, settings = getattr(hinge.algorithms, name), dict(static)
    shapes = [array_shape(mech, n) for n in arrays]

    def fn(*given: Any) -> Any:
        return algorithm(mech, **dict(zip(arrays, given, strict=True)), **settings)

    return trace(fn, shapes, name)


def random_task(rng: np.random.Generator, *names: str, most: int = 4000, but: str = "") -> Task:
    """Any algorithm that a robot of the pool has, or one of these, of so many operations at most.

    With external forces, or without.  but: the one that is not asked for.
    """
    while True:
        one = robot(str(rng.choice(list(ROBOTS))), str(rng.choice(["float64", "float32"])))
        task = task_of(one, str(rng.choice(names or ALGORITHMS)), bool(rng.random() < 0.5))
        if task is not None and task.name != but and is_possible(task, most):
            return task


def task_of(one: hinge.Robot, name: str, f_ext: bool = True) -> Task | None:
    """An algorithm of a robot, if it can be called with arrays and names alone."""
    found = signature(one, name)
    if found is None or (name in QUARTIC and one.nv > 4):
        return None
    arrays = tuple(a for a in found[0] if f_ext or a != "f_ext")
    return Task(one, name, arrays, found[1])


def is_possible(task: Task, most: int) -> bool:
    """Not too long to compile; and some algorithms are not for joints that mimic others."""
    try:
        return sum(task.kernel.program.ops) <= most
    except HingeError:
        return False


def tame(task: Task, rng: np.random.Generator, samples: int) -> list[np.ndarray]:
    """States of the size of 1."""
    made = []
    for name, shape in zip(task.arrays, task.shapes, strict=True):
        x = rng.normal(size=(samples, *shape))
        if name in CONFIGURATIONS:
            x[:] = task.robot.random_configuration(rng)
            x += rng.normal(size=x.shape)
        made.append(x.astype(task.robot.dtype))
    return made


def adversarial(task: Task, rng: np.random.Generator, samples: int) -> list[np.ndarray]:
    """States of every size, sample by sample and entry by entry; finite."""
    limits = np.finfo(task.robot.dtype)
    least, most = np.log10(float(limits.smallest_subnormal)), np.log10(float(limits.max))
    made = tame(task, rng, samples)
    # how far each sample, and each of its entries, is from 1, in powers of ten
    spread = rng.choice([0.0, 1.0, 6.0, 0.5 * most, most], size=samples)
    with np.errstate(all="ignore"):
        for x in made:
            each = (samples, *(1 for _ in x.shape[1:]))
            power = rng.uniform(-1, 1, size=each) * spread.reshape(each)
            single = rng.uniform(-1, 1, size=x.shape) * spread.reshape(each)
            power = np.clip(np.where(rng.random(each) < 0.5, power, single), least, most - 1)
            x *= (10.0**power).astype(x.dtype)
            special = rng.choice([0.0, -0.0, limits.max, limits.tiny, -limits.smallest_subnormal])
            x[rng.random(x.shape) < 0.002] = special
            np.nan_to_num(x, copy=False, posinf=limits.max, neginf=limits.min)
    return made
