"""Elementary functions on a real GPU, in units of the last place: `pytest -m gpu`, with PyTorch."""

import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import hinge
from emit.everything import EDGES
from mechanisms import assert_same_bits

pytestmark = pytest.mark.gpu
sys.path.insert(0, str(Path(__file__).parents[2]))
accuracy = pytest.importorskip("bench.accuracy_functions")

DTYPES = pytest.mark.parametrize("dtype", [np.float64, np.float32])
CHOICES = {
    "floor": lambda x, y: np.floor(x),
    "rint": lambda x, y: np.rint(x),
    "sign": lambda x, y: np.sign(x),
    "%": lambda x, y: x % y,
    "fmod": lambda x, y: np.fmod(x, y),
    "maximum": lambda x, y: np.maximum(x, y),
    "where": lambda x, y: np.where((x < y) | (x == 1.0) & ~(y <= 0.3), x, -y),
}


@pytest.fixture(scope="module")
def torch():
    torch = pytest.importorskip("torch")
    # where it is not installed, a folder of tests has its name
    if not hasattr(torch, "cuda") or not torch.cuda.is_available():
        pytest.skip("no PyTorch here, or no GPU")
    return torch


def on_gpu(torch, fn, dtype, **shapes):
    """A compiled function of arrays, by way of the GPU."""
    kernel = hinge.compile(fn, dtype, device="cuda", **shapes)
    return lambda *x: kernel(*(torch.as_tensor(a, device="cuda") for a in x)).cpu().numpy()


@DTYPES
@pytest.mark.parametrize("name", accuracy.FUNCTIONS)
def test_errors_are_below_two_units_in_the_last_place(torch, name, dtype):
    function = getattr(np, name)
    if name in ("arctan2", "hypot", "power"):
        kernel = on_gpu(torch, lambda x, y: function(x, y), dtype, x=(), y=())
    else:
        kernel = on_gpu(torch, lambda x: function(x), dtype, x=())
    assert accuracy.worst(name, dtype, 1000, kernel) < 2


@DTYPES
@pytest.mark.parametrize("name", CHOICES)
def test_choices_and_remainders_are_exact(torch, name, dtype):
    with np.errstate(all="ignore"):
        grid = np.array([*product((*EDGES, 3.0, 1e17), repeat=2)]).astype(dtype)
        rng = np.random.default_rng(0)
        some = (rng.normal(size=(5000, 2)) * 10.0 ** rng.uniform(-9, 9, (5000, 2))).astype(dtype)
        x, y = np.concatenate([grid, some]).T.copy()
        if name == "maximum":
            # of two equal ones it is the mean, and halves of subnormal numbers are rounded
            x, y = (np.where(np.abs(a) < np.finfo(dtype).tiny, 0, a) for a in (x, y))
        wanted = CHOICES[name](x, y)
    got = on_gpu(torch, CHOICES[name], dtype, x=(), y=())(x, y)
    assert_same_bits(got + 0, np.asarray(wanted, dtype) + 0)
