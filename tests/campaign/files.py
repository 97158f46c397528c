"""Robot files, cut and twisted."""

from __future__ import annotations

import os
import random
import warnings
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from hinge import HingeError

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


@line("files")
def full_disks(rng: np.random.Generator) -> Outcome:
    """Pictures, plots, films, tables, arrays and robots written where a disk is full after any
    number of bytes: whole and readable, or a HingeError, the file of before and nothing beside."""
    whole, written = import_module("write.test_whole"), 0
    with TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, write in whole.WRITERS.values():
            if name.endswith(".html") and not find_spec("viser"):
                continue
            path = Path(folder, name)
            write(path)
            before = path.read_bytes()
            with whole.full_disk(int(rng.integers(2 * len(before)))), suppress(HingeError):
                write(path)
            after = path.read_bytes()
            # some formats have the time in them
            assert len(after) > 0.9 * len(before) and after[:4] == before[:4], name
            assert os.listdir(folder) == [name], os.listdir(folder)
            path.unlink()
            written += 1
    return Outcome(written)
