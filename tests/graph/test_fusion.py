"""Sweeps that follow each other become one loop where that changes nothing, and nowhere else."""

import numpy as np
import pytest

from hinge import zoo
from hinge.graph.interpret import interpret
from hinge.runtime.kernel import Kernel
from hinge.specialize.canonical import canonical
from hinge.specialize.loops import trace_loops
from loop_cases import looped
from mechanisms import EPS, assert_close

MECH = zoo.tree(4, 12).mechanism


def outward_twice(mech, qd):
    x, y = mech.slots(2)
    x[0] = y[0] = np.array([1.0])
    rates = mech.rates(qd)
    for p, k in mech.outward():
        x[k] = 0.5 * x[p] + rates[k][:1]
    for p, k in mech.outward():
        y[k] = y[p] * x[k] - x[p]
    return x, y


def outward_overwriting(mech, qd):
    """The second sweep writes what the first still wants of parents."""
    x, y = mech.slots(2)
    x[0] = np.array([1.0])
    rates = mech.rates(qd)
    for _, k in mech.outward():
        x[k] = rates[k][:1]
    for p, k in mech.outward():
        y[k] = x[p] - x[k]
    for _, k in mech.outward():
        x[k] = 2.0 * y[k]
    return x, y


def inward_twice(mech, qd):
    """The second sweep needs nothing of a parent that is not complete."""
    x, y = mech.slots(2)
    x[0] = y[0] = np.array([0.0])
    rates = mech.rates(qd)
    for _, k in mech.outward():
        x[k], y[k] = rates[k][:1], 2.0 * rates[k][:1]
    for p, k in mech.inward():
        x[p] = x[p] + x[k]
    for p, k in mech.inward():
        y[p] = y[p] + x[k] * y[k]
    return x, y


def inward_from_parents(mech, qd):
    """The second sweep reads what parents have only in the end."""
    x, y = mech.slots(2)
    x[0] = np.array([0.0])
    rates = mech.rates(qd)
    for _, k in mech.outward():
        x[k] = rates[k][:1]
    for p, k in mech.inward():
        x[p] = x[p] + x[k]
    for p, k in mech.inward():
        y[k] = x[p] - x[k]
    return x, y


def filled_inward(mech, qd):
    """Children add to what is there, and it is read again on the way back."""
    rates = mech.rates(qd)
    x, (y,) = mech.filled(lambda k: rates[k][:1] * np.ones(2)), mech.slots(1)
    for p, k in mech.inward():
        x[p] = x[p] + 0.5 * x[k]
    for p, k in mech.outward():
        y[k] = x[k] * (1.0 + y[p][:2])
    return x, y


def filled_outward(mech, qd):
    rates = mech.rates(qd)
    x, (y,) = mech.filled(lambda k: rates[k][:1] * np.ones(2)), mech.slots(1)
    for p, k in mech.outward():
        y[k] = x[k] + y[p][:2]
        x[k] = 2.0 * x[k]
    return x, y


# and how many loops they take with the one that adds up
SWEEPS = {
    outward_twice: 1,
    outward_overwriting: 2,
    inward_twice: 3,
    inward_from_parents: 4,
    filled_inward: 2,
    filled_outward: 1,
}


def first_entries(sweeps, mech, qd):
    """The sum of both slots, one number a joint."""
    x, y = sweeps(mech, qd)
    (out,) = mech.slots(1)
    for _, k in mech.outward():
        out[k] = np.array([x[k][0] + 3.0 * y[k][0]] * len(mech.rates(qd)[k]))
    return mech.join(out)


@pytest.mark.parametrize("sweeps", SWEEPS, ids=lambda f: f.__name__)
def test_fused_sweeps_give_what_the_plain_ones_give(sweeps):
    def algorithm(mech, qd):
        return first_entries(sweeps, mech, qd)

    qd = np.random.default_rng(0).normal(size=MECH.nv)
    program = trace_loops(algorithm, canonical(MECH), {"qd": (MECH.nv,)}, "sweeps")
    expected = algorithm(_Grounded(MECH), qd)
    assert_close(interpret(program, [qd])[0], expected, 100 * EPS)
    assert_close(Kernel(program)(qd), expected, 100 * EPS)
    assert_close(Kernel(program)(np.tile(qd, (9, 1)))[7], expected, 100 * EPS)
    assert len(program.stages) == SWEEPS[sweeps]


class _Grounded:
    """A mechanism for numbers whose ground has rates, of which nothing comes."""

    def __init__(self, mech):
        self.mech = mech

    def __getattr__(self, name):
        return getattr(self.mech, name)

    def rates(self, qd):
        return [np.zeros(6), *self.mech.rates(qd)[1:]]


def test_angles_are_turned_once():
    program = looped(zoo.arm(5).mechanism, "forward_dynamics")
    assert len(program.stages) == 3 and program.ops.sincos == 5
