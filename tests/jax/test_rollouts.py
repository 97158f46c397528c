"""Rollouts in JAX: the whole motion in one call, and how it changes."""

import numpy as np
import pytest

import hinge

jax = pytest.importorskip("jax", reason="JAX is not installed")
jnp = pytest.importorskip("jax.numpy", reason="JAX is not installed")
check_grads = pytest.importorskip("jax.test_util", reason="JAX is not installed").check_grads

ARM = hinge.zoo.arm(3)
STEPS = 12


@ARM.rollout(inputs=("tau",))
def motion(q, qd, tau, dt):
    qd = qd + dt * ARM.alg.forward_dynamics(q, qd, tau)
    return ARM.alg.integrate(q, dt * qd), qd, 0.01 * qd @ qd


@pytest.fixture(autouse=True)
def in_double():
    with jax.enable_x64(True):
        yield


def start(*lead):
    rng = np.random.default_rng(2)
    return *rng.uniform(-0.3, 0.3, size=(2, *lead, 3)), rng.normal(size=(STEPS, *lead, 3)), 0.01


@pytest.mark.parametrize("every", [1, 3, 5])
def test_results_and_gradients(every):
    """Of single motions; every some steps, the last ones not among them."""
    f, given = hinge.jax.function(motion), start()
    for a, b in zip(f(*given, every=every), motion(*given, every=every), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13)
    assert check_grads(lambda *x: f(*x, every=every), given, order=1) is None


def test_second_derivatives():
    f, (q, qd, tau, dt) = hinge.jax.function(motion), start()
    assert check_grads(lambda q, qd, tau: f(q, qd, tau, dt), (q, qd, tau), order=2) is None


def test_batches():
    """As leading shapes and by vmap, what is shared too, and gradients with respect to that."""
    f, (q, qd, tau, dt) = hinge.jax.function(motion), start(5)
    expected = motion(q, qd, tau, dt)
    for way in (f, jax.vmap(f, (0, 0, 1, None), 1)):
        for a, b in zip(way(q, qd, tau, dt), expected, strict=True):
            np.testing.assert_array_equal(a, b)
    shared = jax.vmap(f, (0, 0, None, None), 1)
    for a, b in zip(shared(q, qd, tau[:, 0], dt), motion(q, qd, tau[:, 0], dt), strict=True):
        np.testing.assert_array_equal(a, b)
    assert check_grads(f, (q, qd, tau[:, 0], dt), order=1) is None


def test_a_thousand_steps_in_one_call():
    """Gradients are those of `trajectory_sensitivity`, whose adjoint is the library's own."""
    f = hinge.jax.function(motion)
    q, qd, _, dt = start()
    taus = np.random.default_rng(1).normal(size=(1000, 3))
    dt = 1e-3
    cost = jax.jit(lambda q, taus: (f(q, qd, taus, dt)[0][-1] ** 2).sum())
    gq, gtaus = jax.grad(cost, (0, 1))(q, taus)
    known = hinge.trajectory_sensitivity(ARM, q, qd, taus, dt, method="semi_implicit_euler")
    dq = np.zeros_like(known.q)
    dq[-1] = 2 * known.q[-1]
    expected = known.adjoint(dq, np.zeros_like(known.qd))
    scale = np.abs(expected.taus).max()
    np.testing.assert_allclose(gtaus / scale, expected.taus / scale, atol=1e-9)
    np.testing.assert_allclose(gq, expected.q, rtol=1e-8)


def test_without_inputs():
    fall = hinge.rollout(lambda z, v, h: (z + h * v, v - 9.81 * h), ("z", "v"), z=(), v=(), h=())
    f = hinge.jax.function(fall)
    z, _ = f(1.0, 0.0, 0.01, steps=10)
    np.testing.assert_allclose(z, fall(1.0, 0.0, 0.01, steps=10)[0])
    assert jax.grad(lambda v: f(0.0, v, 0.01, steps=10)[0][-1])(1.0) == pytest.approx(0.1)


@ARM.rollout(
    inputs=("tau",),
    keep={
        "cost": hinge.Sum(lambda q, tau: q @ q + 0.1 * tau @ tau),
        "peak": hinge.Max(lambda qd: qd),
        "mean": hinge.Mean(2),
    },
)
def reducing(q, qd, tau, dt):
    qd = qd + dt * ARM.alg.forward_dynamics(q, qd, tau)
    return ARM.alg.integrate(q, dt * qd), qd, 0.01 * qd @ qd


def test_what_is_reduced_and_its_derivatives():
    """The states are not stored; of a batch, by vmap and under jit."""
    f, given = hinge.jax.function(reducing), start(5)
    expected = reducing(*given)
    for way in (f, jax.jit(f), jax.vmap(f, (0, 0, 1, None), 0)):
        got = way(*given)
        assert got._fields == ("q", "qd", "cost", "peak", "mean")
        for a, b in zip(got, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-14)
    # the same through all states
    g = hinge.jax.function(motion)

    def stored(q, qd, tau, dt):
        qs, qds, energy = g(q, qd, tau, dt)
        cost = (qs * qs).sum((0, -1)) + 0.1 * (tau * tau).sum((0, -1))
        return qs[-1], qds[-1], cost, qds.max(0), energy.mean(0)

    total = lambda fn: lambda *x: sum((y**2).sum() for y in fn(*x))  # noqa: E731
    for way in (jax.grad, jax.jacfwd):
        one, other = (way(total(fn), (0, 1, 3))(*given) for fn in (f, stored))
        for a, b in zip(one, other, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11)


def test_the_last_state_alone():
    given = start(4)
    for a, b in zip(hinge.jax.function(motion)(*given, every=None), motion(*given), strict=True):
        np.testing.assert_allclose(a[0], b[-1], rtol=1e-13)
