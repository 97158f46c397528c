"""A cache that strangers, accidents and other processes have been at."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import numpy as np

import hinge
from hinge.runtime import cache
from mechanisms import assert_same_bits

from .lines import Outcome, line
from .pool import random_task, tame


def _put(file: Path, data: bytes) -> None:
    """Other content, in a file of its own."""
    file.unlink()
    file.write_bytes(data)


def _flipped(data: bytes, rng: np.random.Generator) -> bytes:
    at = int(rng.integers(len(data)))
    return data[:at] + bytes([data[at] ^ (1 << int(rng.integers(8)))]) + data[at + 1 :]


def _bind(file: Path) -> None:
    file.unlink()
    with suppress(OSError), socket.socket(socket.AF_UNIX) as s:
        s.bind(str(file))


def _replaced(file: Path, make: Callable[[Path], object]) -> None:
    file.unlink()
    make(file)


ATTACKS: dict[str, Callable[[Path, bytes, np.random.Generator], object]] = {
    "a bit flipped": lambda f, data, rng: _put(f, _flipped(data, rng)),
    "cut short": lambda f, data, rng: _put(f, data[: int(rng.integers(len(data)))]),
    "longer": lambda f, data, rng: _put(f, data + rng.bytes(100)),
    "noise": lambda f, data, rng: _put(f, rng.bytes(len(data))),
    "zeros": lambda f, data, rng: _put(f, bytes(len(data))),
    "without end": lambda f, data, rng: os.truncate(f, 1 << 40),
    "a pipe": lambda f, data, rng: _replaced(f, os.mkfifo),
    "a socket": lambda f, data, rng: _bind(f),
    "a folder": lambda f, data, rng: _replaced(f, os.mkdir),
    "a link to nothing": lambda f, data, rng: _replaced(f, lambda p: p.symlink_to("nothing")),
    "a link to an endless file": lambda f, data, rng: _replaced(
        f, lambda p: p.symlink_to("/dev/zero")
    ),
    "open to all": lambda f, data, rng: f.chmod(0o666),
    "gone": lambda f, data, rng: f.unlink(),
}


@line("attacks", weight=1)
def a_cache_under_attack(rng: np.random.Generator) -> Outcome:
    """Every file of the cache damaged, replaced by another kernel's, by pipes, sockets, folders,
    links and files without end: results are those of before, and nothing waits or is run."""
    if not hasattr(os, "mkfifo"):
        return Outcome(0)
    task, other = random_task(rng, most=1000), random_task(rng, most=1000)
    states, count = tame(task, rng, 9), 8
    expected = task.kernel(*states)
    with TemporaryDirectory() as folder, mock.patch.dict(os.environ, XDG_CACHE_HOME=folder):
        for _ in range(count):
            again = hinge.Robot(task.robot.mechanism, task.robot.dtype)
            got = again.kernel(task.name, *task.arrays, **task.static)(*states)
            for a, b in zip(_tuple(got), _tuple(expected), strict=True):
                assert_same_bits(a, b, str(task))
            place = cache.folder()
            assert place is not None
            how = str(rng.choice([*ATTACKS, "another kernel's"]))
            for file in [f for f in place.iterdir() if f.is_file() and not f.is_symlink()]:
                if how == "another kernel's":
                    made = hinge.Robot(other.robot.mechanism, other.robot.dtype)
                    key = made.kernel(other.name, *other.arrays, **other.static).artifact
                    cache.store("other", key.packed())
                    _put(file, (place / "other").read_bytes())
                else:
                    ATTACKS[how](file, file.read_bytes(), rng)
    return Outcome(count)


def _tuple(results: object) -> tuple:
    return results if isinstance(results, tuple) else (results,)
