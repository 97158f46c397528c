"""Rollouts as users call them: shapes, steps, chunks in time, threads, the cache, mistakes."""

from functools import partial

import numpy as np
import pytest

import hinge
from hinge import ArgumentError, TraceError, zoo
from hinge.functions.directional import pulled_loop, pushed_loop
from hinge.motion.steps import motion_kernel
from hinge.runtime import cpu, threads
from mechanisms import EPS, assert_close, random_state


def spring(x, v, u, k, dt):
    """A mass on a spring, pulled."""
    v = v + dt * (u - k * x)
    return x + dt * v, v


SHAPES = dict(x=(2,), v=(2,), u=(2,), k=(), dt=())


@pytest.fixture(scope="module")
def spring_kernel():
    return hinge.rollout(spring, ("x", "v"), ("u",), **SHAPES)


def by_hand(x, v, u, k, dt, steps):
    rows = []
    for i in range(steps):
        x, v = spring(x, v, u[i], np.asarray(k)[..., None], dt)
        rows.append((x, v))
    return [np.array(column) for column in zip(*rows, strict=True)]


def test_leading_shapes_broadcast(spring_kernel):
    rng = np.random.default_rng(0)
    x, v, u = rng.normal(size=2), rng.normal(size=(5, 1, 2)), rng.normal(size=(9, 4, 2))
    k = rng.uniform(1, 2, size=(5, 4))
    got = spring_kernel(x, v, u, k, 0.1)
    expected = by_hand(
        np.broadcast_to(x, (5, 4, 2)), np.broadcast_to(v, (5, 4, 2)), u[:, None], k, 0.1, 9
    )
    for a, b in zip(got, expected, strict=True):
        assert_close(a, b, 50 * EPS)
    # what is the same for all samples need not be repeated
    common = spring_kernel(x, v, u[:, 0], k, 0.1)
    assert_close(common[0][:, :, 0], got[0][:, :, 0], 0.0)


def test_arguments_may_be_anything_numeric_and_are_left_alone(spring_kernel):
    x, u = np.ones((3, 4))[:, ::2], np.zeros((2, 3, 2), dtype=np.float32)
    before = x.copy()
    a = spring_kernel(x, [0, 1], u, np.array([1, 2, 3]), 0.5)
    b = spring_kernel(x.copy(), np.array([0.0, 1.0]), u.astype(float), [1.0, 2.0, 3.0], 0.5)
    assert np.array_equal(x, before)
    assert all(np.array_equal(p, q) for p, q in zip(a, b, strict=True))


