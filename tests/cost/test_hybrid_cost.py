"""What hybrid dynamics costs: the two limits exactly, and a straight line in between."""

from functools import cache, partial

import numpy as np
import pytest

from hinge import algorithms, zoo
from hinge.graph.program import trace
from hinge.robot.answers import robot_kernel
from hinge.specialize.canonical import canonical
from hinge.specialize.loops import trace_loops

ARRAYS = ("q", "qd", "qdd_active", "tau_passive")

SPLITS = {
    "base passive": lambda nv: np.arange(nv) >= 6,
    "every third driven": lambda nv: np.arange(nv) % 3 == 0,
    "first half driven": lambda nv: np.arange(nv) < nv // 2,
    "last half driven": lambda nv: np.arange(nv) >= nv // 2,
}


@cache
def snake(n):
    return canonical(zoo.snake(n).mechanism)


def hybrid(mech, active):
    split = tuple(bool(a) for a in active)
    return robot_kernel(mech, "hybrid_dynamics", ARRAYS, (("active", split),)).program.ops


@pytest.mark.parametrize(
    "mech",
    [
        zoo.arm(9).mechanism,
        zoo.space_arm(7).mechanism,
        zoo.humanoid().mechanism,
        zoo.tree(1, 14).mechanism,
    ],
    ids=lambda m: m.name,
)
def test_the_limits_cost_what_the_dedicated_algorithms_cost(mech):
    inverse = robot_kernel(mech, "inverse_dynamics", ("q", "qd", "qdd"), ()).program.ops
    forward = robot_kernel(mech, "forward_dynamics", ("q", "qd", "tau"), ()).program.ops
    assert hybrid(mech, np.ones(mech.nv)) == inverse
    assert hybrid(mech, np.zeros(mech.nv)) == forward
    for split in SPLITS.values():
        between = hybrid(mech, split(mech.nv))
        assert sum(inverse) < sum(between) < 1.25 * sum(forward)


def test_the_limits_in_loops():
    mech = zoo.snake(50).mechanism
    inverse = robot_kernel(mech, "inverse_dynamics", ("q", "qd", "qdd"), ()).program.ops
    forward = robot_kernel(mech, "forward_dynamics", ("q", "qd", "tau"), ()).program.ops
    assert hybrid(mech, np.ones(mech.nv)) == inverse
    assert sum(hybrid(mech, np.zeros(mech.nv))) <= sum(forward)


@pytest.mark.parametrize("name", SPLITS)
def test_cost_grows_by_the_same_for_every_link(name):
    """In loops, from 550 to 1450 links: fewer may have a number in common that many have not."""
    counts = []
    for n in (550, 1000, 1450):
        f = snake(n)
        nv = f.mechanism.nv
        shapes = {"q": (f.mechanism.nq,), **dict.fromkeys(ARRAYS[1:], (nv,))}
        active = tuple(bool(a) for a in SPLITS[name](nv))
        hybrid = partial(algorithms.hybrid_dynamics, active=active)
        ops = trace_loops(hybrid, f, shapes, "hybrid_dynamics", active).ops
        counts.append([ops.multiplications, ops.additions, ops.divisions])
    more = np.diff(counts, axis=0)
    np.testing.assert_allclose(more, more[[0, 0]], rtol=1e-3)


def operations(algorithm, n):
    """Multiplications and additions on the canonical snake, its second half driven."""
    mech = snake(n).mechanism
    active = np.arange(mech.nv) >= mech.nv // 2
    shapes = [(mech.nq,), (mech.nv,)][: 2 if algorithm == "complete_motion" else 1]
    fn = getattr(algorithms, algorithm)
    return sum(trace(lambda *x: fn(mech, *x, active=active), shapes).ops[:2])


def test_products_with_a_vector_cost_a_straight_line():
    counts = [operations("complete_motion", n) for n in (10, 20, 30, 40)]
    np.testing.assert_allclose(np.diff(counts), counts[1] - counts[0], rtol=0.01)


@pytest.mark.parametrize("name", ["disturbance_jacobian", "active_inertia"])
def test_matrices_cost_a_column_for_each_driven_joint(name):
    """At most a parabola in N with half of the joints driven: third differences vanish."""
    counts = [operations(name, n) for n in (10, 14, 18, 22)]
    second = np.diff(counts, n=2)
    np.testing.assert_allclose(second, second[0], rtol=0.05)
