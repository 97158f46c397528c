"""Where the plain algorithm has no answer, compiled code has none: raised alone, NaN in a batch.

A product with 0 is folded, NaN or not, so that mechanisms with many zeros are the ones to try:
planar ones along their axes, joints in a row, frames on an axis, everything driven or nothing.
"""

import inspect
import re

import numpy as np
import pytest

import hinge
from hinge import Contact, Inertia, LoopConstraint, MechanismBuilder, Robot, SingularError
from hinge.algorithms.declare import ALGORITHMS
from hinge.specialize.arrays import array_shape

pytestmark = pytest.mark.filterwarnings("ignore::hinge.ModelWarning")

FLAT = 0.05 * np.eye(3)
# nothing to ask about singular mechanisms, or answered by name and not by arrays
OTHERS = {
    "anchors", "crba", "difference", "interpolate", "inverse_kinematics", "is_flat", "neutral",
    "random_configuration", "random_velocity", "rnea", "total_mass",
}  # fmt: skip
WITH_SETTINGS = "constrain|impulse|hybrid|complete|active"
NAMES = sorted(n for n in ALGORITHMS if hasattr(Robot, n) and n not in OTHERS)


def planar(masses, armature=0.0, root=None, beside=True):
    """Revolute joints about z, beside a branch of two joints; armature: where there is no mass."""
    b = MechanismBuilder("planar")
    if root is not None:
        b.add("base", "world", root, inertia=Inertia(1.0, (0, 0, 0), FLAT))
    ground = "world" if root is None else "base"
    parent, reach = ground, hinge.Transform(translation=(0.5, 0.0, 0.0))
    for i, mass in enumerate(masses):
        joint = hinge.Revolute((0, 0, 1), armature=0.0 if mass else armature)
        body = Inertia(mass, (0.2, 0.0, 0.0), mass * FLAT)
        b.add(f"b{i}", parent, joint, placement=reach, inertia=body)
        parent = f"b{i}"
    b.add_frame("tip", parent, reach)
    b.add_frame("axis", "b0", hinge.Transform(translation=(0.0, 0.0, 0.2)))
    if not beside:
        return Robot(b.build())
    solid = Inertia(1.0, (0.1, 0.05, -0.3), FLAT)
    aside = hinge.Transform(translation=(0.0, 1.0, 0.0))
    b.add("o0", ground, hinge.Revolute((0, 0, 1)), placement=aside, inertia=solid)
    b.add("o1", "o0", hinge.Prismatic((1, 0, 0)), inertia=solid)
    b.add_frame("other", "o1")
    return Robot(b.build())


def gantry(armature=0.0):
    """Two sliders and a turn that moves no inertia."""
    b = MechanismBuilder("gantry")
    b.add("x", "world", hinge.Prismatic((1, 0, 0)), inertia=Inertia(1.0))
    b.add("y", "x", hinge.Prismatic((0, 1, 0)), inertia=Inertia(1.0))
    turn = hinge.Revolute((0, 0, 1), armature=armature)
    b.add("r", "y", turn, inertia=Inertia(1.0, (0, 0, 0), np.zeros((3, 3))))
    b.add_frame("tip", "r", hinge.Transform(translation=(0.0, 0.0, 0.3)))
    b.add_frame("other", "x")
    return Robot(b.build())


def following(armature=0.0):
    """A massless end beyond a joint that follows another."""
    b = MechanismBuilder("following")
    solid = Inertia(1.0, (0.1, 0.05, -0.3), FLAT)
    b.add("a", "world", hinge.Revolute((0, 1, 0)), inertia=solid)
    follower = hinge.Revolute((1, 0, 0), mimic=hinge.Mimic("a_joint", 2.0))
    b.add("b", "a", follower, inertia=solid)
    nothing = Inertia(0.0, (0, 0, 0), np.zeros((3, 3)))
    b.add("c", "b", hinge.Revolute((0, 0, 1), armature=armature), inertia=nothing)
    b.add_frame("tip", "c")
    return Robot(b.build())


