"""What linearised dynamics costs on chains of general hinges: growth, and the paper's formulas."""

from functools import cache, partial

import numpy as np
import pytest

from cost.general_chain import chain
from hinge import algorithms
from hinge.algorithms.linearized.articulated import articulated
from hinge.algorithms.linearized.conventional import conventional_derivatives
from hinge.algorithms.linearized.forward_derivatives import all_directions, one_direction
from hinge.algorithms.linearized.nominal import nominal
from hinge.graph.program import trace
from hinge.model.ground_axes import seen_in
from hinge.robot.answers import robot_kernel
from hinge.specialize.canonical import canonical
from robot_files import panda_arm


def recursions(mech, axes, q, qd, qdd):
    seen = seen_in(axes, mech, q)
    n = nominal(seen, q, qd, qdd, None)
    return seen, n, articulated(seen, n, [np.zeros((6, 6))] * len(mech.bodies))


# number → the algorithm about a motion (q, qd, qdd), in some axes; odd ones in one direction
ALGORITHMS = {
    1: lambda m, a, *x: algorithms.inverse_dynamics_jvp(m, *x, axes=a),
    2: lambda m, a, *x: tuple(algorithms.inverse_dynamics_derivatives(m, *x, axes=a)),
    4: lambda m, a, *x: conventional_derivatives(m, *x, axes=a),
    5: lambda m, a, *x: one_direction(*recursions(m, a, *x[:3]), x[3:]),
    6: lambda m, a, *x: all_directions(*recursions(m, a, *x)),
}
PAPER = {
    1: (lambda n: 320 * n - 159, lambda n: 303 * n - 149),
    2: (lambda n: 21 * n**2 + 333 * n - 132, lambda n: (47 * n**2 + 605 * n) / 2 - 145),
    4: (
        lambda n: (17 * n**3 + 129 * n**2 + 1996 * n) / 6 - 132,
        lambda n: (17 * n**3 + 120 * n**2 + 1819 * n) / 6 - 145,
    ),
    6: (lambda n: 36 * n**2 + 781 * n - 225, lambda n: 33 * n**2 + 773 * n - 255),
}


@cache
def operations(number, n, axes):
    """Multiplications and additions on the canonical chain."""
    mech = canonical(chain(n)).mechanism
    shapes = [(n,)] * (6 if number % 2 else 3)
    ops = trace(lambda *x: ALGORITHMS[number](mech, axes, *x), shapes).ops
    return np.array([ops.multiplications, ops.additions])


@pytest.mark.parametrize("n", [2, 4, 8, 12])
@pytest.mark.parametrize("number", PAPER)
def test_no_more_than_the_paper_says(number, n):
    ours = min((operations(number, n, axes) for axes in ("body", "ground")), key=sum)
    assert (ours <= [f(n) for f in PAPER[number]]).all(), ours


@pytest.mark.parametrize(("number", "most"), [(1, (250, 220)), (5, (490, 450))])
def test_one_direction_costs_the_same_for_every_body(number, most):
    counts = np.array([operations(number, n, "body") for n in (8, 16, 24)])
    more = np.diff(counts, axis=0) / 8
    np.testing.assert_allclose(more[1], more[0], rtol=0.01)
    assert (more[0] <= most).all(), more[0]


@pytest.mark.parametrize(
    ("name", "arrays", "most"),
    [
        ("inverse_dynamics_vjp", 4, (240, 210)),
        ("forward_dynamics_vjp", 4, (487, 443)),
        ("forward_dynamics_change", 6, (487, 445)),
    ],
)
def test_products_cost_the_same_for_every_body(name, arrays, most):
    counts = []
    for n in (8, 16, 24):
        run = partial(getattr(algorithms, name), canonical(chain(n)).mechanism)
        ops = trace(lambda *x, run=run: tuple(run(*x)), [(n,)] * arrays).ops
        counts.append([ops.multiplications, ops.additions])
    more = np.diff(counts, axis=0) / 8
    np.testing.assert_allclose(more[1], more[0], rtol=0.01)
    assert (more[0] <= most).all(), more[0]


@pytest.mark.parametrize(("number", "most"), [(2, (19.5, 17.5)), (6, (37.5, 33.5))])
def test_matrices_cost_a_square(number, most):
    """In steps of four, the bodies of a station."""
    counts = np.array([operations(number, n, "ground") for n in (4, 8, 12, 16)])
    first, second = np.diff(counts, n=2, axis=0) / 32
    np.testing.assert_allclose(second, first, rtol=0.01)
    assert (first <= most).all(), first


def test_panda():
    mech = panda_arm()
    arrays = {"inverse_dynamics_derivatives": "qdd", "forward_dynamics_derivatives": "tau"}
    bounds = {
        "inverse_dynamics_derivatives": (1540, 1420),
        "forward_dynamics_derivatives": (2700, 2450),
    }
    for name, last in arrays.items():
        ops = robot_kernel(mech, name, ("q", "qd", last), ()).program.ops
        assert (ops.multiplications, ops.additions) <= bounds[name], ops
        assert ops.additions <= bounds[name][1], ops
