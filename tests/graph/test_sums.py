"""Sums of sums in another order: the same value, fewer instructions."""

import sys

import numpy as np
import pytest

from hinge.graph.interpret import interpret
from hinge.graph.program import trace
from hinge.graph.sums import term_by_term
from mechanisms import EPS, ROBOTS, random_state


def instructions(program):
    """With one product melted into each sum that takes one nobody else takes."""
    nodes = [n for n in program.nodes if n.op in ("add", "sub", "mul")]
    uses = [a.id for n in program.nodes for a in n.args] + [v.id for v in program.values]
    sums = (n for n in nodes if n.op != "mul")
    melted = sum(any(a.op == "mul" and uses.count(a.id) == 1 for a in n.args) for n in sums)
    return len(nodes) - melted


def pairs(x):
    return (x[0] * x[1] + x[2] * x[3]) + (x[4] * x[5] + x[6] * x[7])


def differences(x):
    return (x[0] * x[1] - x[2] * x[3]) - (x[4] * x[5] - x[6] * x[7])


def shared(x):
    part = x[0] * x[1] + x[2] * x[3]
    return part + (x[4] * x[5] - x[6] * x[7]), part


def twice(x):
    return (x[0] + (x[1] * x[2] + x[3] * x[4])) + ((x[5] * x[6] + x[7] * x[1]) + x[0])


def all_subtracted(x):
    return -(x[0] * x[1] + x[2]) - (x[3] * x[4] + x[5])


@pytest.mark.parametrize(
    "function, before, after", [(pairs, 5, 4), (differences, 5, 4), (shared, 5, 4)]
)
def test_fewer_instructions(function, before, after):
    program = trace(function, [(8,)])
    assert (instructions(program), instructions(term_by_term(program))) == (before, after)


@pytest.mark.parametrize("function", [pairs, differences, shared, twice, all_subtracted])
def test_the_same_value(function):
    program, x = trace(function, [(8,)]), np.random.default_rng(0).normal(size=(5, 8))
    before, after = (interpret(p, [x]) for p in (program, term_by_term(program)))
    for a, b in zip(before, after, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=8 * EPS * np.abs(x).max() ** 2)


def test_what_was_summed_long_before_stays_one_term():
    def late(x):
        early = x[0] * x[1] + x[2] * x[3]
        long = x[4]
        for _ in range(100):
            long = np.sin(long)
        return early + long

    program = trace(late, [(8,)])
    assert instructions(term_by_term(program)) == instructions(program)


@pytest.mark.parametrize("term", [lambda x: x, lambda x: x * x])
def test_a_sum_of_any_length(term):
    """Longer than Python's functions may call each other."""
    n = 3 * sys.getrecursionlimit()
    program = trace(lambda x: sum((term(x[i]) for i in range(1, n)), x[0]), [(n,)])
    assert interpret(term_by_term(program), [np.ones(n)]) == [n]


@pytest.mark.parametrize("name", ROBOTS)
def test_forward_dynamics_of_robots(name):
    robot, state = ROBOTS[name], random_state(ROBOTS[name], 1)
    program = robot.kernel("forward_dynamics", "q", "qd", "tau").program
    given = [state.q, state.qd, state.qdd]
    before, after = (interpret(p, given)[0] for p in (program, term_by_term(program)))
    np.testing.assert_allclose(
        after, before, rtol=0, atol=1e6 * EPS * np.abs(before).max(initial=0.0)
    )
