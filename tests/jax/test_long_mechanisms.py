"""Derivatives of the dynamics of long mechanisms: loops over bodies, in JAX too."""

from functools import partial

import numpy as np
import pytest

import hinge
from hinge.graph.loop import LoopProgram
from hinge.specialize import by_coordinates
from mechanisms import EPS

jax = pytest.importorskip("jax", reason="JAX is not installed")
# a folder of tests has its name
pytest.importorskip("jax.numpy", reason="JAX is not installed")

# a base that moves freely, so that coordinates are no tangents
SNAKE = hinge.zoo.snake(44)
NAMES = ("inverse_dynamics", "forward_dynamics")
each = pytest.mark.parametrize("name", NAMES)


@pytest.fixture(autouse=True)
def in_double_and_by_loops(monkeypatch):
    monkeypatch.setattr(by_coordinates, "LEAST_BODIES", SNAKE.mechanism.n_bodies)
    with jax.enable_x64(True):
        yield


def point(*lead):
    rng = np.random.default_rng(3)
    q = SNAKE.random_configuration(rng, lead)
    return q, *rng.normal(size=(2, *lead, SNAKE.nv))


def directions(q):
    """A change of every argument along the joints, and of q along coordinates."""
    moves = np.random.default_rng(4).normal(size=(3, SNAKE.nv))
    move = partial(hinge.jax.robot(SNAKE).integrate, q)
    _, rates = jax.jvp(move, (np.zeros(SNAKE.nv),), (moves[0],))
    return moves, (rates, moves[1], moves[2])


def matrices(name, *x):
    return np.concatenate(getattr(SNAKE, f"{name}_derivatives")(*x), axis=1)


def assert_same_products(found, terms):
    """Sums of terms, right to the rounding of the largest of them."""
    size = np.abs(terms).sum(axis=-1)
    assert (np.abs(found - terms.sum(axis=-1)) <= 1000 * SNAKE.nv * EPS * size.max()).all()


@each
def test_a_change_is_the_product_with_the_matrices(name):
    f, x = getattr(hinge.jax.robot(SNAKE), name), point()
    moves, dots = directions(x[0])
    _, change = jax.jvp(f, x, dots)
    assert_same_products(change, matrices(name, *x) * moves.ravel())


@each
def test_a_gradient_is_the_product_from_the_left(name):
    """Of all arguments and of some, what q has to say along coordinates that move tangents."""
    f, x = getattr(hinge.jax.robot(SNAKE), name), point()
    weights = np.random.default_rng(6).normal(size=SNAKE.nv)
    moves, dots = directions(x[0])
    back = jax.grad(lambda *x: weights @ f(*x), (0, 1, 2))(*x)
    D = np.split(weights[:, None] * matrices(name, *x), 3, axis=1)
    assert_same_products(np.array([back[0] @ dots[0]]), (D[0] * moves[0]).ravel()[None])
    assert_same_products(back[1], D[1].T)
    assert_same_products(back[2], D[2].T)
    alone = jax.grad(lambda qd: weights @ f(x[0], qd, x[2]))(x[1])
    assert_same_products(alone, D[1].T)


@each
def test_batches_have_the_gradients_of_their_samples(name):
    f, x = getattr(hinge.jax.robot(SNAKE), name), point(5)
    gradient = jax.grad(lambda *x: f(*x).sum(), (0, 1, 2))
    many = jax.vmap(gradient)(*x)
    for i in range(5):
        for one, whole in zip(gradient(*(a[i] for a in x)), many, strict=True):
            assert np.abs(whole[i] - one).max() <= 1000 * SNAKE.nv * EPS * np.abs(one).max()


@each
def test_they_are_loops(name):
    dyn = hinge.jax.robot(SNAKE)
    arrays = ("q", "qd", "qdd" if name == "inverse_dynamics" else "tau")
    pushed = dyn.operation(name, arrays, {}).pushed((0, 1, 2))
    for operation in (pushed, pushed.pulled((3, 4, 5)), pushed.pulled((3,))):
        # some of the changes given, and the others not, are no gradient of the dynamics
        is_gradient = operation is pushed or len(operation.inputs) == 4
        assert isinstance(operation.kernel.program, LoopProgram) == is_gradient


def test_external_forces_take_the_same_loops():
    f = hinge.jax.robot(SNAKE).forward_dynamics
    q, qd, tau = point()
    f_ext = np.random.default_rng(7).normal(size=(SNAKE.n_bodies, 6))
    moves, dots = directions(q)
    _, change = jax.jvp(lambda *x: f(*x, f_ext=f_ext), (q, qd, tau), dots)
    D = np.concatenate(SNAKE.forward_dynamics_derivatives(q, qd, tau, f_ext), axis=1)
    assert_same_products(change, D * moves.ravel())


def test_second_derivatives_are_there():
    """Of the loops' gradient, without loops: against differences of it."""
    f, (q, qd, qdd) = hinge.jax.robot(SNAKE).inverse_dynamics, point()
    gradient = jax.grad(lambda qd: (f(q, qd, qdd) ** 2).sum())
    along, h = np.random.default_rng(8).normal(size=SNAKE.nv), EPS ** (1 / 3)
    _, change = jax.jvp(gradient, (qd,), (along,))
    expected = (gradient(qd + h * along) - gradient(qd - h * along)) / (2 * h)
    assert np.abs(change - expected).max() <= 100 * h**2 * np.abs(expected).max()
