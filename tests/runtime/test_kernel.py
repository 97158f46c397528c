"""Kernels called on all kinds of arrays, by the short way and by the long one."""

import gc
import io
import sys
import sysconfig
import time
import tracemalloc
import weakref
from typing import NamedTuple

import numpy as np
import pytest

import hinge
from hinge import ArgumentError, Kernel
from hinge.graph.program import trace
from hinge.graph.scan import Scan
from hinge.runtime import cpu, engine, progress, team
from hinge.runtime.cpu import Cpu
from hinge.runtime.rollout import Rollout
from marks import short_way
from mechanisms import assert_same_bits


def law(A, x, s):
    return A @ x * s + np.sin(x[0]), x @ x


class Pair(NamedTuple):
    """The results of the law."""

    force: np.ndarray
    square: np.ndarray


LAW = hinge.compile(law, A=(2, 3), x=(3,), s=())
TWICE = hinge.compile(lambda x: 2 * x, x=(2,))


def expected(A, x, s):
    """The law over leading shapes, in NumPy."""
    A, x, s = np.asarray(A, float), np.asarray(x, float), np.asarray(s, float)
    y = (A @ x[..., None])[..., 0] * s[..., None] + np.sin(x[..., :1])
    return y, np.broadcast_to((x * x).sum(axis=-1), y.shape[:-1])


def sample(*leads, seed=0):
    rng = np.random.default_rng(seed)
    leads = leads * 3 if len(leads) == 1 else leads
    return [rng.normal(size=l + s) for l, s in zip(leads, [(2, 3), (3,), ()], strict=True)]


def check(got, arguments, dtype=float):
    bound = 20 * np.finfo(dtype).eps
    assert isinstance(got, tuple)
    for a, b in zip(got, expected(*arguments), strict=True):
        assert a.shape == b.shape and a.dtype == dtype
        np.testing.assert_allclose(a, b, rtol=bound, atol=bound)


# shapes and layouts


@pytest.mark.parametrize("lead", [(), (1,), (5,), (0,), (2, 3), (2, 1, 3), (2, 0, 3)])
def test_any_leading_shape(lead):
    arguments = sample(lead)
    check(LAW(*arguments), arguments)


def test_leading_shapes_broadcast():
    for leads in [((4, 1), (5,), ()), ((), (7,), ()), ((3, 1, 2), (1, 4, 1), (2,)), ((), (), (0,))]:
        arguments = sample(*leads)
        check(LAW(*arguments), arguments)


def unaligned(x):
    room = np.zeros(x.nbytes + 1, np.uint8)[1:].view(x.dtype).reshape(x.shape)
    room[...] = x
    assert x.size == 0 or not room.flags.aligned
    return room


class Sub(np.ndarray):
    """A subclass that kernels know nothing of."""


def read_only(x):
    y = x.copy()
    y.flags.writeable = False
    return y


ODD = {
    "transposed": lambda x: np.ascontiguousarray(x.T).T,
    "reversed": lambda x: np.ascontiguousarray(x[::-1])[::-1],
    "entries reversed": lambda x: np.ascontiguousarray(x[..., ::-1])[..., ::-1],
    "every other": lambda x: np.repeat(x, 2, axis=0)[::2],
    "every other entry": lambda x: np.repeat(x, 2, axis=-1)[..., ::2],
    "columns of a table": lambda x: np.concatenate([x, x], axis=-1)[..., : x.shape[-1]],
    "fortran": np.asfortranarray,
    "other byte order": lambda x: x.astype(x.dtype.newbyteorder()),
    "unaligned": unaligned,
    "subclass": lambda x: x.view(Sub),
    "list": lambda x: x.tolist(),
}


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("lead", [(17,), (2, 3), ()])
def test_any_layout(kind, lead):
    A, x, s = sample(lead)
    made = [ODD[kind](A), ODD[kind](x), s]
    assert np.array_equal(np.asarray(made[0]), A)
    check(LAW(*made), (A, x, s))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32, np.uint8, bool, np.longdouble])
