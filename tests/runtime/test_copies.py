"""Views, whole numbers and lists take the short way, and give what arrays give."""

import sys

import numpy as np
import pytest

import hinge
from hinge import ArgumentError, zoo

RNG = np.random.default_rng(3)


def views(x):
    """The numbers of an array in other memory: apart, backwards, transposed, in a block."""
    wide = np.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)
    wide[..., ::2] = x
    yield wide[..., ::2]
    yield np.ascontiguousarray(x[..., ::-1])[..., ::-1]
    yield np.asfortranarray(x)
    block = np.zeros(tuple(n + 2 for n in x.shape), x.dtype)
    inside = tuple(slice(1, n + 1) for n in x.shape)
    block[inside] = x
    yield block[inside]


def refuse(*arguments, **named):
    raise AssertionError(f"not taken: {arguments}")


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("lead", [(), (5,)])
def test_views_are_copied_by_machine_code(dtype, lead):
    kernel = hinge.compile(lambda A, x: A @ x, dtype=dtype, A=(3, 3), x=(3,))
    fast = kernel.fast(refuse)
    A, x = RNG.normal(size=(*lead, 3, 3)).astype(dtype), RNG.normal(size=(*lead, 3)).astype(dtype)
    expected = fast(A, x)
    for B in views(A):
        for y in views(x):
            assert np.array_equal(fast(B, y), expected)
            out = np.zeros_like(expected)
            assert fast(B, y, out=out) is out and np.array_equal(out, expected)
    if lead == ():
        still = np.broadcast_to(x[:1], (3,))
        assert np.array_equal(fast(A, still), fast(A, np.array(still)))


def test_lists_and_whole_numbers_are_copied_by_machine_code():
    kernel = hinge.compile(lambda A, x, t: t * (A @ x), A=(2, 2), x=(2,), t=())
    fast = kernel.fast(refuse)
    A, x = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([2.0, 3.0])
    expected = fast(A, x, np.array(2.0))
    for matrix in (A, A.tolist(), [[1, 2], [3, 4]], A.astype(int), [[np.float64(1), 2], [3.0, 4]]):
        for vector in (x, [2, 3], [2.0, 3], x.astype(int)):
            for t in (2, 2.0, np.float64(2), np.array(2.0)):
                assert np.array_equal(fast(matrix, vector, t), expected)
    batch = fast([A.tolist()] * 3, [[2, 3]] * 3, [2, 2, 2])
    assert np.array_equal(batch, [expected] * 3)


REFUSED = [["1.0", "2.0"], [None, 1.0], [True, False], [1j, 2.0], [[1.0], 2.0], [], [10**400, 1]]


@pytest.mark.parametrize("given", [*REFUSED, "12", None, (1.0, 2.0), np.array(["1", "2"])])
def test_what_is_no_list_of_numbers_is_left_to_others(given):
    """As before: some of it is refused there, some taken."""
    kernel = hinge.compile(lambda x: 2 * x, x=(2,))
    left = []
    fast = kernel.fast(lambda *x: left.append(x))
    fast(given)
    assert len(left) == 1 and left[0][0] is given


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_other_dtypes_and_large_arrays_are_left_to_others(dtype):
    kernel = hinge.compile(lambda x: 2 * x, dtype=dtype, x=(2,))
    other = np.float32 if dtype == "float64" else np.float64
    large = np.zeros((10_000, 4), dtype)[:, ::2]
    masked = np.ma.masked_array([1.0, 2.0], [True, False], dtype=dtype)
    for given in (np.zeros(4, other)[::2], np.zeros(2, other), large, masked, np.zeros(2, ">f8")):
        left = []
        kernel.fast(lambda *x, left=left: left.append(x))(given)
        assert len(left) == 1 and left[0][0] is given
    doubled = kernel(large)
    assert doubled.shape == (10_000, 2)


def test_methods_of_robots_take_them():
    """By place and by name, with messages about what was meant."""
    robot = zoo.arm(3)
    q, qd, qdd = RNG.normal(size=(3, 3))
    for _ in range(3):
        expected = robot.inverse_dynamics(q, qd, qdd)
    both = np.stack([q, qd, qdd], axis=1)
    assert np.array_equal(robot.inverse_dynamics(*both.T), expected)
    assert np.array_equal(robot.inverse_dynamics(q=q.tolist(), qd=qd, qdd=both[:, 2]), expected)
    many = RNG.normal(size=(8, 3, 3))
    expected = robot.inverse_dynamics(*(np.array(x) for x in many.transpose(1, 0, 2)))
    assert np.array_equal(robot.inverse_dynamics(*many.transpose(1, 0, 2)), expected)
    with pytest.raises(ArgumentError, match=r"q\[1\] is nan"):
        robot.inverse_dynamics([0.0, np.nan, 0.0], qd, qdd)
    with pytest.raises(ArgumentError, match=r"q has shape \(2,\)"):
        robot.inverse_dynamics([0.0, 1.0], qd, qdd)
    with pytest.raises(ArgumentError, match=r"q has shape \(2,\)"):
        robot.inverse_dynamics(np.zeros(4)[::2], qd, qdd)


def test_no_reference_is_lost_or_kept():
    kernel = hinge.compile(lambda x, y: x + y, x=(2,), y=(2,))
    wide, listed, bad = np.arange(4.0), [1.0, 2.0], [1.0, [2.0, 3.0]]
    view, dtype, number = wide[::2], np.dtype(float), listed[0]
    watched = (wide, view, listed, bad, dtype, number, kernel.call)
    kernel.call(view, listed)
    before = [sys.getrefcount(x) for x in watched]
    for _ in range(10_000):
        kernel.call(view, listed)
    for _ in range(1000):
        with pytest.raises(ArgumentError):
            kernel.call(view, bad)
    after = [sys.getrefcount(x) for x in watched]
    # a reference a call would be thousands; others hold the dtype too, now and then
    assert all(abs(a - b) <= 100 for a, b in zip(after, before, strict=True))
