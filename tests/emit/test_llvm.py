"""Machine code against `interpret`: every operation, width, lowered target and batch size."""

import sys
from functools import lru_cache, partial
from itertools import product

import mpmath
import numpy as np
import pytest

import hinge
from emit.everything import EDGES, TARGETS, both_dtypes, every_operation
from emit.everything import target as by_name
from fences import fenced
from hinge import zoo
from hinge.algebra.small import cos, sin
from hinge.emit.llvm import module as llvm
from hinge.emit.llvm import stream as llvm_stream
from hinge.emit.llvm.flavor import Flavor
from hinge.graph.interpret import interpret
from hinge.graph.operations import OPERATIONS, library_functions
from hinge.graph.program import Program, trace
from hinge.graph.scalar import Graph
from hinge.robot.answers import robot_kernel
from hinge.runtime import cache, cpu
from hinge.runtime.cpu import Cpu
from hinge.runtime.kernel import Kernel
from hinge.runtime.target import Target
from mechanisms import assert_same_bits, random_state

SIZES = (0, 1, 2, 7, 8, 9, 15, 16, 17, 100, 1000)
INEXACT = {*library_functions()} - {"fmod"}

targets = pytest.mark.parametrize("target", TARGETS)


@lru_cache
def compiled(program, dtype, target="host", strict=False):
    return Kernel(program, dtype=dtype, backend=Cpu(1, by_name(target)), strict=strict)


EVERY = every_operation()


@both_dtypes
@targets
def test_every_operation_is_that_of_interpret(dtype, target):
    kernel = compiled(EVERY, dtype, target)
    with np.errstate(over="ignore"):
        x = np.array(list(product(EDGES, repeat=3)), dtype=dtype)
    x = np.concatenate([x, np.random.default_rng(0).normal(size=(100, 3)).astype(dtype)])
    (expected,) = interpret(EVERY, [x])
    single = np.array([kernel.call(row) for row in x])
    for got in (kernel(x), single):
        for i, op in enumerate(OPERATIONS):
            if op in INEXACT:
                bound = 4 * np.finfo(dtype).eps
                np.testing.assert_allclose(got[:, i], expected[:, i], rtol=bound, err_msg=op)
            else:
                assert_same_bits(got[:, i], expected[:, i])


@both_dtypes
@targets
def test_every_batch_size(dtype, target):
    """Rows around the results are not touched."""
    kernel = compiled(EVERY, dtype, target)
    x = np.random.default_rng(1).normal(size=(max(SIZES), 3)).astype(dtype)
    (expected,) = interpret(EVERY, [x])
    for n in SIZES:
        room = np.full((n + 40, len(OPERATIONS)), 7.0, dtype)
        assert kernel(x[:n], out=room[20 : 20 + n]) is not None
        bound = 4 * np.finfo(dtype).eps
        np.testing.assert_allclose(room[20 : 20 + n], expected[:n], rtol=bound, atol=0)
        assert (room[:20] == 7).all() and (room[20 + n :] == 7).all()


# the shapes a program can have

PROGRAMS = {
    "several results": (lambda x, y: (x * 2, y @ y, np.outer(x, y)), [(3,), (3,)]),
    "constants only": (lambda x: (np.arange(20.0).reshape(4, 5), 2.5), [(3,)]),
    "arguments as results": (lambda x, y: (y[::-1], x[0], y), [(3,), (19,)]),
    "no arguments": (lambda: np.array([1.0, -2.0]), []),
    "no results": (lambda x: np.zeros(0), [(3,)]),
    "empty arguments": (lambda x, y: y + 1, [(0,), (2,)]),
    "repeated values": (lambda x: np.array([x[0] * x[1], 3.0] * 20 + [x[0]]), [(2,)]),
    "scalars": (lambda a, b: a / b, [(), ()]),
    "matrices": (lambda A, B: A @ B, [(3, 4), (4, 5)]),
    "out of range of float": (lambda x: (x * 1e300, x + 1e-60, x - 1e300), [(2,)]),
}


@both_dtypes
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_of_all_shapes(name, dtype):
    fn, shapes = PROGRAMS[name]
    program = trace(fn, shapes, name)
    kernel = compiled(program, dtype)
    rng = np.random.default_rng(2)
    for lead in ((), (1,), (5,), (40,), (2, 9)):
        given = [rng.uniform(1, 2, size=lead + shape).astype(dtype) for shape in shapes]
        got = kernel(*given)
        parts = got if isinstance(got, tuple) else (got,)
        assert isinstance(got, tuple) == (program.form is not None)
        for part, expected in zip(parts, interpret(program, given), strict=True):
            np.testing.assert_allclose(part, expected, rtol=8 * np.finfo(dtype).eps)
            assert part.dtype == dtype


