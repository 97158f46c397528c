"""Rollouts that keep reductions: against the states that they do not store, and what they need."""

import pickle
import tracemalloc

import numpy as np
import pytest

import hinge
from hinge import ArgumentError, zoo
from hinge.graph.interpret import interpret
from hinge.runtime import cpu, threads
from mechanisms import EPS, assert_close, random_state

EDGES = np.linspace(-1.5, 1.5, 8)


def spring(x, v, u, k, dt):
    """A mass on a spring, pulled; its energy."""
    v = v + dt * (u - k * x)
    x = x + dt * v
    return x, v, 0.5 * (v @ v + k * (x @ x))


SHAPES = dict(x=(2,), v=(2,), u=(2,), k=(), dt=())
KEEP = {
    "energy": hinge.Sum(2),
    "work": hinge.Sum(lambda u, v, dt: dt * (u @ v)),
    "middle": hinge.Mean(lambda x: x),
    "furthest": hinge.Max(lambda x: x),
    "slowest": hinge.Min(lambda v: np.sqrt(v @ v)),
    "end": hinge.Last(lambda x, k: k * x),
    "where": hinge.Histogram(lambda x: x, EDGES),
}


def rollouts(dtype=float):
    given = spring, ("x", "v"), ("u",), dtype
    return hinge.rollout(*given, **SHAPES), hinge.rollout(*given, keep=KEEP, **SHAPES)


def arguments(lead, steps=60, seed=0):
    rng = np.random.default_rng(seed)
    x, v, u = (rng.normal(size=shape) for shape in ((*lead, 2), (2,), (steps, *lead, 2)))
    return x, v, u, rng.uniform(1, 2, size=lead), 0.1


def by_hand(plain, given):
    """The same from all states."""
    x, v, energy = plain(*given)
    u, k, dt = (np.asarray(a, float) for a in given[2:])
    counts = np.apply_along_axis(lambda column: np.histogram(column, EDGES)[0], 0, x)
    return {
        "x": x[-1],
        "v": v[-1],
        "energy": energy.sum(axis=0),
        "work": (dt * (u * v).sum(axis=-1)).sum(axis=0),
        "middle": x.mean(axis=0),
        "furthest": x.max(axis=0),
        "slowest": np.sqrt((v * v).sum(axis=-1)).min(axis=0),
        "end": k[..., None] * x[-1],
        "where": np.moveaxis(counts, 0, -1),
    }


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("lead", [(), (1,), (37,), (3, 5)])
def test_what_is_kept_is_what_all_states_give(lead, dtype):
    plain, reducing = rollouts(dtype)
    given = arguments(lead)
    got, expected = reducing(*given), by_hand(plain, given)
    assert got._fields == tuple(expected)
    eps = np.finfo(dtype).eps
    for name, value in expected.items():
        bound = 0.0 if name in ("x", "v", "furthest", "where") else 200 * eps
        assert_close(getattr(got, name), value, bound, what=name)
        assert getattr(got, name).dtype == dtype


def test_interpreted_it_is_the_same():
    _, reducing = rollouts()
    lead = (4,)
    given = arguments(lead)
    scan, loop = reducing.rollout.scan, reducing.rollout
    whole = [np.broadcast_to(x, lead + x.shape) for x in reducing.starts]
    x, v, u, k, dt = given
    states = [x, np.broadcast_to(v, (*lead, 2)), *whole]
    fixed = [k, np.full(lead, dt)]
    expected = interpret(scan, [*states, u, *fixed], steps=len(u))
    got = loop(*states, u, *fixed)
    for a, b in zip(got, expected, strict=True):
        assert_close(a, b, 20 * EPS)


def test_what_is_kept_can_be_sent_elsewhere():
    got = rollouts()[1](*arguments((3,)))
    again = pickle.loads(pickle.dumps(got))
    assert type(again) is type(got) and again._fields == got._fields
    assert all(np.array_equal(a, b) for a, b in zip(again, got, strict=True))


def test_chunks_and_threads_change_nothing(monkeypatch):
    _, reducing = rollouts()
    given = arguments((50,))
    whole = reducing(*given)
    monkeypatch.setattr(cpu, "_WORK_PER_CALL", 11 * 40 * 50)
    monkeypatch.setattr(cpu, "_WORK_PER_THREAD", 1)
    monkeypatch.setattr(threads, "_cores", lambda: 3)
    assert all(np.array_equal(a, b) for a, b in zip(whole, reducing(*given), strict=True))


