"""Every function of `hinge.spatial`: batches, forms, float32, derivatives, frameworks, errors."""

import pickle

import numpy as np
import pytest

import hinge
from hinge import ArgumentError, SingularError
from hinge.spatial import se3, so3
from hinge.spatial.function import FUNCTIONS
from mechanisms import EPS
from spatial.elements import FORMS, NAMES, arguments, function, parts

EPS32 = float(np.finfo(np.float32).eps)


@pytest.mark.parametrize(("name", "form"), FORMS)
def test_batches_are_their_samples(name, form):
    """Any leading shape, broadcast arguments, lists, results into arrays that are there."""
    fn, many = function(name), arguments(name, form, (2, 3))
    results = parts(fn(*many))
    for i in np.ndindex(2, 3):
        one = parts(fn(*(x[i] for x in many)))
        again = parts(fn(*(x[i].tolist() for x in many)))
        for result, x, y in zip(results, one, again, strict=True):
            scale = 8 * EPS * max(1, np.abs(x).max())
            assert np.abs(result[i] - x).max() <= scale and np.abs(y - x).max() <= scale
    mixed = parts(fn(many[0], *(x[0, 0] for x in many[1:])))
    assert all(x.shape == y.shape for x, y in zip(mixed, results, strict=True))
    out = tuple(np.full_like(x, np.nan) for x in results)
    given = fn(*many, out=out if len(out) > 1 else out[0])
    for x, y, z in zip(results, out, parts(given), strict=True):
        assert np.array_equal(x, y) and y is z


@pytest.mark.parametrize(("name", "form"), FORMS)
def test_float32_is_right_to_its_rounding(name, form):
    fn, given = function(name), [x.astype(np.float32) for x in arguments(name, form)]
    found = parts(fn(*given))
    expected = parts(FUNCTIONS[name].plain([x.astype(float) for x in given]))
    for x, y in zip(found, expected, strict=True):
        assert x.dtype == np.float32
        assert np.abs(x - y).max() <= 40 * EPS32 * max(1, np.abs(y).max())


@pytest.mark.parametrize(("name", "form"), FORMS)
def test_derivatives_through_kernels_are_complex_steps(name, form):
    """The same names on traced scalars, and on complex numbers."""
    fn, given = function(name), arguments(name, form)
    weights = [np.random.default_rng(5).normal(size=x.shape) for x in parts(fn(*given))]

    def total(*arrays):
        return sum(np.sum(w * y) for w, y in zip(weights, parts(fn(*arrays)), strict=True))

    names = [f"x{i}" for i in range(len(given))]
    source = f"lambda {', '.join(names)}: total({', '.join(names)})"
    traced = eval(source, {"total": total})
    shapes = dict(zip(names, (x.shape for x in given), strict=True))
    slopes = hinge.compile(hinge.grad(traced, tuple(range(len(given)))), **shapes)(*given)
    value = hinge.compile(traced, **shapes)(*given)
    assert abs(value - total(*given)) <= 100 * EPS * (1 + abs(value))
    for k, slope in enumerate(slopes):
        for i in np.ndindex(given[k].shape):
            stepped = [x.astype(complex) for x in given]
            stepped[k][i] += 1e-30j
            expected = total(*stepped).imag / 1e-30
            assert abs(slope[i] - expected) <= 1e4 * EPS * (1 + abs(expected)), (name, k, i)


def test_a_batch_of_complex_or_traced_samples_goes_sample_by_sample():
    w = np.random.default_rng(1).normal(size=(4, 3))
    assert np.abs(so3.log(so3.exp(w.astype(complex))) - w).max() <= 20 * EPS
    axes, angles = so3.to_axis_angle(so3.exp(w.astype(complex)))
    assert np.abs(axes * angles[:, None] - w).max() <= 20 * EPS
    kernel = hinge.compile(lambda w: so3.log(so3.exp(w)), w=(4, 3))
    assert np.abs(kernel(w) - w).max() <= 20 * EPS