def test_other_numbers_are_converted(dtype):
    arguments = [np.round(3 * np.abs(a)).astype(dtype) for a in sample((4,))]
    check(LAW(*arguments), arguments)


def test_a_float32_kernel():
    kernel = hinge.compile(law, dtype=np.float32, A=(2, 3), x=(3,), s=())
    for lead in ((), (9,)):
        arguments = sample(lead)
        check(kernel(*arguments), arguments, np.float32)
        narrow = [a.astype(np.float32) for a in arguments]
        assert np.array_equal(kernel(*narrow)[0], kernel(*arguments)[0])


# out


def test_out_is_filled_and_returned():
    arguments = sample((6,))
    out = (np.zeros((6, 2)), np.zeros(6))
    got = LAW(*arguments, out=out)
    assert all(a is b for a, b in zip(got, out, strict=True))
    check(got, arguments)
    check(LAW.call(*arguments, out=list(out)), arguments)
    one = np.zeros(2)
    assert TWICE(np.ones(2), out=one) is one and (one == 2).all()


F = np.zeros((3, 2))
BAD_OUT = {
    "dtype": F.astype(np.float32),
    "byte order": F.astype(F.dtype.newbyteorder()),
    "shape": np.zeros((2, 2)),
    "leading shape": np.zeros(2),
    "order": np.asfortranarray(np.ones((3, 2))),
    "stride": np.zeros((6, 2))[::2],
    "read only": read_only(F),
    "unaligned": unaligned(F),
    "list": [[0.0, 0.0]] * 3,
    "number": 1.0,
}


@pytest.mark.parametrize("case", BAD_OUT)
def test_a_wrong_out_is_refused(case):
    with pytest.raises(ArgumentError, match=r"out is not .* float64 array of shape \(3, 2\)"):
        TWICE(np.ones((3, 2)), out=BAD_OUT[case])


def test_out_has_one_array_per_result():
    with pytest.raises(ArgumentError, match="out has 2 arrays; expected 1"):
        TWICE(np.ones((3, 2)), out=(np.zeros((3, 2)), np.zeros((3, 2))))
    with pytest.raises(ArgumentError, match="law: out has 1 arrays; expected 2"):
        LAW(*sample((3,)), out=np.zeros((3, 2)))


def windows(a):
    """Overlapping samples: entries i and i + 1 of all that a has."""
    return np.lib.stride_tricks.sliding_window_view(a.ravel(), 2)[: len(a)]


def test_out_may_overlap_the_arguments():
    add = hinge.compile(lambda x, y: x + y, x=(2,), y=(2,))
    x = np.arange(80.0).reshape(40, 2)
    cases = [
        (lambda a: (a, a, a), 2 * x),
        (lambda a: (a[0], a, a), x[0] + x),
        (lambda a: (a[:-1], a[:-1], a[1:]), 2 * x[:-1]),
        (lambda a: (a[::-1], a, a), x[::-1] + x),
        (lambda a: (a.reshape(2, 40).T, a, a), x.reshape(2, 40).T + x),
        (lambda a: (windows(a), a, a), windows(x) + x),
    ]
    for take, result in cases:
        a, b, out = take(x.copy())
        assert np.array_equal(add(a, b, out=out), result)


# refused