# of each how it is made with an armature where it has no inertia
MADE = {
    "hinge": lambda armature: planar((1.0,), armature, beside=False),
    "whole": lambda armature: planar((1.0, 1.0), armature),
    "gantry": gantry,
    "massless end": lambda armature: planar((1.0, 0.0), armature),
    "following": following,
    "massless root": lambda armature: planar((0.0,), armature),
    "floating": lambda armature: planar((1.0, 0.0), armature, hinge.Free()),
}


def asked_for(robot):
    """Frames, splits and constraints, so that each is met once with each of the others' kinds."""
    splits = [np.zeros(robot.nv), np.ones(robot.nv), *np.eye(robot.nv)[[0, -1]]]
    for frame in (f for f in ("tip", "axis", "other") if f in robot.frame_names):
        drawn = {"stiffness": 100.0}
        for c in (Contact(frame), LoopConstraint(frame, "world", (3,), **drawn),
                  LoopConstraint(frame, "world", **drawn)):  # fmt: skip
            for split in splits:
                active = tuple(x == 1 for x in split.tolist())
                yield {"frame": frame, "frames": frame, "constraints": (c,), "active": active}


def calls_of(robot, name):
    """What a method is called with: at a random state, and at rest where nothing is turned."""
    parameters = [*inspect.signature(getattr(Robot, name)).parameters.values()][1:]
    wanted = [p.name for p in parameters if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
    found = {}
    for settings in asked_for(robot):
        for seed in (3, None):
            rng, given = np.random.default_rng(seed), {n: settings.get(n) for n in wanted}
            for n in (n for n in wanted if n not in settings):
                x = rng.normal(size=array_shape(robot.mechanism, n, settings))
                given[n] = x * (seed is not None)
            if "q" in given:
                given["q"] = robot.neutral() if seed is None else robot.random_configuration(1)
            found[str(given)] = given
    return found.values()


def outcome(call, given):
    """The results, None where there is no answer."""
    try:
        found = call(**given)
    except SingularError:
        return None
    parts = found if isinstance(found, tuple) else (found,)
    numbers = [np.asarray(x, float) for x in parts if not isinstance(x, (str, bool))]
    return numbers if all(np.isfinite(x).all() for x in numbers) else None


def agree(found, expected):
    """Whether results are the same, to rounding."""
    return all(np.abs(x - y).max(initial=0.0) <= 1e-9 * (1 + np.abs(y).max(initial=0.0))
               for x, y in zip(found, expected, strict=True))  # fmt: skip


def check(robot, solid, names):
    """One sample and a batch against the plain algorithms; solid: with inertia everywhere."""
    for name in names:
        for given in calls_of(robot, name):
            plain = outcome(getattr(robot.alg, name), given)
            try:
                alone = getattr(robot, name)(**given)
                alone = outcome(lambda x=alone: x, {}) or "not finite, and nothing said"
            except SingularError:
                alone = None
            arrays = {n: np.array([x, x]) for n, x in given.items() if isinstance(x, np.ndarray)}
            both = outcome(getattr(robot, name), {**given, **arrays})
            assert (alone is None) == (both is None), (name, given)
            if plain is None and alone is not None:
                # of bodies that have nothing to do with it: whatever they weigh
                assert agree(alone, outcome(getattr(solid, name), given)), (name, given)
                continue
            assert (alone is None) == (plain is None), (name, given)
            assert plain is None or agree(alone, plain), (name, given)


def test_constraints_and_splits_have_an_answer_where_the_plain_algorithm_has():
    names = [n for n in NAMES if re.search(WITH_SETTINGS, n)]
    check(MADE["hinge"](0.0), MADE["hinge"](0.7), names)


@pytest.mark.long
@pytest.mark.parametrize("which", sorted(set(MADE) - {"hinge"}))
def test_every_mechanism_has_an_answer_where_the_plain_algorithm_has(which):
    names = [n for n in NAMES if re.search(WITH_SETTINGS, n)]
    check(MADE[which](0.0), MADE[which](0.7), names)


@pytest.mark.long
@pytest.mark.parametrize("which", ["hinge", "gantry"])
def test_every_method_has_an_answer_where_the_plain_algorithm_has(which):
    names = [n for n in NAMES if not re.search(WITH_SETTINGS, n)]
    check(MADE[which](0.0), MADE[which](0.7), names)
