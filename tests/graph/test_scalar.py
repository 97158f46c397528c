"""Traced scalars: one node per value, folding that keeps the value, and what is refused."""

import math
import operator
import sys
from itertools import product

import numpy as np
import pytest

import hinge
from emit.everything import EDGES
from hinge import TraceError
from hinge.algebra.small import sign
from hinge.errors import TooLongError
from hinge.graph import scalar
from hinge.graph.interpret import interpret
from hinge.graph.operations import OPERATIONS
from hinge.graph.program import Program, trace
from hinge.graph.scalar import Graph
from mechanisms import EPS


def inputs(n):
    graph = Graph()
    return [graph.input() for _ in range(n)]


def text(node):
    """A node as text, all the way down."""
    if not node.args:
        return repr(node)
    return f"{node.op}({', '.join(text(a) for a in node.args)})"


def evaluated(fn, *numbers):
    """What the traced fn computes."""
    program = trace(fn, [()] * len(numbers))
    return interpret(program, [np.array(x, dtype=float) for x in numbers])[0]


# nodes


def test_equal_values_are_one_node():
    x, y = inputs(2)
    graph = x.graph
    assert x + y is y + x and x * y is y * x and np.sin(x) is np.sin(x)
    assert x - y is not y - x and x / y is not y / x
    assert hinge.minimum(x, y) is not hinge.minimum(y, x)
    assert graph.const(2) is graph.const(2.0) and graph.const(0.0) is graph.const(-0.0)
    assert math.copysign(1, Graph().const(-0.0).value) == 1
    count = graph.count
    assert (x + y) * np.sin(x) is np.sin(x) * (y + x) and graph.count == count + 1


def test_nodes_of_two_traces_do_not_mix():
    (x,), (y,) = inputs(1), inputs(1)
    assert math.isnan((x + y).value) and math.isnan((2.0 * (x - y)).value)
    with pytest.raises(TraceError, match="scalars of two traces met"):
        x.graph.check()


FAILING = {
    "of two traces": (lambda x: x, TraceError, "scalars of two traces met"),
    "too large for a float": (lambda x: 10**400, OverflowError, "int too large"),
}


@pytest.mark.parametrize("case", FAILING)
def test_a_product_that_fails_loses_no_reference(case):
    """NumPy's matrix product drops a reference to the entry before the one that fails."""
    wrong, kind, message = FAILING[case]
    (x, y), (stray,) = inputs(2), inputs(1)
    M = np.array([[x, 0.0], [wrong(stray), 0.0]], dtype=object)
    counts = []
    for _ in range(3):
        with pytest.raises(kind, match=message), x.graph.tracing():
            M @ np.array([y, y])
        counts.append(sys.getrefcount(x * y))
    assert len(set(counts)) == 1, counts


def test_a_failure_ends_the_trace_at_the_next_loop_of_numpy():
    done = []

    def fn(x):
        for i in range(100):
            x = x * x + 1.0
            done.append(i)
        return x

    with pytest.raises(TooLongError, match="fn has more than 50 operations"):
        trace(fn, [(3,)], "fn", most=50)
    assert len(done) < 10
    with pytest.raises(TooLongError, match="sum has more than 50 operations"):
        trace(lambda x: sum(np.sin(a) * b for a in x for b in x), [(20,)], "sum", most=50)


def test_what_comes_of_a_failure_is_not_what_is_said():
    (stray,) = inputs(1)
    with pytest.raises(TraceError, match="scalars of two traces met"):
        trace(lambda x: {}[x * stray], [()])


