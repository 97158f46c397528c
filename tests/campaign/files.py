"""Robot files, cut and twisted."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from importlib.util import find_spec

import numpy as np

import hinge
from hinge.errors import HingeError, ModelWarning

from .lines import Outcome, line

URDF = """<robot name="twist">
  <link name="base"><inertial><origin xyz="0 0 0.1" rpy="0 0 0"/><mass value="2"/>
    <inertia ixx="0.02" ixy="0" ixz="0" iyy="0.03" iyz="0.001" izz="0.02"/></inertial></link>
  <link name="arm"><inertial><origin xyz="0.1 0 0"/><mass value="1.5"/>
    <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.015"/></inertial>
    <visual><geometry><box size="0.1 0.2 0.3"/></geometry></visual></link>
  <link name="hand"><inertial><mass value="0.5"/>
    <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/></inertial></link>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="arm"/>
    <origin xyz="0 0 0.2" rpy="0.1 0 0"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="1" effort="10" velocity="2"/><dynamics damping="0.1"/></joint>
  <joint name="slide" type="prismatic"><parent link="arm"/><child link="hand"/>
    <origin xyz="0.2 0 0"/><axis xyz="1 0 0"/><limit lower="0" upper="0.5" effort="5" velocity="1"/>
    <mimic joint="shoulder" multiplier="0.5" offset="0.1"/></joint>
</robot>"""
MJCF = """<mujoco model="twist"><compiler angle="radian"/><option gravity="0 0 -9.81"/>
  <default><joint armature="0.1" damping="0.2"/><geom density="900"/></default>
  <worldbody><body name="torso" pos="0 0 1"><freejoint name="root"/><geom size="0.1"/>
    <body name="leg" pos="0 0.1 0"><joint name="hip" type="hinge" axis="0 1 0" range="-1 1"/>
      <geom type="capsule" fromto="0 0 0 0 0 -0.3" size="0.04"/>
      <body name="foot" pos="0 0 -0.3"><joint name="ankle" type="ball"/>
        <inertial pos="0 0 0.01" mass="0.3" diaginertia="0.01 0.02 0.015"/></body></body>
    <body name="tail"><joint type="slide" axis="1 0 0" stiffness="3"/>
      <geom type="box" size="0.1 0.1 0.1" quat="1 0.1 0 0"/></body></body></worldbody>
  <actuator><motor joint="hip" gear="2"/></actuator></mujoco>"""

NUMBERS = ["0", "-1", "nan", "inf", "1e308", "-1e-320", "1e400", "", "0 0", "1 2 3 4 5", "x", "0x1"]
WORDS = ["base", "torso", "hip", "world", "", "ä", "../x", "continuous", "floating", "fixed", "a b"]


def _values(text: str, rng: np.random.Generator) -> str:
    """Another value of some attribute."""
    found = list(re.finditer(r'"([^"]*)"', text))
    if not found:
        return text
    m = found[rng.integers(len(found))]
    value = str(rng.choice([*NUMBERS, *WORDS, found[rng.integers(len(found))][1]]))
    return text[: m.start(1)] + value + text[m.end(1) :]


def _names(text: str, rng: np.random.Generator) -> str:
    """Another name of some attribute or element, of those that are there."""
    found = list(re.finditer(r"[<\s/](\w+)", text))
    if not found:
        return text
    m, other = found[rng.integers(len(found))], found[rng.integers(len(found))][1]
    return text[: m.start(1)] + other + text[m.end(1) :]


def _elements(text: str, rng: np.random.Generator) -> str:
    """An element left out, or there twice, or somewhere else."""
    # not the root, which all of it is in
    pattern = re.compile(r"<(\w+)[^<>]*/>|<(\w+)[^<>]*>.*?</\2>", re.S)
    found = list(pattern.finditer(text, 1))
    if not found:
        return text
    m = found[rng.integers(len(found))]
    without = text[: m.start()] + text[m.end() :]
    at = int(rng.choice([m.start(), without.rfind(">", 0, int(rng.integers(len(without)))) + 1]))
    return [without, text[: m.end()] + text[m.start() :], without[:at] + m[0] + without[at:]][
        rng.integers(3)
    ]


def _letters(text: str, rng: np.random.Generator) -> str:
    """Some letters other ones, or the end missing."""
    at = int(rng.integers(len(text)))
    if rng.random() < 0.2:
        return text[:at]
    return text[:at] + str(rng.choice(["<", ">", '"', "&", "\0", "\n", "9", " "])) + text[at + 1 :]


TWISTS: tuple[Callable[[str, np.random.Generator], str], ...] = (_values, _values, _names)
TWISTS += (_elements, _letters)


@line("files", weight=1)
def twisted_files(rng: np.random.Generator) -> Outcome:
    """URDF and MJCF with values, names, elements and letters changed: a robot whose mass
    matrix is finite, or a HingeError; nothing else, no crash, no hang."""
    kinds, count = [URDF, MJCF] if find_spec("mujoco") else [URDF], 30
    for _ in range(count):
        text = kinds[rng.integers(len(kinds))]
        for _ in range(int(rng.integers(1, 5))):
            text = TWISTS[rng.integers(len(TWISTS))](text, rng) if text else text
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ModelWarning)
            try:
                robot = hinge.load(text)
            except HingeError:
                continue
            except Exception as error:
                raise AssertionError(f"{type(error).__name__}: {error}, of {text}") from error
        mass = robot.alg.mass_matrix(robot.neutral())
        assert np.isfinite(mass).all(), f"a mass matrix that is not finite, of {text}"
    return Outcome(count)
