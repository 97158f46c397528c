"""Studies in this process: points, reductions, troubles."""

from fractions import Fraction

import numpy as np
import pytest

import hinge
from hinge import cluster, zoo
from hinge.cluster.reductions import Block

dask = pytest.importorskip("dask", reason=".ci/frameworks has Dask")

POINTS = cluster.samples(3001, seed=7, a=(-1.0, 2.0), b=([0.0, 1.0], [1.0, 5.0]))


def wide(a, b):
    """Numbers of all sizes, with signs."""
    return a * 10.0 ** (20 * b[:, 0] - 10), b


@pytest.fixture(autouse=True)
def here():
    with dask.config.set(scheduler="synchronous"):
        yield


def studied(what, points, reduce, **settings):
    return cluster.study(what, points, reduce, **settings).compute()


def test_points_do_not_depend_on_their_blocks():
    whole = POINTS.block(0, 3001)
    assert whole["a"].shape == (3001,) and whole["b"].shape == (3001, 2)
    for begin, end in ((0, 1), (1023, 1025), (2000, 3001)):
        for name, x in POINTS.block(begin, end).items():
            np.testing.assert_array_equal(x, whole[name][begin:end])
    assert not np.array_equal(whole["a"], cluster.samples(3001, a=(-1.0, 2.0)).block(0, 3001)["a"])
    assert whole["b"][:, 1].min() > 1 and whole["b"][:, 1].max() < 5
    drawn = cluster.samples(10, x=lambda rng, n: rng.normal(size=(n, 3))).block(2, 9)["x"]
    assert drawn.shape == (7, 3)


def test_a_grid_is_every_combination():
    grid = cluster.grid(a=[1, 2, 3], start=np.arange(8.0).reshape(4, 2))
    assert len(grid) == 12 and grid.shape == (3, 4)
    found = grid.block(0, 12)
    np.testing.assert_array_equal(found["a"].reshape(3, 4)[:, 1], [1, 2, 3])
    np.testing.assert_array_equal(found["start"][:4], np.arange(8.0).reshape(4, 2))
    np.testing.assert_array_equal(grid.block(5, 7)["start"], found["start"][5:7])


def test_reductions_are_what_one_array_gives():
    edges = [-np.inf, -1.0, 0.0, 1.0, np.inf]
    reduce = {
        "total": cluster.total(0),
        "mean": cluster.mean(1),
        "least": cluster.least(1),
        "most": cluster.most(lambda x, b: b),
        "lowest": cluster.lowest(0),
        "highest": cluster.highest(0),
        "counts": cluster.histogram(edges, 0),
        "all": cluster.collected(0),
    }
    a, b = POINTS.block(0, 3001).values()
    x, _ = wide(a, b)
    exact = [float(sum(map(Fraction, column))) for column in (x, *b.T)]
    means = [float(sum(map(Fraction, column)) / 3001) for column in b.T]
    for size in (2, 100, 1000, 3000, 4000):
        found = studied(wide, POINTS, reduce, size=size)
        assert found["total"] == exact[0] and found["mean"].tolist() == means
        np.testing.assert_array_equal(found["least"], b.min(axis=0))
        np.testing.assert_array_equal(found["most"], b.max(axis=0))
        for name, i in (("lowest", x.argmin()), ("highest", x.argmax())):
            assert found[name][:2] == (x[i], i) and found[name].point["a"] == a[i]
        assert found["counts"].tolist() == np.histogram(x, edges)[0].tolist()
        np.testing.assert_array_equal(found["all"], x)
        assert found.count == 3001 and not found.troubles


