"""What users write in traced functions: compiled code against the interpreter and NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hinge.graph.interpret import interpret
from hinge.graph.operations import OPERATIONS
from hinge.graph.program import trace
from hinge.runtime.kernel import Kernel

from .lines import Outcome, line

Fn = Callable[..., Any]
# of two numbers that are not large, with slopes of moderate size
SMOOTH: tuple[Fn, ...] = (
    lambda a, b: a + b,
    lambda a, b: a * b,
    lambda a, b: a / (2 + b * b),
    lambda a, b: np.sin(a) * np.exp(-b * b),
    lambda a, b: np.log1p(a * a) + np.expm1(np.tanh(b)),
    lambda a, b: np.arctan2(a, 2 + b * b) + np.arcsinh(b),
    lambda a, b: np.hypot(a, 1 + b) ** 0.3,
    lambda a, b: (1 + a * a) ** np.tanh(b),
    lambda a, b: np.arcsin(a / np.hypot(a, 2)) - np.arctanh(np.tanh(b) / 2),
    lambda a, b: np.where(b * b < 40, np.cosh(np.tanh(a)), np.tan(np.tanh(b))),
    lambda a, b: np.linalg.norm(np.stack([a, b, 1 + 0 * a])),
    lambda a, b: np.clip(a, -3.0, 3.0) + np.logaddexp(a, b) - np.maximum(a, b),
    lambda a, b: np.linalg.solve(np.stack([np.stack([b, 2 + a * a]), np.stack([2 + b * b, a])]),
                                 np.stack([a, b]))[0],
)  # fmt: skip
# what jumps, on numbers that are where it jumps by chance alone
JUMPS: tuple[Fn, ...] = (
    lambda x, c: np.floor(3 * x + c),
    lambda x, c: np.ceil(x - c) + np.rint(2 * x * c),
    lambda x, c: (5 * x) % (0.3 + abs(c)),
    lambda x, c: 2.0 * x // (0.2 - abs(c) - 1),
    lambda x, c: np.sign(x - c) * np.minimum(x, c),
    lambda x, c: np.where((x < c) | ~(x * c > 0.1) & (c <= x), x, -c),
    lambda x, c: np.interp(x, np.array([-1.0, 0.1, 0.7]), np.array([1.0, -2.0, 0.5])) * c,
)
# how many eps an expression may be off, whatever its condition
MOST = 1e7


def random_expression(rng: np.random.Generator, size: int) -> Fn:
    """A function of five numbers made of so many steps."""
    steps = [(rng.integers(4), rng.integers(1 << 30, size=4), rng.normal()) for _ in range(size)]

    def fn(x: Any) -> Any:
        values = [x[i] for i in range(5)]
        for which, (f, a, b, s), c in steps:
            if which == 0:
                values.append(JUMPS[f % len(JUMPS)](x[s % 5], c))
            else:
                made = SMOOTH[f % len(SMOOTH)](values[a % len(values)], values[b % len(values)])
                values.append(made if which == 1 else 2 * np.tanh(made / 2))
        return np.stack(values[5:])

    return fn


@line("results", "eps", weight=1)
def random_functions(rng: np.random.Generator) -> Outcome:
    """A random expression of NumPy's functions, comparisons, choices, powers, remainders and small
    systems, traced: compiled for a batch and for one sample, interpreted, and run by NumPy."""
    fn, eps = random_expression(rng, int(rng.integers(3, 25))), float(np.finfo(float).eps)
    program = trace(fn, [(5,)], "expression")
    kernel, x = Kernel(program), rng.normal(size=(int(rng.integers(1, 40)), 5))
    batch, worst = kernel(x), 0.0
    (interpreted,) = interpret(program, [x])
    with np.errstate(all="ignore"):
        plain = np.array([fn(row) for row in x])
    for got in (interpreted, batch, np.array([kernel.call(row) for row in x])):
        apart = np.abs(got - plain) / (1 + np.abs(plain)) / eps
        worst = max(worst, float(apart.max()))
    assert worst < MOST, f"{worst:.1e} eps apart"
    return Outcome(4 * plain.size, worst)


@line("numbers", "units in the last place", weight=0.5)
def every_function(rng: np.random.Generator) -> Outcome:
    """One operation of the table on numbers of every size in a batch of any length, in both
    precisions: compiled code against the interpreter."""
    op = str(rng.choice([*OPERATIONS]))
    row, n = OPERATIONS[op], int(rng.integers(1, 300))
    dtype = (np.float64, np.float32)[rng.integers(2)]
    program = trace(lambda *x: x[0].graph.make(op, *x), [()] * row.arity, op)
    sizes = 2.0 ** rng.uniform(*[(-1074, 1023), (-4, 4)][rng.integers(2)], (row.arity, n))
    with np.errstate(all="ignore"):
        x = (sizes * rng.choice([-1.0, 1.0], sizes.shape)).astype(dtype)
        (expected,), got = interpret(program, [*x]), Kernel(program, dtype=dtype)(*x)
        np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
        apart = np.abs(got - expected) / np.spacing(np.abs(expected))
        off = float(np.where((got == expected) | np.isnan(expected), 0, apart).max())
    assert off <= 4, f"{op} is {off:.1f} units off"
    return Outcome(n, off)
