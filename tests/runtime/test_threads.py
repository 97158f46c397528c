"""Batches over threads: the parts fit together, results do not depend on their number."""

import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import hinge
from fresh_process import run_python
from hinge import Kernel
from hinge.graph.program import trace
from hinge.runtime import cpu, engine, threads
from hinge.runtime.cpu import Cpu
from hinge.runtime.target import host
from hinge.runtime.threads import in_parallel
from marks import short_way
from mechanisms import EPS

RNG = np.random.default_rng(0)
HEAVY = hinge.compile(lambda A, x: np.sin(A @ x), A=(8, 8), x=(8,))


@pytest.fixture(autouse=True)
def threads_are_cheap(monkeypatch):
    """Small batches are shared out as well."""
    monkeypatch.setattr(cpu, "_WORK_PER_HELPER", 1000)


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 63, 64, 65, 1000])
@pytest.mark.parametrize("count", [1, 2, 3, 8])
def test_parts_cover_the_batch_once(size, count):
    seen = np.zeros(size, int)

    def work(begin, end):
        assert begin % 8 == 0
        seen[begin:end] += 1

    in_parallel(work, size, 8, count, most=10**6)
    assert (seen == 1).all()


def test_no_more_threads_than_asked_or_worth_it():
    for wanted, most, parts in ((3, 10**6, 3), (8, 2, 2), (1, 10**6, 1), (0, 9, 1), (-1, 9, 1)):
        begun = []
        in_parallel(lambda a, b, begun=begun: begun.append(a), 800, 8, wanted, most)
        assert len(begun) == parts


def test_all_cores_unless_told(monkeypatch):
    monkeypatch.setattr(threads, "_cores", lambda: 5)
    begun = []
    in_parallel(lambda a, b: begun.append(a), 800, 8, None, most=100)
    assert len(begun) == 5


def test_an_error_in_any_part_comes_through():
    def work(begin, end):
        if begin:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        in_parallel(work, 100, 8, 2, most=9)


def test_the_number_of_threads_does_not_show():
    A, x = RNG.normal(size=(8, 8)), RNG.normal(size=(10_001, 8))
    one, *others = (Kernel(HEAVY.program, backend=Cpu(threads=n))(A, x) for n in (1, 2, None, 5))
    assert all(np.array_equal(one, other) for other in others)
    np.testing.assert_allclose(one, np.sin(x @ A.T), rtol=0, atol=100 * EPS)


def test_a_million_samples():
    norm = hinge.compile(lambda x: np.sqrt(x @ x), x=(3,))
    x = RNG.normal(size=(1_000_003, 3))
    np.testing.assert_allclose(norm(x), np.linalg.norm(x, axis=1), rtol=4 * EPS)
    assert norm(x[:0]).shape == (0,)


def test_calls_from_many_threads_at_once():
    kernel = Kernel(HEAVY.program, "shared")
    states = [(RNG.normal(size=(8, 8)), RNG.normal(size=(n, 8))) for n in (1, 9, 5000, 300, 20_000)]
    gate = threading.Barrier(6)

    def user(i):
        gate.wait()
        good = True
        for A, x in states[i % 5 :] + states:
            good &= np.allclose(kernel(A, x), np.sin(x @ A.T), rtol=0, atol=100 * EPS)
            good &= np.allclose(kernel(A, x[0]), np.sin(A @ x[0]), rtol=0, atol=100 * EPS)
        return good

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(user, range(6)))


