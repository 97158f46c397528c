"""What it costs to be held: operations in O(N), and what masks add."""

from functools import cache

import numpy as np
import pytest

import hinge
from cost.general_chain import chain
from hinge import Contact
from hinge.robot.answers import robot_kernel
from robot_files import odd_models_allowed, package_folder, robot_file

TALOS = tuple(Contact(f"{side}_sole_link", "flat") for side in ("left", "right"))
SOLO12 = tuple(Contact(f"{leg}_FOOT") for leg in ("FL", "FR", "HL", "HR"))
STATE = ("q", "qd", "tau")


def operations(mech, name, arrays, constraints):
    return robot_kernel(mech, name, arrays, (("constraints", constraints),)).program.ops


@cache
def standing(path):
    with odd_models_allowed():
        where = {"floating_base": True, "package_dirs": [package_folder()]}
        return hinge.load(robot_file(path), **where).mechanism


def test_one_more_body_costs_the_same_everywhere():
    counts = []
    for n in (10, 20, 30):
        held = (Contact("tip"),)
        ops = operations(chain(n), "constrained_forward_dynamics", STATE, held)
        counts.append((ops.multiplications, ops.additions))
    more = np.diff(counts, axis=0) / 10
    np.testing.assert_allclose(more[0], more[1], rtol=0.01)
    # of which forward dynamics takes 242 and 217
    assert (more[0] <= (390, 340)).all(), more[0]


@pytest.mark.parametrize(
    "path, feet, most, most_of_impacts",
    [
        ("talos_data/robots/talos_reduced.urdf", TALOS, (7800, 7050), (5600, 4850)),
        ("solo_description/robots/solo12.urdf", SOLO12, (4200, 3600), (3500, 2900)),
    ],
    ids=["talos", "solo12"],
)
def test_feet_on_the_ground(path, feet, most, most_of_impacts):
    mech = standing(path)
    ops = operations(mech, "constrained_forward_dynamics", STATE, feet)
    assert ops.multiplications <= most[0] and ops.additions <= most[1], ops
    masked = operations(mech, "constrained_forward_dynamics", (*STATE, "mask"), feet)
    assert sum(masked) <= 1.02 * sum(ops)
    hit = operations(mech, "impulse_dynamics", STATE[:2], feet)
    assert hit.multiplications <= most_of_impacts[0] and hit.additions <= most_of_impacts[1], hit


@pytest.mark.parametrize(
    "path, feet, most, most_of_impacts",
    [
        pytest.param(
            *("talos_data/robots/talos_reduced.urdf", TALOS, (74_500, 67_000), (38_800, 33_800)),
            marks=pytest.mark.long,
        ),
        ("solo_description/robots/solo12.urdf", SOLO12, (25_200, 22_200), (16_600, 13_900)),
    ],
    ids=["talos", "solo12"],
)
def test_derivatives_on_feet(path, feet, most, most_of_impacts):
    """Of forward dynamics without feet they are 45 400 and 40 900, 11 400 and 10 900."""
    mech = standing(path)
    ops = operations(mech, "constrained_forward_dynamics_derivatives", STATE, feet)
    assert ops.multiplications <= most[0] and ops.additions <= most[1], ops
    hit = operations(mech, "impulse_dynamics_derivatives", STATE[:2], feet)
    assert hit.multiplications <= most_of_impacts[0] and hit.additions <= most_of_impacts[1], hit
