"""The same names on tensors of PyTorch and arrays of JAX, with derivatives."""

import importlib

import numpy as np
import pytest

from hinge import ArgumentError
from hinge.spatial import se3, so3
from mechanisms import EPS
from pages import missing

W = np.random.default_rng(0).normal(size=(5, 3))
TWISTS = np.random.default_rng(1).uniform(-1, 1, size=(5, 6))


def package(name):
    """The package; folders of tests of that name are none."""
    if missing(f"import {name}"):
        pytest.skip(f"{name} is not installed")
    return importlib.import_module(name)


def test_tensors_with_gradients():
    torch = package("torch")
    w = torch.tensor(W, requires_grad=True)
    assert np.abs(so3.log(so3.exp(w)).detach().numpy() - W).max() <= 20 * EPS
    weights = np.random.default_rng(2).normal(size=(5, 3, 3))
    (so3.exp(w) * torch.tensor(weights)).sum().backward()
    # d exp = exp (J δ)×, J the right Jacobian
    turned = np.swapaxes(so3.exp(W), 1, 2) @ weights
    expected = np.einsum("bi,bij->bj", 2 * so3.vee(turned), so3.right_jacobian(W))
    assert np.abs(w.grad.numpy() - expected).max() <= 50 * EPS
    single = torch.tensor(W, dtype=torch.float32)
    assert so3.interpolate(so3.exp(single), so3.exp(-single), 0.5).dtype is torch.float32
    X = torch.func.vmap(se3.exp)(torch.tensor(TWISTS))
    assert np.abs(X.numpy() - se3.exp(TWISTS)).max() <= 20 * EPS
    with pytest.raises(ArgumentError, match="out is for results of NumPy"):
        so3.exp(w, out=np.zeros((5, 3, 3)))


def test_arrays_of_jax_under_its_transformations():
    jax = package("jax")
    jnp = jax.numpy
    with jax.enable_x64(True):
        V = jnp.asarray(TWISTS)
        back = jax.jit(lambda V: se3.log(se3.exp(V)))(V)
        assert np.abs(np.asarray(back) - TWISTS).max() <= 40 * EPS
        J = jax.vmap(jax.jacrev(lambda V: se3.log(se3.exp(V))))(V)
        assert np.abs(np.asarray(J) - np.eye(6)).max() <= 200 * EPS
    assert so3.log(jnp.eye(3, dtype=jnp.float32)).dtype == jnp.float32
