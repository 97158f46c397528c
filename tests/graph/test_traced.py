"""NumPy in traced functions: what is written is what NumPy does with numbers."""

import numpy as np
import pytest

import hinge
from hinge.functions.derivatives import grad, hessian, jacobian
from hinge.graph.interpret import interpret
from hinge.graph.program import trace
from hinge.runtime.kernel import Kernel
from mechanisms import EPS

A = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 3.0], [4.0, -3.0, 8.0]])
SWAP = np.array([[0.0, 1.0], [1.0, 0.0]])
XP, FP = np.array([-1.0, 0.0, 1.0, 2.0]), np.array([3.0, 1.0, 4.0, 1.0])


def put(a, x):
    a[0], a[1:] = x[1], x[:2]
    return a


UFUNCS = ("exp", "expm1", "exp2", "tan", "tanh", "sinh", "cosh", "arctan", "arcsinh", "floor")
UFUNCS += ("ceil", "trunc", "rint", "sign", "abs", "fabs", "deg2rad", "rad2deg", "radians")
UFUNCS += ("degrees", "square", "reciprocal", "fix", "isnan", "isfinite", "isinf", "around")
UFUNCS += ("sum", "prod", "mean", "max", "min", "std", "cumsum", "diff")
OF_TWO = ("arctan2", "hypot", "fmod", "mod", "floor_divide", "maximum", "minimum", "fmax", "fmin")
OF_TWO += ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal", "heaviside")
OF_TWO += ("copysign", "logaddexp", "logical_and", "logical_or", "logical_xor")
OF_TWO += ("dot", "outer", "inner", "kron", "cross")