def test_steps_that_come_in_blocks_change_nothing():
    plain, reducing = rollouts()
    x, v, u, k, dt = arguments((9,), steps=50)
    blocks = [u[:7], u[7:8], u[8:]]
    parts = list(reducing.stream(x, v, iter(blocks), k, dt))
    for end, part in zip((7, 8, 50), parts, strict=True):
        expected = reducing(x, v, u[:end], k, dt)
        assert all(np.array_equal(a, b) for a, b in zip(part, expected, strict=True))
    rows = list(plain.stream(x, v, (u[i : i + 20] for i in (0, 20, 40)), k, dt, every=10))
    assert [len(row[0]) for row in rows] == [2, 2, 1]
    for i, whole in enumerate(plain(x, v, u, k, dt, every=10)):
        assert np.array_equal(np.concatenate([row[i] for row in rows]), whole)
    grow = hinge.rollout(lambda x, u: x + u, "x", "u", x=(), u=())
    assert [x.tolist() for x in grow.stream(1.0, [[1.0, 2.0], [3.0]])] == [[2.0, 4.0], [7.0]]


def test_memory_is_that_of_one_step():
    """Stored, these states would take 13 GB."""
    samples, steps = 4096, 200_000
    keep = {"far": hinge.Max(lambda x: x), "mean": hinge.Mean(lambda x: x * x)}
    step = lambda x, v: (x + 0.01 * v, v - 0.01 * x)  # noqa: E731
    run = hinge.rollout(step, ("x", "v"), keep=keep, x=(), v=())
    run(np.zeros(samples), np.zeros(samples), steps=1)
    assert 2 * 8 * samples * steps > 13e9
    tracemalloc.start()
    run(np.linspace(0, 1, samples), np.zeros(samples), steps=steps)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100 * 8 * samples


def test_sums_of_a_million_small_numbers():
    """In single precision, where plain sums lose three digits."""
    run = hinge.rollout(
        lambda x: x,
        "x",
        dtype=np.float32,
        keep={"total": hinge.Sum(0), "mean": hinge.Mean(0)},
        x=(),
    )
    x, steps = np.float32([0.1, 1 / 3, 7.7]), 1_000_000
    got = run(x, steps=steps)
    assert_close(got.total, steps * x.astype(float), 2 * np.finfo(np.float32).eps)
    assert_close(got.mean, x.astype(float), 3 * np.finfo(np.float32).eps)
    naive = np.cumsum(np.full(steps, x[0]), dtype=np.float32)[-1]
    assert abs(naive / (steps * float(x[0])) - 1) > 1e-4


def test_what_is_not_finite():
    """NaN in one value is NaN in the end, in that sample alone; infinity is a number."""
    keep = {kind.__name__: kind(1) for kind in (hinge.Sum, hinge.Mean, hinge.Max, hinge.Min)}
    keep["Histogram"] = hinge.Histogram(1, [-1e3, 0.0, 1e3])

    def step(t, bad):
        """NaN after the third step, and then no more."""
        off = hinge.where(hinge.less(abs(t - 2), 0.5), bad, 0.0)
        return t + 1, t + off

    run = hinge.rollout(step, "t", keep=keep, t=(), bad=())
    got = run(0.0, np.array([0.0, np.nan, np.inf, -np.inf]), steps=6)
    clean = np.arange(6.0)
    expected = {"Sum": clean.sum(), "Mean": clean.mean(), "Max": 5.0, "Min": 0.0}
    for name, value in expected.items():
        assert getattr(got, name)[0] == value
    assert got.Histogram[0].tolist() == [0.0, 6.0]
    assert all(np.isnan(getattr(got, name)[1]).all() for name in keep)
    assert got.Sum[2:].tolist() == [np.inf, -np.inf]
    assert got.Max[2:].tolist() == [np.inf, 5.0] and got.Min[2:].tolist() == [0.0, -np.inf]
    assert got.Histogram[2:].tolist() == [[0.0, 5.0], [0.0, 5.0]]


def test_a_reduction_of_ones_own():
    class Longest(hinge.Reduction):
        """The most steps in a row in which the value was positive."""

        def start(self, shape, dtype):
            return np.zeros((*shape, 2), dtype)

        def update(self, total, value):
            row = hinge.where(hinge.less(0.0, value), total[..., 0] + 1, 0.0)
            most = hinge.maximum(total[..., 1], row)
            return np.array([row, most])

        def finish(self, total, steps):
            return total[..., 1]

    step = lambda t: t + 1  # noqa: E731
    sine = Longest(lambda t: np.sin(t))
    run = hinge.rollout(step, "t", keep={"longest": sine}, t=())
    assert run(np.array([0.0, 100.0]), steps=50).longest.tolist() == [4.0, 4.0]
    assert run(0.0, steps=2).longest == 2.0


