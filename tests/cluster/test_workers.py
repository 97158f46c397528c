"""A real scheduler and worker processes: what they give is what one process gives, to the bit."""

import os
import pickle
import signal
import sys
from math import fsum
from types import ModuleType

import numpy as np
import pytest

import hinge
from cluster.on_worker import (
    become_another_cpu,
    become_itself,
    compilations,
    count_compilations,
    die_once,
    get_a_card,
    last,
    launches,
    lose_the_card,
)
from hinge import cluster, zoo
from hinge.cluster.parcel import Parcel

dask = pytest.importorskip("dask", reason=".ci/frameworks has Dask")
da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

RNG = np.random.default_rng(5)
B = 1003


def states(robot, count=B):
    return robot.random_configuration(RNG, count), *RNG.normal(size=(2, count, robot.nv))


def blocks(arrays, size):
    return [da.from_array(x, chunks=(size, -1)) for x in arrays]


def workers(client):
    """Their addresses, both of them, also after one was killed."""
    client.wait_for_workers(2)
    return sorted(client.scheduler_info()["workers"])


def comb():
    """Thirty degrees of freedom, but little to compile."""
    build = hinge.MechanismBuilder("comb")
    inertia = hinge.Inertia(1.0, (0.1, 0.0, -0.2), np.eye(3) * 0.1)
    for i in range(15):
        at = hinge.Transform(translation=(0.1 * i, 0.0, 0.0))
        build.add(
            f"arm {i}", "world", hinge.Revolute(axis=(0, 1, 0)), placement=at, inertia=inertia
        )
        at = hinge.Transform(translation=(0.2, 0.0, -0.1))
        axis = hinge.Revolute(axis=(1, 0, 0))
        build.add(f"hand {i}", f"arm {i}", axis, placement=at, inertia=inertia)
    return hinge.Robot(build.build())


@pytest.fixture
def cartpole():
    """A pole that a spring holds up, with its time loop and the largest angle so far."""
    robot = zoo.cartpole()

    @robot.rollout(state=("q", "qd", "worst"), gain=(), mass=())
    def swing(q, qd, worst, gain, mass):
        push = np.array([gain * (q[1] + 0.3 * qd[1]), 0.0])
        qd = qd + 0.01 * robot.alg.forward_dynamics(q, qd, push / mass)
        q = q + 0.01 * qd
        return q, qd, hinge.maximum(worst, abs(q[1]))

    return swing


POINTS = cluster.samples(500, seed=3, gain=(5.0, 50.0), mass=(0.5, 2.0), q=([-0.1] * 2, [0.1] * 2))


START = {"qd": np.zeros(2), "worst": 0.0, "steps": 50, "every": 50}


def test_methods_are_compiled_here_once_and_shipped(client):
    """Those that are one kernel, those of several, of columns, second derivatives."""
    there = workers(client)
    client.run(count_compilations)
    arm, snake, many = zoo.arm(2), zoo.snake(50), comb()
    asked = [
        (arm.inverse_dynamics, states(arm), {}),
        (arm.forward_dynamics_derivatives, states(arm), {"order": 2}),
        (arm.jacobian, states(arm)[:1], {"frame": arm.frame_names[-1]}),
        (snake.mass_matrix, states(snake, 21)[:1], {}),
        # a block of one sample would be put together from parts, and rounded otherwise
        (many.forward_dynamics_derivatives, states(many, 21), {}),
    ]
    for method, arrays, settings in asked:
        whole = method(*arrays, **settings)
        for size in (10, len(arrays[0]) - 1):
            found = cluster.map(method, *blocks(arrays, size), **settings)
            assert type(found) is type(whole) or not isinstance(whole, tuple)
            # on each of them
            (found,) = dask.compute(found, workers=there[size == 10])
            np.testing.assert_equal(found, whole)
    assert client.run(compilations) == dict.fromkeys(there, 0)


