"""Simulations that reduce as they go: against the states of the same motion, and in what memory."""

import tracemalloc

import numpy as np
import pytest

import hinge
from hinge import ArgumentError, TraceError, simulate, zoo
from hinge.motion.integrators import METHODS
from mechanisms import EPS, assert_close, random_state

EDGES = np.linspace(-3, 3, 13)


def kept_of(robot):
    return {
        "energy": hinge.Mean(robot.alg.kinetic_energy),
        "fastest": hinge.Max(lambda qd: qd),
        "effort": hinge.Sum(lambda t, qd: t * (qd @ qd)),
        "end": hinge.Last(lambda t: t),
        "spread": hinge.Histogram(lambda q: q, EDGES),
    }


def by_hand(motion):
    """The same from all states, but for the start."""
    t, q, qd = motion.t[1:], motion.q[1:], motion.qd[1:]
    counts = np.apply_along_axis(lambda x: np.histogram(x, EDGES)[0], 0, q)
    weights = t.reshape(-1, *(1,) * (qd.ndim - 2))
    return {
        "energy": motion.kinetic_energy[1:].mean(axis=0),
        "fastest": qd.max(axis=0),
        "effort": (weights * (qd * qd).sum(axis=-1)).sum(axis=0),
        "end": np.broadcast_to(t[-1], q.shape[1:-1]),
        "spread": np.moveaxis(counts, 0, -1),
    }


def assert_kept(got, motion):
    assert got._fields == tuple(kept_of(motion.robot))
    for name, value in by_hand(motion).items():
        bound = 0.0 if name in ("fastest", "spread") else 100 * EPS
        assert_close(getattr(got, name), value, bound, what=name)


@pytest.mark.parametrize("duration", [0.05, 0.0503])
@pytest.mark.parametrize("method", [m for m in METHODS if m != "adaptive"])
def test_every_method_keeps_what_its_states_give(method, duration):
    robot = zoo.space_arm(2)
    s = random_state(robot, 0)
    law = lambda t, q, qd: -0.3 * qd + t  # noqa: E731
    given = dict(tau=law, duration=duration, method=method)
    qd = s.qd + np.linspace(-1, 1, 5)[:, None]
    whole = simulate(robot, s.q, qd, **given)
    reduced = simulate(robot, s.q, qd, keep=kept_of(robot), **given)
    assert reduced.t.tolist() == [0.0, whole.t[-1]] and whole.kept is None
    assert_close(reduced.q, whole.q[[0, -1]], 0.0)
    assert_kept(reduced.kept, whole)


@pytest.mark.parametrize("every", [1, 7, 20])
def test_states_may_be_kept_besides(every):
    robot = zoo.arm(3)
    given = dict(duration=0.0503, keep=kept_of(robot))
    whole = simulate(robot, np.ones((4, 3)), every=1, **given)
    some = simulate(robot, np.ones((4, 3)), every=every, **given)
    assert_close(some.q, whole.q[::every], 0.0)
    assert_kept(some.kept, whole)


def test_one_sample_forces_of_each_step_and_a_gravity_of_each_sample():
    robot = zoo.arm(3)
    taus = np.random.default_rng(0).normal(size=(40, 3))
    for more in (dict(), dict(gravity=[[0, 0, -9.81], [0, 0, -1.6]])):
        whole = simulate(robot, np.ones(3), taus=taus, **more)
        reduced = simulate(robot, np.ones(3), taus=taus, keep=kept_of(robot), **more)
        assert_kept(reduced.kept, whole)
        assert_close(reduced.tau[-1], whole.tau[-1], 0.0)


def test_on_rigid_and_on_soft_ground():
    robot = zoo.quadruped()
    feet = [f for f in robot.frame_names if "foot" in f]
    q = robot.neutral()
    q[2] += 0.5
    for law in ("rigid", "compliant"):
        ground = hinge.Ground(feet, law=law)
        given = dict(duration=0.02, ground=ground)
        keep = {"lowest": hinge.Min(lambda q: q[2]), "fall": hinge.Max(lambda qd: -qd[5])}
        whole = simulate(robot, np.stack([q, q]), **given)
        reduced = simulate(robot, np.stack([q, q]), keep=keep, **given)
        assert_close(reduced.kept.lowest, whole.q[1:, :, 2].min(axis=0), 0.0)
        assert_close(reduced.kept.fall, -whole.qd[1:, :, 5].min(axis=0), 0.0)
        assert_close(reduced.forces[-1], whole.forces[-1], 0.0)