@pytest.mark.parametrize(("name", "form"), FORMS)
def test_casadi_takes_the_same_names(name, form):
    """SX by the operations themselves, MX by the kernel, with the same values and slopes."""
    casadi = pytest.importorskip("casadi")
    fn, given = function(name), arguments(name, form)
    for kind in (casadi.SX, casadi.MX):
        symbols = [kind.sym(f"x{i}", *x.shape) for i, x in enumerate(given)]
        results = parts(fn(*symbols))
        found = casadi.Function("f", symbols, list(results)).call([casadi.DM(x) for x in given])
        for x, y in zip(found, parts(fn(*given)), strict=True):
            x = x.full().reshape(y.shape)
            assert np.abs(x - y).max() <= 40 * EPS * max(1, np.abs(y).max())


@pytest.mark.parametrize("name", NAMES)
def test_functions_are_what_their_modules_have(name):
    """They pickle as names, and know their signature."""
    fn = function(name)
    assert pickle.loads(pickle.dumps(fn)) is fn
    assert fn.__doc__ and fn.__name__ == name.rpartition(".")[2]
    given = arguments(name, 0)
    named = dict(zip(FUNCTIONS[name].arguments, given, strict=True))
    for x, y in zip(parts(fn(**named)), parts(fn(*given)), strict=True):
        assert np.array_equal(x, y)


def test_transforms_are_poses():
    T = hinge.Transform.from_rpy((0.1, 0.2, 0.3), (1, 2, 3))
    assert np.array_equal(se3.log(T), se3.log(T.matrix))


def test_what_is_no_rotation_is_refused_or_nan():
    R = so3.random(0)
    with pytest.raises(ArgumentError, match="R is not a rotation matrix.*normalize gives"):
        so3.log(1.001 * R)
    with pytest.raises(ArgumentError, match="X is not a pose"):
        se3.log(np.vstack([se3.random(0)[:3], [0, 0, 0, 2]]))
    with pytest.raises(ArgumentError, match="a is a zero quaternion"):
        so3.compose(np.zeros(4), np.ones(4))
    with pytest.raises(ArgumentError, match=r"R has shape \(2, 2\); expected shape \(…, 3, 3\)"):
        so3.log(np.eye(2))
    with pytest.raises(ArgumentError, match="reflection|rotation matrix"):
        so3.log(-R)
    batch = so3.log(np.stack([R, 1.001 * R, -R]))
    assert np.isfinite(batch[0]).all() and np.isnan(batch[1:]).all()
    near = R.astype(np.float32)
    assert np.isfinite(so3.log(near)).all()


def test_what_has_no_answer_is_an_error():
    with pytest.raises(SingularError):
        so3.from_axis_angle(np.zeros(3), 1.0)
    with pytest.raises(SingularError):
        so3.normalize(np.diag([1.0, 1.0, -1.0]))
    with pytest.raises(ArgumentError, match=r"w\[1\] is nan"):
        so3.exp([0, np.nan, 0])


def test_out_is_for_floats():
    w = np.ones(3, dtype=complex)
    with pytest.raises(ArgumentError, match="out is for float64 and float32"):
        so3.exp(w, out=np.zeros((3, 3)))
    casadi = pytest.importorskip("casadi")
    with pytest.raises(ArgumentError, match="out is for results of NumPy"):
        so3.exp(casadi.SX.sym("w", 3), out=np.zeros((3, 3)))
    with pytest.raises(ArgumentError, match=r"w has shape \(2,\)"):
        so3.exp(np.ones(2, dtype=complex))


def test_kernels_by_name():
    kernel = hinge.spatial.kernel("se3.log", quaternion=True, dtype=np.float32)
    assert kernel.artifact.inputs == ((7,),) and kernel.dtype == np.float32
    assert "double" in hinge.spatial.kernel("so3.exp").source("c")
    with pytest.raises(ArgumentError, match="did you mean 'so3.log'"):
        hinge.spatial.kernel("so3.lgo")


def test_without_fast_calls_they_are_the_same(monkeypatch):
    """On a Python whose C interface lacks something, functions are Python's own."""
    from hinge.spatial import function as module

    monkeypatch.setattr(module, "fast_calls_work", lambda: False)
    made = module.GroupFunction(FUNCTIONS["so3.log"].fn, FUNCTIONS["so3.log"].arguments)
    R = so3.random(2)
    assert np.array_equal(made.call(R), so3.log(R)) and made.call.__name__ == "log"