@short_way
def test_the_lock_of_the_interpreter_is_let_go():
    """While machine code runs in one thread, Python runs in another."""
    kernel = Kernel(HEAVY.program, backend=Cpu(threads=1))
    A, x = RNG.normal(size=(8, 8)), RNG.normal(size=(200_000, 8))
    out, done, turns = kernel(A, x), threading.Event(), []

    def count():
        while not done.wait(1e-4):
            turns.append(None)

    before = sys.getswitchinterval()
    sys.setswitchinterval(60)
    try:
        threading.Thread(target=count).start()
        counts = [0]
        while max(counts) < 5 and len(counts) < 100:
            start = len(turns)
            kernel(A, x, out=out)
            counts.append(len(turns) - start)
    finally:
        sys.setswitchinterval(before)
        done.set()
    assert max(counts) >= 5


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_has_threads_of_its_own():
    kernel = Kernel(HEAVY.program, backend=Cpu(threads=2))
    A, x = RNG.normal(size=(8, 8)), RNG.normal(size=(20_000, 8))
    expected = kernel(A, x)
    child = os.fork()
    if child == 0:
        watch = threading.Timer(20, lambda: os._exit(2))
        watch.start()
        os._exit(0 if np.array_equal(kernel(A, x), expected) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_nobody_leaves_before_all_parts_are_done():
    """An interrupt, or an error, in the caller's part: the others may write into his arrays."""
    for error in (KeyboardInterrupt, ZeroDivisionError):
        done = []

        def work(begin, end, error=error, done=done):
            if begin == 0:
                raise error
            time.sleep(0.1)
            done.append(begin)

        with pytest.raises(error):
            in_parallel(work, 64, 8, 8, most=8)
        assert len(done) == 7


COMPILES = """
import warnings
warnings.simplefilter("ignore")  # of forks beside threads
import os, signal, threading, time
import numpy as np
import hinge

stop = threading.Event()

def compiling():
    k = 0
    while not stop.is_set():
        k += 1
        hinge.compile(lambda x: np.sin(k * x) @ np.cos(x), x=(40,))(np.ones(40))
        hinge.zoo.pendulum(1).mass_matrix(np.zeros((100_000, 1)))

thread = threading.Thread(target=compiling)
thread.start()
time.sleep(0.3)
for i in range(5):
    time.sleep(0.03 * i)
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        got = hinge.compile(lambda x: (2.5 + i) * x, x=(4,))(np.ones((200_000, 4)))
        os._exit(int((got != 2.5 + i).any()))
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
stop.set()
thread.join()
"""


def test_two_threads_compile_at_once():
    """Each waits, while it traces, for the other to trace."""
    both = threading.Barrier(2, timeout=60)

    def made(scale):
        def make():
            both.wait()
            return trace(lambda x: scale * x, [(3,)])

        return Kernel(make, f"times {scale}", ("x",))

    kernels = made(2.0), made(3.0)
    with ThreadPoolExecutor(2) as pool:
        got = list(pool.map(lambda kernel: kernel(np.ones(3)), kernels))
    np.testing.assert_array_equal(got, [[2.0] * 3, [3.0] * 3])


LAST = """
import atexit
import numpy as np
from hinge import zoo

def at_the_end():
    robot = zoo.arm(7)
    found = robot.forward_dynamics_derivatives(robot.neutral(), *np.zeros((2, robot.nv)))
    print(found.dq.shape == (robot.nv, robot.nv))

atexit.register(at_the_end)
"""


def test_compiling_when_the_interpreter_ends(tmp_path):
    """No more threads are started then."""
    assert run_python(LAST, XDG_CACHE_HOME=str(tmp_path)).strip() == "True"


INTERRUPTED = """
import signal, sys
import numpy as np
from hinge import zoo
from hinge.runtime import engine

# where tests run in the background, it may be ignored
signal.signal(signal.SIGINT, signal.default_int_handler)
robot = zoo.arm(7)
x = robot.neutral(), *np.zeros((2, robot.nv))
# everything is imported: an interrupt in the middle of that is Python's affair
robot.inverse_dynamics(*x)
robot.inverse_dynamics_derivatives(*x)
work, times = engine._object_code, []

def interrupted(*given):
    times.append(1)
    if len(times) == 2:
        signal.raise_signal(signal.SIGINT)
    return work(*given)

engine._object_code = interrupted
try:
    robot.forward_dynamics_derivatives(*x)
except KeyboardInterrupt:
    print(robot.forward_dynamics_derivatives(*x).dq.shape == (robot.nv, robot.nv))
"""


def test_an_interrupt_while_pieces_are_compiled(tmp_path):
    assert run_python(INTERRUPTED, XDG_CACHE_HOME=str(tmp_path)).strip() == "True"


def test_a_piece_that_cannot_be_compiled():
    """What LLVM says of it comes through, and nobody waits for the others."""
    with pytest.raises(RuntimeError, match="expected top-level entity"):
        engine.compile_texts(["", "", "nonsense", *[""] * 20], host())


def test_threads_that_ask_for_the_same_compile_it_once():
    times = []

    def make():
        times.append(1)
        time.sleep(0.1)
        return trace(lambda x: x + 1, [(3,)])

    kernel = Kernel(make, "plus one", ("x",))
    with ThreadPoolExecutor(4) as pool:
        got = list(pool.map(lambda _: kernel(np.zeros(3)), range(4)))
    assert len(times) == 1
    np.testing.assert_array_equal(got, np.ones((4, 3)))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_waits_for_who_compiles(tmp_path):
    """And compiles itself: without a wait the locks of whoever was at it are never let go."""
    assert run_python(COMPILES, XDG_CACHE_HOME=str(tmp_path)).split() == ["0"] * 5


def test_linear_algebra_takes_one_thread_where_it_is_asked_to():
    from threadpoolctl import threadpool_info, threadpool_limits

    def blas_threads():
        return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}

    with threadpool_limits(limits=2, user_api="blas"):
        before = blas_threads()
        with threads.one_blas_thread():
            assert blas_threads() == {1}
        assert blas_threads() == before