SPELLINGS = {
    **{name: lambda x, y, name=name: 1.0 * getattr(np, name)(x) for name in UFUNCS},
    **{name: lambda x, y, name=name: 1.0 * getattr(np, name)(x, y) for name in OF_TWO},
    "logarithms": lambda x, y: [f(abs(x) + 1) for f in (np.log, np.log1p, np.log2, np.log10)],
    "inverses": lambda x, y: [f(x / 4) for f in (np.arcsin, np.arccos, np.arctanh)],
    "arccosh": lambda x, y: np.arccosh(1 + abs(x)),
    "of a number and an array": lambda x, y: np.arctan2(1.0, y) + np.hypot(np.ones(3), y),
    "%": lambda x, y: [x % y, x % 0.7, 3.0 % y, x // y, (x + np.pi) % (2 * np.pi) - np.pi],
    "divmod": lambda x, y: [np.stack(divmod(x, y)), np.stack([*divmod(x, 0.3)])],
    "divmod of scalars": lambda x, y: np.stack(divmod(x[0], y[1])),
    "round": lambda x, y: [np.round(x, 1), x.round(), np.stack([round(e, 2) for e in x])],
    "clip": lambda x, y: [np.clip(x, -1, 1), x.clip(-1, 1), np.clip(x, -abs(y), abs(y))],
    "clip of a number": lambda x, y: np.clip(np.array([1.0, 2.0, 3.0]), -abs(y), abs(y)),
    "clip of a scalar": lambda x, y: np.clip(x[0], None, 1),
    "where": lambda x, y: np.where((x > 0) & (y < 1) | ~(x <= y) ^ (x != y), x, 2 * y),
    "where of scalars": lambda x, y: np.where(x[0] > 0, x[0], 2 * y[0]),
    "where of a mask": lambda x, y: np.where(np.array([True, False, True]), x, y),
    "logical": lambda x, y: np.where(np.logical_and(x > 0, np.logical_not(y > 0)), x, y),
    "logical of numbers": lambda x, y: 1.0 * np.logical_xor(np.floor(x), 1.0),
    "all and any": lambda x, y: [np.where(np.all(x > 0), 1, y), np.where((x > 0).any(), 1, y)],
    "a truth as a number": lambda x, y: (x > 0) * x + (x[0] == 0.5),
    "select": lambda x, y: np.select([x > 1, x > 0], [x, 2 * x], -1.0),
    "powers": lambda x, y: [abs(x) ** p for p in (2, 0, -1, 0.5, -0.5, 1.5, -2.3, 3.0, 70.0)],
    "powers of both": lambda x, y: [abs(x) ** y, 2.0**y, np.power(abs(x), y), pow(abs(x), 1.7)],
    "powers, each its own": lambda x, y: abs(x) ** np.array([1.0, 2.0, 0.3]),
    "solve": lambda x, y: np.linalg.solve(A + np.diag(x), y),
    "solve with a permutation": lambda x, y: np.linalg.solve(SWAP, y[:2]),
    "solve with traced zeros": lambda x, y: np.linalg.solve(x[0] * SWAP, np.outer(y[:2], y)),
    "solve many": lambda x, y: np.linalg.solve(np.stack([A + np.diag(x), A]), np.outer(x, y)),
    "inv": lambda x, y: np.linalg.inv(A + np.outer(x, y)),
    "inv of 5": lambda x, y: np.linalg.inv(np.eye(5)[::-1] * x[0] + np.arange(25).reshape(5, 5)),
    "det": lambda x, y: [np.linalg.det(A + np.outer(x, y)), np.linalg.det(A[:2, :2] * x[:2])],
    "det of 4": lambda x, y: np.linalg.det(np.outer(x, x)[0, 0] * np.eye(4)[::-1] + y[0]),
    "cholesky": lambda x, y: np.linalg.cholesky(A @ A.T + np.outer(x, x)),
    "cholesky, upper": lambda x, y: np.linalg.cholesky(A @ A.T + np.diag(x * x), upper=True),
    "norm": lambda x, y: [np.linalg.norm(x, p) for p in (None, 1, 2, np.inf)],
    "norm of a matrix": lambda x, y: np.linalg.norm(np.outer(x, y)),
    "norms of rows": lambda x, y: np.linalg.norm(np.outer(x, y), axis=1, keepdims=True),
    "matrix_power": lambda x, y: np.linalg.matrix_power(np.outer(x, y), 3),
    "interp": lambda x, y: [np.interp(x, XP, FP), np.interp(x, XP, FP, left=-7, right=7)],
    "interp of a scalar": lambda x, y: np.interp(x[0], XP, FP),
    "interp between traced": lambda x, y: np.interp(0.3, XP, np.concatenate([y, [1.0]])),
    "products": lambda x, y: [A @ x, x @ A, np.einsum("ij,j,i->i", A, x, y), A.dot(x)],
    "reductions": lambda x, y: np.max(np.outer(x, y), axis=1) + np.outer(x, y).sum(axis=0),
    "of ufuncs": lambda x, y: [np.maximum.reduce(x), np.logical_or.reduce(x > 0) * 1.0],
    "accumulated": lambda x, y: [np.maximum.accumulate(x), np.maximum.outer(x, y)[1]],
    "stack": lambda x, y: np.maximum(np.stack([x[0], y[1] * 2, 3.0]), 1),
    "concatenate": lambda x, y: np.hstack([x, y[0], 1.0]) + np.concatenate([x, [1.0], y[:1]]),
    "block": lambda x, y: np.block([[A, x[:, None]], [y[None], 1.0]]),
    "array like": lambda x, y: np.maximum(np.array([x[0], 2 * y[0], 1], like=x), 0.5),
    "zeros like": lambda x, y: put(np.zeros(3, like=x), x) + put(np.zeros_like(x), y),
    "a plain array": lambda x, y: np.exp(np.array([x[0], y[0]])) * 2,
    "numbers of NumPy": lambda x, y: np.where(np.float64(0.5) < x, np.float64(2) * x, y),
    "scalars one by one": lambda x, y: sum(np.tanh(e) + np.maximum(e, 0) for e in x),
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_what_is_written_is_what_numpy_does(name):
    def fn(x, y):
        got = SPELLINGS[name](x, y)
        return tuple(got) if isinstance(got, list) else got

    program = trace(fn, [(3,), (3,)], "spelling")
    for x, y in (([0.5, -1.25, 2.0], [0.7, -0.4, 1.5]), ([1.0, -2.0, 0.1], [1.0, 2.0, -3.0])):
        expected = fn(np.array(x), np.array(y))
        parts = expected if isinstance(expected, tuple) else (expected,)
        for got, part in zip(interpret(program, [np.array(x), np.array(y)]), parts, strict=True):
            np.testing.assert_allclose(got, part, rtol=64 * EPS, atol=16 * EPS)


def test_nan_is_not_hidden_by_choices():
    fns = (np.maximum, np.minimum, lambda a, b: np.clip(a, -1, b), lambda a, b: np.sign(a) + b)
    for fn in (*fns, lambda a, b: np.interp(a, XP, FP) + b, lambda a, b: abs(a) % b):
        k = Kernel(trace(fn, [(), ()]))
        assert np.isnan([k(np.nan, 1.0), k(1.0, np.nan)]).all()
    inverse = Kernel(trace(np.linalg.inv, [(3, 3)]))
    assert np.isnan(inverse(np.ones((3, 3)))).any()


def test_slopes_at_kinks_are_those_of_jax():
    for fn in (np.maximum, np.minimum):
        assert [float(g) for g in grad(fn, (0, 1))(2.0, 2.0)] == [0.5, 0.5]
        assert [float(g) for g in grad(fn, (0, 1))(2.0, 3.0)] in ([0, 1], [1, 0])
    assert grad(np.abs)(0.0) == grad(np.sign)(0.0) == grad(np.floor)(1.0) == 0
    assert grad(lambda x: np.clip(x, -1, 1))(1.0) == 0.5
    assert grad(lambda x: np.mod(x, 2.0))(4.0) == 1
    assert grad(lambda y: np.mod(-7.0, y))(2.0) == 4
    assert grad(lambda x: x ** y_of(x))(0.0) == 0
    assert grad(lambda x: 0 * x + np.power(0.0 * x, 2.0 + x))(0.0) == 0


def y_of(x):
    return 3.0 + 0 * x


SMOOTH = {
    "exp": lambda x: np.exp(x[0] * x[1]) + np.expm1(x[2]) + np.exp2(x[1]),
    "log": lambda x: np.log(x[0]) * np.log1p(x[1] * x[2]) + np.log10(x[1]),
    "tangents": lambda x: np.tan(x[0]) * np.tanh(x[1]) + np.arctan(x[2]) * np.arctanh(x[0] / 3),
    "hyperbolic": lambda x: np.sinh(x[0]) * np.cosh(x[1]) + np.arcsinh(x[2]) * np.arccosh(1 + x[0]),
    "arcs": lambda x: np.arcsin(x[0] / 2) * np.arccos(x[1] / 2) + np.arctan2(x[1], x[2]),
    "powers": lambda x: x[0] ** x[1] + x[2] ** -1.7 + np.hypot(x[0], x[2]),
    "rests": lambda x: (5 * x[0]) % x[1] + np.fmod(7 * x[2], x[0]) + x[0] * np.floor(x[1]),
    "choices": lambda x: np.where(x[0] < x[1], x[0] * x[2], np.maximum(x[1], x[2]) ** 2),
    "solve": lambda x: (
        np.linalg.solve(A + np.outer(x, x), x)[0] * np.linalg.det(np.outer(x, x) + A)
    ),
    "norm": lambda x: np.linalg.norm(x) ** 3 + np.interp(x[0], XP, FP) * x[1],
}


@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives_of_two_orders_are_those_of_differences(name):
    fn, x = SMOOTH[name], np.array([0.6, 0.8, 1.1])
    values = hinge.compile(fn, x=(3,))
    h = 1e-3
    steps = np.eye(3) * h

    def slopes(of):
        """Central differences of the fourth order."""
        near, far = ([(of(x + k * s) - of(x - k * s)) / (2 * k * h) for s in steps] for k in (1, 2))
        return (4 * np.array(near) - np.array(far)) / 3

    first = grad(fn)
    np.testing.assert_allclose(first(x), slopes(values), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(hessian(fn)(x), slopes(first), rtol=1e-8, atol=1e-8)
    assert jacobian(fn)(x).shape == (3,)


def test_algorithms_work_on_plain_arrays_whatever_they_are_given():
    robot = hinge.zoo.arm(3)
    kinds = []

    def fn(q, qd):
        kinds.append(type(q[:2]))
        limit = np.clip(qd, -1, 1)
        return np.maximum(robot.alg.inverse_dynamics(q, limit, np.tanh(q)), 0)

    kernel = robot.compile(fn)
    q, qd = np.random.default_rng(0).normal(size=(2, 3))
    expected = np.maximum(robot.inverse_dynamics(q, np.clip(qd, -1, 1), np.tanh(q)), 0)
    np.testing.assert_allclose(kernel(q, qd), expected, rtol=64 * EPS, atol=16 * EPS)
    assert kinds[0] is not np.ndarray
