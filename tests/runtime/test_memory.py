"""Large results in memory that is used again, and never while somebody looks."""

import threading

import numpy as np
import pytest

import hinge
from hinge import zoo
from hinge.runtime import memory


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Every result counts as large."""
    monkeypatch.setattr(memory, "LARGE", 1 << 10)
    memory.release()
    yield
    memory.release()


def robot_and_batch(n=64):
    robot = hinge.Robot(zoo.arm(5).mechanism)
    rng = np.random.default_rng(0)
    q = rng.normal(size=(n, 5))
    for _ in range(2):
        robot.mass_matrix(q)
    memory.release()
    return robot, q


def address(x):
    return x.__array_interface__["data"][0]


def test_memory_that_comes_back_is_used_again():
    robot, q = robot_and_batch()
    places = {address(robot.mass_matrix(q)) for _ in range(5)}
    assert len(places) == 1 and next(iter(places)) % 64 == 0


@pytest.mark.parametrize(
    "keep",
    [
        lambda x: x,
        lambda x: x[3:5],
        lambda x: x[0].T,
        lambda x: x.reshape(-1)[7:].view(np.uint8),
        lambda x: memoryview(x),
        lambda x: [x[1]],
        lambda x: np.asarray(memoryview(x))[::2],
    ],
    ids=["result", "view", "transpose", "bytes", "memoryview", "list", "view of memoryview"],
)
def test_who_keeps_a_result_never_sees_it_change(keep):
    robot, q = robot_and_batch()
    kept = keep(robot.mass_matrix(q))
    before = np.array(kept, copy=True)
    for i in range(5):
        robot.mass_matrix(q + i + 1)
        robot.inverse_dynamics_derivatives(q, q, q + i)
    assert np.array_equal(np.array(kept), before)


def test_several_results_are_apart():
    robot, q = robot_and_batch()
    d = robot.inverse_dynamics_derivatives(q, q, q)
    held, copy = d.dqd, d.dqd.copy()
    del d
    other = robot.inverse_dynamics_derivatives(q, 2 * q, q)
    assert np.array_equal(held, copy)
    assert not any(np.may_share_memory(held, x) for x in other)


def test_threads_never_get_the_same_block():
    robot, q = robot_and_batch(256)
    expected, wrong = robot.mass_matrix(q), []

    def work(k):
        for _ in range(30):
            got = robot.mass_matrix(q + k)
            again = robot.mass_matrix(q + k)
            if not np.array_equal(got, again) or np.may_share_memory(got, again):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and np.array_equal(robot.mass_matrix(q), expected)


def test_little_is_remembered(monkeypatch):
    monkeypatch.setattr(memory, "LIMIT", 300_000)
    robot, q = robot_and_batch()
    for n in range(64, 1000, 50):
        robot.mass_matrix(np.zeros((n, 5)))
    assert sum(block.nbytes for block in memory._BLOCKS) <= 300_000
    # the newest, which nobody else has, is let go too
    assert memory.release() > 0 and memory.release() == 0


def test_a_result_of_another_size_gets_other_memory():
    robot, q = robot_and_batch()
    small = address(robot.mass_matrix(q))
    large = robot.mass_matrix(np.zeros((640, 5)))
    assert address(large) != small and large.flags.writeable
    assert address(robot.mass_matrix(q)) == small
