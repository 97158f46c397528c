"""Kernels of laws, grounds and tasks: the last stay, what is dropped is freed and comes back."""

import gc
import weakref

import numpy as np
import pytest

import hinge
from hinge import simulate, zoo
from hinge.runtime import recent
from hinge.runtime.recent import Recent
from mechanisms import assert_close


def pushed(robot, k):
    return simulate(robot, np.ones(3), tau=lambda t, q, qd: -k * q, duration=0.005)


def mapped():
    """How many MiB of code are in memory."""
    gc.collect()
    with open("/proc/self/maps") as file:
        spans = [line.split()[0].split("-") for line in file if " r-xp 00000000 00:00 0" in line]
    return sum(int(b, 16) - int(a, 16) for a, b in spans) / 2**20


def test_the_last_that_were_asked_for_stay(monkeypatch):
    monkeypatch.setattr(recent, "MOST", 2)
    cache, made = Recent(), []
    for asked in ("a", "b", "a", "c", "a", "b"):
        assert cache.get(asked, lambda x=asked: made.append(x) or x.upper()) == asked.upper()
    assert made == ["a", "b", "c", "b"] and len(cache) == 2
    cache.clear()
    assert len(cache) == 0


def test_what_is_made_twice_at_once_is_one():
    cache = Recent()
    inner = lambda: cache.get("x", lambda: "first") and "second"  # noqa: E731
    assert cache.get("x", inner) == cache.get("x", inner) == "first"


def test_clear_caches_frees_kernels_that_are_not_in_use():
    robot = zoo.arm(3)
    before = pushed(robot, 2.0).q
    robot.inverse_kinematics("tool", np.eye(4), iterations=2)
    ground = hinge.Ground(["tool"])
    ground.called(robot, np.ones(3), np.zeros(3))
    kept = [weakref.ref(x) for x in robot._recent._made.values()]
    assert len(kept) == 4
    inverse = robot.inverse_dynamics(np.ones(3), np.ones(3), np.ones(3))
    hinge.clear_caches()
    gc.collect()
    assert len(robot._recent) == 0 and not any(x() for x in kept)
    assert_close(pushed(robot, 2.0).q, before, 0.0)
    again = robot.inverse_dynamics(np.ones(3), np.ones(3), np.ones(3))
    assert_close(again, inverse, 0.0)


@pytest.mark.long
def test_hundreds_of_laws_take_the_memory_of_the_last(monkeypatch):
    monkeypatch.setattr(recent, "MOST", 8)
    robot, sizes = zoo.arm(3), []
    for i in range(200):
        pushed(robot, 1.0 + i / 7)
        if i in (20, 199):
            sizes.append(mapped())
    assert len(robot._recent) == 8
    assert sizes[1] < sizes[0] + 0.5, sizes
    hinge.clear_caches()
    assert mapped() < sizes[1]
