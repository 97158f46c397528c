"""Robot files, cut and twisted."""

from __future__ import annotations

import random
import warnings
from importlib import import_module
from importlib.util import find_spec

import numpy as np

from .lines import Outcome, line


@line("files")
def changed_urdf_files(rng: np.random.Generator) -> Outcome:
    """URDF with values, words, elements and letters changed: a robot that can be used, or a
    HingeError that names the file; nothing else."""
    fuzz, count = import_module("load.test_fuzz_urdf"), 50
    dice = random.Random(int(rng.integers(1 << 60)))
    for _ in range(count):
        fuzz.assert_robot_or_refusal(fuzz.mutated(dice, fuzz.ARM), dice.random() < 0.3)
    return Outcome(count)


@line("files")
def changed_mjcf_files(rng: np.random.Generator) -> Outcome:
    """Gymnasium's MJCF with values, elements and formats that somebody may have put there: a
    mechanism or a ModelError, and MuJoCo's compiler lives."""
    if not (find_spec("mujoco") and find_spec("gymnasium")):
        return Outcome(0)
    hostile, count = import_module("load.test_hostile_mjcf"), 25
    with warnings.catch_warnings():
        hostile.read_many(int(rng.integers(1 << 60)), count)
    return Outcome(count)