BAD = {
    "count": (lambda: LAW(1, 2), r"law takes 3 arrays \(A, x, s\), got 2"),
    "dtype": (lambda: TWICE([1j, 2]), "x has dtype complex128; expected real numbers"),
    "text": (lambda: TWICE("ab"), "x is .ab.; expected"),
    "object": (lambda: TWICE([None, 1]), "x has dtype object"),
    "ragged": (lambda: TWICE([[1.0], [1.0, 2.0]]), r"x is ragged; expected shape \(…, 2\)"),
    "shape": (lambda: TWICE(np.ones((2, 3))), r"x has shape \(2, 3\); expected shape \(…, 2\)"),
    "scalar": (lambda: TWICE(1.0), r"x has shape \(\)"),
    "broadcast": (
        lambda: LAW(*sample((2,), (3,), ())),
        r"leading shapes do not broadcast: A \(2,\), x \(3,\), s \(\)",
    ),
    "kernel dtype": (lambda: Kernel(TWICE.program, dtype=int), "int64; kernels come in float64"),
    "source": (
        lambda: TWICE.source("rust"),
        "source is 'rust'; expected 'llvm', 'c', 'header' or 'cuda'",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_calls_are_refused(case):
    call, message = BAD[case]
    with pytest.raises(ArgumentError, match=message):
        call()


def test_unknown_keywords_are_refused():
    with pytest.raises(TypeError, match="unexpected keyword argument 'y'"):
        TWICE.call(np.ones(2), y=1)
    for arguments, named in (((np.ones(2),), {"y": 1}), ((np.ones(2),), {"x": 1}), ((), {"y": 1})):
        with pytest.raises(ArgumentError, match="takes x; .* is missing, not among them, or given"):
            TWICE(*arguments, **named)


def test_arguments_may_be_named():
    x, v = np.ones(2), np.arange(2.0)
    kernel = hinge.compile(lambda x, v: x + 2 * v, x=(2,), v=(2,))
    for got in (kernel(x, v), kernel(x, v=v), kernel(v=v, x=x), kernel(v=v, x=x, out=np.ones(2))):
        assert np.array_equal(got, x + 2 * v)


# the short way


def test_the_short_way_gives_what_the_long_way_gives():
    for seed in range(20):
        arguments = sample((), seed=seed)
        for fast, slow in zip(LAW.call(*arguments), LAW._slow(*arguments), strict=True):
            assert type(fast) is np.ndarray and fast.shape == slow.shape
            np.testing.assert_array_max_ulp(fast, slow, 2)


@short_way
def test_the_short_way_is_for_exact_arrays_only():
    def other(*arguments, **keywords):
        return arguments, keywords

    fast = LAW.fast(other)
    exact = sample(())
    assert fast(*exact)[0].shape == (2,)
    check(fast(*map(read_only, exact)), exact)
    A, x, s = exact
    copied = [kind for kind in ODD if kind not in ("other byte order", "subclass")]
    for kind in copied:
        check(fast(ODD[kind](A), x, s), exact)
    odd = [(ODD[kind](A), x, s) for kind in ODD if kind not in copied]
    odd += [(A, x), (A, x, s, s), (), (None, x, s), (A, x, "1"), (A, x.astype(np.float32), s)]
    odd += [(A[None], x, s), (A, x[:2], s), (A, np.ones(4), s), (A, x, np.ones(1)), (A, int, s)]
    for arguments in odd:
        got, keywords = fast(*arguments)
        assert len(got) == len(arguments) and keywords == {}
        assert all(a is b for a, b in zip(got, arguments, strict=True))
    assert fast(A, x, s=s, out=None) == ((A, x), {"s": s, "out": None})


@short_way
def test_several_results_in_a_type_of_their_own():
    fast = LAW.fast(lambda *a: "handed on", Pair)
    for lead in ((), (11,)):
        arguments = sample(lead)
        got = fast(*arguments)
        assert type(got) is Pair and got.force is got[0] and got.square is got[1]
        check(got, arguments)
    assert fast(1) == "handed on"


def handed_on(*arguments, **keywords):
    """What is called when the short way is not taken."""
    return "handed on"


@short_way
@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 100])
def test_batches_take_the_short_way(count):
    arguments = sample((count,))
    check(LAW.fast(handed_on)(*arguments), arguments)
    twice, x = TWICE.fast(handed_on), np.arange(2.0 * count).reshape(count, 2)
    assert np.array_equal(twice(x), 2 * x)
    out = np.zeros((count, 2))
    assert twice(x, out=out) is out and np.array_equal(out, 2 * x)


