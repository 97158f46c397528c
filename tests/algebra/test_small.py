"""Small matrices: what is known to be 0 costs nothing and changes nothing."""

import numpy as np
import pytest

from hinge.algebra.small import Factor, solve_spd, sparse_product
from hinge.graph.program import trace

# an arrow: the last row alone joins the others, and elimination fills nothing in
SIZE = 6
ARROW = [(i, i) for i in range(SIZE)] + [(SIZE - 1, i) for i in range(SIZE - 1)]


def arrow(x):
    A = np.zeros((SIZE, SIZE), dtype=np.asarray(x).dtype)
    for (i, j), entry in zip(ARROW, x, strict=True):
        A[i, j] = A[j, i] = entry
    return A


def numbers():
    rng = np.random.default_rng(5)
    return np.concatenate([4 + rng.uniform(size=SIZE), rng.normal(size=SIZE - 1)])


@pytest.mark.parametrize("columns", [(), (3,)])
def test_a_sparse_matrix_is_solved_with(columns):
    x, b = numbers(), np.random.default_rng(6).normal(size=(SIZE, *columns))
    expected = np.linalg.solve(arrow(x), b)
    scale = 64 * np.finfo(float).eps * np.abs(expected).max()
    assert np.abs(solve_spd(arrow(x), b) - expected).max() <= scale
    kept = Factor(arrow(x))
    half = kept.half(b)
    assert np.abs(b.T @ expected - half.T @ (kept.d_inv * half.T).T).max() <= 8 * scale


def test_a_factor_is_its_numbers():
    kept, b = Factor(arrow(numbers())), np.random.default_rng(6).normal(size=SIZE)
    again = Factor.of_numbers(kept.numbers)
    assert again.rows == kept.rows and np.array_equal(again.solve(b), kept.solve(b))


def test_zeros_cost_nothing():
    """n − 1 rows of L have nothing but the diagonal: 2 products each to solve, one to factor."""
    program = trace(lambda x, b: solve_spd(arrow(x), b), [(len(ARROW),), (SIZE,)])
    n = SIZE - 1
    assert program.ops.multiplications == n + n + n + SIZE + n
    assert program.ops.divisions == SIZE


def test_a_product_without_zeros():
    x, B = numbers(), np.random.default_rng(7).normal(size=(SIZE, 4))
    A = arrow(x)
    A[2] = A[:, 2] = 0
    assert np.abs(sparse_product(A, B) - A @ B).max() <= 16 * np.finfo(float).eps * np.abs(B).max()
    assert (sparse_product(A, B)[2] == 0).all()
    program = trace(lambda x, B: sparse_product(arrow(x), B), [(len(ARROW),), (SIZE, 4)])
    assert program.ops.multiplications == 4 * (2 * len(ARROW) - SIZE)


def test_a_product_without_zeros_is_the_same_graph():
    """Entry after entry, as NumPy makes them; of matrices that are not square too."""

    def product(multiply):
        def fn(x, y):
            A = np.array([[x[0], 0 * x[0], x[1]], [0 * x[0], 0.0, x[2]]])
            B = np.array([[y[0], 0 * y[0], 2.0, 0.0], [y[1]] * 4, [0 * y[0], y[2], y[3], 0.0]])
            return multiply(A, B)

        return trace(fn, [(3,), (4,)])

    found, expected = product(sparse_product), product(np.matmul)
    assert found.outputs == expected.outputs == ((2, 4),)
    assert found.digest == expected.digest