def test_nodes_of_an_interrupted_trace_stay():
    """Wherever an interrupt came, no node that lost a reference is freed."""
    before = len(scalar._INTERRUPTED)

    def fn(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trace(fn, [()])
    assert len(scalar._INTERRUPTED) == before + 1
    scalar._INTERRUPTED.pop()


def test_nodes_are_told_apart_in_print():
    x, y = inputs(2)
    assert repr(x + 0.5 * y).startswith("<add ") and repr(y) == "x1"
    assert repr(x.graph.const(0.5)) == "0.5"


# folding: what is traced, what it becomes, each also evaluated on numbers

FOLDED = [
    (lambda x, y: x + 0, "x0"),
    (lambda x, y: 0 + x, "x0"),
    (lambda x, y: x + -y, "sub(x0, x1)"),
    (lambda x, y: -x + y, "sub(x1, x0)"),
    (lambda x, y: x - 0, "x0"),
    (lambda x, y: 0 - x, "neg(x0)"),
    (lambda x, y: x - x, "0"),
    (lambda x, y: x - -y, "add(x0, x1)"),
    (lambda x, y: -x - y, "neg(add(x0, x1))"),
    (lambda x, y: operator.neg(-x), "x0"),  # noqa: B002
    (lambda x, y: +x, "x0"),
    (lambda x, y: -(x - y), "sub(x1, x0)"),
    (lambda x, y: x * 0, "0"),
    (lambda x, y: 0 * x, "0"),
    (lambda x, y: 1 * x, "x0"),
    (lambda x, y: x * 1, "x0"),
    (lambda x, y: -1 * x, "neg(x0)"),
    (lambda x, y: 2 * -x, "mul(x0, -2)"),
    (lambda x, y: 3 * (x * 2), "mul(x0, 6)"),
    (lambda x, y: (2 * x, 3 * (2 * np.sin(x)))[1], "mul(sin(x0), 6)"),
    (lambda x, y: 0.5 * (2 * x), "x0"),
    (lambda x, y: -x * y, "neg(mul(x0, x1))"),
    (lambda x, y: x * -y, "neg(mul(x0, x1))"),
    (lambda x, y: -x * -y, "mul(x0, x1)"),
    (lambda x, y: x / 4, "mul(x0, 0.25)"),
    (lambda x, y: x / 0.0, "mul(x0, inf)"),
    (lambda x, y: 1 / x, "div(1, x0)"),
    (lambda x, y: 3 / x, "mul(3, div(1, x0))"),
    (lambda x, y: 0 / x, "0"),
    (lambda x, y: x / y, "mul(x0, div(1, x1))"),
    (lambda x, y: x / -y, "neg(mul(x0, div(1, x1)))"),
    (lambda x, y: np.sin(-x), "neg(sin(x0))"),
    (lambda x, y: np.cos(-x), "cos(x0)"),
    (lambda x, y: hinge.where(x, y, y), "x1"),
    (lambda x, y: hinge.where(2.0, x, y), "x0"),
    (lambda x, y: hinge.where(0.0, x, y), "x1"),
    (lambda x, y: hinge.where(hinge.less(1, 2), x, y), "x0"),
]


@pytest.mark.parametrize(("fn", "expected"), FOLDED, ids=lambda p: p if type(p) is str else "")
def test_folding_keeps_the_value(fn, expected):
    x, y = inputs(2)
    assert text(fn(x, y)) == expected
    with np.errstate(divide="ignore"):
        for a, b in np.random.default_rng(1).normal(size=(5, 2)):
            assert_few_ulp(evaluated(fn, a, b), fn(a, b))


def assert_few_ulp(got, expected):
    np.testing.assert_allclose(got, expected, rtol=4 * EPS, atol=0, equal_nan=True)


@pytest.mark.parametrize("op", OPERATIONS)
def test_numbers_are_folded_as_they_would_be_computed(op):
    for numbers in product(EDGES, repeat=OPERATIONS[op].arity):
        graph = Graph()
        folded = graph.make(op, *numbers)
        arguments = [graph.input() for _ in numbers]
        node = graph.intern(op, tuple(arguments))
        program = Program(op, ((),) * len(numbers), ((),), (node,))
        # a constant has one zero
        (expected,) = interpret(program, [np.array(x + 0.0) for x in numbers])
        assert folded.op == "const"
        assert_few_ulp(folded.value, expected)


@pytest.mark.parametrize("n", range(1, 10))
def test_whole_powers_are_products(n):
    assert_few_ulp(evaluated(lambda x: x**n, 1.25), 1.25**n)
    assert trace(lambda x: x**n, [()]).ops.multiplications <= 2 * math.log2(n)


# NumPy


def test_arrays_of_nodes_are_numpy_arrays():
    def fn(A, x):
        c = np.cross(x, A[0])
        parts = [A @ x, np.sin(x), np.cos(x) * x[0], np.sqrt(x * x), abs(c), c / x[1], x**3]
        scalars = [np.float64(2) - x[0], x[1] / np.float32(4), np.int64(3) * x[2], x.sum(), x @ x]
        return np.concatenate([*parts, np.outer(x, x)[1], np.vdot(x, x) + A.T @ c, scalars])

    rng = np.random.default_rng(2)
    A, x = rng.normal(size=(3, 3)), rng.normal(size=3)
    program = trace(fn, [(3, 3), (3,)])
    np.testing.assert_allclose(interpret(program, [A, x])[0], fn(A, x), rtol=10 * EPS)
    ones = trace(lambda x: np.eye(3) @ x + np.zeros(3), [(3,)])
    assert sum(ones.ops) == 0


@pytest.mark.parametrize("op", [operator.add, operator.sub, operator.mul, operator.truediv])
def test_arithmetic_with_numbers_leaves_no_mark_of_rounding_units(op):
    """NumPy looks at those marks after an operation on arrays, and would warn of what is none."""
    x, y = inputs(2)
    nodes, numbers = np.array([x, x * y]), np.array([0.0, 2.0], dtype=object)
    with np.errstate(all="raise"):
        # comparisons are compiled otherwise by Python once they were met often
        for _ in range(100):
            op(numbers, nodes), op(nodes, numbers)


def test_the_sign_is_one_at_zero():
    assert [float(evaluated(sign, x)) for x in (-3.0, 0.0, 2.0)] == [-1, 1, 1]


FUNCTIONS = {
    "where": (hinge.where, lambda c, a, b: np.where(c != 0, a, b), 3),
    "less": (hinge.less, lambda a, b: np.where(a < b, 1.0, 0.0), 2),
    "minimum": (hinge.minimum, np.minimum, 2),
    "maximum": (hinge.maximum, np.maximum, 2),
    "atan2": (hinge.atan2, np.arctan2, 2),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_take_scalars_arrays_and_numbers(name):
    fn, expected, count = FUNCTIONS[name]
    values = [np.round(v) for v in 2 * np.random.default_rng(3).normal(size=(count, 4))]
    plain = [float(v[0]) for v in values]
    assert_few_ulp(fn(*plain), expected(*plain))
    assert isinstance(fn(*plain), float)
    assert_few_ulp(fn(*values), expected(*values))
    assert_few_ulp(evaluated(fn, *plain), expected(*plain))
    assert_few_ulp(evaluated(lambda *x: fn(*map(np.array, x)), *plain), expected(*plain))
    program = trace(fn, [(4,)] * count)
    assert_few_ulp(interpret(program, values)[0], expected(*values))
    # a column against a row, one of them numbers
    column = values[0][:, None]
    program = trace(lambda *rest: fn(column, *rest), [(4,)] * (count - 1))
    assert_few_ulp(interpret(program, values[1:])[0], expected(column, *values[1:]))


# what would freeze a value is refused


def _array(x):
    return np.array([[x, 1.0], [0.0, x]], like=x)


REFUSED = {
    "truth": (lambda x: bool(x), "no truth value"),
    "if": (lambda x: 1 if x > 0 else 2, r"np.where\(condition, a, b\) for if"),
    "and": (lambda x: x > 0 and x < 1, "& | ~ for and, or, not"),
    "== in a plain array": (lambda x: np.array([x, x]) == 0, "np.stack"),
    "a number & a truth": (lambda x: x & (x > 0), "& is for comparisons"),
    "a truth | a number": (lambda x: (x > 0) | x, r"\| is for comparisons"),
    "~ a number": (lambda x: ~x, "~ is for comparisons"),
    "float": (float, "cannot become a float"),
    "int": (int, "has no value yet"),
    "complex": (complex, "has no value yet"),
    "index": (lambda x: [1, 2][x], "has no value yet"),
    "math": (math.sin, "write np.sin"),
    "assignment": (lambda x: operator.setitem(np.zeros(2), 0, x), "np.stack"),
    "np.minimum of a plain array": (lambda x: np.minimum(np.array([x]), 1), "np.stack"),
    "np.where alone": (lambda x: np.where(x > 0), r"write np.where\(condition, a, b\)"),
    "np.interp with a period": (lambda x: np.interp(x, [0], [1], period=1), "write x % period"),
    "np.linalg of what is not square": (lambda x: np.linalg.inv(_array(x)[:1]), r"\(…, n, n\)"),
    "np.linalg.svd": (lambda x: np.linalg.svd(_array(x)), "np.linalg.svd is not traced; .*solve"),
    "a norm of a matrix": (lambda x: np.linalg.norm(_array(x), 1), "Frobenius"),
    "a norm of order 3": (lambda x: np.linalg.norm(_array(x)[0], 3), "expected 1, 2 or np.inf"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_needs_a_number_is_refused(case):
    call, message = REFUSED[case]
    with pytest.raises(TraceError, match=message):
        call(inputs(1)[0])


def test_nodes_are_objects_to_containers():
    x, y = inputs(2)
    assert {x: 1, y: 2}[y] == 2 and len({x, y, x + y, y + x}) == 3
    assert x in (x, y) and [x, y].index(x) == 0
    assert (x == "x") is False and (x != None) is True  # noqa: E711


@pytest.mark.parametrize("sign", ["add", "sub", "mul", "truediv"])
def test_other_types_are_not_scalars(sign):
    fn = getattr(operator, sign)
    (x,) = inputs(1)
    for a, b in ((x, {}), (x, 1j), (1j, x), (None, x)):
        with pytest.raises(TypeError, match="unsupported operand"):
            fn(a, b)