def test_odd_batches_take_the_long_way():
    A, x, s = sample((6,))
    fast = LAW.fast(handed_on)
    odd = [(A[0], x, s), (A, x[0], s), (A, x, s[:5]), (A[:, None], x[:, None], s[:, None])]
    odd += [(A, x[:, :2], s), (A, x, s[:, None]), (A, x.astype(np.float32), s)]
    assert all(fast(*arguments) == "handed on" for arguments in odd)


@pytest.mark.parametrize("case", BAD_OUT)
def test_a_wrong_out_takes_the_long_way(case):
    assert TWICE.fast(handed_on)(np.ones((3, 2)), out=BAD_OUT[case]) == "handed on"


def law_out(lead, dtype=float):
    """Arrays for the results of the law."""
    return [np.zeros((*lead, 2), dtype), np.zeros(lead, dtype)]


@short_way
@pytest.mark.parametrize("lead", [(), (0,), (1,), (11,)])
@pytest.mark.parametrize(
    ("given", "form"),
    [(tuple, tuple), (list, tuple), (tuple, Pair), (list, Pair), (Pair._make, Pair)],
)
def test_several_arrays_of_out_take_the_short_way(lead, given, form):
    arguments, out = sample(lead), law_out(lead)
    got = LAW.fast(handed_on, form)(*arguments, out=given(out))
    assert type(got) is form and all(a is b for a, b in zip(got, out, strict=True))
    check(got, arguments)


@short_way
def test_several_arrays_of_out_in_float32():
    kernel = hinge.compile(law, dtype=np.float32, A=(2, 3), x=(3,), s=())
    for lead in ((), (9,)):
        arguments = [a.astype(np.float32) for a in sample(lead)]
        out = law_out(lead, np.float32)
        got = kernel.fast(handed_on)(*arguments, out=out)
        assert got[0] is out[0] and got[1] is out[1]
        check(got, arguments, np.float32)
        assert kernel.fast(handed_on)(*arguments, out=law_out(lead)) == "handed on"


@short_way
def test_a_kernel_without_arguments():
    kernel = hinge.compile(lambda: (np.arange(2.0), 3.0))
    out = [np.zeros(2), np.zeros(())]
    for got in (kernel(), kernel.fast(handed_on)(), kernel.fast(handed_on)(out=out)):
        assert (got[0] == [0, 1]).all() and got[1] == 3
    assert got[0] is out[0] and got[1] is out[1]
    later = kernel.entry(handed_on, least=2)
    assert later is not None and later.function("later")() == "handed on"


BAD_OUTS = {
    "none of them": lambda y, z: (),
    "too few": lambda y, z: (y,),
    "too many": lambda y, z: [y, z, z],
    "one array": lambda y, z: y,
    "a None": lambda y, z: (y, None),
    "a number": lambda y, z: (1.0, z),
    "in turn": lambda y, z: (z, y),
    "dtype": lambda y, z: (y, z.astype(np.float32)),
    "byte order": lambda y, z: [y.astype(y.dtype.newbyteorder()), z],
    "shape": lambda y, z: (np.zeros((*y.shape[:-1], 3)), z),
    "leading shape": lambda y, z: (y, np.zeros((*z.shape, 1))),
    "other count": lambda y, z: (y, np.zeros([n + 1 for n in z.shape] or 2)),
    "stride": lambda y, z: (np.repeat(y, 2, axis=-1)[..., ::2], z),
    "read only": lambda y, z: (y, read_only(z)),
    "unaligned": lambda y, z: [unaligned(y), z],
    "a table": lambda y, z: {0: y, 1: z},
    "a generator": lambda y, z: (x for x in (y, z)),
}


