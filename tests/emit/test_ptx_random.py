"""Straight-line kernels for cards of programs at random: whatever is planned, the numbers are those
that `interpret` gives."""

import numpy as np
import pytest

from emit.test_ptx_kernels import SCALARS, arguments, assert_right, results_of
from hinge.emit.ptx import plan as plans
from hinge.emit.ptx.kernel import kernel_module
from hinge.graph.program import trace

# what a plan is made by, so that small programs meet what large ones do
BOUNDS = [
    {},
    # few registers
    {"held": lambda warps, word: 12},
    # little shared memory, and few registers
    {"held": lambda warps, word: 12, "SHARED_BYTES": 40 * 1024, "_WARPS": (4,)},
    # an order that waits little, and numbers that are fetched
    {"_WAITING": {4: range(1, 30), 8: range(1, 30)}, "_CODE": 10},
]


def program_at_random(seed):
    """Angles of several arrays, some with a number added or needed elsewhere, and sums of those."""
    rng = np.random.default_rng(seed)
    sizes = [(int(n),) for n in rng.integers(3, 20, size=3)]

    def function(*arrays):
        pool = [x for array in arrays for x in array[: rng.integers(2)]]
        for x in np.concatenate(arrays):
            angle = x + rng.normal() if rng.integers(2) else x
            pool += [[np.sin(angle)], [np.cos(angle)], [np.sin(angle), np.cos(angle)]][
                rng.integers(3)
            ]
        for _ in range(rng.integers(20, 300)):
            a, b = (pool[-k] for k in rng.integers(1, min(len(pool), 60), size=2))
            made = [a * b, a + b, a - b, a / (b * b + 1.5), np.sin(a)][rng.integers(5)]
            pool.append(0.5 * made)
        ends = [rng.integers(len(pool), size=rng.integers(1, 40)) for _ in range(3)]
        return tuple(np.array([pool[i] for i in own]) for own in ends)

    return trace(function, sizes)


@pytest.mark.parametrize("scalar", SCALARS)
@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("seed, layout", [(0, "rows"), (1, "columns"), (2, "rows")])
def test_any_program(seed, layout, bounds, scalar, monkeypatch):
    for name, value in bounds.items():
        monkeypatch.setattr(plans, name, value)
    program = program_at_random(seed)
    given = arguments(program, SCALARS[scalar], layout)
    module = kernel_module(program, scalar, False, layout)
    assert_right(program, results_of(program, module, given, layout), given)
