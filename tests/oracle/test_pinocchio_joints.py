"""Every joint type in random trees with armature, built by hinge and by Pinocchio.

Seeds name the trees and their states.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import hinge
from mechanisms import EPS, State
from oracle.agreement import (
    TOLERANCE,
    agree_on_accelerations,
    agree_on_configurations,
    agree_on_energy,
    agree_on_forces,
    agree_on_frame_motion,
    agree_on_poses,
    assert_agrees,
    wild_state,
)
from oracle.pinocchio_bridge import PinocchioRobot, pin
from oracle.random_trees import KINDS, Part, model_of, oracle_of, random_tree

DISTANCE = 1e4


def shuffled_kinds(seed: int) -> list[str]:
    """Every kind of joint once, a free one first."""
    others = [kind for kind in KINDS if kind != "free"]
    return ["free", *np.random.default_rng(seed).permutation(others).tolist()]


def tied_tree(seed: int) -> list[Part]:
    """A random tree in which three joints follow others: the root, a screw and a follower."""
    kinds = ["revolute", "helical", "spherical", "prismatic", "revolute", "free", "unbounded"]
    parts = random_tree(kinds, seed)
    rng = np.random.default_rng(seed)
    for follower, leader in ((3, 0), (4, 1), (6, 4)):
        ratio, offset = rng.uniform(0.3, 1.5) * rng.choice([-1, 1]), rng.uniform(-1, 1)
        mimic = hinge.Mimic(parts[leader].joint_name, ratio, offset)
        joint = replace(parts[follower].joint, mimic=mimic)
        parts[follower] = replace(parts[follower], joint=joint)
    return parts


def agree_on_everything(oracle: PinocchioRobot, s: State, tolerance: float = TOLERANCE) -> None:
    agree_on_frame_motion(oracle, s, oracle.robot.body_names, tolerance)
    agree_on_energy(oracle, s, tolerance)
    agree_on_forces(oracle, s, tolerance)
    agree_on_accelerations(oracle, s, tolerance)


@pytest.mark.parametrize("seed", (0, 1))
@pytest.mark.parametrize("kind", KINDS)
def test_three_joints_of_a_kind(kind, seed):
    oracle = oracle_of(random_tree([kind] * 3, seed))
    s = wild_state(oracle.robot, seed)
    agree_on_poses(oracle, s)
    agree_on_everything(oracle, s)
    agree_on_configurations(oracle, s, seed)


@pytest.mark.parametrize("seed", range(6))
def test_trees_of_every_kind(seed):
    oracle = oracle_of(random_tree(shuffled_kinds(seed), seed, forest=True))
    s = wild_state(oracle.robot, seed)
    assert_agrees("total_mass", oracle.robot.total_mass, oracle.total_mass)
    agree_on_poses(oracle, s)
    agree_on_everything(oracle, s)
    agree_on_configurations(oracle, s, seed)


@pytest.mark.parametrize("seed", (0, 1))
def test_ten_kilometres_away(seed):
    """Poses are good to a few eps · distance, everything else to as much of its largest entry."""
    oracle = oracle_of(random_tree(shuffled_kinds(seed), seed))
    s = wild_state(oracle.robot, seed)
    base = oracle.robot.q_slice("body0_joint").start
    q = s.q.copy()
    q[base : base + 3] = DISTANCE * np.array([0.6, -0.64, 0.48])
    far = replace(s, q=q)
    agree_on_poses(oracle, far, 10 * EPS)
    agree_on_everything(oracle, far, 10 * EPS * DISTANCE)


@pytest.mark.parametrize("seed", range(4))
def test_followers(seed):
    """Pinocchio's followers are free joints here, tied by Gᵀ M G."""
    oracle = oracle_of(tied_tree(seed))
    assert oracle.robot.nv == oracle.model.nv - 3
    s = wild_state(oracle.robot, seed)
    agree_on_poses(oracle, s)
    agree_on_everything(oracle, s)
    agree_on_configurations(oracle, s, seed)


@pytest.mark.parametrize("seed", range(4))
def test_followers_as_pinocchio_ties_them(seed):
    """Pinocchio's own joints that mimic others; it has no forward dynamics with them."""
    parts = [replace(p, joint=replace(p.joint, armature=0.0)) for p in tied_tree(seed)[:5]]
    free = oracle_of(parts)
    model = model_of(parts)
    for name in free.followers:
        leader, ratio, offset = free.leader(name)
        ids = model.getJointId(leader), model.getJointId(name)
        model = pin.transformJointIntoMimic(model, *ids, ratio, offset)
    assert model.nv == free.robot.nv
    oracle = PinocchioRobot(free.robot, model)
    s = wild_state(oracle.robot, seed)
    agree_on_poses(oracle, s)
    agree_on_forces(oracle, s)
