"""Robots in files: those of example-robot-data, if it is installed, and files that are wrong."""

from __future__ import annotations

import importlib.metadata
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

import hinge
from hinge import edit

ROBOTS = "example-robot-data/robots"
PANDA = "panda_description/urdf/panda.urdf"

# a small URDF file without a fault
ARM = """<?xml version="1.0"?>
<robot name="arm">
  <link name="base"/>
  <link name="upper">
    <inertial>
      <origin xyz="0 0 0.5" rpy="0 0 0"/>
      <mass value="2"/>
      <inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.02"/>
    </inertial>
    <visual>
      <origin xyz="0 0 0.5"/>
      <geometry><box size="0.1 0.1 1"/></geometry>
      <material name="red"><color rgba="1 0 0 1"/></material>
    </visual>
  </link>
  <link name="lower"/>
  <joint name="shoulder" type="revolute">
    <parent link="base"/>
    <child link="upper"/>
    <origin xyz="0 0 1" rpy="0 0 0.1"/>
    <axis xyz="0 1 0"/>
    <limit lower="-1" upper="1" velocity="2" effort="3"/>
    <dynamics damping="0.1" friction="0.2"/>
  </joint>
  <joint name="elbow" type="continuous">
    <parent link="upper"/>
    <child link="lower"/>
    <axis xyz="0 1 0"/>
    <mimic joint="shoulder" multiplier="2" offset="0.1"/>
  </joint>
</robot>
"""


@cache
def urdf_files() -> list[Path]:
    """All of them; none where the package is missing."""
    try:
        files = importlib.metadata.files("example-robot-data") or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    return sorted(Path(str(f.locate())) for f in files if f.suffix == ".urdf")


@cache
def package_folder() -> Path:
    """The folder whose packages the files name; skips where there is none."""
    panda = Path(ROBOTS, PANDA)
    paths = (p for p in urdf_files() if p.as_posix().endswith(panda.as_posix()))
    found = next(paths, None) or pytest.skip("example-robot-data is not installed")
    return found.parents[len(panda.parts) - 1]


def robot_file(path: str) -> Path:
    """The file of a robot; the package's versions differ by a few."""
    found = package_folder() / ROBOTS / path
    return found if found.exists() else pytest.skip(f"this version has no {path}")


@contextmanager
def odd_models_allowed() -> Iterator[None]:
    """Warnings about a model are no errors: many files have odd inertias."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hinge.ModelWarning)
        yield


def refusal(read, text, source: str, **options) -> str:
    """The message about a wrong file, without its name; nothing from inside shows."""
    with pytest.raises(hinge.ModelError) as caught:
        read(text, source, **options)
    error, message = caught.value, str(caught.value)
    assert error.__cause__ is None and (error.__context__ is None or error.__suppress_context__)
    assert message.startswith(f"{source}:"), message
    return message.removeprefix(f"{source}:")


def panda_arm() -> hinge.Mechanism:
    """Seven hinges, both fingers welded to the hand."""
    with odd_models_allowed():
        mech = hinge.load(robot_file(PANDA), package_dirs=[package_folder()]).mechanism
        for finger in ("panda_finger_joint2", "panda_finger_joint1"):
            mech = edit.weld(mech, finger)
    return mech
