"""Blocks in this process: the same bits whatever the chunks, and what is refused."""

import numpy as np
import pytest

import hinge
from hinge import cluster, zoo
from mechanisms import everything

dask = pytest.importorskip("dask", reason=".ci/frameworks has Dask")
da = pytest.importorskip("dask.array")

RNG = np.random.default_rng(8)
ARM = zoo.arm(3)


@pytest.fixture(autouse=True)
def here():
    with dask.config.set(scheduler="synchronous"):
        yield


def states(robot, *lead):
    return robot.random_configuration(RNG, lead), *RNG.normal(size=(2, *lead, robot.nv))


@pytest.mark.parametrize("chunks", [1, 2, 3, 8, 46, 47])
def test_any_chunks_give_the_same_bits(chunks):
    """Of every kind of joint, with forces on bodies; of tails and of single samples too."""
    robot = everything()
    q, qd, tau = states(robot, 47)
    f_ext = RNG.normal(size=(47, robot.n_bodies, 6))
    whole = robot.forward_dynamics(q, qd, tau, f_ext=f_ext)
    cut = [da.from_array(x, chunks=(chunks, *x.shape[1:])) for x in (q, qd, tau, f_ext)]
    # as methods that were not called yet, and as doors
    for _ in range(2):
        found = cluster.map(robot.forward_dynamics, *cut[:3], f_ext=cut[3])
        assert found.shape == whole.shape and found.dtype == whole.dtype
        np.testing.assert_array_equal(found.compute(), whole)
        robot.forward_dynamics(q, qd, tau, f_ext=f_ext)


@pytest.mark.parametrize("chunks", [1, 2, 5])
def test_rollouts_have_time_before_samples(chunks):
    robot = zoo.quadruped()

    @robot.rollout(inputs=("tau",), dt=())
    def step(q, qd, tau, dt):
        qd = qd + dt * robot.alg.forward_dynamics(q, qd, tau)
        return robot.alg.integrate(q, dt * qd), qd

    q, qd, _ = states(robot, 2, 5)
    taus = RNG.normal(size=(6, 5, robot.nv))
    whole = step(q, qd, taus, 1e-3, every=2)
    cut = [da.from_array(x, chunks=(1, chunks, -1)) for x in (q, qd)]
    given = [*cut, da.from_array(taus, chunks=(-1, chunks, -1)), 1e-3]
    found = cluster.map(step, *given, every=2)
    assert [x.shape for x in found] == [x.shape for x in whole]
    np.testing.assert_equal(dask.compute(*found), whole)
    by_name = cluster.map(step, *given[:2], dt=1e-3, tau=given[2], every=2)
    assert [x.name for x in by_name] == [x.name for x in found]


def test_leading_shapes_broadcast_as_on_one_machine():
    q, qd = RNG.normal(size=(4, 1, 3)), RNG.normal(size=(7, 3))
    found = cluster.map(
        ARM.inverse_dynamics, da.from_array(q, chunks=(3, 1, 3)), da.from_array(qd, (2, 3)), 1 + qd
    )
    np.testing.assert_array_equal(found.compute(), ARM.inverse_dynamics(q, qd, 1 + qd))


def test_one_sample_is_as_on_one_machine():
    q, qd, tau = states(zoo.quadruped())
    whole = zoo.quadruped().forward_dynamics(q, qd, tau)
    found = cluster.map(zoo.quadruped().forward_dynamics, da.from_array(q), qd, tau)
    assert found.shape == whole.shape
    np.testing.assert_array_equal(found.compute(), whole)


def test_a_split_per_sample_is_cut_with_the_samples():
    q, qd, tau = states(ARM, 9)
    active = RNG.integers(0, 2, (9, 3)).astype(bool)
    cut = [da.from_array(x, chunks=(4, 3)) for x in (q, qd)]
    whole = ARM.hybrid_dynamics(q, qd, tau, tau, active)
    found = dask.compute(*cluster.map(ARM.hybrid_dynamics, *cut, tau, tau, active))
    np.testing.assert_equal(found, tuple(whole))


def test_an_empty_batch_and_empty_blocks():
    q = da.from_array(RNG.normal(size=(5, 3)), chunks=((2, 0, 3), 3))
    whole = ARM.mass_matrix(q.compute())
    np.testing.assert_array_equal(cluster.map(ARM.mass_matrix, q).compute(), whole)
    none = cluster.map(ARM.mass_matrix, da.zeros((0, 3)))
    assert none.compute().shape == (0, 3, 3)


def test_numbers_of_the_mechanism_are_arrays_too():
    robot = hinge.Robot(ARM.mechanism, parameters=("gravity",), dtype="float32")
    q, gravity = da.from_array(states(ARM, 9)[0], chunks=(4, 3)), RNG.normal(size=(9, 3))
    cut = da.from_array(gravity, chunks=(3, 3))
    found = cluster.map(robot.gravity_forces, q, gravity=cut)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(
        found.compute(), robot.gravity_forces(q.compute(), gravity=gravity)
    )