@pytest.mark.parametrize("case", BAD_OUTS)
@pytest.mark.parametrize("lead", [(), (3,)])
def test_wrong_arrays_of_out_take_the_long_way(case, lead):
    arguments = sample(lead)
    bad = BAD_OUTS[case](*law_out(lead))
    assert LAW.fast(handed_on)(*arguments, out=bad) == "handed on"
    with pytest.raises(ArgumentError, match="law: out (is not a writeable|has . arrays; expected)"):
        LAW(*arguments, out=bad)


@pytest.mark.parametrize("lead", [(), (3,)])
def test_other_outs_that_make_sense_take_the_long_way(lead):
    arguments, (y, z) = sample(lead), law_out(lead)
    for out in (None, (y, z.view(Sub)), Pair(y, z)):
        assert LAW.fast(handed_on)(*arguments, out=out) == "handed on"
        check(LAW(*arguments, out=out), arguments)


@short_way
def test_an_out_that_overlaps_takes_the_long_way():
    twice, room = TWICE.fast(handed_on), np.ones((9, 2))
    for x, out in ((room, room), (room[1:], room[:-1]), (room[:-1], room[1:])):
        assert twice(x, out=out) == "handed on"
    assert twice(room[:4], out=room[4:8])[0, 0] == 2 and (room[8] == 1).all()


@short_way
def test_any_of_several_arrays_of_out_may_overlap_an_argument():
    A, x, s = sample((5,))
    fast = LAW.fast(handed_on)
    for take in (
        lambda x, s: (x.ravel()[5:].reshape(5, 2), np.zeros(5)),
        lambda x, s: (np.zeros((5, 2)), s),
    ):
        mine = A, x.copy(), s.copy()
        out = take(*mine[1:])
        assert fast(*mine, out=out) == "handed on"
        check(LAW(*mine, out=out), (A, x, s))
    # one sample is read before anything is written
    own, one = x[0].copy(), np.array(s[0])
    check(fast(A[0], own, one, out=(own[:2], one)), (A[0], x[0], s[0]))


@short_way
@pytest.mark.parametrize("lead", [(), (5,)])
def test_arrays_of_out_must_not_overlap_one_another(lead):
    arguments, count = sample(lead), int(np.prod(lead))
    room = np.zeros(4 * count)
    first, rest = room[: 2 * count].reshape(*lead, 2), room[2 * count :]
    apart = (first, rest[:count].reshape(lead))
    check(LAW.fast(handed_on)(*arguments, out=apart), arguments)
    overlapping = (first, room[2 * count - 1 :][:count].reshape(lead))
    assert LAW.fast(handed_on)(*arguments, out=overlapping) == "handed on"
    with pytest.raises(ArgumentError, match="arrays of out share memory; give every result its"):
        LAW(*arguments, out=overlapping)


@short_way
def test_batches_worth_several_threads_take_the_long_way_once(monkeypatch):
    monkeypatch.setattr(cpu, "_WORK_PER_HELPER", 100)
    monkeypatch.setattr(cpu, "HERE", np.zeros(1, dtype=np.int64))
    x = np.arange(2000.0).reshape(1000, 2)
    twice = Kernel(TWICE.program, backend=Cpu(threads=2)).fast(handed_on)
    assert twice(x) == "handed on" and twice(x[:10]).shape == (10, 2)
    assert (Kernel(TWICE.program, backend=Cpu(threads=1)).fast(handed_on)(x) == 2 * x).all()
    assert (Kernel(TWICE.program, backend=Cpu(threads=2))._slow(x) == 2 * x).all()
    cpu.HERE[0] = team.HERE[0]
    assert (twice(x) == 2 * x).all()


@short_way
def test_what_the_long_way_raises_comes_through():
    def other(*arguments):
        raise KeyError("no")

    fast = TWICE.fast(other)
    with pytest.raises(KeyError, match="no"):
        fast(1)
    assert (fast(np.ones(2)) == 2).all()