def random_program(seed, size):
    """A random graph of so many nodes, its values within ±1, with results all over it."""
    rng = np.random.default_rng(seed)
    graph = Graph()
    nodes = [graph.input() for _ in range(20)]
    steps = [
        lambda a, b, c: 0.5 * (a + b),
        lambda a, b, c: 0.5 * (a - b),
        lambda a, b, c: a * b,
        lambda a, b, c: sin(a),
        lambda a, b, c: cos(a),
        lambda a, b, c: abs(a) / (1.5 + b),
        lambda a, b, c: hinge.minimum(a, -b),
        lambda a, b, c: hinge.where(hinge.less(a, b), c, hinge.maximum(b, 0.3)),
        lambda a, b, c: 0.3 * hinge.atan2(a, 2 + b),
        lambda a, b, c: (1.1 + a) ** 2 / 5,
    ]
    while graph.count < size:
        # mostly recent values, now and then one from long ago
        reach = [min(len(nodes), 30 if rng.random() < 0.8 else 10**6) for _ in range(3)]
        a, b, c = (nodes[-1 - rng.integers(n)] for n in reach)
        nodes.append(steps[rng.integers(len(steps))](a, b, c))
    values = tuple(nodes[i] for i in rng.integers(len(nodes), size=60))
    return Program(f"random{seed}", ((12,), (8,)), ((60,),), values)


@both_dtypes
@pytest.mark.parametrize(
    ("seed", "size"), [(0, 300), (1, 900), pytest.param(2, 6000, marks=pytest.mark.long)]
)
def test_random_programs(seed, size, dtype):
    program = random_program(seed, size)
    assert sum(program.ops) > size // 2
    kernel = compiled(program, dtype)
    rng = np.random.default_rng(seed)
    x, y = (rng.uniform(-1, 1, size=(37, n)).astype(dtype) for n in (12, 8))
    (expected,) = interpret(program, [x.astype(float), y.astype(float)])
    bound = 20 * np.finfo(dtype).eps
    np.testing.assert_allclose(kernel(x, y), expected, rtol=0, atol=bound)
    np.testing.assert_allclose(kernel.call(x[0], y[0]), expected[0], rtol=0, atol=bound)


# sine and cosine

SINCOS = trace(lambda x: (sin(x), cos(x)), [()], "sincos")


def angles(dtype):
    """Ordinary ones, large ones, and those next to a multiple of π/2."""
    rng = np.random.default_rng(3)
    plain = [rng.uniform(-size, size, 60) for size in (1, 4, 100, 1e4, 1e6)]
    turns = np.concatenate([[1, 2, 3, 161, 710], rng.integers(1, 6e5, 60)]) * (np.pi / 2)
    return np.concatenate([*plain, turns, -turns, [1e-8, 6.0e3, 1.59e6]]).astype(dtype)


@both_dtypes
@targets
def test_sine_and_cosine_are_good_to_an_ulp_and_a_half(dtype, target):
    x = angles(dtype)
    kernel = compiled(SINCOS, dtype, target)
    single = np.array([kernel.call(np.array(a)) for a in x]).T
    with mpmath.workprec(200):
        for got, exact in zip([*kernel(x), *single], [mpmath.sin, mpmath.cos] * 2, strict=True):
            for a, value in zip(x, got, strict=True):
                true = exact(mpmath.mpf(float(a)))
                ulp = float(np.spacing(abs(dtype(float(true)))))
                assert abs(mpmath.mpf(float(value)) - true) <= 1.5 * ulp, f"at {a!r}"


@both_dtypes
@targets
def test_huge_angles_are_right_and_their_neighbours_too(dtype, target):
    kernel = compiled(SINCOS, dtype, target)
    x = np.full(40, 0.5, dtype)
    x[[3, 17, 21, 30]] = 1e22, np.nan, np.inf, -np.inf
    sine, cosine = kernel(x)
    with mpmath.workprec(300):
        for got, exact in ((sine, mpmath.sin), (cosine, mpmath.cos)):
            for i in (3, 0, 16, 18):
                true = float(exact(mpmath.mpf(float(x[i]))))
                assert abs(got[i] - true) <= 1.5 * np.spacing(dtype(abs(true)))
            assert (
                np.isnan(got[[17, 21, 30]]).all()
                and np.isfinite(np.delete(got, [17, 21, 30])).all()
            )


# nothing out of bounds


@pytest.mark.skipif(sys.platform != "linux", reason="uses mprotect")
@both_dtypes
@targets
def test_nothing_is_read_or_written_out_of_bounds(dtype, target):
    program = trace(lambda x, y: (x + y[:5], y * 2, y @ y, 3.0), [(5,), (11,)])
    kernel = compiled(program, dtype, target, strict=True)
    rng = np.random.default_rng(4)
    for n, at_end in product((1, 2, 3, 5, 7, 9, 15, 17, 31), (True, False)):
        x, y = (rng.normal(size=(n, k)).astype(dtype) for k in (5, 11))
        for x_given in (x, x[0]):
            given = [fenced(a, at_end) for a in (x_given, y)]
            expected = interpret(program, [np.broadcast_to(x_given, x.shape), y])
            out = [fenced(np.zeros_like(e), at_end) for e in expected]
            kernel(*given, out=out)
            for a, b in zip(out, expected, strict=True):
                np.testing.assert_allclose(a, b, rtol=20 * np.finfo(dtype).eps)
        one = [fenced(a[0], at_end) for a in (x, y)]
        assert_same_bits(kernel.call(*one)[1], 2 * y[0])