def test_kernels_and_rollouts_are_shipped(client, cartpole):
    there = workers(client)
    client.run(count_compilations)
    kernel = hinge.compile(lambda x, y: (x * np.sin(y), x @ x), x=(3,), y=())
    x, y = RNG.normal(size=(B, 3)), RNG.normal(size=(4, 1))
    found = dask.compute(*cluster.map(kernel, da.from_array(x, chunks=(100, 3)), y=y))
    np.testing.assert_equal(found, kernel(x, y))
    given = POINTS.block(0, B // 3)
    given = [given["q"], np.zeros(2), 0.0, given["gain"], given["mass"]]
    cut = [
        da.from_array(x, chunks=(50,) + (-1,) * (x.ndim - 1)) for x in map(np.asarray, given[3:])
    ]
    found = dask.compute(*cluster.map(cartpole, *given[:3], *cut, steps=20, every=5))
    np.testing.assert_equal(found, cartpole(*given, steps=20, every=5))
    assert client.run(compilations) == dict.fromkeys(there, 0)


def test_a_study_is_the_same_on_workers(client, cartpole):
    reduce = {"mean": cluster.mean(last), "at": cluster.highest(last)}
    reduce["all"] = cluster.collected(last)
    task = cluster.study(cartpole, POINTS, reduce, size=60, **START)
    here = cluster.study(cartpole, POINTS, reduce, size=500, **START).compute(scheduler="sync")
    found = client.compute(task).result()
    np.testing.assert_equal(dict(found), dict(here))
    assert found.count == len(POINTS) and found.troubles == []
    given = POINTS.block(0, 500)
    whole = cartpole(given["q"], np.zeros(2), 0.0, given["gain"], given["mass"], steps=50, every=50)
    np.testing.assert_array_equal(found["all"], whole[2][-1])


def test_a_function_carries_its_kernels_with_their_code(client, cartpole):
    client.run(count_compilations)

    def measured(q, gain, mass):
        return cartpole(q, np.zeros(2), 0.0, gain, mass, steps=50)[2][-1]

    found = cluster.study(measured, POINTS, {"mean": cluster.mean()}, size=100).compute()
    assert found["mean"] == fsum(measured(**POINTS.block(0, 500))) / 500
    assert set(client.run(compilations).values()) == {0}


def test_a_worker_of_another_cpu_compiles_for_itself(client, cartpole):
    same, other = workers(client)
    robot = zoo.arm(4)
    given = states(robot)
    whole = robot.forward_dynamics(*given)
    client.run(count_compilations)
    client.run(become_another_cpu, workers=[other])
    try:
        for size, there in ((100, other), (101, same)):
            found = cluster.map(robot.forward_dynamics, *blocks(given, size))
            found = client.compute(found, workers=[there], allow_other_workers=False).result()
            np.testing.assert_allclose(found, whole, rtol=1e-10, atol=1e-10)
            assert np.array_equal(found, whole) == (there == same)
        assert client.run(compilations) == {same: 0, other: 1}
        # what was traced from a function goes with its program
        point = POINTS.block(0, 100)
        given = [point["q"], np.zeros(2), 0.0, point["gain"], point["mass"]]
        cut = [*given[:3], *(da.from_array(x, chunks=50) for x in given[3:])]
        found = cluster.map(cartpole, *cut, steps=10)[0]
        found = client.compute(found, workers=[other], allow_other_workers=False).result()
        np.testing.assert_allclose(found, cartpole(*given, steps=10)[0], rtol=1e-12, atol=1e-12)
        assert client.run(compilations) == {same: 0, other: 2}
    finally:
        client.run(become_itself, workers=[other])


def test_a_worker_with_a_card_uses_it(client):
    with_card, without = workers(client)
    robot = zoo.arm(2)
    given = states(robot, 60)
    client.run(get_a_card, workers=[with_card])
    try:
        found = cluster.map(robot.inverse_dynamics, *blocks(given, 20), device="auto")
        for there in (with_card, without):
            x = client.compute(found + 0.0, workers=[there], allow_other_workers=False).result()
            np.testing.assert_allclose(x, robot.inverse_dynamics(*given), rtol=1e-12, atol=1e-12)
        used = client.run(launches)
        assert used[with_card] >= 3 and used[without] == 0
        # where a card is asked for, the others say that they have none
        found = cluster.map(robot.inverse_dynamics, *blocks(given, 20), device="cuda")
        wrong = client.compute(found, workers=[without], allow_other_workers=False)
        with pytest.raises(hinge.HingeError, match=r"block \d.*DeviceError"):
            wrong.result()
    finally:
        client.run(lose_the_card, workers=[with_card])


def test_a_poisoned_block_is_named_and_the_rest_delivered(client):
    robot = zoo.arm(4)
    given = states(robot)
    given[0][777, 2] = np.nan
    arrays = blocks(given, 100)

    def broken(x, block_info):
        return x[:, :3] if block_info[0]["chunk-location"][0] == 2 else x

    arrays[1] = arrays[1].map_blocks(broken, dtype=float, meta=np.empty((0, 0)))
    found, report = cluster.map(robot.forward_dynamics, *arrays, report=True)
    found, report = dask.compute(found, report)
    whole = robot.forward_dynamics(*given)
    whole[200:300] = np.nan
    np.testing.assert_array_equal(found, whole)
    failed, spoiled = [trouble for trouble in report if trouble is not None]
    assert report.shape == (11,) and np.isnan(whole[777]).all()
    assert failed.block == (2,) and failed.samples[:, 0].tolist() == list(range(200, 300))
    assert str(failed).startswith("block 2, 100 samples from 200 on: ArgumentError: forward_dyn")
    assert "qd has shape (100, 3)" in failed.why
    assert str(spoiled) == "block 7, sample 777: q not finite"
    # without a report it raises, and says the same
    with pytest.raises(hinge.HingeError, match="block 2, 100 samples from 200 on: ArgumentErr"):
        cluster.map(robot.forward_dynamics, *arrays).compute()


def test_what_workers_cannot_import_is_said(client):
    """Nobody waits for workers that end and start for ever."""
    only_here = ModuleType("only_here")
    exec("def measured(gain):\n    return gain\n", only_here.__dict__)
    sys.modules["only_here"] = only_here
    try:
        task = cluster.study(
            only_here.measured, cluster.grid(gain=[1.0, 2.0]), {"m": cluster.mean()}
        )
        found = client.compute(task)
        with pytest.raises(hinge.HingeError, match="could not unpickle.*'only_here'.*upload_file"):
            found.result(timeout=60)
        closed = pickle.dumps(Parcel("a study", only_here.measured))
        assert pickle.loads(closed).open() is only_here.measured
    finally:
        del sys.modules["only_here"]
    with pytest.raises(hinge.HingeError, match="a study: a worker could not unpickle it"):
        pickle.loads(closed).open()


def test_tasks_have_the_names_of_what_they_do(client, cartpole):
    from distributed.utils import key_split

    given = blocks(states(zoo.arm(2), 40), 10)
    found = cluster.map(zoo.arm(2).inverse_dynamics, *given, report=True)
    names = {key_split(key) for x in found for key in x.dask}
    assert {"inverse_dynamics_of_arm2", "inverse_dynamics_of_arm2_compiled"} <= names
    task = cluster.study(cartpole, POINTS, {"worst": cluster.most(last)}, size=10, **START)
    names = {key_split(key) for key in task.dask}
    assert {"rollout_of_swing", "rollout_of_swing_reduced"} <= names


def test_a_worker_killed_in_the_middle_loses_nothing(client, cartpole, tmp_path):
    workers(client)
    flag = str(tmp_path / "killed")

    def measured(q, gain, mass):
        if (gain == POINTS.block(250, 251)["gain"]).any():
            die_once(flag)
        return cartpole(q, np.zeros(2), 0.0, gain, mass, steps=50)[2][-1]

    # tried here with the first points, killed there by others
    task = cluster.study(measured, POINTS, {"all": cluster.collected()}, size=20)
    found = client.compute(task).result()
    assert os.path.exists(flag) and found.troubles == []
    given = POINTS.block(0, 500)
    whole = cartpole(given["q"], np.zeros(2), 0.0, given["gain"], given["mass"], steps=50)
    np.testing.assert_array_equal(found["all"], whole[2][-1])


def test_blocks_that_were_on_a_killed_worker_are_made_again(client):
    robot = zoo.arm(4)
    given = states(robot)
    done = client.persist(cluster.map(robot.forward_dynamics, *blocks(given, 50)))
    distributed.wait(done)
    pids, held = client.run(os.getpid), client.has_what()
    victim = max(pids, key=lambda worker: len(held[worker]))
    assert held[victim]
    os.kill(pids[victim], signal.SIGKILL)
    np.testing.assert_array_equal(done.compute(), robot.forward_dynamics(*given))