def test_results_are_fresh_arrays():
    x = np.ones(2)
    first, second = TWICE(x), TWICE(x)
    assert not np.shares_memory(first, second) and not np.shares_memory(first, x)
    assert first.flags.owndata and first.flags.writeable
    first[:] = 0
    assert (second == 2).all() and (TWICE(x) == 2).all()
    same = hinge.compile(lambda x: x, x=(2,))
    assert not np.shares_memory(same(x), x)


@short_way
def test_a_function_keeps_its_code_and_a_kernel_is_let_go():
    kernel = hinge.compile(lambda x: x + 0.125, x=(1,))
    alone, gone = kernel.fast(print), weakref.ref(kernel)
    assert kernel.call(np.ones(1)) == 1.125
    del kernel
    gc.collect()
    assert gone() is None and alone(np.ones(1)) == 1.125


def test_nothing_leaks():
    arguments = sample(())
    strict = Kernel(LAW.program, strict=True)
    bad = [arguments[0], np.array([np.nan, 0, 0]), arguments[2]]
    pair, many = LAW.fast(handed_on, Pair), sample((3,))
    twice, room, out = TWICE.fast(handed_on), np.zeros((3, 2)), np.zeros((3, 2))
    outs, single_outs, wrong = law_out((3,)), tuple(law_out(())), (np.zeros((3, 2)), None)

    def calls(n):
        for _ in range(n):
            LAW.call(*arguments)
            pair(*arguments)
            twice(room, out=out)
            LAW.call(*many)
            pair(*many, out=outs)
            pair(*arguments, out=single_outs)
            pair(*many, out=wrong)
        for _ in range(n // 10):
            LAW(*map(list, arguments[:2]), 1.0)
            strict.call(*bad)
            with pytest.raises(ArgumentError):
                LAW.call(1)

    calls(200)
    gc.collect()
    watched = [*arguments, *many, room, out, outs, *outs, single_outs, *single_outs, wrong[0]]
    exact = len(watched)
    watched += [Pair, tuple, None, np.ndarray, np.dtype(float)]
    counts = [sys.getrefcount(a) for a in watched]
    tracemalloc.start()
    calls(200)
    gc.collect()
    grown = []
    for _ in range(3):
        before = tracemalloc.get_traced_memory()[0]
        calls(4_000)
        gc.collect()
        grown.append(tracemalloc.get_traced_memory()[0] - before)
    tracemalloc.stop()
    # threads of other tests may take memory meanwhile; a leak grows every time
    assert min(grown) < 20_000
    after = [sys.getrefcount(a) for a in watched]
    assert all(abs(a - b) < 100 for a, b in zip(after, counts, strict=True))
    assert after[:exact] == counts[:exact]


@pytest.mark.parametrize("lead", [(), (5,)])
def test_without_the_short_way_all_is_the_same(lead, monkeypatch):
    monkeypatch.setattr(cpu, "fast_calls_work", lambda: False)
    kernel = Kernel(LAW.program, "law")
    assert kernel.call == kernel._slow
    arguments = sample(lead)
    check(kernel(*arguments), arguments)


def test_the_short_way_knows_its_python(monkeypatch):
    usual = not sysconfig.get_config_var("Py_GIL_DISABLED") and sys.maxsize > 2**32
    assert engine.fast_calls_work() == (sys.implementation.name == "cpython" and usual)
    # free threads, or all objects in a list
    monkeypatch.setattr(engine, "_HEAD", 32)
    assert not engine.fast_calls_work()


# numbers that are not finite


@short_way
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_strict_kernel_spoils_a_bad_sample_alone(bad, dtype):
    program = trace(lambda x, y: (x / y, 3.0, x[:1], x[0] * 0), [(2,), (2,)])
    kernel = Kernel(program, dtype=dtype, strict=True)
    for n, at in ((1, 0), (9, 8), (40, 13)):
        x, y = np.ones((n, 2)), np.full((n, 2), 2.0)
        x[at, 1] = bad
        for part in kernel(x, y):
            assert np.isnan(part[at]).all() and np.isfinite(np.delete(part, at, axis=0)).all()
        # also where nothing is wrong with the arguments
        y[at - 1, 0] = 0
        assert np.isnan(kernel(x, y)[1][at - 1])
    told = kernel.fast(lambda *a: "handed on")
    assert told(np.array([1, bad], dtype), np.ones(2, dtype)) == "handed on"
    assert told(np.ones(2, dtype), np.zeros(2, dtype)) == "handed on"
    assert told(np.ones(2, dtype), np.ones(2, dtype))[1] == 3


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_large_numbers_are_finite_though_their_sum_is_not(dtype):
    huge = np.finfo(dtype).max
    kernel = Kernel(trace(lambda x: (x, -x), [(3,)]), dtype=dtype, strict=True)
    x = np.ones((20, 3), dtype)
    x[4] = huge
    for part in kernel(x):
        assert np.array_equal(np.abs(part), x)
    x[5, 2] = np.nan
    for part in kernel(x):
        assert np.isnan(part[5]).all() and np.array_equal(np.abs(part[4]), x[4])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_beside_a_bad_sample_not_even_the_sign_of_a_zero_changes(dtype):
    program = trace(lambda x: -x, [(3,)])
    kernel, x = Kernel(program, dtype=dtype, strict=True), np.zeros((9, 3), dtype)
    before = kernel(x)
    x[4, 1] = np.nan
    now = kernel(x)
    assert np.isnan(now[4]).all() and np.signbit(before).all()
    assert_same_bits(np.delete(now, 4, 0), np.delete(before, 4, 0))
    scan = Scan(program, states=1, recorded=(0,))
    rows = Rollout(scan, {"x": (3,)}, 1, dtype=dtype, strict=True)(np.zeros(3), steps=3)
    assert np.signbit(rows).all(axis=1).tolist() == [True, False, True]


def test_other_kernels_leave_numbers_alone():
    x = np.array([[1.0, np.inf], [np.nan, 2.0]])
    assert np.array_equal(TWICE(x), 2 * x, equal_nan=True)


# what a kernel tells


@short_way
def test_a_kernel_tells_what_it_is():
    assert LAW.ops == (11, 8, 0, 1, 0) and LAW.names == ("A", "x", "s")
    assert Kernel(LAW.program).names == ("argument 1", "argument 2", "argument 3")
    assert "define void @run" in LAW.source() and "define ptr @one" in LAW.source("llvm")
    assert "void law(" in LAW.source("c")


def test_long_compilations_are_told_on_a_terminal(monkeypatch):
    screen, slow = io.StringIO(), engine.compile_texts
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    monkeypatch.setattr(cpu, "compile_texts", lambda *a: (time.sleep(0.1), slow(*a))[1])
    for terminal, shape in ((False, (3,)), (True, (4,))):
        screen.isatty = lambda terminal=terminal: terminal
        assert hinge.compile(lambda x: 4.25 * x, x=shape).ops.multiplications == shape[0]
        assert ("compiling <lambda> (4 operations) … 0 s" in screen.getvalue()) == terminal
    assert "(3" not in screen.getvalue() and screen.getvalue().endswith("\r\x1b[K")
    assert not progress._SCREEN.locked()


def test_one_thing_at_a_time_is_on_the_terminal(monkeypatch):
    screen = io.StringIO()
    screen.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    with progress.during("outer"):
        time.sleep(0.1)
        with progress.during("inner"):
            time.sleep(0.1)
        assert list(progress.progress(range(3), "bar")) == [0, 1, 2]
    said = screen.getvalue()
    assert "outer" in said and "inner" not in said and "bar" not in said
    with pytest.raises(ZeroDivisionError), progress.during("failing"):
        raise ZeroDivisionError
    assert not progress._SCREEN.locked()