def test_long_mechanisms_too():
    robot = zoo.snake(48)
    keep = {"swing": hinge.Max(lambda qd: qd), "mean": hinge.Mean(lambda q: q[-1])}
    given = dict(duration=0.01, method="semi_implicit_euler")
    q = robot.random_configuration(0, 3)
    whole = simulate(robot, q, **given)
    reduced = simulate(robot, q, keep=keep, **given)
    assert_close(reduced.kept.swing, whole.qd[1:].max(axis=0), 0.0)
    assert_close(reduced.kept.mean, whole.q[1:, :, -1].mean(axis=0), 20 * EPS)


def test_a_sample_that_is_not_finite_is_nan_in_all_that_is_kept():
    robot = zoo.arm(3)
    q = np.ones((3, 3))
    q[1, 2] = np.nan
    kept = simulate(robot, q, duration=0.01, keep=kept_of(robot)).kept
    fine = simulate(robot, q[[0, 2]], duration=0.01, keep=kept_of(robot)).kept
    for name in kept._fields:
        assert np.isnan(getattr(kept, name)[1]).all()
        assert np.array_equal(getattr(kept, name)[[0, 2]], getattr(fine, name))


def test_code_is_found_again_and_told_apart():
    robot = zoo.arm(2)
    made = [
        simulate(robot, np.ones(2), duration=0.01, keep={"peak": kind(lambda qd: qd)}).kept.peak
        for kind in (hinge.Max, hinge.Min, hinge.Max)
    ]
    assert np.array_equal(made[0], made[2]) and not np.array_equal(made[0], made[1])
    assert len(robot._recent) == 2


def test_memory_is_that_of_one_step():
    """Stored, these states would take a gigabyte."""
    robot = zoo.arm(2)
    q, steps = np.zeros((512, 2)), 60_000
    keep = {"peak": hinge.Max(lambda qd: qd)}
    given = dict(dt=1e-3, method="semi_implicit_euler", keep=keep)
    simulate(robot, q, duration=1e-3, **given)
    assert 4 * 8 * len(q) * steps > 0.9e9
    tracemalloc.start()
    simulate(robot, q, duration=steps * 1e-3, **given)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # of which the times of all steps are the most
    assert peak < 5 * 8 * steps + 100 * q.nbytes


def untraceable(t, q, qd):
    return -qd if t < 0.5 else qd


BAD = {
    "python": (dict(tau=untraceable), TraceError, "and keep needs that: tau cannot be traced"),
    "not compiled": (dict(compiled=False), TraceError, "and keep needs that: compiled is False"),
    "adaptive": (dict(method="adaptive"), ArgumentError, "keep goes with steps of dt"),
    "events": (dict(events=lambda t, q, qd: q[0]), ArgumentError, "events and method 'adaptive'"),
    "a name": (dict(keep={"q": hinge.Sum(lambda q: q)}), ArgumentError, "keep has the name 'q'"),
    "a result": (dict(keep={"far": hinge.Sum(0)}), ArgumentError, "of result 0 of the step, which"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_does_not_go_together(case):
    given, kind, message = BAD[case]
    keep = {"peak": hinge.Max(lambda qd: qd)}
    with pytest.raises(kind, match=f"simulate 'arm2'.*{message}"):
        simulate(zoo.arm(2), np.zeros(2), duration=0.01, **{"keep": keep, **given})


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_forces_of_each_step_are_read_where_they_are_mapped(dtype, tmp_path):
    robot = hinge.Robot(zoo.arm(3).mechanism, dtype=dtype)
    taus = np.random.default_rng(0).normal(size=(400, 100, 3)).astype(dtype)
    mapped = np.memmap(tmp_path / "taus", dtype, "w+", shape=taus.shape)
    mapped[:] = taus
    mapped.flush()
    mapped = np.memmap(tmp_path / "taus", dtype, "r", shape=taus.shape)
    given = dict(dt=1e-3, every=400, method="semi_implicit_euler")
    expected = simulate(robot, np.zeros(3), taus=taus, **given)
    tracemalloc.start()
    got = simulate(robot, np.zeros(3), taus=mapped, **given)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert np.array_equal(got.q, expected.q)
    assert peak < 0.5 * taus.nbytes
    bad = np.array(taus[:, 0], dtype)
    bad[399, 2] = np.inf
    with pytest.raises(ArgumentError, match=r"taus\[399, 2\] is inf; expected finite numbers"):
        simulate(robot, np.zeros(3), taus=bad, **given)