def test_a_step_fused_with_the_dynamics_of_many_masses():
    """Numbers of the mechanism per sample, a branched robot with a floating base."""
    robot = zoo.quadruped()
    from hinge.model.parameters import with_parameters

    def step(q, qd, gravity, dt):
        other = with_parameters(robot.mechanism, gravity=gravity)
        qd = qd + dt * hinge.algorithms.forward_dynamics(other, q, qd, np.zeros(robot.nv))
        return robot.alg.integrate(q, dt * qd), qd

    height = {"top": hinge.Max(lambda q: robot.alg.center_of_mass(q)[2])}
    reducing = robot.rollout(step, keep=height)
    plain = robot.rollout(step)
    s = random_state(robot, 0)
    gravity = np.array([[0, 0, -9.81], [0, 0, -1.6], [0, 0, 0.5]])
    got, (q, _) = (
        reducing(s.q, s.qd, gravity, 1e-3, steps=40),
        plain(s.q, s.qd, gravity, 1e-3, steps=40),
    )
    assert_close(got.top, robot.center_of_mass(q)[..., 2].max(axis=0), 100 * EPS)
    assert np.array_equal(got.q, q[-1])


BAD = {
    "no mapping": (dict(keep=hinge.Sum(2)), r"keep is Sum\(of=2\); expected reductions by name"),
    "none": (dict(keep={}), "keep is {}; expected reductions by name"),
    "a name": (dict(keep={"x": hinge.Sum(2)}), "the name 'x'; expected one that no argument"),
    "no name": (dict(keep={"a b": hinge.Sum(2)}), "keep has the name 'a b'"),
    "no reduction": (dict(keep={"far": max}), "far = <built-in function max>; expected a reduct"),
    "no result": (
        dict(keep={"far": hinge.Sum(3)}),
        "far is of result 3 of the step, which gives 3",
    ),
    "no function": (dict(keep={"far": hinge.Sum("x")}), "far is of 'x', which takes nothing"),
    "unknown": (dict(keep={"far": hinge.Sum(lambda q: q)}), "takes q; expected a function of some"),
    "several": (dict(keep={"far": hinge.Sum(lambda x: (x, x))}), "far gives 2 results; expected"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_kept(case):
    given, message = BAD[case]
    with pytest.raises(ArgumentError, match=f"rollout of spring.*{message}"):
        hinge.rollout(spring, ("x", "v"), ("u",), **given, **SHAPES)


@pytest.mark.parametrize("edges", [[1.0], [1.0, 1.0], [0.0, np.inf], "ab", [[0, 1]]])
def test_edges_of_bins_rise(edges):
    with pytest.raises(ArgumentError, match="Histogram: edges are .* rising"):
        hinge.Histogram(0, edges)


def test_blocks_of_steps_that_make_no_sense():
    plain, reducing = rollouts()
    x, v, u, k, dt = arguments((3,), steps=20)
    for run in (plain, reducing):
        with pytest.raises(ArgumentError, match=r"takes 5 arrays \(x, v, u, k, dt\), got 2"):
            list(run.stream(x, v))
        with pytest.raises(ArgumentError, match=r"the block after 9 steps: .*u has shape \(4, 3\)"):
            list(run.stream(x, v, [u[:9], u[9:13, :, 0]], k, dt))
    with pytest.raises(ArgumentError, match=r"takes 5 arrays \(x, v, u, k, dt\), got 2"):
        reducing(x, v)
    with pytest.raises(ArgumentError, match="often is not an argument"):
        reducing(x, v, u, k, dt, often=3)
    with pytest.raises(
        ArgumentError, match="a block ended after 9 steps, and every 2 are recorded"
    ):
        list(plain.stream(x, v, [u[:9], u[9:]], k, dt, every=2))
    two = hinge.rollout(lambda x, u, w: x + u + w, "x", ("u", "w"), x=(), u=(), w=())
    with pytest.raises(ArgumentError, match="blocks of steps differ in length: u 2, w 1"):
        list(two.stream(0.0, [[1.0, 2.0]], [[1.0]]))
    with pytest.raises(ArgumentError, match="differ in length: u 1, w none"):
        list(two.stream(0.0, [[1.0], [1.0]], [[1.0]]))
    alone = hinge.rollout(lambda x: x, "x", x=())
    with pytest.raises(ArgumentError, match="it has no inputs of each step that could come"):
        list(alone.stream(0.0))


def test_the_last_state_alone_and_results_in_arrays_that_are_there():
    plain, _ = rollouts()
    given = arguments((4,))
    x, v, energy = plain(*given)
    last = plain(*given, every=None)
    assert [a.shape for a in last] == [(1, 4, 2), (1, 4, 2), (1, 4)]
    assert np.array_equal(last[0][0], x[-1])
    out = tuple(np.empty_like(a) for a in (x, v, energy))
    got = plain(*given, out=out)
    assert all(a is b for a, b in zip(got, out, strict=True))
    assert all(np.array_equal(a, b) for a, b in zip(out, (x, v, energy), strict=True))
    # results may go where an input lies
    x0, v0, u, k, dt = given
    plain(x0, v0, u, k, dt, out=(u, np.empty_like(v), np.empty_like(energy)))
    assert np.array_equal(u, x)
    with pytest.raises(ArgumentError, match="rollout of spring: out has 1 arrays; expected 3"):
        plain(*given, out=[np.empty_like(x)])