@pytest.mark.parametrize("size", [0, 1, 9, 50])
def test_chunks_and_threads_change_nothing(spring_kernel, size, monkeypatch):
    rng = np.random.default_rng(1)
    given = rng.normal(size=(size, 2)), 0.0 * np.ones(2), rng.normal(size=(40, size, 2)), 1.0, 0.1
    for every in (1, 7):
        whole = spring_kernel(*given, every=every)
        with monkeypatch.context() as m:
            m.setattr(cpu, "_WORK_PER_CALL", 11 * 8 * max(size, 1))
            m.setattr(cpu, "_WORK_PER_THREAD", 1)
            m.setattr(threads, "_cores", lambda: 3)
            parts = spring_kernel(*given, every=every)
        assert whole[0].shape == (40 // every, size, 2)
        assert all(np.array_equal(a, b) for a, b in zip(whole, parts, strict=True))


def test_long_runs_come_back_to_python(spring_kernel, monkeypatch):
    """So that an interrupt is heard, and progress is shown."""
    seen = []

    def progress(items, label):
        seen.append((len(items), label))
        yield next(iter(items))
        raise KeyboardInterrupt

    monkeypatch.setattr(cpu, "progress", progress)
    monkeypatch.setattr(cpu, "_WORK_PER_CALL", 1)
    with pytest.raises(KeyboardInterrupt):
        spring_kernel(np.zeros((100, 2)), [0.0, 0.0], np.zeros((20, 2)), 1.0, 0.1)
    assert seen == [(20, "rollout of spring")]


def test_a_step_fused_with_the_dynamics():
    robot = zoo.space_arm(2)

    @robot.rollout(inputs=("tau",), target=(robot.nv,))
    def run(q, qd, tau, target, dt):
        qdd = robot.alg.forward_dynamics(q, qd, tau - (qd - target))
        qd = qd + dt * qdd
        return robot.alg.integrate(q, dt * qd), qd, robot.alg.kinetic_energy(q, qd)

    s = random_state(robot, 0)
    target, tau, dt = 0.1 * np.arange(robot.nv), np.outer(np.linspace(0, 1, 12), s.qdd), 0.01
    qs, qds, energies = run(s.q, s.qd, tau, target, dt)
    q, qd = s.q, s.qd
    for i in range(12):
        qd_new = qd + dt * robot.forward_dynamics(q, qd, tau[i] - (qd - target))
        assert_close(energies[i], robot.kinetic_energy(q, qd_new), 100 * EPS)
        q, qd = robot.integrate(q, dt * qd_new), qd_new
        assert_close(qs[i], q, 200 * EPS)
        assert_close(qds[i], qd, 500 * EPS)
    assert run.ops.sincos > 0 and "define void @run" in run.source()


def test_one_result_comes_alone():
    grow = hinge.rollout(lambda x: 2 * x, "x", dtype=np.float32, x=())
    assert grow(1.0, steps=4).tolist() == [2, 4, 8, 16]
    assert grow(np.ones(3), steps=4, every=2).dtype == np.float32


def test_code_is_found_again(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    first = hinge.rollout(spring, ("x", "v"), ("u",), **SHAPES)
    given = np.ones((3, 2)), np.ones(2), np.ones((4, 2)), 2.0, 0.1
    expected = first(*given)

    def never(*arguments):
        raise AssertionError("compiled again")

    monkeypatch.setattr(cpu, "compile_texts", never)
    again = hinge.rollout(spring, ("x", "v"), ("u",), **SHAPES)
    assert np.array_equal(again(*given)[0], expected[0])
    with pytest.raises(AssertionError, match="compiled again"):
        again(np.ones(2), *given[1:])


def bad_step(x, v):
    return v


BAD_STEPS = {
    "inputs first": (spring, ("v", "x"), ("u",), SHAPES, "spring: it takes x, v, u, k, dt; expe"),
    "no state": (spring, (), ("x",), SHAPES, "got state none, inputs x"),
    "a shape": (spring, ("x", "v"), ("u",), {**SHAPES, "k": 3}, "the shape of k is 3"),
    "missing": (spring, ("x", "v"), (), dict(x=(2,)), "give the shape of each, got x"),
    "results": (
        bad_step,
        ("x", "v"),
        (),
        dict(x=(2,), v=(3,)),
        r"its results have shapes \(3,\); expected the new states first: x \(2,\), v \(3,\)",
    ),
}


@pytest.mark.parametrize("case", BAD_STEPS)
def test_steps_that_are_none(case):
    fn, state, inputs, shapes, message = BAD_STEPS[case]
    with pytest.raises(ArgumentError, match=message):
        hinge.rollout(fn, state, inputs, **shapes)


def test_one_name_needs_no_tuple():
    grow = hinge.rollout(lambda x, u: x + u, "x", "u", x=(), u=())
    assert grow(1.0, [1.0, 2.0, 3.0]).tolist() == [2.0, 4.0, 7.0]


ZERO, U = np.zeros(2), np.zeros((5, 2))
BAD_CALLS = {
    "count": ((ZERO,), {}, r"takes 5 arrays \(x, v, u, k, dt\), got 1"),
    "no time": (
        (ZERO, ZERO, ZERO, 1.0, 0.1),
        {},
        r"u has shape \(2,\); expected shape \(steps, …",
    ),
    "shape": ((np.zeros(3), ZERO, U, 1.0, 0.1), {}, r"x has shape \(3,\); expected shape \(…, 2\)"),
    "ragged": (([[1], [1, 2]], ZERO, U, 1.0, 0.1), {}, "x is ragged"),
    "complex": ((ZERO + 1j, ZERO, U, 1.0, 0.1), {}, "x has dtype complex128; expected real"),
    "leads": ((np.zeros((2, 2)), np.zeros((3, 2)), U, 1.0, 0.1), {}, r"x \(2,\), v \(3,\), u \(\)"),
    "steps": ((ZERO, ZERO, U, 1.0, 0.1), dict(steps=4), "how many steps\\? u 5, steps= 4"),
    "half a step": ((ZERO, ZERO, U, 1.0, 0.1), dict(steps=0.5), "steps is 0.5; expected a whole"),
    "every": ((ZERO, ZERO, U, 1.0, 0.1), dict(every=0), "every is 0; expected a whole number"),
}


@pytest.mark.parametrize("case", BAD_CALLS)
def test_calls_that_make_no_sense(spring_kernel, case):
    arrays, keywords, message = BAD_CALLS[case]
    with pytest.raises(ArgumentError, match=f"rollout of spring.*{message}"):
        spring_kernel(*arrays, **keywords)


def test_what_else_is_refused():
    grow = hinge.rollout(lambda x: 2 * x, ("x",), x=())
    with pytest.raises(ArgumentError, match="how many steps\\? nothing tells"):
        grow(1.0)
    with pytest.raises(ArgumentError, match="dtype is int64; kernels come in"):
        hinge.rollout(lambda x: 2 * x, ("x",), dtype=int, x=())


@pytest.mark.parametrize("differentiated", [partial(pushed_loop, moving=[0, 1]), pulled_loop])
def test_steps_made_of_loops_over_bodies_are_not_differentiated(differentiated):
    scan = motion_kernel(zoo.snake(41), "semi_implicit_euler", ["tau"], None, ()).scan
    more = {} if isinstance(differentiated, partial) else {"inputs_": [], "fixed": []}
    with pytest.raises(TraceError, match="loops over bodies"):
        differentiated(scan, **more)
