"""Sines and angles on a card, as the same text computes them here: any argument, to 2 ulp."""

import ctypes
from itertools import product

import mpmath
import numpy as np
import pytest

from emit.everything import EDGES, both_dtypes
from emit.on_cpu import OnCpu
from hinge.emit.llvm.builder import Function
from hinge.emit.llvm.flavor import Flavor
from hinge.emit.llvm.math import sincos
from hinge.emit.ptx.launch import HEAD
from hinge.emit.ptx.math import device_functions


class Here:
    """Sine and cosine, and atan2, of one number."""

    def __init__(self, dtype):
        self.dtype = dtype
        scalar = "double" if dtype == np.float64 else "float"
        kind = ctypes.c_double if dtype == np.float64 else ctypes.c_float
        f = Flavor(1, scalar, fused=True)
        both = Function("both", "void", f"{f.type} x", "ptr out", linkage="")
        x, out = both.parameters
        for i, value in enumerate(sincos(both, f, x)):
            both.put(value, out, i)
        angle = Function("angle", f.type, f"{f.type} y", f"{f.type} x", linkage="")
        angle.ret(angle.call(f"atan2_{f.name}", *angle.parameters, result=f.type))
        text = both.ret().text() + angle.text()
        text = HEAD + device_functions(f, text) + text
        self.module = OnCpu(text)
        self._both = self.module.function("both", None, kind, ctypes.c_void_p)
        self.atan2 = self.module.function("angle", kind, kind, kind)

    def both(self, x):
        out = np.empty(2, self.dtype)
        self._both(x, out.ctypes.data)
        return out


def wrong(got, exact, dtype):
    """How many units in the last place it is from what is exact."""
    unit = np.spacing(np.abs(dtype(float(exact))))
    return float(abs(mpmath.mpf(float(got)) - exact) / mpmath.mpf(float(unit)))


def angles(dtype):
    """Of every size, and next to multiples of π/2, where all but the last bits cancel."""
    rng, top = np.random.default_rng(0), np.finfo(dtype).maxexp - 1
    some = rng.uniform(1, 2, 400) * 2.0 ** rng.uniform(-30, top, 400)
    turns = [*range(1, 40), *(10 ** rng.uniform(1, 14, 200)).astype(int).tolist()]
    near = [float(mpmath.pi / 2 * k) for k in turns]
    # the double that is nearest to a multiple of π/2 (Kahan; Muller, Elementary Functions, 2006)
    worst = [6381956970095103.0 * 2.0**797] if dtype == np.float64 else []
    x = np.array([*some, *near, *worst, np.finfo(dtype).max]).astype(dtype)
    return np.concatenate([x, -x])


@both_dtypes
def test_sines_of_any_angle_are_right_to_two_ulp(dtype):
    here = Here(dtype)
    with mpmath.workprec(1300):
        for x in angles(dtype):
            exact = mpmath.mpf(float(x))
            for got, function in zip(here.both(x), (mpmath.sin, mpmath.cos), strict=True):
                assert wrong(got, function(exact), dtype) < 2, (x, function.__name__)


@both_dtypes
@pytest.mark.parametrize("x", [np.inf, -np.inf, np.nan])
def test_what_is_not_finite_has_no_sine(x, dtype):
    assert np.isnan(Here(dtype).both(x)).all()


@both_dtypes
def test_atan2_is_right_to_two_ulp(dtype):
    here, rng = Here(dtype), np.random.default_rng(1)
    pairs = rng.normal(size=(500, 2)) * 10.0 ** rng.uniform(-6, 6, (500, 2))
    with mpmath.workprec(200):
        for y, x in pairs.astype(dtype):
            exact = mpmath.atan2(mpmath.mpf(float(y)), mpmath.mpf(float(x)))
            assert wrong(here.atan2(y, x), exact, dtype) < 2


@both_dtypes
def test_atan2_at_the_edges_is_that_of_c(dtype):
    here = Here(dtype)
    with np.errstate(all="ignore"):
        for y, x in product(np.array(EDGES).astype(dtype), repeat=2):
            got, wanted = here.atan2(y, x), np.arctan2(y, x)
            np.testing.assert_allclose(got, wanted, rtol=2 * np.finfo(dtype).eps)
            assert np.isnan(wanted) or np.signbit(got) == np.signbit(wanted)