@pytest.mark.parametrize("shape", [(50,), (50, 2), (1,)])
def test_sums_are_rounded_once(shape):
    """From the least number that there is to the largest, and where all but rounding cancels."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=shape) * 2.0 ** rng.integers(-1074, 1000, shape)
    x[0], x[-1] = 5e-324, -1.7e308
    sums = cluster.total()
    state = sums.start(Block(x, np.arange(len(x)), {}))
    other = sums.start(Block(-x[:-1], np.arange(len(x) - 1), {})) if len(x) > 1 else None
    flat = x.reshape(len(x), -1).T
    expected = [float(sum(map(Fraction, column))) for column in flat]
    np.testing.assert_array_equal(np.ravel(sums.finish(state)), expected)
    if other is not None:
        np.testing.assert_array_equal(sums.finish(sums.combine(state, other)), x[-1])


def test_functions_that_write_see_what_is_there():
    """Of a study, its settings and its reductions."""

    def square(a, b, gain):
        a *= gain
        gain *= 2.0
        return a, b

    def doubled(a, b):
        a *= 2.0
        return a

    reduce = {"twice": cluster.mean(doubled), "once": cluster.mean(0), "low": cluster.lowest(0)}
    found = studied(square, POINTS, reduce, gain=np.array(3.0), size=700)
    a = POINTS.block(0, len(POINTS))["a"]
    assert abs(found["once"] - 3 * a.mean()) < 1e-12
    assert found["twice"] == 2 * found["once"]
    assert found["low"].point["a"] == a.min() and found["low"].value == 3 * a.min()


def test_any_associative_reduction():
    """Those in which order matters have the earlier samples first."""
    words = cluster.Reduction(
        lambda block: "".join(chr(65 + int(n) % 26) for n in block.numbers), str.__add__, str.lower
    )
    grid = cluster.grid(x=np.arange(30.0))
    found = studied(lambda x: x, grid, {"word": words}, size=4)
    assert found["word"] == "abcdefghijklmnopqrstuvwxyzabcd"


def test_a_method_and_a_kernel_over_a_grid():
    arm = zoo.arm(2)
    grid = cluster.grid(q=np.linspace(-1, 1, 26).reshape(13, 2), qd=np.eye(2))
    found = studied(arm.bias_forces, grid, {"all": cluster.collected()}, size=5)
    given = grid.block(0, 26)
    np.testing.assert_array_equal(found["all"], arm.bias_forces(given["q"], given["qd"]))
    kernel = hinge.compile(lambda x, k: k * x, x=(), k=())
    found = studied(kernel, cluster.grid(x=[1.0, 2.0, 3.0]), {"sum": cluster.total()}, k=2.0)
    assert found["sum"] == 12.0
    alone = studied(kernel, cluster.grid(x=[3.0]), {"sum": cluster.total(0)}, k=2.0)
    assert alone["sum"] == 6.0


def test_what_has_no_answer_is_left_out_and_named():
    def partly(x):
        if (x == 77).any():
            raise RuntimeError("it broke")
        return {"y": np.where(np.isin(x, (12, 40)), np.nan, x), "z": x > 5}

    x = np.arange(100.0)
    x[50] = np.inf
    reduce = {"sum": cluster.total("y"), "z": cluster.total("z"), "all": cluster.collected("y")}
    found = studied(partly, cluster.grid(x=x), reduce, size=10)
    gone = [12, 40, 50, *range(70, 80)]
    assert found.count == 100 - len(gone)
    left = np.delete(np.arange(100.0), gone)
    assert found["sum"] == left.sum() and found["z"] == (left > 5).sum()
    assert np.flatnonzero(~np.isfinite(found["all"])).tolist() == gone
    assert [str(t).partition(":")[0] for t in found.troubles] == [
        "block 1, sample 12",
        "block 4, sample 40",
        "block 5, sample 50",
        "block 7, 10 samples from 70 on",
    ]
    assert "x not finite" in found.troubles[2].why and "it broke" in found.troubles[3].why
    none = studied(lambda x: x * np.nan, cluster.grid(x=x), {"mean": cluster.mean()})
    assert none["mean"] is None and none.count == 0


WRONG = [
    ({"reduce": {"m": np.mean}}, r"reduce\['m'\] is <function mean"),
    ({"x": 1.0}, "x is both of the points and a setting"),
    ({"size": 1}, "size is 1; expected a whole number above 1"),
    ({"reduce": {"m": cluster.mean(of=3)}}, r"m: of=3 is no result; expected one of \[0\]"),
    ({"what": lambda x: (x, x)}, r"several results \(0 … 1\); say which by of="),
    ({"what": lambda x: {"a": x, "b": x}}, r"several results \(\['a', 'b'\]\)"),
    ({"what": lambda x: x.sum()}, r"it has shape \(\) and dtype float64; expected real numbers"),
    ({"reduce": {"m": cluster.lowest()}, "what": lambda x: np.ones((2, 2))}, "one number per samp"),
]


@pytest.mark.parametrize(("wrong", "said"), WRONG)
def test_mistakes_are_told_before_anything_is_sent_out(wrong, said):
    right = {"what": lambda x: x, "points": cluster.grid(x=[1.0, 2.0, 3.0])}
    right["reduce"] = {"m": cluster.mean()}
    with pytest.raises(hinge.ArgumentError, match=said):
        cluster.study(**{**right, **wrong})


def test_wrong_points_and_edges_are_refused():
    for make, said in (
        (lambda: cluster.grid(), "nothing is named"),
        (lambda: cluster.grid(x=3.0), "x is 3.0; expected real numbers in a list"),
        (lambda: cluster.samples(10, x=(2.0, 1.0)), r"x is \(2.0, 1.0\); expected a pair"),
        (lambda: cluster.samples(10, x=3.0), "x is 3.0; expected a pair"),
        (lambda: cluster.samples(0, x=(0, 1)), "count is 0"),
        (lambda: cluster.histogram([1.0, 0.0]), "expected two numbers or more, rising"),
    ):
        with pytest.raises(hinge.ArgumentError, match=said):
            make()
