"""Time loops as machine code: every case is what `interpret` says."""

import numpy as np
import pytest

import hinge
from emit.everything import both_dtypes
from emit.everything import target as by_name
from hinge.algebra.small import cos, sin
from hinge.graph.interpret import interpret
from hinge.graph.program import trace
from hinge.graph.scan import Scan
from hinge.runtime.cpu import Cpu
from hinge.runtime.rollout import Rollout


def make(fn, shapes, states, inputs=0, stages=((),), recorded=None):
    """A scan and the shapes of its arguments by name."""
    row = [(len(stages[0]),)] if stages != ((),) else []
    program = trace(fn, [*shapes.values(), *row], "step")
    chosen = tuple(range(len(program.outputs))) if recorded is None else recorded
    return Scan(program, states, inputs, stages, chosen), shapes


def staged(x, v, u, k, s):
    """A step in two stages, with a result besides the states and one that is constant."""
    v = v + s[1] * (u - k * x)
    return x + s[0] * v, v, np.array([x @ x, 2.0])


def exact(x, n, u):
    """No product, hence nothing that may be rounded once instead of twice."""
    m = hinge.minimum(hinge.maximum(x - u, -3.0), 3.0)
    return np.array([m[1], abs(m[2]) - 0.7, m[0] + n]), hinge.where(
        hinge.less(n, 2.0), n + 1.0, 0.0
    )


def long(x, k):
    """Several bodies: what one hands to the next is in the workspace."""
    x = np.array([sin(x[0]), cos(x[1]), x[2]])
    for i in range(200):
        x = np.array([0.5 * x[1] + k, 0.3 * x[2] + 0.1 * x[0], i / 200 - x[1] * x[2]])
    return x


SCANS = {
    "in stages": make(
        staged, dict(x=(3,), v=(3,), u=(3,), k=()), 2, 1, ((0.1, 0.0), (0.1, 0.01)), (0, 2)
    ),
    "exact": make(exact, dict(x=(3,), n=(), u=(3,)), 2, 1),
    "several bodies": make(long, dict(x=(3,), k=()), 1),
    # values that are in two places, in another order, or constant cannot be handed on in place
    "repeated": make(lambda a, b: (np.array([b[1], b[1]]), a + 0.5 * b), dict(a=(2,), b=(2,)), 2),
    "constant": make(lambda a, b: (np.zeros(2), a + b), dict(a=(2,), b=(2,)), 2),
    "exchanged": make(lambda a, b: (b, a), dict(a=(2,), b=(2,)), 2),
    "matrices": make(lambda A, B: (A @ B, A[0]), dict(A=(3, 3), B=(3, 3)), 1),
    "no entries": make(lambda x, u: (x, u + 1), dict(x=(0,), u=()), 1, 1),
}


def arguments(scan, shapes, lead, steps, dtype, seed=0):
    rng = np.random.default_rng(seed)
    ends = scan.states, scan.states + scan.inputs_per_step
    leads = [(steps, *lead) if ends[0] <= i < ends[1] else lead for i in range(len(shapes))]
    pairs = zip(leads, shapes.values(), strict=True)
    return [np.asarray(0.5 * rng.normal(size=a + b), dtype) for a, b in pairs]


@both_dtypes
@pytest.mark.parametrize("target", ["host", "plain"])
@pytest.mark.parametrize("name", SCANS)
def test_loops_are_those_of_interpret(name, target, dtype):
    scan, shapes = SCANS[name]
    settings = dict(dtype=dtype, backend=Cpu(1, by_name(target)))
    kernel = Rollout(scan, shapes, scan.states, scan.inputs_per_step, **settings)
    for lead in ((), (1,), (7,), (8,), (9,), (2, 17)):
        for every, count in ((1, 4), (3, 7), (4, 3)):
            given = arguments(scan, shapes, lead, count, dtype)
            got = kernel(*given, steps=count, every=every)
            expected = interpret(scan, given, count, every)
            parts = got if isinstance(got, tuple) else (got,)
            for a, b in zip(parts, expected, strict=True):
                assert a.shape == b.shape and a.dtype == dtype
                bound = 0 if name in ("exact", "exchanged") else 200 * np.finfo(dtype).eps
                np.testing.assert_allclose(a, b, rtol=bound, atol=bound)


@both_dtypes
def test_a_sample_that_is_not_finite_is_nan_from_then_on(dtype):
    """Strict: in all its results, and no other sample notices."""

    def step(x, y, u):
        return x + u, 2 * y, np.array([x[0], 5.0])

    scan, shapes = make(step, dict(x=(2,), y=(), u=(2,)), 2, 1)
    kernel = Rollout(scan, shapes, 2, 1, dtype=dtype, strict=True)
    u = np.ones((6, 11, 2), dtype)
    u[3, 4, 1] = np.nan
    u[2, 10, 0] = np.inf
    x, y, z = kernel(np.zeros(2), 1.0, u)
    for sample in range(11):
        bad = {4: 3, 10: 2}.get(sample, 6)
        for result in (x, y, z):
            rows = result[:, sample].reshape(6, -1)
            assert np.isfinite(rows[:bad]).all() and np.isnan(rows[bad:]).all()
    expected = interpret(scan, [np.zeros((11, 2)), np.ones(11), np.ones((6, 11, 2))], 6)
    for got, wanted in zip((x, y, z), expected, strict=True):
        np.testing.assert_array_equal(got[:, :4], wanted[:, :4])


def test_not_strict_spoils_only_what_depends_on_it():
    scan, shapes = make(lambda x, y: (2 * x, 3 * y), dict(x=(), y=()), 2)
    x, y = Rollout(scan, shapes, 2)(np.array([1.0, np.nan]), 1.0, steps=2)
    assert np.isnan(x[:, 1]).all() and x[1, 0] == 4 and (y[1] == 9).all()


@both_dtypes
@pytest.mark.parametrize("twice", [False, True])
def test_a_loop_may_end_when_every_sample_is_done(twice, dtype):
    """Long before its last step, at the states that all its steps would leave."""

    def step(x, done, k):
        done = hinge.where(done, done, hinge.less(x[0], k))
        half = np.array([hinge.where(done, a, 0.5 * a) for a in (x[0], x[0] if twice else x[1])])
        return half, done

    program = trace(step, [(2,), (), ()], "step")
    scan = Scan(program, 2, recorded=(), until=2)
    kernel = Rollout(scan, dict(x=(2,), done=(), k=()), 2, dtype=dtype)
    for n in (1, 7, 8, 9, 33):
        x = np.asarray(2.0 ** np.arange(n)[:, None] * [1.5, 1.5], dtype)
        given = [x, np.zeros(n, dtype), np.asarray(0.9, dtype)]
        end, done = kernel.fill([], given, (n,), 10**10, 10**10)
        assert (done == 1).all() and (end == np.asarray(0.75, dtype)).all()


def test_a_digest_tells_loops_apart():
    def digest(*more):
        return Scan(SCANS["exact"][0].step, *more).digest

    digests = [digest(2, 1), digest(2, 0), digest(1, 1), digest(2, 1, ((1.0,), (2.0,)))]
    digests += [digest(2, 1, ((1.0,),)), digest(2, 1, ((),), (0,)), digest(2, 1, ((),), (), 0)]
    assert len(set(digests)) == len(digests) and digest(2, 1) == digests[0]
