"""Helpers: the parts of a batch, who takes them, and what happens when they come late or never."""

import ctypes
import os
import threading
import time

import numpy as np
import pytest

import hinge
from fresh_process import run_python
from hinge import Kernel
from hinge.runtime import cpu, team
from hinge.runtime.cpu import Cpu
from hinge.runtime.threads import thread_count
from marks import short_way

RUN = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p
)
SCRATCH, ROOM = 1 << 20, 64
two_cores = pytest.mark.skipif(thread_count(None) < 2, reason="needs two cores")


def shared(work, size, helpers=1, grain=8):
    """The parts (begin, end, thread, area) of a batch that calls work(begin, end) for each."""
    parts = []

    def run(arrays, strides, begin, end, scratch):
        parts.append((begin, end, threading.get_ident(), (scratch - SCRATCH) // ROOM))
        work(begin, end)

    function = RUN(run)
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert team.share((address, None, None, size), SCRATCH, ROOM, helpers, grain)
    return sorted(parts)


def covered(parts, size):
    """Whether the parts are the batch, each sample once."""
    return [b for b, *_ in parts] == [0, *(e for _, e, *_ in parts[:-1])] and parts[-1][1] == size


@short_way
@pytest.mark.parametrize("size", [1, 8, 9, 1000, 4096, 100_003])
@pytest.mark.parametrize("helpers", [1, 3, 1000])
def test_parts_are_the_batch_in_whole_tiles(size, helpers):
    parts = shared(lambda begin, end: None, size, helpers)
    assert covered(parts, size) and all(begin % 8 == 0 for begin, *_ in parts)
    assert len({thread for _, _, thread, _ in parts}) <= thread_count(None)


@short_way
@two_cores
def test_a_helper_comes_whether_it_slept_or_not():
    for pause in (0.0, 0.0, 0.05, 0.0):
        time.sleep(pause)
        parts = shared(lambda begin, end: time.sleep(2e-3), 1000)
        assert covered(parts, 1000) and len({thread for _, _, thread, _ in parts}) == 2


@short_way
@two_cores
def test_everybody_has_an_area_of_his_own():
    parts = shared(lambda begin, end: time.sleep(2e-3), 1000, helpers=thread_count(None) - 1)
    owner = {area for _, _, thread, area in parts if thread == threading.get_ident()}
    pairs = {(thread, area) for _, _, thread, area in parts}
    assert owner == {0} and len(pairs) == len({area for _, area in pairs}) > 1


@short_way
@two_cores
def test_the_caller_waits_for_parts_that_were_begun():
    done, caller = [], threading.get_ident()

    def work(begin, end):
        time.sleep(2e-3 if threading.get_ident() == caller else 0.1)
        done.append((begin, end))

    parts = shared(work, 256)
    assert covered(parts, 256) and sorted(done) == [part[:2] for part in parts]


@short_way
def test_who_comes_second_works_alone():
    inner = []

    def work(begin, end):
        if begin == 0:
            inner.extend(shared(lambda *part: None, 1000))

    assert covered(shared(work, 500), 500)
    assert [part[:2] for part in inner] == [(0, 1000)]


@short_way
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_in_the_middle_of_a_batch_has_a_team_of_its_own():
    children = []

    def work(begin, end):
        if begin == 0:
            children.append(os.fork())
            if children[-1] == 0:
                in_the_child()

    assert covered(shared(work, 500), 500)
    assert [os.waitstatus_to_exitcode(os.waitpid(p, 0)[1]) for p in children] == [0]


def in_the_child():
    """Leave with 0 if a batch is shared out here as well."""
    threading.Timer(20, lambda: os._exit(2)).start()
    parts = shared(lambda *part: time.sleep(2e-3), 1000)
    threads = len({thread for _, _, thread, _ in parts})
    os._exit(0 if covered(parts, 1000) and threads == min(2, thread_count(None)) else 1)


@short_way
def test_one_thread_starts_nobody_and_leaving_at_once_is_fine():
    run_python("""
import numpy as np, hinge
from hinge.runtime import team
turn = lambda threads: hinge.compile(lambda x: np.sin(x), threads=threads, x=(8,))
x = np.ones((50_000, 8))
assert (turn(1)(x) == np.sin(1.0)).all() and team.HERE[0] == 0
for _ in range(3):
    y = turn(2)(x)
assert (y == turn(1)(x)).all() and team.HERE[0] != 0
""")


@pytest.mark.parametrize("missing", ["fast calls", "yield"])
def test_without_a_team_the_pool_does_it(monkeypatch, missing):
    monkeypatch.setattr(team, "HERE", np.zeros(1, dtype=np.int64))
    monkeypatch.setattr(team, "_STARTED", {})
    if missing == "yield":
        monkeypatch.delattr(os, "sched_yield", raising=False)
    else:
        monkeypatch.setattr(team, "fast_calls_work", lambda: False)
    monkeypatch.setattr(cpu, "_WORK_PER_HELPER", 1000)
    seen, pool = [], cpu.in_parallel
    monkeypatch.setattr(cpu, "in_parallel", lambda *a: seen.append(a[-1]) or pool(*a))
    double = hinge.compile(lambda x: x + x, x=(3,))
    x = np.random.default_rng(0).normal(size=(5000, 3))
    assert (Kernel(double.program, backend=Cpu(threads=2))._slow(x) == 2 * x).all()
    assert seen == [2] and team.HERE[0] == 0
