"""Base parameters: their number is that of the regressor's rank, and they say all there is."""

import numpy as np
import pytest

import hinge
from hinge import zoo
from hinge.algorithms.regressors import JOINT_TERMS
from hinge.identification import base
from mechanisms import EPS, ROBOTS, assert_close, everything, random_state
from robot_files import panda_arm

TERMS = [(), JOINT_TERMS]


def rank_at_states(robot, terms):
    """That of the regressor at many random states, with a gap."""
    ranks = base._Ranks()
    names = robot.linear_parameters(terms).names
    rows = base._rows_of_states(robot.mechanism, terms, len(names), ranks)
    assert ranks.gap > 1e8
    return len(rows)


@pytest.mark.parametrize("terms", TERMS, ids=["bodies", "joints too"])
@pytest.mark.parametrize("name", [*ROBOTS, "everything"])
def test_base_parameters_say_all_that_motion_shows(name, terms):
    robot = everything() if name == "everything" else ROBOTS[name]
    found = hinge.base_parameters(robot, terms)
    assert found.gap > 1e8
    s, chosen = random_state(robot, 1), list(found.independent)
    Y = robot.alg.torque_regressor(s.q, s.qd, s.qdd, terms)
    pi = np.random.default_rng(2).normal(size=len(found.names))
    scale = (np.abs(Y) @ np.abs(pi)).max(initial=1.0)
    assert_close(Y[:, chosen] @ (found.matrix @ pi), Y @ pi, 1e4 * EPS, scale)
    if robot.nv:
        assert found.rank == rank_at_states(robot, terms)


def test_the_panda_has_43():
    """As in C. Gaz et al., "Dynamic identification of the Franka Emika Panda robot", 2019."""
    robot = hinge.Robot(panda_arm())
    found = hinge.base_parameters(robot)
    assert (found.rank, len(found.names)) == (43, 70)
    assert found.sentences[0] == "panda_link1.Jzz + panda_link2.Jyy"
    assert found.sentences[1] == "panda_link2.mx"
    assert "panda_link6.my − panda_link7.mz" in found.sentences
    assert "panda_link2.m" in found.unseen
    assert str(found).startswith(
        "'panda': 43 of 70 parameters can be identified\n  panda_link1.Jzz"
    )
    with_armature = hinge.base_parameters(robot, "armature")
    assert "panda_link1.Jzz + panda_link2.Jyy + panda_joint1.armature" in with_armature.sentences
    assert with_armature.rank == 43 + 5


def test_gravity_shows_first_moments():
    """A pendulum about a vertical axis shows its moment of inertia alone."""

    def shown(axis):
        b = hinge.MechanismBuilder("one")
        b.add(
            "bob", "world", hinge.Revolute(axis), inertia=hinge.Inertia(1.0, (0.1, 0, 0), np.eye(3))
        )
        return hinge.base_parameters(hinge.Robot(b.build())).sentences

    assert shown((0, 0, 1)) == ("bob.Jzz",)
    assert shown((0, 1, 0)) == ("bob.mx", "bob.mz", "bob.Jyy")
    assert hinge.base_parameters(zoo.pendulum(1)).rank == 3


def test_what_shows_too_little_is_said():
    b = hinge.MechanismBuilder("skew", gravity=(0, 0, 0))
    body = hinge.Inertia(1.0, (0.1, 0, 0), np.eye(3))
    b.add("a", "world", hinge.Revolute((0, 0, 1)), inertia=body)
    place = hinge.Transform(translation=(1e-8, 0, 0))
    b.add("b", "a", hinge.Revolute((0, 0, 1)), placement=place, inertia=body)
    with pytest.warns(hinge.ModelWarning, match="neither nothing nor enough to be measured"):
        assert hinge.base_parameters(hinge.Robot(b.build())).rank == 2