def test_several_troubles_of_a_block_are_told_apart():
    robot = hinge.compile(lambda x, y: np.sqrt(x) / y, x=(), y=())
    x, y = np.ones(8), np.ones((2, 1))
    x[[2, 5]], x[6], y[1] = np.nan, -1.0, np.inf
    cut = da.from_array(x, chunks=4)
    found, report = cluster.map(robot, cut, da.from_array(y, chunks=1), report=True)
    assert report.shape == (2, 2)
    told = [str(t) for t in report.compute().ravel()]
    assert told[0] == "block (0, 0), sample 0, 2: x not finite"
    assert told[1].startswith("block (0, 1), 2 samples from 0, 5 on: x not finite; the result of 1")
    assert np.isnan(found.compute()).sum() == 6


WRONG = [
    ({"q": da.zeros((6, 3), chunks=(2, 2))}, r"q has chunks .* q.rechunk\(\{1: -1\}\)"),
    ({"q": da.zeros((6, 4), chunks=2)}, r"q has shape \(6, 4\); expected shape \(…, 3\)"),
    ({"q": da.zeros((6, 3), dtype=complex)}, "q has dtype complex128; expected real numbers"),
    ({"qd": da.zeros((5, 3))}, r"leading shapes do not broadcast: q \(6,\), qd \(5,\)"),
    ({"qdd": da.ma.masked_equal(da.zeros((6, 3)), 0.0)}, "blocks of qdd are MaskedArray"),
    ({"q": da.zeros((6, 3))[da.ones(6) > 0]}, r"compute_chunk_sizes\(\) first"),
    (dict.fromkeys(("q", "qd", "qdd"), np.zeros((6, 3))), "none of q, qd, qdd is an array of Dask"),
    ({"out": np.zeros((6, 3))}, "leave out away"),
    ({"device": "tpu"}, "device is 'tpu'"),
    ({"threads": 0}, "threads is 0"),
]


@pytest.mark.parametrize(("wrong", "said"), WRONG)
def test_what_is_wrong_is_said_before_anything_runs(wrong, said):
    given = dict.fromkeys(("q", "qd", "qdd"), da.zeros((6, 3), chunks=(2, 3)))
    with pytest.raises(hinge.ArgumentError, match=said):
        cluster.map(ARM.inverse_dynamics, **{**given, **wrong})


def test_only_what_is_compiled_is_mapped():
    for what in (len, ARM.random_configuration, hinge.algorithms.inverse_dynamics):
        with pytest.raises(hinge.ArgumentError, match="takes a compiled method of a robot"):
            cluster.map(what, da.zeros((6, 3)))
    fall = hinge.rollout(lambda z, h: z - h, ("z",), z=(), h=())
    with pytest.raises(hinge.ArgumentError, match="k is not an argument, or given twice"):
        cluster.map(fall, da.zeros(6), 0.1, k=1, steps=3)


def test_a_block_that_fails_says_which_it_is():
    lies = da.zeros((6, 3), chunks=(2, 3)).map_blocks(lambda x: x[:, :2], meta=np.empty((0, 0)))
    found = cluster.map(ARM.mass_matrix, lies)
    with pytest.raises(hinge.HingeError, match=r"block \d, 2 samples from \d on: ArgumentErr"):
        found.compute()
    assert np.isnan(cluster.map(ARM.mass_matrix, lies, report=True)[0].compute()).all()


def test_a_robot_on_a_card_is_mapped_to_cards(monkeypatch):
    from fake_card import fake_card

    q, qd, tau = states(ARM, 12)
    cut = [da.from_array(x, chunks=(5, 3)) for x in (q, qd, tau)]
    double = hinge.compile(lambda q: q + q, q=(3,))
    step = hinge.rollout(lambda q: 2 * q, ("q",), q=(3,))
    with fake_card(monkeypatch) as library:
        found = cluster.map(ARM.to("cuda").inverse_dynamics, *cut).compute()
        np.testing.assert_allclose(found, ARM.inverse_dynamics(q, qd, tau), atol=1e-12)
        before = len(library.launches)
        assert before >= 3
        for kernel, more in ((double, {}), (step, {"steps": 1})):
            found = cluster.map(kernel, cut[0], device="auto", **more).compute()
            np.testing.assert_array_equal(found.reshape(12, 3), 2 * q)
            assert len(library.launches) > before
            before = len(library.launches)
        on_card = hinge.compile(lambda q: q + q, q=(3,), device="cuda")
        np.testing.assert_array_equal(cluster.map(on_card, cut[0]).compute(), 2 * q)
        assert len(library.launches) > before
