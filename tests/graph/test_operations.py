"""The table of operations: a row is all that a new operation needs."""

import math

import numpy as np
import pytest

from hinge.functions.derivatives import jacobian
from hinge.graph.interpret import interpret
from hinge.graph.operations import ATOM, OPERATIONS, PRODUCT, SUM, InC, Operation, Operations
from hinge.graph.program import trace
from hinge.runtime.kernel import Kernel
from hinge.runtime.symbols import symbols
from mechanisms import EPS
from with_c import Compiled, both, compiled

CUBE = Operation(
    value=lambda a: a * a * a,
    numpy=lambda a: a * a * a,
    slopes=(lambda n: 3 * n.args[0] * n.args[0],),
    c=InC("{0} * {0} * {0}", (ATOM,), PRODUCT),
    llvm=("fmul {t} {0}, {0}", "fmul {t} {last}, {0}"),
    cost="multiplications",
)
# by a function of the C library
CBRT = Operation(
    value=math.cbrt,
    numpy=np.cbrt,
    slopes=(lambda n: 1 / (3 * n * n),),
    c=InC("cbrt{f}({0})", (SUM,), ATOM),
    llvm=("call {t} @cbrt_{x}({t} {0})",),
)
# by an intrinsic of LLVM
CEIL = Operation(
    value=lambda a: float(math.ceil(a)),
    numpy=np.ceil,
    slopes=(None,),
    c=InC("ceil{f}({0})", (SUM,), ATOM),
    llvm=("call {t} @llvm.ceil.{x}({t} {0})",),
)
NEW = {"cube": CUBE, "cbrt": CBRT, "ceil": CEIL}


@pytest.fixture(params=NEW)
def added(request, monkeypatch):
    """The name of an operation that is a row and nothing else."""
    monkeypatch.setitem(OPERATIONS, request.param, NEW[request.param])
    symbols.cache_clear()
    yield request.param
    symbols.cache_clear()


def test_a_row_is_all_that_an_operation_needs(added):
    """Folding, derivatives, interpreter, vectors, one sample; in both precisions."""
    row = NEW[added]

    def fn(x, y):
        node = x.graph.make(added, x + y)
        assert x.graph.make(added, 0.75).value == row.value(0.75)
        return node * y

    program = trace(fn, [(), ()])
    assert sum(program.ops) == 3 and program.ops.multiplications == 1 + (added == "cube")
    rng = np.random.default_rng(0)
    for dtype in (np.float64, np.float32):
        x, y = rng.uniform(-0.7, 0.7, size=(2, 19)).astype(dtype)
        (expected,) = interpret(program, [x, y])
        np.testing.assert_allclose(expected, row.numpy(x + y) * y, rtol=4 * np.finfo(dtype).eps)
        kernel = Kernel(program, dtype=dtype)
        bound = 8 * np.finfo(dtype).eps
        np.testing.assert_allclose(kernel(x, y), expected, rtol=bound)
        np.testing.assert_allclose(kernel.call(x[0], y[0]), expected[0], rtol=bound)


def test_a_row_has_its_derivative(added):
    row = NEW[added]

    def fn(x):
        return x.graph.make(added, 2 * x)

    for x in (-0.3, 0.4):
        slope = {"cube": 3 * (2 * x) ** 2, "cbrt": math.cbrt(2 * x) ** -2 / 3, "ceil": 0.0}[added]
        np.testing.assert_allclose(jacobian(fn)(x), 2 * slope, rtol=8 * EPS)
    assert row.arity == 1


@both
@compiled
def test_a_row_is_an_expression_of_c(added, scalar, tmp_path):
    program = trace(lambda x: x[0].graph.make(added, x[0] - x[1]) / x[1], [(2,)], "f")
    in_c = Compiled(program, scalar, tmp_path)
    x = np.array([0.4, 0.9], in_c.dtype)
    (expected,) = interpret(program, [x])
    np.testing.assert_allclose(in_c(x)[0], expected, rtol=4 * np.finfo(in_c.dtype).eps)
    text = in_c.source
    assert ("#include <math.h>" in text) == (added != "cube")
    # what stands twice in an expression is computed once
    assert text.count("in0[0]") == 1


def test_every_row_is_whole():
    for op, row in OPERATIONS.items():
        assert isinstance(row.value(*[0.5] * row.arity), float)
        assert len(row.c.inner) == row.arity and all(row.c.said(i) for i in range(row.arity))
        assert row.llvm or op in ("sin", "cos")
        assert row.cost == "" or row.cost in Operations._fields
