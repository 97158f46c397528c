"""Robots of example-robot-data, written and read again: the same dynamics."""

from pathlib import Path

import pytest

import hinge
from oracle.example_robots import FIXED, FLOATING, ROBOTS, each
from robot_files import odd_models_allowed, package_folder, robot_file
from write.test_save import assert_same

EPS = 2.0**-52


@pytest.mark.parametrize(("name", "base"), each([*FIXED[1:], *FLOATING[:3]]))
@pytest.mark.parametrize("ending", ["urdf", "xml"])
def test_real_robots_come_back(tmp_path, name, base, ending):
    with odd_models_allowed():
        folder = package_folder()
        robot = hinge.load(robot_file(ROBOTS[name]), base == "floating", [folder])
        try:
            path = hinge.save(robot, tmp_path / f"robot.{ending}")
        except hinge.ModelError as refusal:
            words = "no mass or no moment|no body can have"
            assert ending == "xml" and any(w in str(refusal) for w in words.split("|"))
            return
        again = hinge.load(path, constraints=True)
    limits = () if ending == "urdf" else ("velocity_limit", "effort_limit", "lower", "upper")
    assert_same(robot, again, 400 * EPS, but=limits)
    for shape in (s for b in again.mechanism.bodies for s in (*b.visuals, *b.collisions)):
        if shape.mesh and "://" not in shape.mesh:
            assert Path(shape.mesh).is_relative_to(tmp_path) and shape.may_read