@both_dtypes
@pytest.mark.parametrize(
    "size", [1200, 1201, *(pytest.param(n, marks=pytest.mark.long) for n in (1202, 1204))]
)
def test_large_results_go_past_the_caches(dtype, size, monkeypatch):
    """Rows that begin anywhere in a line, by lines; what lies around them is not touched."""
    monkeypatch.setattr(llvm_stream, "_LARGE", 1 << 14)

    def both_ways(x, y):
        return np.outer(x, y).ravel()[:size], x @ x, np.outer(y, x).ravel()[:size]

    program = trace(both_ways, [(35,), (35,)])
    kernel = compiled(program, dtype, strict=True)
    by_lines = TARGETS["host"].vector_bits == 512
    assert ("!nontemporal" in kernel.source()) == by_lines
    rng = np.random.default_rng(5)
    for n, offset in product((1, 3, 9, 40, 67), (0, 1, 7, 18)):
        x, y = rng.normal(size=(2, n, 35)).astype(dtype)
        y[n // 2, 3] = np.nan
        rooms = [np.full(k + n * size + 50, 7.0, dtype) for k in (offset, offset + 5)]
        starts = (offset, offset + 5)
        first, last = (
            room[k : k + n * size].reshape(n, size) for k, room in zip(starts, rooms, strict=True)
        )
        out = (first, np.empty(n, dtype), last)
        kernel(x, y, out=out)
        assert np.isnan(out[1][n // 2])
        for result, a, b in ((first, x, y), (last, y, x)):
            expected = (a[:, :, None] * b[:, None]).reshape(n, -1)[:, :size]
            expected[n // 2] = np.nan
            assert np.array_equal(result, expected, equal_nan=True)
        for k, room in zip(starts, rooms, strict=True):
            assert (room[:k] == 7).all() and (room[k + n * size :] == 7).all()


def test_parts_of_large_results_fit_together(monkeypatch):
    """Large is the whole call: its parts go past the caches however few samples they have."""
    monkeypatch.setattr(cpu, "_WORK_PER_HELPER", 1000)
    program = trace(lambda x, y: np.outer(x, y), [(36,), (36,)])
    kernel = Kernel(program, backend=Cpu(threads=2))
    x, y = np.random.default_rng(6).normal(size=(2, 2000, 36))
    out = np.empty((2000, 36, 36))
    expected = x[:, :, None] * y[:, None]
    for call in (kernel._slow, kernel.call, kernel.call):
        out[:] = np.nan
        call(x, y, out=out)
        assert np.array_equal(out, expected)


# what is in a module


def test_large_programs_have_no_code_for_single_calls(monkeypatch):
    monkeypatch.setattr(llvm, "MOST_FOR_SINGLE", 2)
    kernel = hinge.compile(lambda x: np.sin(x) * x + x * x * 3, x=(2,))
    assert "@one(" not in kernel.source("llvm")
    x = np.array([0.2, 0.3])
    np.testing.assert_allclose(kernel(x), np.sin(x) * x + x * x * 3, rtol=4 * np.finfo(float).eps)
    fast = kernel.fast(lambda *arguments, **keywords: "handed on")
    assert fast(x) == fast(x, out=np.zeros(2)) == "handed on"
    batch, out = np.outer(np.arange(11.0), x), np.zeros((11, 2))
    assert fast(batch, out=out) is out
    assert np.array_equal(fast(batch), out) and np.array_equal(kernel._slow(batch), out)


def test_lanes_fill_a_vector():
    assert Target("x", "", 512).lanes("double") == 8 and Target("x", "", 256).lanes("float") == 8
    assert "<8 x double>" in llvm.module_text(EVERY, Flavor(8))
    assert "<4 x float>" in llvm.module_text(EVERY, Flavor(4, "float"))


def test_long_mechanisms_go_through_fewer_lanes(monkeypatch):
    """As many samples at once as caches have room for, whatever the CPU: the same numbers."""
    robot = zoo.snake(60)
    arrays, backend = ("q", "qd", "tau"), Cpu(1, by_name("host"))
    make = partial(robot_kernel, robot.mechanism, "forward_dynamics", arrays, (), backend=backend)
    states = [random_state(robot, seed) for seed in range(21)]
    batch = [np.array([getattr(s, a) for s in states]) for a in ("q", "qd", "qdd")]
    expected = make()(*batch)
    monkeypatch.setattr(cache, "load", lambda key: None)
    for lanes, room in ((4, 60 * 9 * 64), (2, 0)):
        monkeypatch.setattr(llvm, "MOST_AT_ONCE", room)
        text = llvm.module_text(make().program, Flavor(8, fused=True), python=False)
        assert f"<{lanes} x double>" in text and f"<{2 * lanes} x double>" not in text
        assert_same_bits(make()(*batch), expected)
