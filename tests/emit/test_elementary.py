"""Elementary functions in machine code: errors in units of the last place, and edges."""

import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from emit.everything import EDGES, TARGETS, both_dtypes
from emit.everything import target as by_name
from hinge.emit.llvm.elementary import ELEMENTARY
from hinge.emit.llvm.flavor import Flavor
from hinge.emit.llvm.library import definitions
from hinge.graph.operations import OPERATIONS, library_functions
from hinge.graph.program import trace
from hinge.runtime.cpu import Cpu
from hinge.runtime.kernel import Kernel

sys.path.insert(0, str(Path(__file__).parents[2]))
accuracy = pytest.importorskip("bench.accuracy_functions")

# of sine and cosine where the angle is not reduced in one step
MOST = 2.0
ANY = (
    *EDGES,
    0.5,
    3.0,
    -3.0,
    710.3,
    -745.3,
    5e-324,
    -1e-310,
    1e-17,
    -1e200,
    1.7e308,
    2.0**53,
    1e22,
)


def kernel(op, dtype, target):
    program = trace(lambda *x: x[0].graph.make(op, *x), [()] * OPERATIONS[op].arity, op)
    return Kernel(program, dtype=dtype, backend=Cpu(1, by_name(target)))


OPS = {"arcsin": "asin", "arccos": "acos", "arctan2": "atan2", "power": "pow"}
OPS |= {"arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh"}


@both_dtypes
@pytest.mark.parametrize("target", TARGETS)
def test_errors_are_below_two_units_in_the_last_place(dtype, target):
    for name in accuracy.FUNCTIONS:
        compiled = kernel(OPS.get(name, name), dtype, target)
        assert accuracy.worst(name, dtype, 100, compiled) < MOST, name


@both_dtypes
@pytest.mark.parametrize("op", ELEMENTARY)
def test_edges_are_those_of_numpy(op, dtype):
    with np.errstate(all="ignore"):
        x = np.array([*product(ANY, repeat=OPERATIONS[op].arity)]).astype(dtype)
        wanted = OPERATIONS[op].numpy(*x.T)
        got = kernel(op, dtype, "host")(*x.T)
        np.testing.assert_array_equal(np.isnan(got), np.isnan(wanted))
        number = ~np.isnan(wanted)
        got, wanted, x = got[number], wanted[number], x[number]
        np.testing.assert_array_equal(np.signbit(got), np.signbit(wanted))
        finite = np.isfinite(wanted)
        np.testing.assert_array_equal(got[~finite], wanted[~finite])
        apart = np.abs(got[finite] - wanted[finite]) / np.spacing(np.abs(wanted[finite]))
    assert apart.max(initial=0) <= (0 if op == "fmod" else MOST)


@both_dtypes
@pytest.mark.parametrize("target", TARGETS)
def test_the_rest_of_a_quotient_is_exact_whatever_the_sizes(dtype, target):
    rng, n = np.random.default_rng(0), 5000
    with np.errstate(all="ignore"):
        x, y = (2.0 ** rng.uniform(-1074, 1023, (2, n))).astype(dtype)
        np.testing.assert_array_equal(kernel("fmod", dtype, target)(x, y), np.fmod(x, y))


def test_modules_have_the_functions_that_they_call_and_no_others():
    f = Flavor(8, "double", fused=True)
    assert definitions("fadd double %x, %y", f) == ""
    text = definitions("call <8 x double> @asin_v8f64(<8 x double> %x)", f)
    assert text.count("define ") == 2 and "@atan2_v8f64(" in text
    assert set(ELEMENTARY) <= {*library_functions()}
